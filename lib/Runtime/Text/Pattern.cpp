//===- Pattern.cpp - Literal and regular-expression search ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pattern.h"

#include "Unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <limits>
#include <optional>
#include <pcre2.h>

using namespace sandwich;
using namespace sandwich::tokenizer;

// A tokenizer's expression takes a handful of steps a match, or a few for each
// character of a long run; one that takes many more, or megabytes of
// backtracking, is out of hand.
static constexpr uint32_t leastMatchLimit = 5'000'000;
static constexpr uint32_t stepsPerByte = 8;
static constexpr uint32_t heapLimitKilobytes = 64 << 10;
static constexpr size_t initialJitStackBytes = 32 << 10;
static constexpr size_t maxJitStackBytes = 16 << 20;
static constexpr size_t maxExpressionBytes = 16 << 10;

struct Pattern::Code {
  explicit Code(pcre2_code *compiled) : compiled(compiled) {}
  Code(const Code &) = delete;
  Code &operator=(const Code &) = delete;
  ~Code() { pcre2_code_free(compiled); }

  pcre2_code *compiled;
};

struct SearchBuffers::Contents {
  Contents()
      : // Only where the whole match lies is asked for.
        match(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(initialJitStackBytes, maxJitStackBytes,
                                     nullptr)) {
    if (!context)
      return;
    pcre2_set_heap_limit(context, heapLimitKilobytes);
    if (stack)
      pcre2_jit_stack_assign(context, nullptr, stack);
  }
  Contents(const Contents &) = delete;
  Contents &operator=(const Contents &) = delete;
  ~Contents() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(match);
  }

  pcre2_match_data *match;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

SearchBuffers::SearchBuffers() = default;
SearchBuffers::~SearchBuffers() = default;

static std::string describe(int pcreError) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(pcreError, message, sizeof(message));
  return reinterpret_cast<const char *>(message);
}

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.text = std::move(text);
  return pattern;
}

/// Writes `\s` and `\S` out as Unicode's White_Space, which is what Oniguruma,
/// the engine of Hugging Face's library, takes them for. PCRE2 counts the
/// Mongolian vowel separator U+180E among them, and Mongolian text is full of
/// it. An `\S` inside a bracketed class stays as it is.
static std::string writeOutSpaces(std::string_view expression) {
  constexpr std::string_view spaces = R"(\t-\r\x{85}\p{Z})";
  std::string written;
  bool inClass = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    char byte = expression[i];
    char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (byte == '\\' && next == 's' && inClass) {
      written += spaces;
      ++i;
    } else if (byte == '\\' && (next == 's' || next == 'S') && !inClass) {
      written += next == 's' ? "[" : "[^";
      written.append(spaces) += ']';
      ++i;
    } else if (byte == '\\' && next != '\0') {
      written.append({byte, next});
      ++i;
    } else if (byte == '[' && !inClass) {
      // A bracket right at the beginning is one of the class's characters.
      inClass = true;
      written += byte;
      if (next == '^')
        written += expression[++i];
      if (expression.substr(i + 1).starts_with(']'))
        written += expression[++i];
    } else if (byte == '[' && next == ':') {
      size_t end = std::min(expression.find(":]", i), expression.size());
      written += expression.substr(i, end - i);
      i = end - 1;
    } else {
      inClass = inClass && byte != ']';
      written += byte;
    }
  }
  return written;
}

Result<Pattern> Pattern::regularExpression(const std::string &expression,
                                           std::string name) {
  if (expression.size() > maxExpressionBytes)
    return makeError(name, ": is ", expression.size(), " bytes long; at most ",
                     maxExpressionBytes, " are accepted");
  // Oniguruma, which Hugging Face uses with Ruby's syntax, knows no UTF-less
  // mode and lets ^ and $ match at each line. \C would split characters.
  constexpr uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)>
      context(pcre2_compile_context_create(nullptr),
              &pcre2_compile_context_free);
  if (context)
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::string written = writeOutSpaces(expression);
  pcre2_code *compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written.data()),
                    written.size(), options, &error, &offset, context.get());
  if (!compiled)
    return makeError(
        name, ": is not a regular expression we accept: ", describe(error),
        " after ", inQuotes(written.substr(0, offset)));
  Pattern pattern;
  pattern.code = std::make_shared<const Code>(compiled);
  pattern.name = std::move(name);
  // Where there is no just-in-time compiler, the interpreter serves.
  (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  return pattern;
}

Result<Pattern> Pattern::read(const JsonField &field) {
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> literalText,
                            field.optionalMember("String"));
  SANDWICH_ASSIGN_OR_RETURN(std::optional<JsonField> expression,
                            field.optionalMember("Regex"));
  if (literalText.has_value() == expression.has_value())
    return field.error("must have either \"String\" or \"Regex\"");
  if (expression) {
    SANDWICH_ASSIGN_OR_RETURN(std::string text, expression->string());
    return regularExpression(text, expression->path());
  }
  SANDWICH_ASSIGN_OR_RETURN(std::string text, literalText->string());
  if (text.empty())
    return literalText->error("is empty");
  return literal(std::move(text));
}

Status Pattern::findAll(std::string_view searched, SearchBuffers &buffers,
                        std::vector<TextRange> &matches) const {
  if (code)
    return findExpression(searched, buffers, matches);
  for (size_t begin = searched.find(text); begin != std::string_view::npos;
       begin = searched.find(text, begin + text.size()))
    matches.push_back({begin, begin + text.size()});
  return {};
}

Status Pattern::findExpression(std::string_view searched,
                               SearchBuffers &buffers,
                               std::vector<TextRange> &matches) const {
  if (!buffers.contents)
    buffers.contents = std::make_unique<SearchBuffers::Contents>();
  pcre2_match_data *match = buffers.contents->match;
  pcre2_match_context *context = buffers.contents->context;
  if (!match || !context)
    return makeError(name, ": out of memory");
  auto matchLimit = static_cast<uint32_t>(
      std::clamp<size_t>(stepsPerByte * searched.size(), leastMatchLimit,
                         std::numeric_limits<uint32_t>::max()));
  pcre2_set_match_limit(context, matchLimit);
  pcre2_set_depth_limit(context, matchLimit);
  const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match);
  auto subject = reinterpret_cast<PCRE2_SPTR>(searched.data());
  size_t start = 0;
  std::optional<size_t> lastEnd;
  while (start <= searched.size()) {
    // The text is known to be UTF-8, and checking it anew for each match would
    // be quadratic.
    int count = pcre2_match(code->compiled, subject, searched.size(), start,
                            PCRE2_NO_UTF_CHECK, match, context);
    if (count == PCRE2_ERROR_NOMATCH)
      break;
    if (count < 0)
      return makeError(name, ": ", describe(count), " at byte ", start,
                       " of the text");
    // \K and look-behind may put a match anywhere; only go forward.
    size_t begin = std::max<size_t>(range[0], start);
    size_t end = std::max<size_t>(range[1], begin);
    if (end > begin || lastEnd != begin) {
      matches.push_back({begin, end});
      lastEnd = start = end;
      continue;
    }
    // An empty match right after another match is none, and the search goes on
    // behind the next character.
    if (end == searched.size())
      break;
    start = end + characterLength(searched[end]);
  }
  return {};
}
