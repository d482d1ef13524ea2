//===- Compiler.cpp - From a checkpoint to an artifact --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/Compiler.h"

#include "ArtifactAssembly.h"
#include "InputModule.h"
#include "ManifestBuilder.h"
#include "ModuleTuning.h"
#include "PrintAttribute.h"
#include "sandwich/Artifact/ArtifactWriter.h"
#include "sandwich/Calibration/Calibration.h"
#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"
#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Runtime/Text/Tokenizer.h"
#include "sandwich/Support/File.h"
#include "sandwich/Support/Process.h"
#include "sandwich/Support/TensorParallelism.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

using namespace mlir;
using namespace sandwich;

namespace {

/// One compilation, from the checkpoint on.
class Compilation {
public:
  Compilation(const CompileOptions &options, const CompileProgress &progress,
              Checkpoint checkpoint, Target target)
      : options(options), progress(progress), checkpoint(std::move(checkpoint)),
        target(std::move(target)), context(registry()),
        manifest(this->options, this->checkpoint.config(), this->target) {
    context.loadAllAvailableDialects();
  }

  Status run(TuningSummary *summary);

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerSandwichDialects(registry);
    return registry;
  }

  Type elementTypeNamed(StringRef name);
  std::string defaultKVDtype();
  Result<OwningOpRef<ModuleOp>> buildOwnModel();
  Status partition(ModuleOp whole);
  void markDeterministic(ModuleOp marked);
  Status buildModule();
  Status checkSchedules();
  void forgetUnusedTiles();
  void forgetUnusedIntegers();
  Status assignTeams();
  Status checkCalibration();
  Status calibrateText();
  Status writeText(const std::string &text);
  Status writeModule();

  /// With `kvDtype`, once it is known.
  CompileOptions options;
  const CompileProgress &progress;
  Checkpoint checkpoint;
  Target target;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ManifestBuilder manifest;
  /// Empty without a text for calibration.
  ChannelImportance importance;
};

} // namespace

Type Compilation::elementTypeNamed(StringRef name) {
  if (name == "bf16")
    return BFloat16Type::get(&context);
  if (name == "f16")
    return Float16Type::get(&context);
  return Float32Type::get(&context);
}

