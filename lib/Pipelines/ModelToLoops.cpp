//===- ModelToLoops.cpp - From model IR to loop IR ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sandwich;

void sandwich::buildModelToSchedulePipeline(
    OpPassManager &manager, const ModelToScheduleOptions &options) {
  manager.addPass(createVerifyPhases());
  manager.addPass(createLMToGemm());
  gemm::ScheduleMatmulsOptions scheduling;
  scheduling.target = options.target;
  scheduling.threads = options.threads;
  scheduling.database = options.database;
  scheduling.machineParameters = options.machineParameters;
  scheduling.activations = options.activations;
  manager.addPass(gemm::createScheduleMatmuls(scheduling));
  manager.addPass(gemm::createPackWeights());
  lm::ScheduleAttentionOptions attention;
  attention.target = options.target;
  attention.threads = options.threads;
  attention.database = options.database;
  manager.addPass(lm::createScheduleAttention(attention));
  lm::UseKernelsOptions kernels;
  for (const std::string &each : options.kernels)
    kernels.kernels.push_back(each);
  manager.addPass(lm::createUseKernels(kernels));
}

void sandwich::buildScheduleToNestsPipeline(
    OpPassManager &manager, const ScheduleToLoopsOptions &options) {
  manager.addPass(createVerifyPhases());
  manager.addPass(createPlaceWeights());
  AssignBuffersOptions buffers;
  buffers.threads = options.threads;
  buffers.maxTokens = options.maxTokens;
  buffers.maxLogitRows = options.maxTokens;
  manager.addPass(createAssignBuffers(buffers));
  manager.addPass(createInsertBarriers());
  manager.addPass(createInsertMarks());
  manager.addPass(gemm::createDispatch());
  manager.addPass(gemm::createSplitK());
  manager.addPass(gemm::createPolymerize());
}

void sandwich::buildScheduleToLoopsPipeline(
    OpPassManager &manager, const ScheduleToLoopsOptions &options) {
  buildScheduleToNestsPipeline(manager, options);
  manager.addPass(createGemmToLoops());
  LMToLoopsOptions loops;
  loops.target = options.target;
  manager.addPass(createLMToLoops(loops));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}
