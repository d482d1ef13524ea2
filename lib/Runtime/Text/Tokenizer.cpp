//===- Tokenizer.cpp - Text to token ids and back -------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Text/Tokenizer.h"

#include "AddedTokenFinder.h"
#include "Decoder.h"
#include "JsonField.h"
#include "Model.h"
#include "Normalizer.h"
#include "PostProcessor.h"
#include "PreTokenizer.h"
#include "Truncation.h"
#include "Unicode.h"
#include "Vocabulary.h"

#include "sandwich/Support/File.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

using namespace sandwich;
using namespace sandwich::tokenizer;

/// The largest known tokenizer.json has 33 MB.
static constexpr size_t maxFileBytes = size_t(128) << 20;

struct Tokenizer::Description {
  Vocabulary vocabulary;
  std::unique_ptr<Model> model;
  NormalizerSteps normalizer;
  PreTokenizerSteps preTokenizer;
  AddedTokenFinder rawTokens;        ///< looked for in the text as it is
  AddedTokenFinder normalizedTokens; ///< looked for in the normalized text
  /// What was found in the normalized text decodes to what was found, where
  /// that is not the token as the file writes it.
  std::unordered_map<int32_t, std::string> normalizedContents;
  PostProcessor postProcessor;
  Decoder decoder;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  std::optional<int32_t> beginningOfSequence;
  std::optional<int32_t> endOfSequence;

  Status read(const JsonField &file);
  Status readConfiguration(const JsonField &file);
  Status readNamedTokens(const JsonField &file);
  Result<std::optional<int32_t>>
  readNamedToken(const JsonField &file, const char *key,
                 std::optional<std::string_view> absent) const;
  /// Prepares what depends on all tokens; comes after reading.
  Status finish();
  /// What the decoder is given for `id`, or nothing.
  std::optional<std::string_view> decodedToken(int32_t id) const;
  /// Appends the ids of a text without what the post-processor adds.
  Status encodeAlone(std::string_view text, const EncodingOptions &options,
                     std::vector<int32_t> &ids) const;
  /// Appends the ids of a part of a text between added tokens. `marks` are the
  /// bytes where special tokens may be, if that is not the same everywhere.
  Status encodeText(std::string text, bool beginsInput,
                    const SpecialTokenPlaces &places, ByteMarks marks,
                    Model::Session &session, SearchBuffers &buffers,
                    std::vector<int32_t> &ids) const;
};

