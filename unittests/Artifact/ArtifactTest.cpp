//===- ArtifactTest.cpp - Reading a compiled model ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/Artifact.h"

#include "TestArtifact.h"
#include "sandwich/Artifact/ArtifactJson.h"

#include <algorithm>
#include <functional>
#include <sys/stat.h>

using namespace sandwich;

namespace {

class ArtifactTest : public TemporaryFolderTest {
protected:
  /// What opening `path` says, without its folder; empty when it opens.
  std::string openError(const std::string &path) {
    auto opened = Artifact::open(path);
    if (opened)
      return "";
    const std::string &message = opened.error().message;
    EXPECT_TRUE(message.starts_with(path)) << message;
    return message.substr(std::min(message.size(), path.size()));
  }

  /// Replaces the manifest of `artifact` by one with a right checksum that the
  /// writer would not write.
  void spoilManifest(const std::string &artifact,
                     const std::function<void(proto::Manifest &)> &spoil) {
    proto::Envelope envelope;
    ASSERT_TRUE(envelope.ParseFromString(contents(artifact + "/manifest.pb")));
    proto::Manifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(envelope.manifest()));
    spoil(manifest);
    envelope.set_manifest(manifest.SerializeAsString());
    envelope.set_checksum(
        artifact::checksum(std::as_bytes(std::span(envelope.manifest()))));
    overwrite(artifact + "/manifest.pb", envelope.SerializeAsString());
  }
};

TEST_F(ArtifactTest, HoldsWhatWasWritten) {
  std::string path = writeArtifact("a.sandwich");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_EQ(artifact->path(), path);
  EXPECT_EQ(artifact->manifest().model().name(), "tiny");
  EXPECT_EQ(artifact->prefill().symbol(), "test_prefill");
  EXPECT_EQ(artifact->decode().symbol(), "test_decode");
  EXPECT_EQ(artifact->file("tokenizer.json"), "{\"a\": 1}");
  EXPECT_EQ(artifact->file("tokenizer_config.json"), std::nullopt);
  EXPECT_EQ(artifact->weightsBytes(), 4096u + 12800);
  const proto::Tensor &head = artifact->manifest().tensors(1);
  EXPECT_EQ(head.offset(), 4096u);
  EXPECT_EQ(head.bytes(), 12800u);
  EXPECT_TRUE(artifact->verifyWeights());

  for (auto placement : {WeightPlacement::Mapped, WeightPlacement::HugePages}) {
    auto weights = artifact->loadWeights({.placement = placement});
    ASSERT_TRUE(weights) << weights.error().message;
    auto bytes = weights->bytes().subspan(head.offset());
    EXPECT_TRUE(std::ranges::equal(bytes.first(12000), makeBytes(12000, 2)));
    EXPECT_TRUE(std::ranges::equal(bytes.subspan(12000), makeBytes(800, 3)));
  }
}

TEST_F(ArtifactTest, PrintsAsJson) {
  std::string path = writeArtifact("a.sandwich");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  Json json = toJson(*artifact);
  EXPECT_EQ(json["path"], path);
  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["files"].size(), 3u);
  EXPECT_TRUE(parseJson(json.dump()));
}

TEST_F(ArtifactTest, RunsItsPhases) {
  auto artifact = Artifact::open(writeArtifact("a.sandwich"));
  ASSERT_TRUE(artifact);
  auto library = artifact->loadPhases();
  ASSERT_TRUE(library) << library.error().message;
  float logits[2] = {};
  SandwichStep step = {};
  step.logits = logits;
  library->find("prefill")(&step, 0);
  library->find("decode")(&step, 1);
  EXPECT_EQ(logits[0], 1.0f);
  EXPECT_EQ(logits[1], 2.0f);
}

/// An artifact in use keeps its files when it is compiled again, and the new
/// code is not taken for the old.
TEST_F(ArtifactTest, SurvivesItsReplacement) {
  auto before = Artifact::open(writeArtifact("a.sandwich"));
  ASSERT_TRUE(before);
  auto libraryBefore = before->loadPhases();
  ASSERT_TRUE(libraryBefore);
  proto::Manifest manifest = makeManifest();
  manifest.mutable_phases(0)->set_symbol("test_decode");
  auto after = Artifact::open(writeArtifact("a.sandwich", manifest));
  ASSERT_TRUE(after);
  auto libraryAfter = after->loadPhases();
  ASSERT_TRUE(libraryAfter);
  EXPECT_NE(libraryBefore->find("decode"), libraryAfter->find("decode"));
  EXPECT_TRUE(before->verifyWeights());
  float logits[1] = {};
  SandwichStep step = {};
  step.logits = logits;
  libraryBefore->find("prefill")(&step, 0);
  EXPECT_EQ(logits[0], 1.0f);
  libraryAfter->find("prefill")(&step, 0);
  EXPECT_EQ(logits[0], 2.0f);
}

