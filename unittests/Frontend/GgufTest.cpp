//===- GgufTest.cpp - Reading GGUF files ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/Gguf.h"
#include "sandwich/Frontend/GgufModel.h"
#include "sandwich/Frontend/IntegerGroups.h"

#include <cmath>
#include <limits>

using namespace sandwich;
using namespace sandwich::test;

namespace {

/// Numbers one behind the other, little-endian.
class Bytes {
public:
  template <typename Number> Bytes &add(Number number) {
    text.append(reinterpret_cast<const char *>(&number), sizeof(number));
    return *this;
  }
  Bytes &addString(std::string_view string) {
    add<uint64_t>(string.size());
    text += string;
    return *this;
  }
  Bytes &addBytes(std::string_view bytes) {
    text += bytes;
    return *this;
  }
  const std::string &get() const { return text; }

private:
  std::string text;
};

constexpr uint32_t uint32Type = 4, stringType = 8, arrayType = 9;

/// A file of version 3.
struct File {
  uint32_t version = 3;
  std::optional<uint64_t> tensorCount, keyCount;
  std::vector<std::string> keys, tensors;
  std::string data;

  File &key(const std::string &name, uint32_t type, const Bytes &value) {
    keys.push_back(
        Bytes().addString(name).add(type).addBytes(value.get()).get());
    return *this;
  }
  File &key(const std::string &name, uint32_t value) {
    return key(name, uint32Type, Bytes().add(value));
  }
  File &key(const std::string &name, const std::string &value) {
    return key(name, stringType, Bytes().addString(value));
  }
  /// The first size is that of rows, as in the file.
  File &tensor(const std::string &name, const std::vector<uint64_t> &sizes,
               uint32_t type, uint64_t offset) {
    Bytes bytes;
    bytes.addString(name).add(static_cast<uint32_t>(sizes.size()));
    for (uint64_t size : sizes)
      bytes.add(size);
    tensors.push_back(bytes.add(type).add(offset).get());
    return *this;
  }
  std::string text() const {
    Bytes bytes;
    bytes.addBytes("GGUF").add(version);
    bytes.add<uint64_t>(tensorCount.value_or(tensors.size()));
    bytes.add<uint64_t>(keyCount.value_or(keys.size()));
    for (const std::string &key : keys)
      bytes.addBytes(key);
    for (const std::string &tensor : tensors)
      bytes.addBytes(tensor);
    std::string all = bytes.get();
    all.resize((all.size() + 31) / 32 * 32);
    return all + data;
  }
};

Result<GgufContents> read(const std::string &text) {
  return readGguf(std::as_bytes(std::span(text)));
}

std::string refusal(const std::string &text) { return messageOf(read(text)); }
std::string refusal(const File &file) { return refusal(file.text()); }

uint16_t bitsOf(_Float16 half) {
  uint16_t bits = 0;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

} // namespace

TEST(Gguf, ReadsValuesListsAndTensors) {
  File file;
  file.key("a.count", 7).key("a.name", "x");
  file.key("a.flag", 7, Bytes().add<uint8_t>(1));
  file.key("a.real", 6, Bytes().add(2.5f));
  file.key("a.least", 11, Bytes().add<int64_t>(-3));
  file.key(
      "a.words", arrayType,
      Bytes().add(stringType).add<uint64_t>(2).addString("one").addString(""));
  file.key("a.numbers", arrayType,
           Bytes().add<uint32_t>(5).add<uint64_t>(2).add(-1).add(4));
  file.tensor("t", {3, 2}, 0, 0);
  file.data = bytesOf<float>({0, 1, 2, 3, 4, 5});
  const std::string text = file.text();
  auto contents = read(text);
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_EQ(contents->values["a.count"], 7);
  EXPECT_EQ(contents->values["a.name"], "x");
  EXPECT_EQ(contents->values["a.flag"], true);
  EXPECT_EQ(contents->values["a.real"], 2.5);
  EXPECT_EQ(contents->values["a.least"], -3);
  EXPECT_EQ(*contents->arrays["a.words"].strings(),
            (std::vector<std::string_view>{"one", ""}));
  EXPECT_EQ(*contents->arrays["a.numbers"].numbers(),
            (std::vector<double>{-1, 4}));
  EXPECT_EQ(messageOf(contents->arrays["a.words"].numbers()),
            "is a list of other values; one of numbers is expected");
  EXPECT_EQ(messageOf(contents->arrays["a.numbers"].strings()),
            "is a list of other values; one of strings is expected");
  const TensorView &tensor = contents->tensors.at("t");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> row(3);
  readRow(tensor, 1, row);
  EXPECT_EQ(row, (std::vector<float>{3, 4, 5}));
}

TEST(Gguf, RefusesWhatIsNoSuchFile) {
  EXPECT_EQ(refusal(""), "is no GGUF file: it does not begin with GGUF");
  EXPECT_EQ(refusal("GGML...."),
            "is no GGUF file: it does not begin with GGUF");
  EXPECT_EQ(refusal("GGUF"), "ends at byte 4, where 4 more of 4 are expected");
  File file;
  file.version = 1;
  EXPECT_EQ(refusal(file), "is of version 1; 2 and 3 are supported");
  file.version = 3 << 24;
  EXPECT_EQ(refusal(file), "is of version 50331648, of a big-endian machine; "
                           "2 and 3 are supported");
}

TEST(Gguf, RefusesAnyCutFile) {
  File file;
  file.key("a.name", "x").tensor("t", {4}, 0, 0);
  file.data = bytesOf<float>({0, 1, 2, 3});
  const std::string whole = file.text();
  ASSERT_TRUE(read(whole));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read(whole.substr(0, size))) << size;
}

