//===- Safetensors.cpp - Reading safetensors files ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Safetensors.h"

#include "Describe.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <array>
#include <limits>

using namespace sandwich;

static constexpr uint64_t lengthBytes = 8;

namespace {

struct ElementTypeFacts {
  std::string_view name;
  unsigned bits;
};

/// A tensor's place in the data section.
struct Range {
  uint64_t begin;
  uint64_t end;
  const std::string *name;
};

} // namespace

/// In the order of `ElementType`.
static constexpr std::array<ElementTypeFacts, 22> elementTypes = {{
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
    {"U32", 32},    {"F32", 32},        {"F64", 64},        {"I64", 64},
    {"U64", 64},    {"C64", 64},
}};
static_assert(elementTypes[size_t(ElementType::C64)].name == "C64");
static_assert(elementTypes[size_t(ElementType::F16)].name == "F16");

std::string_view sandwich::elementTypeName(ElementType type) {
  return elementTypes[static_cast<size_t>(type)].name;
}

unsigned sandwich::bitsPerElement(ElementType type) {
  return elementTypes[static_cast<size_t>(type)].bits;
}

bool sandwich::isUsableElementType(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F16 ||
         type == ElementType::BF16;
}

static Result<ElementType> readElementType(const Json &info) {
  auto field = info.find("dtype");
  if (field == info.end())
    return Error{"dtype is missing"};
  if (field->is_string()) {
    const auto &name = field->get_ref<const std::string &>();
    auto known = std::ranges::find(elementTypes, name, &ElementTypeFacts::name);
    if (known != elementTypes.end())
      return static_cast<ElementType>(known - elementTypes.begin());
  }
  return makeError("dtype is ", describe(*field),
                   ", which is no element type of the format");
}

static Result<std::vector<int64_t>> readShape(const Json &info) {
  auto field = info.find("shape");
  if (field == info.end())
    return Error{"shape is missing"};
  if (!field->is_array())
    return makeError("shape is ", describe(*field),
                     "; a list of dimensions is expected");
  std::vector<int64_t> shape;
  for (const Json &dimension : *field) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<uint64_t>() >
            uint64_t(std::numeric_limits<int64_t>::max()))
      return makeError("shape ", describe(*field), " has the dimension ",
                       describe(dimension),
                       "; whole numbers from 0 to 2^63 - 1 are expected");
    shape.push_back(dimension.get<int64_t>());
  }
  return shape;
}

/// The number of elements, or nothing if it overflows.
static std::optional<uint64_t> countElements(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t dimension : shape) {
    auto product = checkedMultiply<uint64_t>(count, dimension);
    if (!product)
      return std::nullopt;
    count = *product;
  }
  return count;
}

static Result<Range> readRange(const Json &info, uint64_t dataBytes) {
  auto field = info.find("data_offsets");
  if (field == info.end())
    return Error{"data_offsets is missing"};
  if (!field->is_array() || field->size() != 2 ||
      !(*field)[0].is_number_unsigned() || !(*field)[1].is_number_unsigned())
    return makeError("data_offsets is ", describe(*field),
                     "; two whole numbers that are not negative are expected");
  Range range{(*field)[0].get<uint64_t>(), (*field)[1].get<uint64_t>(),
              nullptr};
  if (range.begin > range.end)
    return makeError("data_offsets ", describe(*field),
                     " end before they begin");
  if (range.end > dataBytes)
    return makeError("data_offsets ", describe(*field),
                     " reach beyond the file, which holds ", dataBytes,
                     " bytes of data");
  return range;
}

