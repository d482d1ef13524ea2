//===- Iteration.h - Going through values -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_ITERATION_H
#define SANDWICH_LIB_TEMPLATE_ITERATION_H

#include "RenderState.h"

#include <functional>

namespace sandwich::jinja {

/// The next value, nothing at the end, or why there is none.
using Next = std::function<Result<std::optional<Value>>()>;

/// What filters give value by value, once and when it is asked for: Python's
/// generators and iterators.
class Generator final : public Object {
public:
  explicit Generator(Next next)
      : Object(Kind::Generator), advance(std::move(next)) {}

  Result<std::optional<Value>> next();

private:
  Next advance;
  bool isRunning = false;
};

/// A generator as a value.
Value makeGenerator(RenderState &state, Next next);

/// Goes through the characters of a string, the items of a list, the keys of a
/// dictionary and so on.
class ValueIterator {
public:
  /// Errors: a value that has no items.
  static Result<ValueIterator> over(const Value &value);

  /// The next item. Errors: those of a generator, and exceeded limits.
  Result<std::optional<Value>> next(RenderState &state);

private:
  explicit ValueIterator(Value value) : value(std::move(value)) {}

  Value value;
  size_t position = 0; ///< an index, or of strings an offset
};

/// All items of `value`. Errors as there.
Result<std::vector<Value>> collect(RenderState &state, const Value &value);

/// Python's `len`. Error: a value that has no length.
Result<size_t> lengthOf(const Value &value);

/// Item `index` of a view of a dictionary.
Value viewItem(RenderState &state, const DictionaryView &view, size_t index);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_ITERATION_H
