//===- MachineDrawingTest.cpp - Machines for people -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Drawing/MachineDrawing.h"

#include "Emulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace sandwich;

namespace {
Machine read(const std::string &description) {
  Result<Machine> machine = readMachineTopology("synthetic:" + description);
  if (!machine) {
    ADD_FAILURE() << machine.error().message;
    return {};
  }
  return *std::move(machine);
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

/// Tags that open and close in turn, and nothing that should be escaped.
void expectWellFormed(const std::string &svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos;
       at = svg.find('<', at + 1)) {
    size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    std::string tag = svg.substr(at + 1, end - at - 1);
    std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}
} // namespace

TEST(MachineDrawingTest, SmallMachinesAreDrawnPartByPart) {
  EXPECT_EQ(
      drawText(read("pack:2 [numa(memory=1073741824)] core:2 "
                    "pu:2(indexes=2*4:4*1)")),
      R"(synthetic:pack:2 [numa(memory=1073741824)] core:2 pu:2(indexes=2*4:4*1)
package x 2, numa x 2, core x 4, cpu x 8
machine
|- package 0, numa 0 (1 GiB)
|  |- core 0, cpu 0,4
|  `- core 1, cpu 1,5
`- package 1, numa 1 (1 GiB)
   |- core 2, cpu 2,6
   `- core 3, cpu 3,7
)");
}

TEST(MachineDrawingTest, EqualPartsOfLargeMachinesAreDrawnOnce) {
  Machine machine = read("pack:4 die:2 [numa(memory=68719476736)] "
                         "l3:1(size=25165824) group:6 l2:4(size=524288) "
                         "l1d:1(size=65536) core:1 pu:1");
  machine.name = "four packages";
  EXPECT_EQ(drawText(machine), R"(four packages
package x 4, die x 8, numa x 8, l3 x 8, group x 48, core x 192, cpu x 192
machine
`- 4 x package 0-3
   `- 2 x die 0,1 to 6,7, numa 0-7 (64 GiB), l3 (24 MiB)
      `- 6 x group
         `- 4 x l2 (512 KiB), l1d (64 KiB), core 0-191, cpu 0-191
)");
  EXPECT_EQ(countOf(drawText(machine, {.full = true}), "cpu "), 193u);
  // One core that is another is drawn by itself.
  machine.root.children[1]
      .children[0]
      .children[0]
      .children[0]
      .children.pop_back();
  std::string text = drawText(machine);
  EXPECT_NE(text.find("5 x group"), std::string::npos) << text;
  EXPECT_NE(text.find("2 x package 2,3"), std::string::npos) << text;
}

TEST(MachineDrawingTest, ColoursOnlyWhenAsked) {
  Machine machine = read("core:2 pu:1");
  EXPECT_EQ(drawText(machine).find('\033'), std::string::npos);
  EXPECT_NE(drawText(machine, {.colours = true}).find("\033[33mcore\033[0m"),
            std::string::npos);
}

TEST(MachineDrawingTest, SaysWhatIsBesideTheTree) {
  Machine machine = read("pack:2 [numa(memory=1073741824)] core:1 pu:1");
  MachineNode memory;
  memory.kind = "numa";
  memory.index = 2;
  memory.bytes = uint64_t{16} << 30;
  memory.bandwidth = 30'000'000'000;
  memory.latency = 250;
  machine.memories.push_back(memory);
  machine.distances = {{0, 1, 2}, {{10, 21, 30}, {21, 10, 30}, {30, 30, 10}}};
  machine.leftOut = {"CPUs 4-7: offline"};
  std::string text = drawText(machine);
  EXPECT_NE(text.find("beside it: numa 2 (16 GiB, 30 GB/s, 250 ns)\n"
                      "NUMA distances, 10 is a node's own memory:\n"
                      "  from\\to     0     1     2\n"
                      "       0     10    21    30\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("left out: CPUs 4-7: offline\n"), std::string::npos);
  std::string svg = drawSvg(machine);
  expectWellFormed(svg);
  EXPECT_NE(svg.find("NUMA 2"), std::string::npos);
  EXPECT_NE(svg.find("CPUs 4-7: offline"), std::string::npos);
}

TEST(MachineDrawingTest, SvgHoldsEveryCpuAndEscapesText) {
  Machine machine = read("pack:2 [numa] l3:2(size=1048576) core:4 pu:2");
  machine.name = "a <b> & \"c\"";
  machine.cpuModel = "<script>";
  std::string svg = drawSvg(machine);
  expectWellFormed(svg);
  EXPECT_EQ(countOf(svg, "class=\"box core\""), 16u);
  EXPECT_EQ(countOf(svg, "class=\"box cpu\""), 32u);
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
}

TEST(MachineDrawingTest, SvgShowsWhoIsAwake) {
  Machine machine = read("pack:1 core:4 pu:1");
  // Process 0 keeps one of two CPUs in decode, process 1 both; 4 does not
  // exist.
  PlanCores plan{{{0, 1}, {2, 3}}, {{0}, {2, 3, 4}}};
  std::string svg = drawSvg(machine, plan);
  expectWellFormed(svg);
  EXPECT_NE(svg.find("cpu 1 in prefill: process 0"), std::string::npos);
  EXPECT_NE(svg.find("class=\"asleep\"><title>cpu 1 in decode: asleep"),
            std::string::npos);
  EXPECT_NE(svg.find("cpu 3 in decode: process 1"), std::string::npos);
  EXPECT_EQ(countOf(svg, "class=\"asleep\""), 1u);
  EXPECT_NE(svg.find("process 0: 2 / 1 CPUs"), std::string::npos);
}

/// The CPUs `first`, `first` + `stride`, ..., so many of them.
static std::vector<unsigned> cpus(unsigned first, unsigned count,
                                  unsigned stride = 1) {
  std::vector<unsigned> list;
  for (unsigned i = 0; i < count; ++i)
    list.push_back(first + i * stride);
  return list;
}

TEST(MachineDrawingTest, SvgDrawsEqualPartsOfLargeMachinesOnce) {
  Machine machine = read("pack:4 [numa(memory=68719476736)] l3:16 "
                         "l2:16(size=524288) core:1 pu:1");
  std::string svg = drawSvg(machine);
  expectWellFormed(svg);
  EXPECT_NE(svg.find("4 x Package 0-3"), std::string::npos);
  EXPECT_NE(svg.find("16 x L3"), std::string::npos);
  EXPECT_NE(svg.find("16 x core 0-15 to 1008-1023"), std::string::npos) << svg;
  EXPECT_NE(svg.find("1024 cores have their own: L2"), std::string::npos);
  EXPECT_NE(svg.find("Equal parts are drawn once"), std::string::npos);
  EXPECT_LT(svg.size(), size_t{1} << 14);
  // One with a core less is drawn by itself, the others stay one.
  machine.root.children[1].children[0].children[3].children.pop_back();
  svg = drawSvg(machine);
  expectWellFormed(svg);
  EXPECT_NE(svg.find("3 x Package 0,2,3"), std::string::npos) << svg;
  EXPECT_NE(svg.find("15 x L3"), std::string::npos);
  // Of fewer CPUs each is drawn.
  svg = drawSvg(read("pack:4 core:128 pu:1"));
  EXPECT_EQ(countOf(svg, "class=\"box cpu\""), 512u);
  EXPECT_EQ(svg.find("4 x Package"), std::string::npos);
}

TEST(MachineDrawingTest, SvgOfAPlanKeepsWhatDiffersApart) {
  Machine machine = read("numa:4 core:256 pu:1");
  // Two processes on node 0, by stride; the first of them lets half of its
  // cores sleep. One process on nodes 1 and 2. Nobody is on node 3.
  PlanCores plan;
  plan.prefill = {cpus(0, 128, 2), cpus(1, 128, 2), cpus(256, 512)};
  plan.decode = {cpus(0, 64, 4), cpus(1, 128, 2), cpus(256, 512)};
  std::string svg = drawSvg(machine, plan);
  expectWellFormed(svg);
  EXPECT_NE(svg.find("64 x core 0,4,8,...,252"), std::string::npos) << svg;
  EXPECT_NE(svg.find("64 x core 2,6,10,...,254"), std::string::npos);
  EXPECT_NE(svg.find("128 x core 1,3,5,...,255"), std::string::npos);
  EXPECT_NE(svg.find("2 x NUMA 1,2"), std::string::npos);
  EXPECT_NE(svg.find(">NUMA 3"), std::string::npos);
  // In decode those of process 0, and in both phases those of node 3.
  EXPECT_EQ(countOf(svg, "class=\"asleep\""), 3u);
  EXPECT_NE(svg.find("cpu 2,6,10,...,254 in decode: asleep"),
            std::string::npos);
}

TEST(MachineDrawingTest, SvgStaysReadableForSixteenThousandCores) {
  const unsigned packages = test::timesToRepeat(16u, 2u);
  Machine machine =
      read("pack:" + std::to_string(packages) + " core:1024 pu:1");
  EXPECT_LT(drawSvg(machine).size(), size_t{1} << 14);
  // By stride over all packages.
  const unsigned processes = 8 * packages;
  PlanCores plan;
  for (unsigned process = 0; process < processes; ++process) {
    plan.prefill.push_back(cpus(process, 128, processes));
    plan.decode.push_back(cpus(process, 64, 2 * processes));
  }
  const std::string svg = drawSvg(machine, plan);
  expectWellFormed(svg);
  EXPECT_LT(svg.size(), size_t{1} << 20);
}
