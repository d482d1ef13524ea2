//===- ChatTemplateTest.cpp - Conversations to prompts --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What templates_test.py and random_test.py, which compare with jinja2, do not
/// see: errors, the clock, threads. And enough of the language to find most
/// faults without them.
///
//===----------------------------------------------------------------------===//

#include "TemplateTests.h"

#include <thread>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// The language
//===----------------------------------------------------------------------===//

TEST(ChatTemplate, WhitespaceIsAsTransformersSetsIt) {
  // trim_blocks and lstrip_blocks.
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"),
            "a\n  b\nc");
  EXPECT_EQ(rendered("a\n  {{ 1 }}\nb"), "a\n  1\nb");
  EXPECT_EQ(rendered("a {%- if true -%} b {%- endif -%} c"), "abc");
  EXPECT_EQ(rendered("  {%+ if true %}\nb{% endif +%}\nc"), "  b\nc");
  EXPECT_EQ(rendered("a\n  {# c #}\nb{#- d -#} e"), "a\nbe");
  EXPECT_EQ(rendered("a\r\nb\rc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("{% raw %} {{ x }} {% endraw %}\n{{- 1 -}}\n\u00a0x"),
            " {{ x }} 1x");
}

TEST(ChatTemplate, PrecedenceIsJinjas) {
  EXPECT_EQ(rendered("{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 1 ~ 2 * 3 }}"),
            "64 4 16");
  EXPECT_EQ(rendered("{{ not 1 == 2 }} {{ 1 < 2 < 3 }} {{ -1|abs }}"),
            "True True 1");
  EXPECT_EQ(rendered("{{ 'a' if false }}|{{ 1 or 0 and 0 }}|{{ 7 // 2 * 2 }}"),
            "|1|6");
  EXPECT_EQ(rendered("{{ 1 in [1] and 2 not in [1] }} {{ 'b' ~ 'c'|upper }}"),
            "True bC");
}

TEST(ChatTemplate, NumbersArePythons) {
  EXPECT_EQ(rendered("{{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 // 2 }} "
                     "{{ -7.5 % 2 }} {{ 2 ** -1 }} {{ 1e16 }} {{ 1e15 }} "
                     "{{ 0.0001 }} {{ 0.00001 }} {{ 1_000 }} {{ 0xff }}"),
            "3.5 -4 2 3.0 0.5 0.5 1e+16 1000000000000000.0 0.0001 1e-05 1000 "
            "255");
  EXPECT_EQ(rendered("{{ true + true }} {{ 1 == 1.0 }} {{ 2.5|round }} "
                     "{{ 3.14159|round(2) }} {{ '0x1F'|int(base=16) }} "
                     "{{ '3.9'|int }} {{ 'x'|int(7) }}"),
            "2 True 2.0 3.14 31 3 7");
}

TEST(ChatTemplate, ValuesPrintAsInPython) {
  EXPECT_EQ(
      rendered("{{ [none, true, 'it\\'s', \"a\\n\", 1.0, (1,), (), {}] }}"),
      "[None, True, \"it's\", 'a\\n', 1.0, (1,), (), {}]");
  EXPECT_EQ(
      rendered("{{ x }}", {{"x", {{"a", {1, nullptr}}, {"b", "\u200b"}}}}),
      "{'a': [1, None], 'b': '\\u200b'}");
  EXPECT_EQ(rendered("{{ range(3) }} {{ {'a': 1}.items() }} {{ none }}"),
            "range(0, 3) dict_items([('a', 1)]) None");
}

TEST(ChatTemplate, JsonIsAsPythonWritesIt) {
  const Json variables = {
      {"x", {{"b", {1, 2.5, true, nullptr}}, {"a", "\u00e9<\"\n\u0001"}}}};
  EXPECT_EQ(rendered("{{ x|tojson }}", variables),
            "{\"b\": [1, 2.5, true, null], \"a\": \"\u00e9<\\\"\\n\\u0001\"}");
  EXPECT_EQ(rendered("{{ x|tojson(ensure_ascii=true, sort_keys=true, "
                     "separators=(',', ':')) }}",
                     variables),
            "{\"a\":\"\\u00e9<\\\"\\n\\u0001\",\"b\":[1,2.5,true,null]}");
  EXPECT_EQ(rendered("{{ {'a': [1, {}], 'b': []}|tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

TEST(ChatTemplate, ScopesAreJinjas) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}"
                     "{% set x = 5 %}{{ x }}{% endfor %}{{ x }}"),
            "15151");
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}"
                     "{{ m() }}"),
            "2");
  EXPECT_EQ(rendered("{% set ns = namespace(x=0) %}{% for i in [1, 2] %}"
                     "{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}"),
            "3");
  EXPECT_EQ(rendered("{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}"
                     "{{ a }}"),
            "1");
}

