//===- Compiler.h - From a checkpoint to an artifact ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_COMPILER_COMPILER_H
#define SANDWICH_COMPILER_COMPILER_H

#include "sandwich/Machine/PlanCores.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

struct ModelConfig;

/// What compilation ends with, in order of the line.
enum class Emit { ModelIR, ScheduleIR, LoopIR, LLVMIR, Assembly, Artifact };

/// How schedules are found.
enum class Tune {
  /// By a model of the CPU, unless `schedules` knows better.
  None,
  /// Measured for some numbers of tokens, the others share their schedules.
  Quick,
  /// Measured for every number of tokens.
  Full
};

/// What tuning did, for whoever wants to know.
struct TuningSummary {
  /// Different matmuls and attentions that were tuned, without those that the
  /// database knew.
  int64_t matmuls = 0, attentions = 0;
  /// Kernels in the place of operations whose parameters were tuned, each for
  /// the rows of a phase.
  int64_t kernels = 0;
  /// Those that it knew.
  int64_t known = 0;
  int64_t measurements = 0;
  double seconds = 0;
  /// Not all was tuned, as the budget was spent.
  bool complete = true;
};

/// Of a text for calibration: more change little.
inline constexpr int64_t usualCalibrationTokens = 512;

struct CompileOptions {
  /// The folder or the GGUF file of the checkpoint.
  std::string modelFolder;
  /// Where the artifact or the text goes; "-" prints text.
  std::string output;
  Emit emit = Emit::Artifact;
  /// Of the weights of matmuls: see `StorageFormat::parseOption`. Vectors are
  /// bf16 where these are quantized. By default the quantized numbers that the
  /// checkpoint has, and "bf16" for its other ones.
  std::optional<std::string> dtype;
  /// Of tables that no matmul multiplies: quantized, or what vectors are. By
  /// default what `dtype` says, and "int8" where that is quantized, if rows are
  /// whole groups.
  std::optional<std::string> embeddingDtype;
  /// Of the matrix behind the layers, which makes the logits, and may be the
  /// table of embeddings, too: quantized, or what vectors are. By default what
  /// `dtype` says, and "int8" for such a table where that is of 4 bits.
  std::optional<std::string> headDtype;
  /// What is multiplied with weights of integers: "int8", inputs rounded to it
  /// in groups as long as the weight's, where the target has instructions for
  /// that; or "float", which alone is multiplied with fp8.
  std::string activations = "int8";
  /// Files with kernels of the high level, each for an operation of `lm`:
  /// "rms_norm=norm.kernel".
  std::vector<std::string> kernels;
  /// A file of text, UTF-8, whose first tokens tell which channels of weights
  /// rounding to integers is to spare (see Calibration.h), at most
  /// `calibrationTokens`, and no more than the context. Of artifacts whose
  /// matrices are rounded, and of models with logits.
  std::optional<std::string> calibrationText;
  int64_t calibrationTokens = usualCalibrationTokens;
  /// Of the KV cache: "bf16", "f16", "f32", or "int8", for heads of a multiple
  /// of 4 channels. By default what `inputIR` has;
  /// without it "f32" where the weights are, else "f16" for a checkpoint that
  /// stores the projections of keys and values so, and "bf16" for others.
  std::optional<std::string> kvDtype;
  /// A target's name, or "host".
  std::string target = "host";
  /// A textual pass pipeline over the module of loop IR, before it is lowered
  /// further; may be empty.
  std::string loopPasses;
  /// Of the prefill team of each process, and of its decode team where they
  /// differ.
  int64_t threads = 1;
  /// Nobody asked for `threads`: `inputIR` may say otherwise (`lm.threads`).
  bool threadsAreDefault = false;
  std::optional<int64_t> decodeThreads;
  /// Processes that run the model together, each with threads of its own and
  /// its own shard of the weights.
  int64_t tensorParallel = 1;
  /// The cores that the artifact is for; it says how many processes and threads
  /// there are instead of those above.
  std::optional<PlanCores> plan;
  /// Whether each sequence's results must have the same bits whatever else is
  /// in its steps; so are those of `inputIR` if it says so.
  bool deterministic = false;
  /// Tokens of the largest step.
  int64_t maxTokens = 512;
  /// Nobody asked for `maxTokens`: models that encode have larger steps, which
  /// hold the longest text.
  bool maxTokensAreDefault = false;
  /// Tokens a sequence may hold; by default what the model was made for, or its
  /// sliding window where that is less.
  std::optional<int64_t> contextLength;
  /// Whose adapter the weights get, of checkpoints with adapters.
  std::optional<std::string> task;
  /// Model IR or schedule IR to start from instead of the checkpoint's own.
  std::optional<std::string> inputIR;
  Tune tune = Tune::None;
  /// How tuning searches (see Strategies.h).
  std::string strategy = "sandwich";
  /// The search's sliding window (sigma) and reuse threshold (see
  /// ScheduleTuner.h), if not its own.
  std::optional<int64_t> tuningWindow;
  std::optional<double> reuseThreshold;
  /// The most seconds that tuning takes; nothing: until it is done.
  std::optional<double> tuningSeconds;
  /// A trace that packings are chosen for (see ServingTrace.h).
  std::optional<std::string> trace;
  /// The schedule database. Tuning adds to it; without tuning it is read only.
  std::optional<std::string> schedules;
  /// File with the speed of the machine's parts (see MachineDescription.h),
  /// which untuned schedules are chosen by.
  std::optional<std::string> machineParameters;
  /// Where a page about the tuning goes (see TuningReport.h).
  std::optional<std::string> tuningReport;
  /// The CPUs that measuring keeps its threads on.
  std::vector<unsigned> cpus;
};

/// Error: an element type of `options` is not one of those above.
Status checkElementTypes(const CompileOptions &options);

/// The tokens of a sequence of a model: as `CompileOptions::contextLength` asks
/// for them, else the model's usual ones. Error: the model has not so many.
Result<int64_t> contextOf(const CompileOptions &options,
                          const ModelConfig &config);

/// Stages that whoever ends a compilation early may want to know: schedules
/// are measured, and added to the database; text goes to standard output; the
/// output is in its place, and what is left is to clear up.
inline constexpr std::string_view stageTuning = "tuning";
inline constexpr std::string_view stagePrinting = "printing";
inline constexpr std::string_view stageDone = "clearing up";

/// Hears what is being done: a short name of the stage, and how much of it is
/// done, from 0 to 1. An error ends the compilation with it, but for
/// `stageDone`.
using CompileProgress = std::function<Status(std::string_view stage, double)>;

/// Compiles the checkpoint at `options.modelFolder`. Errors name what is at
/// fault; nothing is left behind then but the schedules that were tuned.
/// `summary`, if given, hears of the tuning.
Status compile(const CompileOptions &options, const CompileProgress &progress,
               TuningSummary *summary = nullptr);

} // namespace sandwich

#endif // SANDWICH_COMPILER_COMPILER_H
