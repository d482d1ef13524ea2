//===- JsonField.h - A JSON value that knows where it stands ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Wraps a value of a parsed document with its path, so that every error names
/// the field: `model.merges[3]: ...`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_JSONFIELD_H
#define SANDWICH_LIB_RUNTIME_TEXT_JSONFIELD_H

#include "sandwich/Support/Json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::tokenizer {

/// `text` in quotes as an error shows it: short, and UTF-8 whatever it was.
std::string inQuotes(std::string_view text);

/// A value and its path. The document must outlive it.
class JsonField {
public:
  JsonField(const Json &value, std::string path)
      : value(&value), name(std::move(path)) {}

  const Json &json() const { return *value; }
  const std::string &path() const { return name; }

  /// An error about this field.
  template <typename... Parts> Error error(const Parts &...parts) const {
    return makeError(name.empty() ? "the document" : name, ": ", parts...);
  }

  /// The error for a value that is well formed and that we do not support.
  Error unsupported() const;

  /// The member `key` of this object. Errors: not an object, or absent.
  Result<JsonField> member(std::string_view key) const;

  /// The member `key` of this object, or nothing if it is absent or null.
  Result<std::optional<JsonField>> optionalMember(std::string_view key) const;

  /// The elements in the order of the file. Error: not a list.
  Result<std::vector<JsonField>> elements() const;

  Result<std::string> string() const;
  Result<bool> boolean() const;
  Result<uint64_t> unsignedInteger() const;

  /// A token id below `vocabularySize`.
  Result<int32_t> tokenId(size_t vocabularySize) const;

  /// The member `key` as a string or a boolean.
  Result<std::string> stringMember(std::string_view key) const;
  Result<bool> booleanMember(std::string_view key) const;

  /// The same, with a value for an absent or null member.
  Result<std::string> stringMember(std::string_view key,
                                   std::string_view otherwise) const;
  Result<bool> booleanMember(std::string_view key, bool otherwise) const;

private:
  std::string memberPath(std::string_view key) const;

  const Json *value;
  std::string name;
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_JSONFIELD_H
