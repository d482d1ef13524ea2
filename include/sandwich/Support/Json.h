//===- Json.h - Reading untrusted JSON --------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A strict front to nlohmann-json for files nobody vouches for: duplicate
/// keys and deep nesting are errors, and no exception leaves it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_JSON_H
#define SANDWICH_SUPPORT_JSON_H

#include "sandwich/Support/Result.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace sandwich {

/// Keeps keys in the order of the file, as a tensor header's order is its own.
using Json = nlohmann::ordered_json;

/// Containers nested deeper than this are refused; real files use at most six.
inline constexpr int maxJsonDepth = 64;

/// Parses `text` as one JSON document. Errors name the byte offset; duplicate
/// keys in one object, nesting deeper than `maxJsonDepth`, invalid UTF-8 and
/// anything after the document are errors.
Result<Json> parseJson(std::string_view text);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_JSON_H
