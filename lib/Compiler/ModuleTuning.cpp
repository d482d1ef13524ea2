//===- ModuleTuning.cpp - Schedules measured for a module -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleTuning.h"

#include "KernelTuning.h"

#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/ServingTrace.h"
#include "sandwich/Tuning/AttentionTuner.h"
#include "sandwich/Tuning/ModelTuner.h"
#include "sandwich/Tuning/TuningReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;

int64_t sandwich::threadsOf(const CompileOptions &options, lm::Phase phase) {
  const bool decode = phase == lm::Phase::Decode;
  if (options.plan)
    return static_cast<int64_t>(
        (decode ? options.plan->decode : options.plan->prefill).front().size());
  return decode ? options.decodeThreads.value_or(options.threads)
                : options.threads;
}

/// Where the team of `threads` threads runs while measuring.
static void choosePlace(ModelTuningOptions &tuning,
                        const CompileOptions &options, int64_t threads) {
  tuning.threads = threads;
  // Tuning for a plan runs where the team will; that of decode comes second.
  if (options.plan && threads != threadsOf(options, lm::Phase::Prefill))
    tuning.cpus = options.plan->decode.front();
  else if (tuning.cpus.size() > static_cast<size_t>(threads))
    tuning.cpus.resize(threads);
}

/// Tunes the matmuls that run on `threads` threads and have no schedules yet,
/// and gives them what was found.
static Result<TunedModel> tuneTeam(ModuleOp module,
                                   const CompileOptions &options,
                                   const Target &target, int64_t threads,
                                   const ModelTuningOptions &given,
                                   const TuningProgress &progress) {
  SymbolTableCollection symbols;
  SmallVector<gemm::MatmulOp> matmuls;
  std::vector<TunedMatmul> uses;
  module.walk([&](gemm::MatmulOp matmul) {
    auto function = matmul->getParentOfType<func::FuncOp>();
    if (matmul.getSchedules() ||
        lm::getThreads(function, options.threads) != threads)
      return;
    const MatmulShape shape =
        gemm::getShape(matmul, symbols, options.activations);
    // Logits are wanted of the last token of each sequence, so of few rows.
    constexpr int64_t mostLogits = 32;
    bool makesLogits =
        llvm::any_of(matmul.getResult().getUsers(),
                     llvm::IsaPred<func::ReturnOp, lm::AllGatherOp>);
    matmuls.push_back(matmul);
    uses.push_back({shape,
                    makesLogits ? std::min(mostLogits, options.maxTokens)
                                : options.maxTokens,
                    makesLogits});
  });
  const std::vector<TunedMatmul> shapes = differentShapes(uses);
  ModelTuningOptions tuning = given;
  choosePlace(tuning, options, threads);
  SANDWICH_ASSIGN_OR_RETURN(TunedModel result,
                            tuneModel(shapes, target, tuning, progress));
  for (auto [matmul, use] : llvm::zip_equal(matmuls, uses)) {
    auto shape = std::ranges::find(shapes, use.shape, &TunedMatmul::shape);
    const TunedGroup &found = result.groups[shape - shapes.begin()];
    matmul.setSchedulesAttr(
        gemm::getTableAttr(module.getContext(), found.table));
    if (found.group.shape.packing)
      lm::lookupWeight(symbols, matmul, matmul.getWeightAttr())
          .setPackingAttr(gemm::PackingAttr::get(module.getContext(),
                                                 *found.group.shape.packing));
  }
  return result;
}

/// Tunes the attention that runs on `threads` threads and has no schedules yet,
/// and gives it what was found.
static Result<TunedModelAttention>
tuneAttentionOfTeam(ModuleOp module, const CompileOptions &options,
                    const Target &target, int64_t threads,
                    const ModelTuningOptions &given,
                    const TuningProgress &progress) {
  SmallVector<lm::AttentionOp> operations;
  std::vector<AttentionShape> shapes;
  module.walk([&](lm::AttentionOp attention) {
    auto function = attention->getParentOfType<func::FuncOp>();
    if (attention.getSchedules() ||
        lm::getThreads(function, options.threads) != threads)
      return;
    operations.push_back(attention);
    if (!llvm::is_contained(shapes, attention.getShape()))
      shapes.push_back(attention.getShape());
  });
  ModelTuningOptions tuning = given;
  choosePlace(tuning, options, threads);
  SANDWICH_ASSIGN_OR_RETURN(
      TunedModelAttention result,
      tuneModelAttention(shapes, target, options.maxTokens, tuning, progress));
  for (lm::AttentionOp attention : operations)
    attention.setSchedulesAttr(lm::AttentionTableAttr::get(
        module.getContext(),
        result.tables[llvm::find(shapes, attention.getShape()) -
                      shapes.begin()]));
  return result;
}

