//===- Arguments.h - Arguments that several commands take -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_ARGUMENTS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_ARGUMENTS_H

#include "sandwich/CommandLine/NumberRange.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Support/Result.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandwich::tool {

/// Adds the positional argument ARTIFACT.
void addArtifactArgument(CLI::App &command, std::string &path);

/// Adds `--token-ids 1,2,3`. Anything but a list of integers is wrong usage.
CLI::Option *addTokenIdsOption(CLI::App &command,
                               std::vector<std::string> &tokenIds);

/// `ids`, as `--token-ids` gives them, for a vocabulary of `vocabSize` tokens.
/// Error: an id outside it.
Result<std::vector<int32_t>> checkTokenIds(const std::vector<std::string> &ids,
                                           uint64_t vocabSize);

/// Adds an option that takes `1,2,3`, numbers of at least `smallest`.
CLI::Option *addListOption(CLI::App &command, const std::string &name,
                           std::vector<uint64_t> &list, uint64_t smallest,
                           const std::string &description);

/// Adds an option that takes `0.5,1,2`, numbers from `smallest` to `largest`.
CLI::Option *addNumberListOption(CLI::App &command, const std::string &name,
                                 std::vector<double> &list, double smallest,
                                 double largest,
                                 const std::string &description);

/// Adds `--seed S`.
CLI::Option *addSeedOption(CLI::App &command, uint64_t &seed);

/// The whole of a text file, or of standard input where `path` is "-". Error:
/// it cannot be read, or is larger than `maxBytes`.
Result<std::string> readInput(const std::string &path, size_t maxBytes);

/// What the engine is told: where the weights go and how large the KV cache is,
/// which cores and which hosts it runs on.
struct EngineArguments {
  std::optional<WeightPlacement> weights;
  std::optional<uint64_t> kvMemory;
  /// The file that `--plan` names.
  std::optional<std::string> plan;
  unsigned planInstance = 0;
  bool verify = false;
  bool mpi = false;
  /// Of the ranks of a host.
  Collectives collectives = Collectives::RankShifted;
  /// Set by `runOnHosts`.
  std::shared_ptr<HostCommunicator> hosts = {};

  /// Errors: the plan cannot be read, or is another machine's.
  Status apply(EngineOptions &options) const;
};

/// Adds `--weights=mapped|huge-pages` and `--verify`.
void addWeightOptions(CLI::App &command,
                      std::optional<WeightPlacement> &weights, bool &verify);

/// Adds `--weights=mapped|huge-pages`, `--kv-memory=SIZE`, `--plan=FILE`,
/// `--verify` and `--mpi`.
void addEngineOptions(CLI::App &command, EngineArguments &arguments);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_ARGUMENTS_H
