//===- ReferenceTest.cpp - Agreement with reference ids -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerFiles.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

using namespace sandwich;

/// The tokenizer.json that `variant` of variants.json describes.
static Json changedFile(const Json &variant) {
  Json file = readInput(variant["base"].get<std::string>() + ".json");
  const Json &changes = variant["changes"];
  for (const auto &[key, value] : changes.items()) {
    if (key == "model")
      file["model"].update(value);
    else
      file[key] = value;
  }
  return file;
}

class Variant : public testing::TestWithParam<std::string> {};

TEST_P(Variant, AgreesWithHuggingFace) {
  Tokenizer tokenizer =
      loaded(changedFile(readInput("variants.json")[GetParam()]));
  Json cases = readInput("cases.json");
  Json references = readInput("reference.json")[GetParam()];
  ASSERT_EQ(references.size(), cases.size());
  ASSERT_GT(cases.size(), 30u);
  for (size_t i = 0; i != cases.size(); ++i) {
    auto text = cases[i].get<std::string>();
    SCOPED_TRACE(cases[i].dump());
    auto ids = references[i]["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(encoded(tokenizer, text, /*addSpecialTokens=*/true), ids);
    auto decoded = references[i].value("text", text);
    auto plain = references[i].value("plain", decoded);
    EXPECT_EQ(tokenizer.decode(ids, /*skipSpecialTokens=*/false), decoded);
    EXPECT_EQ(tokenizer.decode(ids, /*skipSpecialTokens=*/true), plain);
    EXPECT_EQ(streamed(tokenizer, ids, false), decoded);
    EXPECT_EQ(streamed(tokenizer, ids, true), plain);
  }
}

static std::vector<std::string> variantNames() {
  std::vector<std::string> names;
  Json variants = readInput("variants.json");
  for (const auto &[name, variant] : variants.items())
    names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Variant, testing::ValuesIn(variantNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

/// The folder of shared test data, which not every machine has.
static std::filesystem::path sharedFolder() {
  const char *set = std::getenv("SANDWICH_SHARED");
  return set ? set : SANDWICH_SOURCE_DIR "/../shared";
}

/// Loads one of the shared tokenizers; skips the test where it is absent.
class SharedFolderTest : public testing::Test {
protected:
  void load(const std::string &name) {
    folder = sharedFolder() / "tokenizers" / name;
    if (!std::filesystem::exists(folder))
      GTEST_SKIP() << folder << " is absent";
    auto opened = Tokenizer::fromFolder(folder);
    ASSERT_TRUE(opened) << opened.error().message;
    tokenizer.emplace(std::move(*opened));
  }

  std::filesystem::path folder;
  std::optional<Tokenizer> tokenizer;
};

class SharedTokenizer : public SharedFolderTest,
                        public testing::WithParamInterface<std::string> {
  void SetUp() override { load(GetParam()); }
};
class SharedWordPiece : public SharedFolderTest {
  void SetUp() override { load("bge-wordpiece"); }
};
class SharedUnigram : public SharedFolderTest {
  void SetUp() override { load("unigram-tiny"); }
};
class SharedLlama3 : public SharedFolderTest {
  void SetUp() override { load("llama3-bpe"); }
};

/// A text and its ids.
struct SharedCase {
  std::string text;
  std::vector<int32_t> ids;
};

/// The texts of one file with the ids of another; the test fails if a file is
/// absent.
static std::vector<SharedCase>
readCases(const std::filesystem::path &inputsPath,
          const std::filesystem::path &outputsPath) {
  auto inputs = MappedFile::open(inputsPath);
  auto outputs = MappedFile::open(outputsPath);
  if (!inputs || !outputs) {
    ADD_FAILURE() << inputsPath << " or " << outputsPath << " is absent";
    return {};
  }
  constexpr std::string_view separator = "\n__ggml_vocab_test__\n";
  std::istringstream lines{std::string(outputs->text())};
  std::string_view rest = inputs->text();
  std::vector<SharedCase> cases;
  for (bool more = true; more;) {
    size_t end = rest.find(separator);
    more = end != std::string_view::npos;
    SharedCase &next = cases.emplace_back();
    next.text = rest.substr(0, end);
    rest.remove_prefix(more ? end + separator.size() : rest.size());
    std::string line;
    std::getline(lines, line);
    std::istringstream numbers(line);
    for (int32_t id; numbers >> id;)
      next.ids.push_back(id);
  }
  return cases;
}

TEST_F(SharedWordPiece, AgreesOnEveryCase) {
  std::vector<SharedCase> cases =
      readCases(folder / "cases.inp", folder / "cases.out");
  EXPECT_EQ(cases.size(), 47u);
  for (const SharedCase &each : cases) {
    SCOPED_TRACE(each.text);
    EXPECT_EQ(encoded(*tokenizer, each.text), each.ids);
    EXPECT_EQ(streamed(*tokenizer, each.ids, false),
              tokenizer->decode(each.ids, false));
  }
}

TEST_F(SharedUnigram, AgreesOnEveryCase) {
  std::vector<SharedCase> cases = readCases(
      folder.parent_path() / "bge-wordpiece/cases.inp", folder / "uni.hf.out");
  EXPECT_EQ(cases.size(), 47u);
  for (const SharedCase &each : cases) {
    SCOPED_TRACE(each.text);
    // The ids are SentencePiece's, which has three special tokens rather than
    // four, and of those the one for what is unknown first.
    std::vector<int32_t> ids = encoded(*tokenizer, each.text);
    for (int32_t &id : ids)
      id = id == 3 ? 0 : id - 1;
    EXPECT_EQ(ids, each.ids);
  }
}

TEST_P(SharedTokenizer, AgreesOnEveryCase) {
  std::vector<SharedCase> cases =
      readCases(folder / "cases.inp", folder / "cases.out");
  for (const auto &[text, expected] : cases) {
    SCOPED_TRACE(text);
    std::vector<int32_t> ids = encoded(*tokenizer, text);
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(tokenizer->decode(ids, false), text);
    EXPECT_EQ(streamed(*tokenizer, ids, false), text);
    StreamingDecoder continuation(*tokenizer, false);
    continuation.skip(encoded(*tokenizer, "a"));
    std::string continued, bytes;
    for (int32_t id : ids) {
      continued += continuation.decode(id);
      bytes += tokenizer->bytesOf(id);
    }
    EXPECT_EQ(bytes, continued + continuation.flush());
  }
  EXPECT_EQ(cases.size(), 47u);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, SharedTokenizer,
                         testing::Values("llama2-spm", "llama3-bpe"),
                         [](const auto &info) {
                           return info.param.substr(0, info.param.find('-'));
                         });

TEST_P(SharedTokenizer, ContinuationsAddUp) {
  std::mt19937 random(17);
  expectContinuationsAddUp(*tokenizer, random, 300);
}

TEST_P(SharedTokenizer, MakesNoSpecialTokenOfTheirText) {
  int found = 0;
  for (size_t i = 0; i != tokenizer->vocabularySize(); ++i) {
    auto id = static_cast<int32_t>(i);
    if (!tokenizer->isSpecial(id))
      continue;
    ++found;
    std::string text = "a" + std::string(*tokenizer->tokenOf(id)) + "b";
    EXPECT_TRUE(std::ranges::count(encoded(*tokenizer, text), id)) << text;
    auto ids = tokenizer->encode(text);
    ASSERT_TRUE(ids) << ids.error().message;
    for (int32_t each : *ids)
      EXPECT_FALSE(tokenizer->isSpecial(each)) << text;
    EXPECT_EQ(tokenizer->decode(*ids, /*skipSpecialTokens=*/true), text);
  }
  EXPECT_GT(found, 2);
}

TEST_F(SharedLlama3, NamesTheTokensOfTheConfiguration) {
  EXPECT_EQ(tokenizer->vocabularySize(), 128256u);
  EXPECT_EQ(tokenizer->beginningOfSequenceId(), 128000);
  EXPECT_EQ(tokenizer->endOfSequenceId(), 128001);
  EXPECT_TRUE(tokenizer->isSpecial(128009));
  EXPECT_EQ(tokenizer->tokenOf(128009), "<|eot_id|>");
}
