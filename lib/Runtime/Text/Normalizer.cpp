//===- Normalizer.cpp - Text rewritten before it is split -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Normalizer.h"

#include "CharacterNormalizer.h"
#include "Unicode.h"

#include <algorithm>
#include <limits>

using namespace sandwich;
using namespace sandwich::tokenizer;

size_t tokenizer::maxRewrittenBytes(size_t inputBytes) {
  // Positions in a text are 32-bit numbers in the models.
  return std::min<size_t>(32 * inputBytes + (64 << 10),
                          std::numeric_limits<uint32_t>::max());
}

Error tokenizer::textGrows(const std::string &name, size_t maxBytes) {
  return makeError(name, ": the text grows beyond ", maxBytes, " bytes");
}

bool ByteMarks::all(size_t begin, size_t end) const {
  return std::find(marks.begin() + static_cast<ptrdiff_t>(begin),
                   marks.begin() + static_cast<ptrdiff_t>(end),
                   false) == marks.begin() + static_cast<ptrdiff_t>(end);
}

void ByteMarks::append(size_t count, bool mark) {
  if (areWanted)
    marks.insert(marks.end(), count, mark);
}

void ByteMarks::append(const ByteMarks &other, size_t begin, size_t end) {
  if (areWanted)
    marks.insert(marks.end(),
                 other.marks.begin() + static_cast<ptrdiff_t>(begin),
                 other.marks.begin() + static_cast<ptrdiff_t>(end));
}

std::vector<ByteRange> ByteMarks::ranges() const {
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i != marks.size(); ++i) {
    if (!marks[i])
      continue;
    if (ranges.empty() || ranges.back().end != i)
      ranges.push_back({i, i});
    ranges.back().end = i + 1;
  }
  return ranges;
}

ByteMarks ByteMarks::none() const {
  return areWanted ? ByteMarks(std::vector<bool>()) : ByteMarks();
}

namespace {

class Prepend final : public Normalizer {
public:
  Prepend(std::string name, std::string prefix)
      : name(std::move(name)), prefix(std::move(prefix)) {}

  Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
               SearchBuffers &) const override {
    if (text.empty())
      return {};
    if (prefix.size() + text.size() > maxBytes)
      return textGrows(name, maxBytes);
    if (marks.wanted()) {
      ByteMarks longer = marks.none();
      longer.append(prefix.size(), marks.at(0));
      longer.append(marks, 0, text.size());
      marks = std::move(longer);
    }
    text.insert(0, prefix);
    return {};
  }

private:
  std::string name;
  std::string prefix;
};

class Replace final : public Normalizer {
public:
  Replace(std::string name, Pattern pattern, std::string content)
      : name(std::move(name)), pattern(std::move(pattern)),
        content(std::move(content)) {}

  Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
               SearchBuffers &buffers) const override {
    std::vector<TextRange> matches;
    SANDWICH_RETURN_IF_ERROR(pattern.findAll(text, buffers, matches));
    if (matches.empty())
      return {};
    size_t size = text.size() + matches.size() * content.size();
    for (const TextRange &match : matches)
      size -= match.size();
    if (size > maxBytes)
      return textGrows(name, maxBytes);
    std::string replaced;
    replaced.reserve(size);
    ByteMarks kept = marks.none();
    size_t end = 0;
    for (const TextRange &match : matches) {
      replaced.append(text, end, match.begin - end);
      replaced += content;
      kept.append(marks, end, match.begin);
      kept.append(content.size(), match.size() > 0 && marks.wanted() &&
                                      marks.all(match.begin, match.end));
      end = match.end;
    }
    replaced.append(text, end);
    kept.append(marks, end, text.size());
    text = std::move(replaced);
    marks = std::move(kept);
    return {};
  }

private:
  std::string name;
  Pattern pattern;
  std::string content;
};

class Strip final : public Normalizer {
public:
  Strip(bool left, bool right) : left(left), right(right) {}

  Status apply(std::string &text, ByteMarks &marks, size_t,
               SearchBuffers &) const override {
    size_t end = text.size();
    while (right && end > 0) {
      std::string_view kept(text.data(), end);
      if (!isWhitespace(lastCharacter(kept)))
        break;
      end = lastCharacterOffset(kept);
    }
    text.resize(end);
    size_t begin = 0;
    while (left && begin < text.size() &&
           isWhitespace(firstCharacter(std::string_view(text).substr(begin))))
      begin += characterLength(text[begin]);
    ByteMarks kept = marks.none();
    kept.append(marks, begin, text.size());
    marks = std::move(kept);
    text.erase(0, begin);
    return {};
  }

private:
  bool left;
  bool right;
};

class UnicodeForm final : public Normalizer {
public:
  UnicodeForm(std::string name, NormalizationForm form)
      : name(std::move(name)), form(form) {}

