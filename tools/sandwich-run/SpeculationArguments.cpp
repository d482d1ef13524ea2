//===- SpeculationArguments.cpp - Who proposes tokens ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpeculationArguments.h"

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Service/DraftEngine.h"

#include <utility>

using namespace sandwich;

void tool::SpeculationArguments::set(ServiceOptions &options) const {
  options.proposedTokens = tokens;
  options.alwaysProposes = always;
  if (source == "ngram")
    options.proposals = ProposalSource::PromptLookup;
  else if (isOn())
    options.proposals = ProposalSource::Draft;
}

Result<std::unique_ptr<Engine>>
tool::SpeculationArguments::apply(ServiceOptions &options,
                                  const EngineOptions &target) const {
  set(options);
  if (options.proposals != ProposalSource::Draft)
    return std::unique_ptr<Engine>();
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(source));
  options.log = target.log;
  return Engine::create(std::move(artifact),
                        draftEngineOptions(target, tokens));
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
