//===- LimitsTest.cpp - Templates that take too much ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateTests.h"

#include "Emulation.h"

using namespace sandwich;

static const std::string beyond = "the chat template goes beyond its limits: ";
static const std::string tooManySteps = beyond + "it takes too many steps";

static std::string repeated(const std::string &text, size_t count) {
  std::string all;
  while (count-- > 0)
    all += text;
  return all;
}

static std::string tooMuchMemory(size_t bytes) {
  return beyond + "its values take more than " + std::to_string(bytes) +
         " bytes";
}

TEST(Limits, OfTheSource) {
  EXPECT_EQ(failure("abcd", {}, {.sourceBytes = 3}),
            "the template has 4 bytes; there must be at most 3");
  EXPECT_EQ(failure("{{ 1 }}\n{{ 1 + 1 }}", {}, {.nodes = 4}),
            "line 2: the template has more than 4 statements and expressions");
  // Every kind of nesting, and chains that lean to the left.
  const std::string deep = "line 1: statements and expressions lie in each "
                           "other more than 200 deep";
  const std::string chain = "line 1: expressions lie in each other more than "
                            "200 deep";
  constexpr size_t many = 20'000;
  TemplateLimits limits;
  limits.sourceBytes = size_t{1} << 24;
  limits.nodes = size_t{1} << 24;
  auto expectFailure = [&](const std::string &source,
                           const std::string &message) {
    EXPECT_EQ(failure(source, {}, limits), message) << source.substr(0, 40);
  };
  expectFailure("{{ " + repeated("(", many) + repeated(")", many) + " }}",
                deep);
  expectFailure("{{ " + repeated("[", many) + repeated("]", many) + " }}",
                deep);
  expectFailure("{{ " + repeated("{1:", many) + repeated("}", many) + " }}",
                deep);
  expectFailure("{{ " + repeated("not ", many) + "1 }}", deep);
  expectFailure("{{ " + repeated("-", many) + "1 }}", deep);
  expectFailure("{{ " + repeated("a(", many) + repeated(")", many) + " }}",
                deep);
  expectFailure("{{ " + repeated("a[", many) + repeated("]", many) + " }}",
                deep);
  expectFailure("{{ " + repeated("1 if 1 else ", many) + "1 }}", deep);
  expectFailure(repeated("{% if 1 %}", many), deep);
  expectFailure(repeated("{% for x in y %}", many), deep);
  expectFailure("{% set " + repeated("(", many) + repeated(")", many) + "%}",
                deep);
  expectFailure("{{ 1" + repeated(" + 1", many) + " }}", chain);
  expectFailure("{{ 1" + repeated(" and 1", many) + " }}", chain);
  expectFailure("{{ 1" + repeated(" if 1", many) + " }}", chain);
  expectFailure("{{ a" + repeated(".b", many) + " }}", chain);
  expectFailure("{{ a" + repeated("|trim", many) + " }}", chain);
  expectFailure("{{ a" + repeated("()", many) + " }}", chain);
  // Neither deep nor many: they are siblings.
  EXPECT_TRUE(ChatTemplate::parse("{{ 1" + repeated(" ~ 1", 10'000) + " }}"));
  EXPECT_TRUE(ChatTemplate::parse(repeated("{% if 1 %}{% endif %}", 10'000)));
}

/// The steps of a template that names none, where they take seconds.
static uint64_t usualSteps() {
  return test::timesToRepeat<uint64_t>(TemplateLimits().steps, 100'000);
}

TEST(Limits, OfSteps) {
  EXPECT_EQ(failure("{% for a in range(100000) %}{% for b in range(100000) %}"
                    "{% endfor %}{% endfor %}",
                    {}, {.steps = usualSteps()}),
            tooManySteps);
  EXPECT_EQ(
      failure("{% for a in range(10) %}{{ a }}{% endfor %}", {}, {.steps = 20}),
      tooManySteps);
  // Work within one step counts as well.
  const Json text = {{"x", std::string(100'000, 'a')}};
  for (const char *source :
       {"{{ x|upper }}", "{{ x.find('b') }}", "{{ x == x + '' }}",
        "{{ x|trim }}", "{{ x|replace('b', 'c') }}", "{{ 'b' in x }}",
        "{{ x.count('b') }}", "{{ x|tojson }}", "{{ x.split('b') }}",
        "{{ x.isalpha() }}", "{{ x[::2] }}", "{{ x < x + 'b' }}"})
    EXPECT_EQ(failure(std::string("{% for i in range(1000) %}{% set y %}") +
                          source + "{% endset %}{% endfor %}",
                      text, {.steps = 100'000}),
              tooManySteps)
        << source;
  EXPECT_EQ(failure("{{ range(100000)|select('odd')|list|length }}", {},
                    {.steps = 10'000}),
            tooManySteps);
}

TEST(Limits, OfOutput) {
  EXPECT_EQ(failure("{% for i in range(100) %}0123456789{% endfor %}", {},
                    {.outputBytes = 500}),
            beyond + "its text has more than 500 bytes");
  EXPECT_EQ(rendered("{% for i in range(50) %}0123456789{% endfor %}").size(),
            500u);
}

TEST(Limits, OfMemory) {
  constexpr size_t megabyte = size_t{1} << 20;
  const TemplateLimits limits = {.memoryBytes = megabyte};
  const Json text = {{"x", std::string(10'000, 'a')}, {"n", 1'000'000'000}};
  for (const char *source :
       {"{{ 'x' * 10**9 }}",
        "{{ ['x'] * 10**9 }}",
        "{{ 'x' * n }}",
        "{{ '%1000000d' % 1 }}{{ '%1000000d' % 1 }}",
        "{{ '{:>999999}'.format(1) ~ '{:>999999}'.format(1) }}",
        "{{ 'a'.center(10**9) }}",
        "{{ 'a'|center(n) }}",
        "{{ 'a'.zfill(10**9) }}",
        "{{ '\t'.expandtabs(10**9) }}",
        "{{ x|replace('', x) }}",
        "{{ x.replace('a', x) }}",
        "{{ ([x] * 1000)|join }}",
        "{{ x.join([x] * 1000) }}",
        "{{ ([x] * 1000)|string }}",
        "{{ ([x] * 1000)|tojson }}",
        "{{ x|list }}",
        "{{ x|replace('a', 'a ')|wordcount ~ x.split('a') }}",
        "{{ range(100000)|list }}",
        "{{ range(100000)|map('string')|list }}",
        "{{ [1]|batch(10**9, 'x')|list }}",
        "{{ [1]|slice(10**6, 'x')|list }}",
        "{{ (['a\n'] * 1000)|join|indent(n) }}",
        "{{ ['a', 'b']|tojson(indent=x) * 100 }}",
        "{% set ns = namespace(s='aa') %}{% for i in range(60) %}"
        "{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}"
        "{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(s='a') %}{% for i in range(60) %}"
        "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
        "{% set ns = namespace(s='a') %}{% for i in range(60) %}"
        "{% set ns.s = {'a': ns.s, 'b': ns.s} %}{% endfor %}"
        "{{ ns.s|tojson }}",
        "{% macro m() %}{{ x }}{{ caller() }}{% endmacro %}"
        "{% for i in range(200) %}{% set l = namespace(f=i) %}"
        "{% macro f() %}{{ l }}{% endmacro %}{% set y = x ~ i %}{% endfor %}"
        "{{ ([x] * 200)|join }}",
        "{% filter upper %}{% for i in range(1000) %}{{ x }}{% endfor %}"
        "{% endfilter %}",
        "{% set y %}{% for i in range(1000) %}{{ x }}{% endfor %}"
        "{% endset %}"})
    EXPECT_EQ(failure(source, text, limits), tooMuchMemory(megabyte)) << source;
  // Variables count, too.
  EXPECT_EQ(failure("{{ x }}", {{"x", std::string(megabyte, 'a')}}, limits),
            tooMuchMemory(megabyte));
  // What is not needed any more does not.
  EXPECT_EQ(rendered("{% for i in range(10000) %}{% set y = x ~ i %}"
                     "{% endfor %}",
                     text),
            "");
}

TEST(Limits, OfRecursion) {
  const std::string tooDeep =
      beyond + "its evaluations lie in each other more than 1000 deep";
  EXPECT_EQ(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
            tooDeep);
  EXPECT_EQ(failure("{% macro a() %}{{ b() }}{% endmacro %}"
                    "{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"),
            tooDeep);
  EXPECT_EQ(failure("{% macro m() %}{{ caller() }}{% endmacro %}"
                    "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}"
                    "{% endmacro %}{{ n() }}"),
            tooDeep);
  EXPECT_EQ(failure("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
            tooDeep);
  EXPECT_EQ(failure("{% macro m(x=m()) %}{% endmacro %}{{ m() }}"), tooDeep);
  EXPECT_EQ(rendered("{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}"
                     "{% endif %}{% endmacro %}{{ m(9) }}"),
            "9876543210");
}

TEST(Limits, OfValuesInEachOther) {
  const std::string start =
      "{% set ns = namespace(x=[]) %}{% for i in range(200) %}";
  EXPECT_EQ(failure(start + "{% set ns.x = [ns.x] %}{% endfor %}"),
            beyond + "its lists lie in each other more than 100 deep");
  EXPECT_EQ(failure(start + "{% set ns.x = {'a': ns.x} %}{% endfor %}"),
            beyond + "its dictionaries lie in each other more than 100 deep");
  EXPECT_EQ(failure("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"),
            "line 1 of the chat template: a namespace that lies in itself "
            "cannot be printed");
  Json deep = Json::array();
  for (int i = 0; i != 150; ++i)
    deep = Json::array({deep});
  EXPECT_EQ(failure("{{ x }}", {{"x", deep}}),
            "the variables lie in each other more than 100 deep");
}

// Values that hold the same value twice look like trees of two to the number of
// levels.
TEST(Limits, SharedValuesEndByTheirSteps) {
  const std::string build =
      "{% set a = namespace(x=[1]) %}{% set b = namespace(x=[1]) %}"
      "{% for i in range(60) %}{% set a.x = [a.x, a.x] %}"
      "{% set b.x = [b.x, b.x] %}{% endfor %}";
  for (const char *use : {"{{ a.x == b.x }}", "{{ a.x < b.x }}",
                          "{{ b.x in [a.x] }}", "{{ [a.x, b.x]|sort }}",
                          "{{ [a.x].index(b.x) }}", "{{ a.x is eq b.x }}"})
    EXPECT_EQ(failure(build + use, {}, {.steps = usualSteps()}), tooManySteps)
        << use;
}

TEST(Limits, RangesAreAsInJinjasSandbox) {
  EXPECT_EQ(rendered("{{ range(100000)|length }}"), "100000");
  EXPECT_EQ(failure("{{ range(100001) }}"),
            "line 1 of the chat template: the function 'range': the range has "
            "100001 numbers; there must be at most 100000");
  EXPECT_EQ(failure("{{ range(-9223372036854775807, 9223372036854775807) }}"),
            "line 1 of the chat template: the function 'range': the range has "
            "18446744073709551614 numbers; there must be at most 100000");
  EXPECT_EQ(rendered("{{ range(9223372036854775806, 9223372036854775807, 7)"
                     "|list }}"),
            "[9223372036854775806]");
}

TEST(Limits, SearchingIsLinear) {
  // Quadratic, these would take minutes.
  const std::string half(400'000, 'a');
  const Json text = {{"x", half + half}, {"y", half + "b"}};
  EXPECT_EQ(rendered("{{ x.find(y) }}{{ x.count(y) }}{{ y in x }}"
                     "{{ x.replace(y, '')|length }}{{ x.rfind(y) }}"
                     "{{ x.split(y)|length }}{{ x.rsplit(y)|length }}"
                     "{{ x.strip(y)|length }}",
                     text),
            "-10False800000-1110");
}
