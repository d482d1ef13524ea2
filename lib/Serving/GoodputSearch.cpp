//===- GoodputSearch.cpp - The highest rate that is served well -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Serving/GoodputSearch.h"

#include <algorithm>
#include <cmath>

using namespace sandwich;

Status GoodputOptions::validate() const {
  // Comparisons that NaN fails.
  if (!(attainment > 0 && attainment < 1))
    return makeError(ErrorKind::InvalidArgument, "the attainment wanted is ",
                     attainment, "; it must be between 0 and 1");
  if (!(lowestRate > 0 && lowestRate <= firstRate && firstRate <= highestRate &&
        std::isfinite(highestRate)))
    return makeError(ErrorKind::InvalidArgument, "the first rate is ",
                     firstRate, "; it must be from ", lowestRate, " to ",
                     highestRate, " requests a second");
  if (!(precision > 1))
    return makeError(ErrorKind::InvalidArgument, "the precision is ", precision,
                     "; it must be above 1");
  if (leastRequests == 0 || leastRequests > mostRequests)
    return makeError(ErrorKind::InvalidArgument, "a rate is tried with ",
                     leastRequests, " to ", mostRequests,
                     " requests; these must ascend from 1 on");
  return {};
}

void RateTrial::conclude(double wantedAttainment) {
  interval = wilsonInterval(kept, requests);
  certain = !interval.contains(wantedAttainment);
  attained = attainment() >= wantedAttainment;
}

static Result<RateTrial> tryRate(const GoodputOptions &options, double rate,
                                 const RateRunner &runner) {
  RateTrial trial;
  trial.rate = rate;
  size_t nextLook = options.leastRequests;
  SANDWICH_RETURN_IF_ERROR(runner(rate, options.mostRequests, [&](bool kept) {
    ++trial.requests;
    trial.kept += kept;
    if (trial.requests < nextLook)
      return true;
    nextLook = std::min(2 * nextLook, options.mostRequests);
    trial.conclude(options.attainment);
    return !trial.certain && trial.requests < options.mostRequests;
  }));
  if (trial.requests == 0)
    return makeError(ErrorKind::Internal, "no request of ", rate,
                     " a second was served or refused");
  trial.conclude(options.attainment);
  return trial;
}

Result<Goodput>
sandwich::findGoodput(const GoodputOptions &options, const RateRunner &runner,
                      const std::function<void(const RateTrial &)> &onTrial) {
  SANDWICH_RETURN_IF_ERROR(options.validate());
  Goodput found;
  double rate = options.firstRate;
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(const RateTrial trial,
                              tryRate(options, rate, runner));
    if (onTrial)
      onTrial(trial);
    (trial.attained ? found.rate : found.tooHigh) = rate;
    if (!found.tooHigh) {
      if (rate == options.highestRate)
        return found;
      rate = std::min(2 * rate, options.highestRate);
    } else if (!found.rate) {
      if (rate == options.lowestRate)
        return found;
      rate = std::max(rate / 2, options.lowestRate);
    } else {
      if (*found.tooHigh <= options.precision * *found.rate)
        return found;
      rate = std::sqrt(*found.rate * *found.tooHigh);
    }
  }
}
