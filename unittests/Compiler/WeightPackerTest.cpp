//===- WeightPackerTest.cpp - Tests of the shards of weights --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/WeightPacker.h"
#include "Frontend/TestFiles.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace sandwich;
using namespace sandwich::test;

namespace {

using Floats = std::vector<float>;

/// A checkpoint of one layer whose q projection, [4, 8], holds 0, 1 and so on,
/// and the k projection the same from 100 on.
class WeightPackerTest : public testing::Test {
protected:
  void SetUp() override {
    Json config = {{"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", 8},
                   {"head_dim", 2},
                   {"intermediate_size", 8},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", 2},
                   {"num_key_value_heads", 2},
                   {"vocab_size", 8},
                   {"max_position_embeddings", 64},
                   {"rms_norm_eps", 1e-5},
                   {"rope_theta", 10000.0},
                   {"hidden_act", "silu"},
                   {"eos_token_id", 2}};
    SafetensorsBuilder tensors;
    tensors.add("q", "F32", {4, 8}, bytesOf(numbers(32, 0)));
    tensors.add("k", "F32", {4, 8}, bytesOf(numbers(32, 100)));
    tensors.add("b", "F32", {4}, bytesOf(numbers(4, 0)));
    tensors.add("wide", "F32", {4, 64}, bytesOf(waves(256)));
    tensors.add("large", "F32", {1, 2}, bytesOf(Floats{1, 3.4e38f}));
    tensors.add("nan", "F32", {1, 2}, bytesOf(Floats{std::nanf(""), 1}));
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", tensors.finish());
    auto opened = Checkpoint::open(folder.path());
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint.emplace(*std::move(opened));
  }

  static std::vector<float> numbers(size_t count, float first) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
  }

  static std::vector<float> waves(size_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(std::sin(static_cast<double>(i * i)));
    return values;
  }

  std::vector<float> pack(std::vector<std::string> sources,
                          std::vector<int64_t> shape, WeightShard shard,
                          int64_t rank,
                          std::optional<int64_t> interleave = {}) {
    PackedWeight weight;
    weight.sources = std::move(sources);
    weight.shape = std::move(shape);
    weight.shard = shard;
    weight.ranks = 2;
    weight.interleave = interleave;
    weight.sliceBytes = sizeof(float);
    for (int64_t size : weight.shape)
      weight.sliceBytes *= static_cast<uint64_t>(size);
    weight.layerStride = weight.sliceBytes;
    std::vector<float> packed;
    RoundingSums rounding;
    Status status =
        packWeight(weight, rank, *checkpoint, {},
                   [&](std::span<const std::byte> bytes) {
                     auto *elements =
                         reinterpret_cast<const float *>(bytes.data());
                     packed.insert(packed.end(), elements,
                                   elements + bytes.size() / sizeof(float));
                     return Status();
                   },
                   {&rounding, 1});
    EXPECT_TRUE(status) << status.error().message;
    return packed;
  }

  TemporaryFolder folder;
  std::optional<Checkpoint> checkpoint;
};

TEST_F(WeightPackerTest, CutsRowsOfEachSource) {
  Floats expected = numbers(16, 16), second = numbers(16, 116);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(pack({"q", "k"}, {4, 8}, WeightShard::Rows, 1), expected);
  EXPECT_EQ(pack({"b"}, {2}, WeightShard::Rows, 0), (Floats{0, 1}));
  EXPECT_EQ(pack({"b"}, {2}, WeightShard::Rows, 1), (Floats{2, 3}));
}

TEST_F(WeightPackerTest, InterleavesTheRankOfEachSource) {
  Floats packed = pack({"q", "k"}, {4, 8}, WeightShard::Rows, 1, 1);
  ASSERT_EQ(packed.size(), 32u);
  EXPECT_EQ((Floats{packed[0], packed[8], packed[16], packed[24]}),
            (Floats{16, 116, 24, 124}));
}

