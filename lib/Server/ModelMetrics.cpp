//===- ModelMetrics.cpp - What is counted of a model's requests -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelMetrics.h"

#include "LoadedEncoder.h"
#include "LoadedModel.h"

#include <cmath>
#include <prometheus/counter.h>
#include <prometheus/family.h>

using namespace sandwich;

using Buckets = prometheus::Histogram::BucketBoundaries;

static const Buckets firstTokenBuckets = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
static const Buckets tokenBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                     0.3,  0.4,   0.5,  0.75,  1,   2.5,  5,
                                     7.5,  10,    20,   40,    80};
static const Buckets requestBuckets = {0.3, 0.5, 0.8, 1,   1.5, 2,    2.5,
                                       5,   10,  15,  20,  30,  40,   50,
                                       60,  120, 240, 480, 960, 1920, 7680};

/// Longer contexts are told as more than this.
static constexpr uint64_t mostTokens = 200000;

/// 1, 2, 5, 10, 20, 50 and so on, up to `most`.
static Buckets countBuckets(uint64_t most) {
  Buckets buckets;
  for (double power = 1;; power *= 10)
    for (double digit : {1, 2, 5}) {
      if (digit * power > static_cast<double>(most))
        return buckets.empty() ? Buckets{1} : buckets;
      buckets.push_back(digit * power);
    }
}

ModelMetrics::ModelMetrics(prometheus::Registry &registry, ServedModel &model)
    : model(model), labels{{"model_name", model.name()}, {"engine", "0"}} {
  const auto histogram = [&](const std::string &name, const std::string &help,
                             const Buckets &buckets) {
    return &prometheus::BuildHistogram()
                .Name(name)
                .Help(help)
                .Register(registry)
                .Add(labels, buckets);
  };
  firstToken = histogram("vllm:time_to_first_token_seconds",
                         "Seconds from a request to its first token.",
                         firstTokenBuckets);
  nextToken =
      histogram("vllm:inter_token_latency_seconds",
                "Seconds from one token of a text to the next.", tokenBuckets);
  perToken = histogram("vllm:request_time_per_output_token_seconds",
                       "Mean seconds of a request's tokens but the first.",
                       tokenBuckets);
  latency = histogram("vllm:e2e_request_latency_seconds",
                      "Seconds from a request to the end of its answer.",
                      requestBuckets);
  queue = histogram("vllm:request_queue_time_seconds",
                    "Seconds that requests waited for their first step.",
                    requestBuckets);
  prefill = histogram("vllm:request_prefill_time_seconds",
                      "Seconds from the first step to the first token.",
                      requestBuckets);
  decode =
      histogram("vllm:request_decode_time_seconds",
                "Seconds from the first token to the last.", requestBuckets);
  promptTokens = histogram("vllm:request_prompt_tokens",
                           "Tokens of the prompt.", countBuckets(mostTokens));
  generatedTokens = histogram("vllm:request_generation_tokens",
                              "Tokens generated.", countBuckets(mostTokens));
  ends = &prometheus::BuildCounter()
              .Name("vllm:request_success_total")
              .Help("Requests that were served, by what ended their text.")
              .Register(registry);
  for (const char *reason : {"stop", "length", "abort"})
    (void)successes(reason);
}

prometheus::Counter &ModelMetrics::successes(const std::string &reason) {
  prometheus::Labels all = labels;
  all["finished_reason"] = reason;
  return ends->Add(all);
}

void ModelMetrics::observeEnd(const RequestEnd &end) {
  queue->Observe(end.queueSeconds);
  if (!end.status)
    return;
  prefill->Observe(end.prefillSeconds);
  decode->Observe(end.decodeSeconds);
  promptTokens->Observe(static_cast<double>(end.promptTokens));
  generatedTokens->Observe(static_cast<double>(end.generatedTokens));
}

void ModelMetrics::observeAnswer(const RequestRecord &record) {
  if (record.status == RequestRecord::clientLeft)
    successes("abort").Increment();
  if (record.status != 200)
    return;
  latency->Observe(record.seconds);
  if (record.tpot)
    perToken->Observe(*record.tpot);
  successes(record.finish == "length" ? "length" : "stop").Increment();
}

unsigned ModelMetrics::retryAfterSeconds(uint64_t promptTokens) const {
  const LoadedModel *loaded = model.loaded();
  return loaded ? static_cast<unsigned>(std::ceil(
                      loaded->service->retryAfterSeconds(promptTokens)))
                : 1;
}

