//===- ServingTrace.h - What requests a server gets -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Traces of requests: prompt and output lengths with arrival times. Packings,
/// schedules and service configurations are chosen for one.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_SERVINGTRACE_H
#define SANDWICH_SUPPORT_SERVINGTRACE_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

struct ServingRequest {
  /// At least 1.
  int64_t promptTokens = 1;
  /// At least 0: a prompt of which only logits are asked.
  int64_t outputTokens = 0;
  /// Seconds after the trace begins; ascending. Nothing where each request
  /// comes when the one before is done.
  std::optional<double> arrivalSeconds;

  /// A server makes one token at least.
  int64_t generatedTokens() const {
    return outputTokens > 0 ? outputTokens : 1;
  }
  /// All that it holds in the end.
  uint64_t tokens() const {
    return static_cast<uint64_t>(promptTokens + generatedTokens());
  }

  bool operator==(const ServingRequest &) const = default;
};

using ServingTrace = std::vector<ServingRequest>;

/// Sequences that generate at a time where nobody says otherwise.
inline constexpr int64_t usualMaxBatch = 64;

/// The most tokens a prompt or an output of a trace may have.
inline constexpr int64_t maxTraceTokens = int64_t{1} << 24;

/// Reads a trace, a request on each line: an object
/// `{"prompt_tokens": 12, "output_tokens": 30, "arrival_seconds": 0.5}`, of
/// which only the first member must be there, or just the numbers of prompt
/// and output tokens, `12 30`. Blank lines and what follows a `#` in a line of
/// numbers are skipped. Arrival times are on all lines or on none, and ascend.
/// Errors name the line.
Result<ServingTrace> parseServingTrace(std::string_view text);

/// The same of the file `path`; errors name it too.
Result<ServingTrace> readServingTrace(const std::string &path);

/// How long prompts and outputs of a kind of conversation are: log-normal, with
/// these means and this sigma of the logarithm.
struct LengthDistribution {
  std::string_view name;
  double meanPromptTokens;
  double meanOutputTokens;
  double sigma;
  /// Longer prompts and outputs are cut to this.
  int64_t maxTokens;
};

/// "sharegpt": 161 and 338 tokens, the means that the vLLM paper (Kwon et al.,
/// 2023, section 6.1) gives for ShareGPT; "lmsys": 70 and 215, those of the
/// LMSYS-Chat-1M paper (Zheng et al., 2024, table 1). Sigma is 1 for both: an
/// assumption, as the papers print histograms, no moments.
const std::vector<LengthDistribution> &lengthDistributions();
/// The one of that name, or null.
const LengthDistribution *findLengthDistribution(std::string_view name);

/// Requests of a built-in trace where nobody says otherwise.
inline constexpr int64_t usualRequests = 64;

/// `requests` requests of the distribution, the same for the same `seed`.
/// Arrivals are a Poisson process of `requestsPerSecond`; at 0, each comes when
/// the one before is done. Errors: no distribution has that name, fewer than
/// one request, a rate that is negative or not finite.
Result<ServingTrace> makeServingTrace(std::string_view distribution,
                                      int64_t requests,
                                      double requestsPerSecond, uint64_t seed);

/// `trace` with arrivals of its own: a Poisson process of `requestsPerSecond`,
/// the same for the same `seed`. Error: a rate that is not above 0 and finite.
Result<ServingTrace> drawArrivals(ServingTrace trace, double requestsPerSecond,
                                  uint64_t seed);

/// A built-in trace of 64 requests, one after the other, where `nameOrPath` is
/// the name of a distribution, else the trace in that file.
Result<ServingTrace> findServingTrace(const std::string &nameOrPath);

/// `trace` with prompts and outputs cut so that a context of `contextLength`
/// tokens, at least 1, holds each request, the prompt first. `cut` is how many
/// requests were.
struct FittedTrace {
  ServingTrace requests;
  size_t cut = 0;
};
FittedTrace fitTrace(const ServingTrace &trace, uint64_t contextLength);

} // namespace sandwich

#endif // SANDWICH_SUPPORT_SERVINGTRACE_H
