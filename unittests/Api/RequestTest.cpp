//===- RequestTest.cpp - Requests of completions and chats ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/ChatRequest.h"
#include "sandwich/Api/CompletionRequest.h"

#include <gtest/gtest.h>

using namespace sandwich;

namespace {

CompletionRequest completion(const std::string &fields) {
  auto parsed = parseCompletionRequest("{\"prompt\": \"p\"" + fields + "}");
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << error->message;
  return error ? CompletionRequest{} : std::get<CompletionRequest>(parsed);
}

ChatRequest chat(const std::string &fields) {
  auto parsed = parseChatRequest(
      R"({"messages": [{"role": "user", "content": "c"}])" + fields + "}");
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_FALSE(error) << error->message;
  return error ? ChatRequest{} : std::get<ChatRequest>(parsed);
}

ApiError completionError(std::string_view body) {
  auto parsed = parseCompletionRequest(body);
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_TRUE(error) << body;
  return error ? *error : ApiError{};
}

ApiError chatError(std::string_view body) {
  auto parsed = parseChatRequest(body);
  const auto *error = std::get_if<ApiError>(&parsed);
  EXPECT_TRUE(error) << body;
  return error ? *error : ApiError{};
}

/// The field that is wrong with a conversation of this one message.
std::string messageParam(const std::string &message) {
  return chatError("{\"messages\": [" + message + "]}").param.value_or("none");
}

//===----------------------------------------------------------------------===//
// What both have
//===----------------------------------------------------------------------===//

TEST(GenerationParameters, HaveOpenAIsDefaults) {
  const GenerationParameters parameters = completion("").parameters;
  EXPECT_EQ(parameters.model, "");
  EXPECT_FALSE(parameters.maxTokens);
  EXPECT_EQ(parameters.continuations, 1u);
  EXPECT_EQ(parameters.sampling.temperature, 1);
  EXPECT_EQ(parameters.sampling.topP, 1);
  EXPECT_EQ(parameters.sampling.topK, 0u);
  EXPECT_FALSE(parameters.hasSeed);
  EXPECT_FALSE(parameters.stream);
  EXPECT_TRUE(parameters.skipSpecialTokens);
  EXPECT_EQ(parameters.format.kind, OutputFormat::Kind::Text);
  EXPECT_TRUE(parameters.sampling.validate());
  EXPECT_TRUE(parameters.stop.validate());
}

TEST(GenerationParameters, AreRead) {
  const GenerationParameters parameters =
      completion(R"(, "model": "m", "n": 3, "temperature": 0.5, "top_p": 0.9,
                      "top_k": 40, "min_p": 0.1, "frequency_penalty": -1,
                      "presence_penalty": 1, "repetition_penalty": 1.2,
                      "ignore_eos": true, "min_tokens": 2, "seed": -1,
                      "logit_bias": {"5": -100, "7": 2.5},
                      "stop": ["a", "b"], "stop_token_ids": [3],
                      "include_stop_str_in_output": true,
                      "skip_special_tokens": false, "stream": true,
                      "stream_options": {"include_usage": true},
                      "priority": 7, "cache_salt": "s", "user": "u")")
          .parameters;
  EXPECT_EQ(parameters.model, "m");
  EXPECT_EQ(parameters.continuations, 3u);
  const SamplingOptions &sampling = parameters.sampling;
  EXPECT_FLOAT_EQ(sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(sampling.topP, 0.9F);
  EXPECT_EQ(sampling.topK, 40u);
  EXPECT_FLOAT_EQ(sampling.minP, 0.1F);
  EXPECT_FLOAT_EQ(sampling.frequencyPenalty, -1);
  EXPECT_FLOAT_EQ(sampling.presencePenalty, 1);
  EXPECT_FLOAT_EQ(sampling.repetitionPenalty, 1.2F);
  EXPECT_TRUE(sampling.ignoreEndOfText);
  EXPECT_EQ(sampling.minTokens, 2u);
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_TRUE(parameters.hasSeed);
  EXPECT_EQ(sampling.logitBias,
            (std::map<int32_t, float>{{5, -100.0F}, {7, 2.5F}}));
  EXPECT_EQ(parameters.stop.strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parameters.stop.tokens, std::vector<int32_t>{3});
  EXPECT_TRUE(parameters.stop.includeInText);
  EXPECT_FALSE(parameters.skipSpecialTokens);
  EXPECT_TRUE(parameters.stream);
  EXPECT_TRUE(parameters.includeUsage);
  EXPECT_FALSE(parameters.continuousUsage);
  EXPECT_EQ(parameters.priority, 0u);
  EXPECT_EQ(parameters.cacheSalt, "s");
}

TEST(GenerationParameters, OfEveryRequestThatIsTakenSuitTheSampler) {
  for (const char *fields :
       {R"(, "temperature": 100)", R"(, "temperature": 1e-300)",
        R"(, "top_p": 1e-30)", R"(, "repetition_penalty": 0.001)",
        R"(, "min_p": 1)", R"(, "frequency_penalty": 2)", R"(, "top_k": -1)",
        R"(, "logprobs": 20)", R"(, "logit_bias": {"2147483647": 100})"}) {
    const GenerationParameters parameters = completion(fields).parameters;
    EXPECT_TRUE(parameters.sampling.validate()) << fields;
    EXPECT_TRUE(parameters.stop.validate()) << fields;
  }
  // Its nearest float is 0.
  EXPECT_EQ(completionError(R"({"prompt": "p", "top_p": 1e-300})").param,
            "top_p");
}

TEST(GenerationParameters, AreRefusedByName) {
  for (const auto &[field, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"n", "0"},
           {"n", "1025"},
           {"best_of", "2"},
           {"temperature", "-1"},
           {"top_p", "0"},
           {"min_p", "2"},
           {"top_k", "-2"},
           {"frequency_penalty", "2.5"},
           {"presence_penalty", "-2.5"},
           {"repetition_penalty", "0"},
           {"min_tokens", "-1"},
           {"seed", "1.5"},
           {"logit_bias", R"({"a": 1})"},
           {"logit_bias", R"({"1": 101})"},
           {"logit_bias", R"({"01x": 1})"},
           {"stop", "[\"\"]"},
           {"stop_token_ids", "[-1]"},
           {"priority", "8"},
           {"stream_options", "{}"},
           {"use_beam_search", "true"},
           {"made_up", "false"}}) {
    for (const ApiError &error :
         {completionError("{\"prompt\": \"p\", \"" + field + "\": " + value +
                          "}"),
          chatError(R"({"messages": [{"role": "user", "content": "c"}], ")" +
                    field + "\": " + value + "}")}) {
      EXPECT_EQ(error.param.value_or("none").substr(0, field.size()), field)
          << value;
      EXPECT_NE(error.message.find(field), std::string::npos) << error.message;
    }
  }
}

