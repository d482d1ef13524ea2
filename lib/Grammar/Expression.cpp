//===- Expression.cpp - Regular languages over bytes ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include <algorithm>
#include <functional>
#include <utility>

using namespace sandwich::grammar;

ByteSet sandwich::grammar::byteRange(uint8_t first, uint8_t last) {
  ByteSet set;
  for (unsigned byte = first; byte <= last; ++byte)
    set.set(byte);
  return set;
}

/// A place of the table without a node.
static constexpr uint32_t noNode = std::numeric_limits<uint32_t>::max();
/// Steps for a new expression, for what it takes of memory.
static constexpr uint64_t stepsOfNode = 8;

ExpressionPool::ExpressionPool(CompileBudget &budget)
    : budget(budget), places(1024, noNode) {
  intern({.kind = Kind::Nothing});
  intern({.kind = Kind::Empty, .nullable = true});
}

//===----------------------------------------------------------------------===//
// Each expression once
//===----------------------------------------------------------------------===//

static uint32_t mix(uint32_t hash, uint32_t value) {
  const uint64_t product = (uint64_t(hash) ^ value) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>(product >> 32) ^ static_cast<uint32_t>(product);
}

uint32_t ExpressionPool::hashOf(const Node &node) const {
  uint32_t hash = mix(0, static_cast<uint32_t>(node.kind));
  switch (node.kind) {
  case Kind::Bytes:
    return mix(hash, static_cast<uint32_t>(
                         std::hash<ByteSet>()(byteSets[node.first])));
  case Kind::Either:
  case Kind::Both:
    for (Expression part : listOf(node))
      hash = mix(hash, static_cast<uint32_t>(part));
    return hash;
  default:
    hash = mix(mix(hash, node.first), node.second);
    return mix(mix(hash, node.least), node.most);
  }
}

bool ExpressionPool::isSame(const Node &left, const Node &right) const {
  if (left.hash != right.hash || left.kind != right.kind)
    return false;
  switch (left.kind) {
  case Kind::Bytes:
    return byteSets[left.first] == byteSets[right.first];
  case Kind::Either:
  case Kind::Both:
    return std::ranges::equal(listOf(left), listOf(right));
  default:
    return left.first == right.first && left.second == right.second &&
           left.least == right.least && left.most == right.most;
  }
}

ByteSet ExpressionPool::boundariesOf(const Node &node) const {
  auto of = [this](uint32_t index) { return allBoundaries[index]; };
  switch (node.kind) {
  case Kind::Nothing:
  case Kind::Empty:
    return {};
  case Kind::Bytes: {
    ByteSet set = byteSets[node.first] ^ (byteSets[node.first] << 1);
    return set.reset(0);
  }
  case Kind::Concat:
    return nodes[node.first].nullable ? of(node.first) | of(node.second)
                                      : of(node.first);
  case Kind::Repeat:
  case Kind::Complement:
    return of(node.first);
  case Kind::Either:
  case Kind::Both: {
    ByteSet set;
    for (Expression part : listOf(node))
      set |= boundaries(part);
    return set;
  }
  }
  return {};
}

void ExpressionPool::grow() {
  places.assign(places.size() * 2, noNode);
  const size_t mask = places.size() - 1;
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    size_t place = nodes[id].hash & mask;
    while (places[place] != noNode)
      place = (place + 1) & mask;
    places[place] = id;
  }
}

Expression ExpressionPool::intern(Node node) {
  node.hash = hashOf(node);
  const size_t mask = places.size() - 1;
  size_t place = node.hash & mask;
  for (; places[place] != noNode; place = (place + 1) & mask)
    if (isSame(nodes[places[place]], node)) {
      if (node.kind == Kind::Bytes)
        byteSets.pop_back();
      else if (node.kind == Kind::Either || node.kind == Kind::Both)
        lists.resize(node.first);
      return Expression{places[place]};
    }
  if (!budget.spend(stepsOfNode))
    return nothing;
  const auto id = static_cast<uint32_t>(nodes.size());
  places[place] = id;
  allBoundaries.push_back(boundariesOf(node));
  nodes.push_back(node);
  if (nodes.size() * 2 > places.size())
    grow();
  return Expression{id};
}

