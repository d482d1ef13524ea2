//===- ByteSize.cpp - Sizes for people ------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ByteSize.h"

#include "sandwich/Support/CheckedMath.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>

using namespace sandwich;

static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};

std::string sandwich::formatBytes(uint64_t bytes) {
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g %s", value, units[unit]);
  return text;
}

std::optional<uint64_t> sandwich::parseBytes(const std::string &text) {
  const char *end = text.data() + text.size();
  uint64_t whole = 0;
  auto [after, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc())
    return std::nullopt;
  double fraction = 0;
  if (after != end && *after == '.') {
    const char *point = after;
    // "1.e5" and "1.-5" are no sizes.
    do
      ++after;
    while (after != end && *after >= '0' && *after <= '9');
    if (after - point == 1 ||
        std::from_chars(point, after, fraction).ec != std::errc())
      return std::nullopt;
  }
  std::string_view unit(after, end);
  if (unit.empty())
    unit = units[0];
  else if (unit.front() == ' ')
    unit.remove_prefix(1);
  uint64_t factor = 1;
  for (const char *name : units) {
    if (unit == name) {
      auto rest = static_cast<uint64_t>(
          std::floor(fraction * static_cast<double>(factor)));
      std::optional<uint64_t> bytes = checkedMultiply(whole, factor);
      return bytes ? checkedAdd(*bytes, rest) : bytes;
    }
    factor <<= 10;
  }
  return std::nullopt;
}
