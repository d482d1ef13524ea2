//===- TrustTest.cpp - Which bytes are the template's ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateTests.h"

using namespace sandwich;

/// What a request holds: `u` is a user's text, `n` a number, and so on.
static Json request() {
  return {{"u", "<u>"},
          {"v", "a,b"},
          {"n", 3},
          {"minus", -1},
          {"yes", true},
          {"empty", ""},
          {"l", {"x", "y"}},
          {"d", {{"k", "v"}}},
          {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
}

static std::string marked(std::string_view source) {
  return marked(source, request());
}

TEST(Trust, TextOfTheTemplateIsTrusted) {
  EXPECT_EQ(marked("a{{ 'b' }}{{ 1 + 2 }}{{ [1, 'c'] }}"), "ab3[1, 'c']");
  EXPECT_EQ(marked("{{ '<|' ~ 'x' ~ '|>' }}"), "<|x|>");
  EXPECT_EQ(marked("{{ {'a': '<s>'}['a'] }}{{ 'abc'|upper }}"), "<s>ABC");
  EXPECT_EQ(marked("{% set x %}a{{ 'b' }}{% endset %}{{ x }}"), "ab");
  EXPECT_EQ(marked("{{ {'a': [1]}|tojson }}"), R"({"a": [1]})");
}

TEST(Trust, VariablesAreData) {
  EXPECT_EQ(marked("{{ u }}{{ n }}{{ yes }}{{ l }}{{ d }}"),
            "[<u>3True['x', 'y']{'k': 'v'}]");
  EXPECT_EQ(marked("<{{ u }}>"), "<[<u>]>");
  EXPECT_EQ(marked("{{ messages[0].content }}"), "[hi]");
}

TEST(Trust, WhatTheCallerVouchesForIsTrusted) {
  RenderOptions options;
  options.trustedVariables = {{"bos_token", "<s>"}, {"names", {"<a>"}}};
  EXPECT_EQ(marked("{{ bos_token + u }}{{ names[0] }}", request(), options),
            "<s>[<u>]<a>");
  // Also where the request has something of that name.
  Json variables = request();
  variables["bos_token"] = "</s>";
  EXPECT_EQ(marked("{{ bos_token }}", variables, options), "<s>");
}

TEST(Trust, RolesAreWordsOfTheTemplate) {
  const std::string source = "{% for m in messages %}{{ '<|' + m.role + '|>' }}"
                             "{{ m['role']|upper }}{% endfor %}";
  auto withRole = [](const Json &role) {
    return Json{{"messages", {{{"role", role}, {"content", "user"}}}}};
  };
  EXPECT_EQ(marked(source, withRole("user")), "<|user|>USER");
  EXPECT_EQ(marked(source, withRole("im_end")), "<|[im_end]|>[IM_END]");
  EXPECT_EQ(marked(source, withRole("user ")), "<|[user ]|>[USER ]");
  // The same words elsewhere are data.
  EXPECT_EQ(marked("{{ messages[0].content }}", withRole("user")), "[user]");
  EXPECT_EQ(marked("{{ x.role }}", {{"x", {{"role", "user"}}}}), "[user]");
  EXPECT_EQ(marked("{{ messages[0] }}", withRole("user")),
            "[{'role': 'user', 'content': 'user'}]");
  RenderOptions none;
  none.trustedRoles = {};
  EXPECT_EQ(marked("{{ messages[0].role }}", withRole("user"), none), "[user]");
}

TEST(Trust, EmptyDataDoesNotPart) {
  EXPECT_EQ(marked("<|im{{ empty }}_end|>"), "<|im_end|>");
  Result<RenderedText> result = render("<|im{{ u }}_end|>", {{"u", ""}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->trusted, (std::vector<ByteRange>{{0, 10}}));
}

TEST(Trust, PartsKeepTheirOrigin) {
  EXPECT_EQ(marked("{% set x = 'ab' + u + 'cd' %}{{ x[1:] }}|{{ x[-1] }}|"
                   "{{ x[::-1] }}|{{ x[2] }}"),
            "b[<u>]cd|d|dc[>u<]ba|[<]");
  EXPECT_EQ(marked("{{ (' a ' + u + ' b ')|trim }}"), "a [<u>] b");
  EXPECT_EQ(marked("{{ ('x' + u).strip('x>') }}"), "[<u]");
  EXPECT_EQ(marked("{{ ('a,' + u + ',b').split(',')|join('+') }}"),
            "a+[<u>]+b");
  EXPECT_EQ(marked("{{ (u + '\nb').splitlines()[1] }}"), "b");
  EXPECT_EQ(marked("{{ ('a' + u).partition('a')|join('.') }}"), ".a.[<u>]");
  EXPECT_EQ(marked("{{ 'a-b'.replace('-', u) }}"), "a[<u>]b");
  EXPECT_EQ(marked("{{ ('-' + v).replace(',', '+') }}"), "-[a]+[b]");
  EXPECT_EQ(marked("{{ ('a' + u)|list|join('.') }}"), "a.[<].[u].[>]");
  EXPECT_EQ(marked("{{ ('a' + u + 'b') * 2 }}"), "a[<u>]ba[<u>]b");
  EXPECT_EQ(marked("{{ ('a' + u).removeprefix('a') }}"), "[<u>]");
  EXPECT_EQ(marked("{{ u.center(7) }}{{ u.ljust(5, '-') }}"),
            "  [<u>]  [<u>]--");
}

TEST(Trust, FormatsKeepTheOriginOfTheirValues) {
  EXPECT_EQ(marked("{{ '<%s|%d>' % (u, n) }}"), "<[<u>]|[3]>");
  EXPECT_EQ(marked("{{ '<{}|{:>5}>'.format(u, u) }}"), "<[<u>]|  [<u>]>");
  EXPECT_EQ(marked("{{ '%s'|format(u) }}"), "[<u>]");
  EXPECT_EQ(marked("{{ u.format() }}{{ u % () }}"), "[<u><u>]");
  EXPECT_EQ(marked("{{ '{d[k]}'.format(d=d) }}"), "[v]");
}

// What a filter cannot follow byte by byte is data as a whole.
TEST(Trust, WhatCannotBeFollowedIsData) {
  EXPECT_EQ(marked("{{ ('a' + u)|upper }}"), "[A<U>]");
  EXPECT_EQ(marked("{{ ('a' + u).title() }}"), "[A<U>]");
  EXPECT_EQ(marked("{{ {'a': u}|tojson }}"), "[{\"a\": \"<u>\"}]");
  EXPECT_EQ(marked("{{ ['a', u] }}"), "[['a', '<u>']]");
  EXPECT_EQ(marked("{{ ('a\n' + u)|indent }}"), "[a\n    <u>]");
  EXPECT_EQ(marked("{{ [1, n] }}{{ [[n]] }}"), "[[1, 3][[3]]]");
  EXPECT_EQ(marked("{{ d.keys()|list }}{{ d.items() }}"),
            "[['k']dict_items([('k', 'v')])]");
  EXPECT_EQ(marked("{{ {u: 1} }}"), "[{'<u>': 1}]");
  EXPECT_EQ(marked("{{ namespace(**d) }}"), "[<Namespace {'k': 'v'}>]");
}

TEST(Trust, WhatComesOfDataIsData) {
  EXPECT_EQ(marked("{{ n + 1 }}{{ -n }}{{ n / 2 }}{{ n ~ 'a' }}"),
            "[4-31.53]a");
  EXPECT_EQ(marked("{{ u|length }}{{ l|length }}{{ u|int }}{{ '3'|int }}"),
            "[32]03");
  EXPECT_EQ(marked("{{ u|first }}{{ l|last }}{{ l|max }}{{ [1, n]|sum }}"),
            "[<yy4]");
  EXPECT_EQ(
      marked("{{ u.find('u') }}{{ u.count('u') }}{{ n|abs }}{{ n|float }}"),
      "[1133.0]");
  EXPECT_EQ(marked("{% for k, x in d.items() %}{{ k }}={{ x }}{% endfor %}"),
            "[k]=[v]");
  EXPECT_EQ(marked("{{ l|map('upper')|join('-') }}"), "[X]-[Y]");
  EXPECT_EQ(marked("{{ l|reverse|first }}{{ l|sort|join }}"), "[yxy]");
  EXPECT_EQ(marked("{% for i in range(n) %}{{ i }}{% endfor %}"), "[012]");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(u) }}"),
            "<[<u>]>");
  EXPECT_EQ(marked("{% filter trim %} {{ u }} {% endfilter %}"), "[<u>]");
  EXPECT_EQ(marked("{% set ns = namespace(a='x') %}{% set ns.a = ns.a + u %}"
                   "{{ ns.a }}"),
            "x[<u>]");
  EXPECT_EQ(marked("{{ u|default('x') }}{{ empty|default('x', true) }}"),
            "[<u>]x");
  EXPECT_EQ(marked("{{ u or 'x' }}{{ u and 'x' }}"), "[<u>]x");
  EXPECT_EQ(marked("{{ d.get('k') }}{{ d.get('z', 'w') }}"), "[v]w");
  EXPECT_EQ(marked("{{ u|e }}"), "[&lt;u&gt;]");
  EXPECT_EQ(marked("{{ strftime_now(u) }}{{ strftime_now('%m') }}"), "[<u>]01");
}

