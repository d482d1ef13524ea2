//===- QuantizationReport.h - What quantization costs -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_ACCURACY_QUANTIZATIONREPORT_H
#define SANDWICH_ACCURACY_QUANTIZATIONREPORT_H

#include "sandwich/Accuracy/PredictionComparison.h"
#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

/// A weight of integers.
struct WeightRounding {
  std::string name;
  /// `StorageFormat::name`.
  std::string storage;
  double bitsPerWeight = 0;
  /// Taken from the checkpoint as they are.
  bool kept = false;
  /// The relative error of each layer, or one outside of them (`Rounding` of
  /// manifest.proto).
  std::vector<double> errors;
};

/// What an artifact is compared with its checkpoint.
struct QuantizationReport {
  std::string model;
  /// As `proto::Target` has them.
  std::string target, dtype, activations;
  std::string cacheType;
  /// Of the tensors in the artifact and in the checkpoint, without padding
  /// around them.
  uint64_t weightBytes = 0, originalWeightBytes = 0;
  /// The elements of both.
  uint64_t elements = 0, originalElements = 0;
  double bitsPerWeight() const;
  double originalBitsPerWeight() const;
  std::vector<WeightRounding> weights;

  /// The file of the text that was predicted, the first of its tokens that was,
  /// and what came of it.
  std::string text;
  uint64_t firstToken = 0;
  std::optional<PredictionComparison> predictions;
  /// Why there are no predictions, and what to do; empty where there are.
  std::string missing;

  /// What `artifact` tells of itself, without its original.
  static QuantizationReport describe(const Artifact &artifact);
};

/// All figures, as docs/QuantizationReport.md describes them.
Json toJson(const QuantizationReport &report);

/// A page of HTML that needs nothing else: the figures, the errors of weights
/// over layers as a picture, and how divergences are distributed. Well-formed
/// XML.
std::string drawQuantizationReport(const QuantizationReport &report);

} // namespace sandwich

#endif // SANDWICH_ACCURACY_QUANTIZATIONREPORT_H
