//===- ModelRegistry.h - Models by their names ------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_MODELREGISTRY_H
#define SANDWICH_LIB_SERVER_MODELREGISTRY_H

#include "LoadedEncoder.h"
#include "LoadedModel.h"
#include "ModelMetrics.h"

#include "sandwich/Api/ApiError.h"
#include "sandwich/Server/ServedModel.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sandwich {

/// A model that is ready, with what is counted of it.
struct ReadyModel {
  const LoadedModel *model;
  ModelMetrics *metrics;
};

/// The models of a server. Which there are never changes.
class ModelRegistry {
public:
  /// Errors: as `ApiServer::create` of names and aliases.
  static Result<std::unique_ptr<ModelRegistry>>
  create(std::vector<ServedModelOptions> models,
         std::map<std::string, std::string> aliases);

  const std::vector<std::unique_ptr<ServedModel>> &models() const {
    return all;
  }
  const std::map<std::string, std::string> &aliases() const {
    return otherNames;
  }

  /// The model of this name or alias; the only one that generates if `name` is
  /// empty. Errors: 404 there is none, 400 which of several, or one that does
  /// not generate, 503 it is not ready.
  std::variant<ReadyModel, ApiError> find(const std::string &name) const;

  /// The same of models that embed or rank texts, those of `kind` if that is
  /// given.
  std::variant<const LoadedEncoder *, ApiError>
  findEncoder(const std::string &name,
              std::optional<EncoderCapabilities::Kind> kind) const;

  /// Counts a request for texts that is over, whatever became of it.
  void count(const RequestRecord &record);

  /// In the format of Prometheus, with lines that the log lost if there is one.
  std::string metricsText(std::optional<uint64_t> lostLogLines) const;

  bool allReady() const;

private:
  ModelRegistry();
  /// The number of the model of `name`; if that is empty, of the only one that
  /// `fits`, which is asked of models that are ready.
  std::variant<size_t, ApiError>
  indexOf(const std::string &name,
          const std::function<bool(const ServedModel &)> &fits) const;

  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter> &statuses;
  std::vector<std::unique_ptr<ModelMetrics>> metrics;
  std::map<std::string, std::string> otherNames;
  std::map<std::string, size_t> byName;
  /// End first: their last requests are counted.
  std::vector<std::unique_ptr<ServedModel>> all;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_MODELREGISTRY_H
