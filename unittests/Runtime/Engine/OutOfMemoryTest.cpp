//===- OutOfMemoryTest.cpp - Steps for which memory is short --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"
#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include "sandwich/Runtime/Engine/Engine.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace sandwich;
using namespace sandwich::test;

TEST(OutOfMemoryTest, CopiesOfBlocksAreMadeUpFor) {
  TemporaryFolder folder;
  const std::string path = folder.file("model.sandwich");
  ASSERT_TRUE(writeHashModel(path, {.threads = 1}));
  // Not whole blocks, so that a fork needs a copy of the last one.
  std::vector<int32_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 1);
  const std::vector<int32_t> next = {100, 7, 9};
  std::vector<int32_t> all = tokens;
  all.insert(all.end(), next.begin(), next.end());
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    // Anew, as it keeps what it has allocated.
    Result<std::unique_ptr<Engine>> engine =
        Engine::create(*Artifact::open(path), {});
    ASSERT_TRUE(engine) << engine.error().message;
    Sequence text = (*engine)->newSequence();
    ASSERT_TRUE((*engine)->feed(text, tokens, LogitRows::None, {}, 1));
    Sequence fork = text.fork();
    untilFailure = failures;
    try {
      Status status = (*engine)->feed(fork, next, LogitRows::None);
      failed = false;
    } catch (const std::bad_alloc &) {
    }
    untilFailure = -1;
    ASSERT_EQ(fork.length(), failed ? tokens.size() : all.size());
    if (!failed)
      fork.truncate(tokens.size());
    std::vector<float> logits;
    Status status = (*engine)->feed(
        fork, next, LogitRows::Last,
        [&](std::span<const float> row, uint64_t, uint64_t) -> Status {
          logits.assign(row.begin(), row.end());
          return {};
        });
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(logits, hashModelLogits(all)) << failures;
  }
  EXPECT_GT(failures, 3);
}
