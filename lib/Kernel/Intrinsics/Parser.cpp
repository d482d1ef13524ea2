//===- Parser.cpp - Tables of intrinsics as text --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Intrinsics.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>

using namespace sandwich;
using namespace sandwich::kernel;

namespace {

/// A piece of text that is read as one.
struct Token {
  enum class Kind : uint8_t { Name, Number, Symbol, End };
  Kind kind = Kind::End;
  std::string_view text;
};

/// Reads the tokens of one rule. The first error stays, and everything ends
/// behind it.
class Reader {
public:
  Reader(std::string_view text, int64_t line) : text(text), line(line) {
    next();
  }

  const Token &peek() const { return token; }
  bool isAt(std::string_view symbol) const {
    return token.kind != Token::Kind::End && token.text == symbol;
  }
  /// Whether `symbol` is there; behind it then.
  bool accept(std::string_view symbol) {
    if (!isAt(symbol))
      return false;
    next();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!accept(symbol))
      fail("expected '" + std::string(symbol) + "'");
  }
  std::string takeName() {
    if (token.kind != Token::Kind::Name)
      fail("expected a name");
    std::string name(token.text);
    next();
    return name;
  }
  int64_t takeNumber() {
    int64_t number = 0;
    const bool isHex = token.text.starts_with("0x");
    const std::string_view digits = token.text.substr(isHex ? 2 : 0);
    const auto [end, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), number, isHex ? 16 : 10);
    if (token.kind != Token::Kind::Number || error != std::errc() ||
        end != digits.data() + digits.size())
      fail("expected a number");
    next();
    return number;
  }
  void fail(const std::string &reason) {
    if (!error)
      error = makeError("line ", line, ": ", reason,
                        token.kind == Token::Kind::End
                            ? std::string(" at the end of the rule")
                            : ", not '" + std::string(token.text) + "'");
    token = {};
    position = text.size();
  }
  const std::optional<Error> &failure() const { return error; }

private:
  void next();

  std::string_view text;
  int64_t line;
  size_t position = 0;
  Token token;
  std::optional<Error> error;
};

} // namespace