/// What CompileOptions::kvDtype says, of `module` if that is from outside.
std::string Compilation::defaultKVDtype() {
  if (module)
    for (auto function : module->getOps<func::FuncOp>())
      for (Type type : function.getFunctionType().getInputs())
        if (auto cache = dyn_cast<lm::KVCacheType>(type))
          return std::string(
              name(lm::attentionElementOf(cache.getElementType())));
  if (options.dtype == "f32")
    return "f32";
  // What an encoder keeps is for one step.
  if (checkpoint.config().encoder)
    return "bf16";
  // Whoever runs the model as f16 has keys and values in its range.
  for (int64_t layer = 0; layer < checkpoint.config().layers; ++layer)
    for (const char *name :
         {"self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
      const TensorView *tensor = checkpoint.find(layerTensorName(layer, name));
      if (!tensor || tensor->elementType != ElementType::F16)
        return "bf16";
    }
  return "f16";
}

/// The weights that operations of `module` read in `role`, each once.
static llvm::SetVector<Operation *> findWeights(ModuleOp module,
                                                lm::WeightRole role) {
  SymbolTableCollection symbols;
  llvm::SetVector<Operation *> weights;
  module->walk([&](lm::StepOpInterface op) {
    for (const lm::WeightUse &use : op.getWeightUses())
      if (use.role == role)
        weights.insert(lm::lookupWeight(symbols, op, use.name));
  });
  return weights;
}

/// Has `weight` stored as `storage`, in groups. Errors: its rows are no whole
/// groups.
static Status quantize(lm::WeightOp weight, const StorageFormat &storage) {
  MLIRContext *context = weight.getContext();
  RankedTensorType type = weight.getTensorType();
  if (Status status = verify(storage, type.getDimSize(1)); !status)
    return status.error().inContext("weight " + weight.getSymName().str());
  weight.setType(type.clone(Float32Type::get(context)));
  weight.setStorageAttr(lm::StorageAttr::get(context, storage));
  return {};
}

/// What holds the numbers that `checkpoint` has of `weight`, in all layers as
/// they are; nothing if some of it are not quantized, or no format holds all.
static std::optional<StorageFormat>
findStoredFormat(lm::WeightOp weight, const Checkpoint &checkpoint) {
  std::optional<StorageFormat> joined;
  for (auto source : weight.getSources().getAsRange<StringAttr>()) {
    const std::optional<StorageFormat> format =
        naturalFormat(checkpoint, source.str(),
                      static_cast<int64_t>(weight.getLayers().value_or(1)));
    if (!format)
      return std::nullopt;
    joined = joined
                 ? join(*joined, *format, weight.getTensorType().getDimSize(1))
                 : *format;
    if (!joined)
      return std::nullopt;
  }
  return joined;
}

/// Has each of `weights` stored as the quantized numbers that `checkpoint` has
/// of it, if it has any. Errors: they cannot stay as they are.
static Status storeAsTheyAre(const llvm::SetVector<Operation *> &weights,
                             const Checkpoint &checkpoint) {
  for (Operation *op : weights) {
    auto weight = cast<lm::WeightOp>(op);
    for (auto source : weight.getSources().getAsRange<StringAttr>())
      SANDWICH_RETURN_IF_ERROR(checkColumnOrder(
          checkpoint, source.str(),
          static_cast<int64_t>(weight.getLayers().value_or(1))));
    if (std::optional<StorageFormat> format =
            findStoredFormat(weight, checkpoint))
      SANDWICH_RETURN_IF_ERROR(quantize(weight, *format));
  }
  return {};
}

/// Whether a matrix lies behind the layers: of a model that generates, it makes
/// the logits.
static bool isHead(lm::WeightOp matrix) { return !matrix.getLayers(); }

/// How `matrix` is stored where `dtype` is `weights`. A table of 4 bits would
/// cost more than it saves: tokens read but a row of it, and as the head it has
/// the last word. A head alone is as large a part of what is read as others.
static Result<StorageFormat> storageOf(lm::WeightOp matrix, bool isTable,
                                       const CompileOptions &options,
                                       const StorageFormat &weights) {
  if (!isHead(matrix))
    return weights;
  if (options.headDtype)
    return StorageFormat::parseOption(*options.headDtype);
  if (!isTable || !weights.hasIntegers() || weights.bits() >= 8)
    return weights;
  SANDWICH_ASSIGN_OR_RETURN(const StorageFormat wider,
                            StorageFormat::parseOption("int8"));
  return verify(wider, matrix.getTensorType().getDimSize(1)) ? wider : weights;
}

/// Has the tables of `module` that are not matrices, too, stored as
/// `options.embeddingDtype` says or, if it says nothing, beside `weights` that
/// are quantized with 8 bits where rows are whole groups: of a table a token
/// reads but a row.
static Status storeTables(ModuleOp module, const CompileOptions &options,
                          const StorageFormat &weights) {
  if (!options.embeddingDtype && !weights.isQuantized())
    return {};
  SANDWICH_ASSIGN_OR_RETURN(
      const StorageFormat storage,
      StorageFormat::parseOption(options.embeddingDtype.value_or("int8")));
  if (!storage.isQuantized())
    return {};
  const llvm::SetVector<Operation *> matrices =
      findWeights(module, lm::WeightRole::Matrix);
  for (Operation *table : findWeights(module, lm::WeightRole::Table)) {
    auto weight = cast<lm::WeightOp>(table);
    if (matrices.contains(table))
      continue;
    if (!options.embeddingDtype &&
        !verify(storage, weight.getTensorType().getDimSize(1)))
      continue;
    SANDWICH_RETURN_IF_ERROR(quantize(weight, storage));
  }
  return {};
}

/// How most numbers of matrices of `module` are stored: IR may have others than
/// the option says. Nothing of a model without any.
static std::optional<StorageFormat> findMainStorage(ModuleOp module) {
  std::map<StorageFormat, int64_t> elements;
  for (Operation *matrix : findWeights(module, lm::WeightRole::Matrix)) {
    auto weight = cast<lm::WeightOp>(matrix);
    elements[weight.getStorageFormat()] +=
        weight.getTensorType().getNumElements() *
        static_cast<int64_t>(weight.getLayers().value_or(1));
  }
  auto most = std::ranges::max_element(
      elements, {}, [](const auto &entry) { return entry.second; });
  if (most == elements.end())
    return std::nullopt;
  return most->first;
}

/// Model IR of the checkpoint.
Result<OwningOpRef<ModuleOp>> Compilation::buildOwnModel() {
  SANDWICH_ASSIGN_OR_RETURN(
      const StorageFormat weights,
      StorageFormat::parseOption(options.dtype.value_or("bf16")));
  // Beside quantized matrices, vectors are what most checkpoints have.
  OwningOpRef<ModuleOp> own = buildModel(
      &context, checkpoint.config(),
      elementTypeNamed(weights.isQuantized() ? "bf16" : weights.name()),
      lm::getType(*attentionElementNamed(*options.kvDtype), &context));
  const auto matrices = findWeights(*own, lm::WeightRole::Matrix);
  const auto tables = findWeights(*own, lm::WeightRole::Table);
  for (Operation *matrix : matrices) {
    auto weight = cast<lm::WeightOp>(matrix);
    SANDWICH_ASSIGN_OR_RETURN(
        const StorageFormat storage,
        storageOf(weight, tables.contains(matrix), options, weights));
    if (storage.isQuantized())
      SANDWICH_RETURN_IF_ERROR(quantize(weight, storage));
  }
  if (!options.dtype) {
    llvm::SetVector<Operation *> kept = matrices;
    if (!options.embeddingDtype)
      kept.insert(tables.begin(), tables.end());
    if (options.headDtype)
      kept.remove_if([&](Operation *weight) {
        return matrices.contains(weight) && isHead(cast<lm::WeightOp>(weight));
      });
    SANDWICH_RETURN_IF_ERROR(storeAsTheyAre(kept, checkpoint));
  }
  SANDWICH_RETURN_IF_ERROR(storeTables(*own, options, weights));
  markDeterministic(*own);
  return own;
}

/// Before the model is divided among ranks, which depends on it.
void Compilation::markDeterministic(ModuleOp marked) {
  if (options.deterministic)
    marked->setAttr(lm::deterministicAttributeName, UnitAttr::get(&context));
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
    SANDWICH_ASSIGN_OR_RETURN(module, buildOwnModel());
    return partition(*module);
  }
  auto check = [&]() -> Status {
    // What was printed of one rank is divided already.
    SANDWICH_ASSIGN_OR_RETURN(int64_t ranks, findRanks(*module));
    if (ranks != 1 && ranks != options.tensorParallel)
      return makeError("is of one of ", ranks,
                       " ranks; compile it with --tensor-parallel=", ranks);
    // Matmuls that are fused and scheduled do not tell what they are for.
    if (ranks != options.tensorParallel &&
        module->walk([](gemm::MatmulOp) { return WalkResult::interrupt(); })
            .wasInterrupted())
      return makeError("is schedule IR of one rank, which cannot be divided; "
                       "give model IR, or IR made with --tensor-parallel=",
                       options.tensorParallel);
    SANDWICH_ASSIGN_OR_RETURN(OwningOpRef<ModuleOp> own, buildOwnModel());
    if (ranks > 1)
      SANDWICH_RETURN_IF_ERROR(partition(*own));
    SANDWICH_RETURN_IF_ERROR(checkInputModule(
        *module, *own, checkpoint,
        options.dtype.value_or("bf16") + " with a KV cache of " +
            *options.kvDtype,
        options.contextLength.value_or(checkpoint.config().usualContext())));
    return ranks == 1 ? partition(*module) : Status();
  };
  Status status = check();
  return status ? status : status.error().inContext(*options.inputIR);
}

