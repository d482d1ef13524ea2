//===- Decoder.cpp - Tokens to text ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "ByteAlphabet.h"
#include "Metaspace.h"
#include "Unicode.h"

using namespace sandwich;
using namespace sandwich::tokenizer;

namespace {

/// Reads the steps of a decoder one by one and refuses orders that cannot be
/// followed token by token.
class DecoderReader {
public:
  Decoder decoder;

  Status read(const JsonField &field);

private:
  /// How far the steps have come; they are accepted in this order.
  enum class Stage { Begin, Replace, ByteFallback, Fuse, Strip, End };

  Status enter(Stage next, const JsonField &typeField);
  Status readReplace(const JsonField &field);
  Status readStrip(const JsonField &field);

  Stage stage = Stage::Begin;
};

} // namespace

Status DecoderReader::enter(Stage next, const JsonField &typeField) {
  bool inOrder = next > stage || (next == stage && next == Stage::Replace);
  bool isPrepared = next != Stage::Strip || stage == Stage::Fuse;
  bool isAlone = next != Stage::End || stage == Stage::Begin;
  if (!inOrder || !isPrepared || !isAlone)
    return typeField.error(
        inQuotes(typeField.json().get_ref<const std::string &>()),
        " in this place is not supported");
  stage = next;
  return {};
}

Status DecoderReader::readReplace(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField pattern, field.member("pattern"));
  SANDWICH_ASSIGN_OR_RETURN(JsonField literal, pattern.member("String"));
  SANDWICH_ASSIGN_OR_RETURN(std::string from, literal.string());
  if (from.empty())
    return literal.error("is empty");
  SANDWICH_ASSIGN_OR_RETURN(JsonField content, field.member("content"));
  SANDWICH_ASSIGN_OR_RETURN(std::string to, content.string());
  // Else a few steps could make a token of any length.
  if (to.size() > from.size())
    return content.error("content longer than what it replaces is not "
                         "supported");
  decoder.replacements.emplace_back(std::move(from), std::move(to));
  return {};
}

Status DecoderReader::readStrip(const JsonField &field) {
  Decoder::Strip &strip = decoder.strip;
  SANDWICH_ASSIGN_OR_RETURN(JsonField content, field.member("content"));
  SANDWICH_ASSIGN_OR_RETURN(strip.character, content.string());
  if (strip.character.empty() ||
      characterLength(strip.character[0]) != strip.character.size())
    return content.error("must be one character");
  SANDWICH_ASSIGN_OR_RETURN(JsonField start, field.member("start"));
  SANDWICH_ASSIGN_OR_RETURN(strip.fromBegin, start.unsignedInteger());
  SANDWICH_ASSIGN_OR_RETURN(JsonField stop, field.member("stop"));
  SANDWICH_ASSIGN_OR_RETURN(strip.fromEnd, stop.unsignedInteger());
  return {};
}

Status DecoderReader::read(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField typeField, field.member("type"));
  SANDWICH_ASSIGN_OR_RETURN(std::string type, typeField.string());
  if (type == "Sequence") {
    decoder.kind = Decoder::Kind::Pieces;
    SANDWICH_ASSIGN_OR_RETURN(JsonField list, field.member("decoders"));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
    for (const JsonField &element : elements)
      SANDWICH_RETURN_IF_ERROR(read(element));
    return {};
  }
  if (type == "ByteLevel") {
    decoder.kind = Decoder::Kind::ByteLevel;
    return enter(Stage::End, typeField);
  }
  if (type == "Metaspace") {
    SANDWICH_ASSIGN_OR_RETURN(MetaspaceOptions options,
                              MetaspaceOptions::read(field));
    decoder.kind = Decoder::Kind::Metaspace;
    decoder.mark = options.mark;
    decoder.dropsFirstMarks =
        options.prepend != MetaspaceOptions::Prepend::Never;
    return enter(Stage::End, typeField);
  }
  if (type == "WordPiece") {
    decoder.kind = Decoder::Kind::WordPiece;
    SANDWICH_ASSIGN_OR_RETURN(decoder.mark, field.stringMember("prefix"));
    SANDWICH_ASSIGN_OR_RETURN(decoder.cleansUp, field.booleanMember("cleanup"));
    return enter(Stage::End, typeField);
  }
  decoder.kind = Decoder::Kind::Pieces;
  if (type == "Replace") {
    SANDWICH_RETURN_IF_ERROR(enter(Stage::Replace, typeField));
    return readReplace(field);
  }
  if (type == "ByteFallback") {
    decoder.byteFallback = true;
    return enter(Stage::ByteFallback, typeField);
  }
  if (type == "Fuse")
    return enter(Stage::Fuse, typeField);
  if (type == "Strip") {
    SANDWICH_RETURN_IF_ERROR(enter(Stage::Strip, typeField));
    return readStrip(field);
  }
  return typeField.unsupported();
}

