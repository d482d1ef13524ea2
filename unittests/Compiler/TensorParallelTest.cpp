//===- TensorParallelTest.cpp - Models divided among ranks ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compiles small random models for one and several ranks, runs the ranks as
/// threads of this process, and compares their logits.
///
//===----------------------------------------------------------------------===//

#include "CompileForRanks.h"
#include "Frontend/TestFiles.h"

#include "sandwich/Artifact/Artifact.h"
#include "sandwich/Artifact/Format.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Runtime/Teams/StepInput.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

using namespace sandwich;
using namespace sandwich::test;

namespace {

constexpr int64_t threads = 2;
constexpr int64_t maxTokens = 16;
/// Blocks of the KV cache: two for each of two sequences.
constexpr int64_t blocksPerSequence = 2, sequences = 2;

/// Lets `count` threads meet.
class Barrier {
public:
  explicit Barrier(int64_t count) : count(count) {}

  void wait() {
    std::unique_lock lock(mutex);
    const uint64_t round = rounds;
    if (++waiting < count)
      return changed.wait(lock, [&] { return rounds != round; });
    waiting = 0;
    ++rounds;
    changed.notify_all();
  }

private:
  const int64_t count;
  int64_t waiting = 0;
  uint64_t rounds = 0;
  std::mutex mutex;
  std::condition_variable changed;
};

/// What ranks do together, in the simplest way there is: thread t of each rank
/// tells the threads t of the others where its data is.
class RankGroup {
public:
  explicit RankGroup(int64_t ranks) : ranks(ranks) {
    for (int64_t lane = 0; lane < threads; ++lane)
      lanes.push_back(std::make_unique<Lane>(ranks));
    for (int64_t rank = 0; rank < ranks; ++rank)
      members.push_back({this, rank});
  }

  void connect(SandwichStep &step, int64_t rank) {
    step.rank = rank;
    step.ranks = &members[rank];
    step.all_reduce = [](void *member, int32_t thread, float *data,
                         int64_t count) {
      auto &self = *static_cast<Member *>(member);
      self.group->allReduce(self.rank, thread, data, count);
    };
    step.all_gather = [](void *member, int32_t thread, const float *part,
                         float *whole, int64_t rows, int64_t columns) {
      auto &self = *static_cast<Member *>(member);
      self.group->allGather(self.rank, thread, part, whole, rows, columns);
    };
  }

private:
  struct Member {
    RankGroup *group;
    int64_t rank;
  };
  struct Lane {
    explicit Lane(int64_t ranks) : barrier(ranks), data(ranks) {}
    Barrier barrier;
    std::vector<const float *> data;
  };

  void allReduce(int64_t rank, int32_t thread, float *data, int64_t count) {
    Lane &lane = *lanes[thread];
    int64_t begin = count * thread / threads;
    int64_t end = count * (thread + 1) / threads;
    lane.data[rank] = data;
    lane.barrier.wait();
    std::vector<float> sums(end - begin);
    for (int64_t other = 0; other < ranks; ++other)
      for (int64_t i = begin; i < end; ++i)
        sums[i - begin] += lane.data[other][i];
    lane.barrier.wait();
    std::ranges::copy(sums, data + begin);
  }

  void allGather(int64_t rank, int32_t thread, const float *part, float *whole,
                 int64_t rows, int64_t columns) {
    Lane &lane = *lanes[thread];
    lane.data[rank] = part;
    lane.barrier.wait();
    for (int64_t row = thread; row < rows; row += threads)
      for (int64_t other = 0; other < ranks; ++other)
        std::copy_n(lane.data[other] + row * columns, columns,
                    whole + (row * ranks + other) * columns);
    lane.barrier.wait();
  }

  int64_t ranks;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Member> members;
};

AnonymousMemory allocate(uint64_t bytes) {
  auto memory = AnonymousMemory::allocate(std::max<uint64_t>(bytes, 1), "test");
  EXPECT_TRUE(memory) << memory.error().message;
  return std::move(*memory);
}

/// One process of the group: its weights, cache and team.
class Rank {
public:
  Rank(const Artifact &artifact, const std::string &weightsFile, int64_t rank)
      : team(threads), vocabulary(artifact.manifest().model().vocab_size()) {
    const proto::Manifest &manifest = artifact.manifest();
    uint64_t common = weightsFile.size(), shard = 0;
    if (artifact::ranks(manifest) > 1) {
      common = manifest.common_weight_bytes();
      shard = manifest.shard_bytes();
    }
    weights = allocate(common + shard);
    std::memcpy(weights.data(), weightsFile.data(), common);
    std::memcpy(weights.data() + common,
                weightsFile.data() + common + rank * shard, shard);
    cache = allocate(manifest.kv_cache().block_bytes() * blocksPerSequence *
                     sequences);
    workspace = allocate(std::max(artifact.prefill().workspace_bytes(),
                                  artifact.decode().workspace_bytes()));
  }

