//===- AnswerShape.h - Texts in the words of an endpoint --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What completions and chats have in common is `GenerationAnswer`'s; here is
/// how the objects look that each of them sends.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_ANSWERSHAPE_H
#define SANDWICH_LIB_SERVER_ANSWERSHAPE_H

#include "ToolCallParser.h"

#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Sampling/Sampler.h"
#include "sandwich/Support/Json.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// A token of an answer with its log-probability; nothing: a prompt's first.
struct TokenScore {
  int32_t token;
  std::optional<float> logProbability = {};
  std::vector<TokenLogProbability> top = {};
  /// Where it begins in the text, in characters.
  uint64_t textOffset = 0;
};

/// Where the tokens of a text begin in it, one after another.
class TokenPlaces {
public:
  /// The text has `begun` characters already, and `before` are the tokens that
  /// the next one continues. `skipSpecialTokens`: those are not in the text.
  TokenPlaces(const std::optional<Tokenizer> &tokenizer, bool skipSpecialTokens,
              std::span<const int32_t> before, uint64_t begun);

  /// In characters. A token that is a part of a character begins where that
  /// does.
  uint64_t placeOf(int32_t token);

private:
  std::optional<StreamingDecoder> decoder;
  uint64_t next;
};

/// Tokens that an answer took.
struct TokenUsage {
  uint64_t promptTokens = 0;
  uint64_t cachedTokens = 0;
  uint64_t generatedTokens = 0;

  Json toJson() const;
};

/// What one of an answer's texts got.
struct ChoicePart {
  uint32_t index = 0;
  std::string text = {};
  std::vector<TokenScore> scores = {};
  std::vector<ToolCallPart> calls = {};
  /// "stop", "length" or "tool_calls" where the text ends with it.
  std::optional<std::string> finish = {};
};

class AnswerShape {
public:
  struct Identity {
    std::string id;
    std::string model;
    std::string fingerprint;
    int64_t created = 0;
    /// Log-probabilities are wanted.
    bool scored = false;
    /// Each chunk has a usage: null, or its own.
    bool hasUsage = false;
  };

  /// `wholeKind` and `chunkKind` are what "object" says.
  AnswerShape(Identity identity, std::optional<Tokenizer> tokenizer,
              std::string wholeKind, std::string_view chunkKind);
  virtual ~AnswerShape() = default;

  const Identity &of() const { return identity; }

  /// The event before the first part of text `index`; empty: there is none.
  virtual std::string opening(uint32_t index) const = 0;
  /// The event of a part. `usage`: so far.
  std::string chunk(const ChoicePart &part,
                    const std::optional<TokenUsage> &usage) const;
  /// The event behind the last part.
  std::string usageChunk(const TokenUsage &usage) const;
  /// The answer that does not come in pieces; of each text all parts as one.
  Json whole(std::span<const ChoicePart> choices,
             const TokenUsage &usage) const;

  /// The text of a token for log-probabilities, where bytes that are no whole
  /// character are written as `bytes:\xNN`.
  std::string nameOf(int32_t token) const;

protected:
  /// What a choice of a chunk, or of a whole answer, has beside its index and
  /// its reason to finish, as the inside of an object.
  virtual void writeChunkChoice(std::string &text,
                                const ChoicePart &part) const = 0;
  virtual Json wholeChoice(const ChoicePart &part) const = 0;

  std::string event(uint32_t index, std::string_view choice,
                    const std::optional<std::string> &finish,
                    const std::optional<TokenUsage> &usage) const;

  const Identity identity;
  const std::optional<Tokenizer> tokenizer;

private:
  const std::string wholeKind;
  /// What all events begin with.
  const std::string eventStart;
};

/// "text_completion".
std::unique_ptr<AnswerShape>
completionShape(AnswerShape::Identity identity,
                std::optional<Tokenizer> tokenizer);
/// "chat.completion" and "chat.completion.chunk".
std::unique_ptr<AnswerShape> chatShape(AnswerShape::Identity identity,
                                       std::optional<Tokenizer> tokenizer);

/// The text as a string of JSON. What is no UTF-8 becomes U+FFFD.
std::string jsonString(std::string_view text);

/// Unicode characters of a UTF-8 text.
uint64_t countCharacters(std::string_view text);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_ANSWERSHAPE_H
