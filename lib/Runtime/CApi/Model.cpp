//===- Model.cpp - A model that serves, for C -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "Calls.h"
#include "Loading.h"

#include "sandwich/Support/CheckedMath.h"

#include <algorithm>

using namespace sandwich;
using namespace sandwich::capi;

/// Sequences of the whole context for which the KV cache has room where its
/// size is not given.
static constexpr uint64_t usualWholeSequences = 4;

static ServiceOptions serviceOptionsOf(const sandwich_serving_options &given,
                                       const Artifact &artifact) {
  ServiceOptions service;
  service.maxSequences = given.max_sequences;
  service.restartRanks = given.restart_ranks != 0;
  SchedulerOptions &scheduling = service.scheduling;
  if (given.max_waiting_requests)
    scheduling.maxWaitingRequests = given.max_waiting_requests;
  // There is room for the longest prompt.
  scheduling.maxWaitingTokens =
      std::max<uint64_t>(scheduling.maxWaitingTokens,
                         artifact.manifest().model().context_length());
  if (given.first_token_objective != 0)
    scheduling.firstTokenObjective = given.first_token_objective;
  if (given.token_objective != 0)
    scheduling.tokenObjective = given.token_objective;
  return service;
}

/// The cache that the sequences which may run together want.
static void chooseCache(const sandwich_serving_options &given,
                        const Artifact &artifact, EngineOptions &engine) {
  engine.prefixCache = !given.no_prefix_cache;
  engine.maxSequences =
      std::min(artifact.maxDecodeSequences(), usualWholeSequences);
  if (given.max_sequences)
    engine.maxSequences = std::min(engine.maxSequences, given.max_sequences);
  engine.kvCacheTokens =
      checkedMultiply<uint64_t>(engine.maxSequences,
                                artifact.manifest().model().context_length())
          .value_or(UINT64_MAX);
}

sandwich_status
sandwich_model_load(const char *path, const sandwich_load_options *load_options,
                    const sandwich_serving_options *serving_options,
                    sandwich_model **out, char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(path, "path"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_ASSIGN_OR_RETURN(EngineOptions engineOptions,
                              readLoadOptions(load_options));
    SANDWICH_ASSIGN_OR_RETURN(
        const sandwich_serving_options given,
        readStructure(serving_options, "serving options"));
    SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    SANDWICH_ASSIGN_OR_RETURN(sandwich_description description,
                              describe(artifact));
    const ServiceOptions serviceOptions = serviceOptionsOf(given, artifact);
    chooseCache(given, artifact, engineOptions);
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<Engine> engine,
        Engine::create(std::move(artifact), engineOptions));
    SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Service> service,
                              Service::create(std::move(engine),
                                              description.tokenizer,
                                              serviceOptions));
    auto running = std::make_shared<RunningService>(std::move(service));
    *out = new sandwich_model{std::move(description), std::move(running)};
    return {};
  });
}

void sandwich_model_free(sandwich_model *model) { delete model; }

const sandwich_description *
sandwich_model_describe(const sandwich_model *model) {
  return model ? &model->description : nullptr;
}

sandwich_status sandwich_model_statistics(const sandwich_model *model,
                                          sandwich_statistics *out,
                                          char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(model, "model"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_ASSIGN_OR_RETURN(sandwich_statistics told,
                              readStructure(out, "statistics"));
    SANDWICH_ASSIGN_OR_RETURN(const ServiceStatistics found,
                              model->service->statistics());
    told.requests = found.requests;
    told.refused_requests = found.refusedRequests;
    told.generated_tokens = found.generatedTokens;
    told.waiting_requests = found.scheduler.waitingRequests;
    told.running_requests = found.scheduler.runningRequests;
    told.running_texts = found.scheduler.runningTexts;
    told.blocks = found.blockCount;
    told.used_blocks = found.scheduler.usedBlocks;
    told.steps = found.scheduler.steps;
    told.preemptions = found.scheduler.preemptions;
    told.prompt_tokens = found.scheduler.promptTokensQueried;
    told.cached_prompt_tokens = found.scheduler.promptTokensHit;
    std::memcpy(out, &told, told.struct_size);
    return {};
  });
}
