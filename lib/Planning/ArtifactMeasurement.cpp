//===- ArtifactMeasurement.cpp - Step times of an artifact ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Planning/ArtifactMeasurement.h"

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Runtime/Engine/Engine.h"
#include "sandwich/Service/StepCostMeasurement.h"

#include <algorithm>
#include <memory>

using namespace sandwich;

/// Tokens of the KV cache, and sequences that have a block of it at least.
static constexpr uint64_t cacheTokens = 2048, cacheSequences = 64;

static Result<StepCosts> measure(const std::string &path,
                                 const CompileProgress &progress) {
  SANDWICH_RETURN_IF_ERROR(progress(stageMeasuring, 0));
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
  EngineOptions options;
  options.kvCacheTokens =
      std::max<uint64_t>(cacheTokens, artifact.prefill().max_tokens());
  options.maxSequences =
      std::min(artifact.maxDecodeSequences(), cacheSequences);
  options.prefixCache = false;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::create(std::move(artifact), options));
  StepCostMeasurementOptions measuring;
  measuring.seconds = 12;
  measuring.samples = 3;
  measuring.progress = [&](double done) {
    return progress(stageMeasuring, done);
  };
  return measureStepCosts(*engine, measuring);
}

Status sandwich::measureArtifact(const std::string &path,
                                 const CompileProgress &progress) {
  ArtifactOpenOptions either;
  either.use.reset();
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path, either));
  if (artifact.manifest().has_encoding())
    return {};
  SANDWICH_ASSIGN_OR_RETURN(StepCosts costs, measure(path, progress));
  return ArtifactWriter::setStepTimes(path, toStepTimes(costs));
}
