//===- WriteSumModel.cpp - The artifact of the tests' encoder -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WriteSumModel.h"

#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"

#include <vector>

using namespace sandwich;
using namespace sandwich::test;

/// WordPiece of single letters, with BERT's template for a text and for a pair.
static std::string makeTokenizer() {
  Json vocabulary = {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}};
  for (int unused = 3; unused < 10; ++unused)
    vocabulary["[unused" + std::to_string(unused) + "]"] = unused;
  for (int letter = 0; letter < 26; ++letter)
    vocabulary[std::string(1, static_cast<char>('a' + letter))] = 10 + letter;
  Json added = Json::array();
  for (const char *name : {"[UNK]", "[CLS]", "[SEP]"})
    added.push_back({{"id", vocabulary[name]},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  auto special = [](const char *name, int type) -> Json {
    return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  auto sequence = [](const char *name, int type) -> Json {
    return {{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  auto definition = [](const char *name, int id) -> Json {
    return {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)}},
        {"pair",
         {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0),
          sequence("B", 1), special("[SEP]", 1)}},
        {"special_tokens",
         {{"[CLS]", definition("[CLS]", 1)},
          {"[SEP]", definition("[SEP]", 2)}}}}},
      {"decoder", nullptr},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary}}}};
  return tokenizer.dump();
}

Status sandwich::test::writeSumModel(
    const std::string &path,
    const std::function<void(proto::Manifest &)> &change) {
  SANDWICH_ASSIGN_OR_RETURN(ArtifactWriter writer,
                            ArtifactWriter::create(path));
  proto::Tensor tensor;
  tensor.set_name("nothing");
  tensor.set_dtype("f32");
  tensor.add_shape(16);
  tensor.set_layout("row-major");
  SANDWICH_ASSIGN_OR_RETURN([[maybe_unused]] uint64_t offset,
                            writer.beginTensor(tensor));
  const std::vector<float> nothing(16);
  SANDWICH_RETURN_IF_ERROR(
      writer.appendWeights(std::as_bytes(std::span(nothing))));
  SANDWICH_ASSIGN_OR_RETURN(
      std::string phases, readTextFile(SANDWICH_TEST_PHASES, size_t{1} << 24));
  SANDWICH_RETURN_IF_ERROR(writer.addFile(artifact::phasesFile, phases));
  SANDWICH_RETURN_IF_ERROR(
      writer.addFile(artifact::tokenizerFile, makeTokenizer()));
  proto::Manifest manifest;
  proto::ModelConfiguration &model = *manifest.mutable_model();
  model.set_name("sum-model");
  model.set_architecture("SumModel");
  model.set_hidden_size(SUM_MODEL_COLUMNS);
  model.set_intermediate_size(1);
  model.set_layers(3);
  model.set_heads(1);
  model.set_kv_heads(1);
  model.set_head_dim(1);
  model.set_vocab_size(SUM_MODEL_VOCABULARY);
  model.set_context_length(SUM_MODEL_CONTEXT);
  model.set_parameters(16);
  proto::Encoding &encoding = *manifest.mutable_encoding();
  encoding.set_pooling("mean");
  encoding.set_token_types(SUM_MODEL_TYPES);
  for (const auto &[name, text] : {std::pair("query", "q "), {"passage", ""}}) {
    proto::Prompt &prompt = *encoding.add_prompts();
    prompt.set_name(name);
    prompt.set_text(text);
  }
  proto::Target &target = *manifest.mutable_target();
  target.set_name("any");
  target.set_dtype("f32");
  target.set_phase_abi_version(SANDWICH_PHASE_ABI_VERSION);
  for (const char *name : {artifact::embedPhase, artifact::embedTokensPhase}) {
    proto::Phase &phase = *manifest.add_phases();
    phase.set_name(name);
    phase.set_symbol(std::string("sum_model_") + name);
    phase.set_threads(SUM_MODEL_THREADS);
    phase.set_max_tokens(SUM_MODEL_TOKENS);
    phase.set_max_logit_rows(SUM_MODEL_TOKENS);
    phase.set_workspace_bytes(64);
  }
  proto::KVCache &cache = *manifest.mutable_kv_cache();
  cache.set_block_tokens(SANDWICH_KV_BLOCK_TOKENS);
  cache.set_block_bytes(SANDWICH_KV_BLOCK_TOKENS * 2 * sizeof(float));
  cache.set_dtype("f32");
  if (change)
    change(manifest);
  return writer.commit(std::move(manifest));
}
