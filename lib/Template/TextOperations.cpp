//===- TextOperations.cpp - Python's strings ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextOperations.h"

#include "Characters.h"
#include "Printing.h"

#include <algorithm>
#include <set>

using namespace sandwich;
using namespace sandwich::jinja;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {

/// Makes values of parts of a text.
class Cutter {
public:
  /// All parts are data if `decider`, who says where to cut, is.
  Cutter(RenderState &state, const String &text, Origin decider)
      : state(state), text(text), decider(decider) {}

  Value part(size_t begin, size_t end) const {
    if (decider == Origin::Data)
      return state.string(
          MarkedText(text.text.bytes().substr(begin, end - begin),
                     Origin::Data),
          text.isMarkup);
    return state.string(text.text.slice(begin, end), text.isMarkup);
  }
  std::string_view bytes() const { return text.text.bytes(); }

private:
  RenderState &state;
  const String &text;
  Origin decider;
};

} // namespace

/// The part of `text` without what `isStripped` at its ends.
template <typename IsStripped>
static std::string_view stripped(std::string_view text, Ends ends,
                                 IsStripped isStripped) {
  if (ends != Ends::Right)
    while (!text.empty() && isStripped(firstCharacter(text)))
      text.remove_prefix(characterLength(text[0]));
  if (ends != Ends::Left)
    while (!text.empty() && isStripped(lastCharacter(text)))
      text = text.substr(0, lastCharacterOffset(text));
  return text;
}

Value jinja::stripText(RenderState &state, const String &text,
                       const MarkedText *characters, Ends ends) {
  state.spendBytes(text.text.size());
  const std::string_view bytes = text.text.bytes();
  std::string_view rest;
  if (!characters) {
    rest = stripped(bytes, ends, isSpace);
  } else {
    state.spendBytes(characters->size());
    std::set<char32_t> set;
    const std::string_view all = characters->bytes();
    for (size_t i = 0; i < all.size(); i += characterLength(all[i]))
      set.insert(firstCharacter(all.substr(i)));
    rest = stripped(bytes, ends, [&](char32_t c) { return set.contains(c); });
  }
  const auto begin = static_cast<size_t>(rest.data() - bytes.data());
  const Cutter cutter(state, text,
                      characters ? characters->origin() : Origin::Template);
  return cutter.part(begin, begin + rest.size());
}

//===----------------------------------------------------------------------===//
// Replacing and joining
//===----------------------------------------------------------------------===//

/// Puts `replacement` before each character and at the end.
static void insertBetween(RenderState &state, const MarkedText &text,
                          const MarkedText &replacement, uint64_t count,
                          TextBuilder &result) {
  size_t done = 0;
  for (; count > 0 && !state.isExhausted(); --count) {
    state.spend(1);
    result.append(replacement);
    if (done == text.size())
      return;
    const size_t end = done + characterLength(text.bytes()[done]);
    result.append(text, done, end);
    done = end;
  }
  result.append(text, done, text.size());
}

Value jinja::replaceText(RenderState &state, const MarkedText &text,
                         const MarkedText &old, const MarkedText &replacement,
                         int64_t count) {
  state.spendBytes(text.size());
  TextBuilder result(state);
  // A negative count is a large one.
  auto left = static_cast<uint64_t>(count);
  if (old.empty()) {
    insertBetween(state, text, replacement, left, result);
  } else {
    size_t done = 0;
    while (left-- > 0 && !state.isExhausted()) {
      const size_t found = findText(text.bytes(), old.bytes(), done);
      if (found == std::string::npos)
        break;
      state.spend(1);
      result.append(text, done, found);
      result.append(replacement);
      done = found + old.size();
    }
    result.append(text, done, text.size());
  }
  if (old.origin() == Origin::Template)
    return result.finish();
  return state.string(MarkedText(result.take().bytes(), Origin::Data));
}

Result<Value> jinja::joinTexts(RenderState &state, const MarkedText &separator,
                               const std::vector<Value> &items) {
  TextBuilder joined(state);
  for (size_t i = 0; i != items.size(); ++i) {
    state.spend(1);
    SANDWICH_RETURN_IF_ERROR(state.check());
    if (i > 0)
      joined.append(separator);
    SANDWICH_RETURN_IF_ERROR(appendString(state, items[i], joined));
  }
  return joined.finish();
}

