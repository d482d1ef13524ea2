//===- RenderState.h - What one rendering has -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The limits of one rendering and what it has used of them. Making a value
/// never fails by itself: what goes beyond a limit exhausts the state, and the
/// next evaluation ends with the error. What could grow without bound before
/// then asks `isExhausted` as it goes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TEMPLATE_RENDERSTATE_H
#define SANDWICH_LIB_TEMPLATE_RENDERSTATE_H

#include "Value.h"

#include "sandwich/Support/Json.h"
#include "sandwich/Support/Result.h"
#include "sandwich/Template/ChatTemplate.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandwich::jinja {

/// Evaluated arguments.
struct Arguments {
  struct Keyword {
    std::string_view name; ///< of the template's source, or of `spread`
    Origin nameOrigin;
    Value value;
  };
  std::vector<Value> positional;
  std::vector<Keyword> keywords;
  /// The dictionary that some of the keywords are from.
  Value spread;
};

/// `text` as an error shows it: not longer than a line or two.
std::string excerpt(std::string_view text);

class RenderState {
public:
  RenderState(const TemplateLimits &limits, const RenderOptions &options)
      : limits(limits), options(options), account(limits.memoryBytes) {}
  RenderState(const RenderState &) = delete;
  RenderState &operator=(const RenderState &) = delete;

  const TemplateLimits &limits;
  const RenderOptions &options;

  //===--- Limits ---------------------------------------------------------===//

  /// Takes steps.
  void spend(uint64_t count) {
    steps += count;
    if (steps > limits.steps)
      exhaust("it takes too many steps");
  }
  /// Takes the steps that handling so many bytes is.
  void spendBytes(size_t bytes) { spend(bytes / 64); }

  bool isExhausted() const { return exhausted.has_value(); }
  /// The error once a limit is exceeded.
  Status check() const {
    if (exhausted)
      return *exhausted;
    return {};
  }
  /// From now on `check` fails, because of the first reason there was.
  void exhaust(const std::string &reason);
  void exhaustMemory();

  /// Memory of this rendering.
  MemoryShare share() { return MemoryShare(account); }
  size_t memoryLeft() const { return account.left(); }
  /// Takes memory until the rendering ends.
  void keep(size_t bytes) {
    if (!kept.grow(bytes))
      exhaustMemory();
  }

  //===--- Values ---------------------------------------------------------===//

  Value string(MarkedText text, bool isMarkup = false);
  Value string(std::string text, Origin origin) {
    return string(MarkedText(std::move(text), origin));
  }
  Value list(std::vector<Value> items, Origin origin = Origin::Template) {
    return sequence(std::move(items), false, origin);
  }
  Value tuple(std::vector<Value> items, Origin origin = Origin::Template) {
    return sequence(std::move(items), true, origin);
  }
  Value sequence(std::vector<Value> items, bool isTuple, Origin origin);
  /// Errors: a key that is not hashable.
  Result<Value> dictionary(std::vector<Dictionary::Entry> entries,
                           Origin origin = Origin::Template);
  /// Nothing, of which `reason` is the error.
  static Value undefined(std::string reason);
  /// What a member is that is not there: jinja2's message.
  static Value missing(const Value &object, std::string_view name);

  /// A new object, which lives as long as this.
  template <typename T, typename... Arguments>
  T &make(Arguments &&...arguments) {
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T &made = *object;
    objects.push_back(std::move(object));
    keep(sizeof(T) + sizeof(void *));
    return made;
  }

  /// The value of `json`. Errors: what no value is.
  Result<Value> fromJson(const Json &json, Origin origin);

private:
  Result<Value> fromText(const std::string &text, Origin origin);
  Result<Value> fromJson(const Json &json, Origin origin, unsigned depth);

  uint64_t steps = 0;
  std::optional<Error> exhausted;
  // The values give back to the account, which therefore outlives them.
  MemoryAccount account;
  MemoryShare kept{account};
  std::vector<std::unique_ptr<Object>> objects;
};

/// A text as it grows, with the memory that it takes.
class TextBuilder {
public:
  explicit TextBuilder(RenderState &state)
      : state(state), share(state.share()) {}

  void append(std::string_view text, Origin origin) {
    if (grows(text.size()))
      contents.append(text, origin);
  }
  void append(const MarkedText &text) {
    // A range takes as much as sixteen bytes.
    if (grows(text.size() + text.trusted().size() * sizeof(ByteRange)))
      contents.append(text);
  }
  void append(const MarkedText &text, size_t begin, size_t end) {
    // As many ranges as there could be.
    if (grows(end - begin +
              std::min(text.trusted().size(), (end - begin) / 2 + 1) *
                  sizeof(ByteRange)))
      contents.append(text, begin, end);
  }

  size_t size() const { return contents.size(); }
  Value finish(bool isMarkup = false) {
    return Value(std::make_shared<String>(std::move(contents), isMarkup,
                                          std::move(share)));
  }
  /// What has been written, which leaves this empty.
  MarkedText take() { return std::exchange(contents, {}); }

private:
  bool grows(size_t bytes) {
    if (!share.grow(bytes)) {
      state.exhaustMemory();
      return false;
    }
    state.spendBytes(bytes);
    return true;
  }

  RenderState &state;
  MarkedText contents;
  MemoryShare share;
};

} // namespace sandwich::jinja

#endif // SANDWICH_LIB_TEMPLATE_RENDERSTATE_H
