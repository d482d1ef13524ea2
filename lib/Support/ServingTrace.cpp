//===- ServingTrace.cpp - What requests a server gets ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ServingTrace.h"

#include "sandwich/Support/File.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/RandomNumbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

using namespace sandwich;

/// A million requests take some 60 bytes each.
static constexpr size_t maxTraceBytes = size_t{64} << 20;

static constexpr double maxArrivalSeconds = 1e9;

static constexpr std::string_view blanks = " \t\r,";

static Result<int64_t> readTokens(const Json &object, const char *name,
                                  int64_t least) {
  const auto member = object.find(name);
  if (!member->is_number_integer() || *member < least ||
      *member > maxTraceTokens)
    return makeError('"', name, "\" is not an integer of ", least, " to ",
                     maxTraceTokens);
  return member->get<int64_t>();
}

static Result<ServingRequest> parseObject(std::string_view line) {
  SANDWICH_ASSIGN_OR_RETURN(Json object, parseJson(line));
  ServingRequest request;
  if (!object.contains("prompt_tokens"))
    return makeError("\"prompt_tokens\" is absent");
  for (const auto &[name, value] : object.items()) {
    if (name == "prompt_tokens") {
      SANDWICH_ASSIGN_OR_RETURN(request.promptTokens,
                                readTokens(object, "prompt_tokens", 1));
    } else if (name == "output_tokens") {
      SANDWICH_ASSIGN_OR_RETURN(request.outputTokens,
                                readTokens(object, "output_tokens", 0));
    } else if (name == "arrival_seconds") {
      if (!value.is_number() || value < 0 || value > maxArrivalSeconds)
        return makeError("\"arrival_seconds\" is not a number of 0 to ",
                         maxArrivalSeconds);
      request.arrivalSeconds = value.get<double>();
    } else {
      return makeError("\"", name, "\" is not known");
    }
  }
  return request;
}

/// "12" or "12 30"; nothing where the line has no numbers.
static Result<std::optional<ServingRequest>>
parseNumbers(std::string_view line) {
  line = line.substr(0, line.find('#'));
  int64_t numbers[2] = {0, 0};
  size_t count = 0;
  for (size_t at = line.find_first_not_of(blanks); at != line.npos;
       at = line.find_first_not_of(blanks, at)) {
    size_t stop = std::min(line.find_first_of(blanks, at), line.size());
    int64_t value = 0;
    auto [rest, error] =
        std::from_chars(line.data() + at, line.data() + stop, value);
    if (count == 2 || error != std::errc() || rest != line.data() + stop ||
        value < 0 || value > maxTraceTokens)
      return makeError("'", line,
                       "' is not the tokens of a prompt and, after a space, "
                       "those generated");
    numbers[count++] = value;
    at = stop;
  }
  if (count == 0)
    return std::optional<ServingRequest>();
  if (numbers[0] == 0)
    return makeError("a prompt has at least one token");
  return std::optional(ServingRequest{numbers[0], numbers[1], std::nullopt});
}

Result<ServingTrace> sandwich::parseServingTrace(std::string_view text) {
  ServingTrace trace;
  for (int64_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    auto fail = [&](const auto &...parts) {
      return makeError("line ", number, ": ", parts...);
    };
    size_t start = line.find_first_not_of(blanks);
    if (start == line.npos)
      continue;
    ServingRequest request;
    if (line[start] == '{') {
      Result<ServingRequest> parsed = parseObject(line);
      if (!parsed)
        return fail(parsed.error().message);
      request = *parsed;
    } else {
      Result<std::optional<ServingRequest>> parsed = parseNumbers(line);
      if (!parsed)
        return fail(parsed.error().message);
      if (!*parsed)
        continue;
      request = **parsed;
    }
    if (!trace.empty()) {
      const std::optional<double> &before = trace.back().arrivalSeconds;
      if (before.has_value() != request.arrivalSeconds.has_value())
        return fail("arrival times are on all lines or on none");
      if (before && *request.arrivalSeconds < *before)
        return fail("arrives before the request of the line before");
    }
    trace.push_back(request);
  }
  if (trace.empty())
    return makeError("the trace has no prompts");
  return trace;
}

