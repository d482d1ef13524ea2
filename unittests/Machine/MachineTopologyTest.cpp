//===- MachineTopologyTest.cpp - Machines as trees ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineTopology.h"

#include "../../lib/Machine/Descriptions.h"
#include "Emulation.h"
#include "TemporaryFolder.h"
#include "sandwich/Support/Process.h"

#include <gtest/gtest.h>
#include <hwloc.h>
#include <hwloc/cpukinds.h>
#include <hwloc/distances.h>
#include <hwloc/memattrs.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <thread>

using namespace sandwich;
using sandwich::test::TemporaryFolder;
using Strings = std::vector<std::string>;

namespace {

std::vector<int64_t> indexesOf(const MachineNode &node,
                               const std::string &kind) {
  std::vector<int64_t> indexes;
  if (node.kind == kind)
    indexes.push_back(node.index);
  for (const MachineNode &child : node.children) {
    std::vector<int64_t> below = indexesOf(child, kind);
    indexes.insert(indexes.end(), below.begin(), below.end());
  }
  return indexes;
}

/// Kinds and indexes, as "machine(package 0(core 0(cpu 0)))".
std::string describe(const MachineNode &node) {
  std::string text = node.kind;
  if (node.index >= 0)
    text += " " + std::to_string(node.index);
  std::string inside;
  for (const MachineNode &child : node.children)
    inside += (inside.empty() ? "" : ", ") + describe(child);
  return inside.empty() ? text : text + "(" + inside + ")";
}

std::string errorOf(const std::string &source) {
  Result<Machine> machine = readMachineTopology(source);
  return machine ? "no error" : machine.error().message;
}

/// The XML of a machine in words, after `change` had its way with it.
std::string
exportXml(const std::string &description,
          const std::function<void(hwloc_topology_t)> &change = {}) {
  hwloc_topology_t topology;
  hwloc_topology_init(&topology);
  hwloc_topology_set_synthetic(topology, description.c_str());
  hwloc_topology_load(topology);
  if (change)
    change(topology);
  char *text = nullptr;
  int size = 0;
  hwloc_topology_export_xmlbuffer(topology, &text, &size, 0);
  std::string xml(text);
  hwloc_free_xmlbuffer(topology, text);
  hwloc_topology_destroy(topology);
  return xml;
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

Machine readXml(const std::string &xml) {
  Result<Machine> machine = readMachineXml("made.xml", xml);
  if (!machine) {
    ADD_FAILURE() << machine.error().message;
    return {};
  }
  return *std::move(machine);
}

class MachineTopologyTest : public ::testing::Test {
protected:
  void SetUp() override { prepareStandardStreams(); }
};

} // namespace

TEST_F(MachineTopologyTest, LevelsAndSizes) {
  Result<Machine> machine = readMachineTopology(
      "synthetic:pack:1 die:1 [numa(memory=68719476736)] l3:1(size=25165824) "
      "group:2 l2:2(size=524288) l1d:1(size=65536) core:1 pu:2");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(describe(machine->root),
            "machine(package 0(numa 0(die 0(l3(group("
            "l2(l1d(core 0(cpu 0, cpu 1))), l2(l1d(core 1(cpu 2, cpu 3)))), "
            "group(l2(l1d(core 2(cpu 4, cpu 5))), "
            "l2(l1d(core 3(cpu 6, cpu 7)))))))))");
  const MachineNode &numa = machine->root.children[0].children[0];
  EXPECT_EQ(numa.bytes, 68719476736u);
  EXPECT_EQ(numa.children[0].children[0].bytes, 25165824u);
  EXPECT_EQ(numa.bandwidth, 0u);
  EXPECT_EQ(machine->leftOut, Strings());
}

TEST_F(MachineTopologyTest, EveryCpuLiesInACore) {
  Result<Machine> machine = readMachineTopology("synthetic:package:2 pu:2");
  ASSERT_TRUE(machine);
  EXPECT_EQ(describe(machine->root),
            "machine(numa 0(package 0(core 0(cpu 0), core 1(cpu 1)), "
            "package 1(core 2(cpu 2), core 3(cpu 3))))");
}

TEST_F(MachineTopologyTest, AMemoryNeedsNoGroupAroundItsCores) {
  Result<Machine> machine =
      readMachineTopology("synthetic:package:1 numa:2 core:1 pu:1");
  ASSERT_TRUE(machine);
  EXPECT_EQ(describe(machine->root),
            "machine(package 0(numa 0(core 0(cpu 0)), numa 1(core 1(cpu 1))))");
  machine = readMachineTopology("synthetic:package:1 numa:2 pu:2");
  ASSERT_TRUE(machine);
  EXPECT_EQ(describe(machine->root),
            "machine(package 0(numa 0(core 0(cpu 0), core 1(cpu 1)), "
            "numa 1(core 2(cpu 2), core 3(cpu 3))))");
  machine = readMachineTopology("synthetic:package:1 l3:2 [numa] core:2 pu:1");
  ASSERT_TRUE(machine);
  EXPECT_EQ(describe(machine->root),
            "machine(package 0(numa 0(l3(core 0(cpu 0), core 1(cpu 1))), "
            "numa 1(l3(core 2(cpu 2), core 3(cpu 3)))))");
}

TEST_F(MachineTopologyTest, XmlHasWhatItWasMadeOf) {
  std::string description = "pack:2 [numa(memory=1073741824)] core:2 pu:2";
  Result<Machine> synthetic = readMachineTopology("synthetic:" + description);
  TemporaryFolder folder;
  Result<Machine> xml =
      readMachineTopology(folder.write("machine.xml", exportXml(description)));
  ASSERT_TRUE(synthetic);
  ASSERT_TRUE(xml) << xml.error().message;
  EXPECT_EQ(toJson(synthetic->root), toJson(xml->root));
  EXPECT_EQ(xml->name, folder.file("machine.xml"));
}

TEST_F(MachineTopologyTest, MemoryAttributesAndDistances) {
  Machine machine =
      readXml(exportXml("pack:2 [numa] core:2 pu:1", [](auto topology) {
        hwloc_obj_t nodes[2];
        for (int i = 0; i < 2; ++i) {
          nodes[i] = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, i);
          hwloc_location local{};
          local.type = HWLOC_LOCATION_TYPE_CPUSET;
          local.location.cpuset = nodes[i]->cpuset;
          hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH,
                                  nodes[i], &local, 0, 100000 * (i + 1));
          hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_LATENCY, nodes[i],
                                  &local, 0, 90 + i);
        }
        hwloc_uint64_t values[] = {10, 21, 22, 10};
        auto handle = hwloc_distances_add_create(
            topology, "NUMALatency",
            HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY,
            0);
        hwloc_distances_add_values(topology, handle, 2, nodes, values, 0);
        hwloc_distances_add_commit(topology, handle, 0);
      }));
  const MachineNode &second = machine.root.children[1].children[0];
  EXPECT_EQ(second.kind, "numa");
  EXPECT_EQ(second.bandwidth, uint64_t{200000} << 20);
  EXPECT_EQ(second.latency, 91u);
  EXPECT_EQ(machine.distances.nodes, (std::vector<unsigned>{0, 1}));
  EXPECT_EQ(machine.distances.values,
            (std::vector<std::vector<uint64_t>>{{10, 21}, {22, 10}}));
  EXPECT_EQ(toJson(machine)["numa_distances"]["values"][0][1], 21);
}

