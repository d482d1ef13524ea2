//===- SimilarityRequest.cpp - POST /similarity ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/SimilarityRequest.h"

#include "EncoderFields.h"

using namespace sandwich;

static void readInputs(ObjectReader &reader, const EncoderCapabilities &encoder,
                       SimilarityRequest &request) {
  request.source = readText(reader, "source_sentence");
  // The source is an input itself.
  if (encoder.maxInputs < 2)
    reader.refuse("sentences", reader.pathOf("sentences") +
                                   " are for models that take more than one "
                                   "input, as this one does not");
  request.sentences = readTexts(reader, "sentences", encoder.maxInputs - 1);
  for (size_t i = 0; i < request.sentences.size(); ++i)
    if (request.sentences[i].empty())
      reader.refuse(
          ApiError::emptyInput(reader.pathOf(indexed("sentences", i))));
}

std::variant<SimilarityRequest, ApiError>
sandwich::parseTeiSimilarityRequest(std::string_view body,
                                    const EncoderLookup &lookup) {
  SimilarityRequest request;
  auto error = readObject(body, [&](ObjectReader &reader) {
    const EncoderCapabilities *encoder = readModel(
        reader, lookup, EncoderCapabilities::Kind::Embedding, request.model);
    if (!encoder)
      return;
    if (!reader.find("inputs"))
      reader.refuse("inputs", "inputs is missing");
    reader.within("inputs", [&](ObjectReader &inputs) {
      readInputs(inputs, *encoder, request);
    });
    // Without parameters there may be a default prompt.
    const Json none = Json::object();
    ObjectReader defaults(none, "parameters.");
    request.prefix = readPromptPrefix(defaults, *encoder);
    reader.within("parameters", [&](ObjectReader &parameters) {
      request.prefix = readPromptPrefix(parameters, *encoder);
      readTruncation(parameters, request.truncation);
    });
  });
  if (error)
    return *std::move(error);
  return request;
}
