//===- ArtifactWriterTest.cpp - Writing a compiled model ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/ArtifactWriter.h"

#include "TestArtifact.h"
#include "sandwich/Artifact/Artifact.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace sandwich;

namespace {

class ArtifactWriterTest : public TemporaryFolderTest {
protected:
  std::string createError(const std::string &path) {
    auto writer = ArtifactWriter::create(path);
    return writer ? "" : writer.error().message;
  }
  std::string partial(const std::string &name, pid_t process = ::getpid()) {
    return path(name) + ".partial-" + std::to_string(process);
  }

  /// The number of a process that was alive a moment ago.
  static pid_t deadProcess() {
    pid_t child = ::fork();
    if (child == 0)
      ::_exit(0);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    return child;
  }
};

TEST_F(ArtifactWriterTest, WritesBesideAndMoves) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writeContents(*writer));
  EXPECT_FALSE(std::filesystem::exists(path("a.sandwich")));
  EXPECT_FALSE(std::filesystem::exists(partial("a.sandwich") + "/manifest.pb"));
  ASSERT_TRUE(writer->commit(makeManifest()));
  EXPECT_EQ(filesInFolder(), 1u);
  EXPECT_TRUE(Artifact::open(path("a.sandwich")));
}

TEST_F(ArtifactWriterTest, FillsInTheManifest) {
  auto artifact = Artifact::open(writeArtifact("a.sandwich"));
  ASSERT_TRUE(artifact);
  const proto::Manifest &manifest = artifact->manifest();
  EXPECT_NE(manifest.sandwich_version(), "");
  ASSERT_EQ(manifest.files_size(), 3);
  EXPECT_EQ(manifest.files(0).name(), "phases.so");
  EXPECT_EQ(manifest.files(1).name(), "tokenizer.json");
  EXPECT_EQ(manifest.files(1).bytes(), 8u);
  EXPECT_EQ(manifest.files(1).checksum(),
            artifact::checksum(std::as_bytes(std::span("{\"a\": 1}", 8))));
  std::string weights = contents(path("a.sandwich/weights.bin"));
  EXPECT_EQ(manifest.files(2).bytes(), weights.size());
  EXPECT_EQ(manifest.files(2).checksum(),
            artifact::checksum(std::as_bytes(std::span(weights))));
}

TEST_F(ArtifactWriterTest, TheSameInputGivesTheSameBytes) {
  std::string first = writeArtifact("a.sandwich");
  std::string second = writeArtifact("b.sandwich");
  for (const char *name : {"manifest.pb", "weights.bin"})
    EXPECT_EQ(contents(first + "/" + name), contents(second + "/" + name));
}

/// Pieces that begin and end anywhere around the size of a write.
TEST_F(ArtifactWriterTest, KeepsTheOrderOfPieces) {
  constexpr size_t megabyte = size_t(1) << 20;
  std::vector<std::byte> expected = makeBytes(11 * megabyte, 5);
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->reserveWeights(100 * megabyte));
  ASSERT_TRUE(writer->beginTensor(makeTensor("w", 11 * megabyte / 2, 1)));
  size_t offset = 0;
  for (size_t length : {size_t(1), 2 * megabyte, 4 * megabyte - 1, size_t(0),
                        megabyte, 3 * megabyte, size_t(7)}) {
    ASSERT_TRUE(
        writer->appendWeights(std::span(expected).subspan(offset, length)));
    offset += length;
  }
  ASSERT_TRUE(writer->appendWeights(std::span(expected).subspan(offset)));
  ASSERT_TRUE(writer->copyFile("phases.so", TEST_PHASES));
  ASSERT_TRUE(writer->commit(makeManifest()));
  auto artifact = Artifact::open(path("a.sandwich"));
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_TRUE(artifact->verifyWeights());
  auto weights = artifact->loadWeights({.threads = 2});
  ASSERT_TRUE(weights);
  EXPECT_TRUE(std::ranges::equal(weights->bytes(), expected));
}

