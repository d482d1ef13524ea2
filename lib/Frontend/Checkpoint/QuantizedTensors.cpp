//===- QuantizedTensors.cpp - Matrices in several tensors -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizedTensors.h"

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"
#include "sandwich/Support/CheckedMath.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace sandwich;

// What the configuration says. What is left to the tensors' shapes: the bits of
// integers and the sizes of groups but for those of blocks.

static NumberFormat integersOf(int64_t bits) {
  return bits == 4 ? NumberFormat::Int4 : NumberFormat::Int8;
}

/// Reads the bits of integers.
static Result<NumberFormat> readBits(const Fields &fields, const char *name) {
  SANDWICH_ASSIGN_OR_RETURN(int64_t bits, fields.integer(name, 1, 32));
  if (bits != 4 && bits != 8)
    return fields.refuse(name, "; 4 and 8 are supported");
  return integersOf(bits);
}

/// Reads the rows and columns of blocks that share a scale.
static Result<std::array<int64_t, 2>> readBlock(const Fields &fields,
                                                const char *name) {
  const Json &block = *fields.find(name);
  constexpr int64_t mostRows = int64_t(1) << 31;
  auto isSize = [](const Json &size, int64_t unit, int64_t most) {
    return size.is_number_integer() && size > 0 && size <= most &&
           size.get<int64_t>() % unit == 0;
  };
  if (!block.is_array() || block.size() != 2 ||
      !isSize(block[0], 1, mostRows) ||
      !isSize(block[1], smallestGroup, largestGroup))
    return fields.refuse(name,
                         "; numbers of rows and of columns, a multiple "
                         "of ",
                         smallestGroup, " up to ", largestGroup,
                         ", are expected");
  return std::array{block[0].get<int64_t>(), block[1].get<int64_t>()};
}

static Status checkGptq(const Fields &fields) {
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "is_marlin_format", false));
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "pack_dtype", "int32"));
  const Json *dynamic = fields.find("dynamic");
  if (dynamic && !dynamic->empty())
    return fields.refuse("dynamic", ", which is not supported");
  return {};
}

static Status checkAwq(const Fields &fields) {
  const Json *version = fields.find("version");
  if (version && *version != "gemm" && *version != "GEMM")
    return fields.refuse("version", "; only \"gemm\" is supported");
  return {};
}

/// Adds to `config` what `scheme` says of tensors of a model of
/// `compressed-tensors` in `format`. Errors: they are no numbers that are there
/// for all of a run.
static Status readWeightScheme(const Json &scheme, const std::string &prefix,
                               const Json &format, QuantizationConfig &config) {
  const Fields fields(scheme, prefix);
  const Json *type = fields.find("type");
  const bool areFloats =
      format == "float-quantized" ||
      (format == "naive-quantized" && type && *type == "float");
  SANDWICH_RETURN_IF_ERROR(
      checkFixed(fields, "type", areFloats ? "float" : "int"));
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "dynamic", false));
  const Json *strategy = fields.find("strategy");
  const bool isBlock = areFloats && strategy && *strategy == "block";
  if (strategy && *strategy != "group" && *strategy != "channel" &&
      *strategy != "tensor" && !isBlock)
    return fields.refuse("strategy",
                         areFloats ? "; \"group\", \"channel\", \"tensor\" and "
                                     "\"block\" are supported"
                                   : "; \"group\", \"channel\" and \"tensor\" "
                                     "are supported");
  if (!areFloats) {
    SANDWICH_ASSIGN_OR_RETURN(const NumberFormat number,
                              readBits(fields, "num_bits"));
    config.numbers.push_back(number);
    return {};
  }
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "num_bits", 8));
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "symmetric", true));
  config.numbers.push_back(NumberFormat::FP8);
  if (!isBlock)
    return {};
  if (!fields.find("block_structure"))
    return fields.missing("block_structure");
  SANDWICH_ASSIGN_OR_RETURN(const auto block,
                            readBlock(fields, "block_structure"));
  if (config.block && *config.block != block)
    return fields.refuse("block_structure",
                         ", and other modules have blocks of ",
                         (*config.block)[0], " x ", (*config.block)[1]);
  config.block = block;
  return {};
}