void Reader::next() {
  auto isPart = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  while (position < text.size() &&
         std::isspace(static_cast<unsigned char>(text[position])))
    ++position;
  const size_t begin = position;
  if (position == text.size()) {
    token = {};
    return;
  }
  Token::Kind kind = Token::Kind::Symbol;
  if (isPart(text[position])) {
    kind = std::isdigit(static_cast<unsigned char>(text[position]))
               ? Token::Kind::Number
               : Token::Kind::Name;
    while (position < text.size() && isPart(text[position]))
      ++position;
  } else {
    constexpr std::string_view pairs[] = {
        "->", "<<", ">>", "==", "!=", "<=", ">=", ".."};
    position +=
        std::ranges::find(pairs, text.substr(position, 2)) != std::end(pairs)
            ? 2
            : 1;
  }
  token = {kind, text.substr(begin, position - begin)};
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// `f32x16`, `mask16`, `i32`; nothing if it is no such type.
static std::optional<ParameterType> typeNamed(std::string_view name) {
  auto numberOf = [](std::string_view digits) {
    int64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size() ? number
                                                                        : 0;
  };
  ParameterType type;
  if (name.starts_with("mask")) {
    type.kind = ParameterType::Kind::Mask;
    type.lane = LaneType::Bool;
    type.lanes = numberOf(name.substr(4));
    return type.lanes > 0 ? std::optional(type) : std::nullopt;
  }
  const size_t times = name.find('x');
  std::optional<LaneType> lane = laneTypeNamed(name.substr(0, times));
  if (!lane)
    return std::nullopt;
  type.lane = *lane;
  if (times == std::string_view::npos)
    return type;
  type.kind = ParameterType::Kind::Vector;
  type.lanes = numberOf(name.substr(times + 1));
  return type.lanes > 0 ? std::optional(type) : std::nullopt;
}

static ParameterType readType(Reader &reader) {
  ParameterType type;
  if (reader.accept("imm")) {
    type.kind = ParameterType::Kind::Immediate;
    type.lane = LaneType::I32;
    reader.expect("(");
    type.first = reader.takeNumber();
    reader.expect("..");
    type.last = reader.takeNumber();
    reader.expect(")");
    return type;
  }
  const bool isConst = reader.accept("const");
  if (auto named = typeNamed(reader.peek().text)) {
    type = *named;
    reader.takeName();
  } else {
    reader.fail("expected a type");
  }
  if (reader.accept("*")) {
    type.isConst = isConst;
    type.lanes = type.kind == ParameterType::Kind::Vector ? type.lanes : 0;
    type.kind = ParameterType::Kind::Pointer;
  } else if (isConst) {
    reader.fail("expected a pointer behind const");
  }
  return type;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

namespace {

/// Reads expressions of one intrinsic, whose types must fit.
class ExpressionReader {
public:
  ExpressionReader(Reader &reader, const Intrinsic &intrinsic)
      : reader(reader), parameters(intrinsic.parameters) {
    variables.push_back("i");
  }

  Expression read();
  /// Of `type`: numbers become that.
  Expression read(LaneType type) { return as(read(), type); }
  /// An index, or a lane that is an integer.
  Expression readIndex();
  /// The number of the parameter `name`, or less than 0.
  int64_t findParameter(std::string_view name) const;

private:
  using Kind = Expression::Kind;

  Expression readBinary(int64_t precedence);
  Expression readUnary();
  Expression readPrimary();
  Expression readCall(const std::string &name);
  Expression readFold(const std::string &name);
  /// Numbers become `type`, and all else has to have it already.
  Expression as(Expression expression, std::optional<LaneType> type);
  /// Both of one type.
  void unify(Expression &lhs, Expression &rhs);
  static Expression make(Kind kind, std::optional<LaneType> type,
                         std::vector<Expression> operands) {
    Expression expression;
    expression.kind = kind;
    expression.type = type;
    expression.operands = std::move(operands);
    return expression;
  }

  Reader &reader;
  const std::vector<Parameter> &parameters;
  std::vector<std::string> variables;
};

/// An operator between two operands, and how much it binds.
struct BinaryOperator {
  std::string_view symbol;
  int64_t precedence;
  Expression::Kind kind;
};

} // namespace

static constexpr BinaryOperator binaryOperators[] = {
    {"==", 1, Expression::Kind::Equal},
    {"!=", 1, Expression::Kind::NotEqual},
    {"<", 1, Expression::Kind::Less},
    {"<=", 1, Expression::Kind::LessEqual},
    {">", 1, Expression::Kind::Less},
    {">=", 1, Expression::Kind::LessEqual},
    {"|", 2, Expression::Kind::Or},
    {"^", 3, Expression::Kind::Xor},
    {"&", 4, Expression::Kind::And},
    {"<<", 5, Expression::Kind::ShiftLeft},
    {">>", 5, Expression::Kind::ShiftRight},
    {"+", 6, Expression::Kind::Add},
    {"-", 6, Expression::Kind::Subtract},
    {"*", 7, Expression::Kind::Multiply},
    {"/", 7, Expression::Kind::Divide},
    {"%", 7, Expression::Kind::Remainder},
};

int64_t ExpressionReader::findParameter(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? -1 : found - parameters.begin();
}

Expression ExpressionReader::as(Expression expression,
                                std::optional<LaneType> type) {
  if (expression.type == type)
    return expression;
  if (!expression.type && type)
    return make(Kind::Convert, type, {std::move(expression)});
  reader.fail("expected an operand of " +
              std::string(type ? name(*type) : "an index"));
  return expression;
}

void ExpressionReader::unify(Expression &lhs, Expression &rhs) {
  if (!lhs.type)
    lhs = as(std::move(lhs), rhs.type);
  else
    rhs = as(std::move(rhs), lhs.type);
}

Expression ExpressionReader::readIndex() {
  Expression index = read();
  if (index.type && !isFloat(*index.type))
    return make(Kind::Convert, std::nullopt, {std::move(index)});
  return as(std::move(index), std::nullopt);
}

Expression ExpressionReader::read() {
  Expression condition = readBinary(1);
  if (!reader.accept("?"))
    return condition;
  Expression then = read();
  reader.expect(":");
  Expression otherwise = read();
  unify(then, otherwise);
  const std::optional<LaneType> type = then.type;
  return make(Kind::Select, type,
              {as(std::move(condition), LaneType::Bool), std::move(then),
               std::move(otherwise)});
}

Expression ExpressionReader::readBinary(int64_t precedence) {
  Expression lhs = readUnary();
  for (;;) {
    const auto found =
        std::ranges::find_if(binaryOperators, [&](const BinaryOperator &each) {
          return each.precedence >= precedence && reader.isAt(each.symbol);
        });
    if (found == std::end(binaryOperators))
      return lhs;
    reader.accept(found->symbol);
    Expression rhs = readBinary(found->precedence + 1);
    // What is shifted keeps its type.
    if (found->kind != Kind::ShiftLeft && found->kind != Kind::ShiftRight)
      unify(lhs, rhs);
    const bool compares = found->precedence == 1;
    if (found->symbol.starts_with(">") && compares)
      std::swap(lhs, rhs);
    const std::optional<LaneType> type =
        compares ? std::optional(LaneType::Bool) : lhs.type;
    lhs = make(found->kind, type, {std::move(lhs), std::move(rhs)});
  }
}

Expression ExpressionReader::readUnary() {
  for (auto [symbol, kind] :
       {std::pair("-", Kind::Negate), std::pair("~", Kind::Not)})
    if (reader.accept(symbol)) {
      Expression operand = readUnary();
      const std::optional<LaneType> type = operand.type;
      return make(kind, type, {std::move(operand)});
    }
  return readPrimary();
}

Expression ExpressionReader::readPrimary() {
  if (reader.accept("(")) {
    Expression inner = read();
    reader.expect(")");
    return inner;
  }
  if (reader.peek().kind == Token::Kind::Number) {
    Expression constant;
    constant.number = reader.takeNumber();
    return constant;
  }
  std::string name = reader.takeName();
  if (reader.failure())
    return {};
  if (reader.isAt("("))
    return readCall(name);
  if (name == "undefined")
    return make(Kind::Undefined, std::nullopt, {});
  if (std::ranges::find(variables, name) != variables.end()) {
    Expression index = make(Kind::Index, std::nullopt, {});
    index.name = name;
    return index;
  }
  const int64_t number = findParameter(name);
  if (number < 0) {
    reader.fail("there is no '" + name + "'");
    return {};
  }
  const ParameterType &type = parameters[static_cast<size_t>(number)].type;
  if (type.kind == ParameterType::Kind::Immediate) {
    Expression immediate = make(Kind::Immediate, std::nullopt, {});
    immediate.number = number;
    return immediate;
  }
  Expression argument = make(Kind::Argument, type.lane, {});
  argument.number = number;
  if (type.kind == ParameterType::Kind::Number)
    return argument;
  reader.expect("[");
  argument.operands.push_back(readIndex());
  reader.expect("]");
  return argument;
}

Expression ExpressionReader::readFold(const std::string &name) {
  Expression fold;
  fold.pairs = name.starts_with("pairs_");
  const std::string operation = name.substr(name.find('_') + 1);
  fold.kind = operation == "add"       ? Kind::FoldAdd
              : operation == "minimum" ? Kind::FoldMinimum
              : operation == "maximum" ? Kind::FoldMaximum
                                       : Kind::FoldOr;
  reader.expect("(");
  fold.name = reader.takeName();
  reader.expect(",");
  fold.number = reader.takeNumber();
  if (fold.number < 1 || (fold.number & (fold.number - 1)) != 0)
    reader.fail("a fold has a power of two of values");
  reader.expect(",");
  variables.push_back(fold.name);
  fold.operands.push_back(read());
  variables.pop_back();
  fold.type = fold.operands.front().type;
  reader.expect(")");
  return fold;
}

Expression ExpressionReader::readCall(const std::string &name) {
  if (name.starts_with("fold_") || name.starts_with("pairs_"))
    return readFold(name);
  reader.expect("(");
  std::vector<Expression> operands;
  do
    operands.push_back(read());
  while (reader.accept(","));
  reader.expect(")");
  auto wants = [&](size_t count) {
    if (operands.size() != count)
      reader.fail(name + " has " + std::to_string(count) + " operands");
    return operands.size() == count;
  };
  // The second operand if the first, an index, is 0, and so on.
  if (name == "one_of") {
    if (operands.size() < 2) {
      reader.fail("one_of has an index and values");
      return {};
    }
    Expression chosen = std::move(operands.back());
    for (size_t i = operands.size() - 2; i > 0; --i) {
      Expression number;
      number.number = static_cast<int64_t>(i) - 1;
      unify(operands[i], chosen);
      const std::optional<LaneType> type = chosen.type;
      chosen = make(Kind::Select, type,
                    {make(Kind::Equal, LaneType::Bool,
                          {operands.front(), std::move(number)}),
                     std::move(operands[i]), std::move(chosen)});
    }
    return chosen;
  }
  // `f32(x)`, `saturate_i16(x)`, `bits_u32(x)`.
  const size_t underscore = name.find('_');
  const std::string prefix =
      underscore == std::string::npos ? "" : name.substr(0, underscore);
  const std::string suffix =
      name.substr(underscore == std::string::npos ? 0 : underscore + 1);
  if (std::optional<LaneType> type = laneTypeNamed(suffix);
      type && (prefix.empty() || prefix == "saturate" || prefix == "bits")) {
    if (!wants(1))
      return {};
    const Kind kind = prefix.empty()         ? Kind::Convert
                      : prefix == "saturate" ? Kind::Saturate
                                             : Kind::Reinterpret;
    if (kind == Kind::Reinterpret && operands[0].type &&
        bitsOf(*operands[0].type) != bitsOf(*type))
      reader.fail(name + " has an operand of as many bits");
    return make(kind, *type, std::move(operands));
  }
  struct Function {
    std::string_view name;
    size_t operands;
    Kind kind;
  };
  static constexpr Function functions[] = {
      {"fma", 3, Kind::Fma},           {"sqrt", 1, Kind::SquareRoot},
      {"abs", 1, Kind::Absolute},      {"round", 1, Kind::Round},
      {"floor", 1, Kind::Floor},       {"ceil", 1, Kind::Ceil},
      {"truncate", 1, Kind::Truncate}, {"minimum", 2, Kind::Minimum},
      {"maximum", 2, Kind::Maximum},   {"power_of_two", 1, Kind::PowerOfTwo},
  };
  const auto found = std::ranges::find(functions, name, &Function::name);
  if (found == std::end(functions)) {
    reader.fail("there is no function '" + name + "'");
    return {};
  }
  if (!wants(found->operands))
    return {};
  for (Expression &operand : std::span(operands).subspan(1))
    unify(operands.front(), operand);
  const std::optional<LaneType> type = operands.front().type;
  return make(found->kind, type, std::move(operands));
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// `a, b: f32x16, c: i32`.
static void readParameters(Reader &reader, Intrinsic &intrinsic) {
  reader.expect("(");
  if (reader.accept(")"))
    return;
  size_t untyped = 0;
  do {
    intrinsic.parameters.push_back({reader.takeName(), {}});
    if (!reader.accept(":"))
      continue;
    const ParameterType type = readType(reader);
    for (; untyped < intrinsic.parameters.size(); ++untyped)
      intrinsic.parameters[untyped].type = type;
  } while (reader.accept(",") && !reader.failure());
  if (untyped < intrinsic.parameters.size())
    reader.fail("expected ':' and a type");
  reader.expect(")");
}

/// `p[i] = a[i] if k[i]`.
static void readStore(Reader &reader, Intrinsic &intrinsic) {
  ExpressionReader expressions(reader, intrinsic);
  Store store;
  store.parameter = expressions.findParameter(reader.takeName());
  if (store.parameter < 0) {
    reader.fail("expected a parameter that is written to");
    return;
  }
  const ParameterType &to =
      intrinsic.parameters[static_cast<size_t>(store.parameter)].type;
  if (to.kind != ParameterType::Kind::Pointer || to.isConst)
    reader.fail("expected a pointer to what is not const");
  reader.expect("[");
  store.index = expressions.readIndex();
  reader.expect("]");
  reader.expect("=");
  store.value = expressions.read(to.lane);
  if (reader.accept("if"))
    store.condition = expressions.read(LaneType::Bool);
  // As many as the vector that is stored has lanes.
  for (const Parameter &each : intrinsic.parameters)
    if (each.type.kind == ParameterType::Kind::Vector)
      store.lanes = std::max(store.lanes, each.type.lanes);
  if (reader.accept("for"))
    store.lanes = reader.takeNumber();
  intrinsic.store = std::move(store);
}

static Intrinsic readRule(Reader &reader) {
  Intrinsic intrinsic;
  intrinsic.name = reader.takeName();
  readParameters(reader, intrinsic);
  if (reader.accept(":")) {
    readStore(reader, intrinsic);
  } else {
    reader.expect("->");
    intrinsic.result = readType(reader);
    reader.expect("=");
    intrinsic.value =
        ExpressionReader(reader, intrinsic).read(intrinsic.result->lane);
  }
  if (reader.peek().kind != Token::Kind::End)
    reader.fail("expected the end of the rule");
  return intrinsic;
}

/// `_mm512_mask_add_ps` for `_mm512_add_ps`, or with `maskz`.
static std::string maskedName(const std::string &name, std::string_view mask) {
  const size_t behindPrefix = name.find('_', name.find('m')) + 1;
  return name.substr(0, behindPrefix) + std::string(mask) + "_" +
         name.substr(behindPrefix);
}

/// `intrinsic` for the lanes that a mask has, which otherwise are those of a
/// vector, or 0.
static Intrinsic makeMasked(const Intrinsic &intrinsic, bool zeroes) {
  Intrinsic masked = intrinsic;
  masked.name = maskedName(intrinsic.name, zeroes ? "maskz" : "mask");
  const ParameterType &result = *intrinsic.result;
  std::vector<Parameter> added;
  if (!zeroes)
    added.push_back({"mask_source", result});
  added.push_back({"mask",
                   {.kind = ParameterType::Kind::Mask,
                    .lane = LaneType::Bool,
                    .lanes = result.lanes}});
  const auto count = static_cast<int64_t>(added.size());
  auto shift = [&](Expression &expression, auto &self) -> void {
    if (expression.kind == Expression::Kind::Argument ||
        expression.kind == Expression::Kind::Immediate)
      expression.number += count;
    for (Expression &operand : expression.operands)
      self(operand, self);
  };
  shift(masked.value, shift);
  masked.parameters.insert(masked.parameters.begin(), added.begin(),
                           added.end());
  auto argument = [&](int64_t number, LaneType type) {
    Expression index;
    index.kind = Expression::Kind::Index;
    index.name = "i";
    Expression lane;
    lane.kind = Expression::Kind::Argument;
    lane.type = type;
    lane.number = number;
    lane.operands = {index};
    return lane;
  };
  Expression otherwise;
  if (zeroes) {
    otherwise.kind = Expression::Kind::Convert;
    otherwise.type = result.lane;
    otherwise.operands.emplace_back();
  } else {
    otherwise = argument(0, result.lane);
  }
  Expression selected;
  selected.kind = Expression::Kind::Select;
  selected.type = result.lane;
  selected.operands = {argument(count - 1, LaneType::Bool),
                       std::move(masked.value), std::move(otherwise)};
  masked.value = std::move(selected);
  return masked;
}

namespace {

/// Reads the lines of a table.
class TableReader {
public:
  explicit TableReader(std::string_view text) : rest(text) {}

  Status read(std::map<std::string, Intrinsic, std::less<>> &intrinsics);

private:
  /// A text for each of some names.
  using Texts = std::vector<std::pair<std::string, std::string>>;

  /// The next line that says something, without what is behind a `#`.
  bool takeLine(std::string_view &line);
  Status readEach(std::string_view line);
  Status addRule(std::string_view rule, int64_t at,
                 std::map<std::string, Intrinsic, std::less<>> &intrinsics);

  std::string_view rest;
  int64_t line = 0;
  std::string features;
  /// What the rules of the block are repeated for, if they are in one.
  std::vector<Texts> repeated = {{}};
  bool isInBlock = false;
};

} // namespace

static std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool TableReader::takeLine(std::string_view &taken) {
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    taken = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line;
    taken = trim(taken.substr(0, taken.find('#')));
    if (!taken.empty())
      return true;
  }
  return false;
}

/// The parts of `text` between commas, without what is around them.
static std::vector<std::string> splitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t comma = text.find(',');
    parts.emplace_back(trim(text.substr(0, comma)));
    if (comma == std::string_view::npos)
      return parts;
    text.remove_prefix(comma + 1);
  }
}

