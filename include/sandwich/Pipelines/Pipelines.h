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

struct LoopsToLLVMOptions
    : mlir::PassPipelineOptions<LoopsToLLVMOptions> {
  PassOptions::Option<bool> emulateAMX{
      *this, "emulate-amx",
      llvm::cl::desc("replace AMX by vectors, to run on any CPU"),
      llvm::cl::init(false)};
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

/// Registers every pass and pipeline of Sandwich.
void registerSandwichPasses();

} // namespace sandwich

#endif // SANDWICH_PIPELINES_PIPELINES_H