/// Sets what the firmware says of the memory of a NUMA node, in MB/s.
static void setBandwidth(hwloc_topology_t topology, unsigned node,
                         uint64_t megabytes) {
  hwloc_obj_t numa = hwloc_get_numanode_obj_by_os_index(topology, node);
  ASSERT_NE(numa, nullptr);
  hwloc_location local{};
  local.type = HWLOC_LOCATION_TYPE_CPUSET;
  local.location.cpuset = numa->cpuset;
  hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, numa, &local, 0,
                          megabytes);
}

TEST_F(MachineTopologyTest, SecondMemoriesAreBesideTheFirst) {
  // As the HBM of a Xeon Max.
  Machine machine = readXml(
      exportXml("pack:2 [numa(memory=128GB)] [numa(memory=64GB)] core:2 pu:1",
                [](auto topology) {
                  setBandwidth(topology, 0, 200000);
                  setBandwidth(topology, 1, 600000);
                }));
  EXPECT_EQ(indexesOf(machine.root, "numa"), (std::vector<int64_t>{0, 2}));
  ASSERT_EQ(machine.memories.size(), 2u);
  EXPECT_EQ(machine.memories[0].index, 1);
  EXPECT_EQ(machine.memories[0].besideNodes, std::vector<unsigned>{0});
  EXPECT_EQ(machine.memories[0].bandwidth, uint64_t{600000} << 20);
  EXPECT_EQ(machine.memories[1].besideNodes, std::vector<unsigned>{2});
  ASSERT_EQ(machine.leftOut.size(), 2u);
  EXPECT_TRUE(
      machine.leftOut[0].ends_with(": a second memory, of the cores of numa 0"))
      << machine.leftOut[0];
  EXPECT_EQ(toJson(machine)["memories"][1]["beside"][0], 2);
  // One for several nodes.
  machine = readXml(exportXml("pack:1 [numa] die:2 [numa] core:2 pu:1"));
  ASSERT_EQ(machine.memories.size(), 1u);
  EXPECT_EQ(machine.memories[0].besideNodes.size(), 2u);
}

