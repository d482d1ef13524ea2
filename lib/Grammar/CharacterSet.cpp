//===- CharacterSet.cpp - Sets of characters, and their bytes -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CharacterSet.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

using namespace sandwich;
using namespace sandwich::grammar;

static constexpr char32_t largestCharacter = 0x10FFFF;
static constexpr char32_t firstSurrogate = 0xD800, lastSurrogate = 0xDFFF;

CharacterSet &CharacterSet::add(char32_t first, char32_t last) {
  if (first <= lastSurrogate && last >= firstSurrogate) {
    if (first < firstSurrogate)
      add(first, firstSurrogate - 1);
    if (last > lastSurrogate)
      add(lastSurrogate + 1, last);
    return *this;
  }
  // The ranges that it touches become one with it.
  auto begin = std::ranges::find_if(
      ranges, [=](const Range &range) { return range.last + 1 >= first; });
  auto end = begin;
  for (; end != ranges.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  begin = ranges.erase(begin, end);
  ranges.insert(begin, {first, last});
  return *this;
}

CharacterSet &CharacterSet::add(const CharacterSet &other) {
  for (const Range &range : other.ranges)
    add(range.first, range.last);
  return *this;
}

CharacterSet CharacterSet::complement() const {
  CharacterSet result;
  char32_t next = 0;
  for (const Range &range : ranges) {
    if (range.first > next)
      result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= largestCharacter)
    result.add(next, largestCharacter);
  return result;
}

bool CharacterSet::contains(char32_t character) const {
  return std::ranges::any_of(ranges, [=](const Range &range) {
    return range.first <= character && character <= range.last;
  });
}

/// The bytes of `character`; how many there are.
static size_t encodeUtf8(char32_t character, std::array<uint8_t, 4> &bytes) {
  auto tail = [&](unsigned shift) {
    return static_cast<uint8_t>(0x80 | ((character >> shift) & 0x3F));
  };
  if (character < 0x80) {
    bytes = {static_cast<uint8_t>(character)};
    return 1;
  }
  if (character < 0x800) {
    bytes = {static_cast<uint8_t>(0xC0 | (character >> 6)), tail(0)};
    return 2;
  }
  if (character < 0x10000) {
    bytes = {static_cast<uint8_t>(0xE0 | (character >> 12)), tail(6), tail(0)};
    return 3;
  }
  bytes = {static_cast<uint8_t>(0xF0 | (character >> 18)), tail(12), tail(6),
           tail(0)};
  return 4;
}

/// Divides the range until each part is a product of ranges of bytes, as
/// Thompson's grep and its successors do.
void CharacterSet::addUtf8(ExpressionPool &pool, char32_t first, char32_t last,
                           std::vector<Expression> &parts) {
  for (char32_t limit : {0x80u, 0x800u, 0x10000u})
    if (first < limit && last >= limit) {
      addUtf8(pool, first, limit - 1, parts);
      return addUtf8(pool, limit, last, parts);
    }
  std::array<uint8_t, 4> low{}, high{};
  const size_t length = encodeUtf8(first, low);
  for (unsigned tail = 1; tail < length; ++tail) {
    const char32_t mask = (char32_t(1) << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask))
      continue;
    if ((first & mask) != 0) {
      addUtf8(pool, first, first | mask, parts);
      return addUtf8(pool, (first | mask) + 1, last, parts);
    }
    if ((last & mask) != mask) {
      addUtf8(pool, first, (last & ~mask) - 1, parts);
      return addUtf8(pool, last & ~mask, last, parts);
    }
  }
  encodeUtf8(last, high);
  Expression sequence = ExpressionPool::empty;
  for (size_t i = length; i-- > 0;)
    sequence = pool.concat(pool.bytes(low[i], high[i]), sequence);
  parts.push_back(sequence);
}

/// Whether `character` stands for itself in a JSON string.
static bool isWrittenRaw(char32_t character) {
  return character >= 0x20 && character != '"' && character != '\\';
}

static std::string escapeOf(char32_t character) {
  constexpr std::array<std::pair<char32_t, const char *>, 7> escapes = {
      {{'"', "\\\""},
       {'\\', "\\\\"},
       {'\b', "\\b"},
       {'\f', "\\f"},
       {'\n', "\\n"},
       {'\r', "\\r"},
       {'\t', "\\t"}}};
  for (const auto &[escaped, text] : escapes)
    if (escaped == character)
      return text;
  char text[8];
  std::snprintf(text, sizeof(text), "\\u%04x",
                static_cast<unsigned>(character));
  return text;
}

Expression CharacterSet::expression(ExpressionPool &pool,
                                    Encoding encoding) const {
  std::vector<Expression> parts;
  if (encoding == Encoding::Utf8) {
    for (const Range &range : ranges)
      addUtf8(pool, range.first, range.last, parts);
    return pool.either(std::move(parts));
  }
  CharacterSet escaped;
  escaped.add(0, 0x1F).add('"').add('\\');
  CharacterSet barred = complement();
  for (const Range &range : barred.add(escaped).complement().ranges)
    addUtf8(pool, range.first, range.last, parts);
  std::vector<std::string> escapes;
  for (char32_t character = 0; character <= '\\'; ++character)
    if (!isWrittenRaw(character) && contains(character))
      escapes.push_back(escapeOf(character));
  if (!escapes.empty())
    parts.push_back(pool.literals(std::move(escapes)));
  return pool.either(std::move(parts));
}

std::string sandwich::grammar::jsonEscaped(std::string_view text) {
  std::string result;
  for (char byte : text) {
    const auto character = static_cast<unsigned char>(byte);
    if (isWrittenRaw(character))
      result += byte;
    else
      result += escapeOf(character);
  }
  return result;
}