TEST(Gguf, RefusesCountsAndLengthsBeyondTheFile) {
  constexpr uint64_t huge = std::numeric_limits<uint64_t>::max();
  File file;
  file.keyCount = huge;
  EXPECT_EQ(refusal(file),
            "has 18446744073709551615 keys; at most 4096 are accepted");
  file.keyCount = 0;
  file.tensorCount = huge;
  EXPECT_EQ(refusal(file),
            "tensor \"\": ends at byte 32, where 4 more of 4 are expected");
  EXPECT_EQ(refusal(File().key("k", stringType, Bytes().add(huge))),
            "\"k\": has a string of 18446744073709551615 bytes at byte 45, but "
            "only 19 follow");
  EXPECT_EQ(
      refusal(File().key("k", arrayType,
                         Bytes().add(uint32Type).add<uint64_t>(huge / 2))),
      "\"k\": is a list of 9223372036854775807 elements, but only 15 bytes "
      "follow");
  EXPECT_EQ(
      refusal(File().key("k", arrayType,
                         Bytes().add(stringType).add<uint64_t>(1).add(huge))),
      "\"k\": element 0: has a string of 18446744073709551615 bytes at "
      "byte 57, but only 7 follow");
}

TEST(Gguf, RefusesOtherValues) {
  EXPECT_EQ(refusal(File().key("k", 13, Bytes())),
            "\"k\": has the type 13, which there is not");
  EXPECT_EQ(refusal(File().key("k", arrayType,
                               Bytes().add(arrayType).add<uint64_t>(0))),
            "\"k\": is a list of lists, which is not supported");
  EXPECT_EQ(refusal(File().key("k", 7, Bytes().add<uint8_t>(2))),
            "\"k\": is the truth value 2; 0 or 1 is expected");
  EXPECT_EQ(refusal(File().key("k", 1).key("k", 2)), "\"k\": is there twice");
  for (uint32_t alignment : {0u, 48u})
    EXPECT_EQ(refusal(File().key("general.alignment", alignment)),
              "general.alignment is " + std::to_string(alignment) +
                  "; a power of two is expected");
}

