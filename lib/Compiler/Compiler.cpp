//===- Compiler.cpp - From a checkpoint to an artifact --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/Compiler.h"
#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Artifact/Format.h"
#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Compiler/WeightPacker.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Conversion/WeightAccess.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/Gemm/Transforms/Passes.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Runtime/Tokenizer.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/TensorParallelism.h"
#include "sandwich/Tuning/ModelTuner.h"
#include "sandwich/Tuning/TuningReport.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
using namespace sandwich;

namespace {

/// One compilation, from the checkpoint on.
class Compilation {
public:
  Compilation(const CompileOptions &options, const CompileProgress &progress,
              Checkpoint checkpoint, Target target)
      : options(options), progress(progress), checkpoint(std::move(checkpoint)),
        target(std::move(target)), context(registry()) {
    context.loadAllAvailableDialects();
  }

  Status run(TuningSummary *summary);

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerSandwichDialects(registry);
    return registry;
  }

  Type elementType();
  Status partition(ModuleOp whole);
  Status buildModule();
  Status readModule(const std::string &path);
  Result<int64_t> findRanks();
  Status checkModule(int64_t ranks);
  Status checkWeight(lm::WeightOp weight);
  Status checkPhase(StringRef name, ModuleOp own);
  Status checkLayers(func::FuncOp function);
  Status checkSchedules();
  int64_t threadsOf(lm::Phase phase) const;
  void assignTeams();
  Status tune(TuningSummary *summary);
  Result<TunedModel> tuneTeam(int64_t threads, const ModelTuningOptions &given,
                              const TuningProgress &progress);
  Status writeText(const std::string &text);
  Status writeModule();
  Status writeArtifact(ArtifactWriter writer, const std::string &sharedObject);
  std::vector<PackedWeight> listWeights();
  proto::Phase &phaseNamed(StringRef name);
  void describeSchedules();
  proto::Manifest makeManifest();

  const CompileOptions &options;
  const CompileProgress &progress;
  Checkpoint checkpoint;
  Target target;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  /// Filled at the level that still has them, for the manifest.
  std::vector<proto::Phase> phases;
};

} // namespace

template <typename TypeOrAttribute>
static std::string print(TypeOrAttribute value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

static uint64_t endOf(const PackedWeight &weight) {
  return weight.offset + weight.layerStride * weight.layers.value_or(1);
}

static uint64_t alignmentOf(const PackedWeight &weight) {
  return getWeightAlignment(weight.shape.size());
}

static WeightShard shardOf(lm::ShardKind kind) {
  switch (kind) {
  case lm::ShardKind::Rows:
    return WeightShard::Rows;
  case lm::ShardKind::Columns:
    return WeightShard::Columns;
  case lm::ShardKind::First:
    return WeightShard::First;
  }
  llvm_unreachable("every kind is above");
}

/// Element type of matrices.
Type Compilation::elementType() {
  if (options.dtype == "bf16")
    return BFloat16Type::get(&context);
  return Float32Type::get(&context);
}

/// Turns `whole` into what one rank runs.
Status Compilation::partition(ModuleOp whole) {
  lm::PartitionOptions ranks;
  ranks.ranks = options.tensorParallel;
  return runPasses(whole, [&](OpPassManager &manager) {
    manager.addPass(lm::createPartition(ranks));
  });
}

Status Compilation::buildModule() {
  if (!options.inputIR) {
    module = buildModel(&context, checkpoint.config(), elementType());
    return partition(*module);
  }
  SANDWICH_RETURN_IF_ERROR(readModule(*options.inputIR));
  auto check = [&]() -> Status {
    // What was printed of one rank is divided already.
    SANDWICH_ASSIGN_OR_RETURN(int64_t ranks, findRanks());
    if (ranks != 1 && ranks != options.tensorParallel)
      return makeError("is of one of ", ranks,
                       " ranks; compile it with --tensor-parallel=", ranks);
    SANDWICH_RETURN_IF_ERROR(checkModule(ranks));
    return ranks == 1 ? partition(*module) : Status();
  };
  Status status = check();
  return status ? status : status.error().inContext(*options.inputIR);
}

/// Among how many ranks the module's weights are divided.
Result<int64_t> Compilation::findRanks() {
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      problem = describe(diagnostic);
    return success();
  });
  FailureOr<int64_t> ranks = lm::getRanks(*module);
  if (failed(ranks))
    return makeError(problem);
  return *ranks;
}

