//===- Describe.cpp - Untrusted values in error messages ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"

using namespace sandwich;

static constexpr size_t maxDescribedCharacters = 120;

std::string sandwich::describe(const Json &value) {
  // A container is described by its size when it is large, so that no more is
  // written out than will be shown.
  if (value.is_structured() && value.size() > maxDescribedCharacters)
    return (value.is_array() ? "a list of " : "an object of ") +
           std::to_string(value.size()) + " entries";
  std::string text =
      value.dump(/*indent=*/-1, /*indent_char=*/' ',
                 /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > maxDescribedCharacters)
    text.replace(maxDescribedCharacters, std::string::npos, "...");
  return text;
}

std::string sandwich::quote(std::string_view name) {
  return describe(Json(std::string(name)));
}

std::string sandwich::describeShape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}
