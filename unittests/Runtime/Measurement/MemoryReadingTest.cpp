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

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

using namespace sandwich;

namespace {

TEST(MemoryReader, EachNumberOfStreamsReadsAll) {
  std::vector<uint64_t> words(8 * 1000);
  std::ranges::generate(words, [word = uint64_t{1}]() mutable {
    return word = word * 6364136223846793005 + 1442695040888963407;
  });
  for (size_t lines : {0, 1, 3, 4, 5, 7, 8, 23, 24, 1000}) {
    const auto part = std::span(words).first(8 * lines);
    const uint64_t sum = std::accumulate(part.begin(), part.end(), uint64_t{0});
    for (unsigned streams : {1u, 4u, 6u, 8u})
      EXPECT_EQ(sumLines(std::as_bytes(part), streams), sum)
          << lines << " lines in " << streams << " streams";
  }
}

/// Behind the memory lies a page that nobody may touch.
TEST(MemoryReader, ReadsNothingBehindTheMemory) {
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