/// `each p, n in (_mm256, 8), (_mm512, 16) {`.
Status TableReader::readEach(std::string_view text) {
  const size_t in = text.find(" in ");
  if (isInBlock || in == std::string_view::npos || !text.ends_with('{'))
    return makeError("line ", line,
                     ": expected each NAMES in (TEXTS), ... { outside of such "
                     "a block");
  const std::vector<std::string> names = splitAtCommas(text.substr(5, in - 5));
  repeated.clear();
  std::string_view values = text.substr(in + 4);
  for (;;) {
    const size_t begin = values.find('('), end = values.find(')');
    if (begin == std::string_view::npos || end == std::string_view::npos)
      break;
    const std::vector<std::string> texts =
        splitAtCommas(values.substr(begin + 1, end - begin - 1));
    if (texts.size() != names.size())
      return makeError("line ", line, ": ", texts.size(), " texts for ",
                       names.size(), " names");
    Texts &each = repeated.emplace_back();
    for (size_t i = 0; i < names.size(); ++i)
      each.emplace_back("{" + names[i] + "}", texts[i]);
    values.remove_prefix(end + 1);
  }
  isInBlock = true;
  return {};
}

Status TableReader::addRule(
    std::string_view rule, int64_t at,
    std::map<std::string, Intrinsic, std::less<>> &intrinsics) {
  for (const Texts &texts : repeated) {
    std::string text(rule);
    for (const auto &[name, value] : texts)
      for (size_t place = text.find(name); place != std::string::npos;
           place = text.find(name, place + value.size()))
        text.replace(place, name.size(), value);
    Reader reader(text, at);
    const bool masked = reader.accept("masked");
    Intrinsic intrinsic = readRule(reader);
    if (reader.failure())
      return *reader.failure();
    intrinsic.features = features;
    std::vector<Intrinsic> all = {std::move(intrinsic)};
    if (masked && !all[0].result)
      return makeError("line ", at, ": what stores is not masked by a word");
    if (masked)
      for (bool zeroes : {false, true})
        all.push_back(makeMasked(all[0], zeroes));
    for (Intrinsic &each : all) {
      std::string name = each.name;
      if (!intrinsics.try_emplace(name, std::move(each)).second)
        return makeError("line ", at, ": ", name, " is there already");
    }
  }
  return {};
}