TEST_F(ArtifactWriterTest, AlignsTensors) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  EXPECT_EQ(*writer->beginTensor(makeTensor("a", 1, 1), 64), 0u);
  ASSERT_TRUE(writer->appendWeights(makeBytes(2, 0)));
  EXPECT_EQ(*writer->beginTensor(makeTensor("b", 1, 1), 64), 64u);
  ASSERT_TRUE(writer->appendWeights(makeBytes(2, 0)));
  EXPECT_EQ(*writer->beginTensor(makeTensor("c", 1, 1)), 4096u);
  ASSERT_TRUE(writer->appendWeights(makeBytes(2, 0)));
  EXPECT_EQ(*writer->beginTensor(makeTensor("d", 1, 1), 1 << 16), 65536u);
  for (uint64_t alignment : {0, 1, 63, 100})
    EXPECT_FALSE(writer->beginTensor(makeTensor("e", 1, 1), alignment));
}

TEST_F(ArtifactWriterTest, WritesTheShardsOfOtherRanksToNoTensor) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writeContents(*writer));
  EXPECT_EQ(writer->weightsBytes(), 16896u);
  ASSERT_TRUE(writer->skipTo(20000));
  ASSERT_TRUE(writer->appendWeights(makeBytes(500, 4)));
  ASSERT_TRUE(writer->skipTo(20500));
  Status status = writer->skipTo(20499);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            path("a.sandwich") +
                "/weights.bin: has 20500 bytes already, beyond 20499");
  ASSERT_TRUE(writer->commit(makeManifest()));
  auto artifact = Artifact::open(path("a.sandwich"));
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_EQ(artifact->weightsBytes(), 20500u);
  ASSERT_EQ(artifact->manifest().tensors_size(), 2);
  EXPECT_EQ(artifact->manifest().tensors(1).bytes(), 12800u);
  std::string weights = contents(path("a.sandwich/weights.bin"));
  EXPECT_EQ(weights.substr(16896, 20000 - 16896),
            std::string(20000 - 16896, '\0'));
  std::vector<std::byte> shard = makeBytes(500, 4);
  EXPECT_EQ(std::memcmp(weights.data() + 20000, shard.data(), 500), 0);
}

