//===- Pipelines.h - Pass pipelines -----------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_PIPELINES_PIPELINES_H
#define SANDWICH_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace sandwich {

struct ModelToScheduleOptions
    : mlir::PassPipelineOptions<ModelToScheduleOptions> {
  PassOptions::Option<std::string> target{
      *this, "target", llvm::cl::desc("CPU to schedule for, or host"),
      llvm::cl::init("host")};
  PassOptions::Option<int64_t> threads{*this, "threads",
                                       llvm::cl::desc("threads of the team"),
                                       llvm::cl::init(1)};
  PassOptions::Option<std::string> database{
      *this, "database", llvm::cl::desc("file with tuned schedules"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> machineParameters{
      *this, "machine-parameters",
      llvm::cl::desc("file with the speed of the machine's parts"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> activations{
      *this, "activations",
      llvm::cl::desc("what is multiplied with quantized weights: float, or, "
                     "where there are instructions for it, int8"),
      llvm::cl::init("float")};
  PassOptions::ListOption<std::string> kernels{
      *this, "kernels",
      llvm::cl::desc("files with kernels for operations: OPERATION=FILE")};
};

/// From model IR to schedule IR: matmuls with epilogues, schedules and packed
/// weights. Matmuls that have schedules keep them.
void buildModelToSchedulePipeline(mlir::OpPassManager &manager,
                                  const ModelToScheduleOptions &options);

struct ScheduleToLoopsOptions
    : mlir::PassPipelineOptions<ScheduleToLoopsOptions> {
  PassOptions::Option<std::string> target{
      *this, "target", llvm::cl::desc("CPU to lower for, or host"),
      llvm::cl::init("host")};
  PassOptions::Option<int64_t> threads{*this, "threads",
                                       llvm::cl::desc("threads of the team"),
                                       llvm::cl::init(1)};
  PassOptions::Option<int64_t> maxTokens{
      *this, "max-tokens", llvm::cl::desc("tokens of the largest step"),
      llvm::cl::init(512)};
};

/// The first part of `buildScheduleToLoopsPipeline`: phase programs over
/// buffers, where matmuls are the nests of each thread.
void buildScheduleToNestsPipeline(mlir::OpPassManager &manager,
                                  const ScheduleToLoopsOptions &options);

/// From schedule IR to loop IR: phase programs over buffers, all operations as
/// loops over vectors and tiles.
void buildScheduleToLoopsPipeline(mlir::OpPassManager &manager,
                                  const ScheduleToLoopsOptions &options);

struct LoopsToLLVMOptions : mlir::PassPipelineOptions<LoopsToLLVMOptions> {
  PassOptions::Option<bool> expandBF16{
      *this, "expand-bf16",
      llvm::cl::desc("round f32 to bf16 with integer instructions, for CPUs "
                     "without AVX512_BF16"),
      llvm::cl::init(false)};
};

/// From loop IR (scf, memref, vector, amx, x86vector and so on) to the LLVM
/// dialect.
void buildLoopsToLLVMPipeline(mlir::OpPassManager &manager,
                              const LoopsToLLVMOptions &options);

/// Adds Sandwich's dialects and the upstream ones its passes use.
void registerSandwichDialects(mlir::DialectRegistry &registry);

/// Registers every pass and pipeline of Sandwich.
void registerSandwichPasses();

} // namespace sandwich

#endif // SANDWICH_PIPELINES_PIPELINES_H
