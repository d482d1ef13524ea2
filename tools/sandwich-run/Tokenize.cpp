//===- Tokenize.cpp - sandwich-run tokenize -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Runtime/Text/Tokenizer.h"

#include <memory>
#include <optional>

using namespace sandwich;

namespace {
struct Arguments {
  std::string tokenizer;
  std::string file;
  std::optional<std::string> separator;
  EncodingOptions encoding = {.parseSpecialTokens = true};
};
} // namespace

/// Of all texts together.
static constexpr size_t maxFileBytes = size_t{4} << 30;

/// The texts between the lines of `text` that are `separator`; the newline
/// before such a line belongs to it.
static std::vector<std::string_view> splitAtLines(std::string_view text,
                                                  std::string_view separator) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t line = 0; line < text.size();) {
    size_t end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, end - line) == separator) {
      parts.push_back(text.substr(start, line > start ? line - 1 - start : 0));
      start = std::min(end + 1, text.size());
    }
    line = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

static Status run(const Arguments &arguments) {
  SANDWICH_ASSIGN_OR_RETURN(Tokenizer tokenizer,
                            Tokenizer::fromFiles(arguments.tokenizer));
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            tool::readInput(arguments.file, maxFileBytes));
  std::vector<std::string_view> texts;
  if (arguments.separator)
    texts = splitAtLines(text, *arguments.separator);
  else
    texts.push_back(text);
  for (size_t i = 0; i < texts.size(); ++i) {
    Result<std::vector<int32_t>> ids =
        tokenizer.encode(texts[i], arguments.encoding);
    if (!ids)
      return makeError(arguments.file, ": text ", i + 1, ": ",
                       ids.error().message);
    std::string line;
    for (int32_t id : *ids) {
      if (!line.empty())
        line += ' ';
      line += std::to_string(id);
    }
    line += '\n';
    SANDWICH_RETURN_IF_ERROR(writeStandardOutput(line));
  }
  return {};
}

void tool::addTokenizeCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "tokenize", "Prints the token ids of texts, one line for each");
  command->footer(R"(Examples:
  sandwich-run tokenize --tokenizer tokenizer.json --file book.txt
  sandwich-run tokenize --tokenizer tokenizer.json --file cases.txt \
      --separator ---

Without --separator the file is one text; with it, each line that equals LINE
ends a text.)");
  command
      ->add_option("--tokenizer", arguments->tokenizer,
                   "A tokenizer.json of Hugging Face's format")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--file", arguments->file,
                   "The texts, in UTF-8; - is standard input")
      ->required()
      ->type_name("TEXT");
  command
      ->add_option("--separator", arguments->separator,
                   "The line that stands between two texts")
      ->type_name("LINE");
  command->add_flag("--special-tokens", arguments->encoding.addSpecialTokens,
                    "Adds the tokens that begin and end a sequence");
  command->add_flag_callback(
      "--no-parse-special",
      [arguments] { arguments->encoding.parseSpecialTokens = false; },
      "Takes special tokens written out in the texts for text, "
      "as generate does with prompts");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
