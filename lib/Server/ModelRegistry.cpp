//===- ModelRegistry.cpp - Models by their names --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelRegistry.h"

#include "sandwich/Api/GenerationParameters.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <prometheus/counter.h>
#include <prometheus/text_serializer.h>

using namespace sandwich;

static Status checkName(const std::string &name) {
  if (name.empty() || name.size() > GenerationParameters::nameBytes ||
      findInvalidUtf8(name))
    return makeError("a model's name has 1 to ",
                     GenerationParameters::nameBytes, " bytes of UTF-8");
  return {};
}

ModelRegistry::ModelRegistry()
    : statuses(prometheus::BuildCounter()
                   .Name("sandwich_responses_total")
                   .Help("Requests for texts, by their status of HTTP; 499: "
                         "the client left.")
                   .Register(registry)) {}

Result<std::unique_ptr<ModelRegistry>>
ModelRegistry::create(std::vector<ServedModelOptions> models,
                      std::map<std::string, std::string> aliases) {
  if (models.empty())
    return makeError("a server needs at least one model");
  std::unique_ptr<ModelRegistry> made(new ModelRegistry);
  for (ServedModelOptions &options : models) {
    SANDWICH_RETURN_IF_ERROR(checkName(options.name));
    if (!made->byName.emplace(options.name, made->all.size()).second)
      return makeError("two models are called '", options.name,
                       "'; give one another name, as NAME=ARTIFACT");
    made->all.push_back(std::make_unique<ServedModel>(std::move(options)));
    made->metrics.push_back(
        std::make_unique<ModelMetrics>(made->registry, *made->all.back()));
  }
  for (const auto &[alias, name] : aliases) {
    SANDWICH_RETURN_IF_ERROR(checkName(alias));
    const auto model = made->byName.find(name);
    if (model == made->byName.end())
      return makeError("the alias '", alias, "' is of '", name,
                       "', which is no model");
    if (!made->byName.emplace(alias, model->second).second)
      return makeError("the alias '", alias, "' is the name of a model");
  }
  made->otherNames = std::move(aliases);
  return made;
}

std::variant<size_t, ApiError> ModelRegistry::indexOf(
    const std::string &name,
    const std::function<bool(const ServedModel &)> &fits) const {
  size_t index = 0;
  if (!name.empty()) {
    const auto found = byName.find(name);
    if (found == byName.end())
      return ApiError::unknownModel(name);
    index = found->second;
  } else if (all.size() > 1) {
    // What is being loaded may fit, too.
    std::vector<size_t> fitting;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i]->state() == ServedModel::State::Loading || fits(*all[i]))
        fitting.push_back(i);
    if (fitting.size() != 1)
      return ApiError::ofField("model",
                               "model is missing; /v1/models lists those that "
                               "are served here");
    index = fitting.front();
  }
  const ServedModel &model = *all[index];
  if (model.isReady())
    return index;
  if (model.state() == ServedModel::State::Failed)
    return ApiError::unavailable("the model '" + model.name() +
                                 "' could not be loaded");
  return ApiError::unavailable("the model '" + model.name() +
                               "' is still being loaded");
}

std::variant<ReadyModel, ApiError>
ModelRegistry::find(const std::string &name) const {
  auto index = indexOf(
      name, [](const ServedModel &model) { return model.loaded() != nullptr; });
  if (auto *error = std::get_if<ApiError>(&index))
    return std::move(*error);
  const ServedModel &model = *all[std::get<size_t>(index)];
  if (const LoadedModel *loaded = model.loaded())
    return ReadyModel{loaded, metrics[std::get<size_t>(index)].get()};
  return ApiError::ofField("model",
                           "the model '" + model.name() +
                               "' generates no text; ask /v1/embeddings or "
                               "/v1/rerank");
}

static const char *lackOf(EncoderCapabilities::Kind kind) {
  return kind == EncoderCapabilities::Kind::Embedding ? "embeds no texts"
                                                      : "ranks no texts";
}

std::variant<const LoadedEncoder *, ApiError> ModelRegistry::findEncoder(
    const std::string &name,
    std::optional<EncoderCapabilities::Kind> kind) const {
  auto fits = [&](const ServedModel &model) {
    const LoadedEncoder *encoder = model.encoder();
    return encoder && (!kind || encoder->capabilities.kind == *kind);
  };
  auto index = indexOf(name, fits);
  if (auto *error = std::get_if<ApiError>(&index))
    return std::move(*error);
  const ServedModel &model = *all[std::get<size_t>(index)];
  if (fits(model))
    return model.encoder();
  return ApiError::ofField(
      "model", "the model '" + model.name() + "' " +
                   (kind ? lackOf(*kind) : "neither embeds nor ranks texts"));
}

void ModelRegistry::count(const RequestRecord &record) {
  // Whatever clients call models, there are as many counters as models.
  const auto found = byName.find(record.model);
  const std::string name =
      found == byName.end() ? "" : all[found->second]->name();
  statuses
      .Add({{"model_name", name},
            {"engine", "0"},
            {"status", std::to_string(record.status)}})
      .Increment();
}

bool ModelRegistry::allReady() const {
  return std::ranges::all_of(
      all, [](const auto &model) { return model->isReady(); });
}

std::string
ModelRegistry::metricsText(std::optional<uint64_t> lostLogLines) const {
  std::vector<prometheus::MetricFamily> families = registry.Collect();
  for (prometheus::MetricFamily &each : ServiceCollector(all).Collect())
    families.push_back(std::move(each));
  if (lostLogLines) {
    prometheus::ClientMetric lost;
    lost.counter.value = static_cast<double>(*lostLogLines);
    families.push_back({"sandwich_lost_log_lines_total",
                        "Lines of requests that the log had no room for.",
                        prometheus::MetricType::Counter,
                        {std::move(lost)}});
  }
  return prometheus::TextSerializer().Serialize(families);
}
