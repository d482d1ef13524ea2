//===- PrecompiledNormalizer.cpp - SentencePiece's map of characters ------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A map from characters, or a few of them together, to what they become. It is
/// written in base64: the length in bytes of a double-array trie, the units of
/// that trie (as of darts-clone: 32 bits each, little-endian), and texts that
/// end with a zero byte, of which the values in the trie are offsets. Nothing
/// in it is taken for granted.
///
//===----------------------------------------------------------------------===//

#include "Normalizer.h"
#include "Unicode.h"

#include <optional>
#include <sodium.h>

using namespace sandwich;
using namespace sandwich::tokenizer;

namespace {

/// A unit of the trie: a node, or the value of the node before it.
class Unit {
public:
  explicit Unit(uint32_t bits) : bits(bits) {}

  bool isNode() const { return bits >> 31 == 0; }
  /// Of a node: whether what leads here is in the map.
  bool hasValue() const { return bits >> 8 & 1; }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
  /// The byte that leads here; none of a value.
  uint32_t label() const { return bits & 0x800000FF; }
  /// Where the nodes behind this one are, by exclusive or with its place.
  uint32_t offset() const { return bits >> 10 << ((bits & 1U << 9) >> 6); }

private:
  uint32_t bits;
};

class CharacterMap {
public:
  /// Reads the bytes of a map; `field` is for errors.
  static Result<CharacterMap> read(const JsonField &field,
                                   std::string_view bytes);

  /// What `characters`, which are not none, become: the text of the first
  /// characters of them that are in the map, as in Hugging Face's library, also
  /// where more of them are.
  std::optional<std::string_view> find(std::string_view characters) const;

private:
  /// The place of the value of the node at `place`.
  size_t valuePlace(size_t place) const {
    return place ^ units[place].offset();
  }

  std::vector<Unit> units;
  std::string texts;
};

class Precompiled final : public Normalizer {
public:
  Precompiled(std::string name, CharacterMap map)
      : name(std::move(name)), map(std::move(map)) {}

  Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
               SearchBuffers &buffers) const override;

private:
  std::string name;
  CharacterMap map;
};

} // namespace

Result<CharacterMap> CharacterMap::read(const JsonField &field,
                                        std::string_view bytes) {
  auto numberAt = [&](size_t offset) {
    uint32_t number = 0;
    for (size_t i = 0; i != 4; ++i)
      number |= uint32_t(static_cast<unsigned char>(bytes[offset + i]))
                << 8 * i;
    return number;
  };
  const size_t trieBytes = bytes.size() < 4 ? 0 : numberAt(0);
  if (trieBytes == 0 || trieBytes % 4 != 0 || trieBytes > bytes.size() - 4)
    return field.error("is no map of characters: it has ", bytes.size(),
                       " bytes, and its trie is said to have ", trieBytes);
  CharacterMap map;
  map.units.reserve(trieBytes / 4);
  for (size_t offset = 4; offset != 4 + trieBytes; offset += 4)
    map.units.emplace_back(numberAt(offset));
  map.texts = bytes.substr(4 + trieBytes);
  if (findInvalidUtf8(map.texts))
    return field.error("is no map of characters: its texts are not UTF-8");
  for (size_t place = 0; place != map.units.size(); ++place) {
    if (!map.units[place].isNode() || !map.units[place].hasValue())
      continue;
    const size_t value = map.valuePlace(place);
    const size_t offset =
        value < map.units.size() ? map.units[value].value() : map.texts.size();
    // Within a character, a text would not be UTF-8.
    if (offset >= map.texts.size() ||
        (static_cast<unsigned char>(map.texts[offset]) & 0xC0) == 0x80)
      return field.error("is no map of characters: unit ", place,
                         " has a value that is not the offset of a text");
  }
  return map;
}

std::optional<std::string_view>
CharacterMap::find(std::string_view characters) const {
  size_t place = units[0].offset();
  for (char each : characters) {
    auto byte = static_cast<unsigned char>(each);
    place ^= byte;
    if (byte == 0 || place >= units.size() || units[place].label() != byte)
      return std::nullopt;
    // That it is a place, and that of an offset, has been checked.
    if (const size_t value = valuePlace(place); units[place].hasValue()) {
      const size_t begin = units[value].value();
      const size_t end = texts.find('\0', begin);
      return std::string_view(texts).substr(begin, end - begin);
    }
    place = valuePlace(place);
  }
  return std::nullopt;
}

Status Precompiled::apply(std::string &text, ByteMarks &marks, size_t maxBytes,
                          SearchBuffers &) const {
  // Longer clusters are looked up character by character.
  constexpr size_t longestCluster = 5;
  std::string rewritten;
  rewritten.reserve(text.size());
  ByteMarks kept = marks.none();
  auto rewrite = [&](size_t begin, size_t end, std::string_view to) {
    rewritten += to;
    if (marks.wanted())
      kept.append(to.size(), marks.all(begin, end));
  };
  const std::string_view whole = text;
  for (size_t begin = 0; begin != text.size();) {
    const size_t end = begin + graphemeLength(whole.substr(begin));
    std::optional<std::string_view> replacement;
    if (end - begin <= longestCluster)
      replacement = map.find(whole.substr(begin, end - begin));
    if (replacement) {
      rewrite(begin, end, *replacement);
      begin = end;
    }
    while (begin != end) {
      const auto character = whole.substr(begin, characterLength(text[begin]));
      rewrite(begin, begin + character.size(),
              map.find(character).value_or(character));
      begin += character.size();
    }
    if (rewritten.size() > maxBytes)
      return textGrows(name, maxBytes);
  }
  text = std::move(rewritten);
  marks = std::move(kept);
  return {};
}

Result<std::unique_ptr<Normalizer>>
tokenizer::readPrecompiledNormalizer(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField mapField,
                            field.member("precompiled_charsmap"));
  SANDWICH_ASSIGN_OR_RETURN(std::string encoded, mapField.string());
  std::string bytes(encoded.size() / 4 * 3, '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char *>(bytes.data()),
                        bytes.size(), encoded.data(), encoded.size(),
                        /*ignore=*/nullptr, &size, /*b64_end=*/nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0)
    return mapField.error("is not base64");
  SANDWICH_ASSIGN_OR_RETURN(
      CharacterMap map,
      CharacterMap::read(mapField, std::string_view(bytes).substr(0, size)));
  return std::unique_ptr<Normalizer>(
      std::make_unique<Precompiled>(field.path(), std::move(map)));
}
