//===- SentenceTransformers.cpp - How a folder's vectors are made ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model of `sentence-transformers` is a list of modules, `modules.json`: the
/// transformer, what pools its states, and what may be done to the vector.
///
//===----------------------------------------------------------------------===//

#include "ConfigFields.h"
#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Support/ModelLimits.h"

#include <algorithm>
#include <array>
#include <string>

using namespace sandwich;

static constexpr char modulesFile[] = "modules.json";
static constexpr char lengthFile[] = "sentence_bert_config.json";
static constexpr char promptsFile[] = "config_sentence_transformers.json";
static constexpr size_t mostPrompts = 1 << 10;
static constexpr size_t mostPromptNameBytes = 1 << 10;
/// Of prompts, together.
static constexpr size_t mostPromptBytes = size_t(1) << 20;

std::string_view sandwich::poolingName(Pooling pooling) {
  return std::array<std::string_view, 3>{"cls", "mean",
                                         "last"}[static_cast<size_t>(pooling)];
}

namespace {
struct Module {
  std::string kind;
  std::string path;
};
} // namespace

/// Whether `path` is a folder in the model's, short and printable, so that
/// errors can name its files.
static bool isInnerFolder(const std::string &path) {
  constexpr size_t mostBytes = 255;
  return !path.empty() && path.size() <= mostBytes && !path.starts_with('/') &&
         !path.starts_with('.') && path.find("..") == path.npos &&
         std::ranges::all_of(path, [](char c) { return c >= ' ' && c <= '~'; });
}

static Result<std::vector<Module>> readModules(std::string_view text) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseJson(text));
  if (!document.is_array())
    return makeError("is ", describe(document),
                     "; a list of modules is expected");
  std::vector<Module> modules;
  for (const Json &each : document) {
    auto text = [&](const char *name) -> const std::string * {
      auto field = each.is_object() ? each.find(name) : each.end();
      return each.is_object() && field != each.end() && field->is_string()
                 ? &field->get_ref<const std::string &>()
                 : nullptr;
    };
    const std::string *type = text("type"), *path = text("path");
    if (!type || !path)
      return makeError("has ", describe(each),
                       "; modules have a type and a path");
    // "sentence_transformers.models.Pooling", "custom_st.Transformer"
    modules.push_back({type->substr(type->rfind('.') + 1), *path});
  }
  auto isKind = [&](size_t index, std::string_view kind) {
    return index < modules.size() && modules[index].kind == kind;
  };
  if (!isKind(0, "Transformer") || !isKind(1, "Pooling") ||
      modules.size() > 3 || (modules.size() == 3 && !isKind(2, "Normalize"))) {
    Json kinds = Json::array();
    for (const Module &module : modules)
      kinds.push_back(module.kind);
    return makeError(
        "has the modules ", describe(kinds),
        "; Transformer, Pooling and maybe Normalize are supported");
  }
  if (!modules[0].path.empty() && modules[0].path != ".")
    return makeError("has Transformer in ", quote(modules[0].path),
                     "; config.json and the weights are expected beside ",
                     modulesFile);
  if (!isInnerFolder(modules[1].path))
    return makeError("has Pooling in ", quote(modules[1].path),
                     "; a folder in the model's is expected");
  return modules;
}

namespace {
/// A way to pool, by its name and by the flag that older files have instead.
struct PoolingMode {
  const char *name;
  const char *flag;
  Pooling pooling;
};
} // namespace

static const PoolingMode poolingModes[] = {
    {"cls", "pooling_mode_cls_token", Pooling::Cls},
    {"mean", "pooling_mode_mean_tokens", Pooling::Mean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::Last},
};

/// A name, or a list of one, wins over all flags.
static Result<Pooling> readPoolingMode(const Json &document) {
  Fields fields(document, "");
  if (const Json *field = fields.find("pooling_mode")) {
    const Json &chosen =
        field->is_array() && field->size() == 1 ? field->front() : *field;
    for (const PoolingMode &mode : poolingModes)
      if (chosen == mode.name)
        return mode.pooling;
    return fields.refuse("pooling_mode", "; one of \"cls\", \"mean\" and "
                                         "\"lasttoken\" is expected");
  }
  // Whatever other ways there are.
  for (const auto &[name, value] : document.items()) {
    if (!name.starts_with("pooling_mode_") ||
        std::ranges::find(poolingModes, name, &PoolingMode::flag) !=
            std::end(poolingModes))
      continue;
    SANDWICH_ASSIGN_OR_RETURN(bool chosen,
                              fields.booleanOr(name.c_str(), false));
    if (chosen)
      return fields.refuse(name.c_str(),
                           ", which is not supported (cls_token, mean_tokens "
                           "and lasttoken are)");
  }
  std::optional<Pooling> pooling;
  for (const PoolingMode &mode : poolingModes) {
    SANDWICH_ASSIGN_OR_RETURN(bool chosen, fields.booleanOr(mode.flag, false));
    if (!chosen)
      continue;
    if (pooling)
      return fields.refuse(mode.flag, ", but so is another; one is expected");
    pooling = mode.pooling;
  }
  return pooling.value_or(Pooling::Mean);
}

