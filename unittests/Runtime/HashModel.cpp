//===- HashModel.cpp - A tiny artifact for tests --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HashModel.h"

#include "Inputs/hash_model.h"

#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <cstring>

using namespace sandwich;
using namespace sandwich::test;

static std::vector<uint32_t> makeWeights(bool spoils = true) {
  std::vector<uint32_t> weights(HASH_MODEL_VOCABULARY);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<uint32_t>(hashModelMix(i + 1));
  if (spoils)
    weights.back() = HASH_MODEL_SPOILING;
  return weights;
}

/// UTF-8 of a code point below 0x800.
static std::string encodeUtf8(unsigned codePoint) {
  if (codePoint < 0x80)
    return std::string(1, static_cast<char>(codePoint));
  return {static_cast<char>(0xc0 | codePoint >> 6),
          static_cast<char>(0x80 | (codePoint & 0x3f))};
}

/// A tokenizer.json whose token i is byte i, followed by four special tokens:
/// byte-level BPE without a merge. Bytes that are no printable Latin-1
/// character are written as the code points from 256 on, in order.
static std::string makeTokenizer() {
  Json vocabulary = Json::object();
  unsigned unprintable = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= '!' && byte <= '~') ||
                     (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocabulary[encodeUtf8(printable ? byte : 256 + unprintable++)] = byte;
  }
  Json added = Json::array();
  for (const char *name : {"<s>", "</s>", "<pad>", "<nan>"}) {
    unsigned id = 256 + static_cast<unsigned>(added.size());
    vocabulary[name] = id;
    added.push_back({{"id", id},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json byteLevel = {{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", false}};
  Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", byteLevel},
      {"post_processor", nullptr},
      {"decoder", byteLevel},
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  return tokenizer.dump();
}

/// The machine code, with `plan` as that of both phases.
static Result<std::string> makePhases(const SandwichPlan &plan) {
  SANDWICH_ASSIGN_OR_RETURN(
      std::string code,
      readTextFile(std::string(SANDWICH_TEST_PHASES_FOLDER) + "/hash_model_" +
                       std::to_string(plan.threads) + ".so",
                   size_t{1} << 24));
  SandwichPlan compiled = plan;
  compiled.max_tokens = compiled.max_logit_rows = compiled.workspace_bytes = -1;
  compiled.ranks = 1;
  std::string_view before(reinterpret_cast<const char *>(&compiled),
                          sizeof(compiled));
  for (int phase = 0; phase < 2; ++phase) {
    size_t place = code.find(before);
    if (place == code.npos)
      return makeError("the phases of the hash model have no plan to fill in");
    std::memcpy(code.data() + place, &plan, sizeof(plan));
  }
  return code;
}

Status sandwich::test::writeHashModel(const std::string &path,
                                      const HashModelOptions &options) {
  SANDWICH_ASSIGN_OR_RETURN(ArtifactWriter writer,
                            ArtifactWriter::create(path));
  proto::Tensor tensor;
  tensor.set_name("salt");
  tensor.set_dtype("f32");
  tensor.add_shape(HASH_MODEL_VOCABULARY);
  tensor.set_layout("row-major");
  SANDWICH_ASSIGN_OR_RETURN(uint64_t offset, writer.beginTensor(tensor));
  static_cast<void>(offset);
  std::vector<uint32_t> weights = makeWeights(options.spoils);
  if (options.otherWeights)
    std::reverse(weights.begin(), weights.end() - 1);
  SANDWICH_RETURN_IF_ERROR(
      writer.appendWeights(std::as_bytes(std::span(weights))));
  constexpr uint64_t region = uint64_t{2} << 20;
  if (options.ranks > 1)
    // All of them read the same, and nobody what is in the shards.
    SANDWICH_RETURN_IF_ERROR(
        writer.skipTo(region + options.ranks * options.shardRegions * region));
  SandwichPlan plan = {};
  plan.abi_version = SANDWICH_PHASE_ABI_VERSION;
  plan.threads = options.threads;
  plan.max_tokens = options.maxTokens;
  plan.max_logit_rows = std::min(options.maxLogitRows, options.maxTokens);
  // Whole cache lines, each of eight tokens' states.
  plan.workspace_bytes = (options.maxTokens + 7) / 8 * 64;
  plan.kv_block_bytes = SANDWICH_KV_BLOCK_TOKENS * sizeof(uint64_t);
  plan.kv_element_type = SANDWICH_ELEMENT_F32;
  plan.vocab_size = HASH_MODEL_VOCABULARY;
  plan.weights_bytes = HASH_MODEL_VOCABULARY * sizeof(uint32_t);
  plan.operations = HASH_MODEL_OPERATIONS;
  plan.ranks = options.ranks;
  plan.columns = HASH_MODEL_VOCABULARY;
  SANDWICH_ASSIGN_OR_RETURN(std::string phases, makePhases(plan));
  SANDWICH_RETURN_IF_ERROR(writer.addFile(artifact::phasesFile, phases));
  if (options.withTokenizer)
    SANDWICH_RETURN_IF_ERROR(
        writer.addFile(artifact::tokenizerFile, makeTokenizer()));

  proto::Manifest manifest;
  proto::ModelConfiguration &model = *manifest.mutable_model();
  model.set_name("hash-model");
  model.set_architecture("HashModel");
  model.set_hidden_size(1);
  model.set_intermediate_size(options.ranks);
  model.set_layers(1);
  model.set_heads(options.ranks);
  model.set_kv_heads(options.ranks);
  model.set_head_dim(1);
  model.set_vocab_size(HASH_MODEL_VOCABULARY);
  model.set_context_length(options.contextLength);
  model.set_parameters(HASH_MODEL_VOCABULARY);
  for (int32_t token : options.endOfTextTokens)
    model.add_eos_token_ids(token);
  if (options.ranks > 1) {
    manifest.set_ranks(options.ranks);
    manifest.set_common_weight_bytes(region);
    manifest.set_shard_bytes(options.shardRegions * region);
  }
  for (uint32_t cpu = 0; options.plan && cpu < options.ranks * options.threads;
       ++cpu) {
    if (cpu % options.threads == 0)
      manifest.add_plan();
    proto::Process &process = *manifest.mutable_plan()->rbegin();
    process.add_prefill_cpus(cpu);
    process.add_decode_cpus(cpu);
  }
  proto::Target &target = *manifest.mutable_target();
  target.set_name("any");
  target.set_dtype("f32");
  target.set_phase_abi_version(SANDWICH_PHASE_ABI_VERSION);
  for (const char *name : {artifact::prefillPhase, artifact::decodePhase}) {
    proto::Phase &phase = *manifest.add_phases();
    phase.set_name(name);
    phase.set_symbol(std::string("hash_model_") + name);
    phase.set_threads(static_cast<uint32_t>(plan.threads));
    phase.set_max_tokens(static_cast<uint32_t>(plan.max_tokens));
    phase.set_max_logit_rows(static_cast<uint32_t>(plan.max_logit_rows));
    phase.set_workspace_bytes(static_cast<uint64_t>(plan.workspace_bytes));
    for (const char *operation : {"append", "barrier", "attend", "logits"})
      phase.add_operations()->set_name(operation);
    phase.mutable_operations(HASH_MODEL_APPEND)->set_flops_per_token(3);
    phase.mutable_operations(HASH_MODEL_ATTEND)->set_flops_per_attended(5);
    phase.mutable_operations(HASH_MODEL_ATTEND)->set_bytes_per_position(8);
    phase.mutable_operations(HASH_MODEL_LOGITS)
        ->set_bytes(static_cast<uint64_t>(plan.weights_bytes));
    phase.mutable_operations(HASH_MODEL_LOGITS)->set_flops_per_logit_row(7);
  }
  proto::KVCache &cache = *manifest.mutable_kv_cache();
  cache.set_block_tokens(SANDWICH_KV_BLOCK_TOKENS);
  cache.set_block_bytes(static_cast<uint64_t>(plan.kv_block_bytes));
  cache.set_dtype("f32");
  return writer.commit(std::move(manifest));
}

std::vector<float>
sandwich::test::hashModelLogits(std::span<const int32_t> tokens) {
  std::vector<uint32_t> weights = makeWeights();
  uint64_t state = HASH_MODEL_START;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto token = static_cast<size_t>(tokens[i]);
    state =
        hashModelMix(state ^ hashModelEntry(tokens[i], static_cast<int32_t>(i),
                                            weights[token]));
  }
  std::vector<float> logits(HASH_MODEL_VOCABULARY);
  for (size_t v = 0; v < logits.size(); ++v)
    logits[v] = hashModelLogit(state, static_cast<int32_t>(v), weights[v]);
  return logits;
}

int32_t sandwich::test::hashModelNext(std::span<const int32_t> tokens) {
  std::vector<float> logits = hashModelLogits(tokens);
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) -
                              logits.begin());
}