Result<ServingTrace> sandwich::readServingTrace(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            readTextFile(path, maxTraceBytes));
  Result<ServingTrace> trace = parseServingTrace(text);
  if (!trace)
    return trace.error().inContext(path);
  return trace;
}

const std::vector<LengthDistribution> &sandwich::lengthDistributions() {
  static const std::vector<LengthDistribution> distributions = {
      {"sharegpt", 161, 338, 1.0, 2048}, {"lmsys", 70, 215, 1.0, 2048}};
  return distributions;
}

const LengthDistribution *
sandwich::findLengthDistribution(std::string_view name) {
  const std::vector<LengthDistribution> &known = lengthDistributions();
  auto found = std::ranges::find(known, name, &LengthDistribution::name);
  return found == known.end() ? nullptr : &*found;
}

static int64_t drawTokens(std::mt19937_64 &generator, double mean,
                          const LengthDistribution &distribution) {
  double normal = drawNormal(generator);
  double sigma = distribution.sigma;
  double tokens = mean * std::exp(sigma * normal - sigma * sigma / 2);
  return static_cast<int64_t>(std::clamp(
      std::round(tokens), 1.0, static_cast<double>(distribution.maxTokens)));
}

Result<ServingTrace> sandwich::makeServingTrace(std::string_view name,
                                                int64_t requests,
                                                double requestsPerSecond,
                                                uint64_t seed) {
  const LengthDistribution *distribution = findLengthDistribution(name);
  if (!distribution) {
    std::string names;
    for (const LengthDistribution &each : lengthDistributions()) {
      names += names.empty() ? "" : ", ";
      names += each.name;
    }
    return makeError("no trace is called '", name, "'; there are ", names);
  }
  if (requests < 1)
    return makeError("a trace has at least one request");
  if (!(requestsPerSecond >= 0) || !std::isfinite(requestsPerSecond))
    return makeError("requests per second are a number of at least 0");
  std::mt19937_64 generator(seed);
  ServingTrace trace;
  double now = 0;
  for (int64_t i = 0; i < requests; ++i) {
    ServingRequest request;
    request.promptTokens =
        drawTokens(generator, distribution->meanPromptTokens, *distribution);
    request.outputTokens =
        drawTokens(generator, distribution->meanOutputTokens, *distribution);
    if (requestsPerSecond > 0) {
      now += drawExponential(generator) / requestsPerSecond;
      request.arrivalSeconds = now;
    }
    trace.push_back(request);
  }
  return trace;
}

Result<ServingTrace> sandwich::drawArrivals(ServingTrace trace,
                                            double requestsPerSecond,
                                            uint64_t seed) {
  if (!(requestsPerSecond > 0) || !std::isfinite(requestsPerSecond))
    return makeError("requests per second are a number above 0");
  std::mt19937_64 generator(seed);
  double now = 0;
  for (ServingRequest &request : trace) {
    now += drawExponential(generator) / requestsPerSecond;
    request.arrivalSeconds = now;
  }
  return trace;
}

Result<ServingTrace> sandwich::findServingTrace(const std::string &nameOrPath) {
  if (findLengthDistribution(nameOrPath))
    return makeServingTrace(nameOrPath, usualRequests, /*requestsPerSecond=*/0,
                            /*seed=*/1);
  return readServingTrace(nameOrPath);
}

FittedTrace sandwich::fitTrace(const ServingTrace &trace,
                               uint64_t contextLength) {
  const auto context = static_cast<int64_t>(contextLength);
  FittedTrace fitted;
  for (ServingRequest request : trace) {
    const ServingRequest whole = request;
    request.promptTokens = std::min(request.promptTokens, context);
    // The last token that is generated is not fed.
    request.outputTokens =
        std::min(request.outputTokens, context - request.promptTokens + 1);
    fitted.cut += request != whole;
    fitted.requests.push_back(request);
  }
  return fitted;
}