Expression ExpressionPool::internList(Kind kind,
                                      const std::vector<Expression> &parts,
                                      bool nullable) {
  const auto begin = static_cast<uint32_t>(lists.size());
  lists.insert(lists.end(), parts.begin(), parts.end());
  return intern({.kind = kind,
                 .nullable = nullable,
                 .first = begin,
                 .second = static_cast<uint32_t>(parts.size())});
}

//===----------------------------------------------------------------------===//
// Making expressions
//===----------------------------------------------------------------------===//

Expression ExpressionPool::bytes(const ByteSet &set) {
  if (set.none())
    return nothing;
  byteSets.push_back(set);
  return intern({.kind = Kind::Bytes,
                 .first = static_cast<uint32_t>(byteSets.size() - 1)});
}

Expression ExpressionPool::literal(std::string_view text) {
  Expression result = empty;
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    result = concat(bytes(byte, byte), result);
  }
  return result;
}

Expression ExpressionPool::literals(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  const auto [first, last] = std::ranges::unique(texts);
  texts.erase(first, last);
  return literalsFrom(texts, 0, 0);
}

/// Beginnings that lie deeper than this in each other are not shared.
static constexpr unsigned mostNesting = 1000;

/// What follows the first `depth` bytes, which all of `sorted` have in common.
Expression ExpressionPool::literalsFrom(std::span<const std::string> sorted,
                                        size_t depth, unsigned nesting) {
  std::vector<Expression> parts;
  if (sorted.size() == 1 || nesting == mostNesting) {
    for (const std::string &text : sorted)
      parts.push_back(literal(std::string_view(text).substr(depth)));
    return either(std::move(parts));
  }
  while (!sorted.empty()) {
    if (sorted.front().size() == depth) {
      parts.push_back(empty);
      sorted = sorted.subspan(1);
      continue;
    }
    // All that goes on with the same bytes, as far as the first and the last
    // agree.
    const char byte = sorted.front()[depth];
    const auto end = std::ranges::find_if(
        sorted, [=](const std::string &text) { return text[depth] != byte; });
    const auto count = static_cast<size_t>(end - sorted.begin());
    const std::string &first = sorted.front(), &last = sorted[count - 1];
    size_t common = depth + 1;
    while (common < first.size() && common < last.size() &&
           first[common] == last[common])
      ++common;
    parts.push_back(
        concat(literal(std::string_view(first).substr(depth, common - depth)),
               literalsFrom(sorted.first(count), common, nesting + 1)));
    sorted = sorted.subspan(count);
  }
  return either(std::move(parts));
}

/// `left`, which is no Concat, before `right`.
Expression ExpressionPool::prepend(Expression left, Expression right) {
  if (left == nothing || right == nothing)
    return nothing;
  if (left == empty)
    return right;
  if (right == empty)
    return left;
  const Node begin = at(left);
  const Node rest = at(right);
  const Expression head =
      rest.kind == Kind::Concat ? Expression{rest.first} : right;
  const Node next = at(head);
  // Repetitions of the same become one, so that x*x* is x*.
  if (begin.kind == Kind::Repeat && next.kind == Kind::Repeat &&
      begin.first == next.first) {
    auto add = [](uint32_t a, uint32_t b) {
      return a < unlimited - b ? a + b : unlimited;
    };
    const Expression merged =
        repeat(Expression{begin.first}, add(begin.least, next.least),
               add(begin.most, next.most));
    return head == right ? merged : prepend(merged, Expression{rest.second});
  }
  return intern({.kind = Kind::Concat,
                 .nullable = begin.nullable && rest.nullable,
                 .first = static_cast<uint32_t>(left),
                 .second = static_cast<uint32_t>(right)});
}