TEST_F(MachineTopologyTest, NobodyMakesUpMemory) {
  auto bytesIn = [](const char *description) {
    Result<Machine> machine =
        readMachineTopology(std::string("synthetic:") + description);
    EXPECT_TRUE(machine) << description;
    return machine->root.children[0].bytes;
  };
  EXPECT_EQ(bytesIn("numa:2 core:2 pu:1"), 0u);
  EXPECT_EQ(bytesIn("numa:2(memory=4096) core:2 pu:1"), 4096u);
}

TEST_F(MachineTopologyTest, CpusOutsideTheCpusetOfAFile) {
  // The second package and its memory, and CPU 1.
  std::string xml = exportXml("pack:2 [numa(memory=1073741824)] core:2 pu:2");
  xml = replaced(xml, "allowed_cpuset=\"0x000000ff\"",
                 "allowed_cpuset=\"0x0000000d\"");
  Machine machine = readXml(xml);
  EXPECT_EQ(describe(machine.root),
            "machine(package 0(numa 0(core 0(cpu 0), core 1(cpu 2, cpu 3))))");
  EXPECT_EQ(machine.leftOut,
            (Strings{"CPUs 1,4-7: not in the cgroup's cpuset",
                     "package 1: none of its CPUs may be used",
                     "numa 1 (1 GiB): none of its CPUs may be used"}));
  ASSERT_EQ(machine.memories.size(), 1u);
  EXPECT_EQ(machine.memories[0].index, 1);
}

TEST_F(MachineTopologyTest, KindsOfCores) {
  auto speedsWith = [](std::vector<hwloc_info_s> slow,
                       std::vector<hwloc_info_s> fast) {
    Machine machine = readXml(exportXml("core:4 pu:1", [&](auto topology) {
      hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
      hwloc_bitmap_set_range(cpus, 2, 3);
      hwloc_cpukinds_register(topology, cpus, 0, slow.size(), slow.data(), 0);
      hwloc_bitmap_zero(cpus);
      hwloc_bitmap_set_range(cpus, 0, 1);
      hwloc_cpukinds_register(topology, cpus, 1, fast.size(), fast.data(), 0);
      hwloc_bitmap_free(cpus);
    }));
    std::vector<double> speeds;
    std::function<void(const MachineNode &)> visit =
        [&](const MachineNode &node) {
          if (node.kind == "core")
            speeds.push_back(node.speed);
          for (const MachineNode &child : node.children)
            visit(child);
        };
    visit(machine.root);
    return speeds;
  };
  auto info = [](const char *name, const char *value) {
    return hwloc_info_s{const_cast<char *>(name), const_cast<char *>(value)};
  };
  using Speeds = std::vector<double>;
  EXPECT_EQ(speedsWith({}, {}), (Speeds{1, 1, 0.5, 0.5}));
  EXPECT_EQ(
      speedsWith(
          {info("LinuxCapacity", "256"), info("FrequencyMaxMHz", "3000")},
          {info("LinuxCapacity", "1024"), info("FrequencyMaxMHz", "4000")}),
      (Speeds{1, 1, 0.25, 0.25}));
  EXPECT_EQ(speedsWith({info("FrequencyMaxMHz", "3000")},
                       {info("FrequencyMaxMHz", "4000")}),
            (Speeds{1, 1, 0.75, 0.75}));
  EXPECT_EQ(
      speedsWith(
          {info("CoreType", "IntelAtom"), info("FrequencyMaxMHz", "3000")},
          {info("CoreType", "IntelCore"), info("FrequencyMaxMHz", "4000")}),
      (Speeds{1, 1, 0.375, 0.375}));
  // Favoured cores are no kind of their own.
  EXPECT_EQ(speedsWith({info("FrequencyMaxMHz", "3800")},
                       {info("FrequencyMaxMHz", "4000")}),
            (Speeds{1, 1, 1, 1}));
}