TEST_F(ArtifactWriterTest, LeavesNothingWithoutCommit) {
  {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writeContents(*writer));
    EXPECT_EQ(filesInFolder(), 1u);
  }
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(ArtifactWriterTest, AKilledWriterLeavesNothingThatLoads) {
  pid_t child = ::fork();
  if (child == 0) {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    if (writer && writeContents(*writer))
      ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(std::filesystem::exists(partial("a.sandwich", child)));
  EXPECT_FALSE(std::filesystem::exists(path("a.sandwich")));
  EXPECT_FALSE(Artifact::open(partial("a.sandwich", child)));
  // The next writer clears it away.
  writeArtifact("a.sandwich");
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(ArtifactWriterTest, RemovesOnlyStaleFolders) {
  pid_t dead = deadProcess();
  std::filesystem::create_directory(partial("a.sandwich", dead));
  overwrite(partial("a.sandwich", dead) + "/weights.bin", "x");
  // Left by an earlier process that had this one's number, as in containers.
  std::filesystem::create_directory(partial("a.sandwich"));
  // Of a living process, of another artifact, and not of a writer's making.
  std::filesystem::create_directory(partial("a.sandwich", ::getppid()));
  std::filesystem::create_directory(partial("b.sandwich", dead));
  std::filesystem::create_directory(path("a.sandwich.partial-x1"));
  std::filesystem::create_directory(path("a.sandwich.partial-"));
  writeArtifact("a.sandwich");
  EXPECT_FALSE(std::filesystem::exists(partial("a.sandwich", dead)));
  EXPECT_FALSE(std::filesystem::exists(partial("a.sandwich")));
  EXPECT_TRUE(std::filesystem::exists(partial("a.sandwich", ::getppid())));
  EXPECT_TRUE(std::filesystem::exists(partial("b.sandwich", dead)));
  EXPECT_EQ(filesInFolder(), 5u);
}

/// The process that made it is gone as far as this one can see, but the lock is
/// held: a writer in another container.
TEST_F(ArtifactWriterTest, KeepsALockedFolder) {
  std::string other = partial("a.sandwich", deadProcess());
  std::filesystem::create_directory(other);
  int descriptor = ::open(other.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  writeArtifact("a.sandwich");
  EXPECT_TRUE(std::filesystem::exists(other));
  ::close(descriptor);
}

TEST_F(ArtifactWriterTest, OneWriterAtATimeInAProcess) {
  auto first = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(first);
  EXPECT_EQ(createError(path("a.sandwich")),
            path("a.sandwich") + ": is being written by this process already");
  ASSERT_TRUE(writeContents(*first));
  EXPECT_TRUE(first->commit(makeManifest()));
}

TEST_F(ArtifactWriterTest, ReplacesAnArtifact) {
  std::string path = writeArtifact("a.sandwich");
  proto::Manifest manifest = makeManifest();
  manifest.mutable_model()->set_name("second");
  writeArtifact("a.sandwich", manifest);
  EXPECT_EQ(filesInFolder(), 1u);
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->manifest().model().name(), "second");
}

/// Whoever is interrupted while the old artifact is removed has the new one.
TEST_F(ArtifactWriterTest, TellsWhenTheArtifactIsInPlace) {
  for (const bool replaces : {false, true}) {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writeContents(*writer));
    proto::Manifest manifest = makeManifest();
    const std::string name = replaces ? "second" : "first";
    manifest.mutable_model()->set_name(name);
    int calls = 0;
    ASSERT_TRUE(writer->commit(manifest, [&] {
      ++calls;
      auto artifact = Artifact::open(path("a.sandwich"));
      ASSERT_TRUE(artifact);
      EXPECT_EQ(artifact->manifest().model().name(), name);
      EXPECT_EQ(std::filesystem::exists(partial("a.sandwich")), replaces);
    }));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(filesInFolder(), 1u);
  }
}

/// Times of both phases' smallest steps.
static proto::StepTimes makeTimes(double seconds) {
  proto::StepTimes times;
  for (auto *points : {times.mutable_prefill(), times.mutable_decode()}) {
    points->Add()->set_tokens(1);
    points->begin()->set_seconds(seconds);
  }
  return times;
}

TEST_F(ArtifactWriterTest, SetsStepTimesAndNothingElse) {
  const std::string name = writeArtifact("a.sandwich");
  const std::string weights = contents(name + "/weights.bin");
  for (double seconds : {0.5, 0.25}) {
    Status status = ArtifactWriter::setStepTimes(name, makeTimes(seconds));
    ASSERT_TRUE(status) << status.error().message;
    auto artifact = Artifact::open(name);
    ASSERT_TRUE(artifact) << artifact.error().message;
    EXPECT_EQ(artifact->manifest().step_times().decode(0).seconds(), seconds);
    EXPECT_EQ(artifact->manifest().tensors_size(), 2);
  }
  EXPECT_EQ(contents(name + "/weights.bin"), weights);
  EXPECT_EQ(filesInFolder(), 1u);
  // What would not load is not written.
  Status status = ArtifactWriter::setStepTimes(name, makeTimes(-1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            name + "/manifest.pb: step_times.prefill[0].seconds is -1; more "
                   "than 0 and at most 1e+06 seconds are accepted");
  EXPECT_TRUE(Artifact::open(name));
  EXPECT_EQ(filesInFolder(), 1u);
  EXPECT_FALSE(
      ArtifactWriter::setStepTimes(path("none.sandwich"), makeTimes(1)));
}

TEST_F(ArtifactWriterTest, ReplacesAnArtifactOfAnotherVersion) {
  std::filesystem::create_directory(path("a.sandwich"));
  proto::Envelope envelope;
  envelope.set_format_version(99);
  overwrite(path("a.sandwich/manifest.pb"), envelope.SerializeAsString());
  EXPECT_TRUE(Artifact::open(writeArtifact("a.sandwich")));
}

TEST_F(ArtifactWriterTest, AFailedWriterKeepsTheOldArtifact) {
  std::string path = writeArtifact("a.sandwich");
  {
    auto writer = ArtifactWriter::create(path);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writeContents(*writer));
    proto::Manifest manifest = makeManifest();
    manifest.mutable_model()->set_layers(0);
    Status status = writer->commit(manifest);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message,
              path + "/manifest.pb: model.layers is 0; 1 to 4096 is accepted");
  }
  EXPECT_EQ(filesInFolder(), 1u);
  EXPECT_TRUE(Artifact::open(path));
}

