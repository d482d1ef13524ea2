//===- Gguf.cpp - Reading GGUF files --------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Gguf.h"

#include "Describe.h"
#include "GgufBlocks.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

using namespace sandwich;

static constexpr std::string_view magic = "GGUF";
static constexpr uint64_t maxDimensions = 4;
/// Real files have a few dozen; they are looked up one after another.
static constexpr uint64_t maxKeys = 1 << 12;
/// What files without `general.alignment` are aligned to.
static constexpr uint64_t defaultAlignment = 32;
static constexpr const char *alignmentKey = "general.alignment";

namespace {

/// Takes one value after another from the bytes of a file.
class Reader {
public:
  explicit Reader(std::span<const std::byte> file) : file(file) {}

  uint64_t offset() const { return next; }
  uint64_t left() const { return file.size() - next; }

  Result<std::span<const std::byte>> bytes(uint64_t count) {
    if (count > left())
      return makeError("ends at byte ", file.size(), ", where ", count - left(),
                       " more of ", count, " are expected");
    auto taken = file.subspan(next, count);
    next += count;
    return taken;
  }

  template <typename Number> Result<Number> number() {
    SANDWICH_ASSIGN_OR_RETURN(auto taken, bytes(sizeof(Number)));
    Number value;
    std::memcpy(&value, taken.data(), sizeof(value));
    return value;
  }

  Result<std::string_view> string() {
    SANDWICH_ASSIGN_OR_RETURN(uint64_t length, number<uint64_t>());
    if (length > left())
      return makeError("has a string of ", length, " bytes at byte ", next,
                       ", but only ", left(), " follow");
    SANDWICH_ASSIGN_OR_RETURN(auto taken, bytes(length));
    return std::string_view(reinterpret_cast<const char *>(taken.data()),
                            taken.size());
  }

private:
  std::span<const std::byte> file;
  uint64_t next = 0;
};

/// A tensor's place in the file.
struct Range {
  uint64_t begin, end;
  const std::string *name;
};

/// A tensor whose place is known, but not where the data begin.
struct PlacedTensor {
  std::string name;
  std::vector<int64_t> shape;
  GgufTensorType type;
  uint64_t offset = 0, bytes = 0;
};

} // namespace

