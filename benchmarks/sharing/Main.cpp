//===- Main.cpp - What models lose that share the cores of a process ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Serves each model alone, and all of them at once in this process: with an
/// arbiter of the cores, and without, in turn. Each always has the same number
/// of texts to continue. What all together reach is told as a share: of each
/// model, the tokens it made by those it makes alone, and their sum; 1 is what
/// a single model makes of the machine.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Service/Service.h"
#include "sandwich/Support/ElapsedTime.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/Statistics.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace sandwich;

namespace {

struct Options {
  std::vector<std::string> artifacts;
  std::vector<double> weights;
  uint64_t streams = 4;
  uint64_t promptTokens = 16;
  uint64_t tokens = 64;
  double seconds = 5;
  int rounds = 3;
};

enum class Sharing { Arbiter, Nothing };

/// A service that always has `streams` texts to continue, until it is told that
/// this is enough.
class BusyModel {
public:
  static Result<std::unique_ptr<BusyModel>>
  load(const std::string &path, const Options &options,
       const EngineOptions &engineOptions) {
    SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<Engine> engine,
        Engine::create(std::move(artifact), engineOptions));
    std::unique_ptr<BusyModel> model(new BusyModel(options));
    SANDWICH_ASSIGN_OR_RETURN(model->service,
                              Service::create(std::move(engine), std::nullopt));
    return model;
  }

  ~BusyModel() { stop(); }

  Status start() {
    for (uint64_t i = 0; i < options.streams; ++i)
      SANDWICH_RETURN_IF_ERROR(submit());
    feeding = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        for (uint64_t ended = missing.exchange(0); ended > 0; --ended)
          (void)submit();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    return {};
  }
  void stop() {
    feeding = {};
    service.reset();
  }
  uint64_t made() const { return tokens; }

private:
  explicit BusyModel(const Options &options) : options(options) {}

  Status submit() {
    GenerationRequest request;
    request.maxTokens = options.tokens;
    request.sampling.temperature = 1;
    request.sampling.seed = random();
    for (uint64_t i = 0; i < options.promptTokens; ++i)
      request.prompt.push_back(
          static_cast<int32_t>(random() % service->model().vocab_size()));
    Result<RequestId> id = service->submit(
        std::move(request),
        {.onToken = [this](const GeneratedToken &) { ++tokens; },
         .onEnd = [this](const RequestEnd &) { ++missing; }});
    return id ? Status() : id.error();
  }

  const Options options;
  std::unique_ptr<Service> service;
  std::atomic<uint64_t> tokens = 0;
  std::atomic<uint64_t> missing = 0;
  std::mt19937 random{1};
  std::jthread feeding;
};

/// What each member got between two times that are `seconds` apart.
void printUses(const std::vector<CoreArbiter::MemberUse> &before,
               const std::vector<CoreArbiter::MemberUse> &after,
               double seconds) {
  for (size_t i = 0; i < after.size(); ++i) {
    const CoreSharing::Use &from = before[i].use, &to = after[i].use;
    const double steps = std::max(1.0, static_cast<double>(to.steps) -
                                           static_cast<double>(from.steps));
    std::printf("  %s: %.0f steps, %.0f%% of which waited for %.3f ms; held "
                "%.2f cores on average\n",
                after[i].name.c_str(), steps,
                100 * static_cast<double>(to.waits - from.waits) / steps,
                1000 * (to.secondsWaited - from.secondsWaited) /
                    std::max(1.0, static_cast<double>(to.waits - from.waits)),
                (to.coreSeconds - from.coreSeconds) / seconds);
  }
}

