//===- ParseName.h - Names of values in attributes --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_PARSENAME_H
#define SANDWICH_DIALECT_LM_IR_PARSENAME_H

#include "mlir/IR/DialectImplementation.h"

#include <optional>
#include <string_view>

namespace sandwich {

/// Parses a keyword, the name of one of the values that `named` knows. The
/// error says that it is no `known`, which lists them.
template <typename Enum>
mlir::ParseResult parseName(mlir::AsmParser &parser, Enum &value,
                            std::optional<Enum> (*named)(std::string_view),
                            llvm::StringRef known) {
  llvm::SMLoc location = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return mlir::failure();
  std::optional<Enum> found = named(name);
  if (!found)
    return parser.emitError(location) << "'" << name << "' is no " << known;
  value = *found;
  return mlir::success();
}

} // namespace sandwich

#endif // SANDWICH_DIALECT_LM_IR_PARSENAME_H