//===----------------------------------------------------------------------===//
// Services
//===----------------------------------------------------------------------===//

namespace {
/// What services tell, family by family.
class Families {
public:
  void add(const std::string &name, const std::string &help,
           prometheus::MetricType type, const prometheus::Labels &labels,
           double value) {
    prometheus::ClientMetric metric;
    for (const auto &[label, text] : labels)
      metric.label.push_back({label, text});
    if (type == prometheus::MetricType::Gauge)
      metric.gauge.value = value;
    else
      metric.counter.value = value;
    for (prometheus::MetricFamily &family : families)
      if (family.name == name) {
        family.metric.push_back(std::move(metric));
        return;
      }
    families.push_back({name, help, type, {std::move(metric)}});
  }

  std::vector<prometheus::MetricFamily> families;
};
} // namespace

/// What is counted of devices.
static void collect(const DispatcherCounters &counters,
                    const prometheus::Labels &labels, Families &families) {
  using prometheus::MetricType;
  for (const DeviceCounters &device : counters.devices) {
    prometheus::Labels all = labels;
    all["device"] = device.name;
    const auto gauge = [&](const char *name, const char *help, double value) {
      families.add(name, help, MetricType::Gauge, all, value);
    };
    const auto counter = [&](const char *name, const char *help,
                             uint64_t value) {
      families.add(name, help, MetricType::Counter, all,
                   static_cast<double>(value));
    };
    gauge("sandwich_device_queue_depth", "Queries that a queue has room for.",
          device.depth);
    gauge("sandwich_device_queued",
          "Queries in a queue, those of its batch "
          "among them.",
          device.queued);
    gauge("sandwich_device_closed",
          "Whether a device gets no queries, as it "
          "failed.",
          device.closed ? 1 : 0);
    counter("sandwich_device_accepted_total", "Queries that a device took.",
            device.accepted);
    counter("sandwich_device_overflowed_total",
            "Queries that found a queue full or closed.", device.overflowed);
    counter("sandwich_device_answered_total", "Queries that a device answered.",
            device.answered);
    counter("sandwich_device_moved_total",
            "Queries that left a device that failed for another one.",
            device.moved);
    counter("sandwich_device_failed_batches_total",
            "Batches that failed on a device.", device.failed);
    counter("sandwich_device_batches_total", "Batches of a device.",
            device.batches);
    counter("sandwich_device_batch_tokens_total", "Tokens of those batches.",
            device.batchTokens);
  }
  families.add("sandwich_busy_queries_total",
               "Queries that found no room on any device.", MetricType::Counter,
               labels, static_cast<double>(counters.busy));
}

