//===- EncoderRequestTest.cpp - Requests of embeddings and ranks ----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/EmbeddingRequest.h"
#include "sandwich/Api/RerankRequest.h"
#include "sandwich/Api/SimilarityRequest.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

using Tokens = std::vector<int32_t>;

const EncoderCapabilities embedder = {
    .kind = EncoderCapabilities::Kind::Embedding,
    .maxInputTokens = 8,
    .vocabularySize = 100,
    .dimensions = 6,
    .isMatryoshka = true,
    .maxInputs = 4,
    .prompts = {{"query", "query: "}, {"passage", "passage: "}},
    .defaultPrompt = {}};

const EncoderCapabilities reranker = {.kind =
                                          EncoderCapabilities::Kind::Reranker,
                                      .maxInputTokens = 8,
                                      .vocabularySize = 100,
                                      .dimensions = 0,
                                      .isMatryoshka = false,
                                      .maxInputs = 4,
                                      .prompts = {},
                                      .defaultPrompt = {}};

EncoderLookup serve(const EncoderCapabilities &capabilities) {
  return [&](const std::string &model)
             -> std::variant<const EncoderCapabilities *, ApiError> {
    if (model == "absent")
      return ApiError::unknownModel(model);
    return &capabilities;
  };
}

template <typename Request>
using Parse = std::variant<Request, ApiError> (*)(std::string_view,
                                                  const EncoderLookup &);

template <typename Request>
Request read(Parse<Request> parse, const std::string &body,
             const EncoderCapabilities &capabilities) {
  auto parsed = parse(body, serve(capabilities));
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << body << ": " << error->message;
  return error ? Request{} : std::get<Request>(parsed);
}

template <typename Request>
ApiError errorOf(Parse<Request> parse, const std::string &body,
                 const EncoderCapabilities &capabilities) {
  auto parsed = parse(body, serve(capabilities));
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_TRUE(error) << body;
  return error ? *error : ApiError{};
}

EmbeddingRequest embedding(const std::string &fields,
                           const EncoderCapabilities &model = embedder) {
  return read(parseEmbeddingRequest, "{\"input\": \"t\"" + fields + "}", model);
}

ApiError embeddingError(const std::string &body,
                        const EncoderCapabilities &model = embedder) {
  return errorOf(parseEmbeddingRequest, body, model);
}

EmbeddingRequest embed(const std::string &fields) {
  return read(parseTeiEmbedRequest, "{\"inputs\": \"t\"" + fields + "}",
              embedder);
}

RerankRequest rerank(const std::string &fields) {
  return read(parseRerankRequest,
              R"({"query": "q", "documents": ["a", {"text": "b"}, ""])" +
                  fields + "}",
              reranker);
}

ApiError rerankError(const std::string &body) {
  return errorOf(parseRerankRequest, body, reranker);
}

RerankRequest teiRerank(const std::string &fields) {
  return read(parseTeiRerankRequest,
              R"({"query": "q", "texts": ["a", "b"])" + fields + "}", reranker);
}

ApiError similarityError(const std::string &body,
                         const EncoderCapabilities &model = embedder) {
  return errorOf(parseTeiSimilarityRequest, body, model);
}

/// A field with a value that is wrong, and what the error must say of it.
struct Wrong {
  const char *field;
  const char *value;
  const char *message;
};

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

