//===- IndexForm.h - Places in memory as sums -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_INDEXFORM_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_INDEXFORM_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace sandwich::widening {

/// A sum of values, each a number of times, and a constant.
struct IndexForm {
  llvm::MapVector<mlir::Value, int64_t> terms;
  int64_t constant = 0;

  /// How often `value` is in it.
  int64_t factorOf(mlir::Value value) const;
  /// Without what has `value`.
  IndexForm without(mlir::Value value) const;
  void add(const IndexForm &other, int64_t times);
  /// The constant by which `other` is larger; nothing if it is not known.
  std::optional<int64_t> distanceTo(const IndexForm &other) const;
};

/// The form of `value`, an index or an integer that is taken for one with its
/// sign. Arithmetic of integers is seen through where it cannot overflow.
IndexForm indexFormOf(mlir::Value value);

/// Whether `form` is a multiple of `number` whatever its values are.
bool isMultipleOf(const IndexForm &form, int64_t number);

/// The number that `value` is known to be.
std::optional<int64_t> constantOf(mlir::Value value);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_INDEXFORM_H