TEST(ChatTemplate, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(rendered("{% for x in 'abc' %}{{ loop.index }}{{ loop.revindex0 }}"
                     "{{ loop.first }}{{ loop.last }}{{ loop.previtem }}"
                     "{{ loop.nextitem }}{{ loop.length }};{% endfor %}"),
            "12TrueFalseb3;21FalseFalseac3;30FalseTrueb3;");
  EXPECT_EQ(rendered("{% for x in [1, 2, 3, 4] if x is odd %}{{ x }}"
                     "{{ loop.index }}{{ loop.last }}{% else %}e{% endfor %}"),
            "11False32True");
  EXPECT_EQ(rendered("{% for x in [] %}a{% else %}e{% endfor %}"
                     "{% for x in range(9) %}{% if x == 1 %}{% continue %}"
                     "{% elif x == 3 %}{% break %}{% endif %}{{ x }}"
                     "{% endfor %}"),
            "e02");
  EXPECT_EQ(rendered("{% for k, (a, b) in [(1, (2, 3))] %}{{ k }}{{ b }}"
                     "{% endfor %}"),
            "13");
  EXPECT_EQ(rendered("{% for x in t recursive %}{{ x.n }}{{ loop.depth }}"
                     "{{ loop(x.c) if x.c }}{% endfor %}",
                     {{"t", {{{"n", "a"}, {"c", {{{"n", "b"}}}}}}}}),
            "a1b2");
}

TEST(ChatTemplate, MacrosTakeArguments) {
  const std::string macro =
      "{% macro m(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}";
  EXPECT_EQ(rendered(macro + "{{ m(1) }}|{{ m(1, c=3) }}|{{ m(b=1, a=0) }}"),
            "122|123|011");
  EXPECT_EQ(rendered("{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}"
                     "{{ m(1, *[2], a=3, **{'b': 4}) }}"),
            "(1, 2){'a': 3, 'b': 4}");
  EXPECT_EQ(rendered("{% macro m() %}<{{ caller('x') }}>{% endmacro %}"
                     "{% call(y) m() %}{{ y }}!{% endcall %}"),
            "<x!>");
  EXPECT_EQ(failure(macro + "{{ m(1, 2, 3, 4) }}"),
            "line 1 of the chat template: the macro 'm' takes at most 3 "
            "arguments");
  EXPECT_EQ(failure(macro + "{{ m(d=1) }}"),
            "line 1 of the chat template: the macro 'm' has no parameter 'd'");
}

// A method comes before a key where a name is written with a point.
TEST(ChatTemplate, AttributesAreJinjas) {
  const Json variables = {{"x", {{"items", 5}, {"a", 1}}}};
  EXPECT_EQ(rendered("{{ x['items'] }}{{ x.items is callable }}{{ x.a }}"
                     "{{ x.get('items') }}{{ x.b is defined }}",
                     variables),
            "5True15False");
  EXPECT_EQ(rendered("{{ [1, 2].0 }}{{ [1, 2][-1] }}{{ 'abc'[5] }}"
                     "{{ {1: 2}[1.0] }}"),
            "122");
}

