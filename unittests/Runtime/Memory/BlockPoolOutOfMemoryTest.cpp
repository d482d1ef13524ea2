//===- BlockPoolOutOfMemoryTest.cpp - Tables for which memory is short ----===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "sandwich/Runtime/Memory/BlockPool.h"

#include <gtest/gtest.h>

using namespace sandwich;
using namespace sandwich::test;

/// Whether `action` runs into its allocation `count`.
template <typename Action>
static bool failsAt(int count, const Action &action) {
  bool failed = false;
  untilFailure = count;
  try {
    action();
  } catch (const std::bad_alloc &) {
    failed = true;
  }
  untilFailure = -1;
  return failed;
}

TEST(BlockPoolOutOfMemoryTest, NothingHasChanged) {
  const std::vector<int32_t> tokens(20, 3), more(60, 4), all = [&] {
    std::vector<int32_t> both = tokens;
    both.insert(both.end(), more.begin(), more.end());
    return both;
  }();
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    // Anew, as it keeps what it has allocated.
    auto pool = *BlockPool::create(16);
    Sequence text(*pool);
    BlockPool::Append append{&text, tokens.size()};
    ASSERT_TRUE(pool->reserve({&append, 1}));
    text.append(tokens);
    Sequence fork = text.fork(), reader(*pool);
    const std::vector<int32_t> table(text.blocks().begin(),
                                     text.blocks().end());
    BlockPool::Append appends[] = {{&text, more.size()}, {&fork, more.size()}};

    failed = failsAt(failures, [&] { ASSERT_TRUE(pool->reserve(appends)); });
    if (failed) {
      EXPECT_EQ(pool->freeBlocks(), 14u);
      EXPECT_TRUE(pool->pendingCopies().empty());
      for (const Sequence *sequence : {&text, &fork})
        EXPECT_TRUE(std::ranges::equal(sequence->blocks(), table));
      ASSERT_TRUE(pool->reserve(appends));
    }
    EXPECT_EQ(pool->pendingCopies().size(), 1u);
    // What was reserved needs no memory any more.
    EXPECT_FALSE(failsAt(0, [&] {
      text.append(more);
      fork.append(more);
      text.truncate(5);
    }));
    EXPECT_EQ(fork.length(), 80u);

    const uint64_t free = pool->freeBlocks();
    if (failsAt(failures, [&] { reader.claimPrefix(all); })) {
      failed = true;
      EXPECT_EQ(reader.length(), 0u);
      EXPECT_EQ(pool->freeBlocks(), free);
      reader.claimPrefix(all);
    }
    EXPECT_EQ(reader.length(), 64u);
  }
  EXPECT_GT(failures, 5);
}
