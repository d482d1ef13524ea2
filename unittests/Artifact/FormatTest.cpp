//===- FormatTest.cpp - The artifact's names, limits and manifest ---------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/Format.h"

#include "TestArtifact.h"
#include "sandwich/Artifact/ArtifactJson.h"
#include "sandwich/Support/ModelLimits.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace sandwich;
using namespace sandwich::artifact;

namespace {

/// A manifest that loads.
proto::Manifest makeWholeManifest() {
  proto::Manifest manifest = makeManifest();
  manifest.set_sandwich_version("0.1.0");
  *manifest.add_tensors() = makeTensor("embed", 4, 16);
  manifest.mutable_tensors(0)->set_bytes(128);
  *manifest.add_tensors() = makeTensor("head", 100, 64);
  manifest.mutable_tensors(1)->set_offset(128);
  manifest.mutable_tensors(1)->set_bytes(12800);
  auto addFile = [&](const char *name, uint64_t bytes) {
    proto::File &file = *manifest.add_files();
    file.set_name(name);
    file.set_bytes(bytes);
    file.set_checksum(0x0123456789abcdef);
  };
  addFile("phases.so", 1000);
  addFile("weights.bin", 12928);
  addFile("tokenizer.json", 10);
  return manifest;
}

/// What `validateManifest` says after `spoil`.
std::string errorAfter(const std::function<void(proto::Manifest &)> &spoil) {
  proto::Manifest manifest = makeWholeManifest();
  spoil(manifest);
  Status status = validateManifest(manifest);
  return status ? "" : status.error().message;
}

constexpr uint64_t huge = std::numeric_limits<uint64_t>::max();

TEST(Format, AcceptsAWholeManifest) {
  EXPECT_EQ(errorAfter([](proto::Manifest &) {}), "");
}

TEST(Format, BytesComeBack) {
  proto::Manifest manifest = makeWholeManifest();
  auto bytes = serializeManifest(manifest);
  ASSERT_TRUE(bytes);
  auto parsed = parseManifest(*bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->SerializeAsString(), manifest.SerializeAsString());
}

TEST(Format, ChecksumIsXXH3) {
  // XXH3_64bits of no bytes, from the algorithm's specification.
  EXPECT_EQ(checksum({}), 0x2d06800538d394c2u);
}

TEST(Format, RefusesOtherVersions) {
  proto::Envelope envelope;
  envelope.set_format_version(7);
  envelope.set_manifest("of another shape");
  auto parsed = parseManifest(envelope.SerializeAsString());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "has format version 7, and this version of Sandwich reads version "
            "1; compile the model again");
}

TEST(Format, RefusesWhatIsNoManifest) {
  for (const std::string &bytes :
       {std::string(), std::string("not a manifest"), std::string(1000, '\0'),
        std::string(1000, '\x0b'), std::string("\x12\x02hi", 4)}) {
    auto parsed = parseManifest(bytes);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().message,
              "is not the manifest of a Sandwich artifact");
  }
}

TEST(Format, RefusesAHugeFile) {
  auto parsed = parseManifest(std::string(limits::manifestBytes + 1, '\0'));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message,
            "is 4194305 bytes long; at most 4194304 are accepted");
}

TEST(Format, RefusesEveryChangedByte) {
  std::string bytes = *serializeManifest(makeWholeManifest());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 0x40;
    EXPECT_FALSE(parseManifest(changed)) << "byte " << i;
  }
}

TEST(Format, RefusesEveryCut) {
  std::string bytes = *serializeManifest(makeWholeManifest());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parseManifest(std::string_view(bytes).substr(0, length)))
        << "length " << length;
}

TEST(Format, RefusesAManifestThatIsNone) {
  proto::Envelope envelope;
  envelope.set_format_version(formatVersion);
  envelope.set_manifest("\xff\xff\xff");
  envelope.set_checksum(
      checksum(std::as_bytes(std::span(envelope.manifest()))));
  auto parsed = parseManifest(envelope.SerializeAsString());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "holds no manifest that can be read");
}

TEST(Format, DoesNotWriteWhatWouldNotLoad) {
  proto::Manifest manifest = makeWholeManifest();
  manifest.mutable_model()->set_layers(0);
  auto bytes = serializeManifest(manifest);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, "model.layers is 0; 1 to 4096 is accepted");
}

