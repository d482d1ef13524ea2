//===- Rank.cpp - sandwich-run rank ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "sandwich/Runtime/Ranks/RankGroup.h"

#include <memory>

using namespace sandwich;

void tool::addRankCommand(CLI::App &app, Action &action) {
  struct Arguments {
    std::string artifact;
    int descriptor = -1;
    int32_t rank = 0;
  };
  auto arguments = std::make_shared<Arguments>();
  // Without a group it is of the tool's own use only.
  CLI::App *command =
      app.add_subcommand("rank", "Runs one rank of an artifact for several; "
                                 "the other commands start it")
          ->group("");
  command->add_option("ARTIFACT", arguments->artifact)->required();
  command->add_option("--descriptor", arguments->descriptor)->required();
  command->add_option("--rank", arguments->rank)->required();
  command->callback([arguments, &action] {
    action = [arguments]() -> Status {
      SANDWICH_ASSIGN_OR_RETURN(bool done, serveRank(arguments->descriptor,
                                                     arguments->rank,
                                                     arguments->artifact));
      if (!done)
        throw CLI::RuntimeError(1);
      return {};
    };
  });
}