Status
TableReader::read(std::map<std::string, Intrinsic, std::less<>> &intrinsics) {
  std::string_view taken;
  while (takeLine(taken)) {
    if (taken.starts_with("each ")) {
      SANDWICH_RETURN_IF_ERROR(readEach(taken));
      continue;
    }
    if (taken == "}") {
      if (!isInBlock)
        return makeError("line ", line, ": there is no block that ends");
      repeated = {{}};
      isInBlock = false;
      continue;
    }
    if (taken.starts_with('[') && taken.ends_with(']')) {
      features = std::string(taken.substr(1, taken.size() - 2));
      continue;
    }
    // A backslash at its end says that a rule goes on in the next line.
    const int64_t at = line;
    std::string rule(taken);
    while (rule.ends_with('\\')) {
      rule.pop_back();
      if (!takeLine(taken))
        return makeError("line ", at, ": the rule has no end");
      rule += taken;
    }
    SANDWICH_RETURN_IF_ERROR(addRule(rule, at, intrinsics));
  }
  if (isInBlock)
    return makeError("line ", line, ": a block has no end");
  return {};
}

Result<IntrinsicTable> IntrinsicTable::parse(std::string_view text) {
  IntrinsicTable table;
  SANDWICH_RETURN_IF_ERROR(TableReader(text).read(table.intrinsics));
  return table;
}

const IntrinsicTable &IntrinsicTable::x86() {
  static const IntrinsicTable table = [] {
    Result<IntrinsicTable> parsed = parse(x86IntrinsicsText());
    if (!parsed) {
      // A test reads the table; no program with a wrong one was ever tested.
      std::fprintf(stderr, "X86.intrinsics: %s\n",
                   parsed.error().message.c_str());
      std::abort();
    }
    return *std::move(parsed);
  }();
  return table;
}

const Intrinsic *IntrinsicTable::find(std::string_view name) const {
  const auto found = intrinsics.find(name);
  return found == intrinsics.end() ? nullptr : &found->second;
}
