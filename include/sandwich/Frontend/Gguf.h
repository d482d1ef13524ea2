//===- Gguf.h - Reading GGUF files ------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A GGUF file (ggml's `docs/gguf.md`) is a header of four counts, keys with
/// typed values, the name, shape, type and place of each tensor, and the data.
/// It is little-endian and mapped, never read into memory as a whole, and
/// nothing in it is believed before it is checked against the file.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_GGUF_H
#define SANDWICH_FRONTEND_GGUF_H

#include "sandwich/Frontend/Safetensors.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// The types of values, numbered as in files.
enum class GgufValueType : uint32_t {
  Uint8,
  Int8,
  Uint16,
  Int16,
  Uint32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  Uint64,
  Int64,
  Float64,
};

/// A list in the metadata, whose elements all lie in the file.
struct GgufArray {
  GgufValueType type = GgufValueType::Uint8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;

  /// The elements of a list of strings, as they are in the file: of any bytes.
  /// Errors: it is of something else.
  Result<std::vector<std::string_view>> strings() const;
  /// Those of a list of numbers. Errors: it is of something else.
  Result<std::vector<double>> numbers() const;
};

/// What a GGUF file says.
struct GgufContents {
  /// An object of all that is no list, by key. Strings are of any bytes.
  Json values;
  std::map<std::string, GgufArray, std::less<>> arrays;
  /// Shapes have the outermost dimension first, as everywhere here and other
  /// than in the file. Matrices of integers have `integers`.
  TensorTable tensors;
};

/// Reads `file`, which the result points into. Errors: anything that
/// `isGgufFile` refuses; versions but 2 and 3; counts, lengths and places that
/// the file has no bytes for; types of values that there are not, and lists of
/// lists; keys and tensors that are there twice; alignments but powers of two;
/// shapes that overflow; tensors of types that cannot be compiled, whose rows
/// are no whole blocks, or that lie on others.
Result<GgufContents> readGguf(std::span<const std::byte> file);

/// Whether `file` begins as GGUF files do.
bool isGguf(std::span<const std::byte> file);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_GGUF_H