/// Inputs that are rounded to eight bits as they come are so here, too, or not
/// rounded at all; rounding by scales of the checkpoint is another arithmetic.
static Status checkInputScheme(const Json &scheme, const std::string &prefix) {
  const Fields fields(scheme, prefix);
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "type", "int"));
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "num_bits", 8));
  const Json *dynamic = fields.find("dynamic");
  if (!dynamic || *dynamic != true)
    return makeError(prefix, "dynamic is ",
                     dynamic ? describe(*dynamic) : "missing",
                     "; only true is supported");
  return {};
}

/// Adds what each group of modules has to `config`.
static Status readCompressedTensors(const Fields &fields,
                                    QuantizationConfig &config) {
  const Json *format = fields.find("format");
  if (!format)
    return fields.missing("format");
  if (*format != "pack-quantized" && *format != "int-quantized" &&
      *format != "float-quantized" && *format != "naive-quantized")
    return fields.refuse("format",
                         ", which is not supported (\"pack-quantized\", "
                         "\"int-quantized\", \"float-quantized\" and "
                         "\"naive-quantized\" are)");
  for (const char *name : {"kv_cache_scheme", "transform_config"})
    if (const Json *field = fields.find(name); field && !field->empty())
      return fields.refuse(name, ", which is not supported");
  if (const Json *sparsity = fields.find("sparsity_config");
      sparsity && sparsity->is_object() && sparsity->contains("format") &&
      (*sparsity)["format"] != "dense")
    return fields.refuse("sparsity_config", "; only dense is supported");
  const Json *groups = fields.find("config_groups");
  if (!groups)
    return fields.missing("config_groups");
  if (!groups->is_object())
    return fields.refuse("config_groups", "; an object is expected");
  for (const auto &[name, group] : groups->items()) {
    const std::string path = "quantization_config.config_groups." + name;
    if (!group.is_object())
      return makeError(path, " is ", describe(group),
                       "; an object is expected");
    const std::string prefix = path + ".";
    const Fields parts(group, prefix);
    const Json *weights = parts.find("weights");
    if (!weights || !weights->is_object())
      return makeError(prefix, "weights is ",
                       weights ? describe(*weights) : "missing",
                       "; an object is expected");
    SANDWICH_RETURN_IF_ERROR(
        readWeightScheme(*weights, prefix + "weights.", *format, config));
    // What is multiplied with floats is not rounded, which is more exact than
    // any way of rounding it.
    const Json *inputs = parts.find("input_activations");
    if (inputs && config.numbers.back() != NumberFormat::FP8)
      SANDWICH_RETURN_IF_ERROR(
          checkInputScheme(*inputs, prefix + "input_activations."));
    SANDWICH_RETURN_IF_ERROR(checkFixed(parts, "output_activations", nullptr));
  }
  return {};
}

/// Adds to `config` what transformers and vLLM have to say of FP8. Of
/// `activation_scheme` as of `input_activations` above.
static Status readFP8(const Fields &fields, QuantizationConfig &config) {
  SANDWICH_RETURN_IF_ERROR(checkFixed(fields, "fmt", "e4m3"));
  config.numbers = {NumberFormat::FP8};
  if (!fields.find("weight_block_size"))
    return {};
  SANDWICH_ASSIGN_OR_RETURN(config.block,
                            readBlock(fields, "weight_block_size"));
  return {};
}

static Result<QuantizationMethod> readGptqMethod(const Fields &fields) {
  const Json *format = fields.find("checkpoint_format");
  if (!format || *format == "gptq")
    return QuantizationMethod::Gptq;
  if (*format == "gptq_v2")
    return QuantizationMethod::GptqV2;
  return fields.refuse("checkpoint_format",
                       ", which is not supported (\"gptq\" and \"gptq_v2\" "
                       "are)");
}

