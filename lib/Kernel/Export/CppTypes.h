//===- CppTypes.h - Types and numbers as C++ has them -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_KERNEL_EXPORT_CPPTYPES_H
#define SANDWICH_LIB_KERNEL_EXPORT_CPPTYPES_H

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace sandwich::kernel {

/// `text` as a name of C++ that is none of its words.
std::string cppName(llvm::StringRef text);

/// The types of one file.
class CppTypes {
public:
  /// `const float *`, `__m512i`, `block_q8_0`, `Array<float, 4>`.
  std::string name(mlir::Type type);
  /// `float x[4]`, `const float *x`.
  std::string declare(mlir::Type type, llvm::StringRef name);
  /// Names functions and tables, and all structures in `module`.
  void nameAll(mlir::ModuleOp module);
  /// The name of a function or of a table.
  std::string symbol(llvm::StringRef name) const;
  /// Whether something that is not of a function has this name.
  bool isTaken(llvm::StringRef name) const { return fileNames.contains(name); }
  /// The definitions of all structures that were named so far.
  std::string definitions() const;

private:
  std::string structureName(StructureType type);
  std::string takeName(llvm::StringRef wanted);

  llvm::MapVector<mlir::Type, std::string> structures;
  /// Those of functions, tables and structures.
  llvm::StringSet<> fileNames;
  llvm::StringMap<std::string> symbols;
  std::string text;
};

/// A number, or a vector of such, as C++ writes it.
std::string cppNumber(mlir::Attribute value, mlir::Type type, CppTypes &types);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_EXPORT_CPPTYPES_H