/// Tokens a second of each of the models at once.
Result<std::vector<double>> serve(const std::vector<std::string> &paths,
                                  const std::vector<double> &weights,
                                  const Options &options, Sharing sharing) {
  EngineOptions engineOptions;
  engineOptions.kvCacheTokens =
      options.streams * (options.promptTokens + options.tokens);
  engineOptions.maxSequences = options.streams;
  if (sharing == Sharing::Arbiter) {
    SANDWICH_ASSIGN_OR_RETURN(engineOptions.coreArbiter, CoreArbiter::create());
  }
  std::vector<std::unique_ptr<BusyModel>> models;
  for (size_t i = 0; i < paths.size(); ++i) {
    engineOptions.coreWeight = weights[i];
    SANDWICH_ASSIGN_OR_RETURN(
        std::unique_ptr<BusyModel> model,
        BusyModel::load(paths[i], options, engineOptions));
    models.push_back(std::move(model));
  }
  for (const std::unique_ptr<BusyModel> &model : models)
    SANDWICH_RETURN_IF_ERROR(model->start());
  // Until all are under way.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<double> rates;
  for (const std::unique_ptr<BusyModel> &model : models)
    rates.push_back(static_cast<double>(model->made()));
  std::vector<CoreArbiter::MemberUse> before;
  if (engineOptions.coreArbiter)
    before = engineOptions.coreArbiter->uses();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  for (size_t i = 0; i < models.size(); ++i)
    rates[i] = (static_cast<double>(models[i]->made()) - rates[i]) /
               secondsSince(start);
  if (engineOptions.coreArbiter)
    printUses(before, engineOptions.coreArbiter->uses(), secondsSince(start));
  return rates;
}

/// Microseconds that it takes to get cores that nobody wants, and to give them
/// back.
double measureLease() {
  const auto arbiter =
      std::make_shared<CoreArbiter>(CoreSharingOptions{.cores = 2});
  Result<std::unique_ptr<CoreMember>> member =
      CoreMember::join(arbiter, "alone", 1);
  const CoreDemand demand{.cpus = {0, 1}};
  std::vector<double> samples;
  for (int sample = 0; sample < 200; ++sample) {
    constexpr int leases = 1000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < leases; ++i)
      (*member)->acquire(demand).release();
    samples.push_back(secondsSince(start) * 1e6 / leases);
  }
  return quantile(samples, 0.5);
}

void print(const char *what, const std::vector<double> &rates,
           const std::vector<double> &alone) {
  double share = 0;
  std::printf("%-16s", what);
  for (size_t i = 0; i < rates.size(); ++i) {
    share += rates[i] / alone[i];
    std::printf(" %8.1f", rates[i]);
  }
  std::printf("  share %.3f\n", share);
}

Status run(Options options) {
  options.weights.resize(options.artifacts.size(), 1);
  std::printf("a lease of cores that nobody else wants: %.3f us\n",
              measureLease());
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<double> alone;
    for (const std::string &path : options.artifacts) {
      SANDWICH_ASSIGN_OR_RETURN(std::vector<double> rate,
                                serve({path}, {1}, options, Sharing::Arbiter));
      alone.push_back(rate.front());
    }
    print("each alone", alone, alone);
    for (Sharing sharing : {Sharing::Arbiter, Sharing::Nothing}) {
      SANDWICH_ASSIGN_OR_RETURN(
          std::vector<double> rates,
          serve(options.artifacts, options.weights, options, sharing));
      print(sharing == Sharing::Arbiter ? "with an arbiter" : "without", rates,
            alone);
    }
    std::fflush(stdout);
  }
  return {};
}

} // namespace

int main(int argc, char **argv) try {
  CLI::App app{"Serves models alone and at once in one process, with an "
               "arbiter of the cores and without: tokens a second.\n\n"
               "  sandwich-benchmark-sharing a.sandwich b.sandwich"};
  Options options;
  app.add_option("ARTIFACTS", options.artifacts, "Models of this machine")
      ->required();
  app.add_option("--weights", options.weights,
                 "Of each model (default: 1 each)");
  app.add_option("--streams", options.streams, "Texts of a model at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--prompt", options.promptTokens, "Tokens of a prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens of a text")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of each measurement")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &wrong) {
    std::fprintf(stderr, "error: %s\n", wrong.what());
    return 2;
  }
  if (Status status = run(options); !status) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
} catch (const std::exception &exception) {
  std::fprintf(stderr, "error: %s\n", exception.what());
  return 1;
}
