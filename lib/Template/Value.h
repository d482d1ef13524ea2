//===- Value.h - What templates compute with --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Python's values. Strings, lists, tuples and dictionaries never change once
/// they are made and are shared by counting, so they form no cycles; they know
/// how deep they are, which bounds whatever walks through them. What has state
/// (namespaces, macros, iterators) is an `Object`, which lives as long as the
/// rendering.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_VALUE_H
#define SANDWICH_LIB_TEMPLATE_VALUE_H

#include "MarkedText.h"

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sandwich::jinja {

/// The bytes that the values of one rendering hold.
class MemoryAccount {
public:
  explicit MemoryAccount(size_t limit) : limit(limit) {}

  /// Whether there is room for `bytes` more, which are taken.
  bool take(size_t bytes) {
    if (bytes > limit - used)
      return false;
    used += bytes;
    return true;
  }
  void give(size_t bytes) { used -= bytes; }
  size_t left() const { return limit - used; }

private:
  size_t used = 0;
  size_t limit;
};

/// Bytes taken of an account, which are given back with this.
class MemoryShare {
public:
  /// Of no account: values of the template itself.
  MemoryShare() = default;
  explicit MemoryShare(MemoryAccount &account) : account(&account) {}
  MemoryShare(MemoryShare &&other) noexcept
      : account(other.account), bytes(std::exchange(other.bytes, 0)) {}
  MemoryShare &operator=(MemoryShare &&other) noexcept {
    std::swap(account, other.account);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~MemoryShare() {
    if (account)
      account->give(bytes);
  }

  /// Takes `count` more bytes, if there are as many.
  bool grow(size_t count) {
    if (account && !account->take(count))
      return false;
    bytes += count;
    return true;
  }

private:
  MemoryAccount *account = nullptr;
  size_t bytes = 0;
};

class Object;
struct Dictionary;
struct Range;
struct Sequence;
struct String;

using StringPointer = std::shared_ptr<const String>;
using SequencePointer = std::shared_ptr<const Sequence>;
using DictionaryPointer = std::shared_ptr<const Dictionary>;
using RangePointer = std::shared_ptr<const Range>;

/// Nothing, and the error that using it makes.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

struct None {};

/// What `keys`, `values` and `items` of a dictionary are.
struct DictionaryView {
  enum class Part : uint8_t { Keys, Values, Items };
  DictionaryPointer dictionary;
  Part part;
};

/// Any value, and whether it comes from a request. Of strings their bytes know;
/// of lists and dictionaries this says where they themselves come from, not
/// their elements.
class Value {
public:
  enum class Kind : uint8_t {
    Undefined,
    None,
    Boolean,
    Integer,
    Float,
    String,
    Sequence,
    Dictionary,
    View,
    Range,
    Object,
  };

  Value() : contents(None()) {}
  Value(Undefined undefined) : contents(std::move(undefined)) {}
  Value(bool boolean, Origin origin) : contents(boolean), from(origin) {}
  Value(int64_t integer, Origin origin) : contents(integer), from(origin) {}
  Value(double number, Origin origin) : contents(number), from(origin) {}
  Value(StringPointer string) : contents(std::move(string)) {}
  Value(SequencePointer sequence, Origin origin)
      : contents(std::move(sequence)), from(origin) {}
  Value(DictionaryPointer dictionary, Origin origin)
      : contents(std::move(dictionary)), from(origin) {}
  Value(DictionaryView view, Origin origin)
      : contents(std::move(view)), from(origin) {}
  Value(RangePointer range, Origin origin)
      : contents(std::move(range)), from(origin) {}
  Value(Object &object) : contents(&object) {}

  /// None that comes from `origin`.
  static Value none(Origin origin) {
    Value value;
    value.from = origin;
    return value;
  }

  Kind kind() const { return static_cast<Kind>(contents.index()); }
  bool is(Kind other) const { return kind() == other; }
  bool isUndefined() const { return is(Kind::Undefined); }
  bool isNone() const { return is(Kind::None); }
  bool isString() const { return is(Kind::String); }
  bool isList() const;
  bool isTuple() const;
  /// Integers and booleans, which Python counts with.
  bool isInteger() const { return is(Kind::Integer) || is(Kind::Boolean); }
  bool isNumber() const { return isInteger() || is(Kind::Float); }

  // Only valid for values of the kind.
  const std::string &undefinedReason() const {
    return *std::get<Undefined>(contents).reason;
  }
  bool boolean() const { return std::get<bool>(contents); }
  int64_t integer() const {
    return is(Kind::Boolean) ? boolean() : std::get<int64_t>(contents);
  }
  double number() const {
    return is(Kind::Float) ? std::get<double>(contents)
                           : static_cast<double>(integer());
  }
  const String &string() const { return *std::get<StringPointer>(contents); }
  /// The bytes of a string.
  const std::string &bytes() const;
  const MarkedText &text() const;
  const Sequence &sequence() const {
    return *std::get<SequencePointer>(contents);
  }
  const std::vector<Value> &items() const;
  const DictionaryPointer &dictionary() const {
    return std::get<DictionaryPointer>(contents);
  }
  const DictionaryView &view() const {
    return std::get<DictionaryView>(contents);
  }
  const Range &range() const { return *std::get<RangePointer>(contents); }
  Object &object() const { return *std::get<Object *>(contents); }

  /// Where it comes from: of a string, data if any byte is.
  Origin origin() const;

  /// How many lists and dictionaries lie in each other here.
  unsigned depth() const;

  /// Python's `is`.
  bool isSame(const Value &other) const;

private:
  // In the order of Kind.
  std::variant<Undefined, None, bool, int64_t, double, StringPointer,
               SequencePointer, DictionaryPointer, DictionaryView, RangePointer,
               Object *>
      contents;
  Origin from = Origin::Template;
};

/// A string. One made by `escape` or `safe` is markup, and what is added to it
/// is escaped.
struct String {
  String(MarkedText text, bool isMarkup, MemoryShare share);

  MarkedText text;
  size_t characters;
  bool isMarkup;
  MemoryShare share;

  bool isAscii() const { return characters == text.size(); }
  /// Where the character `index` begins; the end, if there are not as many.
  size_t offsetOf(size_t index) const;
};

/// A list or a tuple.
struct Sequence {
  Sequence(std::vector<Value> items, bool isTuple, MemoryShare share);

  std::vector<Value> items;
  bool isTuple;
  /// The tuple is one of `groupby`'s, which has names for its items.
  bool isGroup = false;
  unsigned depth = 1;
  MemoryShare share;
};

/// Keys in the order in which they came, and found by halving.
struct Dictionary {
  using Entry = std::pair<Value, Value>;

  /// The last value of a key counts, in the first one's place. Keys must be
  /// hashable.
  Dictionary(std::vector<Entry> entries, MemoryShare share);

  const Value *find(const Value &key) const;
  const Value *find(std::string_view key) const;

  std::vector<Entry> entries;
  unsigned depth = 1;
  MemoryShare share;

private:
  /// Indexes of `entries`, by key; none where there are few.
  std::vector<uint32_t> order;
};

/// `range(start, stop, step)`.
struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1; ///< not zero
  int64_t size = 0; ///< how many numbers there are

  /// The number at `index`, which is there; for others something.
  int64_t at(int64_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(index) *
                                    static_cast<uint64_t>(step));
  }
};

/// What has state or is called. Belongs to a rendering.
class Object {
public:
  enum class Kind : uint8_t {
    BoundMethod,
    Cycler,
    Function,
    Generator,
    Joiner,
    Loop,
    Macro,
    Namespace,
  };
  explicit Object(Kind kind) : objectKind(kind) {}
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;
  virtual ~Object() = default;
  Kind kind() const { return objectKind; }

private:
  Kind objectKind;
};

/// The deepest lists and dictionaries.
inline constexpr unsigned maxValueDepth = 100;

/// Python's name of the value's type.
std::string_view typeName(const Value &value);

/// Whether the value can be the key of a dictionary. Tuples in tuples cannot,
/// though Python lets them: shared, they could take forever to compare.
bool isHashable(const Value &value);

/// What comparing a key takes, in steps.
size_t keyCost(const Value &key);

/// An order of hashable values in which those that Python takes for equal are
/// equal; otherwise of no meaning.
std::weak_ordering compareKeys(const Value &a, const Value &b);

/// Numbers as Python compares them, exactly.
std::partial_ordering compareNumbers(const Value &a, const Value &b);

/// Python's `bool`.
bool isTrue(const Value &value);

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_VALUE_H
