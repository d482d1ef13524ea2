//===- KernelReader.h - One kernel from text to IR -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_TEXT_KERNELREADER_H
#define SANDWICH_LIB_KERNEL_TEXT_KERNELREADER_H

#include "Functions.h"

#include "sandwich/Kernel/Syntax.h"
#include "sandwich/Kernel/Text.h"

#include "llvm/ADT/StringSet.h"

namespace sandwich::kernel {

using block::ParameterAttr;
using block::ReductionKind;
using block::SizeAttr;
using syntax::Expression;
using syntax::Place;
using syntax::Statement;

/// What an expression gives: a value, or a number that has the type of whatever
/// it meets.
struct Operand {
  mlir::Value value;
  /// Of a number: what it is, and which of both members has it.
  NumberKind literal = NumberKind::Integer;
  int64_t integer = 0;
  double number = 0;

  static Operand ofInteger(int64_t integer) {
    return {{}, NumberKind::Integer, integer, static_cast<double>(integer)};
  }
  static Operand ofFloat(double number) {
    return {{}, NumberKind::Float, 0, number};
  }
  static Operand ofTruth(bool truth) {
    return {{}, NumberKind::Truth, truth ? 1 : 0, 0};
  }
};
using MaybeOperand = std::optional<Operand>;

/// Reads one kernel.
class KernelReader {
public:
  KernelReader(const syntax::Kernel &kernel, llvm::StringRef file,
               const TextOptions &options, mlir::OpBuilder &builder)
      : kernel(kernel), file(file), options(options), builder(builder),
        context(builder.getContext()) {}

  /// Adds it where the builder is.
  llvm::LogicalResult run();

private:
  //===--------------------------------------------------------------------===//
  // Errors and places
  //===--------------------------------------------------------------------===//

  mlir::Location location(Place place) {
    return mlir::FileLineColLoc::get(context, file, place.line, place.column);
  }
  mlir::InFlightDiagnostic error(Place place) {
    return emitError(location(place));
  }
  std::nullopt_t refuse(Place place, const llvm::Twine &what) {
    error(place) << what;
    return std::nullopt;
  }

  //===--------------------------------------------------------------------===//
  // Signatures
  //===--------------------------------------------------------------------===//

  std::optional<SizeAttr> readSize(const Expression &expression);
  std::optional<llvm::SmallVector<SizeAttr>>
  readSizes(llvm::ArrayRef<syntax::ExpressionPointer> expressions);
  std::optional<mlir::Type> readElementType(const Expression &expression);
  bool readChoices(const Expression &range,
                   llvm::SmallVectorImpl<int64_t> &choices);
  std::optional<ParameterAttr> readParameter(const syntax::Argument &argument);
  std::string typeFromArguments(llvm::StringRef name);
  std::optional<mlir::Type> readTypeChoice(const syntax::Argument &argument);
  llvm::LogicalResult readArguments();
  bool isSizeName(llvm::StringRef name) {
    return parameters.contains(name) || dimensions.contains(name);
  }
  bool checkName(Place place, llvm::StringRef name);

  //===--------------------------------------------------------------------===//
  // Statements
  //===--------------------------------------------------------------------===//

  llvm::LogicalResult readBody(const syntax::Body &body);
  llvm::LogicalResult readStatement(const Statement &statement);
  llvm::LogicalResult readAssignment(const Statement &statement);
  llvm::LogicalResult readPrefetch(const Expression &call);
  llvm::LogicalResult readAssert(const Statement &statement);
  llvm::LogicalResult assign(const Expression &target, Operand value);
  llvm::LogicalResult store(const Expression &target, Operand value);
  llvm::LogicalResult readFor(const Statement &statement);
  llvm::LogicalResult readIf(const Statement &statement);
  /// The names that `body` sets, in the order that it does so first.
  static void findSet(const syntax::Body &body,
                      llvm::SmallVector<llvm::StringRef> &names);

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  MaybeOperand read(const Expression &expression);
  MaybeOperand readName(const Expression &expression);
  MaybeOperand readUnary(const Expression &expression);
  MaybeOperand readBinary(const Expression &expression);
  MaybeOperand combine(Place place, llvm::StringRef word, Operand lhs,
                       Operand rhs);
  MaybeOperand remainder(Place place, Operand lhs, Operand rhs);
  MaybeOperand fold(Place place, llvm::StringRef word, Operand lhs,
                    Operand rhs);
  MaybeOperand readCall(const Expression &expression);
  MaybeOperand readElementwise(const Expression &call);
  MaybeOperand readConversion(const Expression &call, mlir::Type type);
  MaybeOperand readReduction(const Expression &call, ReductionKind kind);
  MaybeOperand readFull(const Expression &call);
  /// All operands of a call, none of which has a name.
  std::optional<llvm::SmallVector<Operand>>
  readOperands(const Expression &call);
  /// What `name=` says, which is False where it is not there; nothing, with an
  /// error emitted, if it is something else.
  std::optional<bool> truthOf(const Expression &call, llvm::StringRef name);
  MaybeOperand readScratch(const Expression &call);
  MaybeOperand readMatmul(const Expression &call);
  MaybeOperand readInterleave(const Expression &call);
  MaybeOperand readWhere(const Expression &call);
  MaybeOperand readBlockOf(const Expression &call);
  MaybeOperand readSubscript(const Expression &expression);
  MaybeOperand expand(Place place, mlir::Value block,
                      llvm::ArrayRef<unsigned> axes);
  struct Access {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> indices = {};
    /// Sizes of the ranges, and the axes of size 1 that the subscript adds.
    llvm::SmallVector<SizeAttr> sizes = {};
    llvm::SmallVector<unsigned> axes = {};
  };
  std::optional<Access> readAccess(const Expression &subscript);

  /// A value; a number becomes a constant of `type`, or, if that is null, of
  /// `f32`, `index` or `i1`.
  std::optional<mlir::Value> valueOf(Place place, Operand operand,
                                     mlir::Type type = {});
  /// A single `index`.
  std::optional<mlir::Value> indexOf(Place place, const Operand &operand);
  /// As numpy does with operands of one function: they get one type of numbers
  /// and the same sizes.
  std::optional<llvm::SmallVector<mlir::Value>>
  unify(Place place, llvm::ArrayRef<Operand> operands);
  mlir::Value broadcastTo(mlir::Location where, mlir::Value value,
                          llvm::ArrayRef<SizeAttr> sizes);
  /// Where the numbers of a range are, of all else itself.
  mlir::Value withoutRange(mlir::Location where, mlir::Value value);
  std::optional<const Expression *> keyword(const Expression &call,
                                            llvm::StringRef name);
  bool checkCall(const Expression &call, size_t fewest, size_t most,
                 llvm::ArrayRef<llvm::StringRef> keywords = {});
  static llvm::SmallVector<SizeAttr> sizesOrNone(mlir::Type type) {
    return block::isBlock(type) ? llvm::to_vector(block::sizesOf(type))
                                : llvm::SmallVector<SizeAttr>();
  }
  std::string describe(mlir::Type type);

  const syntax::Kernel &kernel;
  llvm::StringRef file;
  const TextOptions &options;
  mlir::OpBuilder &builder;
  mlir::MLIRContext *context;

  llvm::StringSet<> parameters, dimensions;
  llvm::StringMap<mlir::Type> types;
  llvm::StringMap<mlir::Value> variables;
  /// Names that were set where they do not hold any more.
  llvm::StringSet<> outOfReach;
  /// Of statements that made no operation.
  std::string comment;
};

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_TEXT_KERNELREADER_H