TEST(ChatTemplate, TimeIsTheCallers) {
  RenderOptions options;
  options.now.tm_year = 124;
  options.now.tm_mon = 1;
  options.now.tm_mday = 3;
  options.now.tm_hour = 14;
  options.now.tm_wday = 6;
  options.now.tm_yday = 33;
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y|%A|%-d|%I %p|%j|%%|%H:%M:%S|"
                     "%Z%z') }}",
                     {}, options),
            "03 Feb 2024|Saturday|3|02 PM|034|%|14:00:00|");
  EXPECT_EQ(failure("{{ strftime_now('%') }}"),
            "line 1 of the chat template: the function 'strftime_now': a "
            "directive of the format of a time is not supported");
  // Whatever a caller leaves, or puts, there.
  options.now.tm_mon = 99;
  options.now.tm_wday = -5;
  options.now.tm_year = 1'000'000'000;
  EXPECT_EQ(rendered("{{ strftime_now('%B %A %Y') }}", {}, options),
            "December Sunday 9999");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(ChatTemplate, RaisedMessagesAreAsTheTemplateSays) {
  Result<RenderedText> result =
      render("\n{{ raise_exception('Roles ' ~ 1 ~ '!') }}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "Roles 1!");
  EXPECT_EQ(result.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(failure("{% macro m() %}{{ raise_exception('x') }}{% endmacro %}"
                    "{{ [1]|map('string')|map('upper')|list }}{{ m() }}"),
            "x");
}

TEST(ChatTemplate, ErrorsOfRenderingNameTheLine) {
  auto message = [](const std::string &source, const Json &variables = {}) {
    Result<RenderedText> result =
        render(source, variables.is_null() ? Json::object() : variables);
    EXPECT_FALSE(result) << source;
    if (result)
      return std::string();
    EXPECT_EQ(result.error().kind, ErrorKind::InvalidArgument);
    return result.error().message;
  };
  EXPECT_EQ(message("a\n{{ x.y }}"),
            "line 2 of the chat template: 'x' is undefined");
  EXPECT_EQ(message("{{ x.y.z }}", {{"x", {{"a", 1}}}}),
            "line 1 of the chat template: 'dict object' has no attribute 'y'");
  EXPECT_EQ(message("{{ x + '\n' }}", {{"x", nullptr}}),
            "line 1 of the chat template: '+' does not go with None and str");
  EXPECT_EQ(message("\n\n{{ 1 // 0 }}"),
            "line 3 of the chat template: division by zero");
  EXPECT_EQ(message("{{ 9223372036854775807 + 1 }}"),
            "line 1 of the chat template: an integer has more than 64 bits");
  EXPECT_EQ(message("{{ -9223372036854775807 - 2 }}"),
            "line 1 of the chat template: an integer has more than 64 bits");
  EXPECT_EQ(message("{{ 10 ** 19 }}{{ 2 ** 1000000000 }}"),
            "line 1 of the chat template: an integer has more than 64 bits");
  EXPECT_EQ(message("{{ 'a' < 1 }}"),
            "line 1 of the chat template: '<' does not go with str and int");
  EXPECT_EQ(message("{% for x in 5 %}{% endfor %}"),
            "line 1 of the chat template: a int has no items");
  EXPECT_EQ(message("{{ [1].append(2) }}"),
            "line 1 of the chat template: 'append' of a list changes it, which "
            "templates cannot");
  EXPECT_EQ(message("{{ {}.update({}) }}"),
            "line 1 of the chat template: 'update' of a dict changes it, which "
            "templates cannot");
  EXPECT_EQ(message("{% set x.y = 1 %}", {{"x", Json::object()}}),
            "line 1 of the chat template: 'x' is no namespace, and only those "
            "have attributes that can be set");
  EXPECT_EQ(message("{{ 'a'.encode() }}"),
            "line 1 of the chat template: the method 'encode' is not "
            "supported");
  EXPECT_EQ(message("{{ 'a'|indent('x', y=1) }}"),
            "line 1 of the chat template: the filter 'indent': has no argument "
            "'y'");
  EXPECT_EQ(message("{{ ['a']|map('nothing')|list }}"),
            "line 1 of the chat template: the filter 'list': the filter 'map' "
            "needs the name of a filter that is supported");
  EXPECT_EQ(message("{% set a, b = [1] %}"),
            "line 1 of the chat template: there are 1 values for 2 names");
  EXPECT_EQ(message("{{ [1]|reverse }}"),
            "line 1 of the chat template: a generator cannot be printed");
  EXPECT_EQ(message("{{ {[]: 1} }}"),
            "line 1 of the chat template: a list cannot be a key");
  EXPECT_EQ(message("{{ nothing|tojson }}"),
            "line 1 of the chat template: the filter 'tojson': a value that is "
            "not defined is no JSON: 'nothing' is undefined");
}

TEST(ChatTemplate, BadVariablesAreErrors) {
  EXPECT_EQ(failure("{{ x }}", Json::array()),
            "the variables are no JSON object");
  EXPECT_EQ(failure("{{ x }}", {{"x", 18446744073709551615u}}),
            "the variables hold the integer 18446744073709551615, which has "
            "more than 64 bits");
  EXPECT_EQ(failure("{{ x }}", {{"x", "a\xff"}}),
            "the variables hold a string that is not UTF-8 at byte 1");
  // What the template does not name is not looked at.
  EXPECT_EQ(rendered("{{ y }}", {{"x", "a\xff"}}), "");
}

TEST(ChatTemplate, WhatIsNoJinjaIsAnErrorOfParsing) {
  auto message = [](const std::string &source) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    EXPECT_FALSE(parsed) << source;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(message("\n{{ 1 "), "line 2: the template ends within a tag");
  EXPECT_EQ(message("{{ 1 + }}"), "line 1: unexpected the end of the tag");
  EXPECT_EQ(message("{{ }}"),
            "line 1: expected an expression, found the end of the tag");
  EXPECT_EQ(message("{{ (1] }}"), "line 1: unexpected ']', expected ')'");
  EXPECT_EQ(message("{{ 1) }}"), "line 1: unexpected ')'");
  EXPECT_EQ(message("{{ 'a }}"), "line 1: a string has no end");
  EXPECT_EQ(message("{{ a & b }}"), "line 1: unexpected character '&'");
  EXPECT_EQ(message("{{ \u00e9 }}"), "line 1: unexpected character '\u00e9'");
  EXPECT_EQ(message("{# a"), "line 1: a comment has no end, #}");
  EXPECT_EQ(message("{% raw %}a"), "line 1: a raw block has no end, "
                                   "{% endraw %}");
  EXPECT_EQ(message("{% if 1 %}\n"),
            "line 1: the template ends where {% endif %} is missing");
  EXPECT_EQ(message("{% endif %}"),
            "line 1: {% endif %} ends nothing that is open");
  EXPECT_EQ(message("{% for x in y %}{% endif %}"),
            "line 1: {% endif %} ends nothing that is open");
  EXPECT_EQ(message("{% break %}"), "line 1: {% break %} is in no loop");
  EXPECT_EQ(message("{% for x in y %}{% macro m() %}{% break %}{% endmacro %}"
                    "{% endfor %}"),
            "line 1: {% break %} is in no loop");
  EXPECT_EQ(message("{% set true = 1 %}"), "line 1: cannot assign to 'true'");
  EXPECT_EQ(message("{% macro m(a, a) %}{% endmacro %}"),
            "line 1: the macro has two parameters named 'a'");
  EXPECT_EQ(message("{{ f(a=1, 2) }}"),
            "line 1: the arguments of a call are in no order that is allowed");
  EXPECT_EQ(message("{{ f(a=1, a=2) }}"),
            "line 1: the argument a is given twice");
  EXPECT_EQ(message("{{ '\\ud800' }}"),
            "line 1: a string has the number of no character");
  EXPECT_EQ(message("{{ '\\x1' }}"),
            "line 1: a string ends within the number of a character");
  EXPECT_EQ(message("{{ 9223372036854775808 }}"),
            "line 1: the integer 9223372036854775808 has more than 64 bits, "
            "which is not supported");
  EXPECT_EQ(message("a\xff"), "the template is not UTF-8 at byte 1");
}

TEST(ChatTemplate, WhatIsNotSupportedIsAnErrorOfParsing) {
  auto message = [](const std::string &source) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    EXPECT_FALSE(parsed) << source;
    return parsed ? std::string() : parsed.error().message;
  };
  for (const std::string name : {"include", "import", "from", "extends",
                                 "block", "autoescape", "do", "trans"})
    EXPECT_EQ(message("a\n{% " + name + " x %}"),
              "line 2: the statement '" + name + "' is not supported");
  for (const std::string name :
       {"pprint", "random", "filesizeformat", "urlencode", "urlize", "xmlattr",
        "striptags", "wordwrap", "nothing"})
    EXPECT_EQ(message("{{ x|" + name + " }}"),
              "line 1: the filter '" + name + "' is not supported");
  EXPECT_EQ(message("{{ x is nothing }}"),
            "line 1: the test 'nothing' is not supported");
  EXPECT_EQ(message("{{ x[1, 2] }}"),
            "line 1: a subscript of several parts is not supported");
  EXPECT_EQ(message("{{ '\\N{DASH}' }}"),
            "line 1: characters by name, \\N{...}, are not supported");
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

TEST(ChatTemplate, CopiesRenderAtTheSameTime) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(
      "{% set ns = namespace(x='') %}{% macro m(a) %}<{{ a }}>{% endmacro %}"
      "{% for i in range(200) %}{% set ns.x = ns.x ~ m(id) %}{% endfor %}"
      "{{ ns.x }}");
  ASSERT_TRUE(parsed);
  std::vector<std::string> texts(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i != texts.size(); ++i)
    threads.emplace_back([&, i, copy = *parsed] {
      Result<RenderedText> result = copy.render({{"id", static_cast<int>(i)}});
      texts[i] = result ? result->text : result.error().message;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i != texts.size(); ++i) {
    std::string expected;
    for (int k = 0; k != 200; ++k)
      expected += "<" + std::to_string(i) + ">";
    EXPECT_EQ(texts[i], expected);
  }
}
