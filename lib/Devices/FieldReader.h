//===- FieldReader.h - The fields of a description --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DEVICES_FIELDREADER_H
#define LIB_DEVICES_FIELDREADER_H

#include "sandwich/Devices/LatencyFit.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// No description is longer.
inline constexpr size_t mostDescriptionBytes = size_t{1} << 20;

/// The most bytes of a name.
inline constexpr size_t mostNameBytes = 256;

/// The JSON object in the file `path`. Errors: as `readTextFile` and
/// `parseJson`.
Result<Json> readDescription(const std::string &path);

/// Reads an object field by field. What is absent leaves the value as it is;
/// errors name the field, the reason and what would be right.
class FieldReader {
public:
  /// `path` is what messages call the object: empty, or "devices[0]".
  FieldReader(const Json &json, std::string path)
      : json(json), path(std::move(path)) {}

  /// Error: it is no object.
  Status object() const;
  /// A number from `low` to `high`.
  Status number(std::string_view name, double low, double high, double &value);
  /// A whole number from `low` to `high`.
  Status integer(std::string_view name, uint64_t low, uint64_t high,
                 uint64_t &value);
  /// A text that is not empty, of at most `mostNameBytes`.
  Status text(std::string_view name, std::string &value);
  /// `alpha` and `beta`, in seconds; both must be there, and a batch take time.
  Status line(LatencyLine &line);
  /// The field as it is. Null: it is absent.
  const Json *find(std::string_view name);
  /// Error: it is absent.
  Status require(std::string_view name) const;
  /// Error: there is a field that nobody read.
  Status end() const;

  std::string pathOf(std::string_view name) const;

private:
  const Json &json;
  const std::string path;
  std::set<std::string, std::less<>> known;
};

} // namespace sandwich

#endif // LIB_DEVICES_FIELDREADER_H
