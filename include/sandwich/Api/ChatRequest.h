//===- ChatRequest.h - POST /v1/chat/completions ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_API_CHATREQUEST_H
#define SANDWICH_API_CHATREQUEST_H

#include "sandwich/Api/GenerationParameters.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sandwich {

struct ToolChoice {
  enum class Kind { None, Auto, Required, Function };

  Kind kind = Kind::Auto;
  /// Function.
  std::string function = {};
};

struct ChatRequest {
  static constexpr size_t mostMessages = 1 << 14;
  static constexpr size_t mostTools = 1024;

  GenerationParameters parameters;
  /// As templates expect them: objects with a role and, as a rule, a content
  /// that is a string; arguments of tool calls are objects.
  Json messages = Json::array();
  /// As the request has them; null: none.
  Json tools = {};
  ToolChoice toolChoice;
  /// A text may have several calls.
  bool parallelToolCalls = true;
  /// A new turn is begun for the model, or its last message is continued.
  bool addGenerationPrompt = true;
  bool continueFinalMessage = false;
  /// What a template may ask for besides: "chat_template_kwargs",
  /// "reasoning_effort" and "documents".
  Json templateArguments = Json::object();
};

/// Errors name the field.
std::variant<ChatRequest, ApiError> parseChatRequest(std::string_view body);

/// Reads the fields of which a prompt is made.
void readConversation(ObjectReader &reader, ChatRequest &request);

/// The function that the tool `name` is; null: there is no such tool.
const Json *findFunction(const Json &tools, std::string_view name);

/// The parameters' schema of a tool's function: an object without parameters
/// where it has none.
Json parametersOf(const Json &function);

} // namespace sandwich

#endif // SANDWICH_API_CHATREQUEST_H