Status Tokenizer::Description::read(const JsonField &file) {
  SANDWICH_ASSIGN_OR_RETURN(std::string version,
                            file.stringMember("version", "1.0"));
  if (version != "1.0")
    return file.member("version")->unsupported();

  SANDWICH_ASSIGN_OR_RETURN(JsonField modelField, file.member("model"));
  SANDWICH_ASSIGN_OR_RETURN(ModelType type, readModelType(modelField));
  SANDWICH_ASSIGN_OR_RETURN(JsonField vocabularyField,
                            modelField.member("vocab"));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> addedTokens,
                            file.optionalMember("added_tokens"));
  const auto form =
      type == ModelType::Unigram ? VocabularyForm::Scores : VocabularyForm::Ids;
  SANDWICH_ASSIGN_OR_RETURN(
      vocabulary, Vocabulary::read(vocabularyField, form, addedTokens));
  SANDWICH_ASSIGN_OR_RETURN(model, readModel(modelField, type, vocabulary));

  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                            file.optionalMember("normalizer"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(normalizer, readNormalizer(*field));
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("pre_tokenizer"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(preTokenizer, readPreTokenizer(*field));
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("post_processor"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(postProcessor,
                              PostProcessor::read(*field, vocabulary));
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("decoder"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(decoder, Decoder::read(*field));
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("truncation"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(truncation, readTruncation(*field));
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("padding"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(padding, readPadding(*field));
  }
  return {};
}

Status Tokenizer::Description::finish() {
  // tokenizer_config.json may have added the token.
  if (padding && !vocabulary.tokenOf(padding->id))
    return makeError("padding.pad_id: no token has the id ", padding->id);
  SearchBuffers buffers;
  for (const AddedToken &token : vocabulary.addedTokens()) {
    if (!token.normalized) {
      rawTokens.add(token, token.content);
      continue;
    }
    std::string content = token.content;
    ByteMarks noMarks;
    SANDWICH_RETURN_IF_ERROR(normalize(normalizer, content, noMarks, buffers));
    if (content != token.content)
      normalizedContents.emplace(token.id, content);
    normalizedTokens.add(token, std::move(content));
  }
  rawTokens.finish();
  normalizedTokens.finish();
  return {};
}

/// Classes of Hugging Face's library that begin each text with `bos_token`
/// where the files do not say otherwise.
static constexpr std::array<std::string_view, 4> llamaTokenizers = {
    "LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer",
    "CodeLlamaTokenizerFast"};

/// The id of the token that `key` of tokenizer_config.json names, either as a
/// string or as an object with `content`. Without the field it is that of
/// `absent`, if there is such a token; null names none.
Result<std::optional<int32_t>> Tokenizer::Description::readNamedToken(
    const JsonField &file, const char *key,
    std::optional<std::string_view> absent) const {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                            file.optionalMember(key));
  if (!field) {
    int32_t id =
        absent && !file.json().contains(key) ? vocabulary.idOf(*absent) : -1;
    return id < 0 ? std::nullopt : std::optional(id);
  }
  if (field->json().is_object()) {
    SANDWICH_ASSIGN_OR_RETURN(field, field->member("content"));
  }
  SANDWICH_ASSIGN_OR_RETURN(std::string token, field->string());
  int32_t id = vocabulary.idOf(token);
  if (id < 0)
    return field->error("the token ", inQuotes(token),
                        " is not in the vocabulary");
  return std::optional<int32_t>(id);
}

/// Makes special tokens of those that tokenizer_config.json names as such, in
/// the order in which Hugging Face's library gives new ones their ids.
Status Tokenizer::Description::readNamedTokens(const JsonField &file) {
  for (const char *key : {"bos_token", "eos_token", "unk_token", "sep_token",
                          "pad_token", "cls_token", "mask_token"}) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                              file.optionalMember(key));
    if (field)
      SANDWICH_RETURN_IF_ERROR(vocabulary.addSpecialToken(*field));
  }
  for (const char *key :
       {"additional_special_tokens", "extra_special_tokens"}) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                              file.optionalMember(key));
    if (!field)
      continue;
    // The second may be an object, whose keys are names for programs.
    if (!field->json().is_structured())
      return field->error("must be a list or an object of tokens");
    for (const auto &[name, token] : field->json().items())
      SANDWICH_RETURN_IF_ERROR(vocabulary.addSpecialToken(
          JsonField(token, field->path() + "[" + inQuotes(name) + "]")));
  }
  return {};
}

Status Tokenizer::Description::readConfiguration(const JsonField &file) {
  SANDWICH_ASSIGN_OR_RETURN(std::string className,
                            file.stringMember("tokenizer_class", ""));
  bool isLlama =
      std::ranges::find(llamaTokenizers, className) != llamaTokenizers.end();
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> field,
                            file.optionalMember("added_tokens_decoder"));
  if (field)
    SANDWICH_RETURN_IF_ERROR(vocabulary.readAddedTokensDecoder(*field));
  using Name = std::optional<std::string_view>;
  SANDWICH_ASSIGN_OR_RETURN(
      beginningOfSequence,
      readNamedToken(file, "bos_token", isLlama ? Name("<s>") : Name()));
  SANDWICH_ASSIGN_OR_RETURN(
      endOfSequence,
      readNamedToken(file, "eos_token", isLlama ? Name("</s>") : Name()));
  SANDWICH_RETURN_IF_ERROR(readNamedTokens(file));
  if (!padding) {
    SANDWICH_ASSIGN_OR_RETURN(
        std::optional<int32_t> id,
        readNamedToken(file, "pad_token", /*absent=*/std::nullopt));
    if (id)
      padding = {*id, 0, std::string(*vocabulary.tokenOf(*id))};
  }

  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("add_bos_token"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(bool adds, field->boolean());
    if (adds && !beginningOfSequence)
      return field->error("is true, but there is no bos_token");
    postProcessor.setPrefix(adds ? beginningOfSequence : std::nullopt);
  } else if (isLlama && !postProcessor.addsTokens()) {
    if (!beginningOfSequence)
      return makeError("bos_token: is missing, but a ", className,
                       " begins each text with it unless add_bos_token is "
                       "false");
    postProcessor.setPrefix(beginningOfSequence);
  }
  SANDWICH_ASSIGN_OR_RETURN(field, file.optionalMember("add_eos_token"));
  if (field) {
    SANDWICH_ASSIGN_OR_RETURN(bool adds, field->boolean());
    if (adds && !endOfSequence)
      return field->error("is true, but there is no eos_token");
    postProcessor.setSuffix(adds ? endOfSequence : std::nullopt);
  }
  return {};
}

