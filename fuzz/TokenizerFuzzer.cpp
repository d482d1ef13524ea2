//===- TokenizerFuzzer.cpp - Any bytes as a tokenizer.json ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Runtime/Text/Tokenizer.h"

#include <cstdlib>

using namespace sandwich;

static void check(bool holds) {
  if (!holds)
    std::abort();
}

/// The bytes up to the first zero are a tokenizer.json, those up to the next
/// its tokenizer_config.json if there are any, and the rest a text. A file is
/// refused with a reason, or its ids lie within its vocabulary and decode to
/// UTF-8, the same at once, one by one and as a continuation; and two texts are
/// cut to as many tokens as they may have.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  auto take = [&] {
    std::string_view part = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return part;
  };
  std::string_view file = take();
  std::string_view configuration = take();
  auto tokenizer = Tokenizer::fromText(
      file,
      configuration.empty() ? std::nullopt : std::optional(configuration));
  if (!tokenizer) {
    check(!tokenizer.error().message.empty());
    return 0;
  }
  constexpr std::string_view usual =
      "Hello  w\xC3\xB6rld, it's 12\n\xE2\x82\xAC";
  for (std::string_view text : {usual, rest}) {
    for (bool flag : {false, true}) {
      auto ids = tokenizer->encode(
          text, {.addSpecialTokens = flag, .parseSpecialTokens = flag});
      if (!ids) {
        check(!ids.error().message.empty());
        continue;
      }
      StreamingDecoder decoder(*tokenizer, flag);
      std::string streamed;
      for (int32_t id : *ids) {
        check(id >= 0 && size_t(id) < tokenizer->vocabularySize());
        check(tokenizer->tokenOf(id).has_value());
        streamed += decoder.decode(id);
      }
      streamed += decoder.flush();
      check(streamed == tokenizer->decode(*ids, flag));
      std::span<const int32_t> all = *ids;
      StreamingDecoder continuation(*tokenizer, flag);
      continuation.skip(all.first(all.size() / 2));
      std::string continued;
      for (int32_t id : all.subspan(all.size() / 2))
        continued += continuation.decode(id);
      check(streamed.ends_with(continued + continuation.flush()));
      // Only valid UTF-8 is encoded, or refused for another reason.
      auto again = tokenizer->encode(streamed);
      check(again || again.error().message.find("UTF-8") == std::string::npos);
    }
  }
  for (bool flag : {false, true}) {
    const Truncation truncation = {.maxTokens = 9, .fromLeft = flag};
    auto pair = tokenizer->encodeWithTypes(
        usual, rest, {.addSpecialTokens = flag, .truncation = truncation});
    if (!pair) {
      check(!pair.error().message.empty());
      continue;
    }
    check(pair->ids.size() <= truncation.maxTokens);
    check(pair->typeIds.size() == pair->ids.size());
  }
  return 0;
}
