//===- Iteration.cpp - Going through values -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Iteration.h"

#include "sandwich/Support/Utf8.h"

using namespace sandwich;
using namespace sandwich::jinja;

Result<std::optional<Value>> Generator::next() {
  // Python refuses it as well.
  if (isRunning)
    return makeError("a generator asks for its own items");
  isRunning = true;
  Result<std::optional<Value>> item = advance();
  isRunning = false;
  // Nothing comes after an end or an error.
  if (!item || !*item)
    advance = [] { return std::optional<Value>(); };
  return item;
}

Value jinja::makeGenerator(RenderState &state, Next next) {
  // What the function holds is a few values.
  constexpr size_t held = 200;
  state.keep(held);
  return state.make<Generator>(std::move(next));
}

Result<ValueIterator> ValueIterator::over(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
  case Value::Kind::String:
  case Value::Kind::Sequence:
  case Value::Kind::Dictionary:
  case Value::Kind::View:
  case Value::Kind::Range:
    return ValueIterator(value);
  case Value::Kind::Object:
    if (value.object().kind() == Object::Kind::Generator)
      return ValueIterator(value);
    break;
  default:
    break;
  }
  return makeError("a ", typeName(value), " has no items");
}

Result<std::optional<Value>> ValueIterator::next(RenderState &state) {
  using Item = std::optional<Value>;
  state.spend(1);
  SANDWICH_RETURN_IF_ERROR(state.check());
  switch (value.kind()) {
  case Value::Kind::String: {
    const MarkedText &text = value.text();
    if (position == text.size())
      return Item();
    const size_t begin = position;
    position += characterLength(text.bytes()[begin]);
    return Item(
        state.string(text.slice(begin, position), value.string().isMarkup));
  }
  case Value::Kind::Sequence:
    return position == value.items().size() ? Item()
                                            : Item(value.items()[position++]);
  case Value::Kind::Dictionary: {
    const auto &entries = value.dictionary()->entries;
    return position == entries.size() ? Item()
                                      : Item(entries[position++].first);
  }
  case Value::Kind::View:
    return position == value.view().dictionary->entries.size()
               ? Item()
               : Item(viewItem(state, value.view(), position++));
  case Value::Kind::Range:
    return static_cast<int64_t>(position) == value.range().size
               ? Item()
               : Item(Value(value.range().at(static_cast<int64_t>(position++)),
                            value.origin()));
  case Value::Kind::Object:
    return static_cast<Generator &>(value.object()).next();
  default:
    return Item();
  }
}

Result<std::vector<Value>> jinja::collect(RenderState &state,
                                          const Value &value) {
  SANDWICH_ASSIGN_OR_RETURN(ValueIterator iterator, ValueIterator::over(value));
  std::vector<Value> items;
  MemoryShare memory = state.share();
  while (true) {
    SANDWICH_ASSIGN_OR_RETURN(std::optional<Value> item, iterator.next(state));
    if (!item)
      return items;
    if (!memory.grow(sizeof(Value)))
      state.exhaustMemory();
    items.push_back(*std::move(item));
  }
}

Result<size_t> jinja::lengthOf(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Undefined:
    return size_t{0};
  case Value::Kind::String:
    return value.string().characters;
  case Value::Kind::Sequence:
    return value.items().size();
  case Value::Kind::Dictionary:
    return value.dictionary()->entries.size();
  case Value::Kind::View:
    return value.view().dictionary->entries.size();
  case Value::Kind::Range:
    return static_cast<size_t>(value.range().size);
  default:
    return makeError("a ", typeName(value), " has no length");
  }
}

Value jinja::viewItem(RenderState &state, const DictionaryView &view,
                      size_t index) {
  const auto &[key, value] = view.dictionary->entries[index];
  switch (view.part) {
  case DictionaryView::Part::Keys:
    return key;
  case DictionaryView::Part::Values:
    return value;
  case DictionaryView::Part::Items:
    break;
  }
  return state.tuple({key, value});
}