static void collect(const ServedModel &model, Families &families) {
  const LoadedModel *loaded = model.loaded();
  const prometheus::Labels labels = {{"model_name", model.name()},
                                     {"engine", "0"}};
  const auto gauge = [&](const char *name, const char *help, double value) {
    families.add(name, help, prometheus::MetricType::Gauge, labels, value);
  };
  const auto counter = [&](const char *name, const char *help, uint64_t value) {
    families.add(name, help, prometheus::MetricType::Counter, labels,
                 static_cast<double>(value));
  };
  gauge("sandwich_model_ready", "Whether the model is loaded.",
        model.isReady() ? 1 : 0);
  if (const LoadedEncoder *encoder = model.encoder()) {
    const EncodingCounts counts = encoder->service->counts();
    gauge("sandwich_encoding_waiting_texts", "Texts that wait for a batch.",
          static_cast<double>(counts.waitingTexts));
    gauge("sandwich_encoding_waiting_tokens", "Tokens of the texts that wait.",
          static_cast<double>(counts.waitingTokens));
    gauge("sandwich_encoding_running_texts",
          "Texts of the batch that is computed.",
          static_cast<double>(counts.runningTexts));
    counter("sandwich_encoding_batches_total", "Batches computed.",
            counts.batches);
    counter("sandwich_encoding_texts_total", "Texts computed.", counts.texts);
    counter("sandwich_encoding_tokens_total", "Tokens of texts computed.",
            counts.tokens);
    families.add("sandwich_encoding_seconds_total",
                 "Seconds that batches took.", prometheus::MetricType::Counter,
                 labels, counts.seconds);
    if (encoder->devices)
      collect(encoder->devices->dispatcher().counters(), labels, families);
  }
  if (!loaded)
    return;
  const ServiceStatistics statistics = loaded->service->statistics();
  const SchedulerStatistics &scheduler = statistics.scheduler;
  const auto blocks = static_cast<double>(statistics.blockCount);
  gauge("vllm:num_requests_running", "Requests that have a part in steps.",
        static_cast<double>(scheduler.runningRequests));
  gauge("vllm:num_requests_waiting", "Requests that wait for their first step.",
        static_cast<double>(scheduler.waitingRequests));
  gauge("vllm:kv_cache_usage_perc",
        "Of the KV cache, what running requests have; 1 is all.",
        static_cast<double>(scheduler.usedBlocks) / blocks);
  counter("vllm:prompt_tokens_total",
          "Tokens of prompts computed, or found in the prefix cache.",
          scheduler.promptTokens);
  counter("vllm:generation_tokens_total", "Tokens generated.",
          statistics.generatedTokens);
  counter("vllm:prefix_cache_queries_total",
          "Tokens of prompts looked for in the prefix cache.",
          scheduler.promptTokensQueried);
  counter("vllm:prefix_cache_hits_total",
          "Tokens of prompts found in the prefix cache.",
          scheduler.promptTokensHit);
  counter("vllm:num_preemptions_total",
          "Requests that gave up their blocks for others.",
          scheduler.preemptions);
  gauge("sandwich_waiting_tokens", "Tokens of the prompts that wait.",
        static_cast<double>(scheduler.waitingTokens));
  gauge("sandwich_running_texts", "Texts that requests in steps have.",
        static_cast<double>(scheduler.runningTexts));
  gauge("sandwich_kv_cache_blocks", "Blocks of 16 tokens in the KV cache.",
        blocks);
  const auto phase = [&](const char *name, const PhaseStatistics &phase,
                         bool isUnderWay) {
    prometheus::Labels all = labels;
    all["phase"] = name;
    const auto add = [&](const char *family, const char *help,
                         prometheus::MetricType type, double value) {
      families.add(family, help, type, all, value);
    };
    add("sandwich_steps_total", "Steps by phase.",
        prometheus::MetricType::Counter, static_cast<double>(phase.steps));
    add("sandwich_step_tokens_total", "Tokens that steps computed, by phase.",
        prometheus::MetricType::Counter, static_cast<double>(phase.tokens));
    add("sandwich_step_seconds_total", "Seconds that steps took, by phase.",
        prometheus::MetricType::Counter, phase.seconds);
    add("sandwich_phase_active", "Whether a step of the phase is under way.",
        prometheus::MetricType::Gauge, isUnderWay ? 1 : 0);
  };
  for (const RankPlacement &rank : loaded->service->rankPlacement())
    for (const auto &[name, team] :
         {std::pair("prefill", &rank.prefill), {"decode", &rank.decode}})
      for (const std::vector<unsigned> &thread : *team)
        for (unsigned core : thread) {
          prometheus::Labels all = labels;
          all["phase"] = name;
          all["core"] = std::to_string(core);
          families.add("sandwich_phase_core",
                       "Cores that the plan of a phase runs on.",
                       prometheus::MetricType::Gauge, all, 1);
        }
  phase("prefill", scheduler.prefill, scheduler.phase == StepPhase::Prefill);
  phase("decode", scheduler.decode, scheduler.phase == StepPhase::Decode);
  gauge(
      "sandwich_stalled_seconds",
      "Seconds without the end of a step while there is something to compute.",
      statistics.stalledSeconds);
  counter("sandwich_rank_restarts_total", "How often ranks were started anew.",
          statistics.rankRestarts);
  counter("vllm:spec_decode_num_draft_tokens_total",
          "Tokens proposed by speculative decoding.",
          scheduler.speculation.proposedTokens);
  counter("vllm:spec_decode_num_accepted_tokens_total",
          "Those of them that were drawn.",
          scheduler.speculation.acceptedTokens);
  counter("sandwich_requests_total", "Requests taken.", statistics.requests);
  counter("sandwich_refused_requests_total",
          "Requests that the scheduler refused.", statistics.refusedRequests);
}

std::vector<prometheus::MetricFamily> ServiceCollector::Collect() const {
  Families families;
  for (const std::unique_ptr<ServedModel> &model : models)
    collect(*model, families);
  return std::move(families.families);
}