Status Tokenizer::Description::encodeText(std::string text, bool beginsInput,
                                          const SpecialTokenPlaces &places,
                                          ByteMarks marks,
                                          Model::Session &session,
                                          SearchBuffers &buffers,
                                          std::vector<int32_t> &ids) const {
  SANDWICH_RETURN_IF_ERROR(normalize(normalizer, text, marks, buffers));
  const std::vector<ByteRange> ranges = marks.ranges();
  for (const TextPart &part : normalizedTokens.split(
           text,
           marks.wanted() ? SpecialTokenPlaces::within(ranges) : places)) {
    if (part.tokenId >= 0) {
      ids.push_back(part.tokenId);
      continue;
    }
    SANDWICH_ASSIGN_OR_RETURN(
        PieceList list,
        preTokenize(preTokenizer,
                    text.substr(part.range.begin, part.range.size()),
                    beginsInput && part.range.begin == 0, buffers));
    for (const TextRange &piece : list.pieces)
      session.encode(
          std::string_view(list.text).substr(piece.begin, piece.size()), ids);
  }
  return {};
}

std::optional<std::string_view>
Tokenizer::Description::decodedToken(int32_t id) const {
  const auto normalized = normalizedContents.find(id);
  if (normalized != normalizedContents.end())
    return normalized->second;
  return vocabulary.tokenOf(id);
}

Tokenizer::Tokenizer(std::shared_ptr<const Description> description)
    : description(std::move(description)) {}

Result<Tokenizer> Tokenizer::fromFolder(const std::string &folder) {
  std::filesystem::path path(folder);
  std::string configuration = path / "tokenizer_config.json";
  std::error_code ignored;
  bool hasConfiguration = std::filesystem::exists(configuration, ignored);
  return fromFiles(path / "tokenizer.json", hasConfiguration
                                                ? std::optional(configuration)
                                                : std::nullopt);
}

static Result<Json> readJsonFile(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > maxFileBytes)
    return makeError(path, ": is ", file.bytes().size(),
                     " bytes long; at most ", maxFileBytes, " are accepted");
  Result<Json> document = parseJson(file.text());
  if (!document)
    return document.error().inContext(path);
  return document;
}

Result<Tokenizer>
Tokenizer::fromFiles(const std::string &tokenizerPath,
                     const std::optional<std::string> &configurationPath) {
  auto description = std::make_shared<Description>();
  SANDWICH_ASSIGN_OR_RETURN(Json document, readJsonFile(tokenizerPath));
  if (Status read = description->read(JsonField(document, "")); !read)
    return read.error().inContext(tokenizerPath);
  if (configurationPath) {
    SANDWICH_ASSIGN_OR_RETURN(document, readJsonFile(*configurationPath));
    if (Status read = description->readConfiguration(JsonField(document, ""));
        !read)
      return read.error().inContext(*configurationPath);
  }
  if (Status finished = description->finish(); !finished)
    return finished.error().inContext(tokenizerPath);
  return Tokenizer(std::move(description));
}

Result<Tokenizer>
Tokenizer::fromText(std::string_view tokenizerText,
                    std::optional<std::string_view> configurationText) {
  auto description = std::make_shared<Description>();
  SANDWICH_ASSIGN_OR_RETURN(Json document, parseJson(tokenizerText));
  SANDWICH_RETURN_IF_ERROR(description->read(JsonField(document, "")));
  if (configurationText) {
    constexpr const char *name = "tokenizer_config.json";
    Result<Json> configuration = parseJson(*configurationText);
    if (!configuration)
      return configuration.error().inContext(name);
    if (Status read =
            description->readConfiguration(JsonField(*configuration, ""));
        !read)
      return read.error().inContext(name);
  }
  SANDWICH_RETURN_IF_ERROR(description->finish());
  return Tokenizer(std::move(description));
}

