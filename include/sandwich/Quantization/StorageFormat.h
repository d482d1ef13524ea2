//===- StorageFormat.h - How the numbers of a weight are stored -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a number of a weight takes in memory, and what it stands for. In which
/// order numbers lie is the packing's to say.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_QUANTIZATION_STORAGEFORMAT_H
#define SANDWICH_QUANTIZATION_STORAGEFORMAT_H

#include "sandwich/Support/Result.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandwich {

/// One number as it is stored.
enum class NumberFormat : uint8_t {
  /// `f32`
  F32,
  /// `bf16`
  BF16,
  /// `int8`: -128 to 127, stored with 128 added.
  Int8,
  /// `int4`: -8 to 7, stored with 8 added.
  Int4,
  /// `fp8`: E4M3FN, see Float8.h.
  FP8,
};

/// `f32`, `bf16`, `int8`, `int4` or `fp8`.
std::string_view name(NumberFormat number);
std::optional<NumberFormat> numberFormatNamed(std::string_view name);

/// How a group's scale, and its offset if that is a float, are stored.
enum class ScaleFormat : uint8_t {
  /// `f32`
  F32,
  /// `f16`
  F16,
};

/// `f32` or `f16`.
std::string_view name(ScaleFormat scale);
std::optional<ScaleFormat> scaleFormatNamed(std::string_view name);
int64_t bytesOf(ScaleFormat scale);

/// What stands at 0 of a group's numbers.
enum class GroupOffset : uint8_t {
  /// `none`: `value = scale * number`.
  None,
  /// `minimum`: `value = scale * stored + minimum`, of the number as it is
  /// stored, from 0 on.
  Minimum,
};

/// `none` or `minimum`.
std::string_view name(GroupOffset offset);
std::optional<GroupOffset> groupOffsetNamed(std::string_view name);

/// How the numbers of a weight `[N, K]` are stored. Those of 8 and 4 bits come
/// in groups along K that share a scale, which lies behind them (see
/// `scalesOffset`), so that a packed weight is one stream.
struct StorageFormat {
  NumberFormat number = NumberFormat::F32;
  /// k that share a scale, of quantized numbers; 0: all of K.
  int64_t groupSize = 0;
  ScaleFormat scale = ScaleFormat::F32;
  GroupOffset offset = GroupOffset::None;

  static constexpr StorageFormat f32() { return {}; }
  static constexpr StorageFormat bf16() { return {NumberFormat::BF16}; }

  /// Whether numbers are in groups that share a scale.
  bool isQuantized() const {
    return hasIntegers() || number == NumberFormat::FP8;
  }
  /// Whether these are integers, which instructions multiply as they are.
  bool hasIntegers() const {
    return number == NumberFormat::Int8 || number == NumberFormat::Int4;
  }
  /// Of one number.
  int64_t bits() const;
  /// The k of a group of a weight with `k` of them; 1 of floats.
  int64_t groupOf(int64_t k) const;
  /// What integers have added when they are stored.
  int64_t storedZero() const;

  /// `bf16`, `int4-g32-f16`, `int8-row-f32`, `int4-g32-f16-minimum`: distinct
  /// for distinct formats.
  std::string name() const;
  /// Errors: no such name, or what `verify` says.
  static Result<StorageFormat> parse(std::string_view name);
  /// What a user calls a format: its name, or `int8` or `int4` for groups of 32
  /// with scales of f16, or `fp8` for whole rows with scales of f32.
  static Result<StorageFormat> parseOption(std::string_view text);

  auto operator<=>(const StorageFormat &) const = default;
};

/// The k of a group may be any multiple of this up to the largest; so many
/// numbers are one load of a vector.
inline constexpr int64_t smallestGroup = 16;
inline constexpr int64_t largestGroup = 1 << 16;

/// Errors: f32 or bf16 with groups, fp8 with a minimum, a size of a group that
/// is not a multiple of `smallestGroup` up to `largestGroup`.
Status verify(const StorageFormat &format);

/// An error if groups do not divide `k`, or whole rows are longer than
/// `largestGroup`.
Status verify(const StorageFormat &format, int64_t k);

/// Of numbers of four bits two share a byte: of each twice as many the first so
/// many are the low halves of a line of bytes, the others the high ones.
inline constexpr int64_t sharedLineBytes = 64;

/// A group of a packed weight: the numbers of all its columns, their scales,
/// and their minima if there are any. Where the scales begin, and the minima.
int64_t scalesOffset(const StorageFormat &format, int64_t columns, int64_t k);
int64_t minimaOffset(const StorageFormat &format, int64_t columns, int64_t k);

/// The bytes of such a group, of an even number of numbers.
int64_t groupBytes(const StorageFormat &format, int64_t columns, int64_t k);

/// The k of a group of `columns` columns in `bytes` bytes; 0 if no group has
/// them.
int64_t groupLength(const StorageFormat &format, int64_t columns,
                    int64_t bytes);

/// The bytes of `columns` columns of a weight of `k` k.
int64_t weightBytes(const StorageFormat &format, int64_t columns, int64_t k);

/// The bits that a weight of `k` takes for each number, with its share of
/// scales and offsets.
double bitsPerWeight(const StorageFormat &format, int64_t k);

} // namespace sandwich

#endif // SANDWICH_QUANTIZATION_STORAGEFORMAT_H