TEST(Format, ChecksWhatIsKnownBeforePacking) {
  proto::Manifest manifest = makeManifest();
  EXPECT_TRUE(validateConfiguration(manifest));
  EXPECT_FALSE(validateManifest(manifest));
  manifest.mutable_kv_cache()->set_block_bytes(0);
  EXPECT_FALSE(validateConfiguration(manifest));
}

TEST(Format, ChecksText) {
  auto errorFor = [](const std::string &name) {
    return errorAfter(
        [&](proto::Manifest &m) { m.mutable_model()->set_name(name); });
  };
  EXPECT_EQ(errorFor("model \xe2\x82\xac \xf0\x9f\xa5\xaa"), "");
  EXPECT_EQ(errorFor(""), "model.name is empty");
  EXPECT_EQ(errorFor(std::string(1025, 'a')),
            "model.name is 1025 bytes long; at most 1024 are accepted");
  for (const char *control : {"\x1b[2J", "a\nb", "\x7f", "\xc2\x9b"})
    EXPECT_EQ(errorFor(control), "model.name holds a control character");
  // A byte that never occurs, cut, overlong, surrogate, beyond U+10FFFF.
  for (const char *invalid :
       {"\xff", "\xe2\x82", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_EQ(errorFor(invalid), "model.name is not valid UTF-8");
}

TEST(Format, ChecksTheModel) {
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) { spoil(*m.mutable_model()); });
  };
  using Model = proto::ModelConfiguration;
  EXPECT_EQ(errorFor([](Model &m) { m.set_architecture(""); }),
            "model.architecture is empty");
  EXPECT_EQ(errorFor([](Model &m) { m.set_hidden_size(0); }),
            "model.hidden_size is 0; 1 to 1048576 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_intermediate_size(1u << 31); }),
            "model.intermediate_size is 2147483648; 1 to 4194304 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_layers(4097); }),
            "model.layers is 4097; 1 to 4096 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_heads(0); }),
            "model.heads is 0; 1 to 16384 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_kv_heads(0); }),
            "model.kv_heads is 0; 1 to 4 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_kv_heads(8); }),
            "model.kv_heads is 8; 1 to 4 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_kv_heads(3); }),
            "model.heads is 4, not a multiple of model.kv_heads, which is 3");
  EXPECT_EQ(errorFor([](Model &m) { m.set_head_dim(~0u); }),
            "model.head_dim is 4294967295; 1 to 4096 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_vocab_size(0); }),
            "model.vocab_size is 0; 1 to 16777216 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.set_context_length(0); }),
            "model.context_length is 0; 1 to 16777216 is accepted");
  EXPECT_EQ(errorFor([](Model &m) { m.add_eos_token_ids(100); }),
            "model.eos_token_ids is 100, outside the vocabulary of "
            "model.vocab_size 100");
  EXPECT_EQ(errorFor([](Model &m) { m.set_bos_token_id(-1); }),
            "model.bos_token_id is -1, outside the vocabulary of "
            "model.vocab_size 100");
  EXPECT_EQ(errorFor([](Model &m) {
              for (int i = 0; i < 256; ++i)
                m.add_eos_token_ids(0);
            }),
            "the number of model.eos_token_ids is 257; 0 to 256 is accepted");
}

TEST(Format, ChecksTheTarget) {
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) { spoil(*m.mutable_target()); });
  };
  using Target = proto::Target;
  EXPECT_EQ(errorFor([](Target &t) { t.set_name(""); }),
            "target.name is empty");
  EXPECT_EQ(errorFor([](Target &t) { t.set_dtype("f64"); }),
            "target.dtype: 'f64' is no storage format; they are f32, bf16, "
            "and int8, int4 and fp8 with groups and scales, for example "
            "int4-g32-f16");
  EXPECT_EQ(errorFor([](Target &t) { t.add_cpu_features("\x1b[2J"); }),
            "target.cpu_features holds a control character");
  EXPECT_EQ(errorFor([](Target &t) { t.set_phase_abi_version(1000); }),
            "target.phase_abi_version is 1000, and this version of Sandwich "
            "calls version " +
                std::to_string(SANDWICH_PHASE_ABI_VERSION) +
                "; compile the model again");
}

