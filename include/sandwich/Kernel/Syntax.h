//===- Syntax.h - Kernels as text, parsed -----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The syntax tree of kernels in the high level (section 6.1 of the Sandwich
/// paper): text that is a part of Python's, so that Python's own tools read it
/// and `@sandwich.kernel` stands before it. docs/Kernels.md has the language.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_SYNTAX_H
#define SANDWICH_KERNEL_SYNTAX_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::kernel::syntax {

/// Of text: lines and columns count from 1.
struct Place {
  unsigned line = 1, column = 1;
};

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

/// What has a value, or stands in a subscript.
struct Expression {
  enum class Kind {
    /// A number without a fraction, `integer`.
    Integer,
    /// Any other, `number`.
    Float,
    /// `True` and `False`, as `integer`.
    Truth,
    /// `None`, which is an axis of its own in a subscript.
    None,
    /// `:`, all of a dimension; in subscripts only.
    All,
    /// `text`.
    Name,
    /// `text` is the operator: `-`, `~`, `not`.
    Unary,
    /// `+ - * / // % & | ^ << >> < <= > >= == != and or`.
    Binary,
    /// The function `text` of the operands, of which the last ones may have
    /// `keywords`.
    Call,
    /// The first operand, at the others.
    Subscript,
  };
  Kind kind;
  Place place;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  std::vector<ExpressionPointer> operands;
  /// Those of the last operands of a call.
  std::vector<std::string> keywords;
};

struct Statement;
using Body = std::vector<Statement>;

struct Statement {
  enum class Kind {
    /// `targets = values`, as many of each; a target is a name or a subscript.
    Assign,
    /// `target OPERATOR= value`; the operator is `text`.
    Update,
    /// `for text in value:`, where `value` is a call.
    For,
    /// `if value:` with `body`, and `otherwise`.
    If,
    /// `pass`
    Pass,
    /// `value`, which is a call.
    Call,
    /// `assert value, "text"`
    Assert,
  };
  Kind kind;
  Place place;
  /// The lines of comments before it, without their `#`.
  std::string comment = {};
  std::string text = {};
  std::vector<ExpressionPointer> targets = {}, values = {};
  Body body = {}, otherwise = {};
};

/// One of the names behind `def`.
struct Argument {
  Place place;
  std::string name;
  /// `f32[rows, 64]`, `index`, `tune(8, 16)` or `constant`.
  ExpressionPointer type = {};
  /// What stands behind `=`; null if nothing does.
  ExpressionPointer untuned = {};
};

struct Kernel {
  Place place;
  std::string name, comment;
  /// Its first lines, where those are a text.
  std::optional<std::string> documentation;
  std::vector<Argument> arguments;
  Body body;
};

/// What is wrong with a text, and where.
struct SyntaxError {
  Place place;
  std::string message;
};

/// The kernels of `text`. Decorators and imports are taken for Python's own and
/// left out. Nothing, with `error` set, of what is no text of kernels.
std::optional<std::vector<Kernel>> parse(std::string_view text,
                                         SyntaxError &error);

/// Whether `name` is a word that Python keeps for itself.
bool isKeyword(std::string_view name);

} // namespace sandwich::kernel::syntax

#endif // SANDWICH_KERNEL_SYNTAX_H