TEST(Gguf, RefusesTensorsThatCannotBe) {
  auto withTensor = [](const std::vector<uint64_t> &sizes, uint32_t type,
                       uint64_t offset) {
    File file;
    file.tensor("t", sizes, type, offset);
    file.data = std::string(64, '\0');
    return refusal(file);
  };
  const std::string context = "tensor \"t\": ";
  EXPECT_EQ(withTensor({1, 1, 1, 1, 1}, 0, 0),
            context + "has 5 dimensions; at most 4 are accepted");
  EXPECT_EQ(withTensor({uint64_t(1) << 63}, 0, 0),
            context + "has a dimension of 9223372036854775808; at most 2^63 - "
                      "1 is accepted");
  EXPECT_EQ(withTensor({uint64_t(1) << 40, uint64_t(1) << 40}, 0, 0),
            context + "shape [1099511627776, 1099511627776] is too large: its "
                      "size overflows");
  EXPECT_EQ(withTensor({uint64_t(1) << 62}, 0, 0),
            context + "shape [4611686018427387904] is too large: its size "
                      "overflows");
  EXPECT_EQ(withTensor({4}, 999, 0),
            context + "type is 999, which is not supported (F32, F16, Q4_0, "
                      "Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16 are)");
  EXPECT_TRUE(withTensor({4}, 10, 0).starts_with(context + "type is Q2_K, "));
  EXPECT_EQ(withTensor({48, 1}, 8, 0),
            context + "shape [1, 48] of Q8_0 has rows that are no multiple of "
                      "32 elements");
  EXPECT_EQ(withTensor({32}, 8, 0),
            context + "shape [32] of Q8_0 is that of no matrix, which blocks "
                      "are supported for");
  EXPECT_EQ(withTensor({0, uint64_t(1) << 60}, 8, 0),
            context + "shape [1152921504606846976, 0] of Q8_0 is that of no "
                      "matrix, which blocks are supported for");
  EXPECT_EQ(withTensor({4}, 0, 8),
            context + "offset 8 is no multiple of general.alignment 32");
  EXPECT_EQ(withTensor({4}, 0, 64),
            context + "offset 64 and 16 bytes, of shape [4] of F32, reach "
                      "beyond the file, which holds 64 bytes of data");
  EXPECT_EQ(withTensor({4}, 0, ~uint64_t(31)),
            context + "offset 18446744073709551584 and 16 bytes, of shape [4] "
                      "of F32, reach beyond the file, which holds 64 bytes of "
                      "data");
  File twice;
  twice.tensor("t", {4}, 0, 0).tensor("t", {4}, 0, 32);
  twice.data = std::string(64, '\0');
  EXPECT_EQ(refusal(twice), "tensor \"t\" is there twice");
  File overlapping;
  overlapping.tensor("s", {12}, 0, 0).tensor("t", {4}, 0, 32);
  overlapping.data = std::string(64, '\0');
  EXPECT_EQ(refusal(overlapping),
            "tensor \"t\": offset 32 lies within \"s\", bytes 0 to 48");
}

/// What one block says, worked out by hand.
TEST(Gguf, ReadsBlocks) {
  // Q4_0: byte i has number i in its low half, number 16 + i in the high one.
  Bytes block;
  block.add(bitsOf(_Float16(0.5)));
  for (int i = 0; i < 16; ++i)
    block.add(static_cast<uint8_t>(i | (15 - i) << 4));
  File file;
  file.tensor("t", {32, 1}, 2, 0);
  file.data = block.get();
  const std::string text = file.text();
  auto contents = read(text);
  ASSERT_TRUE(contents) << contents.error().message;
  const TensorView &tensor = contents->tensors.at("t");
  std::vector<float> values(32);
  readElements(tensor, 0, values);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 0.5f * static_cast<float>(i - 8));
    EXPECT_EQ(values[16 + i], 0.5f * static_cast<float>(15 - i - 8));
  }
  // A part that begins and ends within the group.
  std::vector<float> part(3);
  readElements(tensor, 15, part);
  EXPECT_EQ(part, std::vector<float>(values.begin() + 15, values.begin() + 18));

  const std::optional<StorageFormat> format = naturalFormat(tensor);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->name(), "int4-g32-f16");
  // Scales that the format has no number for.
  const auto tiny = StorageFormat::parse("int4-g32-f16");
  File small;
  small.tensor("t", {32, 1}, 2, 0);
  small.data = std::string(18, '\0');
  small.data[0] = 1;
  const std::string smallText = small.text();
  auto smallContents = read(smallText);
  ASSERT_TRUE(smallContents);
  std::vector<uint8_t> smallNumbers(32);
  EXPECT_TRUE(readGroup("t", smallContents->tensors.at("t"), *tiny, 0, 0,
                        smallNumbers));
  // Half a group in eight bits, with a minimum.
  const auto wider = StorageFormat::parse("int8-g16-f16-minimum");
  std::vector<uint8_t> numbers(16);
  auto scale = readGroup("t", tensor, *wider, 0, 16, numbers);
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ(scale->scale, 0.5f);
  EXPECT_EQ(scale->minimum, -4.0f);
  EXPECT_EQ(numbers[0], 15);
  const auto bytes = StorageFormat::parse("int8-g32-f32");
  numbers.resize(32);
  scale = readGroup("t", tensor, *bytes, 0, 0, numbers);
  ASSERT_TRUE(scale) << scale.error().message;
  EXPECT_EQ(numbers[0], 128 - 8);
}

