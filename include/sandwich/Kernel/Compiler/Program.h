//===- Program.h - Kernels of the high level as machine code ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From dialect `block` to functions that anyone can call:
///
///   void sandwich_kernel_NAME(void *const *arguments);
///
/// Each argument is a pointer to a number, or to memory as upstream describes
/// it: two pointers to its first element, 64-bit 0, its sizes and its strides.
/// Memory is contiguous, and as large as the kernel's sizes say; who calls
/// checks that.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_COMPILER_PROGRAM_H
#define SANDWICH_KERNEL_COMPILER_PROGRAM_H

#include "sandwich/Conversion/BlockToVector.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Target/Target.h"
#include "sandwich/Tuning/MeasuredCode.h"

#include <string>
#include <vector>

namespace sandwich::kernel {

/// What begins the name of a function that is called from outside.
inline constexpr std::string_view entryPrefix = "sandwich_kernel_";

/// A function of the C interface.
/// The result is 0; where bounds are checked, the line of an access that would
/// have been beyond them (block::makeFunction).
using EntryPoint = int64_t (*)(void *const *arguments);

/// An argument of a kernel.
struct ArgumentDescription {
  std::string name;
  /// `f32` and so on.
  std::string type;
  bool isMemory = false;
  /// Of memory, as text: `rows`, `2 * HALF`, `64`.
  std::vector<std::string> sizes;
  /// Whether the kernel writes it.
  bool isWritten = false;
};

/// One that is tuned has choices.
struct ParameterDescription {
  std::string name;
  std::vector<int64_t> choices;
  int64_t untuned = 0;
};

struct KernelDescription {
  std::string name, documentation;
  std::vector<ArgumentDescription> arguments;
  std::vector<ParameterDescription> parameters;

  /// As JSON, for who calls it from another language.
  std::string toJson() const;
};

KernelDescription describeKernel(mlir::func::FuncOp kernel);

/// The kernel `name` of `module`, or its only one where that is empty. Errors:
/// there is none.
Result<mlir::func::FuncOp> findKernel(mlir::ModuleOp module,
                                      const std::string &name);

/// `FILE:LINE:COLUMN: MESSAGE`, or the message alone where nothing is known of
/// its place.
std::string describe(mlir::Diagnostic &diagnostic);

/// How far kernels are compiled: to loops over vectors, assembly or object
/// code.
enum class KernelOutput { Loops, Assembly, Object };

/// Compiles `kernel`, of the session's context, with what `bindings` says, and
/// so that it checks bounds if there are `checks`, which then tell of them.
/// Errors: what passes report, with their line.
Result<std::string> compileKernel(measuring::CompileSession &session,
                                  mlir::func::FuncOp kernel,
                                  const block::Bindings &bindings,
                                  const Target &target,
                                  KernelOutput output = KernelOutput::Object,
                                  block::BoundsChecks *checks = nullptr);

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_COMPILER_PROGRAM_H
