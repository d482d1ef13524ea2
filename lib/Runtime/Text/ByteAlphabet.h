//===- ByteAlphabet.h - Bytes written as characters -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Byte-level BPE, since GPT-2, writes each byte as one visible character:
/// printable Latin-1 as itself, the 68 others as U+0100 and up.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_RUNTIME_TEXT_BYTEALPHABET_H
#define SANDWICH_LIB_RUNTIME_TEXT_BYTEALPHABET_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace sandwich::tokenizer {

/// One more than the last character of the alphabet.
inline constexpr char32_t byteAlphabetEnd = 0x144;

/// The character that stands for each byte.
inline constexpr std::array<char32_t, 256> byteToCharacter = [] {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte != 256; ++byte) {
    bool visible = (byte >= 0x21 && byte <= 0x7E) ||
                   (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    characters[byte] = visible ? byte : next++;
  }
  return characters;
}();

/// The byte that each character below `byteAlphabetEnd` stands for, or -1.
inline constexpr std::array<int16_t, byteAlphabetEnd> characterToByte = [] {
  std::array<int16_t, byteAlphabetEnd> bytes{};
  bytes.fill(-1);
  for (int16_t byte = 0; byte != 256; ++byte)
    bytes[byteToCharacter[static_cast<size_t>(byte)]] = byte;
  return bytes;
}();

} // namespace sandwich::tokenizer

#endif // SANDWICH_LIB_RUNTIME_TEXT_BYTEALPHABET_H
