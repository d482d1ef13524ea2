//===- QuantizationReporter.h - Making a report -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ACCURACY_QUANTIZATIONREPORTER_H
#define SANDWICH_ACCURACY_QUANTIZATIONREPORTER_H

#include "sandwich/Accuracy/QuantizationReport.h"
#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Support/Result.h"

#include <memory>
#include <optional>
#include <string>

namespace sandwich {

/// Tokens of a text that a report predicts at most, and at least.
inline constexpr int64_t mostReportedTokens = 512, leastReportedTokens = 32;

/// The stages that `QuantizationReporter::report` tells.
inline constexpr std::string_view stageOriginal = "predicting in floats";
inline constexpr std::string_view stageArtifact = "predicting";

/// Compares an artifact with the checkpoint it is made from.
class QuantizationReporter {
public:
  /// Opens the checkpoint of `options`, and reads what is to be predicted: the
  /// beginning of the file `text`, or what `options.calibrationText` has behind
  /// the tokens that calibration takes. Without either, or where that is too
  /// short, reports have errors of weights only, and say so. Errors: of the
  /// checkpoint; a text that is named and cannot be read, or has fewer than two
  /// tokens.
  static Result<std::unique_ptr<QuantizationReporter>>
  create(const CompileOptions &options, const std::optional<std::string> &text);
  ~QuantizationReporter();

  /// Runs the artifact `path`, compiled from the checkpoint, and the checkpoint
  /// as `runInFloats` does. Where this machine cannot run the artifact, the
  /// report says why and has errors of weights only. Errors: an artifact that
  /// cannot be read; of the checkpoint's weights; the progress callback's.
  Result<QuantizationReport> report(const std::string &path,
                                    const CompileProgress &progress) const;

private:
  struct State;
  explicit QuantizationReporter(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace sandwich

#endif // SANDWICH_ACCURACY_QUANTIZATIONREPORTER_H