TEST(Format, ChecksWhatDrawsTokens) {
  auto errorFor = [](const char *symbol) {
    return errorAfter(
        [&](proto::Manifest &m) { m.set_sampling_symbol(symbol); });
  };
  EXPECT_EQ(errorFor("sandwich_sampling"), "");
  EXPECT_EQ(errorFor("a-b"), "sampling_symbol is \"a-b\", which is not the "
                             "name of a C function");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) {
              m.clear_phases();
              m.mutable_encoding()->set_labels(2);
              m.set_sampling_symbol("sandwich_sampling");
            }),
            "sampling_symbol is of models that generate text, which this one "
            "does not");
  EXPECT_EQ(errorFor("\x1b[2J"), "sampling_symbol holds a control character");
}

TEST(Format, ChecksThePhases) {
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) { spoil(*m.mutable_phases(1)); });
  };
  using Phase = proto::Phase;
  EXPECT_EQ(errorFor([](Phase &p) { p.set_name("train"); }),
            "phases[1].name is \"train\"; \"prefill\" and \"decode\" are "
            "accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_name("prefill"); }),
            "phases has \"prefill\" twice");
  EXPECT_EQ(
      errorAfter([](proto::Manifest &m) { m.mutable_phases()->RemoveLast(); }),
      "phases has no \"decode\"");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) { m.clear_phases(); }),
            "phases has no \"prefill\"");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_symbol(""); }),
            "phases[1].symbol is empty");
  for (const char *symbol : {"1x", "a b", "a-b", "\xc3\xa9"})
    EXPECT_EQ(errorFor([&](Phase &p) { p.set_symbol(symbol); }),
              std::string("phases[1].symbol is \"") + symbol +
                  "\", which is not the name of a C function");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_threads(0); }),
            "phases[1].threads is 0; 1 to 1024 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_threads(1025); }),
            "phases[1].threads is 1025; 1 to 1024 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_max_tokens(0); }),
            "phases[1].max_tokens is 0; 1 to 65536 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_max_tokens(65537); }),
            "phases[1].max_tokens is 65537; 1 to 65536 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_max_logit_rows(33); }),
            "phases[1].max_logit_rows is 33; 1 to 32 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_max_logit_rows(0); }),
            "phases[1].max_logit_rows is 0; 1 to 32 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_workspace_bytes(huge); }),
            "phases[1].workspace_bytes is 18446744073709551615; 0 to "
            "68719476736 is accepted");
  EXPECT_EQ(errorFor([](Phase &p) { p.set_workspace_bytes(100); }),
            "phases[1].workspace_bytes is 100, not a multiple of 64");
  EXPECT_EQ(
      errorFor([](Phase &p) { p.mutable_schedules(0)->set_rows_from(17); }),
      "phases[1].schedules[0].rows_to is 16, less than rows_from, which is 17");
  EXPECT_EQ(errorFor([](Phase &p) { p.mutable_schedules(0)->set_matmul(""); }),
            "phases[1].schedules[0].matmul is empty");
  EXPECT_EQ(
      errorFor([](Phase &p) { p.mutable_schedules(0)->set_text("\x1b[2J"); }),
      "phases[1].schedules[0].text holds a control character");
}

TEST(Format, BoundsTheLogits) {
  EXPECT_EQ(errorAfter([](proto::Manifest &m) {
              m.mutable_model()->set_vocab_size(1 << 24);
              m.mutable_phases(0)->set_max_tokens(1 << 16);
              m.mutable_phases(0)->set_max_logit_rows(1 << 16);
            }),
            "phases[0].max_logit_rows is 65536; 1 to 1024 is accepted");
}

TEST(Format, ChecksTheKVCache) {
  auto errorFor = [](auto spoil) {
    return errorAfter(
        [&](proto::Manifest &m) { spoil(*m.mutable_kv_cache()); });
  };
  using Cache = proto::KVCache;
  EXPECT_EQ(errorFor([](Cache &c) { c.set_dtype("i8"); }),
            "kv_cache.dtype is \"i8\"; \"f32\", \"bf16\", \"f16\" and \"int8\" "
            "are accepted");
  // Its keys and values have scales.
  EXPECT_EQ(errorFor([](Cache &c) {
              c.set_dtype("int8");
              c.set_block_bytes(2496);
            }),
            "kv_cache.block_bytes is 2496; 2560 to 5120 is accepted");
  EXPECT_EQ(errorFor([](Cache &c) { c.set_block_tokens(0); }),
            "kv_cache.block_tokens is 0, and this version of Sandwich uses 16; "
            "compile the model again");
  EXPECT_EQ(errorFor([](Cache &c) { c.set_block_bytes(4032); }),
            "kv_cache.block_bytes is 4032; 4096 to 8192 is accepted");
  EXPECT_EQ(errorFor([](Cache &c) { c.set_block_bytes(huge); }),
            "kv_cache.block_bytes is 18446744073709551615; 4096 to 8192 is "
            "accepted");
  EXPECT_EQ(errorFor([](Cache &c) { c.set_block_bytes(4100); }),
            "kv_cache.block_bytes is 4100, not a multiple of 64");
  // Twice the elements for f32.
  EXPECT_EQ(errorFor([](Cache &c) { c.set_dtype("f32"); }),
            "kv_cache.block_bytes is 4096; 8192 to 16384 is accepted");
}