TEST(Gguf, RefusesOtherTokenizers) {
  auto tokenizer = [](const File &file) {
    const std::string text = file.text();
    auto contents = read(text);
    EXPECT_TRUE(contents);
    return messageOf(readGgufTokenizer(*contents));
  };
  auto list = [](const std::vector<std::string> &words) {
    Bytes bytes;
    bytes.add(stringType).add<uint64_t>(words.size());
    for (const std::string &word : words)
      bytes.addString(word);
    return bytes;
  };
  auto withTokens = [&](const std::string &model,
                        const std::vector<std::string> &words) {
    File file;
    file.key("tokenizer.ggml.model", model);
    file.key("tokenizer.ggml.tokens", arrayType, list(words));
    return file;
  };
  EXPECT_EQ(tokenizer(File().key("tokenizer.ggml.model", "llama")),
            "tokenizer.ggml.tokens is missing");
  EXPECT_EQ(tokenizer(withTokens("bert", {"a"})),
            "tokenizer.ggml.model is \"bert\", which is not supported "
            "(\"llama\" and \"gpt2\" are)");
  EXPECT_EQ(tokenizer(withTokens("gpt2", {})
                          .key("tokenizer.ggml.pre", "qwen2")
                          .key("tokenizer.ggml.bos_token_id", 5)),
            "tokenizer.ggml.tokens is of 0 elements; 1 to 16777216 are "
            "expected");
  EXPECT_EQ(tokenizer(withTokens("llama", {"a", "a"})),
            "tokenizer.ggml.tokens: elements 0 and 1 are both \"a\"");
  EXPECT_EQ(tokenizer(withTokens("llama", {"\xff"})),
            "tokenizer.ggml.tokens: element 0 is not valid UTF-8");
  EXPECT_EQ(tokenizer(withTokens("llama", {std::string(513, 'a')})),
            "tokenizer.ggml.tokens: element 0 has 513 bytes; at most 512 are "
            "accepted");
  EXPECT_EQ(tokenizer(withTokens("llama", {"a"})),
            "tokenizer.ggml.scores is missing");
  auto scores = [](float score) {
    return Bytes().add<uint32_t>(6).add<uint64_t>(1).add(score);
  };
  EXPECT_EQ(tokenizer(withTokens("llama", {"a", "b"})
                          .key("tokenizer.ggml.scores", arrayType, scores(1))),
            "tokenizer.ggml.scores is of 1 elements, but tokenizer.ggml.tokens "
            "of 2");
  EXPECT_EQ(tokenizer(withTokens("llama", {"a"})
                          .key("tokenizer.ggml.scores", arrayType,
                               scores(std::nanf("")))),
            "tokenizer.ggml.scores has a NaN");
  EXPECT_EQ(tokenizer(withTokens("gpt2", {"a"})),
            "tokenizer.ggml.pre is missing");
  EXPECT_EQ(tokenizer(withTokens("gpt2", {"a"}).key("tokenizer.ggml.pre", "x")),
            "tokenizer.ggml.pre is \"x\", which is not supported "
            "(\"llama-bpe\", \"llama3\", \"llama-v3\", \"falcon3\", \"qwen2\", "
            "\"deepseek-r1-qwen\", \"gpt-2\", \"smollm\", \"tekken\" are)");
  EXPECT_EQ(tokenizer(withTokens("gpt2", {"a"})
                          .key("tokenizer.ggml.pre", "gpt-2")
                          .key("tokenizer.ggml.merges", arrayType, list({}))
                          .key("tokenizer.ggml.bos_token_id", 1)),
            "tokenizer.ggml.bos_token_id is 1; a whole number from 0 to 0 is "
            "expected");
}

TEST(Gguf, RefusesOtherModels) {
  auto base = [] {
    File file;
    file.key("general.architecture", "llama");
    for (const auto &[name, value] : {std::pair("embedding_length", 64u),
                                      {"feed_forward_length", 64u},
                                      {"block_count", 1u},
                                      {"context_length", 128u},
                                      {"attention.head_count", 4u}})
      file.key(std::string("llama.") + name, value);
    file.key("llama.attention.layer_norm_rms_epsilon", 6, Bytes().add(1e-5f));
    return file;
  };
  auto config = [](const File &file) {
    const std::string text = file.text();
    auto contents = read(text);
    EXPECT_TRUE(contents);
    return messageOf(readGgufConfig(*contents));
  };
  EXPECT_EQ(config(File()), "general.architecture is missing");
  EXPECT_EQ(config(File().key("general.architecture", "llama")),
            "llama.embedding_length is missing");
  EXPECT_EQ(config(base()), "tensor \"token_embd.weight\" is missing");
  EXPECT_EQ(config(base().key("llama.attention.head_count_kv", 3)),
            "llama.attention.head_count is 4, which is not a multiple of "
            "llama.attention.head_count_kv 3");
  EXPECT_EQ(config(base().key("llama.attention.head_count_kv", arrayType,
                              Bytes().add(uint32Type).add<uint64_t>(0))),
            "llama.attention.head_count_kv is a list; one number for all "
            "layers is expected");
  EXPECT_EQ(config(base().key("llama.attention.key_length", 15)),
            "llama.attention.key_length is 15; an even number of at most 4096 "
            "is expected");
  EXPECT_EQ(config(base().key("llama.rope.dimension_count", 8)),
            "llama.rope.dimension_count is 8; only 16 is supported");
  EXPECT_EQ(config(base().key("llama.rope.scaling.type", "yarn")),
            "llama.rope.scaling.type is \"yarn\", which is not supported "
            "(\"none\" and \"linear\" are)");
  EXPECT_EQ(config(base().key("split.count", 3)),
            "split.count is 3: the file is a part of a model; merge them with "
            "llama-gguf-split --merge");
  File bent = base();
  bent.tensor("rope_freqs.weight", {8}, 0, 0);
  bent.data = bytesOf<float>({1, 1, 1, 1, 1, 1, 1, 0});
  EXPECT_EQ(config(bent),
            "tensor \"rope_freqs.weight\" has the factor 0; numbers from 1e-6 "
            "to 1e+06 are expected");
}

