//===- ModelEndpoints.cpp - GET /v1/models --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Endpoints.h"
#include "Responses.h"

using namespace sandwich;

static Json entryOf(const std::string &id, const ServedModel &model) {
  const LoadedModel *loaded = model.loaded();
  const LoadedEncoder *encoder = model.encoder();
  return {{"id", id},
          {"object", "model"},
          {"created", loaded    ? loaded->created
                      : encoder ? encoder->created
                                : 0},
          {"owned_by", "sandwich"},
          {"root", model.name()},
          {"parent", id == model.name() ? Json() : Json(model.name())},
          {"max_model_len", loaded    ? Json(loaded->contextLength)
                            : encoder ? Json(encoder->contextLength())
                                      : Json()}};
}

/// Calls `each` with all names and their models.
template <typename Each>
static void forEachName(const ModelRegistry &models, Each each) {
  for (const auto &model : models.models())
    each(model->name(), *model);
  for (const auto &[alias, name] : models.aliases())
    for (const auto &model : models.models())
      if (model->name() == name)
        each(alias, *model);
}

HttpResponse sandwich::listModels(const ModelRegistry &models) {
  Json list = Json::array();
  forEachName(models, [&](const std::string &id, const ServedModel &model) {
    list.push_back(entryOf(id, model));
  });
  return toResponse(Json{{"object", "list"}, {"data", std::move(list)}});
}

HttpResponse sandwich::describeModel(const ModelRegistry &models,
                                     const std::string &name) {
  std::optional<Json> found;
  forEachName(models, [&](const std::string &id, const ServedModel &model) {
    if (id == name)
      found = entryOf(id, model);
  });
  return found ? toResponse(*found) : toResponse(ApiError::unknownModel(name));
}