Result<std::optional<QuantizationConfig>>
sandwich::readQuantization(const Fields &fields) {
  const Json *object = fields.find("quantization_config");
  if (!object)
    return std::optional<QuantizationConfig>();
  if (!object->is_object())
    return fields.refuse("quantization_config", "; an object is expected");
  const Fields inner(*object, "quantization_config.");
  const Json *method = inner.find("quant_method");
  if (!method)
    return inner.missing("quant_method");
  QuantizationConfig config;
  if (*method == "compressed-tensors") {
    config.method = QuantizationMethod::CompressedTensors;
    SANDWICH_RETURN_IF_ERROR(readCompressedTensors(inner, config));
    return std::optional(std::move(config));
  }
  if (*method == "fp8") {
    config.method = QuantizationMethod::FP8;
    SANDWICH_RETURN_IF_ERROR(readFP8(inner, config));
    return std::optional(std::move(config));
  }
  if (*method == "gptq") {
    SANDWICH_RETURN_IF_ERROR(checkGptq(inner));
    SANDWICH_ASSIGN_OR_RETURN(config.method, readGptqMethod(inner));
  } else if (*method == "awq") {
    SANDWICH_RETURN_IF_ERROR(checkAwq(inner));
    config.method = QuantizationMethod::Awq;
  } else {
    return inner.refuse("quant_method",
                        ", which is not supported (\"gptq\", \"awq\", "
                        "\"compressed-tensors\" and \"fp8\" are)");
  }
  SANDWICH_ASSIGN_OR_RETURN(const NumberFormat number, readBits(inner, "bits"));
  config.numbers = {number};
  return std::optional(std::move(config));
}

// What the tensors say.

static constexpr std::array<std::string_view, 4> gptqSuffixes = {
    ".qweight", ".qzeros", ".scales", ".g_idx"};
static constexpr std::array<std::string_view, 3> awqSuffixes = {
    ".qweight", ".qzeros", ".scales"};
static constexpr std::array<std::string_view, 7> compressedSuffixes = {
    ".weight_scale", ".weight_packed", ".weight",     ".weight_zero_point",
    ".weight_shape", ".weight_g_idx",  ".input_scale"};
static constexpr std::array<std::string_view, 3> tensorSuffixes = {
    ".weight_scale", ".weight", ".input_scale"};
static constexpr std::array<std::string_view, 3> blockSuffixes = {
    ".weight_scale_inv", ".weight", ".input_scale"};

std::span<const std::string_view>
sandwich::quantizedSuffixes(const QuantizationConfig &config) {
  switch (config.method) {
  case QuantizationMethod::Gptq:
  case QuantizationMethod::GptqV2:
    return gptqSuffixes;
  case QuantizationMethod::Awq:
    return awqSuffixes;
  case QuantizationMethod::CompressedTensors:
    return compressedSuffixes;
  case QuantizationMethod::FP8:
    return config.block ? std::span(blockSuffixes) : std::span(tensorSuffixes);
  }
  __builtin_unreachable();
}

namespace {

/// A matrix of numbers that lie several in a word, the first in the low bits;
/// those that share a word are neighbours in a column, or in a row.
struct PackedNumbers {
  std::span<const std::byte> bytes;
  int64_t bits = 0;
  /// Words of a row of the tensor.
  int64_t wordsPerRow = 0;
  int64_t wordBytes = sizeof(uint32_t);
  bool sharesColumn = false;
  /// AWQ's order, in which a word has the even places before the odd ones.
  bool alternates = false;
  /// What numbers are to be changed by to count from 0: the sign of bytes.
  uint8_t flipped = 0;

  int64_t perWord() const { return wordBytes * 8 / bits; }

  uint8_t at(int64_t row, int64_t column) const {
    const int64_t shared = sharesColumn ? row : column;
    const int64_t word = sharesColumn ? row / perWord() * wordsPerRow + column
                                      : row * wordsPerRow + column / perWord();
    int64_t place = shared % perWord();
    if (alternates)
      place = place / 2 + place % 2 * (perWord() / 2);
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + word * wordBytes, wordBytes);
    return static_cast<uint8_t>(value >> place * bits & ((1u << bits) - 1)) ^
           flipped;
  }
};

