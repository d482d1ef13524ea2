//===- Interpreter.h - What kernels compute ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs functions of dialect kernel operation by operation, with intrinsics as
/// their table has them: what compiled code is compared with, on any CPU.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_INTERPRETER_H
#define SANDWICH_KERNEL_INTERPRETER_H

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "mlir/IR/BuiltinOps.h"

#include <span>
#include <variant>

namespace sandwich::kernel {

/// A number, the lanes of a vector or of a mask, or the memory that a pointer
/// points to the first byte of.
using KernelArgument = std::variant<std::vector<Lane>, std::span<std::byte>>;

struct InterpreterLimits {
  /// Operations, after which a kernel counts as one that does not end.
  uint64_t operations = uint64_t{1} << 32;
  /// Bytes of variables that may be there at once.
  int64_t variableBytes = int64_t{1} << 28;
};

/// The lanes of the result of `function` for `arguments`, none if it has no
/// result or a pointer. Memory of arguments is written to. An error, emitted at
/// the operation: an argument is of another type, memory that is not there is
/// read or written, C does not say what comes of it (a division by zero, a
/// shift by too much), `kernel.trap`, or a limit.
mlir::FailureOr<std::vector<Lane>>
interpret(FuncOp function, std::span<const KernelArgument> arguments,
          const InterpreterLimits &limits = {});

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_INTERPRETER_H