/// How deep brackets nest in `text`, outside of strings and comments. The
/// parser recurses for each.
static size_t nestingDepth(StringRef text) {
  size_t depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    } else if (text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i).starts_with("->")) {
      ++i;
    } else if (StringRef("([{<").contains(c)) {
      deepest = std::max(deepest, ++depth);
    } else if (StringRef(")]}>").contains(c) && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

Status Compilation::readModule(const std::string &path) {
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (!problem.empty() ||
        diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    problem = path + ": " + describe(diagnostic);
    return success();
  });
  // Large or endless files would be read into memory by the parser.
  constexpr size_t longest = size_t(64) << 20;
  SANDWICH_ASSIGN_OR_RETURN(std::string text, readTextFile(path, longest));
  constexpr size_t deepest = 200;
  if (nestingDepth(text) > deepest)
    return makeError(path, ": brackets nest more than ", deepest, " deep");
  module = parseSourceString<ModuleOp>(text, &context, path);
  if (!module)
    return makeError(problem.empty() ? path + ": is not a module" : problem);
  return {};
}

/// IR from outside may be of another model, and nothing after it would notice:
/// the sizes in it decide what is read and written. `ranks` are those that it
/// is divided among already.
Status Compilation::checkModule(int64_t ranks) {
  for (auto weight : module->getOps<lm::WeightOp>())
    if (Status status = checkWeight(weight); !status)
      return status.error().inContext("weight " + weight.getSymName().str());
  OwningOpRef<ModuleOp> own =
      buildModel(&context, checkpoint.config(), elementType());
  if (ranks > 1)
    SANDWICH_RETURN_IF_ERROR(partition(*own));
  SANDWICH_RETURN_IF_ERROR(checkPhase("prefill", *own));
  return checkPhase("decode", *own);
}

/// Whether the checkpoint's tensors make up `weight` exactly.
Status Compilation::checkWeight(lm::WeightOp weight) {
  RankedTensorType type = weight.getTensorType();
  int64_t layers = weight.getLayers().value_or(1);
  if (weight.getLayers() && layers != checkpoint.config().layers)
    return makeError("has ", layers, " layers, the checkpoint ",
                     checkpoint.config().layers);
  auto sources = llvm::to_vector(weight.getSources().getAsRange<StringAttr>());
  SmallVector<int64_t> divisors(type.getRank(), 1);
  if (lm::ShardAttr shard = weight.getShardAttr())
    if (shard.getKind() != lm::ShardKind::First)
      divisors[shard.getKind() == lm::ShardKind::Rows ? 0 : 1] =
          shard.getRanks();
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t rows = 0;
    for (StringAttr source : sources) {
      std::string name = source.str();
      if (size_t place = name.find("{}"); place != name.npos)
        name.replace(place, 2, std::to_string(layer));
      const TensorView *tensor = checkpoint.find(name);
      if (!tensor)
        return makeError("tensor ", name, " is not in the checkpoint");
      std::vector<int64_t> shape = tensor->shape;
      if (shape.size() != divisors.size())
        return makeError("its type is ", print(type), ", but tensor ", name,
                         " has other dimensions");
      for (auto [size, divisor] : llvm::zip_equal(shape, divisors)) {
        if (size % divisor != 0)
          return makeError("tensor ", name, " cannot be cut into ", divisor,
                           " equal parts");
        size /= divisor;
      }
      if (ArrayRef(shape).drop_front() != type.getShape().drop_front())
        return makeError("its type is ", print(type), ", but tensor ", name,
                         " has other dimensions");
      if (weight.getInterleave() &&
          shape.front() !=
              type.getDimSize(0) / static_cast<int64_t>(sources.size()))
        return makeError("its type is ", print(type), ", but tensor ", name,
                         " has ", shape.front(), " rows");
      rows += shape.front();
    }
    if (rows != type.getDimSize(0))
      return makeError("its type is ", print(type), ", but its sources have ",
                       rows, " rows");
  }
  return {};
}

