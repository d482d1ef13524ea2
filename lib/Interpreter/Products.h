//===- Products.h - Matrices multiplied in f64 ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_INTERPRETER_PRODUCTS_H
#define SANDWICH_LIB_INTERPRETER_PRODUCTS_H

#include "sandwich/Interpreter/Interpreter.h"

#include <span>

namespace sandwich {

/// Adds to `sums`, [rows, n], the product of `input`, [rows, k], and `weight`,
/// [n, k]. Each sum gets its products one after another, in the order of k,
/// each rounded before it is added: the same bits on every CPU and whatever the
/// number of threads.
void addProduct(const Matrix &input, std::span<const float> weight,
                Matrix &sums);

} // namespace sandwich

#endif // SANDWICH_LIB_INTERPRETER_PRODUCTS_H
