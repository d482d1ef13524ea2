//===- random-mixes.cpp - Whether requests leave each other alone ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lets the scheduler run random requests on an artifact, in mixes of prompts,
/// pieces of prompts, decodes, forks, preemptions and prefix hits, and compares
/// all logits with those of each text fed alone.
///
///     random-mixes ARTIFACT MIXES TOLERANCE [SEED]
///
/// A tolerance of 0 asks for the same bits. Prints what the mixes had of each
/// kind; those that had none of it prove nothing, and fail.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Serving/Scheduler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

using namespace sandwich;

namespace {

/// Tokens of the cache: a few requests, so that others must wait or give up
/// their blocks.
constexpr uint64_t cacheTokens = 20 * SANDWICH_KV_BLOCK_TOKENS;
constexpr uint64_t longestPrompt = 120;
constexpr uint64_t mostTokens = 40;

/// What is known of one text, and the logits that chose its tokens.
struct Text {
  std::vector<int32_t> tokens;
  uint64_t promptLength = 0;
  std::vector<std::vector<float>> logits;
};
using TextName = std::pair<RequestId, uint32_t>;

/// Steps that had something.
struct Kinds {
  uint64_t steps = 0, mixed = 0, pieces = 0, severalPrompts = 0, decodes = 0,
           forks = 0, preemptions = 0, prefixHits = 0, rows = 0;
};

class Mixes {
public:
  Mixes(Engine &engine, uint64_t seed) : engine(engine), random(seed) {}

  Status run();
  /// The largest difference of any logit of the last mix.
  Result<double> compare();

  Kinds kinds;

private:
  uint64_t upTo(uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(1, most)(random);
  }
  Request makeRequest();
  void count(const StepPlan &plan);
  Status step(Scheduler &scheduler, const StepPlan &plan, double now);

  Engine &engine;
  std::mt19937_64 random;
  std::vector<std::vector<int32_t>> prefixes;
  std::map<TextName, Text> texts;
};

Request Mixes::makeRequest() {
  auto randomToken = [&] {
    return static_cast<int32_t>(upTo(engine.vocabSize()) - 1);
  };
  Request request;
  // Some begin as others did.
  if (!prefixes.empty() && upTo(2) == 1)
    request.prompt = prefixes[upTo(prefixes.size()) - 1];
  request.prompt.resize(
      std::min<size_t>(request.prompt.size(), upTo(longestPrompt)));
  for (uint64_t more = upTo(longestPrompt - request.prompt.size() + 1);
       more > 0; --more)
    request.prompt.push_back(randomToken());
  prefixes.push_back(request.prompt);
  request.maxTokens = upTo(mostTokens);
  request.continuations = static_cast<uint32_t>(upTo(4) == 1 ? upTo(3) : 1);
  request.priority = static_cast<uint32_t>(upTo(maxPriority + 1) - 1);
  return request;
}

void Mixes::count(const StepPlan &plan) {
  uint64_t prompts = 0, decodes = 0;
  for (const StepSegment &segment : plan.segments) {
    ++(segment.tokens.size() > 1 ? prompts : decodes);
    kinds.pieces += segment.samples == 0;
    kinds.forks += segment.samples > 1;
  }
  ++kinds.steps;
  kinds.mixed += prompts > 0 && decodes > 0;
  kinds.severalPrompts += prompts > 1;
  kinds.decodes += decodes > 1;
}

Status Mixes::step(Scheduler &scheduler, const StepPlan &plan, double now) {
  std::vector<Segment> segments;
  for (const StepSegment &segment : plan.segments)
    segments.push_back(
        {segment.sequence, segment.tokens,
         segment.samples > 0 ? LogitRows::Last : LogitRows::None});
  SANDWICH_RETURN_IF_ERROR(engine.begin(
      segments, plan.phase() == StepPhase::Decode ? PhaseKind::Decode
                                                  : PhaseKind::Prefill));
  engine.compute();
  SANDWICH_ASSIGN_OR_RETURN(StepResult result, engine.finish());
  std::vector<ChosenToken> chosen;
  for (size_t i = 0; i < plan.segments.size(); ++i)
    for (uint32_t sample = 0; sample < plan.segments[i].samples; ++sample) {
      auto row = result.logits.subspan(result.firstRows[i] * engine.vocabSize(),
                                       engine.vocabSize());
      Text &text =
          texts.at({plan.segments[i].request, plan.segments[i].text + sample});
      text.logits.emplace_back(row.begin(), row.end());
      // Any will do: what counts are the logits that follow.
      text.tokens.push_back(static_cast<int32_t>(upTo(engine.vocabSize()) - 1));
      chosen.push_back({text.tokens.back()});
      ++kinds.rows;
    }
  (void)scheduler.complete(plan, chosen, now);
  return {};
}

Status Mixes::run() {
  texts.clear();
  prefixes.clear();
  engine.blockPool().clearPrefixCache();
  SchedulerOptions options;
  for (auto [phase, limits] :
       {std::pair(PhaseKind::Prefill, &options.limits.prefill),
        std::pair(PhaseKind::Decode, &options.limits.decode)})
    *limits = {engine.limits(phase).tokens, engine.limits(phase).tokens,
               engine.limits(phase).logitRows};
  options.limits.contextLength = engine.contextLength();
  SANDWICH_ASSIGN_OR_RETURN(StepCostModel costs,
                            StepCostModel::create(assumedStepCosts()));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Scheduler> scheduler,
      Scheduler::create(engine.blockPool(), options, std::move(costs)));
  uint64_t toCome = 3 + upTo(6);
  double now = 0;
  while (toCome > 0 || !scheduler->idle()) {
    // They come together or one after another.
    while (toCome > 0 && (scheduler->idle() || upTo(4) == 1)) {
      Request request = makeRequest();
      const std::vector<int32_t> prompt = request.prompt;
      const uint32_t continuations = request.continuations;
      SANDWICH_ASSIGN_OR_RETURN(RequestId id,
                                scheduler->admit(std::move(request), now));
      for (uint32_t text = 0; text < continuations; ++text)
        texts[{id, text}] = {prompt, prompt.size(), {}};
      --toCome;
    }
    const StepPlan plan = scheduler->next(now);
    if (plan.segments.empty())
      continue;
    count(plan);
    now += plan.predictedSeconds;
    SANDWICH_RETURN_IF_ERROR(step(*scheduler, plan, now));
  }
  kinds.preemptions += scheduler->statistics().preemptions;
  kinds.prefixHits += scheduler->statistics().promptTokensHit;
  return {};
}