/// Times of a step of one token, and of as many as a step takes.
static proto::StepTimes makeStepTimes() {
  proto::StepTimes times;
  for (auto *points : {times.mutable_prefill(), times.mutable_decode()}) {
    proto::StepTimes::Point *point = points->Add();
    point->set_tokens(1);
    point->set_seconds(0.01);
    point = points->Add();
    point->set_tokens(2);
    point->set_seconds(0.02);
  }
  times.set_seconds_per_prompt_position(1e-6);
  return times;
}

TEST(Format, ChecksTheStepTimes) {
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) {
      *m.mutable_step_times() = makeStepTimes();
      spoil(*m.mutable_step_times());
    });
  };
  using Times = proto::StepTimes;
  EXPECT_EQ(errorFor([](Times &) {}), "");
  EXPECT_EQ(errorFor([](Times &t) { t.clear_decode(); }),
            "the number of step_times.decode is 0; 1 to 64 is accepted");
  EXPECT_EQ(errorFor([](Times &t) {
              for (int i = 0; i < 63; ++i)
                t.add_prefill();
            }),
            "the number of step_times.prefill is 65; 1 to 64 is accepted");
  EXPECT_EQ(errorFor([](Times &t) { t.mutable_prefill(1)->set_tokens(1); }),
            "step_times.prefill[1].tokens is 1, not more than 1 of the point "
            "before");
  EXPECT_TRUE(errorFor([](Times &t) {
                t.mutable_prefill(1)->set_tokens(1000000);
              }).starts_with("step_times.prefill[1].tokens is 1000000; 1 to "));
  EXPECT_EQ(errorFor([](Times &t) { t.mutable_decode(0)->set_seconds(0); }),
            "step_times.decode[0].seconds is 0; more than 0 and at most 1e+06 "
            "seconds are accepted");
  EXPECT_EQ(errorFor([](Times &t) { t.mutable_decode(0)->set_seconds(NAN); }),
            "step_times.decode[0].seconds is nan; more than 0 and at most "
            "1e+06 seconds are accepted");
  EXPECT_EQ(errorFor([](Times &t) { t.set_seconds_per_prompt_position(-1); }),
            "step_times.seconds_per_prompt_position is -1; 0 to 1e+06 "
            "seconds are accepted");
  EXPECT_EQ(
      errorFor([](Times &t) { t.set_seconds_per_decode_position(INFINITY); }),
      "step_times.seconds_per_decode_position is inf; 0 to 1e+06 "
      "seconds are accepted");
}

/// Two ranks: a region of both, and one of each.
static void divide(proto::Manifest &m) {
  constexpr uint64_t region = uint64_t(2) << 20;
  m.set_ranks(2);
  m.set_common_weight_bytes(region);
  m.set_shard_bytes(region);
  m.mutable_kv_cache()->set_block_bytes(2048);
  for (proto::File &file : *m.mutable_files())
    if (file.name() == "weights.bin")
      file.set_bytes(3 * region);
  m.mutable_tensors(1)->set_ranks(2);
  m.mutable_tensors(1)->set_offset(region);
}

