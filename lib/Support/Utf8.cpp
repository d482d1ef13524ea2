//===- Utf8.cpp - Characters in bytes -------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Support/Utf8.h"

using namespace sandwich;

Utf8Prefix sandwich::scanUtf8(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return {Utf8Prefix::Kind::Character, 1};
  if (lead < 0xC2 || lead > 0xF4)
    return {Utf8Prefix::Kind::Invalid, 1};
  size_t length = characterLength(text[0]);
  // The second byte's range excludes overlong forms, surrogates and what lies
  // beyond U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i != length; ++i, low = 0x80, high = 0xBF) {
    if (i == text.size())
      return {Utf8Prefix::Kind::Cut, i};
    auto byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high)
      return {Utf8Prefix::Kind::Invalid, i};
  }
  return {Utf8Prefix::Kind::Character, length};
}

std::optional<size_t> sandwich::findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    Utf8Prefix prefix = scanUtf8(text.substr(i));
    if (prefix.kind != Utf8Prefix::Kind::Character)
      return i;
    i += prefix.length;
  }
  return std::nullopt;
}

void sandwich::appendCharacter(std::string &text, char32_t character) {
  auto append = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    append(character);
    return;
  }
  // The first byte says how many follow, each of which holds six bits.
  if (character < 0x800) {
    append(0xC0 | character >> 6);
  } else {
    if (character < 0x10000) {
      append(0xE0 | character >> 12);
    } else {
      append(0xF0 | character >> 18);
      append(0x80 | (character >> 12 & 0x3F));
    }
    append(0x80 | (character >> 6 & 0x3F));
  }
  append(0x80 | (character & 0x3F));
}

std::string sandwich::printable(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    Utf8Prefix prefix = scanUtf8(text);
    bool character = prefix.kind == Utf8Prefix::Kind::Character;
    // C1 controls, U+0080 to U+009F, move a terminal's cursor too.
    bool control = static_cast<unsigned char>(text[0]) < 0x20 ||
                   text[0] == 0x7f ||
                   (prefix.length == 2 && text[0] == '\xC2' &&
                    static_cast<unsigned char>(text[1]) < 0xA0);
    std::string_view part = text.substr(0, prefix.length);
    text.remove_prefix(prefix.length);
    if (!character || control)
      part = "?";
    if (clean.size() + part.size() > 200)
      return clean + "...";
    clean += part;
  }
  return clean;
}