/// The bytes of `part` that lie in `ranges`.
static ByteMarks marksOf(const TextRange &part,
                         std::span<const ByteRange> ranges) {
  std::vector<bool> marks(part.size());
  auto range = std::ranges::partition_point(
      ranges, [&](const ByteRange &each) { return each.end <= part.begin; });
  for (; range != ranges.end() && range->begin < part.end; ++range) {
    const size_t end = std::min(range->end, part.end);
    for (size_t i = std::max(range->begin, part.begin); i < end; ++i)
      marks[i - part.begin] = true;
  }
  return ByteMarks(std::move(marks));
}

Status Tokenizer::Description::encodeAlone(std::string_view text,
                                           const EncodingOptions &options,
                                           std::vector<int32_t> &ids) const {
  if (text.size() > maxTextBytes)
    return makeError(ErrorKind::InvalidArgument, "the text is ", text.size(),
                     " bytes long; at most ", maxTextBytes, " are accepted");
  if (std::optional<size_t> offset = findInvalidUtf8(text))
    return makeError(ErrorKind::InvalidArgument,
                     "the text is not valid UTF-8 at byte ", *offset);
  const bool isEverywhere =
      options.parseSpecialTokens && !options.trustedRanges;
  const bool isSomewhere = options.parseSpecialTokens && options.trustedRanges;
  const auto places = isEverywhere ? SpecialTokenPlaces::everywhere()
                      : isSomewhere
                          ? SpecialTokenPlaces::within(*options.trustedRanges)
                          : SpecialTokenPlaces::nowhere();
  std::unique_ptr<Model::Session> session = model->startSession(
      isEverywhere ? SpecialTokens::Found : SpecialTokens::Text);
  SearchBuffers buffers;
  for (const TextPart &part : rawTokens.split(text, places)) {
    if (part.tokenId >= 0) {
      ids.push_back(part.tokenId);
      continue;
    }
    // Only special tokens that are looked for in the normalized text need it.
    ByteMarks marks;
    if (isSomewhere && normalizedTokens.hasSpecialTokens())
      marks = marksOf(part.range, *options.trustedRanges);
    SANDWICH_RETURN_IF_ERROR(encodeText(
        std::string(text.substr(part.range.begin, part.range.size())),
        part.range.begin == 0, places, std::move(marks), *session, buffers,
        ids));
  }
  return {};
}

Result<TypedIds>
Tokenizer::encodeWithTypes(std::string_view first,
                           std::optional<std::string_view> second,
                           const EncodingOptions &options) const {
  const PostProcessor &postProcessor = description->postProcessor;
  const std::vector<SequencePart> &parts =
      second ? postProcessor.pair : postProcessor.single;
  if (parts.empty())
    return makeError(ErrorKind::InvalidArgument,
                     "the post_processor of the tokenizer has no template for "
                     "a pair of texts");
  if (second && options.trustedRanges)
    return makeError(ErrorKind::InvalidArgument,
                     "ranges to trust are of one text, not of a pair");
  using Kind = SequencePart::Kind;
  std::vector<int32_t> firstIds, secondIds;
  SANDWICH_RETURN_IF_ERROR(description->encodeAlone(first, options, firstIds));
  if (second)
    SANDWICH_RETURN_IF_ERROR(
        description->encodeAlone(*second, options, secondIds));
  if (options.truncation) {
    const auto specialTokens = static_cast<size_t>(
        std::ranges::count(parts, Kind::SpecialToken, &SequencePart::kind));
    SANDWICH_RETURN_IF_ERROR(truncate(
        *options.truncation, options.addSpecialTokens ? specialTokens : 0,
        firstIds, second ? &secondIds : nullptr));
  }
  TypedIds sequence;
  sequence.ids.reserve(firstIds.size() + secondIds.size() + parts.size());
  for (const SequencePart &part : parts) {
    if (part.kind == Kind::First)
      sequence.ids.insert(sequence.ids.end(), firstIds.begin(), firstIds.end());
    else if (part.kind == Kind::Second)
      sequence.ids.insert(sequence.ids.end(), secondIds.begin(),
                          secondIds.end());
    else if (options.addSpecialTokens)
      sequence.ids.push_back(part.tokenId);
    sequence.typeIds.resize(sequence.ids.size(), part.typeId);
  }
  return sequence;
}

