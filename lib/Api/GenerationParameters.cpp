//===- GenerationParameters.cpp - How a text is to be made ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Api/GenerationParameters.h"

#include "sandwich/Serving/Request.h"

#include <charconv>
#include <limits>

using namespace sandwich;

//===----------------------------------------------------------------------===//
// Sampling
//===----------------------------------------------------------------------===//

/// {"50256": -100}
static void readLogitBias(ObjectReader &reader, SamplingOptions &sampling) {
  const Json *biases = reader.object("logit_bias");
  if (!biases)
    return;
  if (biases->size() > GenerationParameters::mostBiases)
    return reader.refuse("logit_bias",
                         "logit_bias names " + std::to_string(biases->size()) +
                             " tokens; it must name at most " +
                             std::to_string(GenerationParameters::mostBiases));
  constexpr double most = SamplingOptions::maxLogitBias;
  for (const auto &[name, value] : biases->items()) {
    int32_t token = -1;
    const char *end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, token);
    if (parsed.ec != std::errc() || parsed.ptr != end || token < 0)
      return reader.refuse("logit_bias", "logit_bias names " + excerpt(name) +
                                             ", which is no token id");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= most))
      return reader.refuse("logit_bias", "logit_bias of token " + name +
                                             " is " + excerpt(value) +
                                             "; it must be from -100 to 100");
    sampling.logitBias[token] = value.get<float>();
  }
}

