//===- RankGroupFixture.h - Ranks of the tests' model -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_RUNTIME_RANKGROUPFIXTURE_H
#define SANDWICH_UNITTESTS_RUNTIME_RANKGROUPFIXTURE_H

#include "HashModel.h"
#include "TemporaryFolder.h"

#include "sandwich/Runtime/Engine/Engine.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

namespace sandwich::test {

class RankGroupTest : public ::testing::Test {
protected:
  Result<std::unique_ptr<Engine>> create(HashModelOptions model,
                                         EngineOptions options = {}) {
    if (model.ranks == 1)
      model.ranks = 2;
    const std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, model);
    EXPECT_TRUE(written) << written.error().message;
    Result<Artifact> artifact = Artifact::open(path);
    EXPECT_TRUE(artifact) << artifact.error().message;
    if (options.ranks.program.empty())
      options.ranks.program = SANDWICH_TEST_RUN;
    return Engine::create(std::move(*artifact), options);
  }

  std::unique_ptr<Engine> load(const HashModelOptions &model = {},
                               const EngineOptions &options = {}) {
    Result<std::unique_ptr<Engine>> engine = create(model, options);
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? std::move(*engine) : nullptr;
  }

  /// The error of a step of `tokens`, or "".
  static std::string feed(Engine &engine, const std::vector<int32_t> &tokens) {
    Sequence sequence = engine.newSequence();
    Status status = engine.feed(sequence, tokens, LogitRows::Last);
    return status ? "" : status.error().message;
  }

  static std::string nameOf(const Engine &engine, size_t rank) {
    return "rank " + std::to_string(rank) + " (process " +
           std::to_string(engine.rankProcesses()[rank - 1]) + ") ";
  }

  /// A program that runs `commands`, for `options.ranks.program`.
  std::string script(const std::string &commands) {
    const std::string path = folder.write("script", "#!/bin/sh\n" + commands);
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path;
  }

  TemporaryFolder folder;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_RUNTIME_RANKGROUPFIXTURE_H
