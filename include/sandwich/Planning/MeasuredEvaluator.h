//===- MeasuredEvaluator.h - Configurations run here ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_PLANNING_MEASUREDEVALUATOR_H
#define SANDWICH_PLANNING_MEASUREDEVALUATOR_H

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Serving/Prediction/TracePrediction.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/ServingTrace.h"
#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct MeasuredEvaluatorOptions {
  /// How the model is compiled for a configuration, which replaces the plan and
  /// the numbers of threads and ranks; the output is the evaluator's own.
  /// Without tuning, the cost model's schedules run.
  CompileOptions compile;
  /// How the trace is served; an artifact's own limits count before those.
  TracePredictionOptions serving;
  /// Where the artifacts lie meanwhile, two at a time, each as large as the
  /// model; empty for the system's folder for such files.
  std::string folder;
  /// Hears what is done; an error ends the evaluation with it.
  CompileProgress progress;
};

/// Runs the phases of a configuration on this machine: compiles the model for
/// it, measures prompts and decode steps of a trace (`stepGridFor`), and serves
/// the trace in simulated time with what it measured (`TracePrediction`), at
/// most as many sequences at a time as the decode phase takes.
///
/// Neighbours and clocks change a machine's speed by more than configurations
/// differ. The first configuration therefore stays loaded, so that two need
/// memory at a time. Each other one is measured in turn with it, round by
/// round, and what counts is the median over the rounds of the ratio of both
/// latencies.
class MeasuredEvaluator : public ConfigurationEvaluator {
public:
  /// Nothing is compiled yet. Error: the folder cannot be written to.
  static Result<std::unique_ptr<MeasuredEvaluator>>
  create(MeasuredEvaluatorOptions options, ServingTrace trace);
  ~MeasuredEvaluator() override;

  /// What `TracePrediction::cost` tells, in milliseconds, of the trace cut to
  /// the model's context (`fitTrace`); infinity for one that does not compile,
  /// load or run, of which `notes` then tells. The first one that runs is the
  /// reference. Errors: the reference ended while another was measured beside
  /// it; the progress callback's.
  Result<double> predict(const ServiceConfiguration &configuration) override;

  /// Why configurations could not run, a line each.
  const std::vector<std::string> &notes() const { return problems; }

private:
  class Candidate;
  struct Reference;

  MeasuredEvaluator(MeasuredEvaluatorOptions options, ServingTrace trace);

  Result<std::string> artifactFor(const PlanCores &cores);
  Result<double> evaluate(const PlanCores &cores);
  Status report(std::string_view stage, double done) const;

  const MeasuredEvaluatorOptions options;
  const ServingTrace trace;
  /// Of this evaluator alone.
  ScratchFolder folder;
  std::unique_ptr<Reference> reference;
  /// Of the last artifact, which is in `folder` under its name.
  std::optional<ConfigurationShape> shape;
  int evaluated = 0;
  bool referenceFailed = false;
  std::vector<std::string> problems;
};

} // namespace sandwich

#endif // SANDWICH_PLANNING_MEASUREDEVALUATOR_H
