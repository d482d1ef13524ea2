//===- PrintAttribute.h - Types and attributes as text ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_COMPILER_PRINTATTRIBUTE_H
#define SANDWICH_LIB_COMPILER_PRINTATTRIBUTE_H

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace sandwich {

/// `value`, a type or an attribute, as IR shows it.
template <typename TypeOrAttribute> std::string print(TypeOrAttribute value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

} // namespace sandwich

#endif // SANDWICH_LIB_COMPILER_PRINTATTRIBUTE_H