Expression ExpressionPool::concat(Expression left, Expression right) {
  std::vector<Expression> parts;
  while (at(left).kind == Kind::Concat) {
    const Node node = at(left);
    parts.push_back(Expression{node.first});
    left = Expression{node.second};
  }
  if (!budget.spend(1 + parts.size()))
    return nothing;
  Expression result = prepend(left, right);
  for (size_t i = parts.size(); i-- > 0;)
    result = prepend(parts[i], result);
  return result;
}

Expression ExpressionPool::concat(std::initializer_list<Expression> parts) {
  Expression result = empty;
  for (const Expression *part = parts.end(); part != parts.begin();)
    result = concat(*--part, result);
  return result;
}

void ExpressionPool::flatten(Kind kind, std::vector<Expression> &parts) const {
  const size_t count = parts.size();
  for (size_t i = 0; i < count; ++i) {
    const Node &node = at(parts[i]);
    if (node.kind != kind)
      continue;
    // The order of parts means nothing.
    const std::span<const Expression> inner = listOf(node);
    parts[i] = inner.front();
    parts.insert(parts.end(), inner.begin() + 1, inner.end());
  }
}

template <typename Combine>
void ExpressionPool::mergeBytes(std::vector<Expression> &parts,
                                Combine combine) {
  ByteSet set;
  size_t found = 0;
  std::erase_if(parts, [&](Expression part) {
    if (at(part).kind != Kind::Bytes)
      return false;
    const ByteSet &own = byteSets[at(part).first];
    set = found++ == 0 ? own : combine(set, own);
    return true;
  });
  if (found > 0)
    parts.push_back(bytes(set));
}

Expression ExpressionPool::either(std::vector<Expression> parts) {
  std::erase(parts, nothing);
  if (parts.size() > 1)
    flatten(Kind::Either, parts);
  if (!budget.spend(1 + parts.size()))
    return nothing;
  if (parts.size() == 1)
    return parts.front();
  mergeBytes(parts, std::bit_or<>());
  std::ranges::sort(parts);
  const auto [first, last] = std::ranges::unique(parts);
  parts.erase(first, last);
  bool nullable = false, nullableBesideEmpty = false;
  for (Expression part : parts) {
    const Node &node = at(part);
    // Everything contains all the others.
    if (node.kind == Kind::Complement && Expression{node.first} == nothing)
      return part;
    nullable |= node.nullable;
    nullableBesideEmpty |= node.nullable && part != empty;
  }
  if (nullableBesideEmpty)
    std::erase(parts, empty);
  if (parts.empty())
    return nothing;
  if (parts.size() == 1)
    return parts.front();
  return internList(Kind::Either, parts, nullable);
}

Expression ExpressionPool::both(std::vector<Expression> parts) {
  flatten(Kind::Both, parts);
  if (!budget.spend(1 + parts.size()))
    return nothing;
  mergeBytes(parts, std::bit_and<>());
  std::erase_if(parts, [this](Expression part) {
    const Node &node = at(part);
    return node.kind == Kind::Complement && Expression{node.first} == nothing;
  });
  std::ranges::sort(parts);
  const auto [first, last] = std::ranges::unique(parts);
  parts.erase(first, last);
  if (parts.empty())
    return complement(nothing);
  if (parts.size() == 1)
    return parts.front();
  if (parts.front() == nothing)
    return nothing;
  const bool nullable = std::ranges::all_of(
      parts, [this](Expression part) { return isNullable(part); });
  if (std::ranges::find(parts, empty) != parts.end())
    return nullable ? empty : nothing;
  return internList(Kind::Both, parts, nullable);
}

Expression ExpressionPool::complement(Expression part) {
  const Node node = at(part);
  if (node.kind == Kind::Complement)
    return Expression{node.first};
  return intern({.kind = Kind::Complement,
                 .nullable = !node.nullable,
                 .first = static_cast<uint32_t>(part)});
}

