//===- SpeculationArguments.h - Who proposes tokens -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOOLS_SANDWICH_RUN_SPECULATIONARGUMENTS_H
#define SANDWICH_TOOLS_SANDWICH_RUN_SPECULATIONARGUMENTS_H

#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Service/Service.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace sandwich::tool {

/// What a command is told of speculative decoding.
struct SpeculationArguments {
  /// "none", "ngram", or an artifact.
  std::string source = "none";
  uint64_t tokens = 8;
  bool always = false;

  bool isOn() const { return source != "none"; }
  /// Sets what `options` say of it.
  void set(ServiceOptions &options) const;
  /// The same. Returns the engine of the smaller model, or
  /// null if there is none; it gets as much KV cache as `target`, whose texts
  /// it follows. Errors: those of loading it.
  Result<std::unique_ptr<Engine>> apply(ServiceOptions &options,
                                        const EngineOptions &target) const;
};

/// Adds `--speculative`, `--speculative-tokens` and `--speculative-always`.
void addSpeculationOptions(CLI::App &command, SpeculationArguments &arguments);

/// "12 of 34 proposed tokens were right in 5 steps".
std::string describe(const SpeculationStatistics &statistics);

} // namespace sandwich::tool

#endif // SANDWICH_TOOLS_SANDWICH_RUN_SPECULATIONARGUMENTS_H
