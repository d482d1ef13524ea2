//===- Embed.cpp - sandwich-run embed -------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Encoding/EncodingService.h"
#include "sandwich/Encoding/TextEncoder.h"
#include "sandwich/Support/Json.h"

#include <charconv>
#include <deque>
#include <future>
#include <memory>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  std::string file;
  std::optional<std::string> query;
  bool ids = false;
  bool tokens = false;
  uint64_t dimensions = 0;
  TextOptions text;
  std::optional<WeightPlacement> weights;
  bool verify = false;
};
} // namespace

/// Of all texts together.
static constexpr size_t maxFileBytes = size_t{4} << 30;

/// The lines of `text`; what follows the last newline is one, unless it is
/// empty.
static std::vector<std::string_view> splitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The numbers of a list in JSON. Error: it is none.
static Result<std::vector<int32_t>> readNumbers(const Json &list) {
  std::vector<int32_t> numbers;
  const auto wrong = [] {
    return makeError("is no list of token ids, [2, 7, 3], nor one of them with "
                     "one of types, [[2, 7, 3], [0, 0, 1]]");
  };
  if (!list.is_array())
    return wrong();
  for (const Json &number : list) {
    if (!number.is_number_integer() || number.get<double>() < 0 ||
        number.get<double>() > INT32_MAX)
      return wrong();
    numbers.push_back(number.get<int32_t>());
  }
  return numbers;
}

static Result<TypedIds> readIds(std::string_view line) {
  SANDWICH_ASSIGN_OR_RETURN(Json value, parseJson(line));
  const bool hasTypes = value.is_array() && value.size() == 2 &&
                        value[0].is_array() && value[1].is_array();
  TypedIds ids;
  SANDWICH_ASSIGN_OR_RETURN(ids.ids, readNumbers(hasTypes ? value[0] : value));
  if (hasTypes) {
    SANDWICH_ASSIGN_OR_RETURN(ids.typeIds, readNumbers(value[1]));
  }
  return ids;
}

/// Adds `values` as a list in JSON, with the digits that tell each float apart.
static void appendList(std::string &text, std::span<const float> values) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0)
      text += ", ";
    char digits[32];
    const auto end =
        std::to_chars(std::begin(digits), std::end(digits), values[i]).ptr;
    text.append(digits, end);
  }
  text += ']';
}

namespace {

/// Prints rows in the order of the texts, while later ones are computed.
class Output {
public:
  Output(const EncoderEngine &engine, const Arguments &arguments)
      : columns(engine.columns()), arguments(arguments),
        normalizes(engine.encoding().normalized() && !arguments.tokens) {}

  Status print(std::vector<float> rows) const {
    std::string line = arguments.tokens ? "[" : "";
    for (size_t first = 0; first < rows.size(); first += columns) {
      std::span<float> row = std::span(rows).subspan(first, columns);
      if (arguments.dimensions > 0 && arguments.dimensions < columns) {
        row = row.first(arguments.dimensions);
        if (normalizes)
          normalizeLength(row);
      }
      if (first > 0)
        line += ", ";
      appendList(line, row);
    }
    line += arguments.tokens ? "]\n" : "\n";
    return writeStandardOutput(line);
  }

private:
  uint64_t columns;
  const Arguments &arguments;
  bool normalizes;
};

} // namespace

/// Error: what is asked for does not fit the model.
static Status checkArguments(const Arguments &arguments,
                             const EncoderEngine &engine) {
  if (arguments.query && !engine.classifies())
    return makeError("--query is for models that score pairs; ",
                     arguments.artifact, " makes vectors");
  if (arguments.dimensions > engine.columns())
    return makeError("--dimensions is ", arguments.dimensions,
                     ", but vectors have ", engine.columns(), " values");
  if (engine.classifies() && (arguments.tokens || arguments.dimensions > 0))
    return makeError(arguments.artifact,
                     " scores texts, and has no vectors of them");
  return {};
}

