//===- CppFunction.h - A function as C++ ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_EXPORT_CPPFUNCTION_H
#define SANDWICH_LIB_KERNEL_EXPORT_CPPFUNCTION_H

#include "CppTypes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <optional>
#include <vector>

namespace sandwich::kernel {

/// Writes one function. Values become expressions where they are used, as long
/// as nothing that they read is written between; else they get a name.
class CppFunction {
public:
  CppFunction(FuncOp function, CppTypes &types)
      : function(function), types(types) {}

  mlir::FailureOr<std::string> write();
  std::string head();

private:
  /// How much an expression binds.
  enum class Binding { Primary, Unary, Binary, Choice };
  struct Expression {
    std::string text;
    Binding binding = Binding::Primary;
    /// Of a pointer, what it points to.
    std::string object = {};
    Binding objectBinding = Binding::Primary;
  };
  struct Statement {
    std::string text;
    /// It could stand in the head of a loop.
    bool isExpression = false;
  };
  using Statements = std::vector<Statement>;
  /// What is read or written: a variable that is reached by its name alone, or,
  /// null, all other memory.
  using Places = llvm::SmallPtrSet<mlir::Operation *, 4>;
  /// Something that is not written yet, and what it reads.
  struct Pending {
    Expression expression;
    Places reads;
  };

  mlir::LogicalResult writeBlock(mlir::Block &block, Statements &statements);
  mlir::LogicalResult writeOperation(mlir::Operation *op,
                                     Statements &statements);
  mlir::LogicalResult writeExpression(mlir::Operation *op,
                                      Statements &statements);
  mlir::LogicalResult writeStore(StoreOp store, Statements &statements);
  mlir::LogicalResult writeFor(ForOp loop, Statements &statements);
  mlir::LogicalResult writeIf(IfOp branch, Statements &statements);
  mlir::LogicalResult writeConditional(ConditionalOp choice,
                                       Statements &statements);
  void writeVariable(VariableOp variable, Statements &statements);
  mlir::FailureOr<Expression> expressionOf(mlir::Operation *op);
  mlir::FailureOr<Expression> castExpression(CastOp cast);
  std::string callText(mlir::StringRef name, mlir::OperandRange operands);

  /// The block's statements, indented and in braces.
  mlir::FailureOr<std::string> braced(mlir::Block &block);
  /// What the block of a condition or of a side of a choice yields, and its
  /// statements.
  mlir::FailureOr<Expression> yielded(mlir::Block &block,
                                      Statements &statements);
  /// The same as one expression, whatever it takes.
  mlir::FailureOr<Expression> asExpression(mlir::Block &block);
  void emit(Statements &statements, std::string text, bool isExpression);

  /// Names what is not written yet and reads one of `written`, if it is used
  /// behind `before`.
  void nameReaders(const Places &written, mlir::Operation *before,
                   Statements &statements);
  void nameValue(mlir::Value value, Statements &statements);
  /// What `op`, with all inside of it, writes to, and what it reads.
  Places writtenBy(mlir::Operation *op);
  Places readBy(mlir::Operation *op);
  /// The variable that `pointer` points into, if that is reached by its name
  /// alone.
  mlir::Operation *rootOf(mlir::Value pointer);
  bool escapes(mlir::Value pointer);

  Expression get(mlir::Value value);
  std::string text(mlir::Value value, Binding binding);
  std::string object(mlir::Value pointer, Binding binding = Binding::Unary);
  std::string makeName(mlir::StringRef wanted);

  FuncOp function;
  CppTypes &types;
  llvm::DenseMap<mlir::Value, Pending> pending;
  /// Those in `pending` that read something, in the order of the text.
  llvm::SmallVector<mlir::Value> readers;
  llvm::DenseMap<mlir::Value, Expression> named;
  llvm::DenseMap<mlir::Operation *, bool> escaping;
  /// Stores that are where a variable is declared.
  llvm::DenseSet<mlir::Operation *> declaring;
  /// What stands first in the head of the next loop.
  std::string loopInit, loopVariable;
  llvm::StringSet<> names;
  /// Those of what was met since the last statement.
  std::string comments;
};

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_EXPORT_CPPFUNCTION_H