Result<Decoder> Decoder::read(const JsonField &field) {
  DecoderReader reader;
  SANDWICH_RETURN_IF_ERROR(reader.read(field));
  return std::move(reader.decoder);
}

/// `text` with each `from` replaced by `to`.
static std::string replaceAll(std::string_view text, std::string_view from,
                              std::string_view to) {
  std::string replaced;
  size_t begin = 0;
  for (size_t position = text.find(from); position != std::string_view::npos;
       position = text.find(from, begin)) {
    replaced += text.substr(begin, position - begin);
    replaced += to;
    begin = position + from.size();
  }
  replaced += text.substr(begin);
  return replaced;
}

/// The byte that `token` stands for if it is written `<0x0A>`.
static std::optional<char> fallbackByte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return std::nullopt;
  int value = 0;
  for (char digit : token.substr(3, 2)) {
    value *= 16;
    if (digit >= '0' && digit <= '9')
      value += digit - '0';
    else if (digit >= 'A' && digit <= 'F')
      value += digit - 'A' + 10;
    else if (digit >= 'a' && digit <= 'f')
      value += digit - 'a' + 10;
    else
      return std::nullopt;
  }
  return static_cast<char>(value);
}

/// The bytes `token` stands for in the byte alphabet; the token itself if it
/// has other characters, as added tokens may.
static std::string alphabetBytes(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size(); i += characterLength(token[i])) {
    char32_t character = firstCharacter(token.substr(i));
    if (character >= byteAlphabetEnd || characterToByte[character] < 0)
      return std::string(token);
    bytes += static_cast<char>(characterToByte[character]);
  }
  return bytes;
}

std::string Decoder::bytesOf(std::string_view token) const {
  switch (kind) {
  case Kind::JoinedBySpaces:
    return ' ' + std::string(token);
  case Kind::ByteLevel:
    return alphabetBytes(token);
  case Kind::Metaspace:
    return replaceAll(token, mark, " ");
  case Kind::WordPiece:
    return wordPiece(token, /*isFirst=*/false);
  case Kind::Pieces:
    break;
  }
  std::string piece = replaced(token);
  if (byteFallback)
    if (std::optional<char> byte = fallbackByte(piece))
      return {*byte};
  return piece;
}

