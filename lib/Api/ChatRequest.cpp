//===- ChatRequest.cpp - POST /v1/chat/completions ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ChatRequest.h"

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The texts of a content in parts, one after another.
static std::optional<std::string> joinParts(ObjectReader &message,
                                            const Json &parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    ObjectReader part(parts[i], message.pathOf(indexed("content", i)) + ".");
    const std::string type =
        part.string("type", GenerationParameters::nameBytes).value_or("");
    const Json *piece = part.find("text");
    if (type != "text" && type != "input_text")
      part.refuse("type", part.pathOf("type") + " is " + excerpt(Json(type)) +
                              "; this model reads \"text\" only");
    else if (!piece || !piece->is_string())
      part.refuse("text", part.pathOf("text") + " must be a string");
    part.ignore({"cache_control"});
    if (std::optional<ApiError> error = part.finish()) {
      message.refuse(*std::move(error));
      return std::nullopt;
    }
    if (i > 0)
      text += "\n";
    text += piece->get_ref<const std::string &>();
  }
  return text;
}

/// Templates want the arguments of a call as an object; the API has a string
/// of JSON.
static void readCalls(ObjectReader &message, Json &calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    ObjectReader call(calls[i], message.pathOf(indexed("tool_calls", i)) + ".");
    call.ignore({"id", "type", "index"});
    call.within("function", [&](ObjectReader &function) {
      if (!function.string("name", GenerationParameters::nameBytes))
        function.refuse("name", function.pathOf("name") + " is missing");
      const Json *arguments = function.find("arguments");
      if (!arguments || !arguments->is_string())
        return;
      const auto &text = arguments->get_ref<const std::string &>();
      Result<Json> parsed =
          text.empty() ? Result<Json>(Json::object()) : parseJson(text);
      if (!parsed)
        return function.refuse("arguments", function.pathOf("arguments") +
                                                " is " +
                                                parsed.error().message);
      calls[i]["function"]["arguments"] = *std::move(parsed);
    });
    if (!call.find("function"))
      call.refuse("function", call.pathOf("function") + " is missing");
    if (std::optional<ApiError> error = call.finish())
      return message.refuse(*std::move(error));
  }
}

static void readMessage(ObjectReader &reader, size_t index, Json message,
                        Json &messages) {
  const Json original = message;
  ObjectReader fields(original, indexed("messages", index) + ".");
  if (fields.hasError())
    return reader.refuse(*fields.finish());
  if (!fields.string("role", GenerationParameters::nameBytes))
    fields.refuse("role", fields.pathOf("role") + " is missing");
  if (const Json *content = fields.find("content")) {
    if (content->is_array()) {
      if (auto text = joinParts(fields, *content))
        message["content"] = *std::move(text);
    } else if (!content->is_string()) {
      fields.refuseValue("content", *content, "a string or a list of parts");
    }
  } else if (!fields.find("tool_calls") && !fields.find("refusal")) {
    fields.refuse("content", fields.pathOf("content") + " is missing");
  } else {
    message["content"] = nullptr;
  }
  if (fields.list("tool_calls"))
    readCalls(fields, message["tool_calls"]);
  // What templates read, or nobody.
  fields.ignore({"name", "tool_call_id", "refusal", "reasoning",
                 "reasoning_content", "thinking", "annotations", "audio",
                 "function_call", "prefix"});
  if (std::optional<ApiError> error = fields.finish())
    return reader.refuse(*std::move(error));
  // Templates tell a field that is null from none.
  Json present = Json::object();
  for (const auto &[name, value] : message.items())
    if (!value.is_null() || name == "content")
      present[name] = std::move(value);
  messages.push_back(std::move(present));
}

static void readMessages(ObjectReader &reader, Json &messages) {
  const Json *list = reader.list("messages");
  if (!list || list->empty() || list->size() > ChatRequest::mostMessages)
    return reader.refuse("messages",
                         "messages must be a list of 1 to " +
                             std::to_string(ChatRequest::mostMessages) +
                             " messages");
  for (size_t i = 0; i < list->size() && !reader.hasError(); ++i)
    readMessage(reader, i, (*list)[i], messages);
}

//===----------------------------------------------------------------------===//
// Tools
//===----------------------------------------------------------------------===//

static void readTool(ObjectReader &reader, const std::string &name,
                     const Json &tool) {
  ObjectReader fields(tool, name + ".");
  if (fields.string("type", GenerationParameters::nameBytes) != "function")
    fields.refuse("type", fields.pathOf("type") + " must be \"function\"");
  if (!fields.find("function"))
    fields.refuse("function", fields.pathOf("function") + " is missing");
  fields.within("function", [&](ObjectReader &function) {
    if (!function.string("name", GenerationParameters::nameBytes))
      function.refuse("name", function.pathOf("name") + " is missing");
    (void)function.object("parameters");
    function.ignore({"description", "strict"});
  });
  if (std::optional<ApiError> error = fields.finish())
    reader.refuse(*std::move(error));
}

