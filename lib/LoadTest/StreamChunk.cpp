//===- StreamChunk.cpp - A piece of a streamed answer ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/LoadTest/StreamChunk.h"

#include "sandwich/Support/Json.h"

#include <array>

using namespace sandwich;

static constexpr uint64_t mostTokens = uint64_t{1} << 40;

namespace {
/// Follows the parser through the object.
class ChunkReader final : public nlohmann::json_sax<Json> {
public:
  StreamChunk chunk;
  std::string problem;

  bool null() override { return isInside(); }
  bool boolean(bool) override { return isInside(); }
  bool number_integer(number_integer_t) override { return isInside(); }
  bool number_unsigned(number_unsigned_t value) override {
    return isInside() && addNumber(value);
  }
  bool number_float(number_float_t, const string_t &) override {
    return isInside();
  }
  bool string(string_t &value) override {
    return isInside() && addString(value);
  }
  bool binary(binary_t &) override { return false; }
  bool key(string_t &name) override {
    lastKey.assign(name);
    return true;
  }
  bool start_object(std::size_t) override {
    if (here() == Place::ToolCalls)
      chunk.hasText = true;
    const Place place = depth == 0 ? Place::Chunk : placeOfObject();
    if (place == Place::Error && !chunk.error)
      chunk.error = "an error without a message";
    return enter(place);
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    return isInside() && enter(placeOfArray());
  }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    problem = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

private:
  enum class Place : uint8_t {
    Elsewhere,
    Chunk,
    Choices,
    Choice,
    Delta,
    ToolCalls,
    Usage,
    UsageDetails,
    Error,
  };

  Place here() const {
    return depth == 0 ? Place::Elsewhere : places[depth - 1];
  }

  bool isInside() {
    if (depth == 0)
      problem = "it is no object";
    return depth > 0;
  }

  bool enter(Place place) {
    if (depth == places.size()) {
      problem = "JSON nested deeper than " + std::to_string(maxJsonDepth);
      return false;
    }
    places[depth++] = place;
    return true;
  }
  bool leave() {
    --depth;
    return true;
  }

  Place placeOfObject() const {
    switch (here()) {
    case Place::Chunk:
      return lastKey == "usage"   ? Place::Usage
             : lastKey == "error" ? Place::Error
                                  : Place::Elsewhere;
    case Place::Choices:
      return Place::Choice;
    case Place::Choice:
      return lastKey == "delta" ? Place::Delta : Place::Elsewhere;
    case Place::Usage:
      return lastKey == "prompt_tokens_details" ? Place::UsageDetails
                                                : Place::Elsewhere;
    default:
      return Place::Elsewhere;
    }
  }
  Place placeOfArray() const {
    if (here() == Place::Chunk && lastKey == "choices")
      return Place::Choices;
    if (here() == Place::Delta && lastKey == "tool_calls")
      return Place::ToolCalls;
    return Place::Elsewhere;
  }

  bool addNumber(uint64_t value) {
    std::optional<uint64_t> *place = nullptr;
    if (here() == Place::Usage && lastKey == "prompt_tokens")
      place = &chunk.promptTokens;
    else if (here() == Place::Usage && lastKey == "completion_tokens")
      place = &chunk.outputTokens;
    else if (here() == Place::UsageDetails && lastKey == "cached_tokens")
      place = &chunk.cachedPromptTokens;
    if (!place)
      return true;
    if (value > mostTokens) {
      problem = "its usage of " + std::to_string(value) + " tokens cannot be";
      return false;
    }
    *place = value;
    return true;
  }

  bool addString(const string_t &value) {
    switch (here()) {
    case Place::Chunk:
      if (lastKey == "error")
        chunk.error = value;
      break;
    case Place::Error:
      if (lastKey == "message")
        chunk.error = value;
      break;
    case Place::Choice:
      if (lastKey == "text")
        chunk.hasText |= !value.empty();
      else if (lastKey == "finish_reason")
        chunk.finishes = true;
      break;
    case Place::Delta:
      // "reasoning_content" of llama.cpp, "reasoning" of vLLM.
      if (lastKey == "content" || lastKey == "reasoning_content" ||
          lastKey == "reasoning" || lastKey == "refusal")
        chunk.hasText |= !value.empty();
      break;
    default:
      break;
    }
    return true;
  }

  std::array<Place, maxJsonDepth> places;
  size_t depth = 0;
  std::string lastKey;
};
} // namespace

Result<StreamChunk> sandwich::parseStreamChunk(std::string_view data) {
  ChunkReader reader;
  if (!Json::sax_parse(data, &reader))
    return Error{reader.problem.empty() ? "not valid JSON" : reader.problem};
  return std::move(reader.chunk);
}
