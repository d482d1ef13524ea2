//===- Functions.h - The words of the language ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which word stands for which operation, for who reads and who writes text.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_TEXT_FUNCTIONS_H
#define SANDWICH_LIB_KERNEL_TEXT_FUNCTIONS_H

#include "sandwich/Dialect/Block/IR/Block.h"

#include "mlir/IR/Builders.h"

namespace sandwich::kernel {

/// Numbers that operators and functions are for.
enum class NumberKind { Float, Integer, Truth };
NumberKind kindOf(mlir::Type element);

/// Which floats there is code for: that of functions is made of polynomials in
/// f32, and calls no library.
enum class FloatTypes { All, Single, SingleOrDouble };

/// A function or an operator that is one operation, from the elements of one
/// or more blocks to another's.
struct ElementwiseWord {
  llvm::StringLiteral word;
  llvm::StringLiteral operation;
  NumberKind kind;
  unsigned operands;
  /// Of comparisons, the predicate; -1 of all else.
  int predicate = -1;
  /// How an operator binds, from the weakest on; 0 of functions.
  unsigned precedence = 0;
  /// Of floats, the types that there is code for.
  FloatTypes types = FloatTypes::All;

  bool isFor(mlir::Type element) const;
};

/// How unary operators and what stands behind a value bind.
inline constexpr unsigned notPrecedence = 3;
inline constexpr unsigned comparisonPrecedence = 4;
inline constexpr unsigned unaryPrecedence = 11;
inline constexpr unsigned postfixPrecedence = 12;

/// All of them.
llvm::ArrayRef<ElementwiseWord> elementwiseWords();
/// The one that `word` is for such numbers; null if there is none.
const ElementwiseWord *findWord(llvm::StringRef word, NumberKind kind,
                                unsigned operands);
/// The one that `op` is; null if there is none.
const ElementwiseWord *findWord(mlir::Operation *op);

/// `f32`, `index` and so on: null if it is no type of numbers.
mlir::Type typeNamed(llvm::StringRef name, mlir::MLIRContext *context);
/// And back.
std::string nameOf(mlir::Type number);

/// `sum`, `prod`, `max` and `min`; nothing if it is none of them.
std::optional<block::ReductionKind> reductionNamed(llvm::StringRef name);
llvm::StringRef nameOf(block::ReductionKind kind);

/// Whether the text of an assertion is one that is written as it is.
bool isMessage(llvm::StringRef text);

/// Whether it is a word of the language that no variable may have as its name.
bool isReserved(llvm::StringRef name);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_TEXT_FUNCTIONS_H
