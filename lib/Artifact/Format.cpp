//===- Format.cpp - The artifact's names, limits and manifest -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/Format.h"

#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ModelLimits.h"
#include "sandwich/Support/TensorParallelism.h"
#include "sandwich/Support/Utf8.h"

#include <google/protobuf/stubs/logging.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace sandwich;
using namespace sandwich::artifact;

uint64_t artifact::checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t artifact::keyValueBytes(std::string_view dtype, uint64_t headDim) {
  if (dtype == "f32")
    return 4 * headDim;
  if (dtype == "bf16" || dtype == "f16")
    return 2 * headDim;
  if (dtype == "int8")
    return headDim + SANDWICH_KV_SCALE_BYTES;
  return 0;
}

uint32_t artifact::ranks(const proto::Manifest &manifest) {
  return std::max<uint32_t>(manifest.ranks(), 1);
}

const proto::Phase *artifact::findPhase(const proto::Manifest &manifest,
                                        std::string_view name) {
  auto found = std::ranges::find(manifest.phases(), name, &proto::Phase::name);
  return found == manifest.phases().end() ? nullptr : &*found;
}

const proto::File *artifact::findFile(const proto::Manifest &manifest,
                                      std::string_view name) {
  auto found = std::ranges::find(manifest.files(), name, &proto::File::name);
  return found == manifest.files().end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Validation
//===----------------------------------------------------------------------===//

/// `name[index].`, the way errors name a field of a repeated message.
static std::string element(const char *name, int index) {
  return std::string(name) + "[" + std::to_string(index) + "].";
}

static Status checkRange(const std::string &field, uint64_t value,
                         uint64_t lowest, uint64_t highest) {
  if (value < lowest || value > highest)
    return makeError(field, " is ", value, "; ", lowest, " to ", highest,
                     " is accepted");
  return {};
}

/// Text that can be printed to a terminal and put into an error message:
/// UTF-8 without control characters, but for line ends where `lines` says so.
static Status checkText(const std::string &field, std::string_view text,
                        bool lines = false) {
  while (!text.empty()) {
    Utf8Prefix character = scanUtf8(text);
    if (character.kind != Utf8Prefix::Kind::Character)
      return makeError(field, " is not valid UTF-8");
    auto first = static_cast<unsigned char>(text.front());
    bool lineEnd = lines && first == '\n';
    // U+0080 to U+009F control terminals as well.
    bool control =
        first < 0x20 || first == 0x7f ||
        (first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (control && !lineEnd)
      return makeError(field, " holds a control character");
    text.remove_prefix(character.length);
  }
  return {};
}

/// Printable text of a reasonable length that is not empty.
static Status checkName(const std::string &field, std::string_view name) {
  if (name.empty())
    return makeError(field, " is empty");
  if (name.size() > limits::nameBytes)
    return makeError(field, " is ", name.size(), " bytes long; at most ",
                     limits::nameBytes, " are accepted");
  return checkText(field, name);
}

static Status checkModel(const proto::ModelConfiguration &model) {
  SANDWICH_RETURN_IF_ERROR(checkName("model.name", model.name()));
  SANDWICH_RETURN_IF_ERROR(
      checkName("model.architecture", model.architecture()));
  SANDWICH_RETURN_IF_ERROR(checkRange("model.hidden_size", model.hidden_size(),
                                      1, model_limits::hiddenSize));
  SANDWICH_RETURN_IF_ERROR(checkRange("model.intermediate_size",
                                      model.intermediate_size(), 1,
                                      model_limits::intermediateSize));
  SANDWICH_RETURN_IF_ERROR(
      checkRange("model.layers", model.layers(), 1, model_limits::layers));
  SANDWICH_RETURN_IF_ERROR(
      checkRange("model.heads", model.heads(), 1, model_limits::heads));
  SANDWICH_RETURN_IF_ERROR(
      checkRange("model.kv_heads", model.kv_heads(), 1, model.heads()));
  if (model.heads() % model.kv_heads() != 0)
    return makeError("model.heads is ", model.heads(),
                     ", not a multiple of model.kv_heads, which is ",
                     model.kv_heads());
  SANDWICH_RETURN_IF_ERROR(
      checkRange("model.head_dim", model.head_dim(), 1, model_limits::headDim));
  SANDWICH_RETURN_IF_ERROR(checkRange("model.vocab_size", model.vocab_size(), 1,
                                      model_limits::vocabSize));
  SANDWICH_RETURN_IF_ERROR(checkRange("model.context_length",
                                      model.context_length(), 1,
                                      model_limits::contextLength));
  auto checkToken = [&](const std::string &field, int32_t token) -> Status {
    if (token < 0 || static_cast<uint32_t>(token) >= model.vocab_size())
      return makeError(field, " is ", token,
                       ", outside the vocabulary of model.vocab_size ",
                       model.vocab_size());
    return {};
  };
  SANDWICH_RETURN_IF_ERROR(checkRange("the number of model.eos_token_ids",
                                      model.eos_token_ids_size(), 0,
                                      model_limits::eosTokens));
  for (int32_t token : model.eos_token_ids())
    SANDWICH_RETURN_IF_ERROR(checkToken("model.eos_token_ids", token));
  if (model.has_bos_token_id())
    SANDWICH_RETURN_IF_ERROR(
        checkToken("model.bos_token_id", model.bos_token_id()));
  return {};
}

static Status checkStorage(const std::string &field, const std::string &dtype) {
  SANDWICH_RETURN_IF_ERROR(checkName(field, dtype));
  Result<StorageFormat> format = StorageFormat::parse(dtype);
  return format ? Status() : format.error().inContext(field);
}

static Status checkTarget(const proto::Target &target) {
  SANDWICH_RETURN_IF_ERROR(checkName("target.name", target.name()));
  SANDWICH_RETURN_IF_ERROR(checkStorage("target.dtype", target.dtype()));
  for (const std::string &feature : target.cpu_features())
    SANDWICH_RETURN_IF_ERROR(checkName("target.cpu_features", feature));
  if (target.phase_abi_version() != SANDWICH_PHASE_ABI_VERSION)
    return makeError("target.phase_abi_version is ", target.phase_abi_version(),
                     ", and this version of Sandwich calls version ",
                     SANDWICH_PHASE_ABI_VERSION, "; compile the model again");
  return {};
}

static bool isSymbol(std::string_view name) {
  auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && isLetter(name.front()) &&
         std::ranges::all_of(name, [&](char c) {
           return isLetter(c) || (c >= '0' && c <= '9');
         });
}

/// Whether `symbol`, that of `field`, can be one of phases.so.
static Status checkSymbol(const std::string &field, const std::string &symbol) {
  SANDWICH_RETURN_IF_ERROR(checkName(field, symbol));
  if (!isSymbol(symbol))
    return makeError(field, " is \"", symbol,
                     "\", which is not the name of a C function");
  return {};
}

static Status checkPhase(const std::string &prefix, const proto::Phase &phase,
                         uint32_t columns) {
  SANDWICH_RETURN_IF_ERROR(checkSymbol(prefix + "symbol", phase.symbol()));
  SANDWICH_RETURN_IF_ERROR(
      checkRange(prefix + "threads", phase.threads(), 1, limits::threads));
  SANDWICH_RETURN_IF_ERROR(checkRange(prefix + "max_tokens", phase.max_tokens(),
                                      1, limits::tokensOfStep));
  uint64_t logitRowBytes = uint64_t(columns) * sizeof(float);
  uint64_t maxLogitRows = std::min<uint64_t>(
      phase.max_tokens(), limits::logitsBytes / logitRowBytes);
  SANDWICH_RETURN_IF_ERROR(checkRange(prefix + "max_logit_rows",
                                      phase.max_logit_rows(), 1, maxLogitRows));
  SANDWICH_RETURN_IF_ERROR(checkRange(prefix + "workspace_bytes",
                                      phase.workspace_bytes(), 0,
                                      limits::workspaceBytes));
  if (phase.workspace_bytes() % tensorAlignment != 0)
    return makeError(prefix, "workspace_bytes is ", phase.workspace_bytes(),
                     ", not a multiple of ", tensorAlignment);
  for (int i = 0; i < phase.schedules_size(); ++i) {
    const proto::Schedule &schedule = phase.schedules(i);
    std::string inner = prefix + element("schedules", i);
    SANDWICH_RETURN_IF_ERROR(checkName(inner + "matmul", schedule.matmul()));
    SANDWICH_RETURN_IF_ERROR(
        checkText(inner + "text", schedule.text(), /*lines=*/true));
    if (schedule.rows_to() && schedule.rows_to() < schedule.rows_from())
      return makeError(inner, "rows_to is ", schedule.rows_to(),
                       ", less than rows_from, which is ",
                       schedule.rows_from());
  }
  SANDWICH_RETURN_IF_ERROR(checkRange("the number of " + prefix + "operations",
                                      phase.operations_size(), 0,
                                      limits::operations));
  for (int i = 0; i < phase.operations_size(); ++i)
    SANDWICH_RETURN_IF_ERROR(
        checkName(prefix + element("operations", i) + "name",
                  phase.operations(i).name()));
  return {};
}

/// What a model makes of a text.
static Status checkEncoding(const proto::Manifest &manifest) {
  if (!manifest.has_encoding())
    return {};
  const proto::Encoding &encoding = manifest.encoding();
  const uint32_t width = manifest.model().hidden_size();
  SANDWICH_RETURN_IF_ERROR(
      checkRange("encoding.labels", encoding.labels(), 0, limits::labels));
  SANDWICH_RETURN_IF_ERROR(checkRange("encoding.token_types",
                                      encoding.token_types(), 0,
                                      model_limits::vocabSize));
  if (encoding.labels() == 0 && encoding.pooling() != "cls" &&
      encoding.pooling() != "mean" && encoding.pooling() != "last")
    return makeError("encoding.pooling is \"", encoding.pooling(),
                     "\"; \"cls\", \"mean\" and \"last\" are accepted");
  uint32_t before = 0;
  for (uint32_t size : encoding.dimensions()) {
    SANDWICH_RETURN_IF_ERROR(
        checkRange("encoding.dimensions", size, before + 1, width));
    before = size;
  }
  SANDWICH_RETURN_IF_ERROR(checkRange("the number of encoding.prompts",
                                      encoding.prompts_size(), 0,
                                      limits::prompts));
  std::set<std::string> names;
  for (int i = 0; i < encoding.prompts_size(); ++i) {
    const proto::Prompt &prompt = encoding.prompts(i);
    const std::string prefix = element("encoding.prompts", i);
    SANDWICH_RETURN_IF_ERROR(checkName(prefix + "name", prompt.name()));
    SANDWICH_RETURN_IF_ERROR(checkRange("the bytes of " + prefix + "text",
                                        prompt.text().size(), 0,
                                        limits::promptBytes));
    SANDWICH_RETURN_IF_ERROR(
        checkText(prefix + "text", prompt.text(), /*lines=*/true));
    if (!names.insert(prompt.name()).second)
      return makeError("encoding.prompts has \"", prompt.name(), "\" twice");
  }
  if (!encoding.default_prompt().empty() &&
      !names.contains(encoding.default_prompt()))
    return makeError("encoding.default_prompt is \"", encoding.default_prompt(),
                     "\", which encoding.prompts does not have");
  if (!encoding.task().empty())
    SANDWICH_RETURN_IF_ERROR(checkName("encoding.task", encoding.task()));
  if (artifact::ranks(manifest) > 1)
    return makeError("ranks is ", manifest.ranks(),
                     ", but a model with encoding runs in one process");
  return {};
}

static Status checkPhases(const proto::Manifest &manifest) {
  const std::vector<std::string_view> accepted = phaseNames(manifest);
  std::string list;
  for (std::string_view name : accepted)
    list += (list.empty() ? "\"" : " and \"") + std::string(name) + "\"";
  std::set<std::string, std::less<>> names;
  for (int i = 0; i < manifest.phases_size(); ++i) {
    const proto::Phase &phase = manifest.phases(i);
    std::string prefix = element("phases", i);
    SANDWICH_RETURN_IF_ERROR(checkName(prefix + "name", phase.name()));
    if (!std::ranges::count(accepted, phase.name()))
      return makeError(prefix, "name is \"", phase.name(), "\"; ", list,
                       accepted.size() == 1 ? " is accepted" : " are accepted");
    if (!names.insert(phase.name()).second)
      return makeError("phases has \"", phase.name(), "\" twice");
    for (const std::string &input : phase.inputs())
      SANDWICH_RETURN_IF_ERROR(checkName(prefix + "inputs", input));
    SANDWICH_RETURN_IF_ERROR(
        checkPhase(prefix, phase, columnsOf(phase, manifest)));
    // A text is one segment of one step.
    if (manifest.has_encoding() &&
        phase.max_tokens() < manifest.model().context_length())
      return makeError(prefix, "max_tokens is ", phase.max_tokens(),
                       ", less than model.context_length, which is ",
                       manifest.model().context_length());
  }
  for (std::string_view name : accepted)
    if (!names.contains(name))
      return makeError("phases has no \"", name, "\"");
  return {};
}

static Status checkSampling(const proto::Manifest &manifest) {
  if (manifest.sampling_symbol().empty())
    return {};
  if (manifest.has_encoding())
    return makeError("sampling_symbol is of models that generate text, which "
                     "this one does not");
  return checkSymbol("sampling_symbol", manifest.sampling_symbol());
}

/// A thread of the phase for each CPU, and no CPU twice in all processes.
static Status checkCpus(const std::string &field,
                        const google::protobuf::RepeatedField<uint32_t> &cpus,
                        const proto::Phase &phase, std::set<uint32_t> &used) {
  if (static_cast<uint32_t>(cpus.size()) != phase.threads())
    return makeError(field, " has ", cpus.size(), " CPUs, but ", phase.name(),
                     " has ", phase.threads(), " threads");
  for (uint32_t cpu : cpus) {
    SANDWICH_RETURN_IF_ERROR(checkRange(field, cpu, 0, limits::cpuIndex));
    if (!used.insert(cpu).second)
      return makeError(field, " has CPU ", cpu, " twice");
  }
  return {};
}

static Status checkPlan(const proto::Manifest &manifest) {
  if (manifest.has_encoding()) {
    if (manifest.plan_size() != 0)
      return makeError("plan is of prefill and decode, which the model does "
                       "not have");
    return {};
  }
  const proto::Phase &prefill = *findPhase(manifest, prefillPhase);
  const proto::Phase &decode = *findPhase(manifest, decodePhase);
  SANDWICH_RETURN_IF_ERROR(checkRange("the number of plan",
                                      manifest.plan_size(), 0,
                                      artifact::ranks(manifest)));
  if (manifest.plan_size() != 0 &&
      static_cast<uint32_t>(manifest.plan_size()) != artifact::ranks(manifest))
    return makeError("plan has ", manifest.plan_size(), " processes for ",
                     artifact::ranks(manifest), " ranks");
  std::set<uint32_t> prefillCpus, decodeCpus;
  for (int i = 0; i < manifest.plan_size(); ++i) {
    const proto::Process &process = manifest.plan(i);
    const std::string prefix = element("plan", i);
    SANDWICH_RETURN_IF_ERROR(checkCpus(
        prefix + "prefill_cpus", process.prefill_cpus(), prefill, prefillCpus));
    SANDWICH_RETURN_IF_ERROR(checkCpus(
        prefix + "decode_cpus", process.decode_cpus(), decode, decodeCpus));
  }
  return {};
}

static Status checkSeconds(const std::string &field, double seconds,
                           bool zeroToo) {
  if (!std::isfinite(seconds) || seconds < 0 || (seconds == 0 && !zeroToo) ||
      seconds > limits::stepSeconds)
    return makeError(field, " is ", seconds, "; ",
                     zeroToo ? "0 to " : "more than 0 and at most ",
                     limits::stepSeconds, " seconds are accepted");
  return {};
}

using StepTimePoints =
    google::protobuf::RepeatedPtrField<proto::StepTimes::Point>;

/// A curve with a point at least, none beyond the largest step of its phase.
static Status checkStepTimePoints(const char *name,
                                  const StepTimePoints &points,
                                  const proto::Phase &phase) {
  SANDWICH_RETURN_IF_ERROR(checkRange(std::string("the number of ") + name,
                                      static_cast<uint64_t>(points.size()), 1,
                                      limits::stepTimePoints));
  uint32_t before = 0;
  for (int i = 0; i < points.size(); ++i) {
    const proto::StepTimes::Point &point = points[i];
    const std::string prefix = element(name, i);
    SANDWICH_RETURN_IF_ERROR(
        checkRange(prefix + "tokens", point.tokens(), 1, phase.max_tokens()));
    if (point.tokens() <= before)
      return makeError(prefix, "tokens is ", point.tokens(), ", not more than ",
                       before, " of the point before");
    before = point.tokens();
    SANDWICH_RETURN_IF_ERROR(checkSeconds(prefix + "seconds", point.seconds(),
                                          /*zeroToo=*/false));
  }
  return {};
}

static Status checkStepTimes(const proto::Manifest &manifest) {
  if (!manifest.has_step_times())
    return {};
  if (manifest.has_encoding())
    return makeError("step_times is of prefill and decode, which the model "
                     "does not have");
  const proto::StepTimes &times = manifest.step_times();
  SANDWICH_RETURN_IF_ERROR(
      checkStepTimePoints("step_times.prefill", times.prefill(),
                          *findPhase(manifest, prefillPhase)));
  SANDWICH_RETURN_IF_ERROR(checkStepTimePoints(
      "step_times.decode", times.decode(), *findPhase(manifest, decodePhase)));
  SANDWICH_RETURN_IF_ERROR(
      checkSeconds("step_times.seconds_per_prompt_position",
                   times.seconds_per_prompt_position(), /*zeroToo=*/true));
  return checkSeconds("step_times.seconds_per_decode_position",
                      times.seconds_per_decode_position(), /*zeroToo=*/true);
}

static Status checkRanks(const proto::Manifest &manifest) {
  const proto::ModelConfiguration &model = manifest.model();
  TensorParallelSizes sizes{model.heads(), model.kv_heads(),
                            model.intermediate_size(), model.vocab_size()};
  if (auto reason = sizes.refuse(artifact::ranks(manifest)))
    return makeError("ranks is ", manifest.ranks(), ": ", *reason);
  return {};
}

/// `layers` of the model have keys and values there.
static Status checkKVCache(const proto::KVCache &cache,
                           const proto::ModelConfiguration &model,
                           uint32_t layers, uint32_t ranks) {
  SANDWICH_RETURN_IF_ERROR(checkName("kv_cache.dtype", cache.dtype()));
  const uint64_t headBytes = keyValueBytes(cache.dtype(), model.head_dim());
  if (headBytes == 0)
    return makeError("kv_cache.dtype is \"", cache.dtype(),
                     "\"; \"f32\", \"bf16\", \"f16\" and \"int8\" are "
                     "accepted");
  if (cache.block_tokens() != SANDWICH_KV_BLOCK_TOKENS)
    return makeError("kv_cache.block_tokens is ", cache.block_tokens(),
                     ", and this version of Sandwich uses ",
                     SANDWICH_KV_BLOCK_TOKENS, "; compile the model again");
  // A key and a value for each layer, token and KV head; below 2^62 by the
  // limits of the model's fields.
  uint64_t least = uint64_t(2) * layers * cache.block_tokens() *
                   (model.kv_heads() / ranks) * headBytes;
  // A layout may pad heads, but never to more than double.
  SANDWICH_RETURN_IF_ERROR(checkRange("kv_cache.block_bytes",
                                      cache.block_bytes(), least, 2 * least));
  if (cache.block_bytes() % tensorAlignment != 0)
    return makeError("kv_cache.block_bytes is ", cache.block_bytes(),
                     ", not a multiple of ", tensorAlignment);
  uint64_t blocks =
      (uint64_t(model.context_length()) + cache.block_tokens() - 1) /
      cache.block_tokens();
  auto total = checkedMultiply(blocks, cache.block_bytes());
  if (!total || *total > limits::kvCacheBytes)
    return makeError("kv_cache.block_bytes is ", cache.block_bytes(),
                     ", so that a context of ", model.context_length(),
                     " tokens needs more than ", limits::kvCacheBytes,
                     " bytes");
  return {};
}

/// The name of a file that artifacts have, all of which but the weights are
/// held in memory.
static Status checkFileName(const std::string &field, const std::string &name) {
  SANDWICH_RETURN_IF_ERROR(checkName(field, name));
  if (name == manifestFile)
    return makeError(field, " is that of the manifest itself");
  if (!std::ranges::count(fileNames, name))
    return makeError(field, " is \"", name, "\"; artifacts have no such file");
  return {};
}

static Status checkFiles(const proto::Manifest &manifest) {
  std::set<std::string> names;
  for (int i = 0; i < manifest.files_size(); ++i) {
    const proto::File &file = manifest.files(i);
    std::string prefix = element("files", i);
    SANDWICH_RETURN_IF_ERROR(checkFileName(prefix + "name", file.name()));
    if (!names.insert(file.name()).second)
      return makeError("files has \"", file.name(), "\" twice");
    SANDWICH_RETURN_IF_ERROR(checkRange(
        prefix + "bytes", file.bytes(), 1,
        file.name() == weightsFile ? limits::weightsBytes : limits::fileBytes));
  }
  for (const char *name : {phasesFile, weightsFile})
    if (!names.contains(name))
      return makeError("files has no \"", name, "\"");
  return {};
}

/// Whether weights.bin is what all ranks read and a shard of each.
static Status checkWeightRegions(const proto::Manifest &manifest) {
  uint64_t common = manifest.common_weight_bytes();
  uint64_t shard = manifest.shard_bytes();
  uint32_t ranks = artifact::ranks(manifest);
  if (ranks == 1) {
    if (common || shard)
      return makeError("common_weight_bytes is ", common, " and shard_bytes ",
                       shard, ", but there is one rank");
    return {};
  }
  if (common % weightRegionAlignment != 0)
    return makeError("common_weight_bytes is ", common, ", not a multiple of ",
                     weightRegionAlignment);
  if (shard == 0 || shard % weightRegionAlignment != 0)
    return makeError("shard_bytes is ", shard, ", not a positive multiple of ",
                     weightRegionAlignment);
  uint64_t bytes = findFile(manifest, weightsFile)->bytes();
  auto shards = checkedMultiply<uint64_t>(shard, ranks);
  auto total = shards ? checkedAdd(common, *shards) : std::nullopt;
  if (!total || *total != bytes)
    return makeError("common_weight_bytes is ", common, " and shard_bytes ",
                     shard, " of ", ranks, " ranks, but ", weightsFile, " has ",
                     bytes, " bytes");
  return {};
}

/// Whether `tensor` lies in what all ranks read, or in the shard of rank 0.
static Status checkRegion(const std::string &prefix,
                          const proto::Tensor &tensor,
                          const proto::Manifest &manifest) {
  uint32_t ranks = artifact::ranks(manifest);
  if (tensor.ranks() != 0 && (ranks == 1 || tensor.ranks() != ranks))
    return makeError(prefix, "ranks is ", tensor.ranks(), ", not the ", ranks,
                     " of the artifact");
  if (ranks == 1)
    return {};
  uint64_t common = manifest.common_weight_bytes();
  uint64_t begin = tensor.ranks() ? common : 0;
  uint64_t end = tensor.ranks() ? common + manifest.shard_bytes() : common;
  if (tensor.offset() < begin || tensor.offset() + tensor.bytes() > end)
    return makeError(
        prefix, "offset is ", tensor.offset(), " and bytes ", tensor.bytes(),
        ", outside of bytes ", begin, " to ", end, " of ", weightsFile,
        tensor.ranks() ? ", the shard of rank 0" : ", which all ranks read");
  return {};
}

/// Whether the rows of `tensor`, if it is of integers, are whole groups.
static Status checkGroups(const std::string &prefix,
                          const proto::Tensor &tensor) {
  const StorageFormat storage = *StorageFormat::parse(tensor.dtype());
  if (!storage.isQuantized())
    return {};
  // So that the bytes of a row fit 64 bits.
  constexpr uint64_t largest = uint64_t(1) << 40;
  const uint64_t k = tensor.shape(tensor.shape_size() - 1);
  if (k > largest)
    return makeError(prefix, "shape: ", storage.name(), " has too large a K, ",
                     k);
  Status status = verify(storage, static_cast<int64_t>(k));
  return status ? status : status.error().inContext(prefix + "shape");
}

/// Whether `tensor`, if it says what became of its values, has integers and
/// says so of each layer.
static Status checkRounding(const std::string &prefix,
                            const proto::Tensor &tensor) {
  if (!tensor.has_rounding())
    return {};
  if (!StorageFormat::parse(tensor.dtype())->isQuantized())
    return makeError(prefix, "rounding is of integers, but dtype is \"",
                     tensor.dtype(), "\"");
  const proto::Rounding &rounding = tensor.rounding();
  // Integers are matrices, of layers or not.
  const uint64_t layers = tensor.shape_size() > 2 ? tensor.shape(0) : 1;
  if (static_cast<uint64_t>(rounding.errors_size()) != layers)
    return makeError("the number of ", prefix, "rounding.errors is ",
                     rounding.errors_size(), ", not one for each of ", layers,
                     layers == 1 ? " layer" : " layers");
  for (double error : rounding.errors())
    if (!std::isfinite(error) || error < 0)
      return makeError(prefix, "rounding.errors has ", error,
                       "; finite numbers from 0 on are accepted");
  return {};
}

/// Bytes of `tensor`, whose groups are checked, without padding, or nothing if
/// that does not fit.
static std::optional<uint64_t> unpaddedBytes(const proto::Tensor &tensor) {
  const StorageFormat storage = *StorageFormat::parse(tensor.dtype());
  std::span<const uint64_t> dimensions(tensor.shape().data(),
                                       tensor.shape_size());
  std::optional<uint64_t> bytes = storage.bits() / 8;
  if (storage.isQuantized()) {
    bytes = weightBytes(storage, 1, static_cast<int64_t>(dimensions.back()));
    dimensions = dimensions.first(dimensions.size() - 1);
  }
  for (uint64_t dimension : dimensions)
    if (bytes)
      bytes = checkedMultiply<uint64_t>(*bytes, dimension);
  return bytes;
}

static Status checkTensor(const std::string &prefix,
                          const proto::Tensor &tensor, uint64_t weightsBytes) {
  SANDWICH_RETURN_IF_ERROR(checkName(prefix + "name", tensor.name()));
  SANDWICH_RETURN_IF_ERROR(checkStorage(prefix + "dtype", tensor.dtype()));
  SANDWICH_RETURN_IF_ERROR(checkName(prefix + "layout", tensor.layout()));
  for (const std::string &source : tensor.sources())
    SANDWICH_RETURN_IF_ERROR(checkName(prefix + "sources", source));
  SANDWICH_RETURN_IF_ERROR(
      checkRange("the number of dimensions of " + prefix + "shape",
                 tensor.shape_size(), 1, limits::tensorRank));
  for (uint64_t dimension : tensor.shape())
    SANDWICH_RETURN_IF_ERROR(
        checkRange(prefix + "shape", dimension, 1, limits::weightsBytes));
  if (tensor.offset() % tensorAlignment != 0)
    return makeError(prefix, "offset is ", tensor.offset(),
                     ", not a multiple of ", tensorAlignment);
  SANDWICH_RETURN_IF_ERROR(checkGroups(prefix, tensor));
  SANDWICH_RETURN_IF_ERROR(checkRounding(prefix, tensor));
  auto unpadded = unpaddedBytes(tensor);
  if (!unpadded || tensor.bytes() < *unpadded)
    return makeError(prefix, "bytes is ", tensor.bytes(),
                     ", too few for its shape of ", tensor.dtype());
  auto end = checkedAdd<uint64_t>(tensor.offset(), tensor.bytes());
  if (!end || *end > weightsBytes)
    return makeError(prefix, "offset is ", tensor.offset(), " and bytes ",
                     tensor.bytes(), ", beyond the ", weightsBytes,
                     " bytes of ", weightsFile);
  return {};
}

static Status checkTensors(const proto::Manifest &manifest) {
  SANDWICH_RETURN_IF_ERROR(checkRange(
      "the number of tensors", manifest.tensors_size(), 1, limits::tensors));
  uint64_t weightsBytes = findFile(manifest, weightsFile)->bytes();
  std::set<std::string_view> names;
  std::vector<const proto::Tensor *> byOffset;
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    const proto::Tensor &tensor = manifest.tensors(i);
    SANDWICH_RETURN_IF_ERROR(
        checkTensor(element("tensors", i), tensor, weightsBytes));
    SANDWICH_RETURN_IF_ERROR(
        checkRegion(element("tensors", i), tensor, manifest));
    if (!names.insert(tensor.name()).second)
      return makeError("tensors has \"", tensor.name(), "\" twice");
    byOffset.push_back(&tensor);
  }
  std::ranges::sort(byOffset, {},
                    [](const proto::Tensor *t) { return t->offset(); });
  for (size_t i = 1; i < byOffset.size(); ++i) {
    const proto::Tensor &before = *byOffset[i - 1], &after = *byOffset[i];
    if (before.offset() + before.bytes() > after.offset())
      return makeError("tensors \"", before.name(), "\" and \"", after.name(),
                       "\" overlap in ", weightsFile, " at byte ",
                       after.offset());
  }
  return {};
}

std::vector<std::string_view>
artifact::phaseNames(const proto::Manifest &manifest) {
  if (!manifest.has_encoding())
    return {prefillPhase, decodePhase};
  if (manifest.encoding().labels() > 0)
    return {classifyPhase};
  return {embedPhase, embedTokensPhase};
}

uint32_t artifact::columnsOf(const proto::Phase &phase,
                             const proto::Manifest &manifest) {
  if (phase.name() == classifyPhase)
    return manifest.encoding().labels();
  if (phase.name() == embedPhase || phase.name() == embedTokensPhase)
    return manifest.model().hidden_size();
  return manifest.model().vocab_size();
}

Status artifact::validateConfiguration(const proto::Manifest &manifest) {
  // The target first: an artifact for another interface may differ in all else.
  SANDWICH_RETURN_IF_ERROR(checkTarget(manifest.target()));
  SANDWICH_RETURN_IF_ERROR(checkModel(manifest.model()));
  if (manifest.phases_size() > 0) {
    SANDWICH_RETURN_IF_ERROR(checkPhases(manifest));
    SANDWICH_RETURN_IF_ERROR(checkPlan(manifest));
    SANDWICH_RETURN_IF_ERROR(checkStepTimes(manifest));
  }
  SANDWICH_RETURN_IF_ERROR(checkRanks(manifest));
  SANDWICH_RETURN_IF_ERROR(checkEncoding(manifest));
  SANDWICH_RETURN_IF_ERROR(checkSampling(manifest));
  return checkKVCache(manifest.kv_cache(), manifest.model(),
                      manifest.has_encoding() ? 1 : manifest.model().layers(),
                      ranks(manifest));
}

Status artifact::validateManifest(const proto::Manifest &manifest) {
  SANDWICH_RETURN_IF_ERROR(
      checkName("sandwich_version", manifest.sandwich_version()));
  SANDWICH_RETURN_IF_ERROR(validateConfiguration(manifest));
  SANDWICH_RETURN_IF_ERROR(checkPhases(manifest));
  SANDWICH_RETURN_IF_ERROR(checkFiles(manifest));
  SANDWICH_RETURN_IF_ERROR(checkWeightRegions(manifest));
  return checkTensors(manifest);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

Result<std::string>
artifact::serializeManifest(const proto::Manifest &manifest) {
  SANDWICH_RETURN_IF_ERROR(validateManifest(manifest));
  proto::Envelope envelope;
  envelope.set_format_version(formatVersion);
  manifest.SerializeToString(envelope.mutable_manifest());
  envelope.set_checksum(checksum(std::as_bytes(
      std::span(envelope.manifest().data(), envelope.manifest().size()))));
  std::string bytes = envelope.SerializeAsString();
  if (bytes.size() > limits::manifestBytes)
    return makeError("is ", bytes.size(), " bytes long; at most ",
                     limits::manifestBytes, " are accepted");
  return bytes;
}

Result<proto::Manifest> artifact::parseManifest(std::string_view bytes) {
  if (bytes.size() > limits::manifestBytes)
    return makeError("is ", bytes.size(), " bytes long; at most ",
                     limits::manifestBytes, " are accepted");
  // What protobuf would print to standard error is told by the result.
  google::protobuf::LogSilencer silence;
  auto length = static_cast<int>(bytes.size());
  proto::Envelope envelope;
  if (!envelope.ParseFromArray(bytes.data(), length) ||
      envelope.format_version() == 0)
    return makeError("is not the manifest of a Sandwich artifact");
  if (envelope.format_version() != formatVersion)
    return makeError("has format version ", envelope.format_version(),
                     ", and this version of Sandwich reads version ",
                     formatVersion, "; compile the model again");
  const std::string &inner = envelope.manifest();
  if (checksum(std::as_bytes(std::span(inner.data(), inner.size()))) !=
      envelope.checksum())
    return makeError("has a wrong checksum: the file was cut or changed; "
                     "compile the model again");
  proto::Manifest manifest;
  if (!manifest.ParseFromString(inner))
    return makeError("holds no manifest that can be read");
  SANDWICH_RETURN_IF_ERROR(validateManifest(manifest));
  return manifest;
}

Status artifact::checkCpuFeatures(const proto::Target &target,
                                  const CpuFeatures &available) {
  std::string missing;
  for (const std::string &name : target.cpu_features()) {
    const std::optional<CpuFeature> feature = cpuFeatureNamed(name);
    if (feature && architectureOf(*feature) != hostArchitecture)
      return makeError("this artifact, made for ", target.name(),
                       ", is for CPUs of ",
                       sandwich::name(architectureOf(*feature)),
                       ", and this one is ", sandwich::name(hostArchitecture),
                       "; compile it again with --target=host");
    if (!feature || !available.has(*feature))
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty())
    return {};
  return makeError("this artifact, made for ", target.name(), ", needs ",
                   missing,
                   ", which this CPU does not have; compile it again with "
                   "--target=host");
}