static Result<Pooling> readPooling(std::string_view text, int64_t hiddenSize) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseObject(text));
  Fields fields(document, "");
  // The newer name and the older one.
  for (const char *name : {"embedding_dimension", "word_embedding_dimension"}) {
    SANDWICH_ASSIGN_OR_RETURN(
        int64_t size,
        fields.integerOr(name, hiddenSize, 1, model_limits::hiddenSize));
    if (size != hiddenSize)
      return fields.refuse(name, "; hidden_size of config.json is ",
                           hiddenSize);
  }
  SANDWICH_ASSIGN_OR_RETURN(bool includesPrompt,
                            fields.booleanOr("include_prompt", true));
  if (!includesPrompt)
    return fields.refuse("include_prompt", ", which is not supported");
  return readPoolingMode(document);
}

static Status readLength(std::string_view text, const ModelConfig &config,
                         EmbeddingConfig &embedding) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseObject(text));
  Fields fields(document, "");
  SANDWICH_ASSIGN_OR_RETURN(bool lowers,
                            fields.booleanOr("do_lower_case", false));
  if (lowers)
    return fields.refuse("do_lower_case",
                         ", which is the tokenizer's to do here");
  if (!fields.find("max_seq_length"))
    return {};
  SANDWICH_ASSIGN_OR_RETURN(
      int64_t most,
      fields.integer("max_seq_length", 1, model_limits::contextLength));
  if (most < config.maxPositionEmbeddings)
    embedding.maxTokens = most;
  return {};
}

static Status readPrompts(std::string_view text, EmbeddingConfig &embedding) {
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseObject(text));
  Fields fields(document, "");
  size_t bytes = 0;
  if (const Json *prompts = fields.find("prompts")) {
    if (!prompts->is_object())
      return fields.refuse("prompts", "; an object is expected");
    for (const auto &[name, prompt] : prompts->items()) {
      if (!prompt.is_string())
        return makeError("prompts: ", quote(name), " is ", describe(prompt),
                         "; a text is expected");
      if (name.empty() || name.size() > mostPromptNameBytes)
        return makeError("prompts: ", quote(name), " is a name of ",
                         name.size(), " bytes; 1 to ", mostPromptNameBytes,
                         " are accepted");
      if (embedding.prompts.size() == mostPrompts)
        return makeError("prompts has more than ", mostPrompts, " texts");
      embedding.prompts.emplace_back(name, prompt.get<std::string>());
      bytes += name.size() + embedding.prompts.back().second.size();
    }
  }
  if (bytes > mostPromptBytes)
    return makeError("prompts has ", bytes, " bytes; at most ", mostPromptBytes,
                     " are accepted");
  const Json *name = fields.find("default_prompt_name");
  if (!name)
    return {};
  for (const auto &[known, prompt] : embedding.prompts)
    if (*name == known) {
      embedding.defaultPrompt = known;
      return {};
    }
  return fields.refuse("default_prompt_name", ", which prompts does not have");
}

Status sandwich::addSentenceTransformers(ModelConfig &config,
                                         const FolderReader &read) {
  // Calls `parse` with the text of `path`, if it is there.
  auto withFile =
      [&](const std::string &path,
          const std::function<Status(std::string_view)> &parse) -> Status {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<std::string> text, read(path));
    Status status = text ? parse(*text) : Status();
    return status ? status : status.error().inContext(path);
  };
  std::vector<Module> modules;
  SANDWICH_RETURN_IF_ERROR(
      withFile(modulesFile, [&](std::string_view text) -> Status {
        SANDWICH_ASSIGN_OR_RETURN(modules, readModules(text));
        if (config.labels > 0)
          return makeError("makes vectors, but the architecture is one that "
                           "classifies");
        return {};
      }));
  if (modules.empty())
    return {};
  EmbeddingConfig embedding = config.embedding.value_or(EmbeddingConfig());
  embedding.normalize = modules.size() == 3;
  const std::string poolingFile = modules[1].path + "/config.json";
  bool pools = false;
  SANDWICH_RETURN_IF_ERROR(
      withFile(poolingFile, [&](std::string_view text) -> Status {
        pools = true;
        SANDWICH_ASSIGN_OR_RETURN(embedding.pooling,
                                  readPooling(text, config.hiddenSize));
        return {};
      }));
  if (!pools)
    return makeError(modulesFile, ": has Pooling in ", quote(modules[1].path),
                     ", but ", poolingFile, " is absent");
  SANDWICH_RETURN_IF_ERROR(withFile(lengthFile, [&](std::string_view text) {
    return readLength(text, config, embedding);
  }));
  SANDWICH_RETURN_IF_ERROR(withFile(promptsFile, [&](std::string_view text) {
    return readPrompts(text, embedding);
  }));
  config.embedding = std::move(embedding);
  return {};
}
