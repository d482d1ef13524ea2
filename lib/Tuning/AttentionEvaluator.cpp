//===- AttentionEvaluator.cpp - How long attention takes ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuringTools.h"
#include "sandwich/Tuning/MeasuredCode.h"

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Utils/LoopBuilder.h"
#include "sandwich/Runtime/Measurement/MemoryReading.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Teams/TeamStep.h"
#include "sandwich/Support/AnonymousMemory.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/Statistics.h"
#include "sandwich/Tuning/AttentionTuner.h"

#include "mlir/Transforms/Passes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <sched.h>

using namespace mlir;
using namespace sandwich;
using measuring::Clock;

namespace {

/// Rounds of all schedules that are compared.
constexpr size_t rounds = 5;
/// What is slower by so much, after one round, is not worth measuring well.
constexpr double plainlySlower = 1.3;
/// A shorter measurement says more about the clock and the start of the team.
constexpr double leastSeconds = 2e-3;
/// Memory of keys and values, and the most layers that it is divided into.
constexpr uint64_t mostCacheBytes = uint64_t(512) << 20;
constexpr int64_t mostLayers = 8;

constexpr llvm::StringLiteral programName = "attention";

class AttentionPrograms final : public MeasuringAttentionEvaluator {
public:
  AttentionPrograms(const AttentionShape &shape, const Target &target,
                    const AttentionMeasuringOptions &options)
      : shape(shape), target(target), options(options),
        compiler(options.threads) {}

  Status allocate();
  Result<std::vector<double>>
  compare(const AttentionPayload &payload,
          const std::vector<AttentionSchedule> &given) override;
  Result<AttentionLimit> compareToReading(const AttentionPayload &payload,
                                          const AttentionSchedule &schedule,
                                          size_t rounds) override;

private:
  /// The arguments of a step, and what they point to.
  struct Step {
    std::vector<int32_t> positions, blocks, layers;
    std::vector<SandwichSegment> segments;
    SandwichStep arguments;
  };

  int64_t channels() const {
    return shape.cacheHeads * shape.group * shape.headDim;
  }
  bool shouldStop() const { return options.stop && options.stop(); }
  MemRefType activationType(AttentionElement element,
                            MLIRContext *context) const;
  uint64_t workspaceBytes(const AttentionSchedule &schedule,
                          uint64_t &destination, uint64_t &partialSums) const;
  void addProgram(ModuleOp module, const AttentionSchedule &schedule) const;
  Result<std::string> compile(const AttentionSchedule &schedule,
                              measuring::CompileSession &session) const;
  Status compileMissing(const std::vector<AttentionSchedule> &schedules);
  Result<std::vector<SandwichPhaseFunction>>
  prepare(const AttentionPayload &payload,
          std::vector<AttentionSchedule> schedules);
  uint64_t layerBytes(int64_t cacheBlocks) const;
  /// Of queries, or results, of a step.
  uint64_t rowsBytes(AttentionElement element) const;
  Step makeStep(const AttentionPayload &payload, int64_t stepLayers) const;
  double run(SandwichPhaseFunction function, Step &step, size_t repetitions);