std::string Decoder::wordPiece(std::string_view token, bool isFirst) const {
  std::string piece;
  if (isFirst)
    piece = token;
  else if (token.starts_with(mark))
    piece = token.substr(mark.size());
  else
    piece = ' ' + std::string(token);
  if (!cleansUp)
    return piece;
  // Those of Hugging Face's library, in its order. Each token is cleaned by
  // itself, so that some of them never find anything.
  constexpr std::pair<std::string_view, std::string_view> cleanings[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (auto [from, to] : cleanings)
    piece = replaceAll(piece, from, to);
  return piece;
}

std::string Decoder::replaced(std::string_view token) const {
  std::string piece(token);
  for (const auto &[from, to] : replacements)
    piece = replaceAll(piece, from, to);
  return piece;
}

DecoderState::DecoderState(const Decoder &decoder)
    : decoder(&decoder), leftToStrip(decoder.strip.fromBegin) {}

void DecoderState::add(std::string_view token, std::string &text) {
  switch (decoder->kind) {
  case Decoder::Kind::JoinedBySpaces:
    if (!isFirst)
      text += ' ';
    text += token;
    break;
  case Decoder::Kind::ByteLevel:
    bytes += alphabetBytes(token);
    emitCharacters(text);
    break;
  case Decoder::Kind::Metaspace:
    text += replaceAll(token, decoder->mark,
                       isFirst && decoder->dropsFirstMarks ? "" : " ");
    break;
  case Decoder::Kind::WordPiece:
    text += decoder->wordPiece(token, isFirst);
    break;
  case Decoder::Kind::Pieces:
    addPiece(token, text);
    break;
  }
  isFirst = false;
}

void DecoderState::addPiece(std::string_view token, std::string &text) {
  const std::string piece = decoder->replaced(token);
  if (decoder->byteFallback) {
    if (std::optional<char> byte = fallbackByte(piece)) {
      bytes += *byte;
      emitCharacters(text);
      return;
    }
    emitRest(text);
  }
  emitStripped(piece, text);
}

/// Passes on the whole characters of `bytes`, and U+FFFD for what cannot
/// become one: for each byte token, or for each maximal subpart of byte-level
/// text. Hugging Face's library does the same, except that it gives up all of
/// a run of byte tokens in which any is wrong; text that has been streamed
/// cannot be taken back.
void DecoderState::emitCharacters(std::string &text) {
  size_t begin = 0;
  while (begin < bytes.size()) {
    std::string_view rest = std::string_view(bytes).substr(begin);
    Utf8Prefix prefix = scanUtf8(rest);
    if (prefix.kind == Utf8Prefix::Kind::Cut)
      break;
    if (prefix.kind == Utf8Prefix::Kind::Character)
      emitStripped(rest.substr(0, prefix.length), text);
    else
      for (size_t i = 0; i != (decoder->byteFallback ? prefix.length : 1); ++i)
        emitStripped(replacementCharacter, text);
    begin += prefix.length;
  }
  bytes.erase(0, begin);
}

/// Passes on U+FFFD for the bytes of a character that ends here.
void DecoderState::emitRest(std::string &text) {
  if (bytes.empty())
    return;
  for (size_t i = 0; i != (decoder->byteFallback ? bytes.size() : 1); ++i)
    emitStripped(replacementCharacter, text);
  bytes.clear();
}

void DecoderState::emitStripped(std::string_view piece, std::string &text) {
  const Decoder::Strip &strip = decoder->strip;
  while (leftToStrip > 0 && !piece.empty()) {
    if (!piece.starts_with(strip.character)) {
      leftToStrip = 0;
      break;
    }
    piece.remove_prefix(strip.character.size());
    --leftToStrip;
  }
  if (piece.empty())
    return;
  if (strip.fromEnd == 0) {
    text += piece;
    return;
  }
  uint64_t held = 0;
  while (held < strip.fromEnd && piece.ends_with(strip.character)) {
    piece.remove_suffix(strip.character.size());
    ++held;
  }
  // What was held comes out as far as it is no longer at the end.
  uint64_t released = !piece.empty() ? heldAtEnd
                      : heldAtEnd + held > strip.fromEnd
                          ? heldAtEnd + held - strip.fromEnd
                          : 0;
  for (uint64_t i = 0; i != released; ++i)
    text += strip.character;
  heldAtEnd = heldAtEnd - released + held;
  text += piece;
}

void DecoderState::finish(std::string &text) {
  emitRest(text);
  *this = DecoderState(*decoder);
}