Status Compilation::writeText(const std::string &text) {
  if (options.output.empty() || options.output == "-") {
    SANDWICH_RETURN_IF_ERROR(progress(stagePrinting, 0));
    SANDWICH_RETURN_IF_ERROR(writeStandardOutput(text));
    (void)progress(stageDone, 1);
    return {};
  }
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file,
                            PendingFile::create(options.output));
  SANDWICH_RETURN_IF_ERROR(file.write(text));
  SANDWICH_RETURN_IF_ERROR(file.commit());
  (void)progress(stageDone, 1);
  return {};
}

Status Compilation::writeModule() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << "\n";
  return writeText(text);
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

/// Without a matmul of integers the program needs no CPU that has instructions
/// for them.
void Compilation::forgetUnusedIntegers() {
  auto multipliesBy = [&](bool (*isSuch)(MatrixISA)) {
    WalkResult result = module->walk([&](gemm::MatmulOp matmul) {
      const bool multiplies =
          llvm::any_of(matmul.getSchedules()->getSchedules(),
                       [&](gemm::ScheduleAttr schedule) {
                         return isSuch(schedule.getSchedule().microKernel.isa);
                       });
      return multiplies ? WalkResult::interrupt() : WalkResult::advance();
    });
    return result.wasInterrupted();
  };
  if (!multipliesBy(hasIntegerTiles))
    target.features.remove(CpuFeature::AMX_INT8);
  if (multipliesBy(multipliesIntegers))
    return;
  target.features.remove(CpuFeature::AVXVNNI);
  target.features.remove(CpuFeature::AVX512VNNI);
  target.features.remove(CpuFeature::ARM_DOTPROD);
  target.features.remove(CpuFeature::ARM_I8MM);
}