  const AttentionShape shape;
  const Target target;
  const AttentionMeasuringOptions options;
  measuring::ParallelCompiler compiler;
  std::unique_ptr<measuring::CodeLoader> loader;
  std::unique_ptr<PhaseTeam> team;
  std::vector<std::pair<AttentionSchedule, SandwichPhaseFunction>> programs;
  AnonymousMemory cache, workspace;
  std::optional<MemoryReader> reader;
  /// Of the cache.
  int64_t layers = 1, blocks = 1;
};

/// Of the cache, that a step reads in each layer.
int64_t blocksOf(const AttentionPayload &payload) {
  return payload.segments *
         divideUp<int64_t>(payload.positions, SANDWICH_KV_BLOCK_TOKENS);
}

/// Numbers between -1 and 1; of integers, also what is a scale.
void fillRandom(std::byte *data, uint64_t bytes, AttentionElement element) {
  std::minstd_rand random(1);
  auto fill = [&](auto *numbers, auto convert) {
    for (uint64_t i = 0; i < bytes / sizeof(*numbers); ++i)
      numbers[i] = convert(static_cast<float>(random()) / (1u << 30) - 1);
  };
  switch (element) {
  case AttentionElement::F32:
    fill(reinterpret_cast<float *>(data), [](float value) { return value; });
    break;
  case AttentionElement::BF16:
    fill(reinterpret_cast<uint16_t *>(data), [](float value) {
      return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    });
    break;
  case AttentionElement::F16:
    fill(reinterpret_cast<_Float16 *>(data),
         [](float value) { return static_cast<_Float16>(value); });
    break;
  case AttentionElement::Int8:
    // As a scale, 2^-7 to 2^-6.
    fill(reinterpret_cast<uint32_t *>(data), [](float value) {
      constexpr uint32_t mantissa = 0x7fffff;
      return 0x3c000000 | (std::bit_cast<uint32_t>(value) & mantissa);
    });
    break;
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

uint64_t AttentionPrograms::rowsBytes(AttentionElement element) const {
  return static_cast<uint64_t>(options.maxTokens * shape.cacheHeads *
                               shape.group *
                               bytesOfHead(element, shape.headDim));
}

uint64_t AttentionPrograms::layerBytes(int64_t cacheBlocks) const {
  return static_cast<uint64_t>(cacheBlocks * SANDWICH_KV_BLOCK_TOKENS * 2 *
                               shape.cacheHeads *
                               bytesOfHead(shape.cache, shape.headDim));
}

Status AttentionPrograms::allocate() {
  // Threads that take turns on a CPU wait for each other at every barrier.
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
      options.threads > static_cast<unsigned>(CPU_COUNT(&allowed)))
    return makeError("cannot measure a team of ", options.threads,
                     " threads on ", CPU_COUNT(&allowed), " CPUs");
  SANDWICH_ASSIGN_OR_RETURN(loader, measuring::CodeLoader::create(target));
  PhaseTeamOptions teamOptions;
  teamOptions.threads = options.threads;
  teamOptions.cpus = options.cpus;
  SANDWICH_ASSIGN_OR_RETURN(team, PhaseTeam::create(teamOptions));

  std::vector<AttentionPayload> payloads = options.payloads;
  if (payloads.empty()) {
    auto [decode, prefill] =
        AttentionPayloads::of(shape, options.threads, options.maxTokens);
    payloads = {decode, prefill};
  }
  for (const AttentionPayload &payload : payloads)
    blocks = std::max(blocks, blocksOf(payload));
  layers = std::clamp<int64_t>(
      static_cast<int64_t>(mostCacheBytes / layerBytes(blocks)), 1, mostLayers);
  SANDWICH_ASSIGN_OR_RETURN(
      cache, AnonymousMemory::allocate(layers * layerBytes(blocks),
                                       "the KV cache of measurements",
                                       AnonymousMemory::Fill::Wholly));
  // What is random once is random enough.
  const uint64_t piece = std::min<uint64_t>(cache.size(), uint64_t(4) << 20);
  fillRandom(cache.data(), piece, shape.cache);
  for (uint64_t at = piece; at < cache.size(); at += piece)
    std::memcpy(cache.data() + at, cache.data(),
                std::min(piece, cache.size() - at));
  return {};
}

/// Of the query, the result behind it, and the sums of parts behind that.
uint64_t AttentionPrograms::workspaceBytes(const AttentionSchedule &schedule,
                                           uint64_t &destination,
                                           uint64_t &partialSums) const {
  constexpr uint64_t line = 64;
  destination = roundUp(rowsBytes(shape.query), line);
  partialSums = destination + roundUp(rowsBytes(shape.result), line);
  if (schedule.split == 1)
    return partialSums;
  const uint64_t heads = shape.cacheHeads * shape.group;
  return partialSums +
         roundUp<uint64_t>(options.maxTokens * schedule.split *
                               (channels() + 2 * heads) * sizeof(float),
                           line);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

MemRefType AttentionPrograms::activationType(AttentionElement element,
                                             MLIRContext *context) const {
  return MemRefType::get({ShapedType::kDynamic, channels()},
                         lm::getType(element, context));
}

/// Attention to the layers that the step names where others name the tokens
/// whose logits are wanted.
void AttentionPrograms::addProgram(ModuleOp module,
                                   const AttentionSchedule &schedule) const {
  MLIRContext *context = module.getContext();
  LoopBuilder b(module.getLoc(), context);
  b.setInsertionPointToEnd(module.getBody());
  uint64_t destinationOffset = 0, partialOffset = 0;
  const uint64_t bytes =
      workspaceBytes(schedule, destinationOffset, partialOffset);
  auto cacheType =
      lm::KVCacheType::get(context, layers, shape.cacheHeads, shape.headDim,
                           lm::getType(shape.cache, context));
  func::FuncOp function = phase::createProgram(
      b, module.getLoc(), programName, cacheType.getBufferType(),
      MemRefType::get({ShapedType::kDynamic, vectorWidth}, b.getF32Type()),
      phase::ProgramAttr::get(context, options.threads, options.maxTokens,
                              mostLayers, static_cast<int64_t>(bytes),
                              /*tables=*/{}));
  b.setInsertionPointToStart(&function.getBody().front());
  auto argument = [&](phase::ProgramArgument which) {
    return phase::getArgument(function, which);
  };
  using enum phase::ProgramArgument;
  Value tokens = memref::DimOp::create(b, argument(Positions), b.index(0));
  auto view = [&](uint64_t offset, MemRefType type, ValueRange sizes) -> Value {
    return memref::ViewOp::create(b, type, argument(Workspace),
                                  b.index(static_cast<int64_t>(offset)), sizes);
  };
  Value query = view(0, activationType(shape.query, context), tokens);
  Value result =
      view(destinationOffset, activationType(shape.result, context), tokens);
  Value partialSums;
  if (bytes > partialOffset)
    partialSums =
        view(partialOffset,
             MemRefType::get({static_cast<int64_t>(bytes - partialOffset)},
                             b.getI8Type()),
             {});
  Value count = memref::DimOp::create(b, argument(LogitRows), b.index(0));
  b.forLoop(b.index(0), count, 1, [&](Value number) {
    lm::AttentionOp::create(
        b, Type(), query, argument(KVCache),
        b.loadIndex(argument(LogitRows), number), argument(Segments),
        argument(BlockTables),
        b.getF32FloatAttr(1 / std::sqrt(static_cast<float>(shape.headDim))),
        /*bidirectional=*/nullptr,
        lm::AttentionTableAttr::get(context,
                                    AttentionTable{{.schedule = schedule}}),
        partialSums, result);
    // As the operation that reads the result has before it.
    phase::BarrierOp::create(b, argument(Team));
  });
  func::ReturnOp::create(b);
}

Result<std::string>
AttentionPrograms::compile(const AttentionSchedule &schedule,
                           measuring::CompileSession &session) const {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&session.context));
  addProgram(*module, schedule);
  return measuring::compileCode(session, *module, target,
                                SANDWICH_PHASE_SYMBOL_PREFIX +
                                    programName.str(),
                                "program", [&](OpPassManager &manager) {
                                  LMToLoopsOptions loops;
                                  loops.target = target.name;
                                  manager.addPass(createLMToLoops(loops));
                                  manager.addPass(createCanonicalizerPass());
                                  manager.addPass(createCSEPass());
                                });
}

/// What differs for `payload`: of the other kind of segments there is as little
/// code as can be.
static AttentionSchedule withoutOther(AttentionSchedule schedule,
                                      const AttentionPayload &payload) {
  if (payload.tokens > 1)
    return {.prefill = schedule.prefill,
            .tiles = schedule.tiles,
            .instructions = schedule.instructions};
  return {.decode = schedule.decode, .split = schedule.split};
}

Status AttentionPrograms::compileMissing(
    const std::vector<AttentionSchedule> &schedules) {
  std::vector<AttentionSchedule> missing;
  for (const AttentionSchedule &schedule : schedules)
    if (std::ranges::find(programs, schedule,
                          &decltype(programs)::value_type::first) ==
        programs.end())
      missing.push_back(schedule);
  std::vector<std::optional<Result<std::string>>> objects(missing.size());
  const bool stopped =
      compiler.run(missing.size(), options.stop,
                   [&](size_t i, measuring::CompileSession &session) {
                     objects[i].emplace(compile(missing[i], session));
                   });
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!objects[i])
      continue;
    if (!*objects[i])
      return objects[i]->error();
    SANDWICH_ASSIGN_OR_RETURN(
        std::vector<void *> functions,
        loader->load(**objects[i],
                     {SANDWICH_PHASE_SYMBOL_PREFIX + programName.str()}));
    programs.emplace_back(
        missing[i], reinterpret_cast<SandwichPhaseFunction>(functions.front()));
  }
  if (stopped)
    return makeError("measuring was stopped");
  return {};
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