TEST(Gguf, RefusesTokensOfTooManyPairs) {
  // Some a and some b behind them: cut anywhere, both parts are tokens, too.
  auto makeTokenizer = [](int mostA, int mostB) {
    Bytes tokens;
    uint64_t count = 0;
    for (int a = 0; a <= mostA; ++a)
      for (int b = a == 0 ? 1 : 0; b <= mostB; ++b, ++count)
        tokens.addString(std::string(a, 'a') + std::string(b, 'b'));
    const std::string scores(count * sizeof(float), '\0');
    File file;
    file.key("tokenizer.ggml.model", "llama");
    file.key("tokenizer.ggml.tokens", arrayType,
             Bytes().add(stringType).add(count).addBytes(tokens.get()));
    file.key("tokenizer.ggml.scores", arrayType,
             Bytes().add<uint32_t>(6).add(count).addBytes(scores));
    const std::string text = file.text();
    auto contents = read(text);
    EXPECT_TRUE(contents);
    return readGgufTokenizer(*contents);
  };
  EXPECT_TRUE(makeTokenizer(8, 8));
  EXPECT_EQ(messageOf(makeTokenizer(96, 200)),
            "tokenizer.ggml.tokens has more than 2097152 pairs of tokens that "
            "are one");
}

TEST(Gguf, TakesWhatOtherProgramsWrite) {
  File file;
  file.key("general.architecture", "llama").key("split.count", 0u);
  for (const auto &[name, value] : {std::pair("embedding_length", 64u),
                                    {"feed_forward_length", 64u},
                                    {"block_count", 1u},
                                    {"context_length", 128u},
                                    {"attention.head_count", 4u}})
    file.key(std::string("llama.") + name, value);
  file.key("llama.attention.layer_norm_rms_epsilon", 6, Bytes().add(1e-5f));
  // The newer key, and what is missing of SentencePiece's tokens.
  file.key("llama.rope.scale_linear", 6, Bytes().add(1.0f));
  file.key("llama.rope.scaling.factor", 6, Bytes().add(4.0f));
  file.key("tokenizer.ggml.model", "llama");
  file.tensor("token_embd.weight", {64, 8}, 1, 0);
  file.tensor("model.embed_tokens.weight", {64, 8}, 1, 1024);
  file.data = std::string(2048, '\0');
  const std::string text = file.text();
  auto contents = read(text);
  ASSERT_TRUE(contents) << contents.error().message;
  auto config = readGgufConfig(*contents);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ropeScaling, RopeScaling(LinearRope{4}));
  EXPECT_EQ(config->bosTokenId, 1);
  EXPECT_EQ(config->eosTokenIds, (std::vector<int32_t>{2}));
  EXPECT_EQ(messageOf(renameGgufTensors(contents->tensors, *config)),
            "tensor \"token_embd.weight\": there is another one for "
            "\"model.embed_tokens.weight\"");
}

TEST(Gguf, PutsRowsOfHeadsInOrder) {
  TensorView tensor{ElementType::F32, {8, 1}, {}};
  tensor.alternatingRows = 4;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 8; ++row)
    rows.push_back(tensor.storedRow(row));
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST(Gguf, NamesTensors) {
  EXPECT_EQ(ggufTensorName("model.layers.12.self_attn.q_proj.bias"),
            "blk.12.attn_q.bias");
  EXPECT_EQ(ggufTensorName("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(ggufTensorName("other"), "other");
}
