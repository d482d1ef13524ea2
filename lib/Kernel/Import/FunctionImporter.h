//===- FunctionImporter.h - The body of a function --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_IMPORT_FUNCTIONIMPORTER_H
#define SANDWICH_LIB_KERNEL_IMPORT_FUNCTIONIMPORTER_H

#include "ModuleImporter.h"

#include "clang/AST/ExprCXX.h"
#include "clang/AST/Stmt.h"
#include "clang/AST/StmtCXX.h"

#include <optional>

namespace sandwich::kernel {

/// Imports one function's body, statement by statement; lambdas are inlined.
class FunctionImporter {
public:
  FunctionImporter(ModuleImporter &module, const clang::FunctionDecl *function,
                   FuncOp op);

  mlir::LogicalResult import();

private:
  using Result = mlir::FailureOr<mlir::Value>;

  // Statements.
  mlir::LogicalResult importStatement(const clang::Stmt *statement);
  mlir::LogicalResult importCompound(const clang::CompoundStmt *compound);
  mlir::LogicalResult importDeclarations(const clang::DeclStmt *statement);
  mlir::LogicalResult importVariable(const clang::VarDecl *variable);
  mlir::LogicalResult importIf(const clang::IfStmt *statement);
  mlir::LogicalResult importFor(const clang::ForStmt *statement);
  mlir::LogicalResult importWhile(const clang::WhileStmt *statement);
  mlir::LogicalResult importDo(const clang::DoStmt *statement);
  mlir::LogicalResult importReturn(const clang::ReturnStmt *statement);
  mlir::LogicalResult importAssembly(const clang::AsmStmt *statement);
  mlir::LogicalResult importConstructor();
  /// A loop from its parts, of which any may be null.
  mlir::LogicalResult importLoop(clang::SourceLocation place,
                                 const clang::Expr *condition,
                                 const clang::Expr *step,
                                 const clang::Stmt *body);
  /// Fills `region`, which is empty, with what `fill` builds.
  mlir::LogicalResult
  importInto(mlir::Region &region,
             llvm::function_ref<mlir::LogicalResult()> fill);
  mlir::LogicalResult importCondition(mlir::Region &region,
                                      const clang::Expr *condition);

  // Expressions.
  /// The value of an expression that is a number, a vector or a pointer.
  Result value(const clang::Expr *expression);
  /// Where the object is that an expression names.
  Result place(const clang::Expr *expression);
  /// Whether an expression is other than zero.
  Result truth(const clang::Expr *expression);
  /// Evaluates for what it does alone.
  mlir::LogicalResult importEffect(const clang::Expr *expression);
  /// Writes the value of `initializer`, of any type, to what `to` points to.
  mlir::LogicalResult initialize(mlir::Value to,
                                 const clang::Expr *initializer);
  mlir::LogicalResult initializeList(mlir::Value to,
                                     const clang::InitListExpr *list);
  /// Calls a constructor for what `to` points to, or for each element of it.
  mlir::LogicalResult construct(mlir::Value to,
                                const clang::CXXConstructorDecl *constructor,
                                llvm::ArrayRef<const clang::Expr *> arguments,
                                clang::SourceLocation place);
  mlir::LogicalResult initializeZero(mlir::Value to, clang::QualType type,
                                     clang::SourceLocation place);

  Result castValue(const clang::CastExpr *cast);
  Result unaryValue(const clang::UnaryOperator *expression);
  Result binaryValue(const clang::BinaryOperator *expression);
  /// What was assigned; `to` is where, if it is asked for.
  Result assign(const clang::BinaryOperator *expression,
                mlir::Value *to = nullptr);
  Result assignCombined(const clang::CompoundAssignOperator *expression,
                        mlir::Value *to = nullptr);
  /// The value before or behind which a variable was counted up or down.
  Result count(const clang::UnaryOperator *expression,
               mlir::Value *to = nullptr);
  /// Where a structure is that `expression` gives, in a variable of its own
  /// unless it names one.
  Result objectPlace(const clang::Expr *expression);
  /// Whether a condition always holds, or never does, and nothing else.
  std::optional<bool> knownTruth(const clang::Expr *condition);
  /// Where a member is.
  Result memberPlace(mlir::Value structure, const clang::FieldDecl *member,
                     clang::SourceLocation place);
  Result logicalValue(const clang::BinaryOperator *expression);
  /// What `evaluate` gives, of `type`, for the side of `choice` that holds.
  Result conditional(const clang::ConditionalOperator *choice, mlir::Type type,
                     llvm::function_ref<Result(const clang::Expr *)> evaluate);
  /// The value of a known expression, and its name if it has one.
  std::optional<Result> constantValue(const clang::Expr *expression,
                                      llvm::StringRef name = {});
  Result constant(clang::SourceLocation place, mlir::Type type, int64_t number);
  Result offset(clang::SourceLocation place, mlir::Value pointer,
                mlir::Value index, bool backwards = false);
  Result combine(clang::SourceLocation place, clang::BinaryOperatorKind kind,
                 mlir::Value lhs, mlir::Value rhs);
  /// The place that an integer tells: a pointer, and bytes added to it.
  Result bytesFrom(const clang::Expr *expression);
  Result variablePlace(const clang::ValueDecl *variable,
                       const clang::Expr *expression);