  void run(SandwichPhaseFunction phase, SandwichStep step, RankGroup &group,
           int64_t rank) {
    group.connect(step, rank);
    step.weights = weights.data();
    step.kv_cache = cache.data();
    step.workspace = workspace.data();
    logits.assign(step.num_logit_rows * vocabulary, NAN);
    step.logits = logits.data();
    step.barrier = [](void *team) { static_cast<Barrier *>(team)->wait(); };
    step.team = &team;
    std::vector<std::jthread> running;
    for (int32_t thread = 0; thread < threads; ++thread)
      running.emplace_back([=] { phase(&step, thread); });
  }

  Barrier team;
  size_t vocabulary;
  AnonymousMemory weights, cache, workspace;
  std::vector<float> logits;
};

/// A model for `ranks` ranks, all of them in this process.
class Group {
public:
  Group(const std::string &path, int64_t ranks) : group(ranks) {
    auto opened = Artifact::open(path);
    EXPECT_TRUE(opened) << opened.error().message;
    artifact.emplace(*std::move(opened));
    auto library = artifact->loadPhases();
    EXPECT_TRUE(library) << library.error().message;
    phases.emplace(*std::move(library));
    auto weights = readTextFile(path + "/weights.bin", size_t(1) << 30);
    EXPECT_TRUE(weights) << weights.error().message;
    for (int64_t rank = 0; rank < ranks; ++rank)
      members.push_back(std::make_unique<Rank>(*artifact, *weights, rank));
  }

  /// The logits of all `tokens`, which belong to `sequence`.
  std::vector<float> prefill(const std::vector<int32_t> &tokens,
                             int32_t sequence) {
    const StepInput::Segment segment{sequence,
                                     static_cast<int32_t>(tokens.size()), 0};
    return run(PhaseKind::Prefill, tokens, {segment});
  }

  /// The logits of the next token of each sequence, which has `length` already.
  std::vector<float> decode(const std::vector<int32_t> &tokens,
                            int32_t length) {
    std::vector<StepInput::Segment> segments;
    for (int32_t sequence = 0; sequence < sequences; ++sequence)
      segments.push_back({sequence, 1, length});
    return run(PhaseKind::Decode, tokens, segments);
  }

  const proto::Manifest &manifest() const { return artifact->manifest(); }

private:
  std::vector<float> run(PhaseKind phase, const std::vector<int32_t> &tokens,
                         const std::vector<StepInput::Segment> &segments) {
    StepInput input;
    input.tokenIds = tokens;
    input.segments = segments;
    input.logitRows.resize(tokens.size());
    std::iota(input.logitRows.begin(), input.logitRows.end(), 0);
    for (int32_t sequence = 0; sequence < sequences; ++sequence)
      for (int32_t index = 0; index < blocksPerSequence; ++index)
        input.tableChanges.push_back(
            {sequence, index,
             sequence * static_cast<int32_t>(blocksPerSequence) + index});
    const StepLimits limits = {.tokens = tokens.size(),
                               .logitRows = tokens.size(),
                               .vocabSize = manifest().model().vocab_size(),
                               .contextLength = blocksPerSequence * 16,
                               .kvBlocks = sequences * blocksPerSequence};
    StepArrangement arrangement;
    const Status arranged = arrangement.arrange(input, limits);
    EXPECT_TRUE(arranged) << arranged.error().message;
    SandwichStep step = {};
    arrangement.describe(input, step);
    const SandwichPhaseFunction function =
        phases->find(phase == PhaseKind::Prefill ? "prefill" : "decode");
    {
      std::vector<std::jthread> processes;
      for (size_t rank = 0; rank < members.size(); ++rank)
        processes.emplace_back(
            [=, this] { members[rank]->run(function, step, group, rank); });
    }
    for (const std::unique_ptr<Rank> &member : members)
      EXPECT_EQ(member->logits, members.front()->logits)
          << "ranks have different logits";
    return members.front()->logits;
  }

  RankGroup group;
  std::optional<Artifact> artifact;
  std::optional<PhaseLibrary> phases;
  std::vector<std::unique_ptr<Rank>> members;
};

/// A checkpoint of `config` with random weights in `folder`.
void writeCheckpoint(const TemporaryFolder &folder, const Json &config) {
  folder.write("config.json", config.dump());
  auto parsed = parseModelConfig(config.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  SafetensorsBuilder tensors;
  for (const ExpectedTensor &tensor : expectedTensors(*parsed)) {
    int64_t count = 1;
    for (int64_t size : tensor.shape)
      count *= size;
    bool isNorm = tensor.name.ends_with("norm.weight");
    std::vector<float> values(count);
    for (float &value : values)
      value = isNorm ? 1 + 0.1f * normal(random)
                     : normal(random) /
                           std::sqrt(static_cast<float>(tensor.shape.back()));
    tensors.add(tensor.name, "F32", tensor.shape, bytesOf(values));
  }
  folder.write("model.safetensors", tensors.finish());
}

/// Heads of 16 channels that share KV heads, with what `changes` says.
Json makeConfig(const Json &changes) {
  Json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"hidden_size", 64},
                 {"head_dim", 16},
                 {"intermediate_size", 120},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 8},
                 {"num_key_value_heads", 4},
                 {"vocab_size", 212},
                 {"max_position_embeddings", 64},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"hidden_act", "silu"},
                 {"tie_word_embeddings", false},
                 {"eos_token_id", 2}};
  config.update(changes);
  return config;
}

