//===- SyntaxTest.cpp - Text of kernels -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Syntax.h"

#include <gtest/gtest.h>

using namespace sandwich::kernel::syntax;

namespace {

/// How `expression` nests: `(+ a (* b c))`.
std::string describe(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::Integer:
    return std::to_string(expression.integer);
  case Expression::Kind::Float:
    return std::to_string(expression.number);
  case Expression::Kind::Truth:
    return expression.integer != 0 ? "True" : "False";
  case Expression::Kind::None:
    return "None";
  case Expression::Kind::All:
    return ":";
  case Expression::Kind::Name:
    return expression.text;
  default:
    break;
  }
  std::string text =
      expression.kind == Expression::Kind::Subscript ? "[]" : expression.text;
  const size_t first = expression.operands.size() - expression.keywords.size();
  for (size_t i = 0; i < expression.operands.size(); ++i)
    text += (i < first ? " " : " " + expression.keywords[i - first] + "=") +
            describe(*expression.operands[i]);
  return "(" + text + ")";
}

/// The first value of a kernel whose body is `x = VALUE`.
std::string describe(const std::string &value) {
  SyntaxError error;
  auto kernels = parse("def f():\n    x = " + value + "\n", error);
  return kernels ? describe(*kernels->at(0).body.at(0).values.at(0))
                 : error.message;
}

TEST(KernelSyntax, BindsAsPythonDoes) {
  EXPECT_EQ(describe("a + b * c - d"), "(- (+ a (* b c)) d)");
  EXPECT_EQ(describe("-a * b // c"), "(// (* (- a) b) c)");
  EXPECT_EQ(describe("a | b ^ c & d << e + f"),
            "(| a (^ b (& c (<< d (+ e f)))))");
  EXPECT_EQ(describe("not a < b and c or d"), "(or (and (not (< a b)) c) d)");
  EXPECT_EQ(describe("a & b == c"), "(== (& a b) c)");
  EXPECT_EQ(describe("~a[i, :, None][j]"), "(~ ([] ([] a i : None) j))");
  EXPECT_EQ(describe("f(a, g(), axis=1,)"), "(f a (g) axis=1)");
}

TEST(KernelSyntax, ReadsNumbersAsPythonDoes) {
  EXPECT_EQ(describe("0x1F"), "31");
  EXPECT_EQ(describe("1e-3"), "0.001000");
  EXPECT_EQ(describe(".5"), "0.500000");
  EXPECT_EQ(describe("2."), "2.000000");
  EXPECT_EQ(describe("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(describe("9223372036854775808"),
            "9223372036854775808 is too large or too small");
  EXPECT_EQ(describe("1e999"), "1e999 is too large or too small");
  EXPECT_EQ(describe("0x"), "0x is no number");
  EXPECT_EQ(describe("1_000"), "1_000 is no number");
}

TEST(KernelSyntax, GoesOnWithinBracketsAndBehindBackslashes) {
  EXPECT_EQ(describe("(a +\n\n  b)"), "(+ a b)");
  EXPECT_EQ(describe("a + \\\nb"), "(+ a b)");
  EXPECT_EQ(describe("f(a,  # the first\n      b)"), "(f a b)");
}

TEST(KernelSyntax, KeepsCommentsAndDocumentation) {
  SyntaxError error;
  auto kernels = parse("# Of the file.\n"
                       "from __future__ import annotations\n"
                       "import sandwich\n"
                       "\n"
                       "# Of the kernel,\n"
                       "# both.\n"
                       "@sandwich.kernel\n"
                       "def f(x: f32[n], LANES: tune(8, 16) = 16):\n"
                       "    \"\"\"What it\n"
                       "    does.\"\"\"\n"
                       "    # Of the loop.\n"
                       "    for i in blocks(n, LANES):\n"
                       "        # Of the statement.\n"
                       "        x[i] += 1\n"
                       "        if n > 3: # of nobody\n"
                       "            pass\n"
                       "        elif n > 2:\n"
                       "            pass\n",
                       error);
  ASSERT_TRUE(kernels) << error.message;
  ASSERT_EQ(kernels->size(), 1);
  const Kernel &kernel = kernels->front();
  EXPECT_EQ(kernel.name, "f");
  EXPECT_EQ(kernel.comment, "Of the kernel,\nboth.");
  EXPECT_EQ(kernel.documentation, "What it\n    does.");
  ASSERT_EQ(kernel.arguments.size(), 2);
  EXPECT_EQ(describe(*kernel.arguments[0].type), "([] f32 n)");
  EXPECT_EQ(describe(*kernel.arguments[1].type), "(tune 8 16)");
  EXPECT_EQ(describe(*kernel.arguments[1].untuned), "16");
  ASSERT_EQ(kernel.body.size(), 1);
  const Statement &loop = kernel.body[0];
  EXPECT_EQ(loop.kind, Statement::Kind::For);
  EXPECT_EQ(loop.comment, "Of the loop.");
  EXPECT_EQ(loop.place.line, 12);
  EXPECT_EQ(loop.place.column, 5);
  ASSERT_EQ(loop.body.size(), 2);
  EXPECT_EQ(loop.body[0].kind, Statement::Kind::Update);
  EXPECT_EQ(loop.body[0].comment, "Of the statement.");
  EXPECT_EQ(loop.body[1].comment, "");
  ASSERT_EQ(loop.body[1].otherwise.size(), 1);
  EXPECT_EQ(loop.body[1].otherwise[0].kind, Statement::Kind::If);
}

TEST(KernelSyntax, ReadsLinesOfWindows) {
  SyntaxError error;
  auto kernels =
      parse("def f(x: f32):\r\n    # A comment.\r\n    y = x\r\n", error);
  ASSERT_TRUE(kernels) << error.message;
  EXPECT_EQ(kernels->at(0).body.at(0).comment, "A comment.");
}

TEST(KernelSyntax, RefusesWhatNestsTooDeep) {
  SyntaxError error;
  std::string elifs = "def f(x: f32):\n    if x > 1:\n        pass\n";
  for (int i = 0; i < 200; ++i)
    elifs += "    elif x > 1:\n        pass\n";
  EXPECT_FALSE(parse(elifs, error));
  EXPECT_EQ(error.message, "there are too many branches");
  const std::string minus(10000, '-');
  EXPECT_FALSE(parse("def f(x: f32):\n    y = " + minus + "x\n", error));
  EXPECT_EQ(error.message, "expressions must not be nested more than 100 deep");
}

} // namespace
