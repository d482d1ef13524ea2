//===- CheckpointFixture.h - Checkpoints for tests to spoil -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_FRONTEND_CHECKPOINTFIXTURE_H
#define SANDWICH_UNITTESTS_FRONTEND_CHECKPOINTFIXTURE_H

#include "TestFiles.h"

#include "sandwich/Frontend/Checkpoint.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sandwich::test {

/// A checkpoint of a few kilobytes in a folder of its own, for tests to spoil
/// before `write`.
class CheckpointFixture : public testing::Test {
protected:
  Json config;
  TemporaryFolder folder;

  struct Tensor {
    std::vector<int64_t> shape;
    std::string elementType;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors;

  static int64_t count(const std::vector<int64_t> &shape) {
    int64_t product = 1;
    for (int64_t dimension : shape)
      product *= dimension;
    return product;
  }

  /// F32 elements 0, 1, 2, ...
  void add(const std::string &name, const std::vector<int64_t> &shape) {
    std::vector<float> elements(count(shape));
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = float(i);
    tensors[name] = {shape, "F32", bytesOf(elements)};
  }

  template <typename Predicate> std::string file(Predicate isInFile) const {
    SafetensorsBuilder builder;
    for (const auto &[name, tensor] : tensors)
      if (isInFile(name))
        builder.add(name, tensor.elementType, tensor.shape, tensor.bytes);
    return builder.finish();
  }

  void writeConfig() { folder.write("config.json", config.dump()); }

  void write() {
    writeConfig();
    folder.write("model.safetensors", file([](const auto &) { return true; }));
  }

  Checkpoint open(const std::optional<std::string> &task = {}) {
    auto checkpoint = Checkpoint::open(folder.path(), task);
    if (!checkpoint) {
      ADD_FAILURE() << checkpoint.error().message;
      std::exit(1);
    }
    return *std::move(checkpoint);
  }
  /// The configuration implies what the file has.
  void expectToImplyExactlyTheTensors() {
    write();
    std::map<std::string, std::vector<int64_t>> expected;
    for (ExpectedTensor &tensor : expectedTensors(open().config()))
      EXPECT_TRUE(expected.emplace(tensor.name, tensor.shape).second);
    std::map<std::string, std::vector<int64_t>> stored;
    for (const auto &[name, tensor] : tensors)
      stored.emplace(name, tensor.shape);
    EXPECT_EQ(expected, stored);
  }
  std::vector<std::string> unusedTensors() {
    auto unused = open().checkTensors();
    if (unused)
      return *unused;
    ADD_FAILURE() << unused.error().message;
    return {};
  }
  std::string openRefusal(const std::optional<std::string> &task = {}) {
    return messageOf(Checkpoint::open(folder.path(), task));
  }
  std::string tensorRefusal() {
    write();
    return messageOf(open().checkTensors());
  }
  std::string weights() { return folder.file("model.safetensors"); }
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_FRONTEND_CHECKPOINTFIXTURE_H