  Status apply(std::string &text, ByteMarks &marks, size_t maxBytes,
               SearchBuffers &) const override {
    std::optional<std::string> normalized = toNormalizationForm(text, form);
    if (!normalized)
      return makeError(name, ": out of memory");
    if (normalized->size() > maxBytes)
      return textGrows(name, maxBytes);
    if (marks.wanted() && !changeMarks(text, marks))
      return makeError(name, ": out of memory");
    text = *std::move(normalized);
    return {};
  }

private:
  /// What the marks become; false if memory ran out. A text divides before each
  /// ASCII character, and within a part that changes nobody can tell which byte
  /// became which.
  bool changeMarks(std::string_view text, ByteMarks &marks) const {
    ByteMarks changed = marks.none();
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80)
        ++end;
      const std::string_view part = text.substr(begin, end - begin);
      if (part.size() == 1) {
        changed.append(marks, begin, end);
      } else {
        std::optional<std::string> rewritten = toNormalizationForm(part, form);
        if (!rewritten)
          return false;
        if (*rewritten == part)
          changed.append(marks, begin, end);
        else
          changed.append(rewritten->size(), marks.all(begin, end));
      }
      begin = end;
    }
    marks = std::move(changed);
    return true;
  }

  std::string name;
  NormalizationForm form;
};

} // namespace

static Status readBertNormalizer(const JsonField &field,
                                 NormalizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(bool cleans, field.booleanMember("clean_text"));
  SANDWICH_ASSIGN_OR_RETURN(bool setsChineseApart,
                            field.booleanMember("handle_chinese_chars"));
  SANDWICH_ASSIGN_OR_RETURN(bool lowers, field.booleanMember("lowercase"));
  SANDWICH_ASSIGN_OR_RETURN(bool strips,
                            field.booleanMember("strip_accents", lowers));
  auto add = [&](CharacterNormalizer::Rule rule) {
    steps.push_back(std::make_unique<CharacterNormalizer>(field.path(), rule));
  };
  if (cleans)
    add(cleanCharacter);
  if (setsChineseApart)
    add(setChineseApart);
  if (strips) {
    steps.push_back(
        std::make_unique<UnicodeForm>(field.path(), NormalizationForm::NFD));
    add(dropNonspacingMark);
  }
  if (lowers)
    add(lowerCharacter);
  return {};
}

static Status readSteps(const JsonField &field, NormalizerSteps &steps) {
  SANDWICH_ASSIGN_OR_RETURN(JsonField typeField, field.member("type"));
  SANDWICH_ASSIGN_OR_RETURN(std::string type, typeField.string());
  if (type == "Sequence") {
    SANDWICH_ASSIGN_OR_RETURN(JsonField list, field.member("normalizers"));
    SANDWICH_ASSIGN_OR_RETURN(std::vector<JsonField> elements, list.elements());
    for (const JsonField &element : elements)
      SANDWICH_RETURN_IF_ERROR(readSteps(element, steps));
    return {};
  }
  if (type == "Prepend") {
    SANDWICH_ASSIGN_OR_RETURN(std::string prefix,
                              field.stringMember("prepend"));
    steps.push_back(std::make_unique<Prepend>(field.path(), std::move(prefix)));
    return {};
  }
  if (type == "Replace") {
    SANDWICH_ASSIGN_OR_RETURN(JsonField patternField, field.member("pattern"));
    SANDWICH_ASSIGN_OR_RETURN(Pattern pattern, Pattern::read(patternField));
    SANDWICH_ASSIGN_OR_RETURN(std::string content,
                              field.stringMember("content"));
    steps.push_back(std::make_unique<Replace>(field.path(), std::move(pattern),
                                              std::move(content)));
    return {};
  }
  if (type == "Strip") {
    SANDWICH_ASSIGN_OR_RETURN(bool left, field.booleanMember("strip_left"));
    SANDWICH_ASSIGN_OR_RETURN(bool right, field.booleanMember("strip_right"));
    steps.push_back(std::make_unique<Strip>(left, right));
    return {};
  }
  if (type == "BertNormalizer")
    return readBertNormalizer(field, steps);
  if (type == "Precompiled") {
    SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<Normalizer> step,
                              readPrecompiledNormalizer(field));
    steps.push_back(std::move(step));
    return {};
  }
  constexpr std::pair<const char *, CharacterNormalizer::Rule> rules[] = {
      {"Lowercase", lowerCharacter},
      {"Nmt", cleanForTranslation},
      {"StripAccents", dropMark},
  };
  for (auto [name, rule] : rules)
    if (type == name) {
      steps.push_back(
          std::make_unique<CharacterNormalizer>(field.path(), rule));
      return {};
    }
  constexpr std::pair<const char *, NormalizationForm> forms[] = {
      {"NFC", NormalizationForm::NFC},
      {"NFD", NormalizationForm::NFD},
      {"NFKC", NormalizationForm::NFKC},
      {"NFKD", NormalizationForm::NFKD},
  };
  for (auto [name, form] : forms)
    if (type == name) {
      steps.push_back(std::make_unique<UnicodeForm>(field.path(), form));
      return {};
    }
  return typeField.unsupported();
}

Result<NormalizerSteps> tokenizer::readNormalizer(const JsonField &field) {
  NormalizerSteps steps;
  SANDWICH_RETURN_IF_ERROR(readSteps(field, steps));
  return steps;
}

Status tokenizer::normalize(const NormalizerSteps &steps, std::string &text,
                            ByteMarks &marks, SearchBuffers &buffers) {
  size_t maxBytes = maxRewrittenBytes(text.size());
  for (const auto &step : steps)
    SANDWICH_RETURN_IF_ERROR(step->apply(text, marks, maxBytes, buffers));
  return {};
}
