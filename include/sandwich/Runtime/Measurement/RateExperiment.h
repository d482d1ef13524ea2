//===- RateExperiment.h - Requests served at several rates ------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What all that serve traces have in common, an engine of this process or a
/// server behind HTTP: rates one after another or the search for goodput, and
/// what is told of the runs.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_MEASUREMENT_RATEEXPERIMENT_H
#define SANDWICH_RUNTIME_MEASUREMENT_RATEEXPERIMENT_H

#include "sandwich/Runtime/Measurement/ReplayPage.h"
#include "sandwich/Runtime/Measurement/ReplaySummary.h"
#include "sandwich/Runtime/Measurement/ServedRequest.h"
#include "sandwich/Serving/GoodputSearch.h"
#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sandwich {

struct RateExperimentOptions {
  /// Requests a second, served one after another; none: once, with the
  /// arrivals that the requests have.
  std::vector<double> rates = {};
  /// Looks for the goodput instead.
  bool findsGoodput = false;
  /// Its attainment is also that of the rates.
  GoodputOptions goodput = {};
  /// Those that attainment is told of.
  ServiceObjectives objectives = {};
  /// Several: `objectives` are unscaled, and attainment is told of each scale.
  std::vector<double> objectiveScales = {1};
  /// Gets a line about each rate that was tried; may be empty.
  std::function<void(const std::string &line)> tell = {};
  /// What is told of a run beside its summary: members of an object, and lines.
  /// Either may be empty.
  std::function<Json(const ReplayRun &run)> moreOfRun = {};
  std::function<std::string(const ReplayRun &run)> moreLinesOfRun = {};
};

/// Serves requests that arrive `rate` a second, or, without a rate, as they
/// are, adds those that were served to `run` and, if it is not empty, tells
/// `observe` of each, which may want no more. `serveRun` helps.
using RunServer = std::function<Status(
    std::optional<double> rate, ReplayRun &run, const KeptObserver &observe)>;

class RateExperiment {
public:
  explicit RateExperiment(RateExperimentOptions options)
      : options(std::move(options)) {}

  /// Serves what the options ask for. Errors: invalid options, and the
  /// server's; what was served until then is kept.
  Status run(const RunServer &server);

  const std::vector<ReplayRun> &runs() const { return served; }
  const RateExperimentOptions &settings() const { return options; }

  /// Members of an object: of the only run, or an array of "rates" and the
  /// goodput that was found.
  Json toJson() const;
  /// Lines for people.
  std::string describeRuns() const;
  /// "goodput: 3.91 requests/s ...", or nothing where it was not looked for.
  std::string describeGoodput() const;
  /// Lines for a page: objectives and goodput, of those that there are.
  std::vector<std::string> pageLines() const;

private:
  Status runRates(const RunServer &server);
  Status searchGoodput(const RunServer &server);
  void tell(const RateTrial &trial) const;
  Json describeRun(const ReplayRun &run) const;

  RateExperimentOptions options;
  std::vector<ReplayRun> served;
  Goodput goodput;
};

/// Serves a trace with the options, as `replayTrace` does.
using TraceServer = std::function<Result<std::vector<ServedRequest>>(
    const TraceReplayOptions &options)>;

/// Serves a trace of `requests` requests with `server`, which gets `options`
/// with an observer of its own, for a `RunServer`. Errors: the server's; that
/// it stopped although more requests were wanted.
Status serveRun(size_t requests, const ServiceObjectives &objectives,
                TraceReplayOptions options, const TraceServer &server,
                ReplayRun &run, const KeptObserver &observe);

} // namespace sandwich

#endif // SANDWICH_RUNTIME_MEASUREMENT_RATEEXPERIMENT_H