TEST(EncoderCapabilities, AreValidWhereARequestIsPossible) {
  EXPECT_TRUE(embedder.validate());
  EXPECT_TRUE(reranker.validate());
  const auto message = [](auto change) {
    EncoderCapabilities wrong = embedder;
    change(wrong);
    const Status status = wrong.validate();
    EXPECT_FALSE(status);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(message([](auto &wrong) { wrong.maxInputTokens = 0; }),
            "the encoder's longest input is 0; it must be from 1 to 16777216");
  EXPECT_EQ(message([](auto &wrong) { wrong.vocabularySize = 0; }),
            "the encoder's vocabulary is 0; it must be from 1 to 16777216");
  EXPECT_EQ(message([](auto &wrong) { wrong.maxInputs = 0; }),
            "the encoder's number of inputs of a request is 0; it must be from "
            "1 to 2147483648");
  EXPECT_EQ(message([](auto &wrong) { wrong.dimensions = UINT64_MAX; }),
            "the encoder's number of dimensions is 18446744073709551615; it "
            "must be from 1 to 1048576");
  EXPECT_EQ(message([](auto &wrong) { wrong.defaultPrompt = "q"; }),
            "the encoder's default prompt 'q' is not among its prompts");
}

TEST(EncoderCapabilities, DecideWhichRequestsAModelTakes) {
  const ApiError noEmbeddings =
      embeddingError(R"({"input": "t", "model": "m"})", reranker);
  EXPECT_EQ(noEmbeddings.status, 400u);
  EXPECT_EQ(noEmbeddings.param, "model");
  EXPECT_EQ(noEmbeddings.message,
            "this model is a reranker, and has no embeddings; /rerank and "
            "/v1/rerank are for it");
  EXPECT_EQ(errorOf(parseTeiRerankRequest, R"({"query": "q", "texts": ["a"]})",
                    embedder)
                .message,
            "this model is no reranker; /embed and /v1/embeddings are for it");
  EXPECT_EQ(errorOf(parseTeiEmbedAllRequest, "{}", reranker).param, "model");
  EXPECT_EQ(similarityError("{}", reranker).param, "model");
  const ApiError absent =
      embeddingError(R"({"input": "t", "model": "absent"})");
  EXPECT_EQ(absent.status, 404u);
  EXPECT_EQ(absent.code, "model_not_found");
  // Nobody looks for a name that is none.
  EXPECT_EQ(embeddingError(R"({"input": "t", "model": 5})").message,
            "model is 5; it must be a string");
}

TEST(InputTruncation, RefusesLongInputsWithBothNumbers) {
  const auto read = [](uint64_t count, const InputTruncation &truncation) {
    auto tokens = tokensToRead(count, embedder, truncation, "input[1]");
    const auto *read = std::get_if<uint64_t>(&tokens);
    EXPECT_TRUE(read) << count;
    return read ? *read : 0;
  };
  EXPECT_EQ(read(1, {}), 1u);
  EXPECT_EQ(read(8, {}), 8u);
  EXPECT_EQ(read(8, {.allowed = true}), 8u);
  EXPECT_EQ(read(9, {.allowed = true}), 8u);
  EXPECT_EQ(read(UINT64_MAX, {.allowed = true}), 8u);
  EXPECT_EQ(read(9, {.allowed = true, .maxTokens = 3}), 3u);
  EXPECT_EQ(read(2, {.allowed = true, .maxTokens = 3}), 2u);

  auto tokens = tokensToRead(9, embedder, {}, "input[1]");
  ASSERT_TRUE(std::holds_alternative<ApiError>(tokens));
  const auto &error = std::get<ApiError>(tokens);
  EXPECT_EQ(error.status, 400u);
  EXPECT_EQ(error.message, "input[1] has 9 tokens; this model reads at most 8, "
                           "and the request does not ask to truncate it");
  EXPECT_EQ(error.type, "invalid_request_error");
  EXPECT_EQ(error.param, "input[1]");
  EXPECT_EQ(error.code, "context_length_exceeded");

  tokens = tokensToRead(0, embedder, {.allowed = true}, "input");
  ASSERT_TRUE(std::holds_alternative<ApiError>(tokens));
  EXPECT_EQ(std::get<ApiError>(tokens).message, "input is empty");
}

//===----------------------------------------------------------------------===//
// Embeddings, as OpenAI has them
//===----------------------------------------------------------------------===//

TEST(EmbeddingRequest, HasOpenAIsDefaults) {
  const EmbeddingRequest request = embedding("");
  EXPECT_EQ(request.model, "");
  EXPECT_EQ(request.inputs.prompts, std::vector<Prompt>{"t"});
  EXPECT_EQ(request.inputs.nameOf(0), "input");
  EXPECT_EQ(request.prefix, "");
  EXPECT_FALSE(request.truncation.allowed);
  EXPECT_EQ(request.dimensions, 6u);
  EXPECT_TRUE(request.normalize);
  EXPECT_EQ(request.encoding, EmbeddingEncoding::Float);
}

TEST(EmbeddingRequest, IsRead) {
  const EmbeddingRequest request =
      embedding(R"(, "model": "m", "encoding_format": "base64",
                   "dimensions": 2, "user": "u", "normalize": false,
                   "prompt_name": "query", "truncate_prompt_tokens": 5,
                   "truncation_side": "left", "use_activation": true)");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.encoding, EmbeddingEncoding::Base64);
  EXPECT_EQ(request.dimensions, 2u);
  EXPECT_FALSE(request.normalize);
  EXPECT_EQ(request.prefix, "query: ");
  EXPECT_TRUE(request.truncation.allowed);
  EXPECT_EQ(request.truncation.maxTokens, 5u);
  EXPECT_EQ(request.truncation.direction, TruncationDirection::Left);
  const InputTruncation all =
      embedding(R"(, "truncate_prompt_tokens": -1)").truncation;
  EXPECT_TRUE(all.allowed);
  EXPECT_FALSE(all.maxTokens);
  EXPECT_EQ(all.direction, TruncationDirection::Right);
}

TEST(EmbeddingRequest, TakesInputsOfEveryKind) {
  const auto inputs = [](const std::string &value) {
    return read(parseEmbeddingRequest, "{\"input\": " + value + "}", embedder)
        .inputs;
  };
  EXPECT_EQ(inputs(R"(["a"])").prompts, std::vector<Prompt>{"a"});
  EXPECT_EQ(inputs(R"(["a"])").nameOf(0), "input[0]");
  EXPECT_EQ(inputs(R"(["a", "b"])").prompts, (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(inputs("[1, 99]").prompts, std::vector<Prompt>{Tokens({1, 99})});
  EXPECT_EQ(inputs("[1, 99]").nameOf(0), "input");
  EXPECT_EQ(inputs("[[1], [2, 3]]").prompts,
            (std::vector<Prompt>{Tokens{1}, Tokens{2, 3}}));
  EXPECT_EQ(inputs("[[1], [2, 3]]").nameOf(1), "input[1]");
  EXPECT_EQ(inputs(R"(["a", [2]])").prompts,
            (std::vector<Prompt>{"a", Tokens{2}}));
}

TEST(EmbeddingRequest, RefusesInputsByName) {
  const auto expect = [](const std::string &value, const std::string &param,
                         const std::string &message, const char *code) {
    const ApiError error = embeddingError("{\"input\": " + value + "}");
    EXPECT_EQ(error.status, 400u);
    EXPECT_EQ(error.param, param) << value;
    EXPECT_EQ(error.message, message);
    EXPECT_EQ(error.code.value_or("none"), code);
  };
  expect("null", "input", "input is missing", "none");
  expect("5", "input",
         "input is 5; it must be a string, a list of strings, or token ids",
         "none");
  expect("{}", "input",
         "input is an object; it must be a string, a list of strings, or token "
         "ids",
         "none");
  expect(R"("")", "input", "input is empty", "empty_input");
  expect("[]", "input", "input is empty", "empty_input");
  expect(R"(["a", ""])", "input[1]", "input[1] is empty", "empty_input");
  expect("[[1], []]", "input[1]", "input[1] is empty", "empty_input");
  expect(R"(["a", 5])", "input[1]",
         "input[1] is 5; it must be a string, a list of strings, or token ids",
         "none");
  expect(R"([1, "a"])", "input",
         "input is \"a\"; it must be a list of token ids", "none");
  expect("[[1], [-1]]", "input[1]",
         "input[1] is -1; it must be a list of token ids", "none");
  expect("[1.5]", "input", "input is 1.5; it must be a list of token ids",
         "none");
  expect("[[[1]]]", "input[0]",
         "input[0] is a list; it must be a list of token ids", "none");
  expect("[1, 100]", "input",
         "input has the token 100; this model's vocabulary has 100", "none");
  expect("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "input",
         "input has 9 tokens; this model reads at most 8, and the request does "
         "not ask to truncate it",
         "context_length_exceeded");
  expect(R"(["a", "b", "c", "d", "e"])", "input",
         "input has 5 entries; it must have at most 4", "too_many_inputs");
}

TEST(EmbeddingRequest, TakesMoreTokensWhereTheyMayBeCut) {
  EXPECT_TRUE(std::holds_alternative<EmbeddingRequest>(parseEmbeddingRequest(
      R"({"input": [1, 2, 3, 4, 5, 6, 7, 8, 9], "truncate_prompt_tokens": -1})",
      serve(embedder))));
}

TEST(EmbeddingRequest, RefusesFieldsByName) {
  for (const auto &[field, value, message] : std::vector<Wrong>{
           {"model", "[]", "model is a list; it must be a string"},
           {"encoding_format", "\"int8\"",
            "encoding_format is \"int8\"; it must be \"float\" or \"base64\""},
           {"encoding_format", "1",
            "encoding_format is 1; it must be \"float\" or \"base64\""},
           {"dimensions", "0",
            "dimensions is 0; it must be a whole number from 1 to 6"},
           {"dimensions", "7",
            "dimensions is 7; it must be a whole number from 1 to 6"},
           {"dimensions", "1.5",
            "dimensions is 1.5; it must be a whole number from 1 to 6"},
           {"normalize", "1", "normalize is 1; it must be true or false"},
           {"prompt_name", "5", "prompt_name is 5; it must be a string"},
           {"prompt_name", "\"q\"",
            "prompt_name is \"q\"; it must be the name of a prompt of this "
            "model, which has \"passage\", \"query\""},
           {"truncate_prompt_tokens", "9",
            "truncate_prompt_tokens is 9; it must be a whole number from -1 to "
            "8"},
           {"truncate_prompt_tokens", "-2",
            "truncate_prompt_tokens is -2; it must be a whole number from -1 "
            "to 8"},
           {"truncate_prompt_tokens", "0",
            "truncate_prompt_tokens is 0; it must be -1 or above 0"},
           {"truncation_side", "\"up\"",
            "truncation_side is \"up\"; it must be \"left\" or \"right\""},
           {"use_activation", "false",
            "use_activation is false; this server knows it only as true"},
           {"add_special_tokens", "false",
            "add_special_tokens is false; this server knows it only as true"},
           {"embed_dtype", "\"float16\"",
            "embed_dtype is \"float16\"; this server knows it only as "
            "\"float32\""},
           {"endianness", "\"big\"",
            "endianness is \"big\"; this server knows it only as \"little\""},
           {"inputs", "\"t\"",
            "\"inputs\" is not known here, and it might change what you get"},
       }) {
    const ApiError error = embeddingError(
        "{\"input\": \"t\", \"" + std::string(field) + "\": " + value + "}");
    EXPECT_EQ(error.status, 400u);
    EXPECT_EQ(error.type, "invalid_request_error");
    EXPECT_EQ(error.param, field);
    EXPECT_EQ(error.message, message);
  }
}

TEST(EmbeddingRequest, ShortensOnlyEmbeddingsThatCanBe) {
  EncoderCapabilities whole = embedder;
  whole.isMatryoshka = false;
  EXPECT_EQ(embedding(R"(, "dimensions": 6)", whole).dimensions, 6u);
  const ApiError error =
      embeddingError(R"({"input": "t", "dimensions": 3})", whole);
  EXPECT_EQ(error.param, "dimensions");
  EXPECT_EQ(error.message, "dimensions is 3; this model's embeddings have 6 "
                           "and cannot be shortened");
}

TEST(EmbeddingRequest, HasAPromptForTextsOnly) {
  EncoderCapabilities withDefault = embedder;
  withDefault.defaultPrompt = "passage";
  EXPECT_EQ(embedding("", withDefault).prefix, "passage: ");
  EXPECT_EQ(embedding(R"(, "prompt_name": "query")", withDefault).prefix,
            "query: ");
  // A default does not change what tokens are.
  EXPECT_TRUE(std::holds_alternative<EmbeddingRequest>(
      parseEmbeddingRequest(R"({"input": [1]})", serve(withDefault))));
  const ApiError error =
      embeddingError(R"({"input": ["a", [1]], "prompt_name": "query"})");
  EXPECT_EQ(error.param, "prompt_name");
  EXPECT_EQ(error.message,
            "prompt_name is for texts, and input[1] has token ids");
  EncoderCapabilities without = embedder;
  without.prompts.clear();
  EXPECT_EQ(
      embeddingError(R"({"input": "t", "prompt_name": "q"})", without).message,
      "prompt_name is \"q\"; it must be the name of a prompt of this model, "
      "which has none");
}

TEST(EmbeddingRequest, SaysWhereItIsNoJson) {
  EXPECT_EQ(embeddingError("{\"input\": }").message,
            "the request's body is not valid JSON at byte 11");
  EXPECT_EQ(embeddingError(std::string(100, '[')).message,
            "the request's body is JSON nested deeper than 64");
  EXPECT_EQ(embeddingError("[]").message,
            "the request is a list; it must be an object");
}

//===----------------------------------------------------------------------===//
// Embeddings, as text-embeddings-inference has them
//===----------------------------------------------------------------------===//

TEST(TeiEmbedRequest, HasItsDefaults) {
  const EmbeddingRequest request = embed("");
  EXPECT_EQ(request.inputs.prompts, std::vector<Prompt>{"t"});
  EXPECT_EQ(request.inputs.nameOf(0), "inputs");
  EXPECT_TRUE(request.normalize);
  EXPECT_FALSE(request.truncation.allowed);
  EXPECT_EQ(request.truncation.direction, TruncationDirection::Right);
  EXPECT_EQ(request.prefix, "");
  EXPECT_EQ(request.dimensions, 6u);
  EXPECT_EQ(request.encoding, EmbeddingEncoding::Float);
}

TEST(TeiEmbedRequest, IsRead) {
  const EmbeddingRequest request =
      embed(R"(, "normalize": false, "truncate": true,
               "truncation_direction": "Left", "prompt_name": "passage",
               "dimensions": 3)");
  EXPECT_FALSE(request.normalize);
  EXPECT_TRUE(request.truncation.allowed);
  EXPECT_EQ(request.truncation.direction, TruncationDirection::Left);
  EXPECT_EQ(request.prefix, "passage: ");
  EXPECT_EQ(request.dimensions, 3u);
  EXPECT_EQ(embed(R"(, "truncation_direction": "right")").truncation.direction,
            TruncationDirection::Right);
  EXPECT_EQ(read(parseTeiEmbedRequest, R"({"inputs": [[1], [2]]})", embedder)
                .inputs.prompts,
            (std::vector<Prompt>{Tokens{1}, Tokens{2}}));
}

TEST(TeiEmbedRequest, RefusesFieldsByName) {
  for (const auto &[field, value, message] : std::vector<Wrong>{
           {"normalize", "\"yes\"",
            "normalize is \"yes\"; it must be true or false"},
           {"truncate", "1", "truncate is 1; it must be true or false"},
           {"truncation_direction", "\"LEFT\"",
            "truncation_direction is \"LEFT\"; it must be \"left\" or "
            "\"right\""},
           {"prompt_name", "\"\"",
            "prompt_name is \"\"; it must be the name of a prompt of this "
            "model, which has \"passage\", \"query\""},
           {"dimensions", "-1",
            "dimensions is -1; it must be a whole number from 1 to 6"},
           {"encoding_format", "\"float\"",
            "\"encoding_format\" is not known here, and it might change what "
            "you get"}}) {
    for (const Parse<EmbeddingRequest> parse :
         {parseTeiEmbedRequest, parseTeiEmbedAllRequest}) {
      if (parse == parseTeiEmbedAllRequest &&
          std::string_view(field) == "normalize")
        continue;
      const ApiError error = errorOf(
          parse,
          "{\"inputs\": \"t\", \"" + std::string(field) + "\": " + value + "}",
          embedder);
      EXPECT_EQ(error.status, 400u);
      EXPECT_EQ(error.param, field);
      EXPECT_EQ(error.message, message);
    }
  }
  EXPECT_EQ(errorOf(parseTeiEmbedRequest, R"({"inputs": []})", embedder).code,
            "empty_input");
  EXPECT_EQ(errorOf(parseTeiEmbedRequest,
                    R"({"inputs": ["a", "b", "c", "d", "e"]})", embedder)
                .code,
            "too_many_inputs");
}

TEST(TeiEmbedAllRequest, GivesTokensAsTheModelHasThem) {
  const EmbeddingRequest request = read(
      parseTeiEmbedAllRequest,
      R"({"inputs": ["a", "b"], "truncate": true, "dimensions": 6})", embedder);
  EXPECT_FALSE(request.normalize);
  EXPECT_EQ(request.dimensions, 6u);
  EXPECT_TRUE(request.truncation.allowed);
  const auto message = [](const std::string &field) {
    return errorOf(parseTeiEmbedAllRequest,
                   "{\"inputs\": \"t\", " + field + "}", embedder)
        .message;
  };
  EXPECT_EQ(message(R"("normalize": true)"),
            "normalize is true; this server knows it only as false");
  EXPECT_EQ(message(R"("dimensions": 3)"),
            "dimensions is 3; this server knows it only as 6");
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

TEST(RerankRequest, HasCoheresDefaults) {
  const RerankRequest request = rerank("");
  EXPECT_EQ(request.query, "q");
  EXPECT_EQ(request.field, "documents");
  EXPECT_EQ(request.documents, (std::vector<std::string>{"a", "b", ""}));
  EXPECT_FALSE(request.rawScores);
  EXPECT_FALSE(request.returnDocuments);
  EXPECT_EQ(request.top, 3u);
  EXPECT_FALSE(request.truncation.allowed);
  EXPECT_FALSE(request.maxDocumentTokens);
}

TEST(RerankRequest, IsRead) {
  const RerankRequest request =
      rerank(R"(, "model": "m", "top_n": 2, "return_documents": true,
                "use_activation": false, "truncate_prompt_tokens": 7,
                "max_tokens_per_doc": 4096, "max_chunks_per_doc": 1,
                "rank_fields": ["text"], "user": "u")");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.top, 2u);
  EXPECT_TRUE(request.returnDocuments);
  EXPECT_TRUE(request.rawScores);
  EXPECT_EQ(request.truncation.maxTokens, 7u);
  EXPECT_EQ(request.maxDocumentTokens, 4096u);
  EXPECT_EQ(rerank(R"(, "top_n": 0)").top, 3u);
  EXPECT_EQ(rerank(R"(, "top_n": 100)").top, 3u);
}

TEST(RerankRequest, RefusesFieldsByName) {
  for (const auto &[field, value, message] : std::vector<Wrong>{
           {"top_n", "-1",
            "top_n is -1; it must be a whole number from 0 to 2147483647"},
           {"return_documents", "1",
            "return_documents is 1; it must be true or false"},
           {"use_activation", "\"\"",
            "use_activation is \"\"; it must be true or false"},
           {"max_tokens_per_doc", "0",
            "max_tokens_per_doc is 0; it must be a whole number from 1 to "
            "2147483647"},
           {"max_chunks_per_doc", "10",
            "max_chunks_per_doc is 10; this server knows it only as 1"},
           {"rank_fields", "[\"title\"]",
            "rank_fields is a list; it must be [\"text\"]"},
           {"truncate_prompt_tokens", "9",
            "truncate_prompt_tokens is 9; it must be a whole number from -1 to "
            "8"},
           {"texts", "[]",
            "\"texts\" is not known here, and it might change what you "
            "get"}}) {
    const ApiError error =
        rerankError(R"({"query": "q", "documents": ["a"], ")" +
                    std::string(field) + "\": " + value + "}");
    EXPECT_EQ(error.status, 400u);
    EXPECT_EQ(error.param, field);
    EXPECT_EQ(error.message, message);
  }
}

TEST(RerankRequest, RefusesTextsByName) {
  const auto expect = [](const std::string &body, const std::string &param,
                         const std::string &message) {
    const ApiError error = rerankError(body);
    EXPECT_EQ(error.param, param);
    EXPECT_EQ(error.message, message);
  };
  expect(R"({"documents": ["a"]})", "query", "query is missing");
  expect(R"({"query": "", "documents": ["a"]})", "query", "query is empty");
  expect(R"({"query": ["q"], "documents": ["a"]})", "query",
         "query is a list; it must be a string");
  expect(R"({"query": "q"})", "documents", "documents is missing");
  expect(R"({"query": "q", "documents": "a"})", "documents",
         "documents is \"a\"; it must be a list");
  expect(R"({"query": "q", "documents": []})", "documents",
         "documents is empty");
  expect(R"({"query": "q", "documents": ["a", "b", "c", "d", "e"]})",
         "documents", "documents has 5 entries; it must have at most 4");
  expect(R"({"query": "q", "documents": ["a", 5]})", "documents[1]",
         "documents[1] is 5; it must be a string or an object with a text");
  expect(R"({"query": "q", "documents": [{"title": "a"}]})",
         "documents[0].text", "documents[0].text must be a string");
  expect(R"({"query": "q", "documents": [{"text": 5}]})", "documents[0].text",
         "documents[0].text must be a string");
  expect(R"({"query": "q", "documents": [{"text": "a", "title": "b"}]})",
         "documents[0].title",
         "\"documents[0].title\" is not known here, and it might change what "
         "you get");
}

TEST(TeiRerankRequest, IsRead) {
  RerankRequest request = teiRerank("");
  EXPECT_EQ(request.query, "q");
  EXPECT_EQ(request.field, "texts");
  EXPECT_EQ(request.documents, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(request.rawScores);
  EXPECT_FALSE(request.returnDocuments);
  EXPECT_FALSE(request.truncation.allowed);
  EXPECT_EQ(request.top, 2u);
  request = teiRerank(R"(, "raw_scores": true, "return_text": true,
                         "truncate": true, "truncation_direction": "left")");
  EXPECT_TRUE(request.rawScores);
  EXPECT_TRUE(request.returnDocuments);
  EXPECT_TRUE(request.truncation.allowed);
  EXPECT_EQ(request.truncation.direction, TruncationDirection::Left);
}

TEST(TeiRerankRequest, RefusesFieldsByName) {
  const auto expect = [](const std::string &body, const std::string &param,
                         const std::string &message) {
    const ApiError error = errorOf(parseTeiRerankRequest, body, reranker);
    EXPECT_EQ(error.param, param);
    EXPECT_EQ(error.message, message);
  };
  expect(R"({"texts": ["a"]})", "query", "query is missing");
  expect(R"({"query": "q"})", "texts", "texts is missing");
  expect(R"({"query": "q", "texts": []})", "texts", "texts is empty");
  expect(R"({"query": "q", "texts": ["a", {"text": "b"}]})", "texts[1]",
         "texts[1] is an object; it must be a string");
  expect(R"({"query": "q", "texts": ["a", "b", "c", "d", "e"]})", "texts",
         "texts has 5 entries; it must have at most 4");
  expect(R"({"query": "q", "texts": ["a"], "raw_scores": 1})", "raw_scores",
         "raw_scores is 1; it must be true or false");
  expect(R"({"query": "q", "texts": ["a"], "return_text": "x"})", "return_text",
         "return_text is \"x\"; it must be true or false");
  expect(R"({"query": "q", "texts": ["a"], "truncate": 0})", "truncate",
         "truncate is 0; it must be true or false");
  expect(R"({"query": "q", "texts": ["a"], "truncation_direction": 0})",
         "truncation_direction",
         "truncation_direction is 0; it must be \"left\" or \"right\"");
  expect(R"({"query": "q", "texts": ["a"], "top_n": 1})", "top_n",
         "\"top_n\" is not known here, and it might change what you get");
}

//===----------------------------------------------------------------------===//
// Similarity
//===----------------------------------------------------------------------===//

TEST(TeiSimilarityRequest, IsRead) {
  const std::string inputs =
      R"({"inputs": {"source_sentence": "s", "sentences": ["a", "b", "c"]})";
  SimilarityRequest request =
      read(parseTeiSimilarityRequest, inputs + "}", embedder);
  EXPECT_EQ(request.source, "s");
  EXPECT_EQ(request.sentences, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(request.prefix, "");
  EXPECT_FALSE(request.truncation.allowed);
  request = read(parseTeiSimilarityRequest,
                 inputs + R"(, "parameters": {"truncate": true,
                             "truncation_direction": "Left",
                             "prompt_name": "query"}})",
                 embedder);
  EXPECT_TRUE(request.truncation.allowed);
  EXPECT_EQ(request.truncation.direction, TruncationDirection::Left);
  EXPECT_EQ(request.prefix, "query: ");
  EncoderCapabilities withDefault = embedder;
  withDefault.defaultPrompt = "passage";
  EXPECT_EQ(read(parseTeiSimilarityRequest, inputs + "}", withDefault).prefix,
            "passage: ");
}

TEST(TeiSimilarityRequest, RefusesFieldsByName) {
  const auto expect = [](const std::string &body, const std::string &param,
                         const std::string &message) {
    const ApiError error = similarityError(body);
    EXPECT_EQ(error.status, 400u);
    EXPECT_EQ(error.param, param);
    EXPECT_EQ(error.message, message);
  };
  const std::string inputs =
      R"({"inputs": {"source_sentence": "s", "sentences": ["a"]})";
  expect("{}", "inputs", "inputs is missing");
  expect(R"({"inputs": []})", "inputs",
         "inputs is a list; it must be an object");
  expect(R"({"inputs": {"sentences": ["a"]}})", "inputs.source_sentence",
         "inputs.source_sentence is missing");
  expect(R"({"inputs": {"source_sentence": "", "sentences": ["a"]}})",
         "inputs.source_sentence", "inputs.source_sentence is empty");
  expect(R"({"inputs": {"source_sentence": "s"}})", "inputs.sentences",
         "inputs.sentences is missing");
  expect(R"({"inputs": {"source_sentence": "s", "sentences": []}})",
         "inputs.sentences", "inputs.sentences is empty");
  expect(R"({"inputs": {"source_sentence": "s", "sentences": ["a", ""]}})",
         "inputs.sentences[1]", "inputs.sentences[1] is empty");
  expect(R"({"inputs": {"source_sentence": "s", "sentences": [[1]]}})",
         "inputs.sentences[0]",
         "inputs.sentences[0] is a list; it must be a string");
  // The source is the fourth input.
  expect(R"({"inputs": {"source_sentence": "s",
                        "sentences": ["a", "b", "c", "d"]}})",
         "inputs.sentences",
         "inputs.sentences has 4 entries; it must have at most 3");
  expect(inputs + R"(, "parameters": {"normalize": true}})",
         "parameters.normalize",
         "\"parameters.normalize\" is not known here, and it might change what "
         "you get");
  expect(inputs + R"(, "parameters": {"prompt_name": "q"}})",
         "parameters.prompt_name",
         "parameters.prompt_name is \"q\"; it must be the name of a prompt of "
         "this model, which has \"passage\", \"query\"");
  expect(inputs + R"(, "parameters": {"truncate": "x"}})",
         "parameters.truncate",
         "parameters.truncate is \"x\"; it must be true or false");
  EncoderCapabilities one = embedder;
  one.maxInputs = 1;
  EXPECT_EQ(similarityError(inputs + "}", one).message,
            "inputs.sentences are for models that take more than one input, as "
            "this one does not");
}

} // namespace
