//===- Tokenizer.h - Text to token ids and back -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Hugging Face's `tokenizer.json` read and run: byte-level BPE (GPT-2, Llama
/// 3, Qwen2), SentencePiece-style BPE with byte fallback (Llama 2), WordPiece
/// (BERT, bge) and Unigram (XLM-R, T5), with added tokens, normalizers,
/// pre-tokenizers, post-processors and decoders. What is not supported is
/// refused when the file is read, by naming the field and its value.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_RUNTIME_TEXT_TOKENIZER_H
#define SANDWICH_RUNTIME_TEXT_TOKENIZER_H

#include "sandwich/Support/ByteRange.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// How texts are cut to what a model takes.
struct Truncation {
  /// Which of two texts loses tokens.
  enum class Strategy {
    LongestFirst, ///< the longer one, and both once they are as long
    OnlyFirst,
    OnlySecond,
  };

  /// How many tokens a sequence has at most, special ones included.
  uint64_t maxTokens = 0;
  Strategy strategy = Strategy::LongestFirst;
  /// Takes tokens away at the beginning of a text rather than at its end.
  bool fromLeft = false;
};

/// What fills up the shorter sequences of a batch, where batches need it.
struct Padding {
  int32_t id = 0;
  int32_t typeId = 0;
  std::string token; ///< as the file writes it
};

/// The ids of a sequence, and for each the id of its type, which tells a model
/// the texts of a pair apart (BERT's `token_type_ids`).
struct TypedIds {
  std::vector<int32_t> ids;
  std::vector<int32_t> typeIds;
};

/// How `Tokenizer::encode` treats special tokens and long texts.
struct EncodingOptions {
  /// Adds the post-processor's tokens (as a rule the beginning of a sequence)
  /// around the text's.
  bool addSpecialTokens = false;
  /// Takes a special token that is written out in the text for that token, as a
  /// template needs it. Otherwise it is text like any other, so that what a
  /// user types cannot end a turn or begin one. Hugging Face's library calls
  /// the opposite `split_special_tokens`. Added tokens that are not special are
  /// found either way.
  bool parseSpecialTokens = false;
  /// With `parseSpecialTokens`, where special tokens may be written out: only
  /// those that lie within one of these ranges of bytes of the text are taken
  /// for tokens. What a template wrote of a prompt is such a range
  /// (`RenderedText::trusted`), what users wrote is not. In order, and none
  /// touches the next; they must outlive the call. Nothing: all of the text.
  ///
  /// Everything else sees the text as a whole: where the rest of the text holds
  /// no special token, the ids are those of the text without ranges.
  std::optional<std::span<const ByteRange>> trustedRanges = {};
  /// Cuts the texts so that with the tokens that `addSpecialTokens` adds there
  /// are not too many. `Tokenizer::truncation` is what the file proposes.
  std::optional<Truncation> truncation = {};
};

/// A tokenizer as its file describes it. Copies share one immutable
/// description; all members may be called from several threads at once.
class Tokenizer {
public:
  /// Texts longer than this many bytes are refused by `encode`.
  static constexpr size_t maxTextBytes = size_t(1) << 30;

  /// Reads `FOLDER/tokenizer.json` and, where it exists,
  /// `FOLDER/tokenizer_config.json`. Errors as `fromFiles`.
  static Result<Tokenizer> fromFolder(const std::string &folder);

  /// Reads a `tokenizer.json` and optionally the `tokenizer_config.json` beside
  /// it, whose `add_bos_token` and `add_eos_token` win where they contradict
  /// the post-processor, as they do in Hugging Face's library. As there, too,
  /// its `added_tokens_decoder` and the special tokens it names are added, and
  /// a `tokenizer_class` of Llama begins each text with `bos_token` where
  /// neither file says otherwise. Errors name file, field and reason.
  static Result<Tokenizer>
  fromFiles(const std::string &tokenizerPath,
            const std::optional<std::string> &configurationPath = std::nullopt);

  /// As `fromFiles`, from texts already read. Errors name field and reason,
  /// those of the second text after `tokenizer_config.json: `.
  static Result<Tokenizer>
  fromText(std::string_view tokenizerText,
           std::optional<std::string_view> configurationText = std::nullopt);

