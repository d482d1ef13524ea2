//===- IntegerGroups.h - Matrices that a file has as integers ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_INTEGERGROUPS_H
#define SANDWICH_FRONTEND_INTEGERGROUPS_H

#include "sandwich/Quantization/Quantizer.h"
#include "sandwich/Quantization/StorageFormat.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sandwich {

class Checkpoint;
struct TensorView;

/// The elements of a matrix that a file has as integers, or as fp8, in groups
/// along its rows, which share a scale. Immutable: several threads may read.
class IntegerGroups {
public:
  virtual ~IntegerGroups() = default;

  /// What the file calls this encoding: "Q4_K".
  virtual std::string_view name() const = 0;

  /// What holds the numbers and scales as they are. Scales that the file has
  /// in f16, one for each group, are f16 there, all others f32.
  const StorageFormat &format() const { return groupFormat; }

  /// Reads group number `group` of row `row`: its numbers as `format` stores
  /// them, as many as a group has, and their scale, which no one has checked
  /// yet.
  virtual GroupScale read(int64_t row, int64_t group,
                          std::span<uint8_t> numbers) const = 0;

  /// The scale of that group alone.
  virtual GroupScale readScale(int64_t row, int64_t group) const = 0;

  /// Whether a group's columns lie beside each other. Of others there are
  /// values alone: no one calls `read`.
  virtual bool hasColumnsInOrder() const { return true; }

  /// What elements of row `row` of a matrix of `columns` stand for, from column
  /// `column` on, as many as `values`.
  virtual void readValues(int64_t row, int64_t column, int64_t columns,
                          std::span<float> values) const;

protected:
  explicit IntegerGroups(const StorageFormat &format) : groupFormat(format) {}

private:
  StorageFormat groupFormat;
};

/// Whether `format` holds numbers of `stored` as they are, each with its own
/// scale, of rows of `columns`.
bool holds(const StorageFormat &format, const StorageFormat &stored,
           int64_t columns);

/// The narrowest format that holds numbers of both, of rows of `columns`;
/// nothing if one has integers and the other has none.
std::optional<StorageFormat> join(const StorageFormat &one,
                                  const StorageFormat &other, int64_t columns);

/// What `tensor` is stored as in an artifact where nobody asks for something
/// else: nothing for one that is not quantized, or whose columns are in an
/// order of their own. It is the file's own format, but that scales of integers
/// which the file has computed from two numbers are rounded to f16 if all are
/// in its normal range: by less than 2^-11 of each.
std::optional<StorageFormat> naturalFormat(const TensorView &tensor);

/// What holds the numbers that `checkpoint` has of the tensor called `source`,
/// "{}" in the place of the layer, in so many layers; nothing if some of it are
/// not quantized, or no format holds all.
std::optional<StorageFormat> naturalFormat(const Checkpoint &checkpoint,
                                           const std::string &source,
                                           int64_t layers);

/// An error if `checkpoint` has some of the tensor called `source`, "{}" in the
/// place of the layer, in so many layers, quantized with columns in an order of
/// their own, so that its numbers cannot be taken as they are.
Status checkColumnOrder(const Checkpoint &checkpoint, const std::string &source,
                        int64_t layers);

/// Whether `readGroup` takes numbers of `tensor` for `format`.
bool hasGroupsOf(const TensorView &tensor, const StorageFormat &format);

/// Reads the elements of row `row` of a matrix from column `column` on, a
/// group of `format`, which are as many as `numbers`: the file's own numbers
/// where their scale, rounded to the format's, changes by less than 2^-11 of
/// it; else the nearest to what they stand for. Errors, which call the tensor
/// `name`: a scale, a number or a value that is not finite, or is too large for
/// `format`.
Result<GroupScale> readGroup(std::string_view name, const TensorView &tensor,
                             const StorageFormat &format, int64_t row,
                             int64_t column, std::span<uint8_t> numbers);

/// Reads all elements of a matrix as what they are after they were stored as
/// `format`, whose groups divide rows: as `readGroup` or, of floats,
/// `quantizeGroup` gives them. Errors: theirs.
Status readRounded(std::string_view name, const TensorView &tensor,
                   const StorageFormat &format, std::span<float> values);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_INTEGERGROUPS_H