// A request cannot cut the template's text into other tokens.
TEST(Trust, TextThatARequestCutsIsData) {
  EXPECT_EQ(marked("{{ '<|im_Xend|>'.replace(x, '') }}", {{"x", "X"}}),
            "[<|im_end|>]");
  EXPECT_EQ(marked("{{ '<|im_Xend|>'.split(x)|join('') }}", {{"x", "X"}}),
            "[<|im_end|>]");
  EXPECT_EQ(marked("{{ 'X<s>'.strip(x) }}{{ 'X<s>'|trim(x) }}", {{"x", "X"}}),
            "[<s><s>]");
  EXPECT_EQ(marked("{{ 'X<s>'[n:] }}{{ 'X<s>'[::n] }}", {{"n", 1}}),
            "[<s>X<s>]");
  EXPECT_EQ(marked("{{ 'abc'[n] }}", {{"n", 1}}), "[b]");
  EXPECT_EQ(marked("{{ '<s>' * n }}", {{"n", 2}}), "[<s><s>]");
  EXPECT_EQ(marked("{{ 'X<s>'.removeprefix(x) }}", {{"x", "X"}}), "[<s>]");
  EXPECT_EQ(marked("{{ 'ab'.partition(x)|join }}", {{"x", "a"}}), "[ab]");
  EXPECT_EQ(marked("{{ 'a b c d e f g'|truncate(n, true, '') }}", {{"n", 3}}),
            "[a b]");
  EXPECT_EQ(marked("{{ [1]|tojson(indent=i) }}", {{"i", "<s>"}}),
            "[[\n<s>1\n]]");
  EXPECT_EQ(marked("{{ [1, 2]|tojson(separators=s) }}", {{"s", {"<s>", ""}}}),
            "[[1<s>2]]");
  EXPECT_EQ(marked("{{ 'a\nb'|indent(i) }}", {{"i", "<s>"}}), "a\n[<s>]b");
  EXPECT_EQ(marked("{{ 'a'.center(5, c) }}", {{"c", "<"}}), "[<<]a[<<]");
}