/// Where the tensors have what a matrix `[N, K]` is made of, for all methods.
struct Parts {
  QuantizationMethod method = QuantizationMethod::Gptq;
  int64_t rows = 0, columns = 0, groups = 0;
  /// [K, N] for GPTQ and AWQ, else [N, K].
  PackedNumbers numbers;
  bool areFloats = false;
  /// [G, N], or [N, G]; no bytes: all are the middle of the range.
  PackedNumbers zeros;
  /// The same, but for one for all, and those of blocks.
  TensorView scales;
  int64_t rowsOfScale = 1, groupsOfScale = 1;
  /// Of each column; nothing: that of column k is k / size.
  std::vector<int32_t> groupOfColumn;

  bool hasRowsFirst() const {
    return method == QuantizationMethod::CompressedTensors ||
           method == QuantizationMethod::FP8;
  }
  NumberFormat format() const {
    return areFloats ? NumberFormat::FP8 : integersOf(numbers.bits);
  }
  uint8_t number(int64_t row, int64_t column) const {
    return hasRowsFirst() ? numbers.at(row, column) : numbers.at(column, row);
  }
  int middle() const { return 1 << (numbers.bits - 1); }
  int zero(int64_t row, int64_t group) const {
    if (zeros.bytes.empty())
      return middle();
    // The first files of GPTQ have zeros less one.
    const int less = method == QuantizationMethod::Gptq ? 1 : 0;
    return less +
           (hasRowsFirst() ? zeros.at(row, group) : zeros.at(group, row));
  }
  float scale(int64_t row, int64_t group) const {
    const int64_t index =
        elementCount(scales) == 1 ? 0
        : hasRowsFirst() ? row / rowsOfScale * divideUp(groups, groupsOfScale) +
                               group / groupsOfScale
                         : group * rows + row;
    float value = 0;
    readElements(scales, index, {&value, 1});
    return value;
  }
};

class QuantizedMatrix : public IntegerGroups {
public:
  QuantizedMatrix(const StorageFormat &format, Parts parts)
      : IntegerGroups(format), parts(std::move(parts)) {}

  std::string_view name() const override {
    return sandwich::name(format().number);
  }

  GroupScale read(int64_t row, int64_t group,
                  std::span<uint8_t> numbers) const override {
    int64_t column = group * static_cast<int64_t>(numbers.size());
    for (uint8_t &number : numbers)
      number = parts.number(row, column++);
    return readScale(row, group);
  }

  GroupScale readScale(int64_t row, int64_t group) const override {
    const float scale = parts.scale(row, group);
    if (format().offset == GroupOffset::None)
      return {scale, 0};
    return {scale, -scale * static_cast<float>(parts.zero(row, group))};
  }

  bool hasColumnsInOrder() const override {
    return parts.groupOfColumn.empty();
  }

  void readValues(int64_t row, int64_t column, int64_t columns,
                  std::span<float> values) const override {
    if (hasColumnsInOrder())
      return IntegerGroups::readValues(row, column, columns, values);
    std::vector<GroupScale> scales(parts.groups);
    for (int64_t group = 0; group < parts.groups; ++group)
      scales[group] = readScale(row, group);
    for (float &value : values) {
      const uint8_t number = parts.number(row, column);
      dequantizeGroup(format(), scales[parts.groupOfColumn[column]],
                      {&number, 1}, {&value, 1});
      ++column;
    }
  }

private:
  Parts parts;
};

} // namespace

