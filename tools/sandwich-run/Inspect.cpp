//===- Inspect.cpp - sandwich-run inspect ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Commands.h"
#include "Terminal.h"

#include "sandwich/Artifact/ArtifactJson.h"
#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Support/ByteSize.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <memory>

using namespace sandwich;

namespace {
struct Arguments {
  std::string artifact;
  bool verify = false;
  bool json = false;
};
} // namespace

/// printf into a string.
__attribute__((format(printf, 1, 2))) static std::string
format(const char *pattern, ...) {
  std::va_list list;
  va_start(list, pattern);
  std::va_list again;
  va_copy(again, list);
  std::string text(static_cast<size_t>(
                       std::max(std::vsnprintf(nullptr, 0, pattern, list), 0)),
                   '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(list);
  return text;
}

static std::string describeModel(const proto::ModelConfiguration &model) {
  return format("model       %s (%s), %.1f million parameters\n"
                "            %u layers, hidden %u, intermediate %u, %u heads, "
                "%u KV heads of %u\n"
                "            vocabulary %u, context %u tokens\n",
                model.name().c_str(), model.architecture().c_str(),
                static_cast<double>(model.parameters()) / 1e6, model.layers(),
                model.hidden_size(), model.intermediate_size(), model.heads(),
                model.kv_heads(), model.head_dim(), model.vocab_size(),
                model.context_length());
}

/// How weights are stored, and of quantized ones the bits of each and how they
/// are multiplied.
static std::string describeStorage(const proto::Manifest &manifest) {
  const std::string &dtype = manifest.target().dtype();
  const StorageFormat storage = *StorageFormat::parse(dtype);
  if (!storage.isQuantized())
    return dtype;
  const std::string &activations = manifest.target().activations();
  return format("%s (%.2f bits each) ", dtype.c_str(),
                bitsPerWeight(storage, manifest.model().hidden_size())) +
         (activations.empty() ? "multiplied as floats"
                              : "by inputs as " + activations);
}

static std::string describeTarget(const proto::Manifest &manifest) {
  std::string text =
      "target      " + manifest.target().name() + ", weights as " +
      describeStorage(manifest) +
      (manifest.target().deterministic() ? ", deterministic\n" : "\n");
  if (!manifest.target().cpu_features().empty()) {
    text += "            needs";
    for (const std::string &feature : manifest.target().cpu_features())
      text += " " + feature;
    text += "\n";
  }
  const proto::KVCache &cache = manifest.kv_cache();
  return text + format("KV cache    %s, blocks of %u tokens and %s\n",
                       cache.dtype().c_str(), cache.block_tokens(),
                       formatBytes(cache.block_bytes()).c_str());
}

/// One line for each schedule, the matmul's name only in its first.
static std::string describeSchedules(const proto::Phase &phase) {
  std::string text, previous;
  for (const proto::Schedule &schedule : phase.schedules()) {
    std::string rows = std::to_string(schedule.rows_from());
    if (schedule.rows_to() == 0)
      rows += " or more";
    else if (schedule.rows_to() != schedule.rows_from())
      rows += " to " + std::to_string(schedule.rows_to());
    // The attribute's name says nothing here, nor its first field's.
    constexpr std::string_view firstField = "micro_kernel = ";
    std::string_view decision = schedule.text();
    if (size_t start = decision.find(firstField); start != decision.npos)
      decision.remove_prefix(start + firstField.size());
    if (decision.ends_with('>'))
      decision.remove_suffix(1);
    text += format(
        "  %-26s %12s tokens  %.*s\n",
        schedule.matmul() == previous ? "" : schedule.matmul().c_str(),
        rows.c_str(), static_cast<int>(decision.size()), decision.data());
    previous = schedule.matmul();
  }
  return text;
}

/// What becomes of a text, in models that encode.
static std::string describeEncoding(const proto::Manifest &manifest) {
  if (!manifest.has_encoding())
    return "";
  const proto::Encoding &encoding = manifest.encoding();
  if (encoding.labels() > 0)
    return format("gives       %u score%s for a text or a pair of texts\n",
                  encoding.labels(), encoding.labels() == 1 ? "" : "s");
  std::string text =
      format("gives       vectors of %u values, %s of a text's tokens%s\n",
             manifest.model().hidden_size(),
             encoding.pooling() == "mean"  ? "the mean"
             : encoding.pooling() == "cls" ? "the first"
                                           : "the last",
             encoding.normalized() ? ", of length one" : "");
  if (!encoding.task().empty())
    text += "task        " + encoding.task() + "\n";
  for (const proto::Prompt &prompt : encoding.prompts())
    text +=
        format("prompt      %s%s: \"%s\"\n", prompt.name().c_str(),
               prompt.name() == encoding.default_prompt() ? " (default)" : "",
               prompt.text().c_str());
  return text;
}

static std::string describePhases(const proto::Manifest &manifest) {
  std::string text, previous;
  for (const proto::Phase &phase : manifest.phases()) {
    text += format("%-11s %s: %u threads, at most %u tokens and %u logit rows "
                   "a step, workspace %s\n",
                   phase.name().c_str(), phase.symbol().c_str(),
                   phase.threads(), phase.max_tokens(), phase.max_logit_rows(),
                   formatBytes(phase.workspace_bytes()).c_str());
    std::string schedules = describeSchedules(phase);
    text +=
        schedules == previous ? "            the same schedules\n" : schedules;
    previous = std::move(schedules);
  }
  return text;
}

/// Who draws tokens, if the model itself does.
static std::string describeSampling(const proto::Manifest &manifest) {
  if (manifest.sampling_symbol().empty())
    return "";
  return "sampling    " + manifest.sampling_symbol() +
         ": a kernel draws tokens at temperatures above 0\n";
}

/// What the ranks share and have, where there are several.
static std::string describeRanks(const proto::Manifest &manifest) {
  if (artifact::ranks(manifest) == 1)
    return "";
  return format("ranks       %u processes, %s of weights that all read and %s "
                "of each\n",
                manifest.ranks(),
                formatBytes(manifest.common_weight_bytes()).c_str(),
                formatBytes(manifest.shard_bytes()).c_str());
}

/// "1 token 12.30 ms, 16 tokens 12.91 ms", as many as are in `points`.
static std::string describePoints(
    const google::protobuf::RepeatedPtrField<proto::StepTimes::Point> &points) {
  std::string text;
  for (const proto::StepTimes::Point &point : points)
    text +=
        format("%s%u token%s %.4g ms", text.empty() ? "" : ", ", point.tokens(),
               point.tokens() == 1 ? "" : "s", point.seconds() * 1e3);
  return text;
}

/// What steps took where the artifact was compiled, if that was measured.
static std::string describeStepTimes(const proto::Manifest &manifest) {
  if (!manifest.has_step_times())
    return "step times  not measured\n";
  const proto::StepTimes &times = manifest.step_times();
  return "step times  prefill: " + describePoints(times.prefill()) +
         "\n            decode: " + describePoints(times.decode()) +
         format("\n            1000 positions read: %.4g ms in prefill, %.4g "
                "ms in decode\n",
                times.seconds_per_prompt_position() * 1e6,
                times.seconds_per_decode_position() * 1e6);
}

/// How many bits each number of a tensor of integers takes, and what rounding
/// has done to it: a number, or those of the layers with the least and the
/// largest error.
static std::string describeRounding(const proto::Tensor &tensor) {
  const StorageFormat storage = *StorageFormat::parse(tensor.dtype());
  if (!storage.isQuantized())
    return "";
  const auto k = static_cast<int64_t>(tensor.shape(tensor.shape_size() - 1));
  std::string text = format("  %.2f bits each", bitsPerWeight(storage, k));
  if (!tensor.has_rounding())
    return text;
  if (tensor.rounding().kept())
    return text + ", as in the checkpoint";
  const auto [least, most] =
      std::ranges::minmax_element(tensor.rounding().errors());
  text += format(", error %.2f%%", 100 * *least);
  return *least == *most ? text : text + format(" to %.2f%%", 100 * *most);
}

static std::string describeTensors(const proto::Manifest &manifest) {
  std::string text = "tensors\n";
  for (const proto::Tensor &tensor : manifest.tensors()) {
    std::string shape;
    for (uint64_t extent : tensor.shape()) {
      if (!shape.empty())
        shape += 'x';
      shape += std::to_string(extent);
    }
    text += format("            %-24s %s %s  %s  %s%s%s\n",
                   tensor.name().c_str(), shape.c_str(), tensor.dtype().c_str(),
                   tensor.layout().c_str(), formatBytes(tensor.bytes()).c_str(),
                   tensor.ranks() ? " for each rank" : "",
                   describeRounding(tensor).c_str());
  }
  return text;
}

static std::string describeFiles(const proto::Manifest &manifest) {
  std::string text = "files\n";
  for (const proto::File &file : manifest.files())
    text += format("            %-24s %14llu bytes  XXH3 %016llx\n",
                   file.name().c_str(),
                   static_cast<unsigned long long>(file.bytes()),
                   static_cast<unsigned long long>(file.checksum()));
  return text;
}

static Status run(const Arguments &arguments) {
  // Looking into an artifact needs nothing of the CPU it was made for.
  ArtifactOpenOptions options;
  options.availableFeatures.reset();
  options.use.reset();
  SANDWICH_ASSIGN_OR_RETURN(Artifact artifact,
                            Artifact::open(arguments.artifact, options));
  if (arguments.verify)
    SANDWICH_RETURN_IF_ERROR(
        artifact.verifyWeights(tool::progressToTerminal()));
  if (arguments.json) {
    Json json = toJson(artifact);
    if (arguments.verify)
      json["weights_verified"] = true;
    return tool::writeJson(json);
  }
  const proto::Manifest &manifest = artifact.manifest();
  std::string text =
      format("%s, written by Sandwich %s\n", artifact.path().c_str(),
             manifest.sandwich_version().c_str()) +
      describeModel(manifest.model()) + describeTarget(manifest);
  text += describeEncoding(manifest) + describeRanks(manifest) +
          describePhases(manifest) + describeSampling(manifest) +
          (manifest.has_encoding() ? "" : describeStepTimes(manifest)) +
          describeTensors(manifest) + describeFiles(manifest);
  if (arguments.verify)
    text += "weights     the checksum is right\n";
  return writeStandardOutput(text);
}

void tool::addInspectCommand(CLI::App &app, Action &action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "inspect", "Shows what an artifact holds, also one for another CPU");
  command->footer(R"(Examples:
  sandwich-run inspect tiny.sandwich
  sandwich-run inspect tiny.sandwich --verify --json

Opening an artifact checks the sizes of all files and the checksums of all but
the weights; --verify reads the weights, too.)");
  addArtifactArgument(*command, arguments->artifact);
  command->add_flag("--verify", arguments->verify,
                    "Checks the weights against their checksum");
  command->add_flag("--json", arguments->json,
                    "Prints one JSON object instead of text");
  command->callback([arguments, &action] {
    action = [arguments] { return run(*arguments); };
  });
}
