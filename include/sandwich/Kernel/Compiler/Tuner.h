//===- Tuner.h - Parameters of kernels, measured ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_COMPILER_TUNER_H
#define SANDWICH_KERNEL_COMPILER_TUNER_H

#include "sandwich/Kernel/Compiler/Program.h"

#include <functional>
#include <map>

namespace sandwich::kernel {

struct KernelTuningOptions {
  /// Names of sizes and constants, and what they are: all that the kernel's
  /// arguments have. Those in `known` are part of the code. Integers that are
  /// arguments are as large as their names say here.
  block::Bindings sizes, known;
  /// What arguments are that are numbers, by their places, whatever their names
  /// are. Floats that are not here are random.
  std::map<unsigned, double> numbers;
  /// After which no other choice is tried.
  double seconds = 30;
  /// Called after each measurement, with those so far and how many there may
  /// be; false ends tuning with what is the best so far.
  std::function<bool(size_t measured, size_t most)> progress;
};

/// One choice of all parameters, and how long a call takes.
struct KernelMeasurement {
  block::Bindings parameters;
  double seconds = 0;
};

struct TunedKernel {
  KernelMeasurement untuned, best;
  size_t measurements = 0;
  /// Choices whose results are not those that the kernel has untuned, beyond
  /// what another order of sums makes of them: they are not taken.
  std::vector<block::Bindings> wrong;
  /// Whether all was tried that was to be.
  bool complete = true;
};

/// The number of an argument that is named `name`; nothing if there is none.
std::optional<unsigned> findArgument(mlir::func::FuncOp kernel,
                                     llvm::StringRef name);

/// Measures `kernel` on one core of this machine, with random numbers, and
/// compares what it computes with what it does untuned. Up to
/// 128 choices are all tried; of more, one parameter at a time is changed from
/// the best so far, until none gains anything. Errors: a size that is not
/// given or makes memory too large, a kernel that does not compile, a target
/// that this machine cannot run.
Result<TunedKernel> tuneKernel(mlir::func::FuncOp kernel,
                               measuring::CompileSession &session,
                               const Target &target,
                               const KernelTuningOptions &options);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_COMPILER_TUNER_H