TEST_F(ArtifactWriterTest, ReplacesNothingElse) {
  auto refusal = [](const std::string &path) {
    return path +
           ": exists and is not a Sandwich artifact, or holds other files as "
           "well; remove it or write to another place";
  };
  overwrite(path("file"), "text");
  EXPECT_EQ(createError(path("file")), refusal(path("file")));
  std::filesystem::create_directory(path("empty"));
  EXPECT_EQ(createError(path("empty")), refusal(path("empty")));
  std::filesystem::create_directory(path("other"));
  overwrite(path("other/manifest.pb"), "of something else");
  EXPECT_EQ(createError(path("other")), refusal(path("other")));
  // Somebody's data within an artifact is not ours to remove.
  std::string annotated = writeArtifact("annotated");
  overwrite(annotated + "/README.md", "text");
  EXPECT_EQ(createError(annotated), refusal(annotated));
  EXPECT_EQ(contents(annotated + "/README.md"), "text");
  std::string nested = writeArtifact("nested");
  std::filesystem::create_directory(nested + "/data");
  EXPECT_EQ(createError(nested), refusal(nested));
  std::filesystem::create_symlink(path("absent"), path("link"));
  EXPECT_EQ(createError(path("link")), refusal(path("link")));
  EXPECT_EQ(contents(path("file")), "text");
  EXPECT_EQ(contents(path("other/manifest.pb")), "of something else");
}

TEST_F(ArtifactWriterTest, ReplacesNothingThatAppearsMeanwhile) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writeContents(*writer));
  overwrite(path("a.sandwich"), "text");
  EXPECT_FALSE(writer->commit(makeManifest()));
  EXPECT_EQ(contents(path("a.sandwich")), "text");
}

TEST_F(ArtifactWriterTest, AcceptsTheWaysToWriteAPath) {
  writeArtifact("a.sandwich/");
  EXPECT_TRUE(Artifact::open(path("a.sandwich")));
  writeArtifact("a.sandwich//");
  EXPECT_EQ(filesInFolder(), 1u);
  for (const std::string &bad :
       {std::string(), std::string("."), std::string(".."), std::string("/"),
        path("..")})
    EXPECT_NE(createError(bad).find("is not a path an artifact can be written"),
              std::string::npos)
        << bad;
}

TEST_F(ArtifactWriterTest, NamesAFolderThatCannotBeWritten) {
  EXPECT_EQ(createError(path("absent/a.sandwich")),
            path("absent/a.sandwich") +
                ": cannot create: No such file or directory");
  overwrite(path("file"), "text");
  EXPECT_EQ(createError(path("file/a.sandwich")),
            path("file/a.sandwich") + ": cannot create: Not a directory");
  // Not even root creates folders there.
  std::string unwritable = "/proc/self/a.sandwich";
  EXPECT_EQ(createError(unwritable),
            unwritable + ": cannot create: No such file or directory");
}