static Status run(const Arguments &arguments) {
  ArtifactOpenOptions open;
  open.use = ModelUse::Encode;
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact, open));
  std::optional<TextEncoder> encoder;
  if (!arguments.ids) {
    SANDWICH_ASSIGN_OR_RETURN(encoder, TextEncoder::create(artifact));
  }
  SANDWICH_ASSIGN_OR_RETURN(std::string input,
                            tool::readInput(arguments.file, maxFileBytes));
  EncoderEngineOptions options;
  options.weightPlacement = arguments.weights.value_or(WeightPlacement::Mapped);
  options.verifyWeights = arguments.verify;
  options.progress = tool::progressToTerminal();
  options.log = tool::logToTerminal();
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<EncoderEngine> engine,
      EncoderEngine::create(std::move(artifact), options));
  SANDWICH_RETURN_IF_ERROR(checkArguments(arguments, *engine));
  const Output output(*engine, arguments);
  const uint64_t inFlightTokens = 2 * engine->maxTokens();
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<EncodingService> running,
                            EncodingService::create(std::move(engine)));
  EncodingService &service = *running;

  struct Pending {
    std::future<Result<std::vector<float>>> rows;
    uint64_t line;
    uint64_t tokens;
  };
  std::deque<Pending> pending;
  uint64_t pendingTokens = 0;
  auto inContext = [&](uint64_t line, const Error &error) {
    return makeError(arguments.file, ":", line, ": ", error.message);
  };
  auto printFirst = [&]() -> Status {
    Pending first = std::move(pending.front());
    pending.pop_front();
    pendingTokens -= first.tokens;
    Result<std::vector<float>> rows = first.rows.get();
    if (!rows)
      return inContext(first.line, rows.error());
    return output.print(*std::move(rows));
  };
  uint64_t number = 0;
  for (std::string_view line : splitLines(input)) {
    ++number;
    Result<TypedIds> ids =
        arguments.ids ? readIds(line)
        : arguments.query
            ? encoder->encode(*arguments.query, line, arguments.text)
            : encoder->encode(line, std::nullopt, arguments.text);
    if (!ids)
      return inContext(number, ids.error());
    // A batch is computed, the next one forms.
    while (!pending.empty() && pendingTokens >= inFlightTokens)
      SANDWICH_RETURN_IF_ERROR(printFirst());
    auto promise = std::make_shared<std::promise<Result<std::vector<float>>>>();
    pending.push_back({promise->get_future(), number, ids->ids.size()});
    pendingTokens += ids->ids.size();
    std::vector<EncodingRequest> requests(1);
    requests[0].ids = std::move(ids->ids);
    requests[0].types = std::move(ids->typeIds);
    requests[0].output =
        arguments.tokens ? EncoderOutput::Tokens : EncoderOutput::Texts;
    requests[0].completion = [promise](Result<std::vector<float>> rows) {
      promise->set_value(std::move(rows));
    };
    if (Status taken = service.submit(std::move(requests)); !taken)
      return inContext(number, taken.error());
  }
  while (!pending.empty())
    SANDWICH_RETURN_IF_ERROR(printFirst());
  return {};
}

void tool::addEmbedCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "embed", "Prints the vectors of texts, or the scores of a reranker");
  command->footer(R"(Examples:
  sandwich-run embed bge.sandwich --file texts.txt
  sandwich-run embed e5.sandwich --file questions.txt --prompt query
  sandwich-run embed reranker.sandwich --query "what is a panda?" \
      --file passages.txt

Each line of the file is a text, and prints a line: a list of numbers in JSON.
Scores are what the model's head gives, before any sigmoid.)");
  addArtifactArgument(*command, arguments->artifact);
  command
      ->add_option("--file", arguments->file,
                   "The texts, in UTF-8, one in each line; - is standard input")
      ->required()
      ->type_name("TEXT");
  command
      ->add_option("--query", arguments->query,
                   "Scores each text as an answer to this one")
      ->type_name("TEXT");
  command
      ->add_option("--prompt", arguments->text.prompt,
                   "The name of the model's prompt that stands in front of "
                   "texts; '' for none (default: the model's)")
      ->type_name("NAME");
  command->add_flag("--truncate", arguments->text.truncate,
                    "Shortens texts that are longer than the model's context, "
                    "instead of refusing them");
  command
      ->add_flag("--ids", arguments->ids,
                 "Lines are lists of token ids, [2, 7, 3], or of ids and of "
                 "types, [[2, 7, 3], [0, 0, 1]]")
      ->excludes("--query", "--prompt", "--truncate");
  command->add_flag("--tokens", arguments->tokens,
                    "Prints a list of the vectors of each text's tokens");
  command
      ->add_option("--dimensions", arguments->dimensions,
                   "Keeps the first N values of vectors")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N");
  addWeightOptions(*command, arguments->weights, arguments->verify);
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
