//===- RerankRequest.cpp - Texts to rank ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/RerankRequest.h"

#include "EncoderFields.h"

#include <algorithm>

using namespace sandwich;

template <typename Read>
static std::variant<RerankRequest, ApiError>
parse(std::string_view body, const EncoderLookup &lookup, Read read) {
  RerankRequest request;
  auto error = readObject(body, [&](ObjectReader &reader) {
    const EncoderCapabilities *encoder = readModel(
        reader, lookup, EncoderCapabilities::Kind::Reranker, request.model);
    if (!encoder)
      return;
    request.query = readText(reader, "query");
    read(reader, *encoder, request);
  });
  if (error)
    return *std::move(error);
  return request;
}

/// Strings, or objects with one.
static std::vector<std::string>
readDocuments(ObjectReader &reader, const EncoderCapabilities &encoder) {
  std::vector<std::string> documents;
  const Json *list = readNonEmptyList(reader, "documents", encoder.maxInputs);
  for (size_t i = 0; list && i < list->size() && !reader.hasError(); ++i) {
    const Json &document = (*list)[i];
    const std::string name = indexed("documents", i);
    if (document.is_string()) {
      documents.push_back(document.get<std::string>());
      continue;
    }
    if (!document.is_object()) {
      reader.refuseValue(name, document, "a string or an object with a text");
      break;
    }
    ObjectReader fields(document, name + ".");
    const Json *text = fields.find("text");
    if (text && text->is_string())
      documents.push_back(text->get<std::string>());
    else
      fields.refuse("text", fields.pathOf("text") + " must be a string");
    if (auto error = fields.finish())
      reader.refuse(*std::move(error));
  }
  return documents;
}

std::variant<RerankRequest, ApiError>
sandwich::parseRerankRequest(std::string_view body,
                             const EncoderLookup &lookup) {
  return parse(
      body, lookup,
      [](ObjectReader &reader, const EncoderCapabilities &encoder,
         RerankRequest &request) {
        request.field = "documents";
        request.documents = readDocuments(reader, encoder);
        const size_t all = request.documents.size();
        const auto top = static_cast<size_t>(
            reader.integer("top_n", 0, INT32_MAX).value_or(0));
        request.top = top == 0 ? all : std::min(top, all);
        request.returnDocuments =
            reader.boolean("return_documents").value_or(false);
        request.rawScores = !reader.boolean("use_activation").value_or(true);
        readPromptTruncation(reader, encoder, request.truncation);
        if (auto tokens = reader.integer("max_tokens_per_doc", 1, INT32_MAX))
          request.maxDocumentTokens = static_cast<uint64_t>(*tokens);
        // A document is one piece, whose field is its text.
        reader.requireDefault("max_chunks_per_doc", 1);
        if (const Json *fields = reader.find("rank_fields");
            fields && *fields != Json::array({"text"}))
          reader.refuseValue("rank_fields", *fields, "[\"text\"]");
        ignoreCaller(reader);
      });
}

std::variant<RerankRequest, ApiError>
sandwich::parseTeiRerankRequest(std::string_view body,
                                const EncoderLookup &lookup) {
  return parse(
      body, lookup,
      [](ObjectReader &reader, const EncoderCapabilities &encoder,
         RerankRequest &request) {
        request.field = "texts";
        request.documents = readTexts(reader, "texts", encoder.maxInputs);
        request.top = request.documents.size();
        request.rawScores = reader.boolean("raw_scores").value_or(false);
        request.returnDocuments = reader.boolean("return_text").value_or(false);
        readTruncation(reader, request.truncation);
      });
}
