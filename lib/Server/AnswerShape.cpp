//===- AnswerShape.cpp - Texts in the words of an endpoint ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AnswerShape.h"

#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

std::string sandwich::jsonString(std::string_view text) {
  return Json(std::string(text))
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

uint64_t sandwich::countCharacters(std::string_view text) {
  return static_cast<uint64_t>(std::ranges::count_if(
      text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

Json TokenUsage::toJson() const {
  return {{"prompt_tokens", promptTokens},
          {"completion_tokens", generatedTokens},
          {"total_tokens", promptTokens + generatedTokens},
          {"prompt_tokens_details", {{"cached_tokens", cachedTokens}}}};
}

/// JSON has no minus infinity; OpenAI writes this.
static double finite(float logProbability) {
  constexpr double least = -9999;
  return std::isnan(logProbability)
             ? least
             : std::max(static_cast<double>(logProbability), least);
}

std::string AnswerShape::nameOf(int32_t token) const {
  if (!tokenizer)
    return "token_id:" + std::to_string(token);
  const std::string bytes = tokenizer->bytesOf(token);
  if (bytes.empty())
    if (auto written = tokenizer->tokenOf(token))
      return std::string(*written);
  if (!findInvalidUtf8(bytes))
    return bytes;
  std::string name = "bytes:";
  constexpr char digits[] = "0123456789abcdef";
  for (char byte : bytes) {
    name += "\\x";
    name += digits[static_cast<unsigned char>(byte) >> 4];
    name += digits[byte & 15];
  }
  return name;
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

AnswerShape::AnswerShape(Identity identity, std::optional<Tokenizer> tokenizer,
                         std::string wholeKind, std::string_view chunkKind)
    : identity(std::move(identity)), tokenizer(std::move(tokenizer)),
      wholeKind(std::move(wholeKind)),
      eventStart(
          "data: {\"id\":" + jsonString(this->identity.id) +
          ",\"object\":" + jsonString(chunkKind) +
          ",\"created\":" + std::to_string(this->identity.created) +
          ",\"model\":" + jsonString(this->identity.model) +
          ",\"system_fingerprint\":" + jsonString(this->identity.fingerprint)) {
}

std::string AnswerShape::event(uint32_t index, std::string_view choice,
                               const std::optional<std::string> &finish,
                               const std::optional<TokenUsage> &usage) const {
  std::string text = eventStart;
  text += ",\"choices\":[{\"index\":";
  text += std::to_string(index);
  text += ',';
  text += choice;
  text += ",\"finish_reason\":";
  text += finish ? jsonString(*finish) : "null";
  text += "}]";
  if (identity.hasUsage)
    text += ",\"usage\":" + (usage ? usage->toJson().dump() : "null");
  text += "}\n\n";
  return text;
}

std::string AnswerShape::chunk(const ChoicePart &part,
                               const std::optional<TokenUsage> &usage) const {
  std::string choice;
  writeChunkChoice(choice, part);
  return event(part.index, choice, part.finish, usage);
}

std::string AnswerShape::usageChunk(const TokenUsage &usage) const {
  return eventStart + ",\"choices\":[],\"usage\":" + usage.toJson().dump() +
         "}\n\n";
}

Json AnswerShape::whole(std::span<const ChoicePart> choices,
                        const TokenUsage &usage) const {
  Json list = Json::array();
  for (const ChoicePart &part : choices) {
    Json choice = {{"index", part.index}};
    choice.update(wholeChoice(part));
    choice["finish_reason"] = part.finish ? Json(*part.finish) : Json();
    list.push_back(std::move(choice));
  }
  return {{"id", identity.id},
          {"object", wholeKind},
          {"created", identity.created},
          {"model", identity.model},
          {"system_fingerprint", identity.fingerprint},
          {"choices", std::move(list)},
          {"usage", usage.toJson()}};
}

//===----------------------------------------------------------------------===//
// Completions
//===----------------------------------------------------------------------===//

namespace {
class CompletionShape : public AnswerShape {
public:
  CompletionShape(Identity identity, std::optional<Tokenizer> tokenizer)
      : AnswerShape(std::move(identity), std::move(tokenizer),
                    "text_completion", "text_completion") {}

  std::string opening(uint32_t) const override { return {}; }

protected:
  void writeChunkChoice(std::string &text,
                        const ChoicePart &part) const override {
    text += "\"text\":";
    text += jsonString(part.text);
    text += ",\"logprobs\":";
    text += identity.scored ? scores(part).dump() : "null";
  }

  Json wholeChoice(const ChoicePart &part) const override {
    return {{"text", part.text},
            {"logprobs", identity.scored ? scores(part) : Json()}};
  }

private:
  /// Lists of equal length, one item for each token.
  Json scores(const ChoicePart &part) const {
    Json tokens = Json::array(), scores = Json::array(), tops = Json::array(),
         offsets = Json::array();
    uint64_t offset = part.textOffset;
    for (const TokenScore &each : part.scores) {
      std::string name = nameOf(each.token);
      Json top;
      if (each.logProbability) {
        top = Json::object();
        // The more probable of two tokens that look alike.
        for (const TokenLogProbability &other : each.top)
          if (std::string key = nameOf(other.token); !top.contains(key))
            top[key] = finite(other.logProbability);
        if (!top.contains(name))
          top[name] = finite(*each.logProbability);
      }
      offsets.push_back(offset);
      offset += countCharacters(name);
      tokens.push_back(std::move(name));
      scores.push_back(each.logProbability ? Json(finite(*each.logProbability))
                                           : Json());
      tops.push_back(std::move(top));
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(scores)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
  }
};
} // namespace

std::unique_ptr<AnswerShape>
sandwich::completionShape(AnswerShape::Identity identity,
                          std::optional<Tokenizer> tokenizer) {
  return std::make_unique<CompletionShape>(std::move(identity),
                                           std::move(tokenizer));
}

//===----------------------------------------------------------------------===//
// Chats
//===----------------------------------------------------------------------===//

namespace {
class ChatShape : public AnswerShape {
public:
  ChatShape(Identity identity, std::optional<Tokenizer> tokenizer)
      : AnswerShape(std::move(identity), std::move(tokenizer),
                    "chat.completion", "chat.completion.chunk") {}

  std::string opening(uint32_t index) const override {
    return event(index,
                 "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                 "\"logprobs\":null",
                 std::nullopt, std::nullopt);
  }

protected:
  void writeChunkChoice(std::string &text,
                        const ChoicePart &part) const override {
    text += "\"delta\":{";
    if (!part.text.empty())
      text += "\"content\":" + jsonString(part.text);
    if (!part.calls.empty())
      text += (part.text.empty() ? "" : ",") +
              ("\"tool_calls\":" +
               callParts(part.calls)
                   .dump(-1, ' ', false, Json::error_handler_t::replace));
    text += "},\"logprobs\":";
    text += identity.scored ? scores(part).dump() : "null";
  }

  Json wholeChoice(const ChoicePart &part) const override {
    Json message = {{"role", "assistant"}, {"content", part.text}};
    if (!part.calls.empty()) {
      if (part.text.empty())
        message["content"] = nullptr;
      message["tool_calls"] = wholeCalls(part.calls);
    }
    message["refusal"] = nullptr;
    return {{"message", std::move(message)},
            {"logprobs", identity.scored ? scores(part) : Json()}};
  }

private:
  static Json callParts(const std::vector<ToolCallPart> &parts) {
    Json list = Json::array();
    for (const ToolCallPart &part : parts) {
      Json call = {{"index", part.index}};
      Json function = Json::object();
      if (!part.id.empty()) {
        call["id"] = part.id;
        call["type"] = "function";
        function["name"] = part.name;
      }
      function["arguments"] = part.arguments;
      call["function"] = std::move(function);
      list.push_back(std::move(call));
    }
    return list;
  }

  static Json wholeCalls(const std::vector<ToolCallPart> &parts) {
    Json list = Json::array();
    for (const ToolCallPart &part : parts) {
      if (!part.id.empty())
        list.push_back(
            {{"id", part.id},
             {"type", "function"},
             {"function", {{"name", part.name}, {"arguments", ""}}}});
      auto &arguments = list.back()["function"]["arguments"];
      arguments = arguments.get<std::string>() + part.arguments;
    }
    return list;
  }

  Json bytesOf(int32_t token) const {
    if (!tokenizer)
      return {};
    Json list = Json::array();
    for (char byte : tokenizer->bytesOf(token))
      list.push_back(static_cast<unsigned char>(byte));
    return list;
  }

  Json score(int32_t token, float logProbability) const {
    return {{"token", nameOf(token)},
            {"logprob", finite(logProbability)},
            {"bytes", bytesOf(token)}};
  }

  Json scores(const ChoicePart &part) const {
    Json content = Json::array();
    for (const TokenScore &each : part.scores) {
      Json entry = score(each.token, each.logProbability.value_or(0));
      entry["top_logprobs"] = Json::array();
      for (const TokenLogProbability &other : each.top)
        entry["top_logprobs"].push_back(
            score(other.token, other.logProbability));
      content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }
};
} // namespace

std::unique_ptr<AnswerShape>
sandwich::chatShape(AnswerShape::Identity identity,
                    std::optional<Tokenizer> tokenizer) {
  return std::make_unique<ChatShape>(std::move(identity), std::move(tokenizer));
}