TEST_F(MachineTopologyTest, MemoryTheKernelKnowsBetter) {
  Result<Machine> machine =
      readMachineTopology("synthetic:pack:2 [numa(memory=1073741824)] pu:1");
  ASSERT_TRUE(machine);
  Machine same = *machine;
  correctMemorySizes(same, 2100000000);
  EXPECT_EQ(toJson(same), toJson(*machine));
  correctMemorySizes(same, 0);
  EXPECT_EQ(toJson(same), toJson(*machine));
  correctMemorySizes(*machine, uint64_t{8} << 30);
  for (const MachineNode &package : machine->root.children)
    EXPECT_EQ(package.children[0].bytes, uint64_t{4} << 30);
  EXPECT_EQ(machine->leftOut,
            Strings{"memory: hwloc counts 2 GiB, the kernel has 8 GiB; the "
                    "NUMA nodes' sizes are scaled to that"});
}

TEST_F(MachineTopologyTest, TheHostHasTheCpusOfTheAffinityMask) {
  std::thread([] {
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
    Result<Machine> all = readMachineTopology();
    ASSERT_TRUE(all) << all.error().message;
    std::vector<int64_t> cpus = indexesOf(all->root, "cpu");
    EXPECT_EQ(cpus.size(), static_cast<size_t>(CPU_COUNT(&mask)));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<int>(cpus.back()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    Result<Machine> restricted = readMachineTopology();
    ASSERT_TRUE(restricted);
    EXPECT_EQ(indexesOf(restricted->root, "cpu"),
              std::vector<int64_t>{cpus.back()});
    EXPECT_EQ(countParts(restricted->root, "core"), 1u);
    EXPECT_EQ(countParts(restricted->root, "package"), 1u);
    bool said = false;
    for (const std::string &sentence : restricted->leftOut)
      said |= sentence.ends_with(": not in the CPU affinity mask");
    EXPECT_EQ(said, cpus.size() > 1);
  }).join();
}

TEST_F(MachineTopologyTest, FilesThatAreNone) {
  TemporaryFolder folder;
  EXPECT_EQ(errorOf(folder.file("absent.xml")),
            folder.file("absent.xml") +
                ": cannot open: No such file or directory");
  EXPECT_EQ(errorOf(folder.path()), folder.path() + ": is not a regular file");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(errorOf(folder.file("pipe")),
            folder.file("pipe") + ": is not a regular file");
  std::string large = folder.write("large.xml", "");
  std::filesystem::resize_file(large, maxTopologyBytes + 1);
  EXPECT_NE(errorOf(large).find(large + ": "), std::string::npos);
  EXPECT_NE(errorOf(large).find("at most 67108864"), std::string::npos)
      << errorOf(large);
}

TEST_F(MachineTopologyTest, BrokenXml) {
  std::string good = exportXml("core:2 pu:2");
  auto error = [](const std::string &xml) {
    Result<Machine> machine = readMachineXml("made.xml", xml);
    return machine ? "no error" : machine.error().message;
  };
  EXPECT_EQ(error(good), "no error");
  EXPECT_EQ(error(""),
            "made.xml: holds no <topology>, as hwloc's XML files do");
  EXPECT_EQ(error("{}"),
            "made.xml: holds no <topology>, as hwloc's XML files do");
  EXPECT_EQ(error("<a>\n</a>"), "made.xml: line 1: <a> stands where one "
                                "<topology> is expected");
  EXPECT_EQ(error(good + "<topology/>").substr(0, 10), "made.xml: ");
  EXPECT_EQ(error(std::string("<topology>\n\0</topology>", 23)),
            "made.xml: line 2: a zero byte is not XML");
  EXPECT_EQ(error("<topology>\n<object>\n</topology>"),
            "made.xml: line 3: </topology> closes nothing that is open");
  EXPECT_EQ(error("<topology>\n<object type=\"Mach"),
            "made.xml: line 2: the text ends inside a tag");
  EXPECT_EQ(error("<topology>\n<object>\n"),
            "made.xml: line 3: <object> is never closed");
  EXPECT_EQ(error("<!DOCTYPE topology [<!ENTITY a 'b'>]>\n<topology/>"),
            "made.xml: line 1: declarations of entities are not read");
  EXPECT_EQ(error("<topology>" + std::string(100000, ' ')),
            "made.xml: line 1: <topology> is never closed");
  std::string deep = "<topology>";
  for (int i = 0; i < 100000; ++i)
    deep += "<object type=\"Group\" cpuset=\"0x1\">";
  EXPECT_EQ(error(deep),
            "made.xml: line 1: more than 64 elements inside each other");
  // Cut anywhere, it is an error.
  for (size_t length = 0; length + 2 < good.size(); length += 13)
    EXPECT_NE(error(good.substr(0, length)), "no error") << length;
  std::string noCpus = good;
  for (size_t at;
       (at = noCpus.find("<object type=\"PU\"")) != std::string::npos;)
    noCpus.erase(at, noCpus.find("/>", at) + 2 - at);
  EXPECT_EQ(error(noCpus), "made.xml: describes no CPUs");
  EXPECT_EQ(error(replaced(good, "allowed_cpuset=\"0x0000000f\"",
                           "allowed_cpuset=\"0x0\"")),
            "made.xml: none of its 4 CPUs may be used: the cpuset leaves none");
  EXPECT_NE(error(replaced(good, "version=\"2.0\"", "version=\"9.0\"")),
            "no error");
}

/// hwloc crashes on some of these; whatever happens, it is a machine with CPUs
/// or an error.
TEST_F(MachineTopologyTest, FilesThatContradictThemselves) {
  std::string good = exportXml("pack:2 [numa] l3:1 core:2 pu:1");
  for (const char *type :
       {"Machine", "Package", "NUMANode", "L3Cache", "Core", "PU"})
    for (const char *other : {"Machine", "NUMANode", "L3Cache", "PU", "Group",
                              "Misc", "Bridge", "Nonsense", ""}) {
      Result<Machine> machine = readMachineXml(
          "made.xml", replaced(good, std::string("type=\"") + type + "\"",
                               std::string("type=\"") + other + "\""));
      if (machine)
        EXPECT_GT(countParts(machine->root, "core"), 0u);
      else
        EXPECT_EQ(machine.error().message.rfind("made.xml: ", 0), 0u);
    }
  for (const char *set : {"0x0", "0xf...f", "", "0xffffffff,0xffffffff"})
    for (const char *name : {" cpuset=\"", "complete_cpuset=\"", " nodeset=\"",
                             "os_index=\"", "gp_index=\""}) {
      std::string xml = good;
      size_t at = xml.rfind(name);
      size_t begin = at + std::string(name).size();
      xml.replace(begin, xml.find('"', begin) - begin, set);
      Result<Machine> machine = readMachineXml("made.xml", xml);
      if (machine) {
        EXPECT_GT(countParts(machine->root, "cpu"), 0u);
      }
    }
}

TEST_F(MachineTopologyTest, ImpossibleDescriptions) {
  EXPECT_EQ(errorOf("synthetic:"),
            "synthetic:: is empty: no level has a number of parts");
  EXPECT_EQ(errorOf("synthetic:pu:100000000"),
            "synthetic:pu:100000000: has more than 65536 CPUs");
  EXPECT_EQ(errorOf("synthetic:package:4294967296 core:4294967296 pu:1"),
            "synthetic:package:4294967296 core:4294967296 pu:1: has more than "
            "65536 CPUs");
  for (const char *text :
       {"core:4", "nonsense:3 pu:2", "pu:0", "package:2 pu", "package:2 (pu:1",
        "pu:2 core:2", "[numa]", "package:-1 pu:2"}) {
    std::string error = errorOf(std::string("synthetic:") + text);
    EXPECT_EQ(error.rfind(std::string("synthetic:") + text + ": is ", 0), 0u)
        << error;
  }
  // What a person wrote is shown, but not to a terminal as it is.
  EXPECT_NE(errorOf("synthetic:\033[31mcore:2").find("?[31mcore"),
            std::string::npos);
}

TEST_F(MachineTopologyTest, ThousandsOfCores) {
  Result<Machine> machine =
      readMachineTopology("synthetic:package:16 [numa] l3:8 core:8 pu:1");
  ASSERT_TRUE(machine);
  EXPECT_EQ(countParts(machine->root, "core"), 1024u);
}

// Groups that are numbered stay the only ones.
TEST_F(MachineTopologyTest, NumberedGroupsOfManySiblings) {
  Result<Machine> machine =
      readMachineTopology("synthetic:group2:2 core:256 pu:1");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(countParts(machine->root, "group"), 2u);
  EXPECT_EQ(countParts(machine->root, "core"), 512u);
}

// Without groups in between, hwloc would take minutes for these.
TEST_F(MachineTopologyTest, ThousandsOfSiblings) {
  const auto begin = std::chrono::steady_clock::now();
  Result<Machine> machine = readMachineTopology("synthetic:core:16384 pu:1");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->root.coreCount, 16384u);
  const MachineNode &numa = machine->root.children.at(0);
  ASSERT_EQ(numa.children.size(), 16384u);
  EXPECT_EQ(describe(numa.children[16383]), "core 16383(cpu 16383)");
  EXPECT_TRUE(machine->leftOut.empty());
  // Groups of the description's own stay.
  machine = readMachineTopology(
      "synthetic:package:2 [numa] group:4 l2:512(size=1024) group:2 pu:2");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(countParts(machine->root, "group"), 8u + 8192u);
  EXPECT_EQ(countParts(machine->root, "l2"), 4096u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// libxml2 takes no more than 10 MB from memory.
TEST_F(MachineTopologyTest, LargeXml) {
  if (test::isEmulated())
    GTEST_SKIP() << "an emulator takes half a minute";
  const std::string description = "group:88 core:128 pu:1";
  const std::string xml = exportXml(description);
  ASSERT_GT(xml.size(), 10'500'000u);
  Machine machine = readXml(xml);
  EXPECT_EQ(countParts(machine.root, "core"), 88u * 128u);
  EXPECT_EQ(countParts(machine.root, "group"), 88u);
}

// The header is the library's own: nothing outside loads in a child process.
TEST(DivideSiblings, PutsGroupsBetweenManyAndTheirParent) {
  auto divided = [](const char *text) {
    LoadableDescription loadable = divideSiblings(text);
    for (bool madeUp : loadable.madeUpGroups)
      loadable.text += madeUp ? " +" : " -";
    return loadable.text;
  };
  for (const char *text :
       {"", "4", "16384 2", "package:2 [numa] core:4 pu:2", "core:128 pu:1",
        "numa:1024 core:1 pu:1", "core:-1", "core:99999999999999 pu:1",
        "core:32749 pu:1", "core : 1024", "pu:x", "(core:1024)"})
    EXPECT_EQ(divided(text), text);
  EXPECT_EQ(divided("core:16384 pu:1"), "group:32 group:32 core:16 pu:1 + +");
  EXPECT_EQ(divided("pack:2 [numa] group:4 l2:1024(size=5) pu:512"),
            "pack:2 [numa] group:4 group:32 l2:32(size=5) group:32 pu:16"
            " + + -");
  EXPECT_EQ(divided("core:66602 pu:1"), "group:2 core:33301 pu:1 +");
  EXPECT_EQ(divided("core:1369 pu:1"), "group:37 core:37 pu:1 +");
  EXPECT_EQ(divided("core:1024 Group:512 pu:1"),
            "group:32 core:32 group:32 Group:16 pu:1 - + +");
}

TEST(TryToLoad, EndsAChildThatHangsOrCrashes) {
  using std::chrono::milliseconds;
  EXPECT_EQ(*tryToLoad([] { return true; }), LoadOutcome::Loaded);
  EXPECT_EQ(*tryToLoad([] { return false; }), LoadOutcome::Refused);
  EXPECT_EQ(*tryToLoad([]() -> bool { std::abort(); }), LoadOutcome::Refused);
  EXPECT_EQ(*tryToLoad([] { return ::raise(SIGXCPU) != 0; }),
            LoadOutcome::TooSlow);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(*tryToLoad(
                [] {
                  while (::pause() != 0) {
                  }
                  return true;
                },
                milliseconds(50)),
            LoadOutcome::TooSlow);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, milliseconds(50));
  EXPECT_LT(took, std::chrono::seconds(30));
}

TEST(TryToLoad, TellsThatNoProcessCanBeStarted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Result<LoadOutcome> outcome = tryToLoad([] { return true; });
  const std::string message = errorOf("synthetic:core:2 pu:1");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "cannot start the process that it is "
                                     "tried in: Too many open files");
  EXPECT_EQ(message, "synthetic:core:2 pu:1: " + outcome.error().message);
}
