//===- QuantizationReporter.cpp - Making a report -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Accuracy/QuantizationReporter.h"

#include "sandwich/Calibration/Calibration.h"
#include "sandwich/Calibration/FloatModel.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"
#include "sandwich/Runtime/Text/Tokenizer.h"

#include <algorithm>

using namespace sandwich;

struct QuantizationReporter::State {
  Checkpoint checkpoint;
  /// Of the report's text, from its token number `firstToken` on; empty for the
  /// reason `missing`.
  std::vector<int32_t> tokens = {};
  std::string text = {};
  uint64_t firstToken = 0;
  std::string missing = {};

  Status readText(const std::string &path, size_t skipped, int64_t context);
};

/// Keeps the tokens of the file `path` behind the first `skipped` ones.
Status QuantizationReporter::State::readText(const std::string &path,
                                             size_t skipped, int64_t context) {
  SANDWICH_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                            readTokenizer(checkpoint));
  SANDWICH_ASSIGN_OR_RETURN(const std::vector<int32_t> all,
                            readTextTokens(path, tokenizer));
  if (skipped == 0 && all.size() < 2)
    return makeError(path, ": has ", all.size(),
                     " tokens; a report needs at least 2");
  const size_t least = skipped == 0 ? 2 : leastReportedTokens;
  if (all.size() < skipped + least) {
    missing = path + " has no " + std::to_string(least) +
              " tokens behind those that calibration took; give --report-text";
    return {};
  }
  // Every text begins with that, where one does.
  const std::optional<int32_t> begin = checkpoint.config().bosTokenId;
  if (skipped > 0 && begin && all.front() == *begin)
    tokens.push_back(*begin);
  const auto most = static_cast<size_t>(std::min(mostReportedTokens, context));
  const size_t count = std::min(most - tokens.size(), all.size() - skipped);
  tokens.insert(tokens.end(), all.begin() + skipped,
                all.begin() + skipped + count);
  text = path;
  firstToken = skipped;
  return {};
}

QuantizationReporter::QuantizationReporter(std::unique_ptr<State> state)
    : state(std::move(state)) {}

QuantizationReporter::~QuantizationReporter() = default;

Result<std::unique_ptr<QuantizationReporter>>
QuantizationReporter::create(const CompileOptions &options,
                             const std::optional<std::string> &text) {
  SANDWICH_ASSIGN_OR_RETURN(
      Checkpoint checkpoint,
      Checkpoint::open(options.modelFolder, options.task));
  SANDWICH_ASSIGN_OR_RETURN(const int64_t context,
                            contextOf(options, checkpoint.config()));
  auto state = std::make_unique<State>(State{std::move(checkpoint)});
  if (state->checkpoint.config().encodes()) {
    if (text)
      return makeError("models that embed or classify predict no tokens; leave "
                       "out the report's text");
    state->missing = "the model embeds or classifies, and predicts no tokens";
  } else if (text) {
    SANDWICH_RETURN_IF_ERROR(state->readText(*text, 0, context));
  } else if (options.calibrationText) {
    SANDWICH_RETURN_IF_ERROR(state->readText(
        *options.calibrationText,
        static_cast<size_t>(std::min(options.calibrationTokens, context)),
        context));
  } else {
    state->missing = "that needs a text, which --report-text names";
  }
  return std::unique_ptr<QuantizationReporter>(
      new QuantizationReporter(std::move(state)));
}

/// Adds what the checkpoint's tensors take.
static void addOriginal(const Checkpoint &checkpoint,
                        QuantizationReport &report) {
  for (const ExpectedTensor &expected : expectedTensors(checkpoint.config())) {
    const TensorView *tensor = checkpoint.find(expected.name);
    if (!tensor)
      continue;
    uint64_t elements = 1;
    for (int64_t size : expected.shape)
      elements *= static_cast<uint64_t>(size);
    report.originalElements += elements;
    // Scales and the like are tensors of their own in some files.
    const int64_t columns = expected.shape.back();
    report.originalWeightBytes +=
        tensor->integers
            ? static_cast<uint64_t>(weightBytes(
                  tensor->integers->format(),
                  static_cast<int64_t>(elements) / columns, columns))
            : tensor->bytes.size();
  }
}

Result<QuantizationReport>
QuantizationReporter::report(const std::string &path,
                             const CompileProgress &progress) const {
  ArtifactOpenOptions any;
  any.availableFeatures.reset();
  any.use.reset();
  SANDWICH_ASSIGN_OR_RETURN(Artifact described, Artifact::open(path, any));
  QuantizationReport report = QuantizationReport::describe(described);
  addOriginal(state->checkpoint, report);
  report.missing = state->missing;
  if (state->tokens.empty())
    return report;

  auto load = [&]() -> Result<std::unique_ptr<Engine>> {
    SANDWICH_ASSIGN_OR_RETURN(Artifact artifact, Artifact::open(path));
    EngineOptions options;
    options.kvCacheTokens = state->tokens.size();
    options.requiredTokens = state->tokens.size();
    options.prefixCache = false;
    return Engine::create(std::move(artifact), options);
  };
  SANDWICH_RETURN_IF_ERROR(progress(stageArtifact, 0));
  Result<std::unique_ptr<Engine>> engine = load();
  if (!engine) {
    report.missing =
        "the artifact does not run here: " + engine.error().message;
    return report;
  }
  FloatModelOptions running;
  running.progress = [&](double done) { return progress(stageOriginal, done); };
  SANDWICH_ASSIGN_OR_RETURN(
      const std::vector<double> original,
      runInFloats(state->checkpoint, state->tokens, running));
  SANDWICH_ASSIGN_OR_RETURN(
      report.predictions,
      comparePredictions(**engine, state->tokens, original, [&](double done) {
        return progress(stageArtifact, done);
      }));
  report.text = state->text;
  report.firstToken = state->firstToken;
  return report;
}
