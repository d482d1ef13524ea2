//===- OncePerClass.cpp - One evaluation for each class -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/OncePerClass.h"

#include <cmath>
#include <iterator>
#include <limits>

using namespace sandwich;

Result<double>
OncePerClass::predict(const ServiceConfiguration &configuration) {
  lastWasKnown = false;
  SANDWICH_ASSIGN_OR_RETURN(double modelled, model.predict(configuration));
  // What does not fit need not be tried.
  if (!std::isfinite(modelled))
    return std::numeric_limits<double>::infinity();
  std::map<double, double> &ofShape = known[configuration.shape()];
  auto place = ofShape.lower_bound(modelled);
  for (auto near : {place, place == ofShape.begin() ? place : std::prev(place)})
    if (near != ofShape.end() && areEqualPredictions(near->first, modelled)) {
      ++sparedSoFar;
      lastWasKnown = true;
      return near->second;
    }
  SANDWICH_ASSIGN_OR_RETURN(double answer, evaluator.predict(configuration));
  ofShape.emplace(modelled, answer);
  return answer;
}
