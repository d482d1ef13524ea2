//===- ServedModel.cpp - A model that a server offers ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Server/ServedModel.h"

#include "LoadedEncoder.h"
#include "LoadedModel.h"

#include "sandwich/Machine/Process/InstanceCpus.h"
#include "sandwich/Runtime/Text/ArtifactTokenizer.h"
#include "sandwich/Service/DraftEngine.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <xxhash.h>

using namespace sandwich;

std::string sandwich::modelNameOf(const std::string &artifactPath) {
  std::filesystem::path path(artifactPath);
  if (!path.has_filename())
    path = path.parent_path();
  const std::string name = path.stem().string();
  return name.empty() ? "model" : name;
}

/// Of this very program, which two builds of a version are not.
static uint64_t buildHash() {
  static const uint64_t hash = [] {
    const Result<MappedFile> program = MappedFile::open("/proc/self/exe");
    return program ? XXH3_64bits(program->text().data(), program->text().size())
                   : 0;
  }();
  return hash;
}

static std::string fingerprintOf(const Artifact &artifact) {
  const std::string text = artifact.manifest().SerializeAsString() +
                           SANDWICH_VERSION + std::to_string(buildHash());
  char hex[24];
  std::snprintf(
      hex, sizeof(hex), "fp_%016llx",
      static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return hex;
}

ServedModel::ServedModel(ServedModelOptions options)
    : options(std::move(options)) {}

ServedModel::~ServedModel() = default;

const LoadedModel *ServedModel::loaded() const {
  return currentState == State::Ready ? model.get() : nullptr;
}

const LoadedEncoder *ServedModel::encoder() const {
  return currentState == State::Ready ? encoderModel.get() : nullptr;
}

std::string ServedModel::failure() const {
  std::lock_guard lock(mutex);
  return failureMessage;
}

Status ServedModel::noteFailure(Status status) {
  if (!status) {
    {
      std::lock_guard lock(mutex);
      failureMessage = status.error().message;
    }
    currentState = State::Failed;
  }
  return status;
}

Status ServedModel::open(MemoryLedger *ledger) {
  const auto read = [&]() -> Status {
    ArtifactOpenOptions either;
    either.use.reset();
    SANDWICH_ASSIGN_OR_RETURN(artifact,
                              Artifact::open(options.artifact, either));
    SANDWICH_ASSIGN_OR_RETURN(tokenizer, loadTokenizer(*artifact));
    contextLength = artifact->manifest().model().context_length();
    if (options.contextLength)
      contextLength = std::min(contextLength, *options.contextLength);
    if (hasDraft()) {
      SANDWICH_ASSIGN_OR_RETURN(draft, Artifact::open(options.draft));
    }
    if (!ledger)
      return {};
    if (artifact->manifest().has_encoding()) {
      ledger->expect(artifact->path(),
                     EncoderEngine::memoryNeeds(*artifact, encoderOptions()));
      return {};
    }
    SANDWICH_ASSIGN_OR_RETURN(const MemoryNeeds needs,
                              Engine::memoryNeeds(*artifact, engineOptions()));
    ledger->expect(artifact->path(), needs);
    if (!draft)
      return {};
    SANDWICH_ASSIGN_OR_RETURN(
        const MemoryNeeds draftNeeds,
        Engine::memoryNeeds(
            *draft, draftEngineOptions(engineOptions(),
                                       options.service.proposedTokens)));
    ledger->expect(draft->path(), draftNeeds);
    return {};
  };
  return noteFailure(read());
}

Status ServedModel::load() {
  const auto make = [&]() -> Status {
    if (artifact->manifest().has_encoding()) {
      SANDWICH_ASSIGN_OR_RETURN(encoderModel, makeEncoder());
    } else {
      SANDWICH_ASSIGN_OR_RETURN(model, makeModel());
    }
    return {};
  };
  SANDWICH_RETURN_IF_ERROR(noteFailure(make()));
  loadedShare = 1;
  currentState = State::Ready;
  return {};
}

/// Reads the chat templates, if there are any. What is wrong with them is told
/// by the requests that need them, as the others do not.
static void readTemplates(const Artifact &artifact, LoadedModel &model,
                          const LogCallback &log) {
  const auto configuration = artifact.file(artifact::tokenizerConfigFile);
  const auto file = artifact.file(artifact::chatTemplateFile);
  if (!configuration && !file)
    return;
  Result<ModelTemplates> read =
      ModelTemplates::read(configuration.value_or("{}"), file);
  if (!read) {
    model.templateProblem =
        "has a chat template that cannot be used: " + read.error().message;
    report(log, LogLevel::Warning,
           "'" + model.name + "' " + model.templateProblem);
    return;
  }
  if (read->empty())
    return;
  model.templates = *std::move(read);
  model.toolCalls =
      findToolCallSyntax(model.templates->sourceFor(/*withTools=*/true));
}

/// What grammars need to know of the tokens.
static void indexVocabulary(LoadedModel &model, const LogCallback &log) {
  const std::optional<Tokenizer> &tokenizer = model.tokenizer();
  if (!tokenizer)
    return;
  const proto::ModelConfiguration &facts = model.service->model();
  std::vector<std::string> bytes(
      std::min<size_t>(tokenizer->vocabularySize(), facts.vocab_size()));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = tokenizer->bytesOf(static_cast<int32_t>(i));
  Result<std::shared_ptr<const TokenVocabulary>> vocabulary =
      TokenVocabulary::create(
          std::move(bytes),
          {facts.eos_token_ids().begin(), facts.eos_token_ids().end()},
          facts.vocab_size());
  if (vocabulary) {
    model.grammars = std::make_unique<GrammarCache>(*std::move(vocabulary));
    return;
  }
  model.grammarProblem = vocabulary.error().message;
  report(log, LogLevel::Warning,
         "'" + model.name +
             "' writes no structured output: " + model.grammarProblem);
}

/// Tokens that all sequences should be able to hold.
static uint64_t cacheTokens(uint64_t contextLength, uint64_t sequences) {
  return checkedMultiply<uint64_t>(contextLength, sequences)
      .value_or(contextLength);
}

ProgressCallback ServedModel::tellProgress() {
  return [this, told = options.engine.progress](uint64_t done, uint64_t total) {
    if (total > 0)
      loadedShare = static_cast<double>(done) / static_cast<double>(total);
    if (told)
      told(done, total);
  };
}

EngineOptions ServedModel::engineOptions() const {
  EngineOptions made = options.engine;
  const uint64_t most = artifact->maxDecodeSequences();
  made.maxSequences = options.service.maxSequences
                          ? std::min(options.service.maxSequences, most)
                          : most;
  made.kvCacheTokens = cacheTokens(contextLength, made.maxSequences);
  made.requiredTokens = contextLength;
  return made;
}

EncoderEngineOptions ServedModel::encoderOptions() const {
  EncoderEngineOptions made;
  made.numaNode = options.engine.numaNode;
  made.weightPlacement =
      options.engine.weightPlacement.value_or(WeightPlacement::Mapped);
  made.verifyWeights = options.engine.verifyWeights;
  made.memoryLedger = options.engine.memoryLedger;
  made.coreArbiter = options.engine.coreArbiter;
  made.coreWeight = options.engine.coreWeight;
  made.progress = options.engine.progress;
  made.log = options.engine.log;
  return made;
}

/// The cores of the model beside accelerators (WindVE, IV.D).
Result<std::vector<unsigned>> ServedModel::chooseCpus() const {
  SANDWICH_ASSIGN_OR_RETURN(const CpuBudget budget, readCpuBudget());
  const unsigned threads = artifact->manifest().phases(0).threads();
  const unsigned reserved = reservedCores(budget.threads());
  std::vector<unsigned> cpus =
      chooseInstanceCpus(budget, threads, reserved, findNodeOfCpu);
  std::string list;
  for (unsigned cpu : cpus)
    list += (list.empty() ? "" : ", ") + std::to_string(cpu);
  if (cpus.empty())
    report(
        options.engine.log, LogLevel::Warning,
        options.artifact + ": its " + std::to_string(threads) +
            " threads leave no " + std::to_string(reserved) +
            " cores to the service and the accelerators' drivers; compile it "
            "with --threads=" +
            std::to_string(std::max(1U, budget.threads() - reserved)));
  else
    report(options.engine.log, LogLevel::Information,
           "'" + options.name + "' embeds on the CPUs " + list + "; " +
               std::to_string(reserved) +
               " cores are left to the service and the accelerators' drivers");
  return cpus;
}

Result<std::unique_ptr<LoadedEncoder>> ServedModel::makeEncoder() {
  if (options.engine.plan)
    return makeError(options.artifact, ": has no prefill and no decode that "
                                       "--plan could be for");
  if (hasDraft())
    return makeError(options.artifact, ": generates no text that a draft could "
                                       "propose");
  auto made = std::make_unique<LoadedEncoder>();
  made->name = options.name;
  made->created = static_cast<int64_t>(unixSeconds());
  made->fingerprint = fingerprintOf(*artifact);
  made->capabilities = capabilitiesOf(artifact->manifest(), contextLength);
  if (Status valid = made->capabilities.validate(); !valid)
    return valid.error().inContext(options.artifact);
  if (tokenizer)
    made->text.emplace(*std::exchange(tokenizer, std::nullopt),
                       artifact->manifest());
  EmbeddingDevicesOptions devices;
  if (!options.devicesFile.empty()) {
    if (made->capabilities.kind != EncoderCapabilities::Kind::Embedding)
      return makeError(options.artifact,
                       ": ranks texts, which devices do not do for it");
    SANDWICH_ASSIGN_OR_RETURN(devices.description,
                              DevicesDescription::read(options.devicesFile));
  }
  EncoderEngineOptions loading = encoderOptions();
  loading.progress = tellProgress();
  if (devices.description.heterogeneous) {
    SANDWICH_ASSIGN_OR_RETURN(loading.cpus, chooseCpus());
  }
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<EncoderEngine> engine,
      EncoderEngine::create(*std::exchange(artifact, std::nullopt), loading));
  EncodingServiceOptions serving;
  serving.waitingTokens = options.service.scheduling.maxWaitingTokens;
  serving.waitingTokens =
      std::max<uint64_t>(serving.waitingTokens, engine->contextLength());
  SANDWICH_ASSIGN_OR_RETURN(
      made->service, EncodingService::create(std::move(engine), serving));
  if (options.devicesFile.empty())
    return made;
  devices.depthsFile = options.depthsFile;
  devices.modelChecksum = made->fingerprint;
  devices.log = options.engine.log;
  Result<std::unique_ptr<EmbeddingDevices>> found =
      EmbeddingDevices::create(*made->service, devices);
  if (!found)
    return found.error().inContext(options.devicesFile);
  made->devices = *std::move(found);
  return made;
}