TEST(Format, ChecksTheRanks) {
  EXPECT_EQ(errorAfter(divide), "");
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) {
      divide(m);
      spoil(m);
    });
  };
  using proto::Manifest;
  EXPECT_EQ(errorAfter([](Manifest &m) { m.set_ranks(3); }),
            "ranks is 3: 3 ranks do not divide 4 query heads; 1 and 2 are "
            "possible");
  EXPECT_EQ(errorAfter([](Manifest &m) { m.set_ranks(UINT32_MAX); }),
            "ranks is 4294967295: 4294967295 ranks are not between 1 and 64; 1 "
            "and 2 are possible");
  EXPECT_EQ(errorAfter([](Manifest &m) { m.set_shard_bytes(64); }),
            "common_weight_bytes is 0 and shard_bytes 64, but there is one "
            "rank");
  EXPECT_EQ(errorAfter([](Manifest &m) { m.mutable_tensors(1)->set_ranks(2); }),
            "tensors[1].ranks is 2, not the 1 of the artifact");
  EXPECT_EQ(errorFor([](Manifest &m) {
              m.mutable_kv_cache()->set_block_bytes(8192);
            }),
            "kv_cache.block_bytes is 8192; 2048 to 4096 is accepted");
  EXPECT_EQ(errorFor([](Manifest &m) { m.set_common_weight_bytes(4096); }),
            "common_weight_bytes is 4096, not a multiple of 2097152");
  EXPECT_EQ(errorFor([](Manifest &m) { m.set_shard_bytes(0); }),
            "shard_bytes is 0, not a positive multiple of 2097152");
  EXPECT_EQ(errorFor([](Manifest &m) { m.set_shard_bytes(64); }),
            "shard_bytes is 64, not a positive multiple of 2097152");
  EXPECT_EQ(errorFor([](Manifest &m) { m.set_shard_bytes(2 * 2097152); }),
            "common_weight_bytes is 2097152 and shard_bytes 4194304 of 2 "
            "ranks, but weights.bin has 6291456 bytes");
  // Twice that wraps to 0.
  EXPECT_EQ(errorFor([](Manifest &m) {
              m.set_common_weight_bytes(3 * 2097152);
              m.set_shard_bytes(uint64_t(1) << 63);
            }),
            "common_weight_bytes is 6291456 and shard_bytes "
            "9223372036854775808 of 2 ranks, but weights.bin has 6291456 "
            "bytes");
  EXPECT_EQ(errorFor([](Manifest &m) { m.mutable_tensors(1)->set_ranks(3); }),
            "tensors[1].ranks is 3, not the 2 of the artifact");
  EXPECT_EQ(
      errorFor([](Manifest &m) { m.mutable_tensors(1)->set_ranks(0); }),
      "tensors[1].offset is 2097152 and bytes 12800, outside of bytes 0 to "
      "2097152 of weights.bin, which all ranks read");
  EXPECT_EQ(errorFor([](Manifest &m) {
              m.mutable_tensors(1)->set_offset(2 * 2097152);
            }),
            "tensors[1].offset is 4194304 and bytes 12800, outside of bytes "
            "2097152 to 4194304 of weights.bin, the shard of rank 0");
}

TEST(Format, BoundsTheContext) {
  // Every field keeps its own limit, and 2^45 bytes a block do not wrap.
  EXPECT_EQ(errorAfter([](proto::Manifest &m) {
              m.mutable_model()->set_layers(model_limits::layers);
              m.mutable_model()->set_heads(model_limits::heads);
              m.mutable_model()->set_kv_heads(model_limits::heads);
              m.mutable_model()->set_head_dim(model_limits::headDim);
              m.mutable_model()->set_context_length(
                  model_limits::contextLength);
              m.mutable_kv_cache()->set_dtype("f32");
              m.mutable_kv_cache()->set_block_bytes(uint64_t(1) << 45);
            }),
            "kv_cache.block_bytes is 35184372088832, so that a context of "
            "16777216 tokens needs more than 17592186044416 bytes");
}

TEST(Format, ChecksTheOperations) {
  using proto::Phase;
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) { spoil(*m.mutable_phases(1)); });
  };
  EXPECT_EQ(
      errorFor([](Phase &p) { p.mutable_operations(0)->set_name("a\x1b"); }),
      "phases[1].operations[0].name holds a control character");
  EXPECT_EQ(errorFor([](Phase &p) { p.add_operations(); }),
            "phases[1].operations[1].name is empty");
  EXPECT_EQ(errorFor([](Phase &p) {
              while (p.operations_size() <= 1 << 16)
                p.add_operations()->set_name("a");
            }),
            "the number of phases[1].operations is 65537; 0 to 65536 is "
            "accepted");
}