/// The tensor of the suffix, of one of `types` and of `shape`.
static Result<const TensorView *>
findPart(const std::function<const TensorView *(std::string_view)> &find,
         std::string_view suffix, std::initializer_list<ElementType> types,
         const std::vector<int64_t> &shape) {
  const TensorView *tensor = find(suffix);
  if (!tensor)
    return makeError("has no ", suffix);
  if (std::ranges::find(types, tensor->elementType) == types.end())
    return makeError(suffix, " has the dtype ",
                     elementTypeName(tensor->elementType),
                     ", which is not supported there");
  if (!shape.empty() && tensor->shape != shape)
    return makeError(suffix, " has the shape ", describeShape(tensor->shape),
                     ", but ", describeShape(shape), " is expected");
  return tensor;
}

static constexpr auto words = {ElementType::I32, ElementType::U32};
static constexpr auto floats = {ElementType::F16, ElementType::BF16,
                                ElementType::F32};

/// The bits of numbers of which `count` take `size` words.
static Result<int64_t> findBits(std::string_view suffix, int64_t size,
                                int64_t count) {
  for (int64_t bits : {4, 8})
    if (count % (32 / bits) == 0 && size == count / (32 / bits))
      return bits;
  return makeError(suffix, " has ", size, " words for ", count,
                   " numbers; 4 or 8 bits each are supported");
}

/// The group of each column; nothing if that of column k is k / size. Errors:
/// another type or shape, groups that are not there.
static Result<std::vector<int32_t>> readOrder(const TensorView &order,
                                              std::string_view suffix,
                                              int64_t columns, int64_t groups) {
  if (order.elementType != ElementType::I32 ||
      order.shape != std::vector<int64_t>{columns})
    return makeError(
        suffix, " has the dtype ", elementTypeName(order.elementType),
        " and the shape ", describeShape(order.shape), "; I32 and ",
        describeShape(std::vector<int64_t>{columns}), " are expected");
  std::vector<int32_t> groupOf(columns);
  std::memcpy(groupOf.data(), order.bytes.data(), order.bytes.size());
  bool isInOrder = true;
  for (int64_t column = 0; column < columns; ++column) {
    const int32_t group = groupOf[column];
    if (group < 0 || group >= groups)
      return makeError(suffix, " has column ", column, " in group ", group,
                       ", of ", groups, " that there are");
    isInOrder &= group == column / (columns / groups);
  }
  if (isInOrder)
    groupOf.clear();
  return groupOf;
}

using FindPart = std::function<const TensorView *(std::string_view)>;

/// The tensors of GPTQ and AWQ: [K, N], and [G, N].
static Status findColumnMajor(Parts &parts, const FindPart &find) {
  const bool isAwq = parts.method == QuantizationMethod::Awq;
  SANDWICH_ASSIGN_OR_RETURN(const TensorView *numbers,
                            findPart(find, ".qweight", words, {}));
  if (numbers->shape.size() != 2)
    return makeError(".qweight has the shape ", describeShape(numbers->shape),
                     "; two dimensions are expected");
  const int64_t packed = isAwq ? 1 : 0;
  SANDWICH_ASSIGN_OR_RETURN(const int64_t bits,
                            findBits(".qweight", numbers->shape[packed],
                                     isAwq ? parts.rows : parts.columns));
  const int64_t kept = isAwq ? parts.columns : parts.rows;
  if (numbers->shape[1 - packed] != kept)
    return makeError(".qweight has the shape ", describeShape(numbers->shape),
                     ", but ", kept, " is expected in dimension ", 1 - packed);
  parts.numbers = {.bytes = numbers->bytes,
                   .bits = bits,
                   .wordsPerRow = numbers->shape[1],
                   .sharesColumn = !isAwq,
                   .alternates = isAwq};
  SANDWICH_ASSIGN_OR_RETURN(const TensorView *scales,
                            findPart(find, ".scales", floats, {}));
  if (scales->shape.size() != 2 || scales->shape[1] != parts.rows)
    return makeError(".scales has the shape ", describeShape(scales->shape),
                     "; [groups, ", parts.rows, "] is expected");
  parts.scales = *scales;
  parts.groups = scales->shape[0];
  if (parts.rows % (32 / bits) != 0)
    return makeError("has ", parts.rows, " rows, no multiple of ", 32 / bits);
  SANDWICH_ASSIGN_OR_RETURN(const TensorView *zeros,
                            findPart(find, ".qzeros", words,
                                     {parts.groups, parts.rows / (32 / bits)}));
  parts.zeros = {.bytes = zeros->bytes,
                 .bits = bits,
                 .wordsPerRow = zeros->shape[1],
                 .alternates = isAwq};
  return {};
}

