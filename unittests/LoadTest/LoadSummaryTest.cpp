//===- LoadSummaryTest.cpp - What a server did beside serving -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/LoadSummary.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace sandwich;

static ServedRequest served(double arrival, double firstToken,
                            std::vector<double> gaps, uint64_t tokens) {
  ServedRequest request;
  request.arrival = arrival;
  request.sent = arrival + 0.001;
  request.firstToken = firstToken;
  request.gaps = std::move(gaps);
  request.lastToken = request.ended =
      std::accumulate(request.gaps.begin(), request.gaps.end(), firstToken);
  request.promptTokens = 10;
  request.outputTokens = tokens;
  return request;
}

static ServedRequest failed(double arrival, const std::string &kind,
                            const std::string &message) {
  ServedRequest request;
  request.arrival = request.sent = request.ended = arrival;
  request.failure = {kind, message};
  return request;
}

static ServedRequest refused(double arrival, double seconds) {
  ServedRequest request;
  request.arrival = request.sent = arrival;
  request.ended = arrival + seconds;
  request.refused = true;
  return request;
}

static std::vector<ServedRequest> mixed() {
  return {served(0, 1, {1, 1}, 6),
          refused(0.5, 0.02),
          failed(1, "HTTP 503", "first"),
          served(1, 1.5, {}, 2),
          failed(2, "time-out", "late"),
          failed(2, "HTTP 503", "second"),
          refused(3, 0.04)};
}

TEST(LoadSummaryTest, CountsWhatBecameOfRequests) {
  const LoadSummary summary(mixed(), {.firstToken = 0.6, .token = {}});
  EXPECT_EQ(summary.served, 2u);
  EXPECT_EQ(summary.failed, 3u);
  ASSERT_EQ(summary.failures.size(), 2u);
  EXPECT_EQ(summary.failures[0].kind, "HTTP 503");
  EXPECT_EQ(summary.failures[0].count, 2u);
  EXPECT_EQ(summary.failures[0].example, "first");
  EXPECT_EQ(summary.failures[1].count, 1u);
  EXPECT_NEAR(summary.refusal->mean, 30, 1e-9);
  EXPECT_NEAR(summary.refusal->p99, 40, 1e-9);
  EXPECT_NEAR(summary.lateness->p99, 1, 1e-9);
  EXPECT_DOUBLE_EQ(summary.tokensPerPiece, 2);
  EXPECT_NEAR(summary.seconds, 3.04, 1e-9);
  EXPECT_EQ(summary.kept, 1u);
  const Json json = summary.toJson();
  EXPECT_EQ(json["failures"][0]["count"], 2);
  EXPECT_NEAR(json["served_per_second"], 2 / 3.04, 1e-9);
  EXPECT_NEAR(json["kept_per_second"], 1 / 3.04, 1e-9);
  const std::string text = summary.describe();
  EXPECT_NE(text.find("failed   3 requests:\n  2 x HTTP 503: first\n  1 x "
                      "time-out: late\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("refused  within mean 30.00 ms"), std::string::npos);
  EXPECT_NE(text.find("pieces   of 2.00 tokens"), std::string::npos);
}

TEST(LoadSummaryTest, FailedRequestsKeepNoObjectives) {
  const std::vector<ServedRequest> requests = mixed();
  const ServiceObjectives generous{.firstToken = 100, .token = 100};
  EXPECT_NEAR(attainmentPercent(requests, generous), 100.0 * 2 / 7, 1e-9);
  const ReplaySummary summary(requests, generous);
  EXPECT_EQ(summary.requests, 7u);
  EXPECT_EQ(summary.refused, 2u);
  EXPECT_EQ(summary.outputTokens, 8u);
}

TEST(LoadSummaryTest, NothingIsNothing) {
  const LoadSummary summary({}, {});
  EXPECT_EQ(summary.served, 0u);
  EXPECT_FALSE(summary.refusal);
  EXPECT_FALSE(summary.kept);
  EXPECT_TRUE(summary.timeline.inFlight.empty());
  EXPECT_EQ(summary.describe(), "");
  EXPECT_EQ(summary.toJson()["served_per_second"], 0);
  EXPECT_TRUE(summary.toJson()["kept_per_second"].is_null());
  EXPECT_EQ(drawFailures({}), "");
  for (const LineChart &chart : drawLoads({{{}, {}}}))
    EXPECT_EQ(chart.draw().find("nan"), std::string::npos);
}

TEST(LoadTimelineTest, HoldsAllTokensAndAllPresence) {
  std::vector<ServedRequest> requests = mixed();
  for (double end : {3.04, 77.0, 1e5}) {
    requests.back().ended = end;
    const LoadTimeline timeline(requests);
    EXPECT_LE(timeline.inFlight.size(), LoadTimeline::mostParts);
    EXPECT_GE(timeline.inFlight.size(), LoadTimeline::mostParts / 3);
    EXPECT_GE(timeline.partSeconds *
                  static_cast<double>(timeline.inFlight.size()),
              end * 0.999);
    const auto total = [&](const std::vector<double> &values) {
      return timeline.partSeconds *
             std::accumulate(values.begin(), values.end(), 0.0);
    };
    EXPECT_NEAR(total(timeline.tokensPerSecond), 8, 1e-6);
    // 3 and 0.5 seconds of those served, 0.02 and the last of the refused.
    EXPECT_NEAR(total(timeline.inFlight), 3 + 0.5 + 0.02 + (end - 3), 1e-6);
  }
}

TEST(LoadTimelineTest, TellsWhen) {
  // A part is a tenth of a second.
  const LoadTimeline timeline(
      {served(0, 5.25, {4.5}, 10), served(2, 3, {}, 1)});
  ASSERT_EQ(timeline.partSeconds, 0.1);
  EXPECT_NEAR(timeline.tokensPerSecond[52], 50, 1e-9);
  EXPECT_NEAR(timeline.tokensPerSecond[30], 10, 1e-9);
  EXPECT_NEAR(timeline.inFlight[10], 1, 1e-9);
  EXPECT_NEAR(timeline.inFlight[25], 2, 1e-9);
  EXPECT_NEAR(timeline.inFlight[50], 1, 1e-9);
}

TEST(LoadSummaryTest, DrawsFailuresAndLoads) {
  std::vector<ServedRequest> requests = mixed();
  requests.push_back(failed(1, "HTTP 500", "<b>&\"</b>"));
  const std::vector<ReplayRun> runs = {{{}, requests}};
  const std::string table = drawFailures(runs);
  EXPECT_NE(table.find("<td>&lt;b&gt;&amp;&quot;&lt;/b&gt;</td>"),
            std::string::npos);
  EXPECT_EQ(table.find("<b>"), std::string::npos);
  const std::vector<LineChart> charts = drawLoads(runs);
  ASSERT_EQ(charts.size(), 3u);
  EXPECT_EQ(charts[0].title, "Tokens over time");
  EXPECT_EQ(charts[2].title, "Time to a refusal");
  EXPECT_EQ(charts[2].series.front().points.back().y, 100);
}
