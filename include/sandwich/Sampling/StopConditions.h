//===- StopConditions.h - When a text ends ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SAMPLING_STOPCONDITIONS_H
#define SANDWICH_SAMPLING_STOPCONDITIONS_H

#include "sandwich/Sampling/SamplingOptions.h"
#include "sandwich/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// What ends the text of a request beside the model and the number of tokens.
struct StopOptions {
  static constexpr size_t maxStrings = 16;
  static constexpr size_t maxStringBytes = 1024;
  static constexpr size_t maxTokens = 256;

  /// The text ends with the first of these that is complete in it; of several
  /// that end with the same byte, with the longest.
  std::vector<std::string> strings = {};
  std::vector<int32_t> tokens = {};
  /// Whether what ended the text, a stop string or the text of a stop token, is
  /// output as well.
  bool includeInText = false;

  /// Errors (`InvalidArgument`): more than `maxStrings` strings, one that is
  /// empty, longer than `maxStringBytes` or not UTF-8, more than `maxTokens`
  /// tokens, or a negative one.
  Status validate() const;
};

enum class StopCause {
  /// One of the model's tokens that end a text.
  EndToken,
  StopToken,
  StopString,
};

/// Follows the text of a request and tells what of it to output and when it
/// ends. What could be the beginning of a stop string is held back until that
/// is known, so the text output does not depend on how it is divided among
/// tokens. If tokens come with whole UTF-8 characters, as from
/// `StreamingDecoder`, so does the text output. A token costs work in
/// proportion to its bytes and the number of strings, on the average over a
/// text. vLLM's semantics: nothing ends the text within the first `minTokens`
/// tokens, but a stop string may begin there.
class StopConditions {
public:
  /// Both options must be valid; of `sampling`, `minTokens` and
  /// `ignoreEndOfText` count. `endTokens` are those with which the model ends a
  /// text.
  StopConditions(const StopOptions &options, const SamplingOptions &sampling,
                 std::span<const int32_t> endTokens);

  /// The tokens that end a text, for `Sampler` to bar.
  std::vector<int32_t> endingTokens() const;

  struct Step {
    /// What to output now; possibly nothing.
    std::string text;
    /// Set if the text ends with this step, which is then the last.
    std::optional<StopCause> stopped;
  };

  /// Takes the next output token and the text that it completes. The text of a
  /// token of the model that ends it is not output.
  Step addToken(int32_t token, std::string_view text);

  /// The text held back, at the end of a text that nothing here has stopped.
  std::string flush();

  /// After `StopCause::StopString`, its index in `StopOptions::strings`.
  size_t stopString() const { return foundString; }

private:
  /// A stop string, and how much of it the text ends with (Knuth, Morris and
  /// Pratt 1977).
  class Matcher {
  public:
    explicit Matcher(std::string text);

    /// Takes the text's next byte; whether the string is complete.
    bool advance(char byte);
    /// Bytes at the end of the text that begin the string, without all of it.
    size_t pending() const;
    size_t size() const { return text.size(); }

  private:
    std::string text;
    /// For each beginning of `text`, by its last byte: the length of the
    /// longest shorter beginning that it ends with.
    std::vector<uint16_t> shorter;
    size_t matched = 0;
  };

  std::optional<StopCause> causeOf(int32_t token) const;
  /// Advances all matchers; whether a string is complete, the longest in
  /// `foundString`.
  bool advance(char byte);

  std::vector<int32_t> stopTokens, endTokens;
  bool includeInText;
  uint64_t minTokens;
  uint64_t outputs = 0;
  std::vector<Matcher> matchers;
  std::string held;
  size_t foundString = 0;
};

} // namespace sandwich

#endif // SANDWICH_SAMPLING_STOPCONDITIONS_H