Expression ExpressionPool::repeat(Expression part, uint32_t least,
                                  uint32_t most) {
  const Node node = at(part);
  if (most == 0 || part == empty)
    return empty;
  if (part == nothing)
    return least == 0 ? empty : nothing;
  if (least == 1 && most == 1)
    return part;
  // A text that may be empty may be left out.
  if (node.nullable)
    least = 0;
  if (node.kind == Kind::Repeat && node.least == 0 && node.most == unlimited)
    return part;
  return intern({.kind = Kind::Repeat,
                 .nullable = least == 0,
                 .first = static_cast<uint32_t>(part),
                 .least = least,
                 .most = most});
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// Each of the alternatives of `left` before `right`. So derivatives are sets
/// of Antimirov's partial derivatives (1996), of which there are few, and not
/// as many expressions as there are ways to nest them.
Expression ExpressionPool::distribute(Expression left, Expression right) {
  const Node node = at(left);
  if (node.kind != Kind::Either)
    return concat(left, right);
  std::vector<Expression> parts(node.second);
  for (uint32_t i = 0; i < node.second; ++i)
    parts[i] = concat(lists[node.first + i], right);
  return either(std::move(parts));
}

/// The last of `boundaries` up to `byte`, or 0: the first of its class.
static uint8_t firstOfClass(const ByteSet &boundaries, uint8_t byte) {
  while (byte > 0 && !boundaries.test(byte))
    --byte;
  return byte;
}

Expression ExpressionPool::derivative(Expression expression, uint8_t byte) {
  const Node node = at(expression);
  switch (node.kind) {
  case Kind::Nothing:
  case Kind::Empty:
    return nothing;
  case Kind::Bytes:
    return byteSets[node.first].test(byte) ? empty : nothing;
  case Kind::Complement:
    return complement(derivative(Expression{node.first}, byte));
  case Kind::Either:
  case Kind::Both: {
    std::vector<Expression> parts(node.second);
    for (uint32_t i = 0; i < node.second; ++i)
      parts[i] = derivative(lists[node.first + i], byte);
    return node.kind == Kind::Either ? either(std::move(parts))
                                     : both(std::move(parts));
  }
  case Kind::Repeat:
  case Kind::Concat:
    break;
  }
  // The same are parts of many alternatives.
  byte = firstOfClass(boundaries(expression), byte);
  const uint64_t key = uint64_t(expression) << 8 | byte;
  if (const auto known = derivatives.find(key); known != derivatives.end())
    return known->second;
  // One that is kept takes as long as a node.
  if (!budget.spend(stepsOfNode))
    return nothing;
  const Expression result = node.kind == Kind::Repeat
                                ? derivativeOfRepeat(node, byte)
                                : derivativeOfConcat(node, byte);
  if (!budget.exhausted())
    derivatives.emplace(key, result);
  return result;
}

Expression ExpressionPool::derivativeOfRepeat(const Node &node, uint8_t byte) {
  const uint32_t least = node.least == 0 ? 0 : node.least - 1;
  const uint32_t most = node.most == unlimited ? unlimited : node.most - 1;
  return distribute(derivative(Expression{node.first}, byte),
                    repeat(Expression{node.first}, least, most));
}

/// Along the sequence as far as its parts may be empty.
Expression ExpressionPool::derivativeOfConcat(Node sequence, uint8_t byte) {
  std::vector<Expression> parts;
  while (true) {
    parts.push_back(distribute(derivative(Expression{sequence.first}, byte),
                               Expression{sequence.second}));
    if (!isNullable(Expression{sequence.first}) || budget.exhausted())
      break;
    const Node rest = at(Expression{sequence.second});
    if (rest.kind != Kind::Concat) {
      parts.push_back(derivative(Expression{sequence.second}, byte));
      break;
    }
    sequence = rest;
  }
  return parts.size() == 1 ? parts.front() : either(std::move(parts));
}

bool ExpressionPool::matches(Expression expression, std::string_view text) {
  for (char byte : text) {
    if (expression == nothing || !budget.spend(1))
      return false;
    expression = derivative(expression, static_cast<uint8_t>(byte));
  }
  return isNullable(expression);
}
