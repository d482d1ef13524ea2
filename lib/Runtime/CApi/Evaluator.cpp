//===- Evaluator.cpp - Logits of texts, for C -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Description.h"
#include "Loading.h"

#include <algorithm>
#include <memory>

using namespace sandwich;
using namespace sandwich::capi;

struct sandwich_evaluator {
  sandwich_description description;
  std::unique_ptr<Engine> engine;
};

sandwich_status sandwich_evaluator_load(const char *path,
                                        const sandwich_load_options *options,
                                        sandwich_evaluator **out,
                                        char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(path, "path"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_ASSIGN_OR_RETURN(EngineOptions engineOptions,
                              readLoadOptions(options));
    engineOptions.prefixCache = false;
    SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    SANDWICH_ASSIGN_OR_RETURN(sandwich_description description,
                              describe(artifact));
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<Engine> engine,
        Engine::create(std::move(artifact), engineOptions));
    *out = new sandwich_evaluator{std::move(description), std::move(engine)};
    return {};
  });
}

void sandwich_evaluator_free(sandwich_evaluator *evaluator) {
  delete evaluator;
}

const sandwich_description *
sandwich_evaluator_describe(const sandwich_evaluator *evaluator) {
  return evaluator ? &evaluator->description : nullptr;
}

sandwich_status sandwich_evaluator_logits(sandwich_evaluator *evaluator,
                                          const int32_t *tokens, size_t count,
                                          float *logits, char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(evaluator, "evaluator"));
    SANDWICH_RETURN_IF_ERROR(requireArray(tokens, count, "tokens"));
    SANDWICH_RETURN_IF_ERROR(requireArray(logits, count, "logits"));
    Engine &engine = *evaluator->engine;
    Sequence sequence = engine.newSequence();
    return engine.feed(sequence, {tokens, count}, LogitRows::All,
                       [&](std::span<const float> rows, uint64_t firstToken,
                           uint64_t) -> Status {
                         std::copy(rows.begin(), rows.end(),
                                   logits + firstToken * engine.vocabSize());
                         return {};
                       });
  });
}
