//===- ManifestBuilder.cpp - What an artifact says of itself --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"

#include "PrintAttribute.h"
#include "sandwich/Artifact/Format.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Runtime/PhaseABI.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <filesystem>

using namespace mlir;
using namespace sandwich;

/// What a program may read of a step.
static constexpr std::pair<unsigned, const char *> inputNames[] = {
    {static_cast<unsigned>(phase::ProgramArgument::TokenIds), "token_ids"},
    {static_cast<unsigned>(phase::ProgramArgument::TokenTypes), "token_types"},
    {static_cast<unsigned>(phase::ProgramArgument::Positions), "positions"},
    {static_cast<unsigned>(phase::ProgramArgument::CacheSlots), "cache_slots"},
    {static_cast<unsigned>(phase::ProgramArgument::Segments), "segments"},
    {static_cast<unsigned>(phase::ProgramArgument::BlockTables),
     "block_tables"},
    {static_cast<unsigned>(phase::ProgramArgument::LogitRows), "logit_rows"},
    {static_cast<unsigned>(phase::ProgramArgument::KVCache), "kv_cache"},
};

proto::Phase &ManifestBuilder::phaseNamed(StringRef name) {
  for (proto::Phase &phase : phases)
    if (phase.name() == name)
      return phase;
  phases.emplace_back().set_name(name.str());
  return phases.back();
}

void ManifestBuilder::addSchedules(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(lm::phaseAttributeName))
      continue;
    proto::Phase &phase = phaseNamed(function.getName());
    function.walk([&](lm::AttentionOp attention) {
      phase.set_bidirectional(attention.getBidirectional());
    });
    // A layer may be there twice, as one that is like the others and as the
    // last one.
    DenseSet<std::pair<Attribute, Attribute>> told;
    function.walk([&](gemm::MatmulOp matmul) {
      gemm::ScheduleTableAttr table = *matmul.getSchedules();
      if (!told.insert({matmul.getWeightAttr(), table}).second)
        return;
      int64_t from = 1;
      for (auto [rows, schedule] :
           llvm::zip_equal(table.getMaxRows(), table.getSchedules())) {
        roundsInput |=
            multipliesIntegers(schedule.getSchedule().microKernel.isa);
        proto::Schedule &entry = *phase.add_schedules();
        entry.set_matmul(matmul.getWeight().str());
        entry.set_rows_from(from);
        entry.set_rows_to(rows == gemm::unlimitedRows ? 0 : rows);
        entry.set_text(print(schedule));
        from = rows == gemm::unlimitedRows ? 0 : rows + 1;
      }
    });
  }
}

void ManifestBuilder::addPrograms(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    const std::string symbol =
        (SANDWICH_PHASE_SYMBOL_PREFIX + function.getName()).str();
    if (phase::drawsTokens(function))
      samplingSymbol = symbol;
    phase::ProgramAttr program = phase::getProgram(function);
    if (!program)
      continue;
    proto::Phase &phase = phaseNamed(function.getName());
    phase.set_symbol(symbol);
    phase.set_threads(program.getThreads());
    phase.set_max_tokens(program.getMaxTokens());
    phase.set_max_logit_rows(program.getMaxLogitRows());
    phase.set_workspace_bytes(program.getWorkspaceBytes());
    for (const auto &[argument, name] : inputNames)
      if (argument < function.getNumArguments() &&
          !function.getArgument(argument).use_empty())
        phase.add_inputs(name);
    for (phase::MarkOp mark : phase::getMarkedOperations(function)) {
      proto::Operation &operation = *phase.add_operations();
      operation.set_name(mark.getName().str());
      operation.set_bytes(mark.getBytes());
      operation.set_bytes_per_position(mark.getBytesPerPosition());
      operation.set_flops_per_token(mark.getFlopsPerToken());
      operation.set_flops_per_logit_row(mark.getFlopsPerLogitRow());
      operation.set_flops_per_attended(mark.getFlopsPerAttended());
    }
  }
}

