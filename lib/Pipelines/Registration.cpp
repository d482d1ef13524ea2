//===- Registration.cpp - Dialects, passes and pipelines ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Dialect/Kernel/IR/Kernel.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Dialect/Topo/IR/Topo.h"
#include "sandwich/Dialect/Topo/Transforms/Passes.h"
#include "sandwich/Kernel/Raise.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

using namespace mlir;
using namespace sandwich;

void sandwich::registerSandwichDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<block::BlockDialect, gemm::GemmDialect, kernel::KernelDialect,
                  lm::LMDialect, phase::PhaseDialect, tile::TileDialect,
                  topo::TopoDialect>();
}

void sandwich::registerSandwichPasses() {
  registerConversionPasses();
  registerTransformsPasses();
  lm::registerLMPasses();
  gemm::registerGemmPasses();
  topo::registerTopoPasses();
  PassPipelineRegistration<>("raise-kernels",
                             "From dialect kernel to dialect block",
                             kernel::addRaisingPasses);
  PassPipelineRegistration<ModelToScheduleOptions>(
      "model-to-schedule", "From model IR to schedule IR",
      buildModelToSchedulePipeline);
  PassPipelineRegistration<ScheduleToLoopsOptions>(
      "schedule-to-loops", "From schedule IR to loop IR",
      buildScheduleToLoopsPipeline);
  PassPipelineRegistration<LoopsToLLVMOptions>(
      "loops-to-llvm", "From loop IR to the LLVM dialect",
      buildLoopsToLLVMPipeline);
}