/// Without a tile instruction in the program it needs no CPU that has them.
void Compilation::forgetUnusedTiles() {
  WalkResult result = module->walk([](Operation *op) {
    return isa_and_present<tile::TileDialect>(op->getDialect())
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return;
  target.features.remove(CpuFeature::AMX_TILE);
  target.features.remove(CpuFeature::AMX_BF16);
}

/// Says in the IR how many threads run each phase, where they differ, or
/// whether that is what IR from outside says already.
Status Compilation::assignTeams() {
  const auto type = IntegerType::get(&context, 64);
  for (auto function : module->getOps<func::FuncOp>()) {
    auto phase = function->getAttrOfType<lm::PhaseAttr>(lm::phaseAttributeName);
    if (!phase)
      continue;
    const int64_t threads = threadsOf(options, phase.getValue());
    const int64_t there = lm::getThreads(function, threads);
    const bool isDecode = phase.getValue() == lm::Phase::Decode;
    const bool isAsked = !options.threadsAreDefault || options.plan ||
                         (isDecode && options.decodeThreads);
    if (there != threads && isAsked)
      return makeError("@", function.getName().str(), " has ",
                       lm::threadsAttributeName.str(), " = ", there,
                       ", but the options ask for ", threads);
    if (there != options.threads)
      function->setAttr(lm::threadsAttributeName,
                        IntegerAttr::get(type, there));
  }
  return {};
}

/// Whether some matrix is rounded to integers, for which alone a text is of
/// use.
Status Compilation::checkCalibration() {
  bool hasIntegers = false;
  for (Operation *matrix : findWeights(*module, lm::WeightRole::Matrix)) {
    auto weight = cast<lm::WeightOp>(matrix);
    const StorageFormat storage = weight.getStorageFormat();
    if (!storage.hasIntegers())
      continue;
    hasIntegers = true;
    const auto layers = static_cast<int64_t>(weight.getLayers().value_or(1));
    for (auto source : weight.getSources().getAsRange<StringAttr>())
      for (int64_t layer = 0; layer < layers; ++layer) {
        const TensorView *tensor =
            checkpoint.find(numberLayer(source.str(), layer));
        if (tensor && !hasGroupsOf(*tensor, storage))
          return {};
      }
  }
  if (!hasIntegers)
    return makeError("a text for calibration is for weights of integers; give "
                     "--dtype=int8 or --dtype=int4, or leave it out");
  return makeError(options.modelFolder,
                   ": has matrices of integers, which are taken as they are, "
                   "so that there is nothing to round; leave out the text for "
                   "calibration");
}

/// Lets the text for calibration say which channels matter.
Status Compilation::calibrateText() {
  const std::string &path = *options.calibrationText;
  SANDWICH_RETURN_IF_ERROR(progress("calibrating", 0));
  SANDWICH_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                            readTokenizer(checkpoint));
  SANDWICH_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                            readTextTokens(path, tokenizer));
  SANDWICH_ASSIGN_OR_RETURN(const int64_t context,
                            contextOf(options, checkpoint.config()));
  const auto most =
      static_cast<size_t>(std::min(options.calibrationTokens, context));
  tokens.resize(std::min(tokens.size(), most));
  Result<ChannelImportance> calibrated =
      calibrate(checkpoint, tokens,
                [&](double done) { return progress("calibrating", done); });
  if (!calibrated)
    return calibrated.error();
  importance = *std::move(calibrated);
  return {};
}