bool sandwich::isGguf(std::span<const std::byte> file) {
  return file.size() >= magic.size() &&
         std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

/// Bytes of a value of `type`; 0 for those that have their own length, nothing
/// for what is no type.
static std::optional<uint64_t> sizeOf(GgufValueType type) {
  switch (type) {
  case GgufValueType::Uint8:
  case GgufValueType::Int8:
  case GgufValueType::Bool:
    return 1;
  case GgufValueType::Uint16:
  case GgufValueType::Int16:
    return 2;
  case GgufValueType::Uint32:
  case GgufValueType::Int32:
  case GgufValueType::Float32:
    return 4;
  case GgufValueType::Uint64:
  case GgufValueType::Int64:
  case GgufValueType::Float64:
    return 8;
  case GgufValueType::String:
  case GgufValueType::Array:
    return 0;
  }
  return std::nullopt;
}

/// Calls `use` with the next number of `type`.
template <typename Use>
static Status readNumber(Reader &reader, GgufValueType type, Use use) {
  auto take = [&]<typename Number>(Number) -> Status {
    SANDWICH_ASSIGN_OR_RETURN(Number value, reader.number<Number>());
    use(value);
    return {};
  };
  switch (type) {
  case GgufValueType::Uint8:
    return take(uint8_t());
  case GgufValueType::Int8:
    return take(int8_t());
  case GgufValueType::Uint16:
    return take(uint16_t());
  case GgufValueType::Int16:
    return take(int16_t());
  case GgufValueType::Uint32:
    return take(uint32_t());
  case GgufValueType::Int32:
    return take(int32_t());
  case GgufValueType::Float32:
    return take(float());
  case GgufValueType::Uint64:
    return take(uint64_t());
  case GgufValueType::Int64:
    return take(int64_t());
  case GgufValueType::Float64:
    return take(double());
  default:
    return makeError("is no number");
  }
}

Result<std::vector<std::string_view>> GgufArray::strings() const {
  if (type != GgufValueType::String)
    return makeError("is a list of other values; one of strings is expected");
  Reader reader(bytes);
  std::vector<std::string_view> strings(count);
  for (std::string_view &string : strings) {
    SANDWICH_ASSIGN_OR_RETURN(string, reader.string());
  }
  return strings;
}

Result<std::vector<double>> GgufArray::numbers() const {
  if (type == GgufValueType::String || type == GgufValueType::Bool)
    return makeError("is a list of other values; one of numbers is expected");
  Reader reader(bytes);
  std::vector<double> numbers(count);
  for (double &number : numbers)
    SANDWICH_RETURN_IF_ERROR(readNumber(reader, type, [&](auto value) {
      number = static_cast<double>(value);
    }));
  return numbers;
}

static Result<GgufValueType> readType(Reader &reader) {
  SANDWICH_ASSIGN_OR_RETURN(uint32_t number, reader.number<uint32_t>());
  const auto type = static_cast<GgufValueType>(number);
  if (!sizeOf(type))
    return makeError("has the type ", number, ", which there is not");
  return type;
}

static Result<GgufArray> readArray(Reader &reader,
                                   std::span<const std::byte> file) {
  GgufArray array;
  SANDWICH_ASSIGN_OR_RETURN(array.type, readType(reader));
  SANDWICH_ASSIGN_OR_RETURN(array.count, reader.number<uint64_t>());
  if (array.type == GgufValueType::Array)
    return makeError("is a list of lists, which is not supported");
  // A string has at least its length.
  const uint64_t least = std::max<uint64_t>(
      *sizeOf(array.type),
      array.type == GgufValueType::String ? sizeof(uint64_t) : 1);
  if (array.count > reader.left() / least)
    return makeError("is a list of ", array.count, " elements, but only ",
                     reader.left(), " bytes follow");
  const uint64_t begin = reader.offset();
  if (array.type == GgufValueType::String)
    for (uint64_t i = 0; i < array.count; ++i) {
      auto string = reader.string();
      if (!string)
        return string.error().inContext("element " + std::to_string(i));
    }
  else
    SANDWICH_RETURN_IF_ERROR(reader.bytes(array.count * least));
  array.bytes = file.subspan(begin, reader.offset() - begin);
  return array;
}

/// Reads the value of `key`.
static Status readValue(Reader &reader, std::span<const std::byte> file,
                        const std::string &key, GgufContents &contents) {
  if (contents.values.contains(key) || contents.arrays.contains(key))
    return makeError("is there twice");
  SANDWICH_ASSIGN_OR_RETURN(GgufValueType type, readType(reader));
  switch (type) {
  case GgufValueType::Array: {
    SANDWICH_ASSIGN_OR_RETURN(contents.arrays[key], readArray(reader, file));
    return {};
  }
  case GgufValueType::String: {
    SANDWICH_ASSIGN_OR_RETURN(std::string_view text, reader.string());
    contents.values[key] = std::string(text);
    return {};
  }
  case GgufValueType::Bool: {
    SANDWICH_ASSIGN_OR_RETURN(uint8_t value, reader.number<uint8_t>());
    if (value > 1)
      return makeError("is the truth value ", int(value),
                       "; 0 or 1 is expected");
    contents.values[key] = value == 1;
    return {};
  }
  default:
    return readNumber(reader, type,
                      [&](auto value) { contents.values[key] = value; });
  }
}

static Result<uint64_t> findAlignment(const Json &values) {
  auto field = values.find(alignmentKey);
  if (field == values.end())
    return defaultAlignment;
  if (!field->is_number_unsigned() ||
      !std::has_single_bit(field->get<uint64_t>()))
    return makeError(alignmentKey, " is ", describe(*field),
                     "; a power of two is expected");
  return field->get<uint64_t>();
}

/// Reads a tensor's shape, outermost dimension first.
static Result<std::vector<int64_t>> readShape(Reader &reader) {
  SANDWICH_ASSIGN_OR_RETURN(uint32_t dimensions, reader.number<uint32_t>());
  if (dimensions > maxDimensions)
    return makeError("has ", dimensions, " dimensions; at most ", maxDimensions,
                     " are accepted");
  std::vector<int64_t> shape(dimensions);
  for (int64_t &size : shape) {
    SANDWICH_ASSIGN_OR_RETURN(uint64_t number, reader.number<uint64_t>());
    if (number > uint64_t(std::numeric_limits<int64_t>::max()))
      return makeError("has a dimension of ", number,
                       "; at most 2^63 - 1 is "
                       "accepted");
    size = static_cast<int64_t>(number);
  }
  std::ranges::reverse(shape);
  return shape;
}

/// The bytes of a tensor; nothing if they overflow.
static std::optional<uint64_t> countBytes(std::span<const int64_t> shape,
                                          const GgufTensorType &type) {
  uint64_t blocks = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<uint64_t>(shape[i]);
    auto product = checkedMultiply<uint64_t>(
        blocks, i + 1 == shape.size() ? size / type.elements : size);
    if (!product)
      return std::nullopt;
    blocks = *product;
  }
  // Elements are counted in signed numbers, and there are more of them.
  if (!checkedMultiply<int64_t>(static_cast<int64_t>(blocks),
                                static_cast<int64_t>(type.elements)))
    return std::nullopt;
  return checkedMultiply<uint64_t>(blocks, type.bytes);
}

static Result<PlacedTensor> readPlace(Reader &reader, std::string name) {
  PlacedTensor tensor;
  tensor.name = std::move(name);
  SANDWICH_ASSIGN_OR_RETURN(tensor.shape, readShape(reader));
  SANDWICH_ASSIGN_OR_RETURN(uint32_t number, reader.number<uint32_t>());
  SANDWICH_ASSIGN_OR_RETURN(tensor.offset, reader.number<uint64_t>());
  auto type = ggufTensorType(number);
  if (!type)
    return makeError("type is ", describeGgufTensorType(number),
                     ", which is not supported (", listGgufTensorTypes(),
                     " are)");
  tensor.type = *type;
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (columns % static_cast<int64_t>(type->elements) != 0)
    return makeError("shape ", describeShape(tensor.shape), " of ", type->name,
                     " has rows that are no multiple of ", type->elements,
                     " elements");
  auto bytes = countBytes(tensor.shape, *type);
  if (!bytes)
    return makeError("shape ", describeShape(tensor.shape),
                     " is too large: its size overflows");
  tensor.bytes = *bytes;
  return tensor;
}

