//===- Loading.cpp - Engines as C asks for them ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loading.h"

#include "Calls.h"

using namespace sandwich;

Result<EngineOptions>
capi::readLoadOptions(const sandwich_load_options *options) {
  SANDWICH_ASSIGN_OR_RETURN(const sandwich_load_options given,
                            readStructure(options, "load options"));
  EngineOptions engine;
  switch (given.weights) {
  case SANDWICH_WEIGHTS_DEFAULT:
    break;
  case SANDWICH_WEIGHTS_MAPPED:
    engine.weightPlacement = WeightPlacement::Mapped;
    break;
  case SANDWICH_WEIGHTS_HUGE_PAGES:
    engine.weightPlacement = WeightPlacement::HugePages;
    break;
  default:
    return makeError(ErrorKind::InvalidArgument, "weights is ", given.weights,
                     ", which is not one of sandwich_weights");
  }
  engine.verifyWeights = given.verify_weights != 0;
  if (given.kv_memory)
    engine.kvMemory = given.kv_memory;
  if (given.rank_program)
    engine.ranks.program = given.rank_program;
  if (given.log)
    engine.log = [given](LogLevel level, const std::string &message) {
      given.log(given.user_data, level == LogLevel::Warning, message.c_str());
    };
  if (given.progress)
    engine.progress = [given](uint64_t done, uint64_t total) {
      given.progress(given.user_data, done, total);
    };
  return engine;
}
