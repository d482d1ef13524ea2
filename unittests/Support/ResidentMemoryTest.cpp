//===- ResidentMemoryTest.cpp - How much memory is in use -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/ResidentMemory.h"

#include "sandwich/Support/AnonymousMemory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>

using namespace sandwich;

static constexpr uint64_t MiB = uint64_t{1} << 20;

TEST(ResidentMemoryTest, PagesCountFromTheirFirstUseOn) {
  // More than one look of the system's takes, and neighbours of each other.
  Result<AnonymousMemory> first = AnonymousMemory::allocate(48 * MiB, "a test");
  Result<AnonymousMemory> second =
      AnonymousMemory::allocate(48 * MiB, "a test");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(residentBytes(first->contents()), 0u);
  std::memset(first->data() + 20 * MiB, 1, 10 * MiB);
  EXPECT_EQ(residentBytes(first->contents()), 10 * MiB);
  EXPECT_EQ(residentBytes(first->contents().subspan(20 * MiB, 4 * MiB)),
            4 * MiB);
  EXPECT_EQ(residentBytes(second->contents()), 0u);
  std::memset(second->data(), 1, second->size());
  EXPECT_EQ(residentBytes(second->contents()), second->size());
  EXPECT_EQ(residentBytes(first->contents()), 10 * MiB);
  // Parts of pages count as such.
  EXPECT_EQ(residentBytes(second->contents().subspan(100, 50)), 50u);
  EXPECT_EQ(residentBytes({}), 0u);
}

TEST(ResidentMemoryTest, MemoryOfAProcessOfItsOwn) {
  const uint64_t before = anonymousBytesOf(::getpid());
  EXPECT_GT(before, 0u);
  Result<AnonymousMemory> memory =
      AnonymousMemory::allocate(64 * MiB, "a test");
  ASSERT_TRUE(memory);
  std::memset(memory->data(), 1, memory->size());
  EXPECT_GE(anonymousBytesOf(::getpid()), before + 60 * MiB);
  // There is no such process.
  EXPECT_EQ(anonymousBytesOf(-1), 0u);
}