/// The view of a tensor in `data`.
static Result<TensorView> place(const PlacedTensor &tensor, uint64_t alignment,
                                std::span<const std::byte> data) {
  if (tensor.offset % alignment != 0)
    return makeError("offset ", tensor.offset, " is no multiple of ",
                     alignmentKey, " ", alignment);
  if (tensor.offset > data.size() || tensor.bytes > data.size() - tensor.offset)
    return makeError("offset ", tensor.offset, " and ", tensor.bytes,
                     " bytes, of shape ", describeShape(tensor.shape), " of ",
                     tensor.type.name, ", reach beyond the file, which holds ",
                     data.size(), " bytes of data");
  TensorView view{tensor.type.elementType, tensor.shape,
                  data.subspan(tensor.offset, tensor.bytes)};
  if (!tensor.type.blocks)
    return view;
  if (tensor.shape.size() != 2 || tensor.bytes == 0)
    return makeError("shape ", describeShape(tensor.shape), " of ",
                     tensor.type.name,
                     " is that of no matrix, which blocks are supported for");
  view.integers =
      createGgufBlocks(tensor.type, tensor.shape.back(), view.bytes);
  return view;
}

static Status checkOverlaps(std::vector<Range> &ranges) {
  std::ranges::sort(ranges, {}, [](const Range &range) {
    return std::pair(range.begin, range.end);
  });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      return makeError("tensor ", quote(*ranges[i].name), ": offset ",
                       ranges[i].begin, " lies within ",
                       quote(*ranges[i - 1].name), ", bytes ",
                       ranges[i - 1].begin, " to ", ranges[i - 1].end);
  return {};
}

/// Reads the keys and their values.
static Status readValues(Reader &reader, std::span<const std::byte> file,
                         uint64_t count, GgufContents &contents) {
  if (count > maxKeys)
    return makeError("has ", count, " keys; at most ", maxKeys,
                     " are accepted");
  contents.values = Json::object();
  for (uint64_t i = 0; i < count; ++i) {
    auto key = reader.string();
    if (!key)
      return key.error().inContext("key " + std::to_string(i));
    const std::string name(*key);
    if (Status status = readValue(reader, file, name, contents); !status)
      return status.error().inContext(quote(name));
  }
  return {};
}

Result<GgufContents> sandwich::readGguf(std::span<const std::byte> file) {
  if (!isGguf(file))
    return makeError("is no GGUF file: it does not begin with ", magic);
  Reader reader(file);
  SANDWICH_RETURN_IF_ERROR(reader.bytes(magic.size()));
  SANDWICH_ASSIGN_OR_RETURN(uint32_t version, reader.number<uint32_t>());
  if (version != 2 && version != 3)
    return makeError(
        "is of version ", version,
        ((version & 0xffff) == 0 ? ", of a big-endian machine" : ""),
        "; 2 and 3 are supported");
  SANDWICH_ASSIGN_OR_RETURN(uint64_t tensorCount, reader.number<uint64_t>());
  SANDWICH_ASSIGN_OR_RETURN(uint64_t valueCount, reader.number<uint64_t>());
  GgufContents contents;
  SANDWICH_RETURN_IF_ERROR(readValues(reader, file, valueCount, contents));
  SANDWICH_ASSIGN_OR_RETURN(uint64_t alignment, findAlignment(contents.values));

  std::vector<PlacedTensor> places;
  for (uint64_t i = 0; i < tensorCount; ++i) {
    auto name = reader.string();
    if (!name)
      return name.error().inContext("tensor " + std::to_string(i));
    auto tensor = readPlace(reader, std::string(*name));
    if (!tensor)
      return tensor.error().inContext("tensor " + quote(*name));
    places.push_back(*std::move(tensor));
  }
  std::span<const std::byte> data;
  if (auto begin = checkedAlign(reader.offset(), alignment);
      begin && *begin <= file.size())
    data = file.subspan(*begin);
  std::vector<Range> ranges;
  for (const PlacedTensor &tensor : places) {
    auto view = place(tensor, alignment, data);
    if (!view)
      return view.error().inContext("tensor " + quote(tensor.name));
    auto [entry, isNew] =
        contents.tensors.emplace(tensor.name, *std::move(view));
    if (!isNew)
      return makeError("tensor ", quote(tensor.name), " is there twice");
    ranges.push_back(
        {tensor.offset, tensor.offset + tensor.bytes, &entry->first});
  }
  SANDWICH_RETURN_IF_ERROR(checkOverlaps(ranges));
  return contents;
}
