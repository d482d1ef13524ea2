//===- ModelTemplatesTest.cpp - The chat templates of a checkpoint --------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Template/ModelTemplates.h"

#include <gtest/gtest.h>

using namespace sandwich;

static ModelTemplates
read(const Json &configuration,
     std::optional<std::string_view> templateText = std::nullopt) {
  Result<ModelTemplates> templates =
      ModelTemplates::read(configuration.dump(), templateText);
  EXPECT_TRUE(templates) << templates.error().message;
  return templates ? *templates : ModelTemplates();
}

static std::string failure(std::string_view configuration) {
  Result<ModelTemplates> templates = ModelTemplates::read(configuration);
  EXPECT_FALSE(templates);
  return templates ? std::string() : templates.error().message;
}

/// What the template that is chosen prints, or the error.
static std::string chosen(const ModelTemplates &templates, bool withTools) {
  Result<ChatTemplate> found = templates.choose(withTools);
  if (!found)
    return found.error().message;
  Result<RenderedText> text = found->render(
      Json::object(), {.trustedVariables = templates.specialTokens()});
  return text ? text->text : text.error().message;
}

TEST(ModelTemplates, OneTemplate) {
  const ModelTemplates templates = read({{"chat_template", "a"}});
  EXPECT_EQ(templates.names(), std::vector<std::string>{"default"});
  EXPECT_EQ(chosen(templates, false), "a");
  EXPECT_EQ(chosen(templates, true), "a");
  EXPECT_FALSE(templates.empty());
}

TEST(ModelTemplates, SeveralByName) {
  const ModelTemplates templates =
      read({{"chat_template",
             {{{"name", "default"}, {"template", "a"}},
              {{"name", "tool_use"}, {"template", "b"}},
              {{"name", "rag"}, {"template", "c"}}}}});
  EXPECT_EQ(templates.names(),
            (std::vector<std::string>{"default", "tool_use", "rag"}));
  EXPECT_EQ(chosen(templates, false), "a");
  EXPECT_EQ(chosen(templates, true), "b");
  EXPECT_EQ(templates.sourceFor(false), "a");
  EXPECT_EQ(templates.sourceFor(true), "b");
  EXPECT_TRUE(templates.named("rag"));
  EXPECT_EQ(templates.named("x").error().message,
            "the model has no chat template named 'x'");
}

TEST(ModelTemplates, AFileWinsOverTheConfiguration) {
  EXPECT_EQ(chosen(read({{"chat_template", "{% broken"}}, "b"), false), "b");
  EXPECT_EQ(chosen(read(Json::object(), "b"), true), "b");
  const Json named = {{"chat_template",
                       {{{"name", "default"}, {"template", "a"}},
                        {{"name", "tool_use"}, {"template", "t"}}}}};
  EXPECT_EQ(chosen(read(named, "b"), false), "b");
  EXPECT_EQ(chosen(read(named, "b"), true), "t");
}

TEST(ModelTemplates, NoTemplate) {
  const ModelTemplates templates = read({{"chat_template", nullptr}});
  EXPECT_TRUE(templates.empty());
  EXPECT_EQ(chosen(templates, true), "the model has no chat template");
}

TEST(ModelTemplates, SpecialTokensAreTrustedVariables) {
  const ModelTemplates templates =
      read({{"chat_template", "{{ bos_token }}{{ eos_token }}{{ pad_token }}"
                              "{{ additional_special_tokens[1] }}"},
            {"bos_token", "<s>"},
            {"eos_token", {{"content", "</s>"}, {"lstrip", false}}},
            {"pad_token", nullptr},
            {"additional_special_tokens", {"<a>", {{"content", "<b>"}}}}});
  EXPECT_EQ(templates.specialTokens(),
            Json({{"bos_token", "<s>"},
                  {"eos_token", "</s>"},
                  {"additional_special_tokens", {"<a>", "<b>"}}}));
  EXPECT_EQ(chosen(templates, false), "<s></s><b>");
}

TEST(ModelTemplates, OnlyTheTemplateThatIsChosenMustBeSupported) {
  const ModelTemplates templates =
      read({{"chat_template",
             {{{"name", "default"}, {"template", "a"}},
              {{"name", "tool_use"}, {"template", "\n{% include 'x' %}"}}}}});
  EXPECT_EQ(chosen(templates, false), "a");
  EXPECT_EQ(chosen(templates, true),
            "the chat template 'tool_use': line 2: the statement 'include' is "
            "not supported");
  EXPECT_EQ(failure(R"({"chat_template": "{% include 'x' %}"})"),
            "the chat template 'default': line 1: the statement 'include' is "
            "not supported");
}

TEST(ModelTemplates, ErrorsNameTheField) {
  EXPECT_EQ(failure("["), "tokenizer_config.json: not valid JSON at byte 2");
  EXPECT_EQ(failure("[]"), "tokenizer_config.json: must be an object");
  EXPECT_EQ(failure(R"({"bos_token": 5})"),
            "tokenizer_config.json: bos_token: must be a string or an object "
            "with content");
  EXPECT_EQ(failure(R"({"additional_special_tokens": {}})"),
            "tokenizer_config.json: additional_special_tokens: must be a list");
  for (const char *wrong :
       {"5", "[5]", R"([{"name": "a"}])", R"([{"name": 1, "template": "a"}])"})
    EXPECT_EQ(failure(std::string(R"({"chat_template": )") + wrong + "}"),
              "tokenizer_config.json: chat_template: must be a template or a "
              "list of objects with name and template");
  EXPECT_EQ(failure(R"({"chat_template": [{"name": "a", "template": ""},
                                          {"name": "a", "template": ""}]})"),
            "there are two chat templates named 'a'");
}
