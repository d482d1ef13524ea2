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
  /// The definitions of all structures that were named so far.
  std::string definitions() const;

private:
  std::string structureName(StructureType type);

  llvm::MapVector<mlir::Type, std::string> structures;
  llvm::StringSet<> structureNames;
  std::string text;
};

/// A number, or a vector of such, as C++ writes it.
std::string cppNumber(mlir::Attribute value, mlir::Type type, CppTypes &types);

} // namespace sandwich::kernel

#endif // SANDWICH_LIB_KERNEL_EXPORT_CPPTYPES_H
