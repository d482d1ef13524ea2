//===- EncoderEndpoints.cpp - Vectors and scores of texts -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// POST /v1/embeddings of OpenAI, /v1/rerank of Cohere and Jina, and /embed,
/// /embed_all, /rerank, /similarity and /info of text-embeddings-inference.
///
//===----------------------------------------------------------------------===//

#include "EncodingAnswer.h"
#include "Endpoints.h"
#include "GenerationSetup.h"
#include "LoadedEncoder.h"
#include "Responses.h"

#include "sandwich/Api/EncoderAnswers.h"
#include "sandwich/Api/ObjectReader.h"
#include "sandwich/Api/SimilarityRequest.h"
#include "sandwich/Api/TeiError.h"

#include <algorithm>
#include <numeric>

using namespace sandwich;

namespace {

using Kind = EncoderCapabilities::Kind;

/// Finds the model of a request, and keeps it.
class ModelOfRequest {
public:
  ModelOfRequest(const EndpointContext &context, Kind kind)
      : context(context), kind(kind) {}

  EncoderLookup lookup() {
    return [this](const std::string &name)
               -> std::variant<const EncoderCapabilities *, ApiError> {
      auto result = context.models.findEncoder(name, kind);
      if (auto *error = std::get_if<ApiError>(&result))
        return std::move(*error);
      found = std::get<const LoadedEncoder *>(result);
      return &found->capabilities;
    };
  }
  /// Of a request that was read.
  const LoadedEncoder &model() const { return *found; }
  std::string name() const { return found ? found->name : ""; }

private:
  const EndpointContext &context;
  Kind kind;
  const LoadedEncoder *found = nullptr;
};

/// The tokens of texts, one after another.
class RequestedTexts {
public:
  RequestedTexts(const LoadedEncoder &model, const InputTruncation &truncation,
                 EncoderOutput output)
      : model(model), truncation(truncation), output(output) {}

  /// Adds a text, or a pair, that errors call `name`.
  std::optional<ApiError> add(const std::string &name, std::string_view first,
                              std::optional<std::string_view> second = {});
  std::optional<ApiError> add(const std::string &name,
                              std::vector<int32_t> ids);

  uint64_t countTokens() const {
    return std::accumulate(
        texts.begin(), texts.end(), uint64_t{0},
        [](uint64_t sum, const auto &text) { return sum + text.ids.size(); });
  }
  std::vector<EncodingRequest> take() { return std::move(texts); }

private:
  const LoadedEncoder &model;
  const InputTruncation &truncation;
  EncoderOutput output;
  std::vector<EncodingRequest> texts;
};

} // namespace

std::optional<ApiError>
RequestedTexts::add(const std::string &name, std::string_view first,
                    std::optional<std::string_view> second) {
  if (!model.text)
    return ApiError::ofField(name, "the model '" + model.name +
                                       "' has no tokenizer; give token ids");
  TextOptions options{.prompt = "",
                      .truncateLeft =
                          truncation.direction == TruncationDirection::Left};
  // Whole first, as the error tells how long it is.
  Result<TypedIds> ids = model.text->encodeWhole(first, second);
  if (!ids)
    return ApiError::ofField(name, name + ": " + ids.error().message);
  auto kept =
      tokensToRead(ids->ids.size(), model.capabilities, truncation, name);
  if (auto *error = std::get_if<ApiError>(&kept))
    return std::move(*error);
  if (std::get<uint64_t>(kept) < ids->ids.size()) {
    options.truncate = true;
    options.maxTokens = std::get<uint64_t>(kept);
    ids = model.text->encode(first, second, options);
    if (!ids)
      return ApiError::ofField(name, name + ": " + ids.error().message);
  }
  texts.push_back({.ids = std::move(ids->ids),
                   .types = std::move(ids->typeIds),
                   .output = output,
                   .completion = {}});
  return std::nullopt;
}