TEST_F(WeightPackerTest, CutsColumns) {
  EXPECT_EQ(pack({"q"}, {4, 4}, WeightShard::Columns, 0),
            (Floats{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}));
  EXPECT_EQ(
      pack({"q"}, {4, 4}, WeightShard::Columns, 1),
      (Floats{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31}));
}

TEST_F(WeightPackerTest, RefusesNumbersThatTheArtifactCannotHold) {
  auto refusal = [&](const char *source, bool bf16) {
    PackedWeight weight;
    weight.sources = {source};
    weight.shape = {1, 2};
    weight.storage = bf16 ? StorageFormat::bf16() : StorageFormat::f32();
    weight.sliceBytes = weight.layerStride = bf16 ? 4 : 8;
    RoundingSums rounding;
    Status status = packWeight(
        weight, 0, *checkpoint, {},
        [](std::span<const std::byte>) { return Status(); }, {&rounding, 1});
    return status ? "" : status.error().message;
  };
  const std::string path = folder.file("model.safetensors");
  EXPECT_EQ(refusal("large", /*bf16=*/false), "");
  EXPECT_EQ(refusal("large", /*bf16=*/true),
            path + ": tensor \"large\": element [0, 1] is 3.4e+38, which bf16 "
                   "cannot hold; compile the model as f32");
  for (bool bf16 : {false, true})
    EXPECT_EQ(refusal("nan", bf16), path +
                                        ": tensor \"nan\": element [0, 0] is "
                                        "NaN; weights must be finite");
}

TEST_F(WeightPackerTest, RoundsWhatARankHasByItsImportance) {
  PackedWeight weight;
  weight.sources = {"wide"};
  weight.shape = {4, 32};
  weight.storage = *StorageFormat::parse("int4-g32-f16");
  weight.shard = WeightShard::Columns;
  weight.ranks = 2;
  weight.packing = Packing{.panel = 4, .tile = 4, .kStep = 4, .kPack = 4};
  weight.sliceBytes = weight.layerStride = weightBytes(weight.storage, 4, 32);
  Floats importance = numbers(64, 1);
  std::ranges::reverse(importance);
  const Floats values = waves(256);
  RoundingSums sums;
  double squaredErrors = 0, squares = 0;
  for (int64_t rank : {0, 1}) {
    std::vector<std::byte> packed;
    const Status status =
        packWeight(weight, rank, *checkpoint, {{"wide", importance}},
                   [&](std::span<const std::byte> bytes) {
                     packed.insert(packed.end(), bytes.begin(), bytes.end());
                     return Status();
                   },
                   {&sums, 1});
    ASSERT_TRUE(status) << status.error().message;
    std::vector<uint8_t> stored(4 * 32);
    std::vector<GroupScale> scales(4);
    Floats rounded(32);
    for (int64_t row = 0; row < 4; ++row) {
      const auto part = std::span(values).subspan(row * 64 + rank * 32, 32);
      const auto numbersOfRow = std::span(stored).subspan(row * 32, 32);
      scales[row] =
          *quantizeGroup(weight.storage, part, numbersOfRow,
                         std::span(importance).subspan(rank * 32, 32));
      dequantizeGroup(weight.storage, scales[row], numbersOfRow, rounded);
      for (size_t i = 0; i < part.size(); ++i) {
        squaredErrors += std::pow(rounded[i] - part[i], 2);
        squares += std::pow(part[i], 2);
      }
    }
    std::vector<std::byte> expected(weight.sliceBytes);
    packGroup(weight.storage, *weight.packing, stored, scales, expected);
    EXPECT_EQ(packed, expected) << rank;
  }
  EXPECT_TRUE(sums.rounded);
  EXPECT_NEAR(sums.relativeError(), std::sqrt(squaredErrors / squares), 1e-7);
}

TEST_F(WeightPackerTest, LeavesTheFirstRankWhatCountsOnce) {
  EXPECT_EQ(pack({"b"}, {4}, WeightShard::First, 0), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(pack({"b"}, {4}, WeightShard::First, 1), (Floats{0, 0, 0, 0}));
}

} // namespace