Status sandwich::tuneModule(ModuleOp module, const CompileOptions &options,
                            const Target &target, const std::string &model,
                            const CompileProgress &progress,
                            TuningSummary *summary) {
  // Also where nothing is left to measure.
  SANDWICH_RETURN_IF_ERROR(progress(stageTuning, 0));
  SANDWICH_RETURN_IF_ERROR(runPasses(module, [](OpPassManager &manager) {
    manager.addPass(createLMToGemm());
  }));
  ModelTuningOptions tuning;
  SANDWICH_ASSIGN_OR_RETURN(tuning.strategy, strategyNamed(options.strategy));
  tuning.cpus = options.cpus;
  tuning.rows = options.tune == Tune::Full ? allRows(options.maxTokens)
                                           : coarseRows(options.maxTokens);
  tuning.trace = defaultTrace(options.maxTokens);
  if (options.trace) {
    SANDWICH_ASSIGN_OR_RETURN(ServingTrace requests,
                              findServingTrace(*options.trace));
    tuning.trace = countRows(requests, options.maxTokens);
  }
  if (options.tuningWindow)
    tuning.window = *options.tuningWindow;
  if (options.reuseThreshold)
    tuning.reuseThreshold = *options.reuseThreshold;
  if (options.tuningSeconds)
    tuning.seconds = *options.tuningSeconds;
  tuning.database = *options.schedules;
  // What cannot be written shows now, not after minutes.
  std::optional<PendingFile> report;
  if (options.tuningReport) {
    SANDWICH_ASSIGN_OR_RETURN(report,
                              PendingFile::create(*options.tuningReport));
  }
  // The first team chooses the packings, which hold for all.
  std::vector<int64_t> teams;
  for (lm::Phase phase : {lm::Phase::Prefill, lm::Phase::Decode,
                          lm::Phase::Embed, lm::Phase::Classify})
    for (auto function : module.getOps<func::FuncOp>()) {
      auto own = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
      const int64_t threads = lm::getThreads(function, options.threads);
      if (own && own.getValue() == phase && !llvm::is_contained(teams, threads))
        teams.push_back(threads);
    }
  // Of the work, roughly.
  constexpr double shareOfMatmuls = 0.9;
  TunedModel result;
  for (size_t i = 0; i < teams.size(); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(
        TunedModel team,
        tuneTeam(module, options, target, teams[i], tuning, [&](double done) {
          return progress(stageTuning, shareOfMatmuls *
                                           (static_cast<double>(i) + done) /
                                           static_cast<double>(teams.size()));
        }));
    tuning.seconds = std::max(tuning.seconds - team.seconds, 1e-3);
    result.append(std::move(team));
  }
  // Inputs that micro-kernels read as bf16 are made so before anybody looks.
  gemm::ScheduleMatmulsOptions scheduling;
  scheduling.target = options.target;
  scheduling.threads = options.threads;
  scheduling.activations = options.activations;
  SANDWICH_RETURN_IF_ERROR(runPasses(module, [&](OpPassManager &manager) {
    manager.addPass(gemm::createScheduleMatmuls(scheduling));
  }));
  // What attention writes is known now. A model that must be deterministic has
  // one schedule, whatever is fast; a cost model says nothing of attention.
  TunedModelAttention attention;
  if (lm::isDeterministic(module) || tuning.strategy == Strategy::CostModel)
    teams.clear();
  for (size_t i = 0; i < teams.size(); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(
        TunedModelAttention team,
        tuneAttentionOfTeam(
            module, options, target, teams[i], tuning, [&](double done) {
              return progress(stageTuning,
                              shareOfMatmuls +
                                  (1 - shareOfMatmuls) *
                                      (static_cast<double>(i) + done) /
                                      static_cast<double>(teams.size()));
            }));
    tuning.seconds = std::max(tuning.seconds - team.seconds, 1e-3);
    attention.append(std::move(team));
  }
  // Other parameters are another order of sums.
  TunedModelKernels kernels;
  if (!lm::isDeterministic(module) && tuning.strategy != Strategy::CostModel) {
    lm::UseKernelsOptions use;
    for (const std::string &each : options.kernels)
      use.kernels.push_back(each);
    SANDWICH_RETURN_IF_ERROR(runPasses(module, [&](OpPassManager &manager) {
      manager.addPass(lm::createUseKernels(use));
    }));
    SANDWICH_ASSIGN_OR_RETURN(
        kernels,
        tuneModelKernels(module, options, target, tuning, [&](double done) {
          return progress(stageTuning, std::min(done, 1.0));
        }));
  }
  if (report) {
    SANDWICH_RETURN_IF_ERROR(report->write(writeTuningReport(result, model)));
    SANDWICH_RETURN_IF_ERROR(report->commit());
  }
  if (summary) {
    summary->matmuls =
        static_cast<int64_t>(result.groups.size()) - result.known;
    summary->attentions =
        static_cast<int64_t>(attention.tables.size()) - attention.known;
    summary->kernels = kernels.kernels - kernels.known;
    summary->known = result.known + attention.known + kernels.known;
    summary->measurements =
        result.measurements + attention.measurements + kernels.measurements;
    summary->seconds = result.seconds + attention.seconds + kernels.seconds;
    summary->complete &= attention.complete && kernels.complete;
    for (const TunedGroup &group : result.groups)
      summary->complete &= group.complete;
  }
  return {};
}