TEST(GenerationParameters, SayWhatATextMustBeLike) {
  EXPECT_EQ(
      chat(R"(, "response_format": {"type": "text"})").parameters.format.kind,
      OutputFormat::Kind::Text);
  EXPECT_EQ(chat(R"(, "response_format": {"type": "json_object"})")
                .parameters.format.kind,
            OutputFormat::Kind::JsonObject);
  OutputFormat format = chat(R"(, "response_format": {"type": "json_schema",
      "json_schema": {"name": "x", "strict": true,
                      "schema": {"type": "string"}}})")
                            .parameters.format;
  EXPECT_EQ(format.kind, OutputFormat::Kind::JsonSchema);
  EXPECT_EQ(format.schema.dump(), R"({"type":"string"})");
  EXPECT_EQ(format.param, "response_format.json_schema.schema");
  format = completion(R"(, "guided_json": "{\"type\": \"null\"}")")
               .parameters.format;
  EXPECT_EQ(format.schema.dump(), R"({"type":"null"})");
  EXPECT_EQ(format.param, "guided_json");
  format = completion(R"(, "guided_regex": "a+")").parameters.format;
  EXPECT_EQ(format.kind, OutputFormat::Kind::RegularExpression);
  EXPECT_EQ(format.pattern, "a+");
  format = completion(R"(, "structured_outputs": {"choice": ["a", "b"]})")
               .parameters.format;
  EXPECT_EQ(format.kind, OutputFormat::Kind::Choice);
  EXPECT_EQ(format.choices, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(format.param, "structured_outputs.choice");
}

//===----------------------------------------------------------------------===//
// Completions
//===----------------------------------------------------------------------===//

TEST(CompletionRequest, TakesPromptsOfEveryKind) {
  using Tokens = std::vector<int32_t>;
  const auto prompts = [](const std::string &value) {
    auto parsed = parseCompletionRequest("{\"prompt\": " + value + "}");
    const auto *request = std::get_if<CompletionRequest>(&parsed);
    return request ? request->prompts : std::vector<Prompt>{};
  };
  EXPECT_EQ(prompts(R"("a")"), std::vector<Prompt>{"a"});
  EXPECT_EQ(prompts(R"(["a", "b"])"), (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(prompts("[1, 2]"), (std::vector<Prompt>{Tokens{1, 2}}));
  EXPECT_EQ(prompts("[[1], [2, 3]]"),
            (std::vector<Prompt>{Tokens{1}, Tokens{2, 3}}));
  EXPECT_EQ(prompts(R"(["a", [2]])"), (std::vector<Prompt>{"a", Tokens{2}}));
  for (const char *wrong :
       {"null", "5", "{}", "true", "[1, \"a\"]", "[\"a\", 1]", "[[\"a\"]]",
        "[1.5]", "[-1]", "[2147483648]", "[18446744073709551615]",
        "[[1], [[2]]]", "[null]"})
    EXPECT_TRUE(prompts(wrong).empty()) << wrong;
}

TEST(CompletionRequest, IsRead) {
  const CompletionRequest request =
      completion(R"(, "echo": true, "max_tokens": 0, "logprobs": 5,
                      "add_special_tokens": false,
                      "truncate_prompt_tokens": 9)");
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.parameters.maxTokens, 0u);
  EXPECT_EQ(request.parameters.sampling.logProbabilities, 5u);
  EXPECT_FALSE(request.addSpecialTokens);
  EXPECT_EQ(request.truncatePromptTokens, 9u);
}

TEST(CompletionRequest, MakesATokenAtLeastUnlessItTellsThePrompt) {
  EXPECT_EQ(completionError(R"({"prompt": "p", "max_tokens": 0})").param,
            "max_tokens");
  EXPECT_EQ(completion(R"(, "max_tokens": 1)").parameters.maxTokens, 1u);
}

TEST(CompletionRequest, CountsTheTextsOfAllPrompts) {
  std::string prompts = "[\"a\"";
  for (int i = 1; i < 512; ++i)
    prompts += ", \"a\"";
  prompts += "]";
  EXPECT_TRUE(std::holds_alternative<CompletionRequest>(
      parseCompletionRequest("{\"prompt\": " + prompts + ", \"n\": 2}")));
  EXPECT_EQ(completionError("{\"prompt\": " + prompts + ", \"n\": 3}").param,
            "n");
}

TEST(CompletionRequest, SaysWhereItIsNoJson) {
  EXPECT_EQ(completionError("{\"prompt\": }").message,
            "the request's body is not valid JSON at byte 12");
  EXPECT_EQ(completionError(std::string(100, '[')).message,
            "the request's body is JSON nested deeper than 64");
  EXPECT_EQ(completionError("[]").message,
            "the request is a list; it must be an object");
}

//===----------------------------------------------------------------------===//
// Chats
//===----------------------------------------------------------------------===//

TEST(ChatRequest, JoinsThePartsOfAContent) {
  auto parsed = parseChatRequest(R"({"messages": [{"role": "user", "content":
      [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]}]})");
  const auto *request = std::get_if<ChatRequest>(&parsed);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->messages.dump(), R"([{"role":"user","content":"a\nb"}])");
}