/// Whether `value` counts layers and stays below `layers`.
static bool isLayer(Value value, int64_t layers) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : nullptr;
  if (!loop || loop.getInductionVar() != value)
    return false;
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  return first == 0 && step == 1 && end && *end >= 0 && *end <= layers;
}

/// Whether every layer that `function` names exists.
Status Compilation::checkLayers(func::FuncOp function) {
  int64_t layers = checkpoint.config().layers;
  Operation *wrong = nullptr;
  function.walk([&](Operation *op) {
    if (isa_and_nonnull<lm::LMDialect, gemm::GemmDialect>(op->getDialect()))
      for (Value operand : op->getOperands())
        if (operand.getType().isIndex() && !isLayer(operand, layers))
          wrong = op;
  });
  if (!wrong)
    return {};
  return makeError("@", function.getName().str(), ": ",
                   wrong->getName().getStringRef().str(),
                   " has a layer that is not counted by a loop from 0 to at "
                   "most ",
                   layers);
}

/// Whether the function `name` has the caches and logits the runtime prepares,
/// as in the compiler's `own` model.
Status Compilation::checkPhase(StringRef name, ModuleOp own) {
  auto function = module->lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal())
    return makeError("has no function @", name.str());
  auto phase = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
  if (!phase || lm::stringifyPhase(phase.getValue()) != name)
    return makeError("@", name.str(), " needs lm.phase = #lm.phase<",
                     name.str(), ">");
  FunctionType expected =
      own.lookupSymbol<func::FuncOp>(name).getFunctionType();
  if (function.getFunctionType() != expected)
    return makeError(
        "@", name.str(), " is of type ", print(function.getFunctionType()),
        ", but this checkpoint as ", options.dtype, " needs ", print(expected));
  return checkLayers(function);
}

Status Compilation::writeText(const std::string &text) {
  if (options.output.empty() || options.output == "-")
    return writeStandardOutput(text);
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(options.output));
  SANDWICH_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

Status Compilation::writeModule() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << "\n";
  return writeText(text);
}

std::vector<PackedWeight> Compilation::listWeights() {
  std::vector<PackedWeight> weights;
  for (auto weight : module->getOps<lm::WeightOp>()) {
    PackedWeight packed;
    packed.name = weight.getSymName();
    RankedTensorType type = weight.getTensorType();
    packed.bf16 = type.getElementType().isBF16();
    packed.shape.assign(type.getShape().begin(), type.getShape().end());
    packed.layers = weight.getLayers();
    for (auto source : weight.getSources().getAsRange<StringAttr>())
      packed.sources.push_back(source.str());
    packed.interleave = weight.getInterleave();
    if (lm::ShardAttr shard = weight.getShardAttr()) {
      packed.shard = shardOf(shard.getKind());
      packed.ranks = shard.getRanks();
    }
    if (auto packing =
            dyn_cast_or_null<gemm::PackingAttr>(weight.getPackingAttr()))
      packed.packing = packing.getPacking();
    packed.offset = *weight.getOffset();
    packed.sliceBytes = weight.getSliceBytes();
    packed.layerStride =
        weight.getLayers()
            ? *weight.getLayerStride()
            : llvm::alignTo(packed.sliceBytes, alignmentOf(packed));
    weights.push_back(std::move(packed));
  }
  return weights;
}