// Choosing among texts of the template is what templates do with data.
TEST(Trust, ChoicesAreTheTemplates) {
  EXPECT_EQ(marked("{{ '<s>' if u else '</s>' }}{{ {3: '<a>'}[n] }}"),
            "<s><a>");
  EXPECT_EQ(marked("{{ ['<a>', '<b>'][minus] }}{{ u == '<u>' }}"), "<b>True");
  EXPECT_EQ(marked("{% for x in l %}<{{ loop.index }}{{ loop.first }}>"
                   "{% endfor %}"),
            "<1True><2False>");
  EXPECT_EQ(marked("{% for x in l %}{{ loop.length }}{% endfor %}"), "[22]");
  EXPECT_EQ(marked("{{ u is defined }}{{ u in l }}{{ not u }}"),
            "TrueFalseFalse");
}

TEST(Trust, ManyRangesStayInOrder) {
  Json messages = Json::array();
  std::string expected;
  for (int i = 0; i != 1000; ++i) {
    messages.push_back({{"role", "user"}, {"content", "c"}});
    expected += "<[c]>";
  }
  EXPECT_EQ(marked("{% set ns = namespace(x='') %}{% for m in messages %}"
                   "{% set ns.x = ns.x + '<' + m.content + '>' %}{% endfor %}"
                   "{{ ns.x }}",
                   {{"messages", messages}}),
            expected);
}
