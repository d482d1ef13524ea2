//===- LatencyFit.cpp - Latency as a line over concurrency ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/LatencyFit.h"

#include "sandwich/Support/Statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace sandwich;

/// Deviations of a normal distribution for each median absolute one.
static constexpr double deviationsPerMedian = 1.4826;

/// Of Tukey's weights: 95% of the efficiency of least squares where residuals
/// are normal.
static constexpr double cutoff = 4.685;

/// Residuals below this share of the median latency are never outliers: clocks
/// and neighbours move each measurement by as much. Three points of which two
/// are exactly on a line would otherwise leave the third out.
static constexpr double leastDeviation = 0.01;

/// After as many rounds the weights stand still.
static constexpr int mostRounds = 50;
static constexpr double stillness = 1e-12;

uint32_t LatencyLine::depthFor(double sloSeconds) const {
  if (!keepsSlo(seconds(1), sloSeconds))
    return 0;
  if (keepsSlo(seconds(maxQueueDepth), sloSeconds))
    return maxQueueDepth;
  // alpha > 0, or the deepest queue would keep the SLO.
  const auto depth =
      static_cast<uint32_t>(std::max(1.0, (sloSeconds - beta) / alpha));
  return keepsSlo(seconds(depth + 1), sloSeconds) ? depth + 1 : depth;
}

Status sandwich::checkSeconds(const char *name, double seconds) {
  if (!(seconds > 0 && seconds <= maxDeviceSeconds))
    return makeError(ErrorKind::InvalidArgument, name, " is ", seconds,
                     " seconds; it must be above 0 and at most ",
                     maxDeviceSeconds);
  return {};
}

static Status checkPoints(std::span<const ProfilePoint> points) {
  if (points.size() < LatencyFit::leastPoints)
    return makeError(ErrorKind::InvalidArgument, "a line needs at least ",
                     LatencyFit::leastPoints, " profiles, and there are ",
                     points.size());
  if (points.size() > LatencyFit::mostPoints)
    return makeError(ErrorKind::InvalidArgument, "a line is fitted to at most ",
                     LatencyFit::mostPoints, " profiles, and there are ",
                     points.size());
  for (const ProfilePoint &point : points) {
    if (point.concurrency < 1 || point.concurrency > maxQueueDepth)
      return makeError(ErrorKind::InvalidArgument, "a profile is of ",
                       point.concurrency, " queries; it must be 1 to ",
                       maxQueueDepth);
    SANDWICH_RETURN_IF_ERROR(checkSeconds("a profile", point.seconds));
  }
  const uint32_t first = points.front().concurrency;
  if (std::ranges::all_of(points, [&](const ProfilePoint &point) {
        return point.concurrency == first;
      }))
    return makeError(ErrorKind::InvalidArgument, "all ", points.size(),
                     " profiles are of ", first,
                     " queries; a line needs two concurrencies");
  return {};
}

/// The repeated median: of each point the median of the slopes to all others,
/// and the median of these; and the median of what it leaves. Within the
/// constraints.
static LatencyLine startingLine(std::span<const ProfilePoint> points) {
  std::vector<double> slopes, rest;
  for (const ProfilePoint &point : points) {
    std::vector<double> own;
    for (const ProfilePoint &other : points)
      if (other.concurrency != point.concurrency)
        own.push_back((other.seconds - point.seconds) /
                      (static_cast<double>(other.concurrency) -
                       static_cast<double>(point.concurrency)));
    slopes.push_back(median(std::move(own)));
  }
  const double alpha = std::max(0.0, median(std::move(slopes)));
  for (const ProfilePoint &point : points)
    rest.push_back(point.seconds - alpha * point.concurrency);
  return {alpha, std::max(0.0, median(std::move(rest)))};
}

/// Weighted least squares within the constraints. Where one of them is broken,
/// the best line lies on its edge, as all seconds are above 0.
static LatencyLine weightedLine(std::span<const ProfilePoint> points,
                                std::span<const double> weights) {
  double sum = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double concurrency = points[i].concurrency;
    const double seconds = points[i].seconds;
    sum += weights[i];
    x += weights[i] * concurrency;
    y += weights[i] * seconds;
    xx += weights[i] * concurrency * concurrency;
    xy += weights[i] * concurrency * seconds;
  }
  const double determinant = sum * xx - x * x;
  // All that still count have one concurrency.
  if (determinant <= stillness * sum * xx)
    return {0, y / sum};
  const double alpha = (sum * xy - x * y) / determinant;
  const double beta = (y - alpha * x) / sum;
  if (alpha < 0)
    return {0, y / sum};
  if (beta < 0)
    return {xy / xx, 0};
  return {alpha, beta};
}

/// The deviation of the points from the line where half of them lie.
static double deviationFrom(const LatencyLine &line,
                            std::span<const ProfilePoint> points) {
  std::vector<double> distances, seconds;
  for (const ProfilePoint &point : points) {
    distances.push_back(
        std::abs(point.seconds - line.seconds(point.concurrency)));
    seconds.push_back(point.seconds);
  }
  return std::max(deviationsPerMedian * median(std::move(distances)),
                  leastDeviation * median(std::move(seconds)));
}

/// Tukey's weight of a residual.
static double weightOf(double residual, double deviation) {
  const double share = residual / (cutoff * deviation);
  if (std::abs(share) >= 1)
    return 0;
  const double rest = 1 - share * share;
  return rest * rest;
}

static double explainedShare(std::span<const ProfilePoint> points,
                             std::span<const double> residuals) {
  double mean = 0;
  for (const ProfilePoint &point : points)
    mean += point.seconds / static_cast<double>(points.size());
  double left = 0, all = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    left += residuals[i] * residuals[i];
    all += (points[i].seconds - mean) * (points[i].seconds - mean);
  }
  return all > 0 ? 1 - left / all : 1;
}

Result<LatencyFit> LatencyFit::create(std::span<const ProfilePoint> points) {
  SANDWICH_RETURN_IF_ERROR(checkPoints(points));
  LatencyFit fit;
  fit.line = startingLine(points);
  const double deviation = deviationFrom(fit.line, points);
  std::vector<double> weights(points.size());
  for (int round = 0; round < mostRounds; ++round) {
    for (size_t i = 0; i < points.size(); ++i)
      weights[i] =
          weightOf(points[i].seconds - fit.line.seconds(points[i].concurrency),
                   deviation);
    // Half of the points are within one deviation at the start.
    const LatencyLine next = weightedLine(points, weights);
    const double moved = std::abs(next.alpha - fit.line.alpha) +
                         std::abs(next.beta - fit.line.beta);
    fit.line = next;
    if (moved <= stillness)
      break;
  }
  for (size_t i = 0; i < points.size(); ++i) {
    fit.residuals.push_back(points[i].seconds -
                            fit.line.seconds(points[i].concurrency));
    if (weightOf(fit.residuals[i], deviation) == 0)
      fit.outliers.push_back(i);
  }
  fit.rSquared = explainedShare(points, fit.residuals);
  return fit;
}

std::string LatencyFit::describe() const {
  char text[160];
  std::snprintf(text, sizeof(text),
                "alpha %.4g ms, beta %.4g ms, R^2 %.4f, %zu of %zu points left "
                "out",
                line.alpha * 1e3, line.beta * 1e3, rSquared, outliers.size(),
                residuals.size());
  return text;
}
