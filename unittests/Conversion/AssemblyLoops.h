//===- AssemblyLoops.h - Inner loops of assembly ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// Finds the innermost loops of the functions in what LLVM prints as assembly
/// for x86-64 (AT&T syntax) and AArch64, and what in them touches the stack.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_CONVERSION_ASSEMBLYLOOPS_H
#define SANDWICH_UNITTESTS_CONVERSION_ASSEMBLYLOOPS_H

#include "sandwich/Target/Target.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::test {

/// A loop that holds no other: the instructions on the ways from a label to a
/// branch back to it.
struct InnerLoop {
  std::vector<std::string> instructions;
  /// Those that read or write memory through the stack pointer, or through the
  /// frame pointer of a function that sets one up; and calls.
  std::vector<std::string> stackTraffic;

  /// The instructions whose mnemonic begins with `mnemonic`.
  int64_t count(std::string_view mnemonic) const;
};

/// The innermost loops of every function in `assembly`, by its name.
std::map<std::string, std::vector<InnerLoop>>
findInnerLoops(std::string_view assembly, CpuArchitecture architecture);

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_CONVERSION_ASSEMBLYLOOPS_H