Result<double> Mixes::compare() {
  double largest = 0;
  for (auto &[name, text] : texts) {
    // Nothing of what the mixes computed is to be read.
    engine.blockPool().clearPrefixCache();
    Sequence alone = engine.newSequence();
    uint64_t compared = 0;
    SANDWICH_RETURN_IF_ERROR(engine.feed(
        alone, text.tokens, LogitRows::All,
        [&](std::span<const float> logits, uint64_t first, uint64_t rows) {
          for (uint64_t row = 0; row < rows; ++row) {
            const uint64_t next = first + row + 1;
            if (next < text.promptLength || next >= text.tokens.size())
              continue;
            const std::vector<float> &mixed =
                text.logits[next - text.promptLength];
            for (size_t i = 0; i < mixed.size(); ++i) {
              double difference =
                  std::abs(double{mixed[i]} - logits[row * mixed.size() + i]);
              largest = std::max(largest, std::isnan(difference) ? HUGE_VAL
                                                                 : difference);
            }
            ++compared;
          }
          return Status();
        }));
    if (compared != text.logits.size())
      return makeError("text ", name.second, " of request ", name.first,
                       " has ", text.logits.size(), " rows of logits, ",
                       compared, " of which were compared");
  }
  return largest;
}

Status runMixes(const char *path, uint64_t mixes, double tolerance,
                uint64_t seed) {
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(std::move(artifact), {.kvCacheTokens = cacheTokens}));
  Mixes random(*engine, seed);
  double largest = 0;
  for (uint64_t mix = 0; mix < mixes; ++mix) {
    SANDWICH_RETURN_IF_ERROR(random.run());
    SANDWICH_ASSIGN_OR_RETURN(double difference, random.compare());
    if (difference > tolerance)
      return makeError("mix ", mix, " differs by ", difference);
    largest = std::max(largest, difference);
  }
  const Kinds &kinds = random.kinds;
  const std::pair<const char *, uint64_t> counts[] = {
      {"steps", kinds.steps},
      {"prompts beside decodes", kinds.mixed},
      {"pieces of prompts", kinds.pieces},
      {"several prompts", kinds.severalPrompts},
      {"several decodes", kinds.decodes},
      {"forks", kinds.forks},
      {"preemptions", kinds.preemptions},
      {"tokens of prefixes", kinds.prefixHits},
      {"rows of logits", kinds.rows}};
  for (auto [name, count] : counts) {
    std::printf("%s: %llu\n", name, static_cast<unsigned long long>(count));
    if (count == 0)
      return makeError("no mix had ", name);
  }
  std::printf("largest difference: %g\n", largest);
  return {};
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: random-mixes ARTIFACT MIXES TOLERANCE [SEED]\n");
    return 2;
  }
  Status status = runMixes(argv[1], std::strtoull(argv[2], nullptr, 10),
                           std::strtod(argv[3], nullptr),
                           argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1);
  if (status)
    return 0;
  std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  return 1;
}
