//===- Workload.cpp - What requests come, and when ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/Workload.h"

#include "sandwich/Support/RandomNumbers.h"

#include <charconv>
#include <cmath>
#include <optional>

using namespace sandwich;

static std::optional<int64_t> parseTokens(std::string_view text) {
  int64_t tokens = 0;
  const char *end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, tokens);
  if (error != std::errc() || rest != end || tokens < 1 ||
      tokens > maxTraceTokens)
    return std::nullopt;
  return tokens;
}

Result<TokenRange> TokenRange::parse(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<int64_t> least = parseTokens(text.substr(0, dash));
  const std::optional<int64_t> most = dash == std::string_view::npos
                                          ? least
                                          : parseTokens(text.substr(dash + 1));
  if (!least || !most || *least > *most)
    return makeError("'", text, "' is neither a number of tokens from 1 to ",
                     maxTraceTokens, " nor a range of them such as 64-256");
  return TokenRange{*least, *most};
}

static int64_t draw(TokenRange range, std::mt19937_64 &generator) {
  const auto count = static_cast<uint64_t>(range.most - range.least) + 1;
  return range.least + static_cast<int64_t>(generator() % count);
}

ServingTrace sandwich::drawLengths(size_t requests, TokenRange prompt,
                                   TokenRange output, uint64_t seed) {
  std::mt19937_64 generator(seed);
  ServingTrace trace(requests);
  for (ServingRequest &request : trace) {
    request.promptTokens = draw(prompt, generator);
    request.outputTokens = draw(output, generator);
  }
  return trace;
}

static Status check(const ArrivalOptions &options, double requestsPerSecond) {
  if (!(requestsPerSecond > 0) || !std::isfinite(requestsPerSecond))
    return makeError("requests per second are a number above 0");
  if (!(options.burstiness > 0) || !std::isfinite(options.burstiness))
    return makeError("burstiness is a number above 0");
  if (options.burstSize == 0)
    return makeError("a burst has at least one request");
  return {};
}

Result<ServingTrace> sandwich::drawArrivals(ServingTrace trace,
                                            const ArrivalOptions &options,
                                            double requestsPerSecond,
                                            uint64_t seed) {
  SANDWICH_RETURN_IF_ERROR(check(options, requestsPerSecond));
  const bool isRandom = options.process == ArrivalProcess::Random;
  if (isRandom && options.burstiness == 1)
    return drawArrivals(std::move(trace), requestsPerSecond, seed);
  std::mt19937_64 generator(seed);
  const size_t atOnce =
      options.process == ArrivalProcess::Burst ? options.burstSize : 1;
  double now = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (isRandom)
      now += drawGamma(generator, options.burstiness) /
             (options.burstiness * requestsPerSecond);
    else
      now = static_cast<double>(i / atOnce * atOnce) / requestsPerSecond;
    trace[i].arrivalSeconds = now;
  }
  return trace;
}
