//===- TileIndependence.h - Results that no tile size changes ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILEINDEPENDENCE_H
#define SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILEINDEPENDENCE_H

#include "TileLoops.h"

namespace sandwich::widening {

/// Whether what `tile` computes is, but for rounding, the same however many
/// steps a turn has. What turns hand on, by variables or in memory, may be:
///
/// - the largest or smallest of what all steps have;
/// - sums of it;
/// - sums of exp(x - m), be they multiplied with anything, where m is the
/// largest
///   one so far, which each turn multiplies with exp(before - m) before it adds
///   to them: the online softmax (Milakov and Gimelshein, 2018).
///
/// Each of these is what it is of all steps so far, and nothing in between goes
/// anywhere else. A quantization of groups, in contrast, has a result for each
/// turn, and is none. `steps` are the indices of loops over the steps of a
/// turn.
bool isIndependentOfSize(const TileLoop &tile,
                         llvm::ArrayRef<mlir::Value> steps);

} // namespace sandwich::widening

#endif // SANDWICH_LIB_CONVERSION_VECTORTOBLOCK_TILEINDEPENDENCE_H
