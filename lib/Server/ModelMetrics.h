//===- ModelMetrics.h - What is counted of a model's requests ---*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_MODELMETRICS_H
#define SANDWICH_LIB_SERVER_MODELMETRICS_H

#include "sandwich/Server/RequestLog.h"
#include "sandwich/Server/ServedModel.h"

#include <prometheus/collectable.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

namespace sandwich {

/// The histograms and counters of one model, named and divided as vLLM's
/// (`vllm/v1/metrics/loggers.py`), so that dashboards of it work. All calls may
/// come from any thread and take well below a microsecond.
class ModelMetrics {
public:
  ModelMetrics(prometheus::Registry &registry, ServedModel &model);

  /// Seconds from the arrival of a request to a text's first token, and from
  /// one token of a text to the next.
  void observeFirstToken(double seconds) { firstToken->Observe(seconds); }
  void observeNextToken(double seconds) { nextToken->Observe(seconds); }
  /// What the service tells of a request.
  void observeEnd(const RequestEnd &end);
  /// An answer that is over.
  void observeAnswer(const RequestRecord &record);

  /// When it may be worth to try again what was refused, with prompts of so
  /// many tokens.
  unsigned retryAfterSeconds(uint64_t promptTokens) const;

private:
  prometheus::Counter &successes(const std::string &reason);

  ServedModel &model;
  prometheus::Labels labels;
  prometheus::Histogram *firstToken, *nextToken, *latency, *queue, *prefill,
      *decode, *promptTokens, *generatedTokens, *perToken;
  prometheus::Family<prometheus::Counter> *ends;
};

/// Gauges and counters that services keep themselves, read when somebody asks.
class ServiceCollector : public prometheus::Collectable {
public:
  explicit ServiceCollector(
      const std::vector<std::unique_ptr<ServedModel>> &models)
      : models(models) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

private:
  const std::vector<std::unique_ptr<ServedModel>> &models;
};

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_MODELMETRICS_H
