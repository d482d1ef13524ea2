//===- Decoder.h - Tokens to text -------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_DECODER_H
#define SANDWICH_LIB_RUNTIME_TEXT_DECODER_H

#include "JsonField.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::tokenizer {

/// How the tokens of a sequence become its text: `decoder` of a
/// tokenizer.json. Only forms that can be followed token by token are read.
struct Decoder {
  enum class Kind {
    JoinedBySpaces, ///< no decoder: tokens with spaces between them
    ByteLevel,      ///< characters of the byte alphabet become bytes
    Metaspace,      ///< the mark becomes a space; the first token loses it
    WordPiece,      ///< spaces before tokens without the mark
    Pieces,         ///< the steps below, in this order
  };

  /// Takes `character` away at the ends of the whole text.
  struct Strip {
    std::string character;
    uint64_t fromBegin = 0; ///< at most this many
    uint64_t fromEnd = 0;
  };

  Kind kind = Kind::JoinedBySpaces;
  std::string mark;             ///< of Metaspace and WordPiece
  bool dropsFirstMarks = false; ///< of Metaspace
  bool cleansUp = false; ///< of WordPiece: no spaces around English punctuation
  std::vector<std::pair<std::string, std::string>> replacements;
  bool byteFallback = false; ///< tokens such as `<0x0A>` are bytes
  Strip strip;

  /// Reads `decoder`. Errors: types or orders of steps that are not supported.
  static Result<Decoder> read(const JsonField &field);

  /// The bytes that `token` adds to a text that has begun.
  std::string bytesOf(std::string_view token) const;

  /// Of WordPiece: what `token` adds to a text.
  std::string wordPiece(std::string_view token, bool isFirst) const;

  /// Of Pieces: `token` after all `replacements`.
  std::string replaced(std::string_view token) const;
};

/// Applies a decoder to one token at a time.
class DecoderState {
public:
  /// The decoder must outlive this.
  explicit DecoderState(const Decoder &decoder);

  /// Appends the text that is settled once `token` has come to `text`.
  void add(std::string_view token, std::string &text);

  /// Appends the rest and starts anew.
  void finish(std::string &text);

private:
  void addPiece(std::string_view token, std::string &text);
  void emitCharacters(std::string &text);
  void emitRest(std::string &text);
  void emitStripped(std::string_view piece, std::string &text);

  const Decoder *decoder;
  bool isFirst = true;
  std::string bytes;      ///< that form no whole character yet
  uint64_t leftToStrip;   ///< characters still to take away at the beginning
  uint64_t heldAtEnd = 0; ///< characters taken away if the text ends here
};

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_DECODER_H
