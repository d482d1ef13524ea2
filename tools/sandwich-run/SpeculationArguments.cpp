//===- SpeculationArguments.cpp - Who proposes tokens ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpeculationArguments.h"

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Support/CheckedMath.h"

#include <utility>

using namespace sandwich;

Result<std::unique_ptr<Engine>>
tool::SpeculationArguments::apply(ServiceOptions &options,
                                  const EngineOptions &target) const {
  options.proposedTokens = tokens;
  options.alwaysProposes = always;
  if (!isOn())
    return std::unique_ptr<Engine>();
  if (source == "ngram") {
    options.proposals = ProposalSource::PromptLookup;
    return std::unique_ptr<Engine>();
  }
  options.proposals = ProposalSource::Draft;
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(source));
  EngineOptions draft;
  // Texts with what is proposed for them.
  const uint64_t proposed =
      checkedMultiply<uint64_t>(target.maxSequences, tokens).value_or(0);
  if (target.kvCacheTokens > 0)
    draft.kvCacheTokens = checkedAdd<uint64_t>(target.kvCacheTokens, proposed)
                              .value_or(target.kvCacheTokens);
  draft.maxSequences = target.maxSequences;
  draft.prefixCache = target.prefixCache;
  draft.weightPlacement = target.weightPlacement;
  draft.verifyWeights = target.verifyWeights;
  draft.numaNode = target.numaNode;
  draft.log = target.log;
  options.log = target.log;
  return Engine::create(std::move(artifact), draft);
}

void tool::addSpeculationOptions(CLI::App &command,
                                 SpeculationArguments &arguments) {
  command
      .add_option("--speculative", arguments.source,
                  "Who proposes tokens, several of which one step computes if "
                  "that pays: 'ngram' is the text itself, where it repeats "
                  "something; ARTIFACT is a smaller model with the same "
                  "tokenizer. Texts are drawn as without")
      ->type_name("none|ngram|ARTIFACT")
      ->capture_default_str();
  command
      .add_option("--speculative-tokens", arguments.tokens,
                  "Tokens proposed for a text at a time, at most")
      ->check(CLI::Range(uint64_t{1}, SpeculationOptions::mostTokens))
      ->type_name("K")
      ->capture_default_str();
  command.add_flag("--speculative-always", arguments.always,
                   "Takes all that is proposed, whether it pays or not");
}

std::string tool::describe(const SpeculationStatistics &statistics) {
  return std::to_string(statistics.acceptedTokens) + " of " +
         std::to_string(statistics.proposedTokens) +
         " proposed tokens were right in " + std::to_string(statistics.steps) +
         " steps";
}
