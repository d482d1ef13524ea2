//===- ServedModel.h - A model that a server offers -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SERVER_SERVEDMODEL_H
#define SANDWICH_SERVER_SERVEDMODEL_H

#include "sandwich/Runtime/Engine/EncoderEngine.h"
#include "sandwich/Service/Service.h"
#include "sandwich/Support/Result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct ServedModelOptions {
  /// What requests call it.
  std::string name;
  /// The folder of its artifact.
  std::string artifact;
  EngineOptions engine = {};
  ServiceOptions service = {};
  /// With `ProposalSource::Draft`: the artifact of the smaller model.
  std::string draft = {};
  /// Tokens of a prompt and its text together, at most the model's; nothing:
  /// the model's.
  std::optional<uint64_t> contextLength = {};
  /// Of a model that embeds: the file of the devices that do, and where depths
  /// of their queues are kept; empty: this CPU alone, and nowhere.
  std::string devicesFile = {};
  std::string depthsFile = {};
};

struct LoadedEncoder;
struct LoadedModel;

/// A model from the moment that it is asked for. All calls may come from any
/// thread.
class ServedModel {
public:
  enum class State { Loading, Ready, Failed };

  explicit ServedModel(ServedModelOptions options);
  ~ServedModel();

  const std::string &name() const { return options.name; }
  State state() const { return currentState; }
  /// Of the weights that are loaded, from 0 to 1.
  double progress() const { return loadedShare; }
  bool isReady() const { return currentState == State::Ready; }
  /// Null unless it is ready and generates text.
  const LoadedModel *loaded() const;
  /// Null unless it is ready and embeds or ranks texts.
  const LoadedEncoder *encoder() const;
  /// Why it failed.
  std::string failure() const;

  /// Reads what it is, and tells `ledger`, if there is one, what it will need.
  /// Errors: as `Artifact::open`, `loadTokenizer` and `Engine::memoryNeeds`.
  Status open(MemoryLedger *ledger);

  /// Loads it after it was opened, which takes its time. Errors: as
  /// `Engine::create`, `EncoderEngine::create` and `Service::create`; a KV
  /// cache in which a text of the whole context has no room, as a legal request
  /// could never run.
  Status load();

private:
  Status noteFailure(Status status);
  /// Of a load: to `loadedShare` and to who asked for it.
  ProgressCallback tellProgress();
  EngineOptions engineOptions() const;
  bool hasDraft() const {
    return options.service.proposals == ProposalSource::Draft;
  }
  EncoderEngineOptions encoderOptions() const;
  Result<std::unique_ptr<LoadedModel>> makeModel();
  Result<std::vector<unsigned>> chooseCpus() const;
  Result<std::unique_ptr<LoadedEncoder>> makeEncoder();

  ServedModelOptions options;
  /// From `open` to `load`.
  std::optional<Artifact> artifact;
  std::optional<Artifact> draft;
  std::optional<Tokenizer> tokenizer;
  uint64_t contextLength = 0;
  std::atomic<State> currentState = State::Loading;
  std::atomic<double> loadedShare = 0;
  mutable std::mutex mutex;
  std::string failureMessage;
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<LoadedEncoder> encoderModel;
};

/// "llama" of "models/llama.sandwich/".
std::string modelNameOf(const std::string &artifactPath);

} // namespace sandwich

#endif // SANDWICH_SERVER_SERVEDMODEL_H