TEST(Format, ChecksTheFiles) {
  auto errorFor = [](auto spoil) {
    return errorAfter([&](proto::Manifest &m) { spoil(*m.mutable_files(2)); });
  };
  using File = proto::File;
  for (const char *name : {"../x", "/etc/passwd", "a/b", ".", "..", "other"})
    EXPECT_EQ(errorFor([&](File &f) { f.set_name(name); }),
              std::string("files[2].name is \"") + name +
                  "\"; artifacts have no such file");
  EXPECT_EQ(errorFor([](File &f) { f.set_name(std::string("a\0b", 3)); }),
            "files[2].name holds a control character");
  EXPECT_EQ(errorFor([](File &f) { f.set_name("manifest.pb"); }),
            "files[2].name is that of the manifest itself");
  EXPECT_EQ(errorFor([](File &f) { f.set_name("phases.so"); }),
            "files has \"phases.so\" twice");
  EXPECT_EQ(errorFor([](File &f) { f.set_bytes(0); }),
            "files[2].bytes is 0; 1 to 268435456 is accepted");
  EXPECT_EQ(errorFor([](File &f) { f.set_bytes(huge); }),
            "files[2].bytes is 18446744073709551615; 1 to 268435456 is "
            "accepted");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) {
              m.mutable_files(0)->set_name("tokenizer_config.json");
            }),
            "files has no \"phases.so\"");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) {
              m.mutable_files(1)->set_name("tokenizer_config.json");
            }),
            "files has no \"weights.bin\"");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) { m.clear_files(); }),
            "files has no \"phases.so\"");
}

TEST(Format, ChecksTheTensors) {
  auto errorFor = [](auto spoil) {
    return errorAfter(
        [&](proto::Manifest &m) { spoil(*m.mutable_tensors(1)); });
  };
  using Tensor = proto::Tensor;
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_name(""); }),
            "tensors[1].name is empty");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_name("embed"); }),
            "tensors has \"embed\" twice");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_dtype("complex"); }),
            "tensors[1].dtype: 'complex' is no storage format; they are f32, "
            "bf16, and int8, int4 and fp8 with groups and scales, for example "
            "int4-g32-f16");
  // Two rows of 32 numbers and their scales are 36 bytes.
  auto setInt4 = [](Tensor &t, uint64_t k, uint64_t bytes) {
    t.set_dtype("int4-g32-f16");
    t.clear_shape();
    t.add_shape(2);
    t.add_shape(k);
    t.set_bytes(bytes);
  };
  EXPECT_EQ(errorFor([&](Tensor &t) { setInt4(t, 32, 35); }),
            "tensors[1].bytes is 35, too few for its shape of int4-g32-f16");
  EXPECT_EQ(errorFor([&](Tensor &t) { setInt4(t, 48, 400); }),
            "tensors[1].shape: int4-g32-f16 needs K to be a multiple of 32; it "
            "is 48");
  EXPECT_EQ(errorFor([&](Tensor &t) { setInt4(t, uint64_t(1) << 43, 400); }),
            "tensors[1].shape: int4-g32-f16 has too large a K, 8796093022208");
  auto setErrors = [&](Tensor &t, std::vector<double> errors) {
    setInt4(t, 32, 400);
    t.mutable_rounding()->mutable_errors()->Assign(errors.begin(),
                                                   errors.end());
  };
  EXPECT_EQ(errorFor([&](Tensor &t) { setErrors(t, {0.1}); }), "");
  EXPECT_EQ(
      errorFor([&](Tensor &t) { setErrors(t, {0.1, 0.1}); }),
      "the number of tensors[1].rounding.errors is 2, not one for each of "
      "1 layer");
  EXPECT_EQ(
      errorFor([&](Tensor &t) {
        setErrors(t, {0.1});
        t.add_shape(32);
      }),
      "the number of tensors[1].rounding.errors is 1, not one for each of "
      "2 layers");
  for (double wrong : {-0.5, std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN()})
    EXPECT_TRUE(errorFor([&](Tensor &t) {
                  setErrors(t, {wrong});
                }).starts_with("tensors[1].rounding.errors has "))
        << wrong;
  EXPECT_EQ(errorFor([](Tensor &t) { t.mutable_rounding()->add_errors(0); }),
            "tensors[1].rounding is of integers, but dtype is \"bf16\"");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_layout(""); }),
            "tensors[1].layout is empty");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_sources(0, "\x1b[2J"); }),
            "tensors[1].sources holds a control character");
  EXPECT_EQ(errorFor([](Tensor &t) { t.clear_shape(); }),
            "the number of dimensions of tensors[1].shape is 0; 1 to 8 is "
            "accepted");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_shape(0, 0); }),
            "tensors[1].shape is 0; 1 to 17592186044416 is accepted");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_shape(0, 101); }),
            "tensors[1].bytes is 12800, too few for its shape of bf16");
  // 2^43 * 2^43 elements wrap to a small product.
  EXPECT_EQ(errorFor([](Tensor &t) {
              t.set_shape(0, uint64_t(1) << 43);
              t.set_shape(1, uint64_t(1) << 43);
            }),
            "tensors[1].bytes is 12800, too few for its shape of bf16");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_bytes(0); }),
            "tensors[1].bytes is 0, too few for its shape of bf16");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_offset(130); }),
            "tensors[1].offset is 130, not a multiple of 64");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_offset(192); }),
            "tensors[1].offset is 192 and bytes 12800, beyond the 12928 bytes "
            "of weights.bin");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_offset(huge - 63); }),
            "tensors[1].offset is 18446744073709551552 and bytes 12800, beyond "
            "the 12928 bytes of weights.bin");
  EXPECT_EQ(errorFor([](Tensor &t) { t.set_offset(64); }),
            "tensors \"embed\" and \"head\" overlap in weights.bin at byte 64");
  EXPECT_EQ(errorAfter([](proto::Manifest &m) { m.clear_tensors(); }),
            "the number of tensors is 0; 1 to 262144 is accepted");
}

