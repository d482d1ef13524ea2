//===- StepCostPrediction.cpp - What steps of an artifact take ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepCostPrediction.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Machine/MachineDescription.h"
#include "sandwich/Machine/Process/CpuBudget.h"
#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Serving/Prediction/StepCostPrediction.h"
#include "sandwich/Target/Target.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

using namespace sandwich;

static ModelWork workOf(const proto::Manifest &manifest) {
  const proto::ModelConfiguration &model = manifest.model();
  ModelWork work;
  work.layers = model.layers();
  work.hiddenSize = model.hidden_size();
  work.intermediateSize = model.intermediate_size();
  work.queryHeads = model.heads();
  work.keyValueHeads = model.kv_heads();
  work.headDim = model.head_dim();
  work.vocabulary = model.vocab_size();
  work.bytesPerWeight =
      bitsPerWeight(*StorageFormat::parse(manifest.target().dtype()),
                    work.hiddenSize) /
      8;
  work.roundsInputs =
      manifest.target().activations() == name(MatrixElement::Int8);
  work.bytesPerKeyValue = static_cast<double>(artifact::keyValueBytes(
                              manifest.kv_cache().dtype(), model.head_dim())) /
                          model.head_dim();
  return work;
}

/// The CPUs of a team whose threads have one each; nothing of others.
static std::optional<std::vector<unsigned>> cpusOf(const TeamPlacement &team) {
  std::vector<unsigned> cpus;
  for (const std::vector<unsigned> &thread : team) {
    if (thread.size() != 1)
      return std::nullopt;
    cpus.push_back(thread.front());
  }
  return cpus;
}

/// Where the threads of `engine` are, else the first cores that it may use.
/// Error: it may use fewer than it has threads.
static Result<PlanCores> coresOf(const Engine &engine) {
  PlanCores cores;
  for (const RankPlacement &rank : engine.rankPlacement()) {
    std::optional<std::vector<unsigned>> prefill = cpusOf(rank.prefill);
    std::optional<std::vector<unsigned>> decode = cpusOf(rank.decode);
    if (!prefill || !decode)
      break;
    cores.prefill.push_back(std::move(*prefill));
    cores.decode.push_back(std::move(*decode));
  }
  const Artifact &artifact = engine.artifact();
  const size_t ranks = artifact::ranks(artifact.manifest());
  if (cores.prefill.size() == ranks)
    return cores;
  cores = {};
  const size_t prefill = artifact.prefill().threads();
  const size_t decode = artifact.decode().threads();
  SANDWICH_ASSIGN_OR_RETURN(const CpuBudget budget, readCpuBudget());
  const size_t each = std::max(prefill, decode);
  if (budget.cpus.size() / each < ranks)
    return makeError(ranks, " processes of ", each, " threads have ",
                     budget.cpus.size(), " CPUs");
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto first = budget.cpus.begin() + static_cast<long>(rank * each);
    cores.prefill.emplace_back(first, first + static_cast<long>(prefill));
    cores.decode.emplace_back(first, first + static_cast<long>(decode));
  }
  return cores;
}

Result<StepCosts> sandwich::predictStepCosts(const Engine &engine,
                                             const SchedulerLimits &limits) {
  const proto::Manifest &manifest = engine.artifact().manifest();
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(manifest.target().name()));
  SANDWICH_ASSIGN_OR_RETURN(PlanCores cores, coresOf(engine));
  SANDWICH_ASSIGN_OR_RETURN(Machine machine, readMachineTopology("host"));
  const ModelWork work = workOf(manifest);
  SANDWICH_ASSIGN_OR_RETURN(
      LatencyModel model,
      LatencyModel::create(machine.root, describeMachine(machine, target),
                           work.matrixElement()));
  return predictStepCosts(model, work, cores, limits);
}
