//===- Normalizer.cpp - Text rewritten before it is split -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Normalizer.h"

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

static Error tooLong(const std::string &name, size_t maxBytes) {
  return makeError(name, ": the text grows beyond ", maxBytes, " bytes");
}

namespace {

class Prepend final : public Normalizer {
public:
  Prepend(std::string name, std::string prefix)
      : name(std::move(name)), prefix(std::move(prefix)) {}

  Status apply(std::string &text, size_t maxBytes,
               SearchBuffers &) const override {
    if (text.empty())
      return {};
    if (prefix.size() + text.size() > maxBytes)
      return tooLong(name, maxBytes);
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

  Status apply(std::string &text, size_t maxBytes,
               SearchBuffers &buffers) const override {
    std::vector<TextRange> matches;
    SANDWICH_RETURN_IF_ERROR(pattern.findAll(text, buffers, matches));
    if (matches.empty())
      return {};
    size_t size = text.size() + matches.size() * content.size();
    for (const TextRange &match : matches)
      size -= match.size();
    if (size > maxBytes)
      return tooLong(name, maxBytes);
    std::string replaced;
    replaced.reserve(size);
    size_t end = 0;
    for (const TextRange &match : matches) {
      replaced.append(text, end, match.begin - end);
      replaced += content;
      end = match.end;
    }
    replaced.append(text, end);
    text = std::move(replaced);
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

  Status apply(std::string &text, size_t, SearchBuffers &) const override {
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
    text.erase(0, begin);
    return {};
  }

private:
  bool left;
  bool right;
};

class Lowercase final : public Normalizer {
public:
  Status apply(std::string &text, size_t, SearchBuffers &) const override {
    text = toLowercase(text);
    return {};
  }
};

class UnicodeForm final : public Normalizer {
public:
  UnicodeForm(std::string name, NormalizationForm form)
      : name(std::move(name)), form(form) {}

  Status apply(std::string &text, size_t maxBytes,
               SearchBuffers &) const override {
    std::optional<std::string> normalized = toNormalizationForm(text, form);
    if (!normalized)
      return makeError(name, ": out of memory");
    if (normalized->size() > maxBytes)
      return tooLong(name, maxBytes);
    text = *std::move(normalized);
    return {};
  }

private:
  std::string name;
  NormalizationForm form;
};

} // namespace

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
  if (type == "Lowercase") {
    steps.push_back(std::make_unique<Lowercase>());
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
                            SearchBuffers &buffers) {
  size_t maxBytes = maxRewrittenBytes(text.size());
  for (const auto &step : steps)
    SANDWICH_RETURN_IF_ERROR(step->apply(text, maxBytes, buffers));
  return {};
}