Result<std::unique_ptr<LoadedModel>> ServedModel::makeModel() {
  auto made = std::make_unique<LoadedModel>();
  made->name = options.name;
  made->created = static_cast<int64_t>(unixSeconds());
  made->fingerprint = fingerprintOf(*artifact);
  made->contextLength = contextLength;
  EngineOptions loading = engineOptions();
  loading.progress = tellProgress();
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(*std::exchange(artifact, std::nullopt), loading));
  const uint64_t blocks = BlockPool::blocksFor(contextLength);
  if (engine->blockPool().blockCount() < blocks)
    return makeError(options.artifact, ": the KV cache has ",
                     engine->blockPool().blockCount(),
                     " blocks, and a text of ", contextLength, " tokens needs ",
                     blocks,
                     "; give it more --kv-memory, or the model a smaller "
                     "--context-length");
  ServiceOptions serving = options.service;
  serving.scheduling.maxWaitingTokens =
      std::max(serving.scheduling.maxWaitingTokens, engine->contextLength());
  made->maxWaitingRequests = serving.scheduling.maxWaitingRequests;
  made->maxWaitingTokens = serving.scheduling.maxWaitingTokens;
  std::unique_ptr<Engine> draftEngine;
  if (draft) {
    SANDWICH_ASSIGN_OR_RETURN(
        draftEngine,
        Engine::create(*std::exchange(draft, std::nullopt),
                       draftEngineOptions(loading, serving.proposedTokens)));
  }
  SANDWICH_ASSIGN_OR_RETURN(
      made->service,
      Service::create(std::move(engine), std::exchange(tokenizer, std::nullopt),
                      serving, std::move(draftEngine)));
  readTemplates(made->service->artifact(), *made, options.service.log);
  indexVocabulary(*made, options.service.log);
  return made;
}
