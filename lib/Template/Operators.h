//===- Operators.h - Python's operators -------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_OPERATORS_H
#define SANDWICH_LIB_TEMPLATE_OPERATORS_H

#include "RenderState.h"
#include "Syntax.h"

namespace sandwich::jinja {

/// The error that using a value which is not defined makes.
inline Error undefinedError(const Value &value) {
  return Error{value.undefinedReason()};
}

/// Errors: kinds that do not go together, division by zero, and results of more
/// than 64 bits.
Result<Value> applyBinary(RenderState &state, BinaryOperator operation,
                          const Value &left, const Value &right);
Result<Value> applyUnary(RenderState &state, UnaryOperator operation,
                         const Value &operand);

/// Python's `==`.
bool equals(RenderState &state, const Value &a, const Value &b);

/// Python's `a < b`. Errors: kinds that have no order.
Result<bool> isLess(RenderState &state, const Value &a, const Value &b);

Result<bool> compare(RenderState &state, ComparisonOperator operation,
                     const Value &left, const Value &right);

/// Python's `item in container`.
Result<bool> contains(RenderState &state, const Value &container,
                      const Value &item);

/// Sorts as Python's `sort` does, which is stable, by `keys`, of which there
/// are as many as values. Errors: keys that have no order.
Status sortByKeys(RenderState &state, std::vector<Value> &values,
                  std::vector<Value> &keys, bool isReversed);

/// The part `[start:stop:step]` of a length: the first index and the one that
/// is not in it any more, how many there are, and the step.
struct SliceIndexes {
  int64_t start;
  int64_t stop;
  int64_t count;
  int64_t step;
};

/// As Python's `slice.indices`. A part that is not given is null. Errors: parts
/// that are no integers, a step of zero.
Result<SliceIndexes> sliceIndexes(const Value *start, const Value *stop,
                                  const Value *step, size_t length);

/// `text` with what HTML gives a meaning written otherwise; markup stays.
MarkedText escapeText(const MarkedText &text);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_OPERATORS_H
