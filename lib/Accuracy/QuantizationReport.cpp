//===- QuantizationReport.cpp - What quantization costs -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Accuracy/QuantizationReport.h"

#include "sandwich/Quantization/StorageFormat.h"

#include <algorithm>

using namespace sandwich;

double QuantizationReport::bitsPerWeight() const {
  return 8 * static_cast<double>(weightBytes) / static_cast<double>(elements);
}

double QuantizationReport::originalBitsPerWeight() const {
  return 8 * static_cast<double>(originalWeightBytes) /
         static_cast<double>(originalElements);
}

QuantizationReport QuantizationReport::describe(const Artifact &artifact) {
  const proto::Manifest &manifest = artifact.manifest();
  QuantizationReport report;
  report.model = manifest.model().name();
  report.target = manifest.target().name();
  report.dtype = manifest.target().dtype();
  report.activations = manifest.target().activations();
  report.cacheType = manifest.kv_cache().dtype();
  for (const proto::Tensor &tensor : manifest.tensors()) {
    const uint64_t ranks = std::max<uint64_t>(tensor.ranks(), 1);
    uint64_t elements = ranks;
    for (uint64_t size : tensor.shape())
      elements *= size;
    report.elements += elements;
    report.weightBytes += ranks * tensor.bytes();
    const StorageFormat storage = *StorageFormat::parse(tensor.dtype());
    if (!storage.isQuantized())
      continue;
    const uint64_t k = tensor.shape(tensor.shape_size() - 1);
    report.weights.push_back({.name = tensor.name(),
                              .storage = tensor.dtype(),
                              .bitsPerWeight = sandwich::bitsPerWeight(
                                  storage, static_cast<int64_t>(k)),
                              .kept = tensor.rounding().kept(),
                              .errors = {tensor.rounding().errors().begin(),
                                         tensor.rounding().errors().end()}});
  }
  return report;
}

Json sandwich::toJson(const QuantizationReport &report) {
  Json weights = Json::array();
  for (const WeightRounding &weight : report.weights)
    weights.push_back({{"name", weight.name},
                       {"storage", weight.storage},
                       {"bits_per_weight", weight.bitsPerWeight},
                       {"kept", weight.kept},
                       {"errors", weight.errors}});
  Json object = {{"model", report.model},
                 {"target", report.target},
                 {"dtype", report.dtype},
                 {"activations", report.activations},
                 {"kv_dtype", report.cacheType},
                 {"weight_bytes", report.weightBytes},
                 {"original_weight_bytes", report.originalWeightBytes},
                 {"bits_per_weight", report.bitsPerWeight()},
                 {"original_bits_per_weight", report.originalBitsPerWeight()},
                 {"weights", weights}};
  if (!report.predictions) {
    object["missing"] = report.missing;
    return object;
  }
  const PredictionComparison &predictions = *report.predictions;
  object["predictions"] = {
      {"text", report.text},
      {"first_token", report.firstToken},
      {"tokens", predictions.divergences.size()},
      {"divergence",
       {{"mean", predictions.meanDivergence()},
        {"p99", predictions.divergenceOfShare(0.99)},
        {"max", predictions.divergenceOfShare(1)}}},
      {"top1_agreement", predictions.agreement()},
      {"perplexity", predictions.perplexity},
      {"original_perplexity", predictions.originalPerplexity}};
  return object;
}