const Json *sandwich::findFunction(const Json &tools, std::string_view name) {
  for (const Json &tool : tools)
    if (const Json &function = tool["function"]; function["name"] == name)
      return &function;
  return nullptr;
}

Json sandwich::parametersOf(const Json &function) {
  const auto parameters = function.find("parameters");
  return parameters == function.end() || parameters->is_null()
             ? Json{{"type", "object"}, {"properties", Json::object()}}
             : *parameters;
}

static void readToolChoice(ObjectReader &reader, ChatRequest &request) {
  const Json *choice = reader.find("tool_choice");
  if (request.tools.is_null()) {
    request.toolChoice.kind = ToolChoice::Kind::None;
    if (choice && *choice != "none" && *choice != "auto")
      reader.refuse("tool_choice", "tool_choice is " + excerpt(*choice) +
                                       ", and there are no tools");
    return;
  }
  if (!choice || *choice == "auto")
    return;
  if (*choice == "none") {
    request.toolChoice.kind = ToolChoice::Kind::None;
  } else if (*choice == "required") {
    request.toolChoice.kind = ToolChoice::Kind::Required;
  } else if (choice->is_object()) {
    reader.within("tool_choice", [&](ObjectReader &within) {
      within.ignore({"type"});
      within.within("function", [&](ObjectReader &function) {
        request.toolChoice = {
            ToolChoice::Kind::Function,
            function.string("name", GenerationParameters::nameBytes)
                .value_or("")};
        if (!findFunction(request.tools, request.toolChoice.function))
          function.refuse("name",
                          "tools has no function " +
                              excerpt(Json(request.toolChoice.function)));
      });
      if (!within.find("function"))
        within.refuse("function", "tool_choice.function is missing");
    });
  } else {
    reader.refuseValue("tool_choice", *choice,
                       "\"none\", \"auto\", \"required\" or a function");
  }
}

static void readTools(ObjectReader &reader, ChatRequest &request) {
  if (const Json *tools = reader.list("tools"); tools && !tools->empty()) {
    if (tools->size() > ChatRequest::mostTools)
      return reader.refuse("tools", "tools has " +
                                        std::to_string(tools->size()) +
                                        " tools; it must have at most " +
                                        std::to_string(ChatRequest::mostTools));
    for (size_t i = 0; i < tools->size() && !reader.hasError(); ++i)
      readTool(reader, indexed("tools", i), (*tools)[i]);
    request.tools = *tools;
  }
  if (!reader.hasError())
    readToolChoice(reader, request);
  request.parallelToolCalls =
      reader.boolean("parallel_tool_calls").value_or(true);
}

//===----------------------------------------------------------------------===//
// The request
//===----------------------------------------------------------------------===//

static void readLogProbabilities(ObjectReader &reader,
                                 SamplingOptions &sampling) {
  const bool wanted = reader.boolean("logprobs").value_or(false);
  const auto top =
      reader.integer("top_logprobs", 0, SamplingOptions::maxLogProbabilities);
  if (wanted)
    sampling.logProbabilities = static_cast<uint32_t>(top.value_or(0));
  else if (top && *top > 0)
    reader.refuse("top_logprobs",
                  "top_logprobs is only for requests with logprobs: true");
}

static void readTemplateArguments(ObjectReader &reader, ChatRequest &request) {
  if (const Json *arguments = reader.object("chat_template_kwargs"))
    request.templateArguments = *arguments;
  if (auto effort =
          reader.string("reasoning_effort", GenerationParameters::nameBytes))
    request.templateArguments["reasoning_effort"] = *std::move(effort);
  if (const Json *documents = reader.list("documents"))
    request.templateArguments["documents"] = *documents;
  request.continueFinalMessage =
      reader.boolean("continue_final_message").value_or(false);
  request.addGenerationPrompt = reader.boolean("add_generation_prompt")
                                    .value_or(!request.continueFinalMessage);
  if (request.addGenerationPrompt && request.continueFinalMessage)
    reader.refuse("continue_final_message",
                  "continue_final_message is only for requests with "
                  "add_generation_prompt: false");
}

void sandwich::readConversation(ObjectReader &reader, ChatRequest &request) {
  readMessages(reader, request.messages);
  readTools(reader, request);
  readTemplateArguments(reader, request);
}

std::variant<ChatRequest, ApiError>
sandwich::parseChatRequest(std::string_view body) {
  ChatRequest request;
  auto error = readObject(body, [&](ObjectReader &reader) {
    request.parameters = readGenerationParameters(reader);
    readConversation(reader, request);
    readLogProbabilities(reader, request.parameters.sampling);
    const auto most = GenerationParameters::mostTokens;
    auto tokens = reader.integer("max_completion_tokens", 1, most);
    if (auto old = reader.integer("max_tokens", 1, most); old && !tokens)
      tokens = old;
    if (tokens)
      request.parameters.maxTokens = static_cast<uint64_t>(*tokens);
    reader.requireDefault("echo", false);
    reader.requireDefault("add_special_tokens", false);
    reader.requireDefault("modalities", Json::array({"text"}));
  });
  if (error)
    return *std::move(error);
  return request;
}
