//===- StatusReport.cpp - What a server tells of itself -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StatusReport.h"

#include "LoadedEncoder.h"
#include "LoadedModel.h"

#include <algorithm>
#include <set>

using namespace sandwich;

/// The CPUs of a team, each once.
static Json coresOf(const TeamPlacement &team) {
  std::set<unsigned> cores;
  for (const std::vector<unsigned> &thread : team)
    cores.insert(thread.begin(), thread.end());
  return cores;
}

static const char *phaseName(const std::optional<StepPhase> &phase) {
  if (!phase)
    return "idle";
  return *phase == StepPhase::Prefill ? "prefill" : "decode";
}

static Json describeStatus(const ServedModel &model,
                           const ModelRegistry &models) {
  Json aliases = Json::array();
  for (const auto &[alias, name] : models.aliases())
    if (name == model.name())
      aliases.push_back(alias);
  Json json = {{"id", model.name()}, {"aliases", std::move(aliases)}};
  const LoadedModel *loaded = model.loaded();
  if (const LoadedEncoder *encoder = model.encoder()) {
    const proto::Manifest &manifest = encoder->manifest();
    const EncodingCounts counts = encoder->service->counts();
    json.update({{"state", "ready"},
                 {"context_length", encoder->contextLength()},
                 {"architecture", manifest.model().architecture()},
                 {"target", manifest.target().name()},
                 {"weights_dtype", manifest.target().dtype()},
                 {"dimensions", encoder->capabilities.dimensions},
                 {"running_texts", counts.runningTexts},
                 {"waiting_texts", counts.waitingTexts},
                 {"totals",
                  {{"texts", counts.texts},
                   {"tokens", counts.tokens},
                   {"batches", counts.batches},
                   {"seconds", counts.seconds}}}});
    return json;
  }
  if (!loaded) {
    const bool failed = model.state() == ServedModel::State::Failed;
    json["state"] = failed ? "failed" : "loading";
    json["progress"] = model.progress();
    return json;
  }
  const proto::Manifest &manifest = loaded->service->artifact().manifest();
  Json prefill = Json::array(), decode = Json::array();
  for (const RankPlacement &rank : loaded->service->rankPlacement()) {
    prefill.push_back(coresOf(rank.prefill));
    decode.push_back(coresOf(rank.decode));
  }
  const ServiceStatistics statistics = loaded->service->statistics();
  const SchedulerStatistics &scheduler = statistics.scheduler;
  json.update({{"state", "ready"},
               {"context_length", loaded->contextLength},
               {"architecture", manifest.model().architecture()},
               {"target", manifest.target().name()},
               {"weights_dtype", manifest.target().dtype()},
               {"ranks", std::max(1u, manifest.ranks())},
               {"plan",
                {{"prefill_cores", std::move(prefill)},
                 {"decode_cores", std::move(decode)}}},
               {"running_requests", scheduler.runningRequests},
               {"running_texts", scheduler.runningTexts},
               {"waiting_requests", scheduler.waitingRequests},
               {"kv_blocks",
                {{"used", scheduler.usedBlocks},
                 {"cached", statistics.idleCachedBlocks},
                 {"total", statistics.blockCount}}},
               {"has_chat_template", loaded->templates.has_value()},
               {"phase", phaseName(scheduler.phase)},
               {"totals",
                {{"requests", statistics.requests},
                 {"refused", statistics.refusedRequests},
                 {"prompt_tokens", scheduler.promptTokens},
                 {"cached_prompt_tokens", scheduler.promptTokensHit},
                 {"generated_tokens", scheduler.generatedTokens},
                 {"preemptions", scheduler.preemptions},
                 {"prefill_steps", scheduler.prefill.steps},
                 {"decode_steps", scheduler.decode.steps},
                 {"prefill_seconds", scheduler.prefill.seconds},
                 {"decode_seconds", scheduler.decode.seconds},
                 {"drafted_tokens", scheduler.speculation.proposedTokens},
                 {"accepted_tokens", scheduler.speculation.acceptedTokens}}}});
  return json;
}

Json sandwich::describeStatus(const ModelRegistry &models, double uptimeSeconds,
                              bool draining) {
  Json list = Json::array();
  for (const auto &model : models.models())
    list.push_back(::describeStatus(*model, models));
  return {{"version", SANDWICH_VERSION},
          {"uptime_seconds", uptimeSeconds},
          {"draining", draining},
          {"models", std::move(list)}};
}