TEST_F(ArtifactTest, NamesAMissingFunction) {
  proto::Manifest manifest = makeManifest();
  manifest.mutable_phases(1)->set_symbol("absent");
  std::string path = writeArtifact("a.sandwich", manifest);
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  auto library = artifact->loadPhases();
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message,
            path + "/phases.so: has no function \"absent\", which the manifest "
                   "names for decode");
}

TEST_F(ArtifactTest, RefusesAManifestThatContradictsTheCode) {
  using proto::Manifest;
  struct {
    const char *expected;
    std::function<void(Manifest &)> spoil;
  } const cases[] = {
      {"threads is 3 in manifest.pb, but the code of prefill was compiled for "
       "2; compile the model again",
       [](Manifest &m) { m.mutable_phases(0)->set_threads(3); }},
      {"threads is 1 in manifest.pb, but the code of decode was",
       [](Manifest &m) { m.mutable_phases(1)->set_threads(1); }},
      {"max_tokens is 64 ",
       [](Manifest &m) { m.mutable_phases(0)->set_max_tokens(64); }},
      {"max_logit_rows is 16 ",
       [](Manifest &m) { m.mutable_phases(0)->set_max_logit_rows(16); }},
      {"workspace_bytes is 0 ",
       [](Manifest &m) { m.mutable_phases(0)->set_workspace_bytes(0); }},
      {"kv_cache.block_bytes is 2048 ",
       [](Manifest &m) {
         m.mutable_model()->set_layers(1);
         m.mutable_kv_cache()->set_block_bytes(2048);
       }},
      {"kv_cache.dtype (as SandwichElementType) is 3 ",
       [](Manifest &m) { m.mutable_kv_cache()->set_dtype("f16"); }},
      {"model.vocab_size is 50 ",
       [](Manifest &m) { m.mutable_model()->set_vocab_size(50); }},
      {"the end of the last of tensors is 128 in",
       [](Manifest &m) { m.mutable_tensors()->RemoveLast(); }},
      {"the number of operations is 2 in manifest.pb, but the code of prefill "
       "was compiled for 1;",
       [](Manifest &m) {
         m.mutable_phases(0)->add_operations()->set_name("a");
       }},
  };
  std::string path = writeArtifact("a.sandwich");
  std::string good = contents(path + "/manifest.pb");
  for (const auto &each : cases) {
    overwrite(path + "/manifest.pb", good);
    spoilManifest(path, each.spoil);
    auto artifact = Artifact::open(path);
    ASSERT_TRUE(artifact) << artifact.error().message;
    auto library = artifact->loadPhases();
    ASSERT_FALSE(library) << each.expected;
    EXPECT_TRUE(library.error().message.starts_with(
        path + "/phases.so: " + each.expected))
        << library.error().message;
  }
}

TEST_F(ArtifactTest, RefusesAManifestForMoreRanksThanTheCode) {
  std::string path = writeArtifact("a.sandwich");
  constexpr uint64_t region = uint64_t(2) << 20;
  std::filesystem::resize_file(path + "/weights.bin", 3 * region);
  spoilManifest(path, [](proto::Manifest &m) {
    m.set_ranks(2);
    m.set_common_weight_bytes(region);
    m.set_shard_bytes(region);
    for (proto::File &file : *m.mutable_files())
      if (file.name() == "weights.bin")
        file.set_bytes(3 * region);
  });
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  auto library = artifact->loadPhases();
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message,
            path + "/phases.so: ranks is 2 in manifest.pb, but the code of "
                   "prefill was compiled for 1; compile the model again");
}

TEST_F(ArtifactTest, RefusesAFunctionWithoutAPlan) {
  proto::Manifest manifest = makeManifest();
  manifest.mutable_phases(0)->set_symbol("test_planless");
  std::string path = writeArtifact("a.sandwich", manifest);
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  auto library = artifact->loadPhases();
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message, path + "/phases.so: has no plan of "
                                            "\"test_planless\"; compile the "
                                            "model again");
}