Status Compilation::run(TuningSummary *summary) {
  if (options.inputIR) {
    SANDWICH_ASSIGN_OR_RETURN(module,
                              readInputModule(*options.inputIR, context));
    options.deterministic |= lm::isDeterministic(*module);
    markDeterministic(*module);
  }
  if (!options.kvDtype)
    options.kvDtype = defaultKVDtype();
  if (options.kvDtype == "int8" && checkpoint.config().headDim % 4 != 0)
    return makeError("a KV cache of int8 needs heads of a multiple of 4 "
                     "channels, not of ",
                     checkpoint.config().headDim);
  // What cannot be written shows now, not after minutes.
  std::optional<ArtifactWriter> writer;
  if (options.emit == Emit::Artifact) {
    SANDWICH_RETURN_IF_ERROR(artifact::validateConfiguration(manifest.build()));
    SANDWICH_ASSIGN_OR_RETURN(writer, ArtifactWriter::create(options.output));
  }
  SANDWICH_RETURN_IF_ERROR(progress("building model IR", 0));
  SANDWICH_RETURN_IF_ERROR(buildModule());
  if (std::optional<StorageFormat> storage = findMainStorage(*module))
    options.dtype = storage->name();
  if (Status status = assignTeams(); !status)
    return status.error().inContext(*options.inputIR);
  if (options.emit == Emit::ModelIR)
    return writeModule();
  if (options.calibrationText) {
    SANDWICH_RETURN_IF_ERROR(checkCalibration());
    SANDWICH_RETURN_IF_ERROR(calibrateText());
  }

  if (options.tune != Tune::None)
    SANDWICH_RETURN_IF_ERROR(tuneModule(*module, options, target,
                                        manifest.build().model().name(),
                                        progress, summary));
  // Lines are those of the IR that was given, if one was.
  auto runPipeline =
      [&](llvm::function_ref<void(OpPassManager &)> build) -> Status {
    Status status = runPasses(*module, build);
    if (!status && options.inputIR)
      return status.error().inContext(*options.inputIR);
    return status;
  };
  SANDWICH_RETURN_IF_ERROR(progress("scheduling", 0));
  ModelToScheduleOptions scheduling;
  if (options.tune == Tune::None)
    scheduling.database = options.schedules.value_or("");
  scheduling.machineParameters = options.machineParameters.value_or("");
  scheduling.activations = options.activations;
  for (const std::string &each : options.kernels)
    scheduling.kernels.push_back(each);
  scheduling.target = options.target;
  scheduling.threads = options.threads;
  SANDWICH_RETURN_IF_ERROR(runPipeline([&](OpPassManager &manager) {
    buildModelToSchedulePipeline(manager, scheduling);
  }));
  SANDWICH_RETURN_IF_ERROR(checkSchedules());
  forgetUnusedIntegers();
  manifest.addSchedules(*module);
  if (options.emit == Emit::ScheduleIR)
    return writeModule();

  SANDWICH_RETURN_IF_ERROR(progress("lowering to loops", 0));
  ScheduleToLoopsOptions lowering;
  lowering.target = options.target;
  lowering.threads = options.threads;
  lowering.maxTokens = options.maxTokens;
  SANDWICH_RETURN_IF_ERROR(runPipeline([&](OpPassManager &manager) {
    buildScheduleToLoopsPipeline(manager, lowering);
    if (!options.loopPasses.empty())
      (void)parsePassPipeline(options.loopPasses, manager);
  }));
  forgetUnusedTiles();
  manifest.addPrograms(*module);
  if (options.emit == Emit::LoopIR)
    return writeModule();

  SANDWICH_RETURN_IF_ERROR(progress("lowering to LLVM", 0));
  // The weights' places are needed after the module has become LLVM's.
  OwningOpRef<ModuleOp> loops(cast<ModuleOp>(module->clone()));
  llvm::LLVMContext llvmContext;
  SANDWICH_ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> code,
                            lowerToLLVM(*module, target, llvmContext));
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
  return assembleArtifact(std::move(*writer), manifest.build(), *loops,
                          checkpoint, importance, sharedObject, progress);
}