AttentionPrograms::Step
AttentionPrograms::makeStep(const AttentionPayload &payload,
                            int64_t stepLayers) const {
  Step step;
  // Blocks of a sequence lie anywhere.
  step.blocks.resize(blocks);
  std::iota(step.blocks.begin(), step.blocks.end(), 0);
  std::ranges::shuffle(step.blocks, std::minstd_rand(2));
  const int64_t blocksOfSegment =
      divideUp<int64_t>(payload.positions, SANDWICH_KV_BLOCK_TOKENS);
  const int64_t first = payload.positions - payload.tokens;
  for (int64_t segment = 0; segment < payload.segments; ++segment) {
    step.segments.push_back({static_cast<int32_t>(step.positions.size()),
                             static_cast<int32_t>(payload.tokens),
                             static_cast<int32_t>(first),
                             static_cast<int32_t>(segment * blocksOfSegment)});
    for (int64_t token = 0; token < payload.tokens; ++token)
      step.positions.push_back(static_cast<int32_t>(first + token));
  }
  step.layers.resize(stepLayers);
  std::iota(step.layers.begin(), step.layers.end(), 0);

  SandwichStep &arguments = step.arguments;
  arguments = {};
  // Token ids and slots are not read.
  arguments.token_ids = step.positions.data();
  arguments.positions = step.positions.data();
  arguments.cache_slots = step.positions.data();
  arguments.segments = step.segments.data();
  arguments.block_tables = step.blocks.data();
  arguments.logit_rows = step.layers.data();
  arguments.num_tokens = static_cast<int64_t>(step.positions.size());
  arguments.num_segments = payload.segments;
  arguments.num_blocks = blocks;
  arguments.num_logit_rows = stepLayers;
  arguments.kv_cache = cache.data();
  arguments.workspace = workspace.data();
  setTeam(arguments, *team);
  return step;
}