std::optional<ApiError> RequestedTexts::add(const std::string &name,
                                            std::vector<int32_t> ids) {
  auto kept = tokensToRead(ids.size(), model.capabilities, truncation, name);
  if (auto *error = std::get_if<ApiError>(&kept))
    return std::move(*error);
  const auto count = static_cast<std::ptrdiff_t>(std::get<uint64_t>(kept));
  if (truncation.direction == TruncationDirection::Left)
    ids.erase(ids.begin(), ids.end() - count);
  else
    ids.erase(ids.begin() + count, ids.end());
  texts.push_back({.ids = std::move(ids), .output = output, .completion = {}});
  return std::nullopt;
}

static HttpResponse toTeiResponse(const ApiError &error) {
  const TeiError told = TeiError::of(error);
  HttpResponse response = toResponse(told.toJson(), told.status);
  if (told.retryAfter)
    response.headers.emplace_back("Retry-After",
                                  std::to_string(*told.retryAfter));
  return response;
}

static HttpResponse toOpenAIResponse(const ApiError &error) {
  return toResponse(error);
}

/// Answers a request that is wrong.
static void refuseEncoding(const Call &call, const EndpointContext &context,
                           const std::string &model, const ApiError &error,
                           EncodingAnswer::Refuse refuse) {
  const HttpResponse response = refuse(error);
  call.respond(response);
  tellUnserved(call, context, model, response.status, error.message);
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

/// Cuts `vector` and gives it length one, as the request asks.
static void shape(std::vector<float> &vector, const EmbeddingRequest &request) {
  if (request.dimensions > 0 && request.dimensions < vector.size())
    vector.resize(request.dimensions);
  if (request.normalize)
    normalizeLength(vector);
}

/// What the inputs of a request become, or what is wrong with them.
static std::optional<ApiError> addInputs(const EmbeddingRequest &request,
                                         RequestedTexts &texts) {
  for (size_t i = 0; i < request.inputs.prompts.size(); ++i) {
    const Prompt &prompt = request.inputs.prompts[i];
    const std::string name = request.inputs.nameOf(i);
    const auto *text = std::get_if<std::string>(&prompt);
    auto error = text ? texts.add(name, request.prefix + *text)
                      : texts.add(name, std::get<std::vector<int32_t>>(prompt));
    if (error)
      return error;
  }
  return std::nullopt;
}

using ParseEmbedding = std::variant<EmbeddingRequest, ApiError> (*)(
    std::string_view body, const EncoderLookup &lookup);

/// Has the inputs of a request computed, and `write` the answer.
template <typename Write>
static void embed(Call &call, const EndpointContext &context,
                  ParseEmbedding parse, EncoderOutput output,
                  EncodingAnswer::Refuse refuse, Write write) {
  ModelOfRequest found(context, Kind::Embedding);
  auto parsed = parse(call.request.body, found.lookup());
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuseEncoding(call, context, found.name(), *error, refuse);
  auto request = std::make_shared<const EmbeddingRequest>(
      std::move(std::get<EmbeddingRequest>(parsed)));
  const LoadedEncoder &model = found.model();
  RequestedTexts texts(model, request->truncation, output);
  // Vectors of tokens are what they are.
  if (output == EncoderOutput::Texts && !request->normalize &&
      model.manifest().encoding().normalized())
    return refuseEncoding(
        call, context, model.name,
        ApiError::ofField("normalize", "normalize must be true, as the model "
                                       "itself gives its vectors length 1"),
        refuse);
  if (auto error = addInputs(*request, texts))
    return refuseEncoding(call, context, model.name, *error, refuse);
  const uint64_t tokens = texts.countTokens();
  // Rows and their text are held whole.
  constexpr uint64_t mostValues = uint64_t{1} << 24;
  if (output == EncoderOutput::Tokens &&
      tokens > mostValues / model.capabilities.dimensions)
    return refuseEncoding(
        call, context, model.name,
        ApiError::ofField(
            request->inputs.field,
            request->inputs.field + " has " + std::to_string(tokens) +
                " tokens, and an answer tells the vectors of at "
                "most " +
                std::to_string(mostValues / model.capabilities.dimensions)),
        refuse);
  std::make_shared<EncodingAnswer>(
      call, context, model,
      [request, &model, tokens, write](std::vector<std::vector<float>> &rows) {
        return write(*request, model, rows, tokens);
      },
      refuse)
      ->start(texts.take());
}

void sandwich::answerEmbeddings(Call &call, const EndpointContext &context) {
  embed(call, context, parseEmbeddingRequest, EncoderOutput::Texts,
        toOpenAIResponse,
        [](const EmbeddingRequest &request, const LoadedEncoder &model,
           std::vector<std::vector<float>> &rows, uint64_t tokens) {
          for (std::vector<float> &row : rows)
            shape(row, request);
          return embeddingAnswer(request.model.empty() ? model.name
                                                       : request.model,
                                 request.encoding, rows, tokens);
        });
}

void sandwich::answerTeiEmbed(Call &call, const EndpointContext &context) {
  embed(call, context, parseTeiEmbedRequest, EncoderOutput::Texts,
        toTeiResponse,
        [](const EmbeddingRequest &request, const LoadedEncoder &,
           std::vector<std::vector<float>> &rows, uint64_t) {
          for (std::vector<float> &row : rows)
            shape(row, request);
          return teiEmbedAnswer(rows);
        });
}

void sandwich::answerTeiEmbedAll(Call &call, const EndpointContext &context) {
  embed(call, context, parseTeiEmbedAllRequest, EncoderOutput::Tokens,
        toTeiResponse,
        [](const EmbeddingRequest &, const LoadedEncoder &model,
           std::vector<std::vector<float>> &rows, uint64_t) {
          std::vector<TokenEmbeddings> inputs;
          for (std::vector<float> &row : rows)
            inputs.push_back({std::move(row), model.capabilities.dimensions});
          return teiEmbedAllAnswer(inputs);
        });
}

void sandwich::answerTeiSimilarity(Call &call, const EndpointContext &context) {
  ModelOfRequest found(context, Kind::Embedding);
  auto parsed = parseTeiSimilarityRequest(call.request.body, found.lookup());
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuseEncoding(call, context, found.name(), *error, toTeiResponse);
  const auto &request = std::get<SimilarityRequest>(parsed);
  const LoadedEncoder &model = found.model();
  RequestedTexts texts(model, request.truncation, EncoderOutput::Texts);
  auto error =
      texts.add("inputs.source_sentence", request.prefix + request.source);
  for (size_t i = 0; i < request.sentences.size() && !error; ++i)
    error = texts.add(indexed("inputs.sentences", i),
                      request.prefix + request.sentences[i]);
  if (error)
    return refuseEncoding(call, context, model.name, *error, toTeiResponse);
  std::make_shared<EncodingAnswer>(
      call, context, model,
      [](std::vector<std::vector<float>> &rows) {
        std::vector<float> similarities;
        for (size_t i = 1; i < rows.size(); ++i)
          similarities.push_back(cosineSimilarity(rows[0], rows[i]));
        return teiSimilarityAnswer(similarities);
      },
      toTeiResponse)
      ->start(texts.take());
}

//===----------------------------------------------------------------------===//
// Rerankers
//===----------------------------------------------------------------------===//

using ParseRerank = std::variant<RerankRequest, ApiError> (*)(
    std::string_view body, const EncoderLookup &lookup);

/// Has each document scored beside the query, and `write` the answer.
template <typename Write>
static void rerank(Call &call, const EndpointContext &context,
                   ParseRerank parse, EncodingAnswer::Refuse refuse,
                   Write write) {
  ModelOfRequest found(context, Kind::Reranker);
  auto parsed = parse(call.request.body, found.lookup());
  if (const auto *error = std::get_if<ApiError>(&parsed))
    return refuseEncoding(call, context, found.name(), *error, refuse);
  auto request = std::make_shared<const RerankRequest>(
      std::move(std::get<RerankRequest>(parsed)));
  const LoadedEncoder &model = found.model();
  if (const uint32_t labels = model.manifest().encoding().labels(); labels != 1)
    return refuseEncoding(
        call, context, model.name,
        ApiError::ofField("model",
                          "the model '" + model.name + "' tells " +
                              std::to_string(labels) +
                              " scores of a text; one that ranks tells "
                              "one"),
        refuse);
  RequestedTexts texts(model, request->truncation, EncoderOutput::Texts);
  for (size_t i = 0; i < request->documents.size(); ++i) {
    const std::string name = indexed(request->field, i);
    std::string_view document = request->documents[i];
    std::string cut;
    if (request->maxDocumentTokens && model.text) {
      Result<std::string> start =
          model.text->cutText(document, *request->maxDocumentTokens);
      if (!start)
        return refuseEncoding(
            call, context, model.name,
            ApiError::ofField(name, name + ": " + start.error().message),
            refuse);
      cut = *std::move(start);
      document = cut;
    }
    if (auto error = texts.add(name, request->query, document))
      return refuseEncoding(call, context, model.name, *error, refuse);
  }
  const uint64_t tokens = texts.countTokens();
  const std::string id = "rerank-" + call.id;
  std::make_shared<EncodingAnswer>(
      call, context, model,
      [request, &model, tokens, id,
       write](std::vector<std::vector<float>> &rows) -> Result<std::string> {
        std::vector<float> scores;
        for (const std::vector<float> &row : rows)
          scores.push_back(row.front());
        SANDWICH_ASSIGN_OR_RETURN(std::vector<RankedDocument> ranks,
                                  rankDocuments(*request, scores));
        return write(*request, model, id, ranks, tokens);
      },
      refuse)
      ->start(texts.take());
}

void sandwich::answerRerank(Call &call, const EndpointContext &context) {
  rerank(call, context, parseRerankRequest, toOpenAIResponse,
         [](const RerankRequest &request, const LoadedEncoder &model,
            const std::string &id, std::span<const RankedDocument> ranks,
            uint64_t tokens) {
           return rerankAnswer(
               id, request.model.empty() ? model.name : request.model, request,
               ranks, tokens);
         });
}

void sandwich::answerTeiRerank(Call &call, const EndpointContext &context) {
  rerank(call, context, parseTeiRerankRequest, toTeiResponse,
         [](const RerankRequest &request, const LoadedEncoder &,
            const std::string &, std::span<const RankedDocument> ranks,
            uint64_t) { return teiRerankAnswer(request, ranks); });
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

HttpResponse sandwich::describeEncoder(const ModelRegistry &models,
                                       unsigned workers) {
  auto found = models.findEncoder("", std::nullopt);
  if (const auto *error = std::get_if<ApiError>(&found))
    return toTeiResponse(*error);
  const LoadedEncoder &model = *std::get<const LoadedEncoder *>(found);
  const proto::Manifest &manifest = model.manifest();
  TeiInfo info;
  info.modelId = manifest.model().name();
  info.modelSha = model.fingerprint;
  const std::string &dtype = manifest.target().dtype();
  info.dataType = dtype == "f32"    ? "float32"
                  : dtype == "bf16" ? "bfloat16"
                                    : dtype;
  info.servedModelName = model.name;
  info.pooling = manifest.encoding().pooling() == "last"
                     ? "last_token"
                     : manifest.encoding().pooling();
  // Of one token each.
  info.maxConcurrentRequests = model.service->limits().waitingTokens;
  info.maxBatchTokens = model.service->engine().maxTokens();
  info.tokenizationWorkers = workers;
  info.version = SANDWICH_VERSION;
  return toResponse(teiInfoAnswer(info, model.capabilities));
}

EncoderCapabilities sandwich::capabilitiesOf(const proto::Manifest &manifest,
                                             uint64_t contextLength) {
  // As many as OpenAI takes.
  constexpr uint64_t mostInputs = 2048;
  const proto::Encoding &encoding = manifest.encoding();
  EncoderCapabilities capabilities;
  capabilities.kind = encoding.labels() > 0
                          ? EncoderCapabilities::Kind::Reranker
                          : EncoderCapabilities::Kind::Embedding;
  capabilities.maxInputTokens = contextLength;
  capabilities.vocabularySize = manifest.model().vocab_size();
  if (encoding.labels() == 0)
    capabilities.dimensions = manifest.model().hidden_size();
  capabilities.isMatryoshka = encoding.dimensions_size() > 0;
  capabilities.maxInputs = mostInputs;
  for (const proto::Prompt &prompt : encoding.prompts())
    capabilities.prompts[prompt.name()] = prompt.text();
  capabilities.defaultPrompt = encoding.default_prompt();
  return capabilities;
}