TEST(ChatRequest, GivesTemplatesTheArgumentsOfCallsAsObjects) {
  auto parsed = parseChatRequest(R"({"messages": [{"role": "assistant",
      "content": null, "name": null, "tool_calls": [{"id": "1",
      "type": "function", "function": {"name": "f",
      "arguments": "{\"a\": [1]}"}}, {"function": {"name": "g",
      "arguments": ""}}, {"function": {"name": "h"}}]}]})");
  const auto *request = std::get_if<ChatRequest>(&parsed);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->messages.dump(),
            R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1",)"
            R"("type":"function","function":{"name":"f","arguments":)"
            R"({"a":[1]}}},{"function":{"name":"g","arguments":{}}},)"
            R"({"function":{"name":"h"}}]}])");
}

TEST(ChatRequest, NamesTheMessageThatIsWrong) {
  EXPECT_EQ(messageParam("5"), "messages[0]");
  EXPECT_EQ(messageParam("{}"), "messages[0].role");
  EXPECT_EQ(messageParam(R"({"role": "user"})"), "messages[0].content");
  EXPECT_EQ(messageParam(R"({"role": "user", "content": 5})"),
            "messages[0].content");
  EXPECT_EQ(messageParam(R"({"role": "user", "content": [{"type": "x"}]})"),
            "messages[0].content[0].type");
  EXPECT_EQ(messageParam(R"({"role": "user", "content": [{"type": "text"}]})"),
            "messages[0].content[0].text");
  EXPECT_EQ(messageParam(R"({"role": "user", "content": "", "x": 1})"),
            "messages[0].x");
  EXPECT_EQ(messageParam(R"({"role": "assistant", "tool_calls": [5]})"),
            "messages[0].tool_calls[0]");
  EXPECT_EQ(messageParam(R"({"role": "assistant", "tool_calls": [
              {"function": {"name": "f", "arguments": "{"}}]})"),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(chatError("{}").param, "messages");
  EXPECT_EQ(chatError(R"({"messages": []})").param, "messages");
}