Value jinja::padText(RenderState &state, const String &text, int64_t width,
                     const MarkedText &fill, Alignment alignment) {
  const auto length = static_cast<int64_t>(text.characters);
  const uint64_t missing =
      width > length ? static_cast<uint64_t>(width - length) : 0;
  uint64_t before = 0;
  if (alignment == Alignment::Right)
    before = missing;
  else if (alignment == Alignment::Center)
    // Of an odd number, as Python has it, the greater half comes first where
    // the width is odd.
    before = missing / 2 + (missing & static_cast<uint64_t>(width) & 1);
  TextBuilder padded(state);
  auto append = [&](uint64_t count) {
    for (; count > 0 && !state.isExhausted(); --count) {
      state.spend(1);
      padded.append(fill);
    }
  };
  append(before);
  padded.append(text.text);
  append(missing - before);
  return padded.finish(text.isMarkup);
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// The parts between separators, from the left.
static void splitFromLeft(RenderState &state, const Cutter &cutter,
                          std::string_view separator, uint64_t count,
                          std::vector<Value> &parts) {
  const std::string_view bytes = cutter.bytes();
  size_t done = 0;
  for (; count > 0 && !state.isExhausted(); --count) {
    const size_t found = findText(bytes, separator, done);
    if (found == bytes.npos)
      break;
    parts.push_back(cutter.part(done, found));
    done = found + separator.size();
  }
  parts.push_back(cutter.part(done, bytes.size()));
}

/// The parts between separators, from the right, the last first.
static void splitFromRight(RenderState &state, const Cutter &cutter,
                           std::string_view separator, uint64_t count,
                           std::vector<Value> &parts) {
  const std::string_view bytes = cutter.bytes();
  // Backwards the search goes forwards.
  const std::string reversed(bytes.rbegin(), bytes.rend());
  const std::string wanted(separator.rbegin(), separator.rend());
  size_t done = 0;
  for (; count > 0 && !state.isExhausted(); --count) {
    const size_t found = findText(reversed, wanted, done);
    if (found == bytes.npos)
      break;
    parts.push_back(cutter.part(bytes.size() - found, bytes.size() - done));
    done = found + wanted.size();
  }
  parts.push_back(cutter.part(0, bytes.size() - done));
}

static void splitSpacesFromLeft(RenderState &state, const Cutter &cutter,
                                uint64_t count, std::vector<Value> &parts) {
  const std::string_view bytes = cutter.bytes();
  auto offset = [&](std::string_view rest) {
    return bytes.size() - rest.size();
  };
  std::string_view rest = withoutLeadingSpace(bytes);
  for (; !rest.empty() && !state.isExhausted(); --count) {
    if (count == 0) {
      parts.push_back(cutter.part(offset(rest), bytes.size()));
      return;
    }
    const size_t begin = offset(rest);
    while (!rest.empty() && !isSpace(firstCharacter(rest)))
      rest.remove_prefix(characterLength(rest[0]));
    parts.push_back(cutter.part(begin, offset(rest)));
    rest = withoutLeadingSpace(rest);
  }
}

static void splitSpacesFromRight(RenderState &state, const Cutter &cutter,
                                 uint64_t count, std::vector<Value> &parts) {
  std::string_view rest = withoutTrailingSpace(cutter.bytes());
  for (; !rest.empty() && !state.isExhausted(); --count) {
    const size_t end = rest.size();
    if (count == 0) {
      parts.push_back(cutter.part(0, end));
      return;
    }
    while (!rest.empty() && !isSpace(lastCharacter(rest)))
      rest = rest.substr(0, lastCharacterOffset(rest));
    parts.push_back(cutter.part(rest.size(), end));
    rest = withoutTrailingSpace(rest);
  }
}

Result<Value> jinja::splitText(RenderState &state, const String &text,
                               const MarkedText *separator, int64_t count,
                               bool isFromRight) {
  if (separator && separator->empty())
    return makeError("the separator is empty");
  state.spendBytes(text.text.size());
  const Cutter cutter(state, text,
                      separator ? separator->origin() : Origin::Template);
  // A negative count is a large one.
  const auto most = static_cast<uint64_t>(count);
  std::vector<Value> parts;
  if (separator && isFromRight)
    splitFromRight(state, cutter, separator->bytes(), most, parts);
  else if (separator)
    splitFromLeft(state, cutter, separator->bytes(), most, parts);
  else if (isFromRight)
    splitSpacesFromRight(state, cutter, most, parts);
  else
    splitSpacesFromLeft(state, cutter, most, parts);
  if (isFromRight)
    std::ranges::reverse(parts);
  return state.list(std::move(parts), text.text.origin());
}

Value jinja::splitLines(RenderState &state, const String &text,
                        bool keepsEnds) {
  state.spendBytes(text.text.size());
  const Cutter cutter(state, text, Origin::Template);
  const std::string_view bytes = cutter.bytes();
  std::vector<Value> lines;
  for (size_t begin = 0; begin < bytes.size() && !state.isExhausted();) {
    size_t end = begin;
    while (end < bytes.size() && !endsLine(firstCharacter(bytes.substr(end))))
      end += characterLength(bytes[end]);
    size_t next = end;
    if (end < bytes.size())
      next += bytes.substr(end).starts_with("\r\n")
                  ? 2
                  : characterLength(bytes[end]);
    lines.push_back(cutter.part(begin, keepsEnds ? next : end));
    begin = next;
  }
  return state.list(std::move(lines), text.text.origin());
}
