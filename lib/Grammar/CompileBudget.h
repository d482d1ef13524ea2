//===- CompileBudget.h - What compiling may still cost ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_COMPILEBUDGET_H
#define SANDWICH_LIB_GRAMMAR_COMPILEBUDGET_H

#include <cstdint>

namespace sandwich::grammar {

/// Steps that compiling one grammar may still take, of some tens of nanoseconds
/// each. What takes them stops once there are none, with whatever it has, and
/// whoever called asks at the end.
class CompileBudget {
public:
  explicit CompileBudget(uint64_t steps) : left(steps) {}

  /// Whether `steps` were left; they are gone either way.
  bool spend(uint64_t steps) {
    if (steps > left) {
      left = 0;
      overspent = true;
      return false;
    }
    left -= steps;
    return true;
  }

  bool exhausted() const { return overspent; }

private:
  uint64_t left;
  bool overspent = false;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_COMPILEBUDGET_H