/// The scales of [N, K]: one for all, or [N, G], or one for each of the blocks
/// of `config`.
static Status findScales(Parts &parts, const QuantizationConfig &config,
                         const FindPart &find) {
  const std::string_view suffix = quantizedSuffixes(config).front();
  SANDWICH_ASSIGN_OR_RETURN(const TensorView *scales,
                            findPart(find, suffix, floats, {}));
  parts.scales = *scales;
  const bool isScalar = elementCount(*scales) == 1;
  if (config.block && parts.areFloats && !isScalar) {
    const auto [blockRows, blockColumns] = *config.block;
    const std::vector<int64_t> expected = {
        divideUp(parts.rows, blockRows), divideUp(parts.columns, blockColumns)};
    if (scales->shape != expected)
      return makeError(suffix, " has the shape ", describeShape(scales->shape),
                       ", but ", describeShape(expected), " is expected of ",
                       "blocks of ", blockRows, " x ", blockColumns);
    // Groups divide rows, and the last block may be shorter than others.
    const int64_t size = std::gcd(parts.columns, blockColumns);
    parts.groups = parts.columns / size;
    parts.rowsOfScale = blockRows;
    parts.groupsOfScale = blockColumns / size;
  } else {
    if (!isScalar &&
        (scales->shape.size() != 2 || scales->shape[0] != parts.rows))
      return makeError(suffix, " has the shape ", describeShape(scales->shape),
                       "; [", parts.rows, ", groups] is expected");
    parts.groups = isScalar ? 1 : scales->shape[1];
  }
  if (!parts.areFloats)
    return {};
  std::vector<float> values(elementCount(*scales));
  readElements(*scales, 0, values);
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) || values[i] <= 0)
      return makeError(suffix, " has ", values[i], " as element ", i,
                       "; scales are positive and finite");
  return {};
}

/// Those of `compressed-tensors` and FP8: [N, K], and [N, G].
static Status findRowMajor(Parts &parts, const QuantizationConfig &config,
                           const FindPart &find) {
  const bool isPacked = find(".weight_packed");
  if (isPacked) {
    SANDWICH_ASSIGN_OR_RETURN(const TensorView *numbers,
                              findPart(find, ".weight_packed", words, {}));
    if (numbers->shape.size() != 2 || numbers->shape[0] != parts.rows)
      return makeError(".weight_packed has the shape ",
                       describeShape(numbers->shape), "; [", parts.rows,
                       ", words] is expected");
    SANDWICH_ASSIGN_OR_RETURN(
        const int64_t bits,
        findBits(".weight_packed", numbers->shape[1], parts.columns));
    parts.numbers = {.bytes = numbers->bytes,
                     .bits = bits,
                     .wordsPerRow = numbers->shape[1]};
  } else {
    SANDWICH_ASSIGN_OR_RETURN(const TensorView *numbers,
                              findPart(find, ".weight",
                                       {ElementType::I8, ElementType::F8_E4M3},
                                       {parts.rows, parts.columns}));
    parts.areFloats = numbers->elementType == ElementType::F8_E4M3;
    parts.numbers = {.bytes = numbers->bytes,
                     .bits = 8,
                     .wordsPerRow = parts.columns,
                     .wordBytes = 1,
                     .flipped = uint8_t(parts.areFloats ? 0 : 0x80)};
  }
  SANDWICH_RETURN_IF_ERROR(findScales(parts, config, find));
  if (!find(".weight_zero_point"))
    return {};
  if (parts.areFloats)
    return makeError("has .weight_zero_point beside numbers of F8_E4M3");
  const bool isScalar = elementCount(parts.scales) == 1;
  const int64_t perWord = isPacked ? 32 / parts.numbers.bits : 1;
  if (parts.rows % perWord != 0)
    return makeError("has ", parts.rows, " rows, no multiple of ", perWord);
  SANDWICH_ASSIGN_OR_RETURN(
      const TensorView *zeros,
      isPacked ? findPart(find, ".weight_zero_point", words,
                          {parts.rows / perWord, parts.groups})
               : findPart(find, ".weight_zero_point", {ElementType::I8},
                          isScalar ? std::vector<int64_t>()
                                   : std::vector{parts.rows, parts.groups}));
  // One zero of all rows is not worth a case of its own.
  if (elementCount(*zeros) * perWord != parts.rows * parts.groups)
    return makeError(".weight_zero_point has the shape ",
                     describeShape(zeros->shape), "; one for each of ",
                     parts.rows, " rows is expected");
  parts.zeros = {.bytes = zeros->bytes,
                 .bits = parts.numbers.bits,
                 .wordsPerRow = parts.groups,
                 .wordBytes = parts.numbers.wordBytes,
                 .sharesColumn = isPacked,
                 .flipped = parts.numbers.flipped};
  return {};
}

