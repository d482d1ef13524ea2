//===- Safetensors.h - Reading safetensors files ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A safetensors file is eight bytes of little-endian header length, a JSON
/// header that gives each tensor's type, shape and byte range, and the data.
/// Files are mapped, never read into memory as a whole, and nothing in the
/// header is believed before it is checked against the file.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_SAFETENSORS_H
#define SANDWICH_FRONTEND_SAFETENSORS_H

#include "sandwich/Support/File.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Headers longer than this many bytes are refused, as the format demands.
inline constexpr uint64_t maxSafetensorsHeaderBytes = 100'000'000;

/// The element types the format knows. Only F32, F16 and BF16 can be used as
/// weights by themselves; the others can stand in a file whose tensors of that
/// type are not needed, or are numbers of `IntegerGroups`.
enum class ElementType : uint8_t {
  Bool,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64,
  C64,
};

/// The name of `type` in a header: "BF16".
std::string_view elementTypeName(ElementType type);

/// Size of one element in bits.
unsigned bitsPerElement(ElementType type);

/// Whether weights of this type can be compiled: F32, F16 or BF16.
bool isUsableElementType(ElementType type);

class IntegerGroups;
struct LowRankUpdate;

/// One tensor of a mapped file. The bytes live as long as the file does and
/// may lie at any address: a header's length need not be a multiple of four.
struct TensorView {
  ElementType elementType;
  /// Outermost dimension first; empty for a scalar. Not negative, and the
  /// product does not overflow.
  std::vector<int64_t> shape;
  /// Exactly the elements, in row-major order, little-endian.
  std::span<const std::byte> bytes;
  /// What is added to them when they are read; null: nothing. Of tensors with
  /// two dimensions.
  std::shared_ptr<const LowRankUpdate> update = nullptr;
  /// The elements of a matrix that the file has quantized, instead of what the
  /// type says of the bytes; null: it has none.
  std::shared_ptr<const IntegerGroups> integers = nullptr;
  /// Rows of a head, a multiple of two, of which the file has those of the
  /// first half and of the second one in turn; 0: rows lie in their order.
  int64_t alternatingRows = 0;

  /// The row of the file that has row `row`.
  int64_t storedRow(int64_t row) const {
    if (alternatingRows == 0)
      return row;
    const int64_t half = alternatingRows / 2, place = row % alternatingRows;
    return row - place + place % half * 2 + place / half;
  }
};

/// `scale` times the product of `left`, [rows, rank], and `right`, [rank,
/// columns], added to a matrix (LoRA: Hu et al., 2021).
struct LowRankUpdate {
  TensorView left, right;
  float scale;
};

/// Tensors by name.
using TensorTable = std::map<std::string, TensorView, std::less<>>;

/// Reads the header of the safetensors file whose contents are `file`; the
/// views point into `file`. Errors: a header longer than the file or than
/// `maxSafetensorsHeaderBytes`, JSON that `parseJson` refuses, unknown element
/// types, shapes that are negative, fractional or overflow, byte ranges that
/// are not those of the shape, and ranges that do not cover the data exactly.
Result<TensorTable> readTensorTable(std::span<const std::byte> file);

/// A mapped file and its tensors. Moves, never copies; tensors keep their
/// addresses when it moves.
class TensorFile {
public:
  /// Maps the safetensors file at `path`. Errors as `MappedFile::open` and
  /// `readTensorTable`, each beginning with `path`.
  static Result<TensorFile> openSafetensors(const std::string &path);

  /// Of a file that was read already; the views of `table` point into `file`.
  TensorFile(MappedFile file, TensorTable table)
      : file(std::move(file)), table(std::move(table)) {}

  const std::string &path() const { return file.path(); }
  const TensorTable &tensors() const { return table; }

  /// The tensor called `name`, or null.
  const TensorView *find(std::string_view name) const;

  void dropPages() const { file.dropPages(); }

private:
  MappedFile file;
  TensorTable table;
};

} // namespace sandwich

#endif // SANDWICH_FRONTEND_SAFETENSORS_H
