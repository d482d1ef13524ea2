//===- ModuleImporter.h - What all functions of a file share ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_IMPORT_MODULEIMPORTER_H
#define SANDWICH_LIB_KERNEL_IMPORT_MODULEIMPORTER_H

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <functional>

namespace sandwich::kernel {

/// The functions, types and tables that are imported from one file.
class ModuleImporter {
public:
  /// What clang found wrong in a function, emitted if it did.
  using FailureFinder =
      std::function<mlir::LogicalResult(const clang::FunctionDecl *)>;

  ModuleImporter(clang::ASTContext &ast, mlir::ModuleOp module,
                 FailureFinder findFailure)
      : ast(ast), module(module), builder(module.getContext()),
        findFailure(std::move(findFailure)) {}

  /// The function that `declaration`, which has a body, became. A structure
  /// that it returns is written to where its first argument tells.
  mlir::FailureOr<FuncOp>
  importFunction(const clang::FunctionDecl *declaration);
  /// Gives `definition` a name that no other has.
  llvm::StringRef nameFunction(const clang::FunctionDecl *definition);
  /// The table that `variable`, const and known, became.
  mlir::FailureOr<GlobalOp> importTable(const clang::VarDecl *variable,
                                        clang::SourceLocation user);

  /// The type of C's `type`, for what is at `place`.
  mlir::FailureOr<mlir::Type> importType(clang::QualType type,
                                         clang::SourceLocation place);
  mlir::FailureOr<PointerType> pointerTo(clang::QualType type,
                                         clang::SourceLocation place);

  mlir::Location location(clang::SourceLocation place);
  mlir::InFlightDiagnostic emitError(clang::SourceLocation place);

  clang::ASTContext &ast;

private:
  mlir::FailureOr<mlir::Type> importRecord(const clang::RecordDecl *record,
                                           clang::SourceLocation place);
  std::string nameOf(const clang::FunctionDecl *declaration);

  mlir::ModuleOp module;
  mlir::Builder builder;
  FailureFinder findFailure;
  llvm::DenseMap<const clang::FunctionDecl *, std::string> functionNames;
  llvm::StringSet<> names;
  llvm::DenseMap<const clang::FunctionDecl *, FuncOp> functions;
  llvm::DenseMap<const clang::VarDecl *, GlobalOp> tables;
  /// Those that are being imported, each called by the one before it.
  llvm::SetVector<const clang::FunctionDecl *> callers;
  llvm::SetVector<const clang::RecordDecl *> outerRecords;
  llvm::DenseMap<const clang::RecordDecl *, mlir::Type> records;
};

/// Whether nothing is passed for an argument of `type`: it has no members, or
/// is a lambda.
bool isWithoutObject(clang::QualType type);

/// The text of a comment without what makes it one.
std::string plainText(llvm::StringRef comment);

/// The name of a member, also of one that has none in C.
std::string nameOf(const clang::FieldDecl *member);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_IMPORT_MODULEIMPORTER_H
