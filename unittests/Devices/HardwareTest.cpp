//===- HardwareTest.cpp - Accelerators that are there ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Devices/Hardware.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace sandwich;
using namespace sandwich::test;

namespace {

TEST(Hardware, FindsFilesOfDrivers) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/dev/accel");
  for (const char *name :
       {"nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "davinci0",
        "davinci_manager", "accel/accel0", "null"})
    std::ofstream(folder.path() + "/dev/" + name);
  const std::string dev = folder.path() + "/dev/";
  EXPECT_EQ(
      findAccelerators(folder.path()),
      (std::vector<FoundAccelerator>{{"NVIDIA GPU", dev + "nvidia2"},
                                     {"NVIDIA GPU", dev + "nvidia10"},
                                     {"Ascend NPU", dev + "davinci0"},
                                     {"accelerator", dev + "accel/accel0"}}));
}

TEST(Hardware, FindsNothingWhereNothingIs) {
  EXPECT_TRUE(findAccelerators("/nonexistent").empty());
}

} // namespace