/// Seconds of all layers of the step.
double AttentionPrograms::run(SandwichPhaseFunction function, Step &step,
                              size_t repetitions) {
  struct Context {
    SandwichPhaseFunction function;
    const SandwichStep *step;
    size_t repetitions;
  } context{function, &step.arguments, repetitions};
  const Clock::time_point begin = Clock::now();
  team->run(
      options.threads,
      [](void *work, int32_t thread) {
        const auto &own = *static_cast<Context *>(work);
        for (size_t i = 0; i < own.repetitions; ++i)
          own.function(own.step, thread);
      },
      &context);
  return secondsSince(begin) / static_cast<double>(repetitions);
}

/// Their functions, and memory for what these write.
Result<std::vector<SandwichPhaseFunction>>
AttentionPrograms::prepare(const AttentionPayload &payload,
                           std::vector<AttentionSchedule> schedules) {
  for (AttentionSchedule &schedule : schedules)
    schedule = withoutOther(schedule, payload);
  if (payload.segments * payload.tokens > options.maxTokens ||
      blocksOf(payload) > blocks)
    return makeError("cannot measure attention of ", payload.segments,
                     " segments with ", payload.positions, " positions");
  SANDWICH_RETURN_IF_ERROR(compileMissing(schedules));
  std::vector<SandwichPhaseFunction> functions;
  uint64_t bytes = 0, ignored = 0;
  for (const AttentionSchedule &schedule : schedules) {
    functions.push_back(
        std::ranges::find(programs, schedule,
                          &decltype(programs)::value_type::first)
            ->second);
    bytes = std::max(bytes, workspaceBytes(schedule, ignored, ignored));
  }
  if (workspace.size() < bytes) {
    SANDWICH_ASSIGN_OR_RETURN(
        workspace,
        AnonymousMemory::allocate(bytes, "the workspace of measurements"));
    fillRandom(workspace.data(), rowsBytes(shape.query), shape.query);
  }
  return functions;
}

