//===- TestArtifact.h - A small artifact to spoil ---------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_ARTIFACT_TESTARTIFACT_H
#define SANDWICH_UNITTESTS_ARTIFACT_TESTARTIFACT_H

#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Support/File.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace sandwich {

/// A manifest as the compiler fills it in: valid but for what the writer adds.
inline proto::Manifest makeManifest() {
  proto::Manifest manifest;
  proto::ModelConfiguration &model = *manifest.mutable_model();
  model.set_name("tiny");
  model.set_architecture("LlamaForCausalLM");
  model.set_hidden_size(64);
  model.set_intermediate_size(128);
  model.set_layers(2);
  model.set_heads(4);
  model.set_kv_heads(2);
  model.set_head_dim(16);
  model.set_vocab_size(100);
  model.set_context_length(128);
  model.add_eos_token_ids(2);
  model.set_bos_token_id(1);
  model.set_parameters(12345);
  proto::Target &target = *manifest.mutable_target();
  target.set_name("x86-64-test");
  target.set_dtype("bf16");
  target.set_phase_abi_version(SANDWICH_PHASE_ABI_VERSION);
  for (const char *name : {"prefill", "decode"}) {
    proto::Phase &phase = *manifest.add_phases();
    phase.set_name(name);
    phase.set_symbol(std::string("test_") + name);
    phase.set_threads(2);
    phase.set_max_tokens(32);
    phase.set_max_logit_rows(32);
    phase.set_workspace_bytes(4096);
    proto::Schedule &schedule = *phase.add_schedules();
    schedule.set_matmul("head");
    schedule.set_rows_from(1);
    schedule.set_rows_to(16);
    schedule.set_text("#gemm.schedule<>");
    phase.add_operations()->set_name("matmul head 100x64");
  }
  proto::KVCache &cache = *manifest.mutable_kv_cache();
  cache.set_block_tokens(SANDWICH_KV_BLOCK_TOKENS);
  cache.set_block_bytes(2 * 2 * 16 * 2 * 16 * 2);
  cache.set_dtype("bf16");
  return manifest;
}

/// A bf16 matrix of [`rows`, `columns`] for `ArtifactWriter::beginTensor`.
inline proto::Tensor makeTensor(const std::string &name, uint64_t rows,
                                uint64_t columns) {
  proto::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype("bf16");
  tensor.add_shape(rows);
  tensor.add_shape(columns);
  tensor.set_layout("row-major");
  tensor.add_sources("model." + name + ".weight");
  return tensor;
}

/// `size` bytes that differ from their neighbours.
inline std::vector<std::byte> makeBytes(size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 131 + (i >> 8) + seed) & 0xff);
  return bytes;
}

/// Takes root's privileges from the process, as root reads and writes
/// everything, until it is destroyed.
class WithoutPrivileges {
public:
  WithoutPrivileges() {
    constexpr uid_t nobody = 65534;
    if (wasRoot)
      works = ::seteuid(nobody) == 0;
  }
  ~WithoutPrivileges() {
    if (wasRoot && works && ::seteuid(0) != 0)
      std::abort();
  }
  explicit operator bool() const { return works; }

private:
  bool wasRoot = ::geteuid() == 0;
  bool works = true;
};

/// A folder of the test's own, gone afterwards.
class TemporaryFolderTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        std::filesystem::temp_directory_path() / "sandwich-artifact-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const { return folder / name; }

  size_t filesInFolder() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }

  static std::string contents(const std::string &path) {
    auto text = readTextFile(path, size_t(1) << 30);
    EXPECT_TRUE(text) << text.error().message;
    return text ? *text : "";
  }

  static void overwrite(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  /// Everything of an artifact but the commit: tensors "embed" of 128 bytes and
  /// "head" of 12800, machine code and a tokenizer.
  static Status writeContents(ArtifactWriter &writer) {
    auto embed = writer.beginTensor(makeTensor("embed", 4, 16));
    if (!embed)
      return embed.error();
    SANDWICH_RETURN_IF_ERROR(writer.appendWeights(makeBytes(128, 1)));
    auto head = writer.beginTensor(makeTensor("head", 100, 64));
    if (!head)
      return head.error();
    SANDWICH_RETURN_IF_ERROR(writer.appendWeights(makeBytes(12000, 2)));
    SANDWICH_RETURN_IF_ERROR(writer.appendWeights(makeBytes(800, 3)));
    SANDWICH_RETURN_IF_ERROR(writer.copyFile("phases.so", TEST_PHASES));
    return writer.addFile("tokenizer.json", "{\"a\": 1}");
  }

  /// Writes a whole artifact and returns its path.
  std::string writeArtifact(const std::string &name,
                            const proto::Manifest &manifest = makeManifest()) {
    auto writer = ArtifactWriter::create(path(name));
    EXPECT_TRUE(writer) << writer.error().message;
    if (!writer)
      return "";
    Status status = writeContents(*writer);
    EXPECT_TRUE(status) << status.error().message;
    status = writer->commit(manifest);
    EXPECT_TRUE(status) << status.error().message;
    return path(name);
  }

  std::filesystem::path folder;
};

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_ARTIFACT_TESTARTIFACT_H
