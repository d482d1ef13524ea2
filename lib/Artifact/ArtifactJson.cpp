//===- ArtifactJson.cpp - An artifact's contents as JSON ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/ArtifactJson.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <functional>

using namespace sandwich;

static std::string hexadecimal(uint64_t value) {
  std::array<char, 17> digits;
  std::snprintf(digits.data(), digits.size(), "%016" PRIx64, value);
  return digits.data();
}

/// The elements of `values`, each through `convert`.
template <typename Repeated, typename Convert = std::identity>
static Json toArray(const Repeated &values, Convert convert = {}) {
  Json array = Json::array();
  for (const auto &value : values)
    array.push_back(convert(value));
  return array;
}

static Json modelToJson(const proto::ModelConfiguration &model) {
  Json object = {{"name", model.name()},
                 {"architecture", model.architecture()},
                 {"hidden_size", model.hidden_size()},
                 {"intermediate_size", model.intermediate_size()},
                 {"layers", model.layers()},
                 {"heads", model.heads()},
                 {"kv_heads", model.kv_heads()},
                 {"head_dim", model.head_dim()},
                 {"vocab_size", model.vocab_size()},
                 {"context_length", model.context_length()},
                 {"eos_token_ids", toArray(model.eos_token_ids())}};
  if (model.has_bos_token_id())
    object["bos_token_id"] = model.bos_token_id();
  object["parameters"] = model.parameters();
  return object;
}

static Json targetToJson(const proto::Target &target) {
  return {{"name", target.name()},
          {"dtype", target.dtype()},
          {"activations", target.activations()},
          {"cpu_features", toArray(target.cpu_features())},
          {"phase_abi_version", target.phase_abi_version()},
          {"deterministic", target.deterministic()}};
}

static Json scheduleToJson(const proto::Schedule &schedule) {
  return {{"matmul", schedule.matmul()},
          {"rows_from", schedule.rows_from()},
          {"rows_to", schedule.rows_to()},
          {"text", schedule.text()}};
}

static Json operationToJson(const proto::Operation &operation) {
  return {{"name", operation.name()},
          {"bytes", operation.bytes()},
          {"bytes_per_position", operation.bytes_per_position()},
          {"flops_per_token", operation.flops_per_token()},
          {"flops_per_logit_row", operation.flops_per_logit_row()},
          {"flops_per_attended", operation.flops_per_attended()}};
}

static Json phaseToJson(const proto::Phase &phase) {
  return {{"name", phase.name()},
          {"symbol", phase.symbol()},
          {"threads", phase.threads()},
          {"max_tokens", phase.max_tokens()},
          {"max_logit_rows", phase.max_logit_rows()},
          {"workspace_bytes", phase.workspace_bytes()},
          {"schedules", toArray(phase.schedules(), scheduleToJson)},
          {"operations", toArray(phase.operations(), operationToJson)},
          {"inputs", toArray(phase.inputs())},
          {"bidirectional", phase.bidirectional()}};
}

static Json encodingToJson(const proto::Encoding &encoding) {
  Json prompts = Json::object();
  for (const proto::Prompt &prompt : encoding.prompts())
    prompts[prompt.name()] = prompt.text();
  Json object = {{"labels", encoding.labels()},
                 {"pooling", encoding.pooling()},
                 {"normalized", encoding.normalized()},
                 {"token_types", encoding.token_types()},
                 {"dimensions", toArray(encoding.dimensions())},
                 {"prompts", prompts}};
  if (!encoding.default_prompt().empty())
    object["default_prompt"] = encoding.default_prompt();
  if (!encoding.task().empty())
    object["task"] = encoding.task();
  return object;
}

static Json processToJson(const proto::Process &process) {
  return {{"prefill_cpus", toArray(process.prefill_cpus())},
          {"decode_cpus", toArray(process.decode_cpus())}};
}

static Json tensorToJson(const proto::Tensor &tensor) {
  Json object = {{"name", tensor.name()},
                 {"dtype", tensor.dtype()},
                 {"shape", toArray(tensor.shape())},
                 {"layout", tensor.layout()},
                 {"offset", tensor.offset()},
                 {"bytes", tensor.bytes()},
                 {"sources", toArray(tensor.sources())}};
  if (tensor.ranks())
    object["ranks"] = tensor.ranks();
  if (tensor.has_rounding())
    object["rounding"] = {{"errors", toArray(tensor.rounding().errors())},
                          {"kept", tensor.rounding().kept()}};
  return object;
}

static Json fileToJson(const proto::File &file) {
  return {{"name", file.name()},
          {"bytes", file.bytes()},
          {"checksum", hexadecimal(file.checksum())}};
}

static Json stepTimesToJson(const proto::StepTimes &times) {
  auto point = [](const proto::StepTimes::Point &each) -> Json {
    return {{"tokens", each.tokens()}, {"seconds", each.seconds()}};
  };
  return {{"prefill", toArray(times.prefill(), point)},
          {"decode", toArray(times.decode(), point)},
          {"seconds_per_prompt_position", times.seconds_per_prompt_position()},
          {"seconds_per_decode_position", times.seconds_per_decode_position()}};
}

Json sandwich::toJson(const proto::Manifest &manifest) {
  const proto::KVCache &cache = manifest.kv_cache();
  Json object = {{"sandwich_version", manifest.sandwich_version()},
                 {"ranks", artifact::ranks(manifest)},
                 {"common_weight_bytes", manifest.common_weight_bytes()},
                 {"shard_bytes", manifest.shard_bytes()},
                 {"model", modelToJson(manifest.model())},
                 {"target", targetToJson(manifest.target())},
                 {"phases", toArray(manifest.phases(), phaseToJson)},
                 {"plan", toArray(manifest.plan(), processToJson)},
                 {"kv_cache",
                  {{"block_tokens", cache.block_tokens()},
                   {"block_bytes", cache.block_bytes()},
                   {"dtype", cache.dtype()}}},
                 {"tensors", toArray(manifest.tensors(), tensorToJson)},
                 {"files", toArray(manifest.files(), fileToJson)}};
  if (manifest.has_step_times())
    object["step_times"] = stepTimesToJson(manifest.step_times());
  if (!manifest.sampling_symbol().empty())
    object["sampling_symbol"] = manifest.sampling_symbol();
  if (manifest.has_encoding())
    object["encoding"] = encodingToJson(manifest.encoding());
  return object;
}

Json sandwich::toJson(const Artifact &artifact) {
  Json object = {{"path", artifact.path()},
                 {"format_version", artifact::formatVersion}};
  object.update(toJson(artifact.manifest()));
  return object;
}
