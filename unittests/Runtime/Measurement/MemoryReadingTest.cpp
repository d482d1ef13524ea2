//===- MemoryReadingTest.cpp - Which memory is read -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Measurement/MemoryReading.h"

#include "sandwich/Support/AnonymousMemory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>

using namespace sandwich;

namespace {

/// Behind the memory lies a page that nobody may touch.
TEST(MemoryReader, ReadsWhatItIsGivenAndNothingBeside) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Result<AnonymousMemory> memory =
      AnonymousMemory::allocate(4 * page, "memory to read");
  ASSERT_TRUE(memory);
  std::byte *end = memory->data() + 3 * page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  for (unsigned threads : {1u, 3u}) {
    Result<std::unique_ptr<PhaseTeam>> team = PhaseTeam::create(
        {.threads = threads, .cpus = {}, .oversubscribed = true});
    ASSERT_TRUE(team);
    for (size_t bytes : {size_t{0}, size_t{8}, size_t{63} * 8, size_t{64} * 7,
                         3 * page - 8, 3 * page}) {
      const MemoryReader reader(**team, threads, std::span(end - bytes, bytes));
      EXPECT_GT(reader.seconds(std::span(end - bytes, bytes)), 0);
      EXPECT_GT(reader.seconds(std::span(end - bytes, bytes), 1), 0);
    }
  }
  ASSERT_EQ(mprotect(end, page, PROT_READ | PROT_WRITE), 0);
}

} // namespace