TEST(ChatRequest, DropsMillionsOfFieldsWithoutAValue) {
  std::string message = R"({"role": "user", "content": "c")";
  for (int i = 0; i < 300000; ++i)
    message += ", \"k" + std::to_string(i) + "\": null";
  auto parsed = parseChatRequest("{\"messages\": [" + message + "}]}");
  const auto *request = std::get_if<ChatRequest>(&parsed);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->messages.dump(), R"([{"role":"user","content":"c"}])");
}

const std::string tools =
    R"(, "tools": [{"type": "function", "function": {"name": "f",
        "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "g"}}])";

TEST(ChatRequest, ChoosesTools) {
  EXPECT_EQ(chat("").toolChoice.kind, ToolChoice::Kind::None);
  EXPECT_EQ(chat(R"(, "tools": [])").toolChoice.kind, ToolChoice::Kind::None);
  EXPECT_EQ(chat(tools).toolChoice.kind, ToolChoice::Kind::Auto);
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "none")").toolChoice.kind,
            ToolChoice::Kind::None);
  EXPECT_EQ(chat(tools + R"(, "tool_choice": "required")").toolChoice.kind,
            ToolChoice::Kind::Required);
  const ToolChoice choice = chat(tools + R"(, "tool_choice": {"type":
      "function", "function": {"name": "g"}})")
                                .toolChoice;
  EXPECT_EQ(choice.kind, ToolChoice::Kind::Function);
  EXPECT_EQ(choice.function, "g");
}

TEST(ChatRequest, RefusesToolsByName) {
  const auto param = [](const std::string &fields) {
    return chatError(R"({"messages": [{"role": "user", "content": "c"}])" +
                     fields + "}")
        .param.value_or("none");
  };
  EXPECT_EQ(param(R"(, "tools": [5])"), "tools[0]");
  EXPECT_EQ(param(R"(, "tools": [{"type": "x"}])"), "tools[0].type");
  EXPECT_EQ(param(R"(, "tools": [{"type": "function"}])"), "tools[0].function");
  EXPECT_EQ(param(R"(, "tools": [{"type": "function", "function": {}}])"),
            "tools[0].function.name");
  EXPECT_EQ(param(R"(, "tool_choice": "required")"), "tool_choice");
  EXPECT_EQ(param(tools + R"(, "tool_choice": "some")"), "tool_choice");
  EXPECT_EQ(param(tools + R"(, "tool_choice": {"function": {"name": "h"}})"),
            "tool_choice.function.name");
  EXPECT_EQ(param(tools + R"(, "tool_choice": {})"), "tool_choice.function");
}

TEST(ChatRequest, FindsTheParametersOfATool) {
  const ChatRequest request = chat(tools);
  const auto parameters = [&](const char *name) {
    return parametersOf(*findFunction(request.tools, name)).dump();
  };
  EXPECT_EQ(parameters("f"), R"({"type":"object"})");
  EXPECT_EQ(parameters("g"), R"({"type":"object","properties":{}})");
  EXPECT_FALSE(findFunction(request.tools, "h"));
}

TEST(ChatRequest, IsRead) {
  const ChatRequest request = chat(R"(, "logprobs": true, "top_logprobs": 4,
      "max_completion_tokens": 7, "max_tokens": 9, "reasoning_effort": "low",
      "chat_template_kwargs": {"x": 1}, "documents": [],
      "continue_final_message": true)");
  EXPECT_EQ(request.parameters.sampling.logProbabilities, 4u);
  EXPECT_EQ(request.parameters.maxTokens, 7u);
  EXPECT_EQ(request.templateArguments.dump(),
            R"({"x":1,"reasoning_effort":"low","documents":[]})");
  EXPECT_TRUE(request.continueFinalMessage);
  EXPECT_FALSE(request.addGenerationPrompt);
  EXPECT_EQ(chat(R"(, "max_tokens": 9)").parameters.maxTokens, 9u);
  EXPECT_FALSE(
      chat(R"(, "logprobs": false)").parameters.sampling.logProbabilities);
}

TEST(ChatRequest, RefusesWhatContradictsItself) {
  const auto param = [](const std::string &fields) {
    return chatError(R"({"messages": [{"role": "user", "content": "c"}])" +
                     fields + "}")
        .param.value_or("none");
  };
  EXPECT_EQ(param(R"(, "top_logprobs": 3)"), "top_logprobs");
  EXPECT_EQ(param(R"(, "continue_final_message": true,
                       "add_generation_prompt": true)"),
            "continue_final_message");
}

} // namespace