proto::Phase &Compilation::phaseNamed(StringRef name) {
  for (proto::Phase &phase : phases)
    if (phase.name() == name)
      return phase;
  phases.emplace_back().set_name(name.str());
  return phases.back();
}

/// Whether the target has the instructions of every schedule.
Status Compilation::checkSchedules() {
  std::string missing;
  module->walk([&](gemm::MatmulOp matmul) {
    for (gemm::ScheduleAttr schedule : matmul.getSchedules()->getSchedules()) {
      const MicroKernel &kernel = schedule.getSchedule().microKernel;
      if (!llvm::is_contained(target.matrixISAs, kernel.isa))
        missing = kernel.name();
    }
  });
  if (missing.empty())
    return {};
  return makeError("micro-kernel ", missing, " needs instructions that ",
                   target.name, " lacks");
}

/// Keeps the schedules of each phase for `inspect`.
void Compilation::describeSchedules() {
  for (auto function : module->getOps<func::FuncOp>()) {
    if (!function->hasAttr(lm::phaseAttributeName))
      continue;
    proto::Phase &phase = phaseNamed(function.getName());
    function.walk([&](gemm::MatmulOp matmul) {
      gemm::ScheduleTableAttr table = *matmul.getSchedules();
      int64_t from = 1;
      for (auto [rows, schedule] :
           llvm::zip_equal(table.getMaxRows(), table.getSchedules())) {
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

proto::Manifest Compilation::makeManifest() {
  const ModelConfig &config = checkpoint.config();
  proto::Manifest manifest;
  proto::ModelConfiguration &model = *manifest.mutable_model();
  auto folder =
      std::filesystem::absolute(options.modelFolder).lexically_normal();
  model.set_name(folder.has_filename() ? folder.filename()
                                       : folder.parent_path().filename());
  model.set_architecture(std::string(architectureName(config.architecture)));
  model.set_hidden_size(config.hiddenSize);
  model.set_intermediate_size(config.intermediateSize);
  model.set_layers(config.layers);
  model.set_heads(config.heads);
  model.set_kv_heads(config.kvHeads);
  model.set_head_dim(config.headDim);
  model.set_vocab_size(config.vocabSize);
  model.set_context_length(
      options.contextLength.value_or(config.maxPositionEmbeddings));
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

  proto::Target &forTarget = *manifest.mutable_target();
  forTarget.set_name(target.name);
  forTarget.set_dtype(options.dtype);
  forTarget.set_phase_abi_version(SANDWICH_PHASE_ABI_VERSION);
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
  if (options.tensorParallel > 1)
    manifest.set_ranks(static_cast<uint32_t>(options.tensorParallel));

  proto::KVCache &cache = *manifest.mutable_kv_cache();
  cache.set_block_tokens(SANDWICH_KV_BLOCK_TOKENS);
  cache.set_block_bytes(uint64_t(config.layers) *
                        (config.kvHeads / options.tensorParallel) * 2 *
                        config.headDim * SANDWICH_KV_BLOCK_TOKENS *
                        (options.dtype == "bf16" ? 2 : 4));
  cache.set_dtype(options.dtype == "bf16" ? "f16" : "f32");
  return manifest;
}

Status Compilation::writeArtifact(ArtifactWriter writer,
                                  const std::string &sharedObject) {
  proto::Manifest manifest = makeManifest();
  SANDWICH_RETURN_IF_ERROR(artifact::validateConfiguration(manifest));
  std::vector<PackedWeight> weights = listWeights();
  const int64_t ranks = options.tensorParallel;
  uint64_t common = 0, end = 0;
  for (const PackedWeight &weight : weights) {
    end = std::max(end, endOf(weight));
    if (weight.shard == WeightShard::Whole)
      common = std::max(common, endOf(weight));
  }
  uint64_t shard = 0;
  if (ranks > 1) {
    common = llvm::alignTo(common, weightRegionAlignment);
    shard = llvm::alignTo(end, weightRegionAlignment) - common;
    manifest.set_common_weight_bytes(common);
    manifest.set_shard_bytes(shard);
  }
  const uint64_t total = ranks > 1 ? common + ranks * shard : end;
  SANDWICH_RETURN_IF_ERROR(writer.reserveWeights(total));
  auto pack = [&](const PackedWeight &weight, int64_t rank) {
    return packWeight(
        weight, rank, checkpoint,
        [&](std::span<const std::byte> bytes) -> Status {
          SANDWICH_RETURN_IF_ERROR(
              progress("packing weights",
                       static_cast<double>(writer.weightsBytes()) / total));
          return writer.appendWeights(bytes);
        });
  };
  // Those that all ranks read come first.
  std::ranges::stable_sort(weights, {}, &PackedWeight::offset);
  for (const PackedWeight &weight : weights) {
    proto::Tensor tensor;
    tensor.set_name(weight.name);
    tensor.set_dtype(weight.bf16 ? "bf16" : "f32");
    if (weight.layers)
      tensor.add_shape(*weight.layers);
    for (int64_t size : weight.shape)
      tensor.add_shape(size);
    tensor.set_layout("row-major");
    if (weight.packing)
      tensor.set_layout(
          print(gemm::PackingAttr::get(&context, *weight.packing)));
    for (const std::string &source : weight.sources)
      tensor.add_sources(source);
    if (weight.shard != WeightShard::Whole) {
      tensor.set_ranks(static_cast<uint32_t>(ranks));
      if (writer.weightsBytes() < common)
        SANDWICH_RETURN_IF_ERROR(writer.skipTo(common));
    }
    SANDWICH_ASSIGN_OR_RETURN(uint64_t offset,
                              writer.beginTensor(tensor, alignmentOf(weight)));
    if (offset != weight.offset)
      return makeError("weight ", weight.name, " would lie at ", offset,
                       " instead of ", weight.offset,
                       "; the IR's offsets are not those of lm-place-weights");
    SANDWICH_RETURN_IF_ERROR(pack(weight, 0));
  }
  for (int64_t rank = 1; rank < ranks; ++rank)
    for (const PackedWeight &weight : weights)
      if (weight.shard != WeightShard::Whole) {
        SANDWICH_RETURN_IF_ERROR(writer.skipTo(weight.offset + rank * shard));
        SANDWICH_RETURN_IF_ERROR(pack(weight, rank));
      }
  SANDWICH_RETURN_IF_ERROR(writer.skipTo(total));
  SANDWICH_RETURN_IF_ERROR(progress("packing weights", 1));
  SANDWICH_RETURN_IF_ERROR(writer.addFile(artifact::phasesFile, sharedObject));
  if (checkpoint.tokenizerPath())
    SANDWICH_RETURN_IF_ERROR(
        writer.copyFile(artifact::tokenizerFile, *checkpoint.tokenizerPath()));
  if (checkpoint.tokenizerConfigPath())
    SANDWICH_RETURN_IF_ERROR(writer.copyFile(
        artifact::tokenizerConfigFile, *checkpoint.tokenizerConfigPath()));
  return writer.commit(std::move(manifest));
}

/// The threads that run `phase`.
int64_t Compilation::threadsOf(lm::Phase phase) const {
  const bool decode = phase == lm::Phase::Decode;
  if (options.plan)
    return static_cast<int64_t>(
        (decode ? options.plan->decode : options.plan->prefill).front().size());
  return decode ? options.decodeThreads.value_or(options.threads)
                : options.threads;
}

/// Tunes the matmuls that run on `threads` threads and have no schedules yet,
/// and gives them what was found.
Result<TunedModel> Compilation::tuneTeam(int64_t threads,
                                         const ModelTuningOptions &given,
                                         const TuningProgress &progress) {
  SmallVector<gemm::MatmulOp> matmuls;
  std::vector<TunedMatmul> uses;
  module->walk([&](gemm::MatmulOp matmul) {
    auto function = matmul->getParentOfType<func::FuncOp>();
    if (matmul.getSchedules() ||
        lm::getThreads(function, options.threads) != threads)
      return;
    // Logits are wanted of the last token of each sequence, so of few rows.
    constexpr int64_t mostLogits = 32;
    bool makesLogits =
        llvm::any_of(matmul.getResult().getUsers(),
                     llvm::IsaPred<func::ReturnOp, lm::AllGatherOp>);
    matmuls.push_back(matmul);
    uses.push_back({gemm::getShape(matmul),
                    makesLogits ? std::min(mostLogits, options.maxTokens)
                                : options.maxTokens,
                    makesLogits});
  });
  const std::vector<TunedMatmul> shapes = differentShapes(uses);
  ModelTuningOptions tuning = given;
  tuning.threads = threads;
  // Tuning for a plan runs where the team will; that of decode comes second.
  if (options.plan && threads != threadsOf(lm::Phase::Prefill))
    tuning.cpus = options.plan->decode.front();
  else if (tuning.cpus.size() > static_cast<size_t>(threads))
    tuning.cpus.resize(threads);
  SANDWICH_ASSIGN_OR_RETURN(TunedModel result,
                            tuneModel(shapes, target, tuning, progress));
  for (auto [matmul, use] : llvm::zip_equal(matmuls, uses)) {
    auto shape = std::ranges::find(shapes, use.shape, &TunedMatmul::shape);
    const TunedGroup &found = result.groups[shape - shapes.begin()];
    matmul.setSchedulesAttr(gemm::getTableAttr(&context, found.table));
    if (found.group.shape.packing)
      lm::lookupWeight(matmul, matmul.getWeightAttr())
          .setPackingAttr(
              gemm::PackingAttr::get(&context, *found.group.shape.packing));
  }
  return result;
}

/// Tunes the matmuls that have no schedules yet, into the database.
Status Compilation::tune(TuningSummary *summary) {
  SANDWICH_RETURN_IF_ERROR(runPasses(*module, [](OpPassManager &manager) {
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
  std::vector<int64_t> teams = {threadsOf(lm::Phase::Prefill)};
  if (threadsOf(lm::Phase::Decode) != teams.front())
    teams.push_back(threadsOf(lm::Phase::Decode));
  TunedModel result;
  for (size_t i = 0; i < teams.size(); ++i) {
    SANDWICH_ASSIGN_OR_RETURN(
        TunedModel team, tuneTeam(teams[i], tuning, [&](double done) {
          return progress("tuning", (static_cast<double>(i) + done) /
                                        static_cast<double>(teams.size()));
        }));
    tuning.seconds = std::max(tuning.seconds - team.seconds, 1e-3);
    result.append(std::move(team));
  }
  // Inputs that micro-kernels read as bf16 are made so before anybody looks.
  gemm::ScheduleMatmulsOptions scheduling;
  scheduling.target = options.target;
  scheduling.threads = options.threads;
  SANDWICH_RETURN_IF_ERROR(runPasses(*module, [&](OpPassManager &manager) {
    manager.addPass(gemm::createScheduleMatmuls(scheduling));
  }));
  if (report) {
    SANDWICH_RETURN_IF_ERROR(report->write(
        writeTuningReport(result, makeManifest().model().name())));
    SANDWICH_RETURN_IF_ERROR(report->commit());
  }
  if (summary) {
    summary->shapes = static_cast<int64_t>(result.groups.size());
    summary->known = result.known;
    summary->measurements = result.measurements;
    summary->seconds = result.seconds;
    for (const TunedGroup &group : result.groups)
      summary->complete &= group.complete;
  }
  return {};
}

/// Says in the IR how many threads run each phase, where they differ.
void Compilation::assignTeams() {
  const auto type = IntegerType::get(&context, 64);
  for (auto function : module->getOps<func::FuncOp>()) {
    auto phase = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
    if (!phase || function->hasAttr(lm::threadsAttributeName))
      continue;
    const int64_t threads = threadsOf(phase.getValue());
    if (threads != options.threads)
      function->setAttr(lm::threadsAttributeName,
                        IntegerAttr::get(type, threads));
  }
}

Status Compilation::run(TuningSummary *summary) {
  // What cannot be written shows now, not after minutes.
  std::optional<ArtifactWriter> writer;
  if (options.emit == Emit::Artifact) {
    SANDWICH_RETURN_IF_ERROR(artifact::validateConfiguration(makeManifest()));
    SANDWICH_ASSIGN_OR_RETURN(writer, ArtifactWriter::create(options.output));
  }
  SANDWICH_RETURN_IF_ERROR(progress("building model IR", 0));
  SANDWICH_RETURN_IF_ERROR(buildModule());
  assignTeams();
  if (options.emit == Emit::ModelIR)
    return writeModule();

  if (options.tune != Tune::None)
    SANDWICH_RETURN_IF_ERROR(tune(summary));
  SANDWICH_RETURN_IF_ERROR(progress("scheduling", 0));
  ModelToScheduleOptions scheduling;
  if (options.tune == Tune::None)
    scheduling.database = options.schedules.value_or("");
  scheduling.target = options.target;
  scheduling.threads = options.threads;
  SANDWICH_RETURN_IF_ERROR(runPasses(*module, [&](OpPassManager &manager) {
    buildModelToSchedulePipeline(manager, scheduling);
  }));
  SANDWICH_RETURN_IF_ERROR(checkSchedules());
  describeSchedules();
  if (options.emit == Emit::ScheduleIR)
    return writeModule();

  SANDWICH_RETURN_IF_ERROR(progress("lowering to loops", 0));
  ScheduleToLoopsOptions lowering;
  lowering.target = options.target;
  lowering.threads = options.threads;
  lowering.maxTokens = options.maxTokens;
  SANDWICH_RETURN_IF_ERROR(runPasses(*module, [&](OpPassManager &manager) {
    buildScheduleToLoopsPipeline(manager, lowering);
  }));
  for (auto function : module->getOps<func::FuncOp>()) {
    phase::ProgramAttr program = phase::getProgram(function);
    if (!program)
      continue;
    proto::Phase &phase = phaseNamed(function.getName());
    phase.set_symbol((SANDWICH_PHASE_SYMBOL_PREFIX + function.getName()).str());
    phase.set_threads(program.getThreads());
    phase.set_max_tokens(program.getMaxTokens());
    phase.set_max_logit_rows(program.getMaxLogitRows());
    phase.set_workspace_bytes(program.getWorkspaceBytes());
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
  if (options.emit == Emit::LoopIR)
    return writeModule();

  SANDWICH_RETURN_IF_ERROR(progress("lowering to LLVM", 0));
  // The weights' places are needed after the module has become LLVM's.
  OwningOpRef<ModuleOp> loops(cast<ModuleOp>(module->clone()));
  llvm::LLVMContext llvmContext;
  SANDWICH_ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::Module> code,
      lowerToLLVM(*module, target, options.emulateAMX, llvmContext));
  SANDWICH_RETURN_IF_ERROR(progress("optimizing", 0));
  SANDWICH_RETURN_IF_ERROR(optimize(*code, target));
  if (options.emit == Emit::LLVMIR) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    code->print(stream, nullptr);
    return writeText(text);
  }
  SANDWICH_RETURN_IF_ERROR(progress("generating code", 0));
  if (options.emit == Emit::Assembly) {
    SANDWICH_ASSIGN_OR_RETURN(std::string text,
                              emitCode(*code, target, CodeKind::Assembly));
    return writeText(text);
  }
  SANDWICH_ASSIGN_OR_RETURN(std::string object,
                            emitCode(*code, target, CodeKind::Object));
  SANDWICH_ASSIGN_OR_RETURN(std::string sharedObject, linkSharedObject(object));
  module = std::move(loops);
  return writeArtifact(std::move(*writer), sharedObject);
}

/// Whether `plan` has so many processes, all with as many threads.
static Status checkPlan(const PlanCores &plan, int64_t processes) {
  for (const auto *each : {&plan.prefill, &plan.decode}) {
    if (static_cast<int64_t>(each->size()) != processes)
      return makeError("the plan has ", each->size(), " processes, not ",
                       processes);
    for (const std::vector<unsigned> &cpus : *each) {
      if (cpus.empty() || cpus.size() > phase::maxThreads)
        return makeError("the plan has a process with ", cpus.size(),
                         " cores in a phase; between 1 and ", phase::maxThreads,
                         " are accepted");
      if (cpus.size() != each->front().size())
        return makeError("the plan's processes have different numbers of "
                         "cores, ",
                         each->front().size(), " and ", cpus.size());
    }
  }
  return {};
}

Status sandwich::compile(const CompileOptions &options,
                         const CompileProgress &progress,
                         TuningSummary *summary) {
  if (options.dtype != "bf16" && options.dtype != "f32")
    return makeError("dtype '", options.dtype, "' is neither bf16 nor f32");
  for (int64_t threads :
       {options.threads, options.decodeThreads.value_or(options.threads)})
    if (threads < 1 || threads > phase::maxThreads)
      return makeError("threads must be between 1 and ", phase::maxThreads,
                       ", not ", threads);
  if (options.plan)
    SANDWICH_RETURN_IF_ERROR(checkPlan(*options.plan, options.tensorParallel));
  if (options.maxTokens < 1 || options.maxTokens > phase::maxStepRows)
    return makeError("the largest step must have between 1 and ",
                     phase::maxStepRows, " tokens, not ", options.maxTokens);
  if (options.tune != Tune::None && !options.schedules)
    return makeError("tuning needs a file for the schedules");
  if (options.tuningSeconds && !(*options.tuningSeconds > 0))
    return makeError("the budget for tuning must be positive, not ",
                     *options.tuningSeconds, " seconds");
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.target));
  if (target.architecture != CpuArchitecture::X86_64)
    return makeError("cannot compile a model for ", target.name,
                     ": only micro-kernels have been made for its "
                     "architecture; models compile for x86-64");
  if (options.emulateAMX) {
    target.features.remove(CpuFeature::AMX_TILE);
    target.features.remove(CpuFeature::AMX_BF16);
  }
  SANDWICH_RETURN_IF_ERROR(progress("reading the checkpoint", 0));
  SANDWICH_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                            Checkpoint::open(options.modelFolder));
  const ModelConfig &config = checkpoint.config();
  if (auto reason = tensorParallelSizes(config).refuse(options.tensorParallel))
    return makeError("the model cannot be divided: ", *reason);
  if (options.contextLength &&
      (*options.contextLength < 1 ||
       *options.contextLength > config.maxPositionEmbeddings))
    return makeError("a context of ", *options.contextLength,
                     " tokens is not between 1 and the ",
                     config.maxPositionEmbeddings, " the model was made for");
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::string> unused,
                            checkpoint.checkTensors());
  // One that no tool could read shows now, not when the artifact is used.
  if (checkpoint.tokenizerPath())
    SANDWICH_RETURN_IF_ERROR(Tokenizer::fromFiles(
        *checkpoint.tokenizerPath(), checkpoint.tokenizerConfigPath()));
  for (const std::string &name : unused)
    llvm::errs() << "warning: " << options.modelFolder << ": tensor " << name
                 << " is not used\n";
  return Compilation(options, progress, std::move(checkpoint),
                     std::move(target))
      .run(summary);
}