Result<std::vector<int32_t>>
Tokenizer::encode(std::string_view text, const EncodingOptions &options) const {
  SANDWICH_ASSIGN_OR_RETURN(TypedIds sequence,
                            encodeWithTypes(text, std::nullopt, options));
  return std::move(sequence.ids);
}

Status Tokenizer::checkAddedTokens(const std::string &path) const {
  SANDWICH_ASSIGN_OR_RETURN(Json document, readJsonFile(path));
  if (!document.is_object())
    return makeError(path, ": must be an object of tokens and their ids");
  for (const auto &[token, id] : document.items()) {
    std::optional<int32_t> known = idOf(token);
    if (!known)
      return makeError(path, ": token ", inQuotes(token),
                       " is neither in tokenizer.json nor in "
                       "tokenizer_config.json; add it there or remove it here");
    if (id != *known)
      return makeError(path, ": token ", inQuotes(token), " has another id, ",
                       *known, ", in tokenizer.json");
  }
  return {};
}

size_t Tokenizer::vocabularySize() const {
  return description->vocabulary.size();
}

const std::optional<Truncation> &Tokenizer::truncation() const {
  return description->truncation;
}

const std::optional<Padding> &Tokenizer::padding() const {
  return description->padding;
}

std::optional<int32_t> Tokenizer::beginningOfSequenceId() const {
  return description->beginningOfSequence;
}

std::optional<int32_t> Tokenizer::endOfSequenceId() const {
  return description->endOfSequence;
}

std::optional<int32_t> Tokenizer::idOf(std::string_view token) const {
  int32_t id = description->vocabulary.idOf(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> Tokenizer::tokenOf(int32_t id) const {
  return description->vocabulary.tokenOf(id);
}

std::string Tokenizer::bytesOf(int32_t id) const {
  if (isSpecial(id))
    return "";
  const std::optional<std::string_view> token = description->decodedToken(id);
  return token ? description->decoder.bytesOf(*token) : "";
}

bool Tokenizer::isSpecial(int32_t id) const {
  return description->vocabulary.isSpecial(id);
}

class StreamingDecoder::State {
public:
  State(std::shared_ptr<const Tokenizer::Description> description,
        bool skipSpecialTokens)
      : description(std::move(description)),
        skipSpecialTokens(skipSpecialTokens),
        decoder(this->description->decoder) {}

  void decode(int32_t id, std::string &text) {
    if (skipSpecialTokens && description->vocabulary.isSpecial(id))
      return;
    if (std::optional<std::string_view> token = description->decodedToken(id))
      decoder.add(*token, text);
  }

  void flush(std::string &text) { decoder.finish(text); }

private:
  std::shared_ptr<const Tokenizer::Description> description;
  bool skipSpecialTokens;
  DecoderState decoder;
};

StreamingDecoder::StreamingDecoder(const Tokenizer &tokenizer,
                                   bool skipSpecialTokens)
    : state(std::make_unique<State>(tokenizer.description, skipSpecialTokens)) {
}
StreamingDecoder::StreamingDecoder(const StreamingDecoder &other)
    : state(std::make_unique<State>(*other.state)) {}
StreamingDecoder &StreamingDecoder::operator=(const StreamingDecoder &other) {
  return *this = StreamingDecoder(other);
}
StreamingDecoder::StreamingDecoder(StreamingDecoder &&) noexcept = default;
StreamingDecoder &
StreamingDecoder::operator=(StreamingDecoder &&) noexcept = default;
StreamingDecoder::~StreamingDecoder() = default;

void StreamingDecoder::skip(std::span<const int32_t> ids) {
  std::string text;
  for (int32_t id : ids) {
    state->decode(id, text);
    text.clear();
  }
}

std::string StreamingDecoder::decode(int32_t id) {
  std::string text;
  state->decode(id, text);
  return text;
}

std::string StreamingDecoder::flush() {
  std::string text;
  state->flush(text);
  return text;
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecialTokens) const {
  StreamingDecoder decoder(*this, skipSpecialTokens);
  std::string text;
  for (int32_t id : ids)
    text += decoder.decode(id);
  return text + decoder.flush();
}
