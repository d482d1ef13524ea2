//===- KernelTuning.h - Parameters of a model's kernels ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_KERNELTUNING_H
#define SANDWICH_LIB_COMPILER_KERNELTUNING_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Tuning/ModelTuner.h"

#include "mlir/IR/BuiltinOps.h"

namespace sandwich {

struct TunedModelKernels {
  /// Kernels, each for the rows of a phase, and those that the database had.
  int64_t kernels = 0, known = 0;
  int64_t measurements = 0;
  double seconds = 0;
  /// Whether all that was to be measured was.
  bool complete = true;
};

/// Measures the parameters that kernels in the place of `module`'s operations
/// leave open, on one core, for the rows that a thread has in a step: those of
/// the largest prompt, and one in decode. The best are written to the
/// operations (`lm.kernel`), and to the database of `tuning`. What was not
/// measured to its end is not in that. Errors: those of kernel::tuneKernel, and
/// what `progress` says.
Result<TunedModelKernels> tuneModelKernels(mlir::ModuleOp module,
                                           const CompileOptions &options,
                                           const Target &target,
                                           const ModelTuningOptions &tuning,
                                           const TuningProgress &progress);

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_KERNELTUNING_H