void ManifestBuilder::addEncoding(proto::Encoding &encoding) const {
  if (config.encoder)
    encoding.set_token_types(config.encoder->tokenTypes);
  encoding.set_labels(config.labels);
  if (!config.embedding)
    return;
  const EmbeddingConfig &embedding = *config.embedding;
  encoding.set_pooling(std::string(poolingName(embedding.pooling)));
  encoding.set_normalized(embedding.normalize);
  for (int64_t size : embedding.dimensions)
    encoding.add_dimensions(size);
  for (const auto &[name, text] : embedding.prompts) {
    proto::Prompt &prompt = *encoding.add_prompts();
    prompt.set_name(name);
    prompt.set_text(text);
  }
  encoding.set_default_prompt(embedding.defaultPrompt.value_or(""));
  encoding.set_task(options.task.value_or(""));
  // A task's instruction has its name.
  for (const auto &[name, text] : embedding.prompts)
    if (!embedding.defaultPrompt && name == options.task)
      encoding.set_default_prompt(name);
}

proto::Manifest ManifestBuilder::build() const {
  proto::Manifest manifest;
  proto::ModelConfiguration &model = *manifest.mutable_model();
  auto path = std::filesystem::absolute(options.modelFolder).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  model.set_name(path.extension() == ".gguf" ? path.stem() : path.filename());
  model.set_architecture(std::string(architectureName(config.architecture)));
  model.set_hidden_size(config.hiddenSize);
  model.set_intermediate_size(config.intermediateSize);
  model.set_layers(config.layers);
  model.set_heads(config.heads);
  model.set_kv_heads(config.kvHeads);
  model.set_head_dim(config.headDim);
  model.set_vocab_size(config.vocabSize);
  model.set_context_length(
      options.contextLength.value_or(config.usualContext()));
  for (int32_t token : config.eosTokenIds)
    model.add_eos_token_ids(token);
  if (config.bosTokenId)
    model.set_bos_token_id(*config.bosTokenId);
  uint64_t parameters = 0;
  for (const ExpectedTensor &tensor : expectedTensors(config)) {
    uint64_t elements = 1;
    for (int64_t size : tensor.shape)
      elements *= size;
    parameters += elements;
  }
  model.set_parameters(parameters);
  if (config.encodes())
    addEncoding(*manifest.mutable_encoding());

  proto::Target &forTarget = *manifest.mutable_target();
  forTarget.set_name(target.name);
  forTarget.set_dtype(
      StorageFormat::parseOption(options.dtype.value_or("bf16"))->name());
  forTarget.set_phase_abi_version(SANDWICH_PHASE_ABI_VERSION);
  forTarget.set_deterministic(options.deterministic);
  if (roundsInput)
    forTarget.set_activations(std::string(name(MatrixElement::Int8)));
  for (std::string_view feature : target.features.names())
    forTarget.add_cpu_features(std::string(feature));

  for (const proto::Phase &phase : phases)
    *manifest.add_phases() = phase;
  if (options.plan)
    for (size_t i = 0; i < options.plan->prefill.size(); ++i) {
      proto::Process &process = *manifest.add_plan();
      const PlanCores &plan = *options.plan;
      process.mutable_prefill_cpus()->Add(plan.prefill[i].begin(),
                                          plan.prefill[i].end());
      process.mutable_decode_cpus()->Add(plan.decode[i].begin(),
                                         plan.decode[i].end());
    }
  manifest.set_sampling_symbol(samplingSymbol);
  if (options.tensorParallel > 1)
    manifest.set_ranks(static_cast<uint32_t>(options.tensorParallel));

  proto::KVCache &cache = *manifest.mutable_kv_cache();
  cache.set_block_tokens(SANDWICH_KV_BLOCK_TOKENS);
  cache.set_block_bytes(
      uint64_t(config.encodes() ? 1 : config.layers) *
      (config.kvHeads / options.tensorParallel) * 2 * SANDWICH_KV_BLOCK_TOKENS *
      artifact::keyValueBytes(*options.kvDtype, config.headDim));
  cache.set_dtype(*options.kvDtype);
  return manifest;
}