static Result<TensorView>
readTensor(const Json &info, std::span<const std::byte> data, Range &range) {
  if (!info.is_object())
    return makeError("is ", describe(info),
                     "; an object with dtype, shape and data_offsets is "
                     "expected");
  SANDWICH_ASSIGN_OR_RETURN(ElementType type, readElementType(info));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<int64_t> shape, readShape(info));
  SANDWICH_ASSIGN_OR_RETURN(range, readRange(info, data.size()));

  auto elements = countElements(shape);
  auto bits = elements
                  ? checkedMultiply<uint64_t>(*elements, bitsPerElement(type))
                  : std::nullopt;
  if (!bits)
    return makeError("shape ", describe(info["shape"]),
                     " is too large: its size overflows");
  if (*bits % 8 != 0)
    return makeError("shape ", describe(info["shape"]), " of ",
                     elementTypeName(type),
                     " does not fill a whole number of bytes");
  uint64_t length = range.end - range.begin;
  if (length != *bits / 8)
    return makeError("data_offsets ", describe(info["data_offsets"]), " cover ",
                     length, " bytes, but shape ", describe(info["shape"]),
                     " of ", elementTypeName(type), " takes ", *bits / 8);
  return TensorView{type, std::move(shape), data.subspan(range.begin, length)};
}

static Status checkMetadata(const Json &metadata) {
  if (!metadata.is_object())
    return makeError("__metadata__ is ", describe(metadata),
                     "; an object of strings is expected");
  for (const auto &[key, value] : metadata.items())
    if (!value.is_string())
      return makeError("__metadata__: ", quote(key), " is ", describe(value),
                       "; a string is expected");
  return {};
}

/// The ranges must cover the data from its first byte to its last, each byte
/// once.
static Status checkCoverage(std::vector<Range> &ranges, uint64_t dataBytes) {
  std::ranges::sort(ranges, [](const Range &a, const Range &b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  const Range *previous = nullptr;
  for (const Range &range : ranges) {
    if (range.begin < covered)
      return makeError("tensor ", quote(*range.name), ": data_offsets [",
                       range.begin, ", ", range.end, "] overlap those of ",
                       quote(*previous->name), ", [", previous->begin, ", ",
                       previous->end, "]");
    if (range.begin > covered)
      return makeError("tensor ", quote(*range.name), ": data_offsets [",
                       range.begin, ", ", range.end, "] leave a gap: bytes ",
                       covered, " to ", range.begin, " belong to no tensor");
    covered = range.end;
    previous = &range;
  }
  if (covered != dataBytes)
    return makeError("the last ", dataBytes - covered, " of the ", dataBytes,
                     " bytes of data belong to no tensor");
  return {};
}

Result<TensorTable> sandwich::readTensorTable(std::span<const std::byte> file) {
  if (file.size() < lengthBytes)
    return makeError("is ", file.size(),
                     " bytes long; a safetensors file "
                     "begins with ",
                     lengthBytes, " bytes of header length");
  uint64_t headerBytes = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    headerBytes |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (headerBytes > file.size() - lengthBytes)
    return makeError("the header length is ", headerBytes, ", but only ",
                     file.size() - lengthBytes, " bytes follow it");
  if (headerBytes > maxSafetensorsHeaderBytes)
    return makeError("the header length is ", headerBytes, "; at most ",
                     maxSafetensorsHeaderBytes, " is accepted");

  auto headerText = file.subspan(lengthBytes, headerBytes);
  auto data = file.subspan(lengthBytes + headerBytes);
  auto header = parseJson(
      {reinterpret_cast<const char *>(headerText.data()), headerText.size()});
  if (!header)
    return header.error().inContext("header");
  if (!header->is_object())
    return makeError("header: is ", describe(*header),
                     "; an object of tensors is expected");

  TensorTable table;
  std::vector<Range> ranges;
  for (const auto &[name, info] : header->items()) {
    if (name == "__metadata__") {
      SANDWICH_RETURN_IF_ERROR(checkMetadata(info));
      continue;
    }
    Range range;
    auto tensor = readTensor(info, data, range);
    if (!tensor)
      return tensor.error().inContext("tensor " + quote(name));
    auto entry = table.emplace(name, *std::move(tensor)).first;
    range.name = &entry->first;
    ranges.push_back(range);
  }
  SANDWICH_RETURN_IF_ERROR(checkCoverage(ranges, data.size()));
  return table;
}

Result<TensorFile> TensorFile::openSafetensors(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  auto table = readTensorTable(file.bytes());
  if (!table)
    return table.error().inContext(path);
  return TensorFile(std::move(file), *std::move(table));
}

const TensorView *TensorFile::find(std::string_view name) const {
  auto entry = table.find(name);
  return entry == table.end() ? nullptr : &entry->second;
}
