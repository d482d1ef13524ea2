//===- StorageFormat.cpp - How the numbers of a weight are stored ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Quantization/StorageFormat.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

using namespace sandwich;

template <typename Value, size_t count>
using Names = std::array<std::pair<Value, std::string_view>, count>;

static constexpr Names<NumberFormat, 5> numberNames = {
    {{NumberFormat::F32, "f32"},
     {NumberFormat::BF16, "bf16"},
     {NumberFormat::Int8, "int8"},
     {NumberFormat::Int4, "int4"},
     {NumberFormat::FP8, "fp8"}}};
static constexpr Names<ScaleFormat, 2> scaleNames = {
    {{ScaleFormat::F32, "f32"}, {ScaleFormat::F16, "f16"}}};
static constexpr Names<GroupOffset, 2> offsetNames = {
    {{GroupOffset::None, "none"}, {GroupOffset::Minimum, "minimum"}}};

template <typename Value, size_t count>
static std::string_view nameIn(const Names<Value, count> &names, Value value) {
  for (const auto &[named, name] : names)
    if (named == value)
      return name;
  __builtin_unreachable();
}

template <typename Value, size_t count>
static std::optional<Value> namedIn(const Names<Value, count> &names,
                                    std::string_view text) {
  for (const auto &[named, name] : names)
    if (name == text)
      return named;
  return std::nullopt;
}

std::string_view sandwich::name(NumberFormat number) {
  return nameIn(numberNames, number);
}
std::optional<NumberFormat> sandwich::numberFormatNamed(std::string_view text) {
  return namedIn(numberNames, text);
}
std::string_view sandwich::name(ScaleFormat scale) {
  return nameIn(scaleNames, scale);
}
std::optional<ScaleFormat> sandwich::scaleFormatNamed(std::string_view text) {
  return namedIn(scaleNames, text);
}
std::string_view sandwich::name(GroupOffset offset) {
  return nameIn(offsetNames, offset);
}
std::optional<GroupOffset> sandwich::groupOffsetNamed(std::string_view text) {
  return namedIn(offsetNames, text);
}

int64_t sandwich::bytesOf(ScaleFormat scale) {
  return scale == ScaleFormat::F32 ? 4 : 2;
}

int64_t StorageFormat::bits() const {
  switch (number) {
  case NumberFormat::F32:
    return 32;
  case NumberFormat::BF16:
    return 16;
  case NumberFormat::Int8:
  case NumberFormat::FP8:
    return 8;
  case NumberFormat::Int4:
    return 4;
  }
  __builtin_unreachable();
}

int64_t StorageFormat::groupOf(int64_t k) const {
  if (!isQuantized())
    return 1;
  return groupSize == 0 ? k : groupSize;
}

int64_t StorageFormat::storedZero() const {
  return hasIntegers() ? int64_t(1) << (bits() - 1) : 0;
}

std::string StorageFormat::name() const {
  std::string text(sandwich::name(number));
  if (!isQuantized())
    return text;
  text += groupSize == 0 ? "-row" : "-g" + std::to_string(groupSize);
  text += '-';
  text += sandwich::name(scale);
  if (offset != GroupOffset::None) {
    text += '-';
    text += sandwich::name(offset);
  }
  return text;
}

Result<StorageFormat> StorageFormat::parse(std::string_view text) {
  auto fail = [&]() -> Result<StorageFormat> {
    return makeError("'", text,
                     "' is no storage format; they are f32, bf16, and int8, "
                     "int4 and fp8 with groups and scales, for example "
                     "int4-g32-f16");
  };
  std::vector<std::string_view> parts;
  for (std::string_view rest = text;;) {
    const size_t end = rest.find('-');
    parts.push_back(rest.substr(0, end));
    if (end == rest.npos)
      break;
    rest.remove_prefix(end + 1);
  }
  StorageFormat format;
  std::optional<NumberFormat> number = numberFormatNamed(parts[0]);
  if (!number)
    return fail();
  format.number = *number;
  if (format.isQuantized()) {
    if (parts.size() < 3 || parts.size() > 4)
      return fail();
    if (parts[1] != "row") {
      const std::string_view size = parts[1].substr(parts[1].starts_with('g'));
      auto [end, error] = std::from_chars(
          size.data(), size.data() + size.size(), format.groupSize);
      if (error != std::errc() || end != size.data() + size.size() ||
          format.groupSize == 0)
        return fail();
    }
    std::optional<ScaleFormat> scale = scaleFormatNamed(parts[2]);
    std::optional<GroupOffset> offset =
        parts.size() == 4 ? groupOffsetNamed(parts[3]) : GroupOffset::None;
    if (!scale || !offset)
      return fail();
    format.scale = *scale;
    format.offset = *offset;
  }
  // One format has one name.
  if (format.name() != text)
    return fail();
  SANDWICH_RETURN_IF_ERROR(verify(format));
  return format;
}

