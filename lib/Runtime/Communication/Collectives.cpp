//===- Collectives.cpp - How the ranks of a host sum ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Communication/Collectives.h"

#include <string>

using namespace sandwich;

static constexpr Collectives all[] = {Collectives::RankShifted,
                                      Collectives::MasterCopies};

std::span<const Collectives> sandwich::allCollectives() { return all; }

std::string_view sandwich::name(Collectives collectives) {
  switch (collectives) {
  case Collectives::RankShifted:
    return "rank-shifted";
  case Collectives::MasterCopies:
    return "master-copies";
  }
  __builtin_unreachable();
}

Result<Collectives> sandwich::collectivesNamed(std::string_view text) {
  std::string known;
  for (Collectives each : all) {
    if (name(each) == text)
      return each;
    known += (known.empty() ? "" : ", ") + std::string(name(each));
  }
  return makeError("unknown collectives '", text, "'; known are ", known);
}
