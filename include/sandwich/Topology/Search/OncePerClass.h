//===- OncePerClass.h - One evaluation for each class -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TOPOLOGY_SEARCH_ONCEPERCLASS_H
#define SANDWICH_TOPOLOGY_SEARCH_ONCEPERCLASS_H

#include "sandwich/Topology/Search/ConfigurationSearch.h"

#include <map>

namespace sandwich {

/// Asks an evaluator that takes long about one configuration of each class that
/// a model knows, the one that comes first, and gives the others its answer.
/// They are equal as far as the model is told of the machine: that cores share
/// something of which it knows nothing is not seen.
class OncePerClass : public ConfigurationEvaluator {
public:
  /// Both are used as long as this is.
  OncePerClass(ConfigurationEvaluator &model, ConfigurationEvaluator &evaluator)
      : model(model), evaluator(evaluator) {}

  /// What `evaluator` says, infinity where the model does. Errors: of both.
  Result<double> predict(const ServiceConfiguration &configuration) override;
  /// What the model says of its own prediction.
  PredictedTime explain(const ServiceConfiguration &configuration) override {
    return model.explain(configuration);
  }
  /// The model's reason, else the evaluator's.
  std::optional<std::string>
  whyNot(const ServiceConfiguration &configuration) override {
    std::optional<std::string> reason = model.whyNot(configuration);
    return reason ? reason : evaluator.whyNot(configuration);
  }

  bool knewLast() const override { return lastWasKnown; }

  /// How many configurations were given the answer for another one.
  uint64_t spared() const { return sparedSoFar; }

private:
  ConfigurationEvaluator &model;
  ConfigurationEvaluator &evaluator;
  /// Of each shape, by what the model says, what the evaluator said.
  std::map<ConfigurationShape, std::map<double, double>> known;
  uint64_t sparedSoFar = 0;
  bool lastWasKnown = false;
};

} // namespace sandwich

#endif // SANDWICH_TOPOLOGY_SEARCH_ONCEPERCLASS_H
