//===- KernelWriter.h - One kernel from IR to text --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Values become variables: those that have a name keep it, a loop's carried
/// value is one variable in all of its turns, and what is used once, right
/// where it is computed, stands in the expression that uses it. Two values
/// that have one name while both are needed get two: the kernel is written
/// again until no name stands for another value than was meant.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_TEXT_KERNELWRITER_H
#define SANDWICH_LIB_KERNEL_TEXT_KERNELWRITER_H

#include "Functions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"

namespace sandwich::kernel {

/// How an expression is written, and how it binds.
struct Text {
  std::string text;
  unsigned precedence = postfixPrecedence;
};

class KernelWriter {
public:
  explicit KernelWriter(mlir::func::FuncOp kernel) : kernel(kernel) {}

  /// What it looks like; fails, with errors emitted, where there are no words
  /// for it.
  mlir::FailureOr<std::string> run();

private:
  /// Something computed that the next statement uses.
  struct Pending {
    mlir::Value value;
    Text text;
    /// What a splat or a repetition at its end repeats; else the value.
    mlir::Value computed;
    /// Without the splat or repetition that it ends with, if it does.
    std::optional<Text> bare = std::nullopt;
  };
  /// Where names were set.
  struct Scope {
    /// Names that stood for something else outside, or must not be set here.
    llvm::StringSet<> foreign;
    /// Names that are set for who comes behind.
    llvm::StringSet<> results;
    /// All that were set in it, and in which order they were so first.
    llvm::StringSet<> set;
    llvm::SmallVector<std::string> order;
  };

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  /// The value of a loop is the variable that its turns carry.
  static mlir::Value variableOf(mlir::Value value);
  static llvm::StringRef hintOf(mlir::Value value, unsigned depth = 0);
  std::string nameFor(mlir::Value value);
  /// The text is written again, with `value` named, or named by itself.
  void nameNext(mlir::Value value, llvm::StringRef hint = "");
  void conflict(mlir::Value value, mlir::Value holder);
  void set(const std::string &name, mlir::Value value);
  /// Before `name` is set: who needs what it stood for gets another one.
  void keep(const std::string &name);
  /// A name that is nobody's, which begins with `base`.
  std::string makeName(llvm::StringRef base);
  std::string use(mlir::Value value);

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  void line(const llvm::Twine &text);
  void collectComment(mlir::Operation *op);
  llvm::LogicalResult writeBlock(mlir::Block &block);
  llvm::LogicalResult write(mlir::Operation *op);
  llvm::LogicalResult writeFor(mlir::scf::ForOp loop);
  llvm::LogicalResult writeIf(mlir::scf::IfOp branch);
  llvm::LogicalResult writeBody(mlir::Block &block,
                                llvm::ArrayRef<std::string> names);
  void orderNames(mlir::Operation *op, llvm::ArrayRef<std::string> names,
                  size_t bodyBegin);
  /// Sets the variables `names`; with `inOrder` none of them before.
  void copy(llvm::ArrayRef<std::string> names, mlir::ValueRange values,
            bool inOrder = false);
  std::string writeHeading();

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  /// Whether it is written wherever it is used.
  bool isRepeated(mlir::Operation *op);
  bool isNamed(mlir::Value value) {
    return named.contains(value) || !hintOf(value).empty();
  }
  std::optional<Text> textOf(mlir::Operation *op);
  /// The operands of one operation, in the order that they are written in;
  /// those in `bare` without splats and repetitions.
  llvm::SmallVector<Text> take(mlir::ValueRange values,
                               llvm::ArrayRef<mlir::Value> bare = {});
  bool isPending(mlir::Value value) {
    return llvm::any_of(
        pending, [&](const Pending &each) { return each.value == value; });
  }
  /// The operation that uses it, if one does, and once; ranges of loops over
  /// blocks do not count, as these have their end from the loop.
  static mlir::Operation *findOnlyUser(mlir::Value value);
  Text takeOne(mlir::Value value) { return take(value)[0]; }
  Text textOfRepeated(mlir::Operation *op);
  Text textOfConstant(mlir::arith::ConstantOp constant, bool hasType);
  /// Those of an elementwise operation, whose splats and repetitions are
  /// understood from the others where they can be, as a range's positions are
  /// if it takes them. `before`, a condition, is written before them, if it is
  /// there.
  llvm::SmallVector<Text> takeUnified(mlir::ValueRange operands,
                                      llvm::ArrayRef<block::SizeAttr> sizes,
                                      bool isOperator, bool takesPositions,
                                      mlir::Value before = {});
  /// How a splat, a repetition or positions of `inner` are written.
  std::string textOfRepetition(mlir::Operation *op, llvm::StringRef inner);
  std::string within(const Text &text, unsigned precedence) {
    return text.precedence < precedence ? "(" + text.text + ")" : text.text;
  }
  std::string sizesText(llvm::ArrayRef<block::SizeAttr> sizes) {
    return llvm::join(
        llvm::map_range(sizes, [](block::SizeAttr size) { return size.str(); }),
        ", ");
  }
  std::optional<Text> textOfElementwise(mlir::Operation *op,
                                        const ElementwiseWord &word);
  std::optional<Text> textOfConversion(mlir::Operation *op);
  Text textOfAccess(mlir::Value memory, mlir::ValueRange indices);
  std::optional<std::string> stepOf(mlir::scf::ForOp loop);

  mlir::func::FuncOp kernel;
  /// Kept from one attempt to the next: values that get a name though they
  /// have none, with what it should be, and those whose name is their own.
  llvm::DenseMap<mlir::Value, std::string> named;
  llvm::DenseSet<mlir::Value> unique;
  /// Branches whose results are set at their ends, in order.
  llvm::DenseSet<mlir::Operation *> ordered;
  /// Of a loop, needed behind where its name is set to the next one.
  llvm::DenseSet<mlir::Value> kept;
  bool again = false;

  std::string out;
  unsigned depth = 1;
  std::string comments;
  llvm::SmallVector<Pending> pending;
  llvm::DenseMap<mlir::Value, std::string> names, otherNames;
  llvm::StringSet<> taken;
  llvm::StringMap<mlir::Value> holders;
  llvm::SmallVector<Scope> scopes;
};

/// The range that a loop over blocks goes by; null if it is none.
block::RangeOp findBlocks(mlir::scf::ForOp loop);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_TEXT_KERNELWRITER_H
