//===- ObjectReader.h - The fields of a JSON object, checked ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_OBJECTREADER_H
#define SANDWICH_API_OBJECTREADER_H

#include "sandwich/Api/ApiError.h"
#include "sandwich/Support/Json.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Reads an object field by field. A field that is absent or null gives
/// nothing, and so does one that is wrong: the first that was is `error`.
class ObjectReader {
public:
  /// `path` is what comes before the names of its fields in errors: empty, or
  /// "messages[0].".
  ObjectReader(const Json &object, std::string path);

  /// The field as it is. Null: it is absent, or null.
  const Json *find(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  /// A number in [low, high].
  std::optional<double> number(std::string_view name, double low, double high);
  /// A whole number in [low, high].
  std::optional<int64_t> integer(std::string_view name, int64_t low,
                                 int64_t high);
  /// At most `maxBytes` long.
  std::optional<std::string> string(std::string_view name, size_t maxBytes);
  /// An object or a list, as it is.
  const Json *object(std::string_view name);
  const Json *list(std::string_view name);

  /// The ids of `list`, which is the field `name`; empty where one is none,
  /// which is refused.
  std::vector<int32_t> tokenIds(std::string_view name, const Json &list);

  /// Fields that may be there and change nothing of the answer.
  void ignore(std::initializer_list<std::string_view> names);
  /// Fields that other servers know, with the value that changes nothing:
  /// every other is an error.
  void requireDefault(std::string_view name, const Json &usual);

  /// Reads an object within: `read` gets its reader.
  void within(std::string_view name,
              const std::function<void(ObjectReader &)> &read);

  /// Says that `name` is wrong, unless there is an error already.
  void refuse(std::string_view name, std::string message);
  void refuse(ApiError error);
  /// "NAME is VALUE; it must be EXPECTED".
  void refuseValue(std::string_view name, const Json &value,
                   std::string_view expected);

  std::string pathOf(std::string_view name) const;
  bool hasError() const { return problem.has_value(); }
  /// The first error, of the fields that nobody read too: whoever wrote them
  /// meant something by them.
  std::optional<ApiError> finish();

private:
  const Json &contents;
  const std::string path;
  std::set<std::string, std::less<>> known;
  std::optional<ApiError> problem;
};

/// Reads a request's body, which must be an object.
std::optional<ApiError>
readObject(std::string_view body,
           const std::function<void(ObjectReader &)> &read);

/// What errors call an entry of a list: "messages[0]".
std::string indexed(std::string_view name, size_t index);

/// `value` as JSON, cut to what a message can hold.
std::string excerpt(const Json &value);

} // namespace sandwich

#endif // SANDWICH_API_OBJECTREADER_H
