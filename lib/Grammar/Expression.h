//===- Expression.h - Regular languages over bytes --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Regular languages with all the Boolean operations, as expressions that are
/// equal exactly if they are the same number. Automata are made from them by
/// derivatives (Brzozowski 1964), with the classes of bytes that Owens, Reppy
/// and Turon (2009, "Regular-expression derivatives re-examined") describe.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_GRAMMAR_EXPRESSION_H
#define SANDWICH_LIB_GRAMMAR_EXPRESSION_H

#include "CompileBudget.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::grammar {

using ByteSet = std::bitset<256>;

/// The bytes from `first` to `last`.
ByteSet byteRange(uint8_t first, uint8_t last);

/// An expression of an `ExpressionPool`.
enum class Expression : uint32_t {};

/// Makes expressions, each only once. When the budget is exhausted, all that is
/// made is `nothing`.
class ExpressionPool {
public:
  /// No text at all.
  static constexpr Expression nothing{0};
  /// The empty text.
  static constexpr Expression empty{1};
  /// For `repeat`: as often as you like.
  static constexpr uint32_t unlimited = std::numeric_limits<uint32_t>::max();

  /// `budget` must outlive the pool.
  explicit ExpressionPool(CompileBudget &budget);

  /// One byte of `set`.
  Expression bytes(const ByteSet &set);
  Expression bytes(uint8_t first, uint8_t last) {
    return bytes(byteRange(first, last));
  }
  Expression literal(std::string_view text);
  /// Any of `texts`, with their common beginnings written once.
  Expression literals(std::vector<std::string> texts);
  Expression concat(Expression left, Expression right);
  Expression concat(std::initializer_list<Expression> parts);
  Expression either(std::vector<Expression> parts);
  Expression either(Expression left, Expression right) {
    return either(std::vector{left, right});
  }
  Expression both(std::vector<Expression> parts);
  Expression both(Expression left, Expression right) {
    return both(std::vector{left, right});
  }
  /// Every text that `part` is not.
  Expression complement(Expression part);
  /// `least` to `most` texts of `part`, one after the other; `least` is at most
  /// `most`.
  Expression repeat(Expression part, uint32_t least, uint32_t most);
  Expression optional(Expression part) { return either(part, empty); }

  /// Whether the empty text is one of `expression`.
  bool isNullable(Expression expression) const {
    return at(expression).nullable;
  }

  /// What may follow `byte` in texts of `expression`.
  Expression derivative(Expression expression, uint8_t byte);

  /// Whether `text` is one of `expression`.
  bool matches(Expression expression, std::string_view text);

  /// Derivatives by bytes b - 1 and b may differ only if bit b is set.
  const ByteSet &boundaries(Expression expression) const {
    return allBoundaries[static_cast<size_t>(expression)];
  }

  CompileBudget &compileBudget() { return budget; }

private:
  enum class Kind : uint8_t {
    Nothing,
    Empty,
    Bytes,      ///< first: of `byteSets`
    Concat,     ///< first and second: expressions, the first not a Concat
    Repeat,     ///< first: an expression
    Either,     ///< first, second: begin and length in `lists`
    Both,       ///< the same
    Complement, ///< first: an expression
  };

  struct Node {
    Kind kind;
    bool nullable = false;
    uint32_t first = 0;
    uint32_t second = 0;
    uint32_t least = 0;
    uint32_t most = 0;
    uint32_t hash = 0;
  };

  const Node &at(Expression expression) const {
    return nodes[static_cast<size_t>(expression)];
  }
  std::span<const Expression> listOf(const Node &node) const {
    return std::span(lists).subspan(node.first, node.second);
  }
  /// The expression that `node` describes, whose list or set was added last.
  Expression intern(Node node);
  Expression internList(Kind kind, const std::vector<Expression> &parts,
                        bool nullable);
  uint32_t hashOf(const Node &node) const;
  bool isSame(const Node &left, const Node &right) const;
  ByteSet boundariesOf(const Node &node) const;
  void grow();
  /// Puts the parts of lists of the same kind in the lists' places.
  void flatten(Kind kind, std::vector<Expression> &parts) const;
  /// The expressions of Bytes in `parts` as one, by `combine`.
  template <typename Combine>
  void mergeBytes(std::vector<Expression> &parts, Combine combine);
  Expression prepend(Expression left, Expression right);
  Expression distribute(Expression left, Expression right);
  Expression derivativeOfRepeat(const Node &node, uint8_t byte);
  Expression derivativeOfConcat(Node sequence, uint8_t byte);
  Expression literalsFrom(std::span<const std::string> sorted, size_t depth,
                          unsigned nesting);

  CompileBudget &budget;
  std::vector<Node> nodes;
  std::vector<ByteSet> allBoundaries;
  std::vector<ByteSet> byteSets;
  std::vector<Expression> lists;
  /// Nodes by hash, a power of two of places.
  std::vector<uint32_t> places;
  /// Those of sequences and repetitions, by expression and byte.
  boost::unordered_flat_map<uint64_t, Expression> derivatives;
};

} // namespace sandwich::grammar

#endif // SANDWICH_LIB_GRAMMAR_EXPRESSION_H