TEST(Format, ChecksTheVersionOfSandwich) {
  EXPECT_EQ(
      errorAfter([](proto::Manifest &m) { m.set_sandwich_version("\x1b"); }),
      "sandwich_version holds a control character");
}

TEST(Format, NamesMissingCpuFeatures) {
  if (hostArchitecture != CpuArchitecture::X86_64)
    GTEST_SKIP() << "the features are of x86-64";
  proto::Target target;
  target.set_name("x86-64-amx");
  target.add_cpu_features("avx2");
  target.add_cpu_features("amx-tile");
  target.add_cpu_features("of-the-future");
  Status status = checkCpuFeatures(target, {CpuFeature::AVX2});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "this artifact, made for x86-64-amx, needs amx-tile, "
            "of-the-future, which this CPU does not have; compile it again "
            "with --target=host");
  target.mutable_cpu_features()->DeleteSubrange(1, 2);
  EXPECT_TRUE(checkCpuFeatures(target, {CpuFeature::AVX2}));
}

TEST(Format, NamesTheArchitectureOfOtherCpus) {
  const bool onX86 = hostArchitecture == CpuArchitecture::X86_64;
  proto::Target target;
  target.set_name("other");
  target.add_cpu_features(onX86 ? "neon" : "avx2");
  Status status = checkCpuFeatures(target, CpuFeatures::host());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            onX86
                ? "this artifact, made for other, is for CPUs of aarch64, and "
                  "this one is x86-64; compile it again with --target=host"
                : "this artifact, made for other, is for CPUs of x86-64, and "
                  "this one is aarch64; compile it again with --target=host");
}

TEST(Format, JsonHasTheFields) {
  Json json = toJson(makeWholeManifest());
  EXPECT_EQ(json["model"]["kv_heads"], 2);
  EXPECT_EQ(json["model"]["eos_token_ids"], Json::array({2}));
  EXPECT_EQ(json["phases"][1]["symbol"], "test_decode");
  EXPECT_EQ(json["phases"][0]["schedules"][0]["rows_to"], 16);
  EXPECT_EQ(json["kv_cache"]["block_bytes"], 4096);
  EXPECT_EQ(json["tensors"][1]["shape"], Json::array({100, 64}));
  EXPECT_EQ(json["files"][0]["checksum"], "0123456789abcdef");
  EXPECT_EQ(json["ranks"], 1);
  EXPECT_FALSE(json.contains("step_times"));
  proto::Manifest measured = makeWholeManifest();
  *measured.mutable_step_times() = makeStepTimes();
  Json times = toJson(measured)["step_times"];
  EXPECT_EQ(times["prefill"][1], (Json{{"tokens", 2}, {"seconds", 0.02}}));
  EXPECT_EQ(times["decode"].size(), 2u);
  EXPECT_EQ(times["seconds_per_prompt_position"], 1e-6);
  EXPECT_FALSE(json["tensors"][1].contains("ranks"));
  proto::Manifest divided = makeWholeManifest();
  divide(divided);
  json = toJson(divided);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["shard_bytes"], 2097152);
  EXPECT_EQ(json["tensors"][1]["ranks"], 2);
}

} // namespace
