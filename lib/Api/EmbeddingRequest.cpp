//===- EmbeddingRequest.cpp - Texts to embed ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/EmbeddingRequest.h"

#include "EncoderFields.h"

#include <algorithm>

using namespace sandwich;

/// Tokens are counted already.
static void checkTokens(ObjectReader &reader, const std::string &name,
                        const std::vector<int32_t> &tokens,
                        const EncoderCapabilities &encoder,
                        const InputTruncation &truncation) {
  const auto unknown = std::ranges::find_if(tokens, [&](int32_t token) {
    return static_cast<uint64_t>(token) >= encoder.vocabularySize;
  });
  if (unknown != tokens.end())
    return reader.refuse(name, name + " has the token " +
                                   std::to_string(*unknown) +
                                   "; this model's vocabulary has " +
                                   std::to_string(encoder.vocabularySize));
  auto read = tokensToRead(tokens.size(), encoder, truncation, name);
  if (auto *error = std::get_if<ApiError>(&read))
    reader.refuse(std::move(*error));
}

static void checkInputs(ObjectReader &reader, const EmbeddingRequest &request,
                        const EncoderCapabilities &encoder) {
  const bool hasPrompt = reader.find("prompt_name") != nullptr;
  for (size_t i = 0; i < request.inputs.prompts.size() && !reader.hasError();
       ++i) {
    const Prompt &input = request.inputs.prompts[i];
    const std::string name = request.inputs.nameOf(i);
    if (const auto *text = std::get_if<std::string>(&input)) {
      if (text->empty())
        reader.refuse(ApiError::emptyInput(name));
      continue;
    }
    checkTokens(reader, name, std::get<std::vector<int32_t>>(input), encoder,
                request.truncation);
    if (hasPrompt)
      reader.refuse("prompt_name",
                    "prompt_name is for texts, and " + name + " has token ids");
  }
}

static uint64_t readDimensions(ObjectReader &reader,
                               const EncoderCapabilities &encoder) {
  const auto all = static_cast<int64_t>(encoder.dimensions);
  const int64_t wanted = reader.integer("dimensions", 1, all).value_or(all);
  if (wanted != all && !encoder.isMatryoshka)
    reader.refuse("dimensions", "dimensions is " + std::to_string(wanted) +
                                    "; this model's embeddings have " +
                                    std::to_string(all) +
                                    " and cannot be shortened");
  return static_cast<uint64_t>(wanted);
}

/// Reads what differs last, so that all of it is known when the inputs are
/// checked.
template <typename ReadMore>
static std::variant<EmbeddingRequest, ApiError>
parse(std::string_view body, const EncoderLookup &lookup,
      std::string_view field, ReadMore readMore) {
  EmbeddingRequest request;
  auto error = readObject(body, [&](ObjectReader &reader) {
    const EncoderCapabilities *encoder = readModel(
        reader, lookup, EncoderCapabilities::Kind::Embedding, request.model);
    if (!encoder)
      return;
    request.inputs = readPrompts(reader, field, encoder->maxInputs);
    request.prefix = readPromptPrefix(reader, *encoder);
    request.dimensions = readDimensions(reader, *encoder);
    readMore(reader, *encoder, request);
    checkInputs(reader, request, *encoder);
  });
  if (error)
    return *std::move(error);
  return request;
}

static EmbeddingEncoding readEncoding(ObjectReader &reader) {
  const Json *format = reader.find("encoding_format");
  if (format && *format == "base64")
    return EmbeddingEncoding::Base64;
  if (format && *format != "float")
    reader.refuseValue("encoding_format", *format, "\"float\" or \"base64\"");
  return EmbeddingEncoding::Float;
}

std::variant<EmbeddingRequest, ApiError>
sandwich::parseEmbeddingRequest(std::string_view body,
                                const EncoderLookup &lookup) {
  return parse(body, lookup, "input",
               [](ObjectReader &reader, const EncoderCapabilities &encoder,
                  EmbeddingRequest &request) {
                 request.encoding = readEncoding(reader);
                 request.normalize = reader.boolean("normalize").value_or(true);
                 readPromptTruncation(reader, encoder, request.truncation);
                 reader.requireDefault("use_activation", true);
                 reader.requireDefault("add_special_tokens", true);
                 reader.requireDefault("embed_dtype", "float32");
                 reader.requireDefault("endianness", "little");
                 ignoreCaller(reader);
               });
}

std::variant<EmbeddingRequest, ApiError>
sandwich::parseTeiEmbedRequest(std::string_view body,
                               const EncoderLookup &lookup) {
  return parse(body, lookup, "inputs",
               [](ObjectReader &reader, const EncoderCapabilities &,
                  EmbeddingRequest &request) {
                 request.normalize = reader.boolean("normalize").value_or(true);
                 readTruncation(reader, request.truncation);
               });
}

std::variant<EmbeddingRequest, ApiError>
sandwich::parseTeiEmbedAllRequest(std::string_view body,
                                  const EncoderLookup &lookup) {
  return parse(body, lookup, "inputs",
               [](ObjectReader &reader, const EncoderCapabilities &encoder,
                  EmbeddingRequest &request) {
                 request.normalize = false;
                 reader.requireDefault("normalize", false);
                 reader.requireDefault("dimensions", encoder.dimensions);
                 readTruncation(reader, request.truncation);
               });
}