/// A zero less one of which all bits are ones: some kernels take it for 0,
/// others for 2^bits.
static bool isAmbiguous(const Parts &parts, int zero) {
  return parts.method == QuantizationMethod::Gptq &&
         zero == 1 << parts.numbers.bits;
}

/// What holds the integers of `parts`.
static Result<StorageFormat> findFormat(const Parts &parts) {
  if (parts.groups < 1 || parts.columns % parts.groups != 0)
    return makeError("has ", parts.columns, " columns in ", parts.groups,
                     " groups");
  StorageFormat format;
  format.number = parts.format();
  format.groupSize = parts.groups == 1 ? 0 : parts.columns / parts.groups;
  if (Status status = verify(format); !status)
    return status.error();
  if (Status status = verify(format, parts.columns); !status)
    return status.error();
  for (int64_t row = 0; row < parts.rows; ++row)
    for (int64_t group = 0; group < parts.groups; ++group) {
      const int zero = parts.zero(row, group);
      if (isAmbiguous(parts, zero))
        return makeError(".qzeros has ", zero - 1, " for group ", group,
                         " of row ", row, ", which stands for 0 or for 2^bits");
      if (zero != parts.middle())
        format.offset = GroupOffset::Minimum;
    }
  // A scale times a zero has more bits.
  if (format.offset == GroupOffset::None &&
      parts.scales.elementType == ElementType::F16)
    format.scale = ScaleFormat::F16;
  return format;
}

Result<TensorView> sandwich::joinQuantized(const QuantizationConfig &config,
                                           const std::vector<int64_t> &shape,
                                           const FindPart &find) {
  Parts parts;
  parts.method = config.method;
  parts.rows = shape[0];
  parts.columns = shape[1];
  SANDWICH_RETURN_IF_ERROR(parts.hasRowsFirst()
                               ? findRowMajor(parts, config, find)
                               : findColumnMajor(parts, find));
  if (!std::ranges::count(config.numbers, parts.format()))
    return makeError("its tensors are of ", name(parts.format()),
                     ", which quantization_config does not tell");
  SANDWICH_ASSIGN_OR_RETURN(const StorageFormat format, findFormat(parts));
  for (std::string_view suffix : {".g_idx", ".weight_g_idx"})
    if (const TensorView *order = find(suffix)) {
      SANDWICH_ASSIGN_OR_RETURN(
          parts.groupOfColumn,
          readOrder(*order, suffix, parts.columns, parts.groups));
    }
  return TensorView{
      .elementType = parts.areFloats                ? ElementType::F8_E4M3
                     : parts.numbers.wordBytes == 1 ? ElementType::I8
                                                    : ElementType::I32,
      .shape = shape,
      .bytes = parts.numbers.bytes,
      .integers = std::make_shared<QuantizedMatrix>(format, std::move(parts))};
}