/// How often a step is run to be measured.
static size_t repetitionsFor(double seconds) {
  return static_cast<size_t>(
      std::clamp(std::ceil(leastSeconds / seconds), 1.0, 64.0));
}

/// Tokens of prompts are many for each position: two layers say enough.
static int64_t layersOf(const AttentionPayload &payload, int64_t layers) {
  return payload.tokens == 1 ? layers : std::min<int64_t>(layers, 2);
}

Result<std::vector<double>>
AttentionPrograms::compare(const AttentionPayload &payload,
                           const std::vector<AttentionSchedule> &schedules) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<SandwichPhaseFunction> functions,
                            prepare(payload, schedules));
  Step step = makeStep(payload, layersOf(payload, layers));
  std::vector<std::vector<double>> ratios(schedules.size());
  size_t repetitions = 1;
  for (size_t round = 0; round < rounds; ++round) {
    double first = 0;
    for (size_t i = 0; i < schedules.size(); ++i) {
      if (i > 0 && !ratios[i].empty() &&
          std::ranges::min(ratios[i]) > plainlySlower)
        continue;
      if (shouldStop())
        return makeError("measuring was stopped");
      // The first touch of code and memory is not what is measured.
      if (round == 0) {
        const double seconds = run(functions[i], step, 1);
        if (i == 0)
          repetitions = repetitionsFor(seconds);
      }
      const double seconds = run(functions[i], step, repetitions);
      if (i == 0)
        first = seconds;
      ratios[i].push_back(seconds / first);
    }
  }
  std::vector<double> medians;
  for (std::vector<double> &each : ratios)
    medians.push_back(median(std::move(each)));
  return medians;
}

Result<AttentionLimit>
AttentionPrograms::compareToReading(const AttentionPayload &payload,
                                    const AttentionSchedule &schedule,
                                    size_t rounds) {
  SANDWICH_ASSIGN_OR_RETURN(std::vector<SandwichPhaseFunction> functions,
                            prepare(payload, {schedule}));
  const int64_t stepLayers = layersOf(payload, layers);
  Step step = makeStep(payload, stepLayers);
  const uint64_t bytes = layerBytes(blocksOf(payload));
  const size_t repetitions = repetitionsFor(run(functions.front(), step, 1));
  if (!reader)
    reader.emplace(*team, options.threads, cache.contents());
  std::vector<double> seconds, reading, shares;
  for (size_t round = 0; round < rounds; ++round) {
    if (shouldStop())
      return makeError("measuring was stopped");
    seconds.push_back(run(functions.front(), step, repetitions) /
                      static_cast<double>(stepLayers));
    double total = 0;
    for (size_t i = 0; i < repetitions; ++i)
      total += reader->seconds({cache.data(), stepLayers * bytes});
    reading.push_back(total / static_cast<double>(repetitions * stepLayers));
    shares.push_back(reading.back() / seconds.back());
  }
  // Each token attends to its own position and those before it.
  const auto tokens = static_cast<double>(payload.tokens);
  const double attended =
      tokens * (static_cast<double>(payload.positions) - (tokens - 1) / 2);
  return AttentionLimit{
      .seconds = median(std::move(seconds)),
      .readSeconds = median(std::move(reading)),
      .bytes = static_cast<double>(bytes),
      .operations =
          4 * static_cast<double>(payload.segments * channels()) * attended,
      .readShare = median(std::move(shares))};
}

Result<std::unique_ptr<MeasuringAttentionEvaluator>>
MeasuringAttentionEvaluator::create(const AttentionShape &shape,
                                    const Target &target,
                                    const AttentionMeasuringOptions &options) {
  auto programs = std::make_unique<AttentionPrograms>(shape, target, options);
  SANDWICH_RETURN_IF_ERROR(programs->allocate());
  return std::unique_ptr<MeasuringAttentionEvaluator>(std::move(programs));
}