TEST_F(ArtifactTest, LoadsWhatDrawsTokens) {
  auto plain = Artifact::open(writeArtifact("plain.sandwich"));
  ASSERT_TRUE(plain);
  auto library = plain->loadPhases();
  ASSERT_TRUE(library);
  EXPECT_EQ(library->sampling(), nullptr);

  proto::Manifest manifest = makeManifest();
  manifest.set_sampling_symbol("test_sampling");
  auto artifact = Artifact::open(writeArtifact("a.sandwich", manifest));
  ASSERT_TRUE(artifact) << artifact.error().message;
  library = artifact->loadPhases();
  ASSERT_TRUE(library) << library.error().message;
  ASSERT_NE(library->sampling(), nullptr);
  int32_t token = -1;
  const SandwichSampling sampling = {.token = &token};
  library->sampling()(&sampling);
  EXPECT_EQ(token, 3);
}

TEST_F(ArtifactTest, RefusesToDrawTokensOfAnotherVocabulary) {
  auto errorOf = [&](const char *symbol) {
    proto::Manifest manifest = makeManifest();
    manifest.set_sampling_symbol(symbol);
    const std::string path =
        writeArtifact(std::string(symbol) + ".sandwich", manifest);
    auto artifact = Artifact::open(path);
    EXPECT_TRUE(artifact);
    auto library = artifact->loadPhases();
    EXPECT_FALSE(library);
    return library ? std::string()
                   : library.error().message.substr(path.size());
  };
  EXPECT_EQ(
      errorOf("test_other_sampling"),
      "/phases.so: model.vocab_size is 100 in manifest.pb, but "
      "test_other_sampling was compiled for 101; compile the model again");
  EXPECT_EQ(errorOf("test_decode"),
            "/phases.so: test_decode does not draw tokens; compile the model "
            "again");
  EXPECT_EQ(errorOf("test_absent"),
            "/phases.so: has no function \"test_absent\", which the manifest "
            "names for sampling");
  EXPECT_EQ(errorOf("test_planless"),
            "/phases.so: has no plan of \"test_planless\"; compile the model "
            "again");
}

TEST_F(ArtifactTest, RefusesWhatAWriterLeft) {
  std::string path = writeArtifact("a.sandwich");
  std::string partial = path + ".partial-123";
  std::filesystem::rename(path, partial);
  for (const char *slash : {"", "/", "//"})
    EXPECT_EQ(openError(partial + slash),
              std::string(": is what an interrupted compilation left, or one "
                          "that is under way; compile the model again"));
  // These are not what a writer calls its folder.
  for (const char *name : {"a.partial-", "a.partial-1x", "partial-1"}) {
    std::filesystem::rename(partial, this->path(name));
    EXPECT_TRUE(Artifact::open(this->path(name)));
    std::filesystem::rename(this->path(name), partial);
  }
}

TEST_F(ArtifactTest, NamesMachineCodeThatDoesNotLoad) {
  std::string path = writeArtifact("a.sandwich");
  overwrite(path + "/phases.so", "no machine code");
  spoilManifest(path, [](proto::Manifest &manifest) {
    for (proto::File &file : *manifest.mutable_files())
      if (file.name() == "phases.so") {
        file.set_bytes(15);
        file.set_checksum(artifact::checksum(
            std::as_bytes(std::span("no machine code", 15))));
      }
  });
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  auto library = artifact->loadPhases();
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message, path + "/phases.so: is no shared object");
}

/// Its constructor ends the process that lets it run.
TEST_F(ArtifactTest, RunsNoConstructor) {
  std::string path = writeArtifact("a.sandwich");
  std::string code = contents(std::string(TEST_OBJECTS) + "/CONSTRUCTOR.so");
  overwrite(path + "/phases.so", code);
  spoilManifest(path, [&](proto::Manifest &manifest) {
    for (proto::File &file : *manifest.mutable_files())
      if (file.name() == "phases.so") {
        file.set_bytes(code.size());
        file.set_checksum(artifact::checksum(std::as_bytes(std::span(code))));
      }
  });
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  auto library = artifact->loadPhases();
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().message,
            path + "/phases.so: has DT_INIT_ARRAY: its own code would run as "
                   "it is loaded or unloaded, which compiled phases never ask "
                   "for");
}

/// What is loaded is what was checked, though the file is another by then.
TEST_F(ArtifactTest, LoadsTheBytesThatItChecked) {
  std::string path = writeArtifact("a.sandwich");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  overwrite(path + "/phases.so",
            contents(std::string(TEST_OBJECTS) + "/CONSTRUCTOR.so"));
  auto library = artifact->loadPhases();
  ASSERT_TRUE(library) << library.error().message;
  float logits[1] = {};
  SandwichStep step = {};
  step.logits = logits;
  library->find("prefill")(&step, 0);
  EXPECT_EQ(logits[0], 1.0f);
}

