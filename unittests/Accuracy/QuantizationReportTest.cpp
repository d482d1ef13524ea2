//===- QuantizationReportTest.cpp - Figures and their page ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Accuracy/QuantizationReport.h"

#include "gtest/gtest.h"

#include <numeric>

using namespace sandwich;

namespace {

QuantizationReport makeReport(std::vector<WeightRounding> weights) {
  QuantizationReport report;
  report.model = "a <model> & \"more\"";
  report.target = "x86-64-avx2";
  report.dtype = "int4-g32-f16";
  report.cacheType = "bf16";
  report.weightBytes = 9;
  report.elements = 16;
  report.originalWeightBytes = 32;
  report.originalElements = 16;
  report.weights = std::move(weights);
  report.missing = "no text";
  return report;
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(QuantizationReport, SharesAreOfTheSortedTokens) {
  PredictionComparison predictions;
  predictions.divergences.resize(200);
  std::iota(predictions.divergences.rbegin(), predictions.divergences.rend(),
            1.0);
  predictions.agreements = 150;
  EXPECT_DOUBLE_EQ(predictions.meanDivergence(), 100.5);
  EXPECT_EQ(predictions.divergenceOfShare(0.99), 198);
  EXPECT_EQ(predictions.divergenceOfShare(1), 200);
  EXPECT_EQ(predictions.divergenceOfShare(0), 1);
  EXPECT_DOUBLE_EQ(predictions.agreement(), 0.75);
  predictions.divergences = {0.5};
  EXPECT_EQ(predictions.divergenceOfShare(0.99), 0.5);
}

TEST(QuantizationReport, BitsAreThoseOfAllElements) {
  const QuantizationReport report = makeReport({});
  EXPECT_DOUBLE_EQ(report.bitsPerWeight(), 4.5);
  EXPECT_DOUBLE_EQ(report.originalBitsPerWeight(), 16);
  const Json json = toJson(report);
  EXPECT_EQ(json["bits_per_weight"], 4.5);
  EXPECT_EQ(json["missing"], "no text");
  EXPECT_FALSE(json.contains("predictions"));
}

TEST(QuantizationReport, ThePageHasACellForEachLayer) {
  const std::string page = drawQuantizationReport(makeReport(
      {{"layers.<odd>", "int4-g32-f16", 4.5, false,
        std::vector<double>(80, 0.08)},
       {"head", "int8-g32-f16", 8.5, false, {0.005}},
       {"zeros", "int8-g32-f16", 8.5, false, {0}},
       {"kept", "int4-g32-f16", 4.5, true, std::vector<double>(80, 0)}}));
  EXPECT_EQ(count(page, "</title></rect>"), 82u);
  EXPECT_EQ(count(page, "as in the checkpoint"), 1u);
  EXPECT_EQ(count(page, "layers.&lt;odd&gt;, layer 79: 8.00%"), 1u);
  EXPECT_EQ(count(page, "a &lt;model&gt; &amp; &quot;more&quot;"), 2u);
  EXPECT_EQ(count(page, "is not known: no text."), 1u);
  for (const char *wrong : {"nan", "inf\"", "<odd>"})
    EXPECT_EQ(count(page, wrong), 0u) << wrong;
}

TEST(QuantizationReport, APageMayHaveNothingToDraw) {
  EXPECT_EQ(count(drawQuantizationReport(makeReport({})), "<svg"), 0u);
  // Of artifacts of versions that knew no errors.
  const std::string page = drawQuantizationReport(
      makeReport({{"old", "int4-g32-f16", 4.5, false, {}},
                  {"kept", "int4-g32-f16", 4.5, true, {0}}}));
  EXPECT_EQ(count(page, "</title></rect>"), 0u);
  EXPECT_EQ(count(page, "inf"), 0u);
}

} // namespace