static void readSampling(ObjectReader &reader,
                         GenerationParameters &parameters) {
  SamplingOptions &sampling = parameters.sampling;
  constexpr double penalty = SamplingOptions::maxPenalty;
  const auto number = [&](std::string_view name, double low, double high,
                          float usual) {
    return static_cast<float>(reader.number(name, low, high).value_or(usual));
  };
  sampling.temperature = number("temperature", 0, 100, 1);
  sampling.topP = number("top_p", 0, 1, 1);
  if (sampling.topP <= 0)
    reader.refuse("top_p", "top_p is 0; it must be above 0 and at most 1");
  sampling.minP = number("min_p", 0, 1, 0);
  // Some clients say -1 for all.
  const auto topK = reader.integer("top_k", -1, INT32_MAX).value_or(0);
  sampling.topK = static_cast<uint32_t>(std::max<int64_t>(topK, 0));
  sampling.frequencyPenalty = number("frequency_penalty", -penalty, penalty, 0);
  sampling.presencePenalty = number("presence_penalty", -penalty, penalty, 0);
  sampling.repetitionPenalty = number("repetition_penalty", 1e-3, 1e3, 1);
  sampling.ignoreEndOfText = reader.boolean("ignore_eos").value_or(false);
  sampling.minTokens = static_cast<uint64_t>(
      reader.integer("min_tokens", 0, GenerationParameters::mostTokens)
          .value_or(0));
  if (auto seed = reader.integer("seed", std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int64_t>::max())) {
    sampling.seed = static_cast<uint64_t>(*seed);
    parameters.hasSeed = true;
  }
  readLogitBias(reader, sampling);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

static void readStopStrings(ObjectReader &reader, StopOptions &stop) {
  const Json *value = reader.find("stop");
  if (!value)
    return;
  const auto add = [&](const Json &each, const std::string &name) {
    if (!each.is_string() || each.get_ref<const std::string &>().empty())
      return reader.refuseValue(name, each, "a string that is not empty");
    if (each.get_ref<const std::string &>().size() >
        StopOptions::maxStringBytes)
      return reader.refuse(
          name, name + " is longer than " +
                    std::to_string(StopOptions::maxStringBytes) + " bytes");
    stop.strings.push_back(each.get<std::string>());
  };
  if (!value->is_array())
    return add(*value, "stop");
  if (value->size() > StopOptions::maxStrings)
    return reader.refuse("stop", "stop has " + std::to_string(value->size()) +
                                     " strings; it must have at most " +
                                     std::to_string(StopOptions::maxStrings));
  for (size_t i = 0; i < value->size(); ++i)
    add((*value)[i], "stop[" + std::to_string(i) + "]");
}

static void readStopTokens(ObjectReader &reader, StopOptions &stop) {
  const Json *list = reader.list("stop_token_ids");
  if (!list)
    return;
  if (list->size() > StopOptions::maxTokens)
    return reader.refuse("stop_token_ids",
                         "stop_token_ids has " + std::to_string(list->size()) +
                             " tokens; it must have at most " +
                             std::to_string(StopOptions::maxTokens));
  stop.tokens = reader.tokenIds("stop_token_ids", *list);
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

/// A schema that may be written as a string of JSON.
static std::optional<Json> schemaOf(ObjectReader &reader, std::string_view name,
                                    const Json &value) {
  if (value.is_object() || value.is_boolean())
    return value;
  if (value.is_string())
    if (Result<Json> parsed = parseJson(value.get_ref<const std::string &>()))
      return *std::move(parsed);
  reader.refuseValue(name, value, "a JSON schema");
  return std::nullopt;
}

/// There is one format only: of two, one would be ignored.
static void setFormat(ObjectReader &reader, std::string_view name,
                      OutputFormat &format, OutputFormat chosen) {
  chosen.param = reader.pathOf(name);
  if (format.kind != OutputFormat::Kind::Text)
    return reader.refuse(name, chosen.param + " and " + format.param +
                                   " both say what the text must be like");
  format = std::move(chosen);
}

static void setSchema(ObjectReader &reader, std::string_view name,
                      OutputFormat &format) {
  const Json *value = reader.find(name);
  if (!value)
    return;
  if (std::optional<Json> schema = schemaOf(reader, name, *value))
    setFormat(
        reader, name, format,
        {.kind = OutputFormat::Kind::JsonSchema, .schema = *std::move(schema)});
}

static void setPattern(ObjectReader &reader, std::string_view name,
                       OutputFormat &format) {
  if (auto pattern = reader.string(name, size_t{64} << 10))
    setFormat(reader, name, format,
              {.kind = OutputFormat::Kind::RegularExpression,
               .pattern = *std::move(pattern)});
}

static void setChoices(ObjectReader &reader, std::string_view name,
                       OutputFormat &format) {
  const Json *list = reader.list(name);
  if (!list)
    return;
  OutputFormat chosen{.kind = OutputFormat::Kind::Choice};
  for (const Json &each : *list) {
    if (!each.is_string())
      return reader.refuseValue(name, each, "a list of strings");
    chosen.choices.push_back(each.get<std::string>());
  }
  if (chosen.choices.empty())
    return reader.refuse(name, reader.pathOf(name) + " has no choice");
  setFormat(reader, name, format, std::move(chosen));
}

static void readResponseFormat(ObjectReader &reader, OutputFormat &format) {
  reader.within("response_format", [&](ObjectReader &within) {
    const std::string type =
        within.string("type", GenerationParameters::nameBytes).value_or("");
    if (type == "json_object")
      format = {.kind = OutputFormat::Kind::JsonObject,
                .param = within.pathOf("type")};
    else if (type == "json_schema") {
      if (!within.object("json_schema"))
        within.refuse("json_schema", "response_format.json_schema is missing");
      within.within("json_schema", [&](ObjectReader &inner) {
        inner.ignore({"name", "description", "strict"});
        setSchema(inner, "schema", format);
        if (!inner.find("schema"))
          inner.refuse("schema",
                       "response_format.json_schema.schema is missing");
      });
    } else if (type != "text")
      within.refuse("type", "response_format.type is " + excerpt(Json(type)) +
                                "; it must be \"text\", \"json_object\" or "
                                "\"json_schema\"");
  });
}

static void readFormat(ObjectReader &reader, OutputFormat &format) {
  readResponseFormat(reader, format);
  // As vLLM names them, earlier and now.
  setSchema(reader, "guided_json", format);
  setPattern(reader, "guided_regex", format);
  setChoices(reader, "guided_choice", format);
  reader.within("structured_outputs", [&](ObjectReader &within) {
    setSchema(within, "json", format);
    setPattern(within, "regex", format);
    setChoices(within, "choice", format);
  });
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

static void readStreaming(ObjectReader &reader,
                          GenerationParameters &parameters) {
  parameters.stream = reader.boolean("stream").value_or(false);
  const bool hasOptions = reader.object("stream_options") != nullptr;
  if (hasOptions && !parameters.stream)
    reader.refuse("stream_options",
                  "stream_options is only for requests with stream: true");
  reader.within("stream_options", [&](ObjectReader &within) {
    parameters.includeUsage = within.boolean("include_usage").value_or(false);
    parameters.continuousUsage =
        within.boolean("continuous_usage_stats").value_or(false);
    within.ignore({"include_obfuscation"});
  });
}

GenerationParameters sandwich::readGenerationParameters(ObjectReader &reader) {
  GenerationParameters parameters;
  parameters.model =
      reader.string("model", GenerationParameters::nameBytes).value_or("");
  parameters.continuations = static_cast<uint32_t>(
      reader.integer("n", 1, GenerationParameters::mostTexts).value_or(1));
  if (auto best = reader.integer("best_of", 1, GenerationParameters::mostTexts);
      best && *best != parameters.continuations)
    reader.refuse("best_of", "best_of is " + std::to_string(*best) +
                                 "; this server knows it only as n");
  readSampling(reader, parameters);
  readStopStrings(reader, parameters.stop);
  readStopTokens(reader, parameters.stop);
  parameters.stop.includeInText =
      reader.boolean("include_stop_str_in_output").value_or(false);
  parameters.skipSpecialTokens =
      reader.boolean("skip_special_tokens").value_or(true);
  readStreaming(reader, parameters);
  // As in vLLM, who has the smaller number comes first; none is the first.
  parameters.priority =
      maxPriority - static_cast<uint32_t>(
                        reader.integer("priority", 0, maxPriority).value_or(0));
  parameters.cacheSalt =
      reader.string("cache_salt", GenerationParameters::nameBytes).value_or("");
  readFormat(reader, parameters.format);
  reader.requireDefault("use_beam_search", false);
  reader.requireDefault("length_penalty", 1.0);
  reader.requireDefault("spaces_between_special_tokens", true);
  // Who asks, and how it is billed and stored.
  reader.ignore({"user", "metadata", "store", "service_tier",
                 "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention", "request_id"});
  return parameters;
}