TEST_F(ArtifactTest, RefusesToRunWhatOthersMayWrite) {
  namespace fs = std::filesystem;
  std::string path = writeArtifact("a.sandwich");
  for (const char *name :
       {"", "/manifest.pb", "/phases.so", "/weights.bin", "/tokenizer.json"})
    for (fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
      fs::permissions(path + name, others, fs::perm_options::add);
      EXPECT_EQ(openError(path),
                std::string(name) +
                    ": others may write to it, and an artifact is a program; "
                    "'chmod -R go-w' on the artifact keeps them from it");
      EXPECT_TRUE(Artifact::open(path, {std::nullopt}));
      fs::permissions(path + name, others, fs::perm_options::remove);
      EXPECT_EQ(openError(path), "");
    }
}

TEST_F(ArtifactTest, RefusesToRunWhatIsSomebodyElses) {
  std::string path = writeArtifact("a.sandwich");
  const std::string file = path + "/phases.so";
  constexpr uid_t somebody = 12345;
  if (::chown(file.c_str(), somebody, -1) != 0)
    GTEST_SKIP() << "cannot give files away";
  EXPECT_EQ(openError(path),
            "/phases.so: belongs to user 12345, and an artifact is a program; "
            "if you trust that user, make a copy of your own with 'cp -r'");
  EXPECT_TRUE(Artifact::open(path, {std::nullopt}));
}

/// Whatever the user lets others do to new files.
TEST_F(ArtifactTest, IsWrittenForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  std::string path = writeArtifact("a.sandwich");
  ::umask(before);
  EXPECT_EQ(openError(path), "");
}

TEST_F(ArtifactTest, RefusesWhatIsNoArtifact) {
  EXPECT_EQ(openError(path("absent")),
            ": cannot open: No such file or directory");
  overwrite(path("file"), "text");
  EXPECT_EQ(openError(path("file")), ": is not a folder; an artifact is one");
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(openError(path("folder")),
            "/manifest.pb: is absent: the folder is no Sandwich artifact, or "
            "only part of one");
  overwrite(path("folder/manifest.pb"), "text");
  EXPECT_EQ(openError(path("folder")),
            "/manifest.pb: is not the manifest of a Sandwich artifact");
  overwrite(path("folder/manifest.pb"), "");
  EXPECT_EQ(openError(path("folder")),
            "/manifest.pb: is not the manifest of a Sandwich artifact");
}

TEST_F(ArtifactTest, RefusesOtherVersions) {
  std::string path = writeArtifact("a.sandwich");
  proto::Envelope envelope;
  ASSERT_TRUE(envelope.ParseFromString(contents(path + "/manifest.pb")));
  envelope.set_format_version(2);
  overwrite(path + "/manifest.pb", envelope.SerializeAsString());
  EXPECT_EQ(openError(path),
            "/manifest.pb: has format version 2, and this version of Sandwich "
            "reads version 1; compile the model again");
}

TEST_F(ArtifactTest, RefusesAHugeManifest) {
  std::string path = writeArtifact("a.sandwich");
  std::filesystem::resize_file(path + "/manifest.pb", uint64_t(1) << 40);
  EXPECT_EQ(openError(path), "/manifest.pb: is 1099511627776 bytes long; at "
                             "most 4194304 are accepted");
}

TEST_F(ArtifactTest, RefusesAWrongChecksumOfTheManifest) {
  std::string path = writeArtifact("a.sandwich");
  std::string bytes = contents(path + "/manifest.pb");
  bytes.back() ^= 1;
  overwrite(path + "/manifest.pb", bytes);
  EXPECT_EQ(openError(path),
            "/manifest.pb: has a wrong checksum: the file was cut or changed; "
            "compile the model again");
}

TEST_F(ArtifactTest, RefusesAWrongChecksumOfEachFile) {
  for (const char *name : {"phases.so", "tokenizer.json"}) {
    std::string path = writeArtifact("a.sandwich");
    std::string bytes = contents(path + "/" + name);
    bytes[bytes.size() / 2] ^= 1;
    overwrite(path + "/" + name, bytes);
    EXPECT_EQ(openError(path), std::string("/") + name +
                                   ": has a wrong checksum: the file was "
                                   "changed; compile the model again");
  }
}

TEST_F(ArtifactTest, FindsChangedWeightsWhenAsked) {
  std::string path = writeArtifact("a.sandwich");
  std::string bytes = contents(path + "/weights.bin");
  bytes[5000] ^= 1;
  overwrite(path + "/weights.bin", bytes);
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  uint64_t last = 0;
  Status status = artifact->verifyWeights([&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, bytes.size());
    last = done;
  });
  EXPECT_EQ(last, bytes.size());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            path + "/weights.bin: has a wrong checksum: the file was changed; "
                   "compile the model again");
}

