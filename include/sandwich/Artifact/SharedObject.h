//===- SharedObject.h - Machine code that may be loaded ---------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What compiled phases are made of is little: code, constants, and names for
/// both. So a shared object that asks the dynamic loader for more is none, and
/// is refused before the loader sees it. What is left of it runs no code until
/// one of its functions is called, and brings nothing else into the process.
///
/// The loader believes what a file says of itself. Everything that it would
/// follow to an address is therefore checked here first: the ELF-64 header,
/// the program headers, the dynamic section, symbols, their hash table and the
/// relocations, as the System V ABI and <elf.h> describe them. Sections are not
/// looked at, as the loader does not.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ARTIFACT_SHAREDOBJECT_H
#define SANDWICH_ARTIFACT_SHAREDOBJECT_H

#include "sandwich/Support/Result.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sandwich {

/// What a shared object that may be loaded exports. Refers to its bytes.
class SharedObject {
public:
  /// Checks `bytes`, a whole file. Errors do not name it: it is no shared
  /// object of this machine's architecture; it is damaged; it has constructors,
  /// destructors or indirect functions, needs a library or a symbol, relocates
  /// its code, or asks for memory that is both written and executed.
  static Result<SharedObject> read(std::span<const std::byte> bytes);

  /// Whether there is a function called `name`.
  bool hasFunction(std::string_view name) const;

  /// The bytes of the constant called `name`, or nothing.
  std::optional<std::span<const std::byte>>
  findConstant(std::string_view name) const;

private:
  struct Symbol {
    std::string_view name;
    bool isFunction;
    std::span<const std::byte> contents;
  };
  class Reader;

  const Symbol *find(std::string_view name) const;

  std::vector<Symbol> symbols;
};

} // namespace sandwich

#endif // SANDWICH_ARTIFACT_SHAREDOBJECT_H