  // Calls.
  /// The value of a call; null if it has none. `result` is where a structure
  /// that is returned goes.
  Result call(const clang::CallExpr *expression, mlir::Value result = {});
  Result callFunction(const clang::FunctionDecl *callee,
                      llvm::ArrayRef<const clang::Expr *> arguments,
                      llvm::function_ref<Result()> evaluateObject,
                      bool objectLast, mlir::Value result,
                      clang::SourceLocation place);
  Result callIntrinsic(const Intrinsic &intrinsic,
                       const clang::CallExpr *expression);
  Result callMath(Function function, const clang::CallExpr *expression);
  /// What compilers and libraries know; nothing if `name` is none of that.
  std::optional<Result> callKnown(llvm::StringRef name,
                                  const clang::CallExpr *expression);
  Result copyMemory(const clang::CallExpr *expression);
  /// The value of `std::max` or `std::min` of two numbers; nothing of all else.
  std::optional<Result> largerOrSmaller(const clang::CallExpr *expression);
  /// The value of `callee`, a lambda or a function that takes one, whose body
  /// is imported in the place of the call.
  Result inlineCall(const clang::FunctionDecl *callee,
                    llvm::ArrayRef<const clang::Expr *> arguments,
                    mlir::Value object, mlir::Value result,
                    clang::SourceLocation place);
  /// Makes the copies of a lambda, if `lambda` is one that is made there.
  mlir::LogicalResult makeLambda(const clang::Expr *lambda);
  /// An argument as the callee takes it: structures by a pointer to a copy.
  Result argument(const clang::Expr *expression);

  mlir::Value makeVariable(clang::SourceLocation place, llvm::StringRef name,
                           mlir::Type type);
  mlir::Value load(clang::SourceLocation place, mlir::Value pointer);
  void store(clang::SourceLocation place, mlir::Value value,
             mlir::Value pointer);
  /// `value` as `type`, which C has for both.
  mlir::Value convert(clang::SourceLocation place, mlir::Value value,
                      mlir::Type type);
  mlir::FailureOr<mlir::Type> typeOf(const clang::Expr *expression);

  /// The location of what is built next: what is commented on begins there.
  mlir::Location location(clang::SourceLocation place);
  /// "kernels must not have `what`".
  mlir::LogicalResult refuse(clang::SourceLocation place,
                             const llvm::Twine &what);

  ModuleImporter &module;
  const clang::FunctionDecl *function;
  FuncOp op;
  mlir::OpBuilder builder;
  /// Arguments that stay as they are.
  llvm::DenseMap<const clang::ValueDecl *, mlir::Value> values;
  llvm::DenseMap<const clang::ValueDecl *, mlir::Value> places;
  /// Of a member function.
  mlir::Value self;
  /// Where a structure that is returned goes.
  mlir::Value returned;
  /// While a call is inlined: its last statement, and what that gives.
  struct Inlined {
    const clang::Stmt *last;
    mlir::Value result;
    mlir::Value value;
  };
  std::optional<Inlined> inlined;
  llvm::SmallPtrSet<const clang::FunctionDecl *, 4> inlining;
  /// The object that lambdas refer to, by their types.
  llvm::DenseMap<const clang::CXXRecordDecl *, mlir::Value> objectsOfLambdas;
  /// By-copy captures, at the lambda's type.
  llvm::DenseMap<
      const clang::CXXRecordDecl *,
      llvm::SmallVector<std::pair<const clang::ValueDecl *, mlir::Value>>>
      captures;
  /// Elements of arrays that were set one by one.
  int64_t listed = 0;
  /// Calls that were inlined.
  int64_t inlinedCalls = 0;
  std::optional<int64_t> unroll;
  std::string comment;
};

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_IMPORT_FUNCTIONIMPORTER_H
