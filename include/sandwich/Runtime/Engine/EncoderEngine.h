//===- EncoderEngine.h - A loaded model that encodes texts ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A loaded model that makes vectors or scores of whole texts, in batches. The
/// texts of a batch lie one behind the other, without padding: what a batch
/// costs is the sum of their tokens. Nothing of a batch survives it.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_ENGINE_ENCODERENGINE_H
#define SANDWICH_RUNTIME_ENGINE_ENCODERENGINE_H

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Runtime/Memory/MemoryLedger.h"
#include "sandwich/Runtime/Teams/CoreArbiter.h"
#include "sandwich/Runtime/Teams/PhaseTeam.h"
#include "sandwich/Runtime/Teams/StepProfiler.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/Log.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sandwich {

struct EncoderEngineOptions {
  /// The CPUs of the team's threads, one for each, as the operating system
  /// counts them; none: those that `CpuBudget::cpusFor` gives.
  std::vector<unsigned> cpus = {};
  /// The NUMA node, as the operating system counts them, that weights and
  /// buffers are bound to.
  std::optional<unsigned> numaNode = {};
  WeightPlacement weightPlacement = WeightPlacement::Mapped;
  /// Reads all weights and compares them with their checksum first.
  bool verifyWeights = false;
  /// Of processes with several models: what it asks for memory, and before each
  /// batch for cores, of which it gets `coreWeight` times as many as one of
  /// weight 1. Nothing: it has the process to itself.
  std::shared_ptr<MemoryLedger> memoryLedger = {};
  std::shared_ptr<CoreArbiter> coreArbiter = {};
  double coreWeight = 1;
  /// Told how far the weights are loaded.
  ProgressCallback progress = {};
  LogCallback log = {};
};

/// What is wanted of a batch.
enum class EncoderOutput {
  /// One row for each text: its vector, or its scores.
  Texts,
  /// One row for each token; of models that make vectors.
  Tokens,
};

/// A text's tokens, or those of a pair of texts.
struct EncoderInput {
  std::span<const int32_t> ids;
  /// For each token the number of its text; empty: all are of the first.
  std::span<const int32_t> types = {};
};

/// Used by one thread at a time.
class EncoderEngine {
public:
  /// What an engine of these options will need, for `MemoryLedger::expect`
  /// under the artifact's path.
  static MemoryNeeds memoryNeeds(const Artifact &artifact,
                                 const EncoderEngineOptions &options);

  /// Loads weights and code of an artifact of `ModelUse::Encode`, and starts
  /// the team. Errors: weights that are not what they were, if that is asked
  /// for; what will not fit into memory, found before anything is loaded; files
  /// that do not load; more or fewer CPUs than threads; memory and threads that
  /// the system does not grant.
  static Result<std::unique_ptr<EncoderEngine>>
  create(Artifact artifact, const EncoderEngineOptions &options);

  ~EncoderEngine();
  EncoderEngine(const EncoderEngine &) = delete;
  EncoderEngine &operator=(const EncoderEngine &) = delete;

  const Artifact &artifact() const { return source; }
  const proto::ModelConfiguration &model() const {
    return source.manifest().model();
  }
  const proto::Encoding &encoding() const {
    return source.manifest().encoding();
  }

  /// Whether it scores texts, instead of making vectors of them.
  bool classifies() const { return encoding().labels() > 0; }
  /// Values in a row.
  uint64_t columns() const;
  /// Tokens of the longest text.
  uint64_t contextLength() const { return model().context_length(); }
  /// Tokens and texts of the largest batch.
  uint64_t maxTokens() const { return stepTokens; }
  uint64_t maxTexts() const { return stepTexts; }

  /// Error: InvalidArgument, for no tokens, ids outside the vocabulary, types
  /// that the model does not have or that are not as many; ContextExceeded.
  Status check(const EncoderInput &input) const;

  /// [rows, columns] of the texts, one after another, valid until the next
  /// batch. Errors, of any text (`check`) or of all: InvalidArgument for none,
  /// for more texts or tokens than a batch has, and for rows of tokens where
  /// texts are classified; Unavailable in a fork of the process that created
  /// the engine.
  Result<std::span<const float>> run(std::span<const EncoderInput> batch,
                                     EncoderOutput output);

  /// Profiles the batches from now on; null ends it. Of the phase `phaseOf` the
  /// output that they are run for. Not to be called while one runs.
  void profileInto(StepProfiler *stepProfiler) { profiler = stepProfiler; }
  const proto::Phase &phaseOf(EncoderOutput output) const;

  /// The team, for who reads where its threads are.
  PhaseTeam &team() { return *threads; }

private:
  EncoderEngine(Artifact source, WeightStorage weights, PhaseLibrary phases)
      : source(std::move(source)), weights(std::move(weights)),
        phases(std::move(phases)) {}

  Status arrange(std::span<const EncoderInput> batch, EncoderOutput output);

  /// Lets the arbiter know of the team.
  Status shareCores(const EncoderEngineOptions &options);

  Artifact source;
  /// Given back after all that it is of.
  MemoryReservation reservation;
  WeightStorage weights;
  PhaseLibrary phases;
  std::unique_ptr<PhaseTeam> threads;
  /// Keys and values of the layer that is computed. All but its first blocks,
  /// those of a batch, are never touched.
  AnonymousMemory cache;
  AnonymousMemory workspace;
  AnonymousMemory rows;
  uint64_t stepTokens = 0;
  uint64_t stepTexts = 0;
  /// Null without an arbiter.
  std::unique_ptr<CoreMember> cores;
  CoreDemand demand;
  StepProfiler *profiler = nullptr;

  // Of the batch; kept to spare allocations.
  std::vector<int32_t> ids, types, positions, slots, blocks, wanted;
  std::vector<SandwichSegment> segments;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_ENGINE_ENCODERENGINE_H