Result<StorageFormat> StorageFormat::parseOption(std::string_view text) {
  constexpr int64_t usualGroup = 32;
  StorageFormat format{numberFormatNamed(text).value_or(NumberFormat::F32)};
  if (!format.isQuantized())
    return parse(text);
  // The exponents of fp8 do what scales of small groups do.
  if (format.hasIntegers()) {
    format.groupSize = usualGroup;
    format.scale = ScaleFormat::F16;
  }
  return format;
}

Status sandwich::verify(const StorageFormat &format) {
  if (!format.isQuantized() && format != StorageFormat{format.number})
    return makeError(name(format.number), " has no groups");
  if (!format.hasIntegers() && format.offset != GroupOffset::None)
    return makeError(name(format.number), " has no ", name(format.offset),
                     ", as its numbers have signs");
  if (format.groupSize < 0 || format.groupSize > largestGroup ||
      format.groupSize % smallestGroup != 0)
    return makeError("the k of a group, ", format.groupSize,
                     ", must be a multiple of ", smallestGroup, ", at most ",
                     largestGroup, ", or a whole row");
  return {};
}

Status sandwich::verify(const StorageFormat &format, int64_t k) {
  SANDWICH_RETURN_IF_ERROR(verify(format));
  if (!format.isQuantized())
    return {};
  const int64_t group = format.groupOf(k);
  if (group > largestGroup || group % smallestGroup != 0 || k % group != 0)
    return makeError(
        format.name(), " needs K to be a multiple of ",
        format.groupSize ? format.groupSize : smallestGroup,
        format.groupSize ? "" : " and at most " + std::to_string(largestGroup),
        "; it is ", k);
  return {};
}

int64_t sandwich::scalesOffset(const StorageFormat &format, int64_t columns,
                               int64_t k) {
  return columns * k * format.bits() / 8;
}

int64_t sandwich::minimaOffset(const StorageFormat &format, int64_t columns,
                               int64_t k) {
  return scalesOffset(format, columns, k) + columns * bytesOf(format.scale);
}

int64_t sandwich::groupBytes(const StorageFormat &format, int64_t columns,
                             int64_t k) {
  if (!format.isQuantized())
    return scalesOffset(format, columns, k);
  const int64_t minima = minimaOffset(format, columns, k);
  return format.offset == GroupOffset::None
             ? minima
             : minima + columns * bytesOf(format.scale);
}

int64_t sandwich::groupLength(const StorageFormat &format, int64_t columns,
                              int64_t bytes) {
  const int64_t numbers = bytes - groupBytes(format, columns, 0);
  const int64_t k = numbers > 0 ? numbers * 8 / format.bits() / columns : 0;
  return groupBytes(format, columns, k) == bytes ? k : 0;
}

int64_t sandwich::weightBytes(const StorageFormat &format, int64_t columns,
                              int64_t k) {
  const int64_t group = format.groupOf(k);
  return k / group * groupBytes(format, columns, group);
}

double sandwich::bitsPerWeight(const StorageFormat &format, int64_t k) {
  const int64_t group = format.groupOf(k);
  // Two columns, as one may be half a byte.
  return static_cast<double>(groupBytes(format, 2, group)) * 8 /
         (2.0 * static_cast<double>(group));
}