Status compileFor(const TemporaryFolder &folder, const std::string &name,
                  int64_t ranks, const std::string &dtype = "f32") {
  return compileForRanks(folder.path(), folder.file(name), dtype, ranks,
                         threads, maxTokens);
}

class TensorParallel : public testing::TestWithParam<Json> {
protected:
  void SetUp() override {
    if (!CpuFeatures::host().has("avx2"))
      GTEST_SKIP() << "this CPU has no AVX2";
  }
};

void expectNear(const std::vector<float> &logits,
                const std::vector<float> &expected) {
  ASSERT_EQ(logits.size(), expected.size());
  float largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_NEAR(logits[i], expected[i], 1e-4) << "element " << i;
    largest = std::max(largest, std::abs(expected[i]));
  }
  EXPECT_GT(largest, 0.1f);
}

} // namespace

TEST_P(TensorParallel, RanksHaveTheLogitsOfOneProcess) {
  TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(writeCheckpoint(folder, makeConfig(GetParam())));
  std::vector<std::vector<float>> expected;
  for (int64_t ranks : {1, 2, 4}) {
    std::string name = "ranks-" + std::to_string(ranks);
    Status status = compileFor(folder, name, ranks);
    ASSERT_TRUE(status) << status.error().message;
    Group group(folder.file(name), ranks);
    ASSERT_FALSE(HasFailure());
    std::vector<std::vector<float>> logits = {
        group.prefill({1, 200, 17, 3, 99, 4, 211}, 0),
        group.prefill({5, 6, 7, 8, 9, 10, 11}, 1),
        group.decode({42, 43}, 7),
        group.decode({150, 0}, 8),
    };
    if (ranks == 1)
      expected = logits;
    for (size_t i = 0; i < logits.size(); ++i) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, step " + std::to_string(i));
      expectNear(logits[i], expected[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, TensorParallel,
    testing::Values(Json::object(), Json{{"tie_word_embeddings", true}},
                    // Biases of the row-parallel output projection count once.
                    Json{{"attention_bias", true}},
                    Json{{"architectures", {"Qwen2ForCausalLM"}},
                         {"tie_word_embeddings", true}},
                    Json{{"architectures", {"Qwen3ForCausalLM"}}}));

TEST(TensorParallelArtifact, HasOneRegionForAllRanksAndOneForEach) {
  TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(writeCheckpoint(folder, makeConfig(Json::object())));
  Status status = compileFor(folder, "a.sandwich", 2, "bf16");
  ASSERT_TRUE(status) << status.error().message;
  auto artifact = Artifact::open(folder.file("a.sandwich"));
  ASSERT_TRUE(artifact) << artifact.error().message;
  const proto::Manifest &manifest = artifact->manifest();
  constexpr uint64_t region = uint64_t(2) << 20;
  EXPECT_EQ(manifest.ranks(), 2u);
  EXPECT_EQ(manifest.common_weight_bytes(), region);
  EXPECT_EQ(manifest.shard_bytes(), region);
  EXPECT_EQ(artifact->weightsBytes(), 3 * region);
  // Half of the KV heads, as wide as the weights.
  EXPECT_EQ(manifest.kv_cache().block_bytes(), 2u * 2 * 2 * 16 * 16 * 2);
  EXPECT_EQ(manifest.kv_cache().dtype(), "bf16");
  for (const proto::Tensor &tensor : manifest.tensors()) {
    bool isWhole = tensor.name() == "embedding" ||
                   tensor.name().find("norm") != std::string::npos;
    EXPECT_EQ(tensor.ranks(), isWhole ? 0u : 2u) << tensor.name();
    EXPECT_EQ(tensor.offset() >= region, !isWhole) << tensor.name();
  }
}

TEST(TensorParallelArtifact, RefusesWhatRanksDoNotDivide) {
  TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(writeCheckpoint(folder, makeConfig(Json::object())));
  for (auto [ranks, expected] :
       {std::pair<int64_t, const char *>{
            3, "the model cannot be divided: 3 ranks do not divide 8 query "
               "heads; 1, 2 and 4 are possible"},
        {8, "the model cannot be divided: 8 ranks do not divide 4 KV heads; 1, "
            "2 and 4 are possible"},
        {0, "the model cannot be divided: 0 ranks are not between 1 and 64; 1, "
            "2 and 4 are possible"}}) {
    Status status = compileFor(folder, "a.sandwich", ranks);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, expected);
    EXPECT_FALSE(std::filesystem::exists(folder.file("a.sandwich")));
  }
}