TEST_F(ArtifactTest, RefusesCutAndExtendedFiles) {
  for (const char *name : {"phases.so", "tokenizer.json", "weights.bin"}) {
    std::string path = writeArtifact("a.sandwich");
    std::string file = path + "/" + name;
    uint64_t size = std::filesystem::file_size(file);
    auto expected = [&](uint64_t changed, const char *what) {
      return std::string("/") + name + ": is " + std::to_string(changed) +
             " bytes long instead of " + std::to_string(size) +
             ": the file was " + what + "; compile the model again";
    };
    std::filesystem::resize_file(file, size - 1);
    EXPECT_EQ(openError(path), expected(size - 1, "cut"));
    std::filesystem::resize_file(file, 0);
    EXPECT_EQ(openError(path), expected(0, "cut"));
    std::filesystem::resize_file(file, size + 1);
    EXPECT_EQ(openError(path), expected(size + 1, "extended"));
  }
}

TEST_F(ArtifactTest, NamesWeightsThatAreCutAfterOpening) {
  std::string path = writeArtifact("a.sandwich");
  auto artifact = Artifact::open(path);
  ASSERT_TRUE(artifact);
  std::filesystem::resize_file(path + "/weights.bin", 5000);
  auto weights = artifact->loadWeights({});
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().message,
            path + "/weights.bin: is 5000 bytes long, less than the 16896 "
                   "bytes of the weights");
  Status status = artifact->verifyWeights();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            path + "/weights.bin: was cut while it was read");
}

TEST_F(ArtifactTest, RefusesMissingFiles) {
  for (const char *name : {"phases.so", "tokenizer.json", "weights.bin"}) {
    std::string path = writeArtifact("a.sandwich");
    std::filesystem::remove(path + "/" + name);
    EXPECT_EQ(openError(path), std::string("/") + name +
                                   ": cannot open: No such file or directory");
  }
}

TEST_F(ArtifactTest, RefusesWhatIsNoRegularFile) {
  std::string path = writeArtifact("a.sandwich");
  std::string file = path + "/tokenizer.json";
  std::filesystem::remove(file);
  // A pipe without a writer must not make the reader wait.
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(openError(path), "/tokenizer.json: is not a regular file");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ(openError(path), "/tokenizer.json: is not a regular file");
}

TEST_F(ArtifactTest, RefusesUnreadableFiles) {
  std::string path = writeArtifact("a.sandwich");
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((path + "/weights.bin").c_str(), 0), 0);
  WithoutPrivileges user;
  if (!user)
    GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(openError(path), "/weights.bin: cannot open: Permission denied");
}

TEST_F(ArtifactTest, RefusesAbsurdManifests) {
  std::string path = writeArtifact("a.sandwich");
  spoilManifest(path, [](proto::Manifest &manifest) {
    manifest.mutable_phases(0)->set_workspace_bytes(uint64_t(1) << 50);
  });
  EXPECT_EQ(openError(path),
            "/manifest.pb: phases[0].workspace_bytes is 1125899906842624; 0 to "
            "68719476736 is accepted");
  path = writeArtifact("a.sandwich");
  spoilManifest(path, [](proto::Manifest &manifest) {
    manifest.mutable_files(1)->set_name("../a.sandwich/tokenizer.json");
  });
  EXPECT_EQ(openError(path),
            "/manifest.pb: files[1].name is \"../a.sandwich/tokenizer.json\"; "
            "artifacts have no such file");
}

TEST_F(ArtifactTest, RefusesAnotherCpu) {
  if (hostArchitecture != CpuArchitecture::X86_64)
    GTEST_SKIP() << "the features are of x86-64";
  proto::Manifest manifest = makeManifest();
  manifest.mutable_target()->set_name("x86-64-amx");
  manifest.mutable_target()->add_cpu_features("avx2");
  manifest.mutable_target()->add_cpu_features("amx-bf16");
  std::string path = writeArtifact("a.sandwich", manifest);
  auto refused = Artifact::open(path, {CpuFeatures{CpuFeature::AVX2}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            path + ": this artifact, made for x86-64-amx, needs amx-bf16, "
                   "which this CPU does not have; compile it again with "
                   "--target=host");
  EXPECT_TRUE(Artifact::open(
      path, {CpuFeatures{CpuFeature::AVX2, CpuFeature::AMX_BF16}}));
  EXPECT_TRUE(Artifact::open(path, {std::nullopt}));
}

} // namespace