  /// The ids of `text`, which must be UTF-8. Errors: invalid UTF-8, a text
  /// longer than `maxTextBytes`, a regular expression of the file that exceeds
  /// its match limits on this text, a normalizer that inflates it unreasonably,
  /// or a truncation that cannot be done: to less than the special tokens, of a
  /// text that is not there, or of one so short that nothing of it were left.
  Result<std::vector<int32_t>>
  encode(std::string_view text, const EncodingOptions &options = {}) const;

  /// The ids and types of `first` or, if there is a `second`, of the two as the
  /// post-processor puts them together, as for a model that compares them.
  /// Without `addSpecialTokens` there is nothing around and between them.
  /// Errors: those of `encode`; two texts if the post-processor has no template
  /// for them; two texts and `trustedRanges`, which are of one.
  Result<TypedIds>
  encodeWithTypes(std::string_view first,
                  std::optional<std::string_view> second = std::nullopt,
                  const EncodingOptions &options = {}) const;

  /// The truncation that `tokenizer.json` proposes, if any. It is done where
  /// `EncodingOptions::truncation` asks for it, and not otherwise.
  const std::optional<Truncation> &truncation() const;

  /// What `tokenizer.json` pads with or, if it does not pad, the `pad_token` of
  /// `tokenizer_config.json`. Nothing is ever padded here.
  const std::optional<Padding> &padding() const;

  /// The text of `ids`: always UTF-8, bytes that form no character become
  /// U+FFFD. Ids without a token (a model may have more rows than its
  /// vocabulary has tokens) add nothing; special tokens add nothing if
  /// `skipSpecialTokens`.
  std::string decode(std::span<const int32_t> ids,
                     bool skipSpecialTokens) const;

  /// Checks that every token of an `added_tokens.json`, which older checkpoints
  /// have besides, is here with the id it has there. Errors name the file and
  /// the token.
  Status checkAddedTokens(const std::string &path) const;

  /// One more than the largest id, of added tokens too.
  size_t vocabularySize() const;

  /// The token that begins a sequence, if `tokenizer_config.json` names one.
  std::optional<int32_t> beginningOfSequenceId() const;

  /// The token that ends a sequence, if `tokenizer_config.json` names one.
  std::optional<int32_t> endOfSequenceId() const;

  /// The id of the token written `token` in the vocabulary or among the added
  /// tokens.
  std::optional<int32_t> idOf(std::string_view token) const;

  /// The token with this id as the file writes it; nothing for an unknown id.
  std::optional<std::string_view> tokenOf(int32_t id) const;

  /// The bytes that `id` adds to a text that has begun, as a continued prompt
  /// has: `decode` of several ids is these, one after the other, where they are
  /// UTF-8 and but for what a decoder takes away at the ends of a whole text.
  /// Nothing for special tokens and unknown ids.
  std::string bytesOf(int32_t id) const;

  /// Whether `id` is an added token marked special.
  bool isSpecial(int32_t id) const;

private:
  friend class StreamingDecoder;
  struct Description;

  explicit Tokenizer(std::shared_ptr<const Description> description);
  std::shared_ptr<const Description> description;
};

/// Decodes one id at a time: text appears as soon as it is whole UTF-8 and
/// nothing that follows can change it. What all calls return, concatenated, is
/// `Tokenizer::decode` of the same ids. A copy goes on by itself.
class StreamingDecoder {
public:
  StreamingDecoder(const Tokenizer &tokenizer, bool skipSpecialTokens);
  StreamingDecoder(const StreamingDecoder &other);
  StreamingDecoder &operator=(const StreamingDecoder &other);
  StreamingDecoder(StreamingDecoder &&other) noexcept;
  StreamingDecoder &operator=(StreamingDecoder &&other) noexcept;
  ~StreamingDecoder();

  /// Takes `ids` as what comes before, whose text is known: a prompt that is
  /// continued. What a token means may depend on those before it; some decoders
  /// take a space away at the beginning of a text, but not of a continuation.
  void skip(std::span<const int32_t> ids);

  /// The text that `id` completes; possibly none.
  std::string decode(int32_t id);

  /// The remaining text at the end of the sequence, after which the decoder is
  /// as new.
  std::string flush();

private:
  class State;
  std::unique_ptr<State> state;
};

} // namespace sandwich

#endif // SANDWICH_RUNTIME_TEXT_TOKENIZER_H