Result<int64_t> sandwich::contextOf(const CompileOptions &options,
                                    const ModelConfig &config) {
  if (options.contextLength &&
      (*options.contextLength < 1 ||
       *options.contextLength > config.maxPositionEmbeddings))
    return makeError("a context of ", *options.contextLength,
                     " tokens is not between 1 and the ",
                     config.maxPositionEmbeddings, " the model was made for");
  if (options.contextLength.value_or(0) > config.longestContext())
    return makeError("a context of ", *options.contextLength,
                     " tokens is beyond the model's sliding window of ",
                     config.longestContext(),
                     ", and attention in a window is not supported; give "
                     "--context=",
                     config.longestContext(), " or less");
  return options.contextLength.value_or(config.usualContext());
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

/// Whether `pipeline` is one of passes on modules; the error says why not.
static Status checkPassPipeline(const std::string &pipeline) {
  registerSandwichPasses();
  registerAllPasses();
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  OpPassManager manager(ModuleOp::getOperationName());
  if (failed(parsePassPipeline(pipeline, manager, stream)))
    return makeError("the passes on loop IR '", pipeline,
                     "': ", llvm::StringRef(problem).rtrim().str());
  return {};
}

Status sandwich::checkElementTypes(const CompileOptions &options) {
  Result<StorageFormat> weights =
      StorageFormat::parseOption(options.dtype.value_or("bf16"));
  if (!weights)
    return weights.error().inContext("dtype");
  for (const auto &[what, option] :
       {std::pair("embedding", &options.embeddingDtype),
        std::pair("head", &options.headDtype)}) {
    if (!*option)
      continue;
    Result<StorageFormat> storage = StorageFormat::parseOption(**option);
    if (!storage)
      return storage.error().inContext(std::string(what) + " dtype");
    const StorageFormat usual =
        weights->isQuantized() ? StorageFormat::bf16() : *weights;
    if (!storage->isQuantized() && *storage != usual)
      return makeError(what, " dtype ", storage->name(), " beside weights of ",
                       weights->name(), " must be ", usual.name(),
                       ", integers or fp8");
  }
  if (options.activations != "int8" && options.activations != "float")
    return makeError("activations '", options.activations,
                     "' are neither int8 nor float");
  if (options.kvDtype && !attentionElementNamed(*options.kvDtype))
    return makeError("KV cache dtype '", *options.kvDtype,
                     "' is neither bf16, f16, f32 nor int8");
  return {};
}

Status sandwich::compile(const CompileOptions &options,
                         const CompileProgress &progress,
                         TuningSummary *summary) {
  SANDWICH_RETURN_IF_ERROR(checkElementTypes(options));
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
  if (options.calibrationText && options.emit != Emit::Artifact)
    return makeError("a text for calibration is for artifacts");
  if (options.calibrationTokens < 1)
    return makeError("a text for calibration must have tokens, not ",
                     options.calibrationTokens);
  if (options.tuningSeconds && !(*options.tuningSeconds > 0))
    return makeError("the budget for tuning must be positive, not ",
                     *options.tuningSeconds, " seconds");
  SANDWICH_ASSIGN_OR_RETURN(Target target, getTarget(options.target));
  if (!options.loopPasses.empty())
    SANDWICH_RETURN_IF_ERROR(checkPassPipeline(options.loopPasses));
  SANDWICH_RETURN_IF_ERROR(progress("reading the checkpoint", 0));
  SANDWICH_ASSIGN_OR_RETURN(
      Checkpoint checkpoint,
      Checkpoint::open(options.modelFolder, options.task));
  const ModelConfig &config = checkpoint.config();
  if (auto reason = tensorParallelSizes(config).refuse(options.tensorParallel))
    return makeError("the model cannot be divided: ", *reason);
  if (config.encodes() && (options.tensorParallel > 1 || options.plan))
    return makeError("models that embed or classify run in one process and one "
                     "phase; give --threads instead of --tensor-parallel and "
                     "--plan");
  if (options.calibrationText && config.encodes())
    return makeError("models that embed or classify are not calibrated; leave "
                     "out the text for calibration");
  SANDWICH_ASSIGN_OR_RETURN(const int64_t context, contextOf(options, config));
  if (!options.contextLength && config.slidingWindow)
    llvm::errs() << "warning: " << options.modelFolder << ": the context is "
                 << config.longestContext()
                 << " tokens, the sliding window, instead of the "
                 << config.maxPositionEmbeddings
                 << " the model was made for: attention in a window is not "
                    "supported\n";
  CompileOptions adapted = options;
  if (config.encodes()) {
    // Weights are read once for a step, which a few thousand tokens are worth
    // on every CPU.
    constexpr int64_t usualTokens = 2048;
    if (options.maxTokensAreDefault)
      adapted.maxTokens = std::max(usualTokens, context);
    if (context > adapted.maxTokens)
      return makeError("a text of ", context,
                       " tokens must fit into one step, "
                       "which has ",
                       adapted.maxTokens,
                       "; give --context or --max-tokens-per-step");
  }
  SANDWICH_ASSIGN_OR_RETURN(std::vector<std::string> unused,
                            checkpoint.checkTensors());
  // One that no tool could read shows now, not when the artifact is used.
  if (checkpoint.tokenizer()) {
    SANDWICH_ASSIGN_OR_RETURN(Tokenizer tokenizer, readTokenizer(checkpoint));
    if (checkpoint.addedTokensPath())
      SANDWICH_RETURN_IF_ERROR(
          tokenizer.checkAddedTokens(*checkpoint.addedTokensPath()));
  }
  for (const std::string &name : unused)
    llvm::errs() << "warning: " << options.modelFolder << ": tensor " << name
                 << " is not used\n";
  return Compilation(adapted, progress, std::move(checkpoint),
                     std::move(target))
      .run(summary);
}