TEST_F(ArtifactWriterTest, NamesAFolderWithoutPermission) {
  ASSERT_EQ(::chmod(folder.c_str(), 0555), 0);
  {
    WithoutPrivileges user;
    if (!user)
      GTEST_SKIP() << "cannot become another user";
    EXPECT_EQ(createError(path("a.sandwich")),
              path("a.sandwich") + ": cannot create: Permission denied");
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
}

/// A limit on the size of files fails in the same calls as a full disk.
class FullDiskTest : public ArtifactWriterTest {
protected:
  void SetUp() override {
    ArtifactWriterTest::SetUp();
    previousHandler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &previous), 0);
    struct rlimit limit = previous;
    limit.rlim_cur = size_t(3) << 20;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  void TearDown() override {
    ::setrlimit(RLIMIT_FSIZE, &previous);
    std::signal(SIGXFSZ, previousHandler);
    ArtifactWriterTest::TearDown();
  }

  struct rlimit previous;
  void (*previousHandler)(int) = nullptr;
};

TEST_F(FullDiskTest, NamesTheFileAndLeavesNothing) {
  std::string expected =
      path("a.sandwich") + "/weights.bin: cannot write: File too large";
  {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->beginTensor(makeTensor("w", 1, 1)));
    Status status = writer->appendWeights(makeBytes(size_t(8) << 20, 0));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, expected);
  }
  {
    // Pieces that are still in the buffer fail at the commit at the latest.
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->beginTensor(makeTensor("w", 1, 1)));
    ASSERT_TRUE(writer->appendWeights(makeBytes((size_t(7) << 20) / 2, 0)));
    Status status = writer->commit(makeManifest());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, expected);
  }
  {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    Status status = writer->reserveWeights(size_t(4) << 20);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, expected);
  }
  {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    ASSERT_TRUE(writer);
    Status status = writer->addFile("phases.so", makeBytes(size_t(8) << 20, 0));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message,
              path("a.sandwich") + "/phases.so: cannot write: File too large");
  }
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(ArtifactWriterTest, RefusesBadNamesOfFiles) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  for (const char *name :
       {"", ".", "..", "../x", "a/b", "weights.bin", "manifest.pb"}) {
    Status status = writer->addFile(name, "text");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message,
              std::string("\"") + name +
                  "\" is not a name for a file of an artifact");
  }
  ASSERT_TRUE(writer->addFile("tokenizer.json", "text"));
  EXPECT_FALSE(writer->addFile("tokenizer.json", "text"));
}

TEST_F(ArtifactWriterTest, RefusesAnArtifactWithoutItsParts) {
  auto commitError = [&](auto write) {
    auto writer = ArtifactWriter::create(path("a.sandwich"));
    EXPECT_TRUE(writer);
    write(*writer);
    Status status = writer->commit(makeManifest());
    return status ? "" : status.error().message;
  };
  std::string manifest = path("a.sandwich") + "/manifest.pb: ";
  EXPECT_EQ(commitError([](ArtifactWriter &) {}),
            manifest + "files[0].bytes is 0; 1 to 17592186044416 is accepted");
  EXPECT_EQ(commitError([](ArtifactWriter &writer) {
              EXPECT_TRUE(writer.beginTensor(makeTensor("w", 1, 1)));
              EXPECT_TRUE(writer.appendWeights(makeBytes(2, 0)));
            }),
            manifest + "files has no \"phases.so\"");
  EXPECT_EQ(commitError([](ArtifactWriter &writer) {
              EXPECT_TRUE(writer.beginTensor(makeTensor("w", 1, 1)));
              EXPECT_TRUE(writer.appendWeights(makeBytes(1, 0)));
              EXPECT_TRUE(writer.addFile("phases.so", "code"));
            }),
            manifest + "tensors[0].bytes is 1, too few for its shape of bf16");
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(ArtifactWriterTest, RefusesWeightsBeforeATensor) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  Status status = writer->appendWeights(makeBytes(2, 0));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            path("a.sandwich") +
                "/weights.bin: has bytes before the first tensor");
}

TEST_F(ArtifactWriterTest, NamesASourceThatCannotBeCopied) {
  auto writer = ArtifactWriter::create(path("a.sandwich"));
  ASSERT_TRUE(writer);
  Status status = writer->copyFile("tokenizer.json", path("absent"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            path("absent") + ": cannot open: No such file or directory");
}

} // namespace
