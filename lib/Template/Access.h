//===- Access.h - Parts of values -------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_ACCESS_H
#define SANDWICH_LIB_TEMPLATE_ACCESS_H

#include "RenderState.h"

namespace sandwich::jinja {

/// `object.name`: a method or an attribute, or else what is there by that key.
/// What is not there is undefined. Error: `object` is undefined.
Result<Value> getAttribute(RenderState &state, const Value &object,
                           std::string_view name);

/// A method or an attribute, but nothing by key.
Result<Value> getMember(RenderState &state, const Value &object,
                        std::string_view name);

/// `object[index]`: what is there by that key or place, or else a method or an
/// attribute. Undefined and error as above.
Result<Value> getItem(RenderState &state, const Value &object,
                      const Value &index);

/// `object[start:stop:step]`, where parts that are not given are null. Errors:
/// a value that has no slices, and parts that are no integers.
Result<Value> getSlice(RenderState &state, const Value &object,
                       const Value *start, const Value *stop,
                       const Value *step);

/// What filters name by `attribute`: parts with points between them, of which
/// those that are numbers are places. What is not there is `otherwise`, if that
/// is given, at each part.
Result<Value> getPath(RenderState &state, const Value &object,
                      const Value &path, const Value *otherwise = nullptr);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_ACCESS_H
