//===- PlanFileTest.cpp - Reading plans back -----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Search/PlanFile.h"

#include "TemporaryFolder.h"

#include <gtest/gtest.h>

using namespace sandwich;

class PlanFileTest : public testing::Test {
protected:
  Result<PlanCores> read(std::string_view text) {
    return readPlanCores(folder.write("plan.json", text), machine);
  }
  std::string errorOf(std::string_view text) {
    Result<PlanCores> plan = read(text);
    return plan ? ""
                : plan.error().message.substr(folder.file("plan.json").size());
  }

  static Machine machineOf(const std::string &description) {
    return *readMachineTopology("synthetic:" + description);
  }
  static PlanMachine identityOf(const Machine &machine) {
    return *planMachine(machine);
  }
  /// A plan of the CPUs 0 and 1 that was made for `made`.
  static std::string planFor(const Machine &made) {
    return "{\"machine\": " + toJson(identityOf(made)).dump() +
           ", \"configurations\": [{\"prefill_cores\": [[0, 1]], "
           "\"decode_cores\": [[0]]}]}";
  }

  test::TemporaryFolder folder;
  Machine machine = machineOf("package:2 core:2 pu:1");
};

TEST_F(PlanFileTest, ReadsTheBest) {
  Result<PlanCores> plan =
      read("{\"configurations\": [{\"prefill_cores\": [[0, 1], [2, 3]], "
           "\"decode_cores\": [[0], [2]]}, {}]}");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->prefill,
            (std::vector<std::vector<unsigned>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(plan->decode, (std::vector<std::vector<unsigned>>{{0}, {2}}));
}

TEST_F(PlanFileTest, ReadsTheInstanceThatIsMeant) {
  const std::string one =
      R"({"configurations": [{"prefill_cores": [[0]], "decode_cores": [[0]]}]})";
  const std::string two =
      R"({"configurations": [{"prefill_cores": [[0, 1]],
          "decode_cores": [[0]], "instances": [
          {"prefill_cores": [[0, 1]], "decode_cores": [[0]]},
          {"prefill_cores": [[2, 3]], "decode_cores": [[2]]}]}]})";
  auto instance = [&](const std::string &text, unsigned number) {
    return readPlanCores(folder.write("plan.json", text), machine, number);
  };
  Result<PlanCores> second = instance(two, 1);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->prefill, (std::vector<std::vector<unsigned>>{{2, 3}}));
  EXPECT_EQ(second->decode, (std::vector<std::vector<unsigned>>{{2}}));
  EXPECT_EQ(instance(two, 0)->prefill.front().front(), 0U);
  // All of them, for a picture.
  Result<PlanCores> all =
      readPlanCores(folder.write("plan.json", two), machine, std::nullopt);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->prefill, (std::vector<std::vector<unsigned>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(all->decode, (std::vector<std::vector<unsigned>>{{0}, {2}}));
  EXPECT_EQ(readPlanCores(folder.write("plan.json", one), machine, std::nullopt)
                ->prefill.size(),
            1U);
  auto errorFor = [&](const std::string &text, unsigned number) {
    Result<PlanCores> plan = instance(text, number);
    return plan ? ""
                : plan.error().message.substr(folder.file("plan.json").size());
  };
  EXPECT_EQ(errorFor(two, 2), ": configurations[0] has instances 0 to 1, there "
                              "is no instance 2");
  EXPECT_EQ(errorFor(one, 1),
            ": configurations[0] has one instance, there is no instance 1");
  EXPECT_EQ(errorFor(R"({"configurations": [{"instances": []}]})", 0),
            ": configurations[0].instances is no list of instances");
  EXPECT_EQ(errorFor(R"({"configurations": [{"instances": [{}]}]})", 0),
            ": configurations[0].instances[0].prefill_cores is no list of "
            "processes");
}

TEST_F(PlanFileTest, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("[]"), ": configurations is no list with a plan");
  EXPECT_EQ(errorOf("{\"configurations\": []}"),
            ": configurations is no list with a plan");
  EXPECT_EQ(errorOf("{\"configurations\": [1]}"),
            ": configurations[0].prefill_cores is no list of processes");
  auto phases = [](const std::string &prefill, const std::string &decode) {
    return "{\"configurations\": [{\"prefill_cores\": " + prefill +
           ", \"decode_cores\": " + decode + "}]}";
  };
  EXPECT_EQ(errorOf(phases("[[]]", "[[0]]")),
            ": configurations[0].prefill_cores has a process without a list of "
            "cores");
  EXPECT_EQ(errorOf(phases("[[-1]]", "[[0]]")),
            ": configurations[0].prefill_cores has a core that is no index");
  EXPECT_EQ(errorOf(phases("[[0]]", "[[4]]")),
            ": configurations[0].decode_cores: this process may use no CPU 4; "
            "the plan is for another machine or container");
  EXPECT_EQ(errorOf(phases("[[0], [0]]", "[[0]]")),
            ": configurations[0].prefill_cores: CPU 0 is there twice");
  EXPECT_EQ(errorOf(phases("[[0], [1]]", "[[2], [1]]")),
            ": configurations[0].decode_cores: CPU 2 is none of process 0's in "
            "prefill");
  EXPECT_EQ(errorOf(phases("[[0], [1]]", "[[0]]")),
            ": configurations[0] has 2 processes in prefill and 1 in decode");
}

TEST_F(PlanFileTest, KnowsItsMachine) {
  EXPECT_EQ(errorOf(planFor(machine)), "");
  // All CPUs of the plan are there, and still it is another machine's.
  EXPECT_EQ(errorOf(planFor(machineOf("core:4 pu:1"))),
            ": the plan is for another machine: synthetic:core:4 pu:1 (core x "
            "4), not synthetic:package:2 core:2 pu:1 (package x 2, core x 2)");
  EXPECT_EQ(errorOf(planFor(machineOf("package:2 core:2 pu:2"))),
            ": the plan is for another machine: synthetic:package:2 core:2 "
            "pu:2 (package x 2, core x 2), not synthetic:package:2 core:2 pu:1 "
            "(package x 2, core x 2); their caches or the indexes of their "
            "CPUs differ");
  EXPECT_EQ(errorOf("{\"machine\": 1}"), ": machine.name is absent or no text");
  EXPECT_EQ(errorOf("{\"machine\": {\"name\": \"a\", \"description\": "
                    "\"b\", \"hash\": 3}}"),
            ": machine.hash is absent or no text");
}

TEST_F(PlanFileTest, HashesWhatThePlanUses) {
  auto hashOf = [](const std::string &description) {
    return identityOf(machineOf(description)).hash;
  };
  const std::string hash = hashOf("pack:2 [numa(memory=1GB)] core:4 pu:1");
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ(hash, hashOf("pack:2 [numa(memory=2GB)] core:4 pu:1"));
  EXPECT_NE(hash, hashOf("pack:2 core:4 pu:1"));
  EXPECT_NE(hash, hashOf("pack:2 [numa(memory=1GB)] l3:1 core:4 pu:1"));
  EXPECT_NE(hash, hashOf("pack:1 [numa(memory=1GB)] core:8 pu:1"));
  // Groups and removes are the plan's, not the machine's.
  TopoTree tree = *TopoTree::fromMachine(machine.root, TopoLeaves::Cores);
  EXPECT_EQ(planMachine(machine, *tree.remove(1, 2)).hash,
            planMachine(machine, tree).hash);
}
