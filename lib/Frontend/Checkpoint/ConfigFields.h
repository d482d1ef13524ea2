//===- ConfigFields.h - Typed reading of configurations ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_CHECKPOINT_CONFIGFIELDS_H
#define SANDWICH_LIB_FRONTEND_CHECKPOINT_CONFIGFIELDS_H

#include "Describe.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <string>
#include <string_view>

namespace sandwich {

/// Typed reading of an object's fields. A field that is null counts as absent,
/// as it does in transformers.
class Fields {
public:
  /// `prefix` stands before field names in errors: "rope_scaling.".
  Fields(const Json &object, std::string prefix)
      : object(object), prefix(std::move(prefix)) {}

  /// Whether the field is there at all, null or not.
  bool has(const char *name) const { return object.contains(name); }

  const Json *find(const char *name) const {
    auto field = object.find(name);
    return field == object.end() || field->is_null() ? nullptr : &*field;
  }

  Error missing(const char *name) const {
    return makeError(prefix, name, " is missing");
  }

  /// "NAME is VALUE" and what is wrong with it.
  template <typename... Parts>
  Error refuse(const char *name, const Parts &...parts) const {
    return makeError(prefix, name, " is ", describe(*find(name)), parts...);
  }

  Result<int64_t> integer(const char *name, int64_t least, int64_t most) const {
    const Json *field = find(name);
    if (!field)
      return missing(name);
    bool fits = field->is_number_unsigned()
                    ? most >= 0 && field->get<uint64_t>() <= uint64_t(most)
                    : field->is_number_integer();
    if (!fits || field->get<int64_t>() < least || field->get<int64_t>() > most)
      return refuse(name, "; a whole number from ", least, " to ", most,
                    " is expected");
    return field->get<int64_t>();
  }

  Result<int64_t> integerOr(const char *name, int64_t absent, int64_t least,
                            int64_t most) const {
    return find(name) ? integer(name, least, most) : Result(absent);
  }

  Result<double> number(const char *name, double least, double most) const {
    const Json *field = find(name);
    if (!field)
      return missing(name);
    if (!field->is_number() || !(field->get<double>() >= least) ||
        !(field->get<double>() <= most))
      return refuse(name, "; a number from ", least, " to ", most,
                    " is expected");
    return field->get<double>();
  }

  Result<bool> booleanOr(const char *name, bool absent) const {
    const Json *field = find(name);
    if (!field)
      return absent;
    if (!field->is_boolean())
      return refuse(name, "; true or false is expected");
    return field->get<bool>();
  }

private:
  const Json &object;
  std::string prefix;
};

/// The object that `text` is.
inline Result<Json> parseObject(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseJson(text));
  if (!document.is_object())
    return makeError("is ", describe(document), "; an object is expected");
  return document;
}

/// Refuses `name` unless it is absent, null or `value`.
inline Status checkFixed(const Fields &fields, const char *name,
                         const Json &value) {
  const Json *field = fields.find(name);
  if (!field || *field == value)
    return {};
  return fields.refuse(name, "; only ", describe(value), " is supported");
}

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_CHECKPOINT_CONFIGFIELDS_H
