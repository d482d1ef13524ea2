//===- PhaseToLLVM.cpp - C entry points of phase programs -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Runtime/PhaseABI.h"

#include <algorithm>
#include <cstddef>

namespace sandwich {
#define GEN_PASS_DEF_PHASETOLLVM
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;
using phase::ProgramArgument;
using phase::SamplingArgument;

static std::string getEntryPointName(func::FuncOp program) {
  return (SANDWICH_PHASE_SYMBOL_PREFIX + program.getName()).str();
}

static std::string getPlanName(func::FuncOp program) {
  return getEntryPointName(program) + SANDWICH_PLAN_SYMBOL_SUFFIX;
}

namespace {

/// The field of the structure at `address`, `offset` bytes from its beginning.
Value loadField(ImplicitLocOpBuilder &builder, Type type, Value address,
                size_t offset) {
  return LLVM::LoadOp::create(
      builder, type,
      LLVM::GEPOp::create(
          builder, LLVM::LLVMPointerType::get(builder.getContext()),
          builder.getI8Type(), address,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}));
}

/// Writes a C function that unpacks a structure and calls another function with
/// what is in it.
class EntryPointBuilder {
public:
  EntryPointBuilder(func::FuncOp called, const LLVMTypeConverter &types)
      : called(called), types(types), builder(called.getLoc(), called),
        pointer(LLVM::LLVMPointerType::get(called.getContext())),
        arguments(called.getNumArguments()) {}

  /// Of a phase program, from a SandwichStep; the function is `name`, at
  /// `place`.
  void buildPhase(StringRef name, Operation *place) {
    func::FuncOp entry = create(name, place, {pointer, builder.getI32Type()});
    Value thread = arith::IndexCastOp::create(builder, builder.getIndexType(),
                                              entry.getArgument(1));

    Value tokens = loadSize(offsetof(SandwichStep, num_tokens));
    Value rows = loadSize(offsetof(SandwichStep, num_logit_rows));
    Value segments = loadSize(offsetof(SandwichStep, num_segments));
    Value blocks = loadSize(offsetof(SandwichStep, num_blocks));
    // Nothing in a program reads these sizes: what it accesses follows from
    // tables and static offsets.
    Value unknown = LLVM::ConstantOp::create(builder, builder.getI64Type(),
                                             builder.getI64IntegerAttr(0));

    setBuffer(ProgramArgument::TokenIds, offsetof(SandwichStep, token_ids),
              tokens);
    setBuffer(ProgramArgument::Positions, offsetof(SandwichStep, positions),
              tokens);
    setBuffer(ProgramArgument::CacheSlots, offsetof(SandwichStep, cache_slots),
              tokens);
    setBuffer(ProgramArgument::Segments, offsetof(SandwichStep, segments),
              segments);
    setBuffer(ProgramArgument::BlockTables,
              offsetof(SandwichStep, block_tables), blocks);
    setBuffer(ProgramArgument::LogitRows, offsetof(SandwichStep, logit_rows),
              rows);
    setBuffer(ProgramArgument::KVCache, offsetof(SandwichStep, kv_cache),
              unknown);
    setBuffer(ProgramArgument::Logits, offsetof(SandwichStep, logits), rows);
    setBuffer(ProgramArgument::Weights, offsetof(SandwichStep, weights),
              unknown);
    setBuffer(ProgramArgument::Workspace, offsetof(SandwichStep, workspace),
              unknown);
    if (phase::hasTokenTypes(called))
      setBuffer(ProgramArgument::TokenTypes,
                offsetof(SandwichStep, token_types), tokens);
    set(ProgramArgument::Thread, thread);
    set(ProgramArgument::Team, structure);
    finish();
  }

  /// Of a function that draws tokens, from a SandwichSampling.
  void buildSampling(StringRef name, Operation *place) {
    create(name, place, {pointer});
    setBuffer(SamplingArgument::Logits, offsetof(SandwichSampling, logits), {});
    setNumber(SamplingArgument::Temperature,
              offsetof(SandwichSampling, temperature));
    setNumber(SamplingArgument::TopK, offsetof(SandwichSampling, top_k));
    setNumber(SamplingArgument::TopP, offsetof(SandwichSampling, top_p));
    setNumber(SamplingArgument::MinP, offsetof(SandwichSampling, min_p));
    setNumber(SamplingArgument::Place, offsetof(SandwichSampling, place));
    setBuffer(SamplingArgument::Weights, offsetof(SandwichSampling, weights),
              {});
    setBuffer(SamplingArgument::Token, offsetof(SandwichSampling, token), {});
    finish();
  }

private:
  /// The function, of which the first of `parameters` is the structure's
  /// address.
  func::FuncOp create(StringRef name, Operation *place,
                      ArrayRef<Type> parameters) {
    builder.setInsertionPoint(place);
    auto entry = func::FuncOp::create(builder, name,
                                      builder.getFunctionType(parameters, {}));
    builder.setInsertionPointToStart(entry.addEntryBlock());
    structure = entry.getArgument(0);
    return entry;
  }

  void finish() {
    func::CallOp::create(builder, called, arguments);
    func::ReturnOp::create(builder);
  }

  template <typename Argument> void set(Argument argument, Value value) {
    arguments[static_cast<unsigned>(argument)] = value;
  }
  template <typename Argument> Type typeOf(Argument argument) {
    return called.getArgument(static_cast<unsigned>(argument)).getType();
  }
  template <typename Argument>
  void setBuffer(Argument argument, size_t field, ValueRange dynamicSizes) {
    set(argument,
        buffer(cast<MemRefType>(typeOf(argument)), field, dynamicSizes));
  }
  template <typename Argument> void setNumber(Argument argument, size_t field) {
    set(argument, load(field, typeOf(argument)));
  }

  Value load(size_t offset, Type type) {
    return loadField(builder, type, structure, offset);
  }

  Value loadSize(size_t offset) { return load(offset, builder.getI64Type()); }

  /// The row-major buffer of `type` at the pointer in the structure's `field`.
  Value buffer(MemRefType type, size_t field, ValueRange dynamicSizes) {
    auto descriptor = MemRefDescriptor::poison(builder, builder.getLoc(),
                                               types.convertType(type));
    Value data = load(field, pointer);
    descriptor.setAllocatedPtr(builder, builder.getLoc(), data);
    descriptor.setAlignedPtr(builder, builder.getLoc(), data);
    descriptor.setConstantOffset(builder, builder.getLoc(), 0);
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(builder, builder.getI64Type(),
                                      builder.getI64IntegerAttr(value));
    };
    SmallVector<Value> sizes;
    for (int64_t size : type.getShape()) {
      if (ShapedType::isDynamic(size)) {
        sizes.push_back(dynamicSizes.front());
        dynamicSizes = dynamicSizes.drop_front();
      } else {
        sizes.push_back(constant(size));
      }
    }
    Value stride = constant(1);
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      descriptor.setSize(builder, builder.getLoc(), i, sizes[i]);
      descriptor.setStride(builder, builder.getLoc(), i, stride);
      if (i > 0)
        stride = LLVM::MulOp::create(builder, stride, sizes[i]);
    }
    return UnrealizedConversionCastOp::create(builder, type, Value(descriptor))
        .getResult(0);
  }

  func::FuncOp called;
  const LLVMTypeConverter &types;
  ImplicitLocOpBuilder builder;
  LLVM::LLVMPointerType pointer;
  Value structure;
  SmallVector<Value> arguments;
};

/// Where the last of the module's weights ends in the artifact.
int64_t getWeightsEnd(ModuleOp module) {
  uint64_t end = 0;
  for (auto weight : module.getOps<lm::WeightOp>()) {
    uint64_t lastSlice = weight.getOffset().value_or(0) +
                         weight.getLayerStride().value_or(0) *
                             (weight.getLayers().value_or(1) - 1);
    end = std::max(end, lastSlice + weight.getSliceBytes());
  }
  return static_cast<int64_t>(end);
}

/// Among how many ranks the weights of `module` are divided, if those that its
/// programs call fit.
FailureOr<int64_t> getRanks(ModuleOp module) {
  FailureOr<int64_t> ranks = lm::getRanks(module);
  if (failed(ranks))
    return failure();
  WalkResult result = module.walk([&](Operation *op) {
    auto gather = dyn_cast<phase::AllGatherOp>(op);
    auto channels = [](Value buffer) {
      return cast<MemRefType>(buffer.getType()).getDimSize(1);
    };
    if ((isa<phase::AllReduceOp>(op) && *ranks == 1) ||
        (gather && (*ranks == 1 || channels(gather.getWhole()) !=
                                       *ranks * channels(gather.getPart())))) {
      op->emitOpError("does not fit weights that are divided among ")
          << *ranks << (*ranks == 1 ? " rank" : " ranks");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return ranks;
}

/// The SandwichElementType of a cache's elements.
int64_t elementTypeNumber(Type type) {
  return type.isF32()        ? SANDWICH_ELEMENT_F32
         : type.isBF16()     ? SANDWICH_ELEMENT_BF16
         : type.isInteger(8) ? SANDWICH_ELEMENT_INT8
                             : SANDWICH_ELEMENT_F16;
}

/// Adds the constant `name` with the fields of `plan`, which all have 64 bits,
/// in front of `function`.
template <typename Plan>
void addConstant(func::FuncOp function, StringRef name, const Plan &plan) {
  constexpr int64_t fields = sizeof(Plan) / sizeof(int64_t);
  ImplicitLocOpBuilder builder(function.getLoc(), function);
  auto values = DenseElementsAttr::get(
      RankedTensorType::get({fields}, builder.getI64Type()),
      ArrayRef(reinterpret_cast<const int64_t *>(&plan), fields));
  LLVM::GlobalOp::create(
      builder, LLVM::LLVMArrayType::get(builder.getI64Type(), fields),
      /*isConstant=*/true, LLVM::Linkage::External, name, values);
}

/// Adds the SandwichPlan of `program`, so that the loader can see whether the
/// manifest beside the code belongs to it.
void addPlan(func::FuncOp program, int64_t weightsEnd, int64_t ranks) {
  auto typeOf = [&](ProgramArgument argument) {
    return cast<MemRefType>(phase::getArgument(program, argument).getType());
  };
  MemRefType cache = typeOf(ProgramArgument::KVCache);
  int64_t blockElements = 1;
  for (int64_t size : cache.getShape().drop_front())
    blockElements *= size;
  phase::ProgramAttr limits = phase::getProgram(program);
  SandwichPlan plan = {};
  plan.abi_version = SANDWICH_PHASE_ABI_VERSION;
  plan.threads = limits.getThreads();
  plan.max_tokens = limits.getMaxTokens();
  plan.max_logit_rows = limits.getMaxLogitRows();
  plan.workspace_bytes = limits.getWorkspaceBytes();
  plan.kv_block_bytes = blockElements * cache.getElementTypeBitWidth() / 8;
  plan.kv_element_type = elementTypeNumber(cache.getElementType());
  plan.columns = typeOf(ProgramArgument::Logits).getDimSize(1);
  plan.vocab_size = plan.columns;
  if (ArrayRef<int64_t> tables = limits.getTables(); !tables.empty()) {
    if (tables[0] != 0)
      plan.vocab_size = tables[0];
    plan.token_types = tables[1];
    plan.positions = tables[2];
  }
  plan.weights_bytes = weightsEnd;
  plan.operations =
      static_cast<int64_t>(phase::getMarkedOperations(program).size());
  plan.ranks = ranks;

  addConstant(program, getPlanName(program), plan);
}

/// Adds the SandwichSamplingPlan of `function`.
void addSamplingPlan(func::FuncOp function) {
  auto logits = cast<MemRefType>(function.getArgumentTypes().front());
  addConstant(function, getPlanName(function),
              SandwichSamplingPlan{.abi_version = SANDWICH_PHASE_ABI_VERSION,
                                   .vocab_size = logits.getDimSize(0)});
}

/// The pointer at `offset` in the step.
Value loadPointer(ImplicitLocOpBuilder &builder, Value step, size_t offset) {
  return loadField(builder, LLVM::LLVMPointerType::get(builder.getContext()),
                   step, offset);
}

/// Calls `function` of the step with the pointer at `contextOffset` and
/// `arguments`.
void callStep(ImplicitLocOpBuilder &builder, Value step, Value function,
              size_t contextOffset, ValueRange arguments) {
  SmallVector<Value> operands{function,
                              loadPointer(builder, step, contextOffset)};
  llvm::append_range(operands, arguments);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()),
      llvm::to_vector(llvm::drop_begin(ValueRange(operands).getTypes())));
  LLVM::CallOp::create(builder, type, operands);
}

/// Calls the step's `function` for what ranks do together.
void callRanks(ImplicitLocOpBuilder &builder, func::FuncOp program,
               size_t function, ValueRange arguments) {
  Value step = phase::getArgument(program, ProgramArgument::Team);
  SmallVector<Value> operands{arith::IndexCastOp::create(
      builder, builder.getI32Type(),
      phase::getArgument(program, ProgramArgument::Thread))};
  llvm::append_range(operands, arguments);
  callStep(builder, step, loadPointer(builder, step, function),
           offsetof(SandwichStep, ranks), operands);
}

/// The address of the first element of `buffer`, whose rows are dense.
Value addressOf(ImplicitLocOpBuilder &builder, Value buffer) {
  Value address = arith::IndexCastOp::create(
      builder, builder.getI64Type(),
      memref::ExtractAlignedPointerAsIndexOp::create(builder, buffer));
  return LLVM::IntToPtrOp::create(
      builder, LLVM::LLVMPointerType::get(builder.getContext()), address);
}

/// The number of rows of `buffer`, as i64.
Value rowsOf(ImplicitLocOpBuilder &builder, Value buffer) {
  return arith::IndexCastOp::create(builder, builder.getI64Type(),
                                    memref::DimOp::create(builder, buffer, 0));
}

Value channelsOf(ImplicitLocOpBuilder &builder, Value buffer) {
  int64_t channels = cast<MemRefType>(buffer.getType()).getDimSize(1);
  return LLVM::ConstantOp::create(builder, builder.getI64IntegerAttr(channels));
}

void lower(phase::AllReduceOp op, func::FuncOp program) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  Value rows = rowsOf(builder, op.getData());
  Value channels = channelsOf(builder, op.getData());
  Value count = LLVM::MulOp::create(builder, rows, channels);
  callRanks(builder, program, offsetof(SandwichStep, all_reduce),
            {addressOf(builder, op.getData()), count});
  op.erase();
}

void lower(phase::AllGatherOp op, func::FuncOp program) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  callRanks(builder, program, offsetof(SandwichStep, all_gather),
            {addressOf(builder, op.getPart()),
             addressOf(builder, op.getWhole()), rowsOf(builder, op.getPart()),
             channelsOf(builder, op.getPart())});
  op.erase();
}

/// The team is the step, which knows how to wait and who profiles.
void lowerTeam(func::FuncOp program) {
  Value step = phase::getArgument(program, ProgramArgument::Team);
  llvm::SmallDenseMap<DictionaryAttr, int32_t> numbers;
  for (phase::MarkOp mark : phase::getMarkedOperations(program))
    numbers.try_emplace(mark->getAttrDictionary(),
                        static_cast<int32_t>(numbers.size()));
  program.walk([&](Operation *op) {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    if (isa<phase::BarrierOp>(op)) {
      Value function =
          loadPointer(builder, step, offsetof(SandwichStep, barrier));
      callStep(builder, step, function, offsetof(SandwichStep, team), {});
      op->erase();
    } else if (isa<phase::MarkOp>(op)) {
      Value function = loadPointer(builder, step, offsetof(SandwichStep, mark));
      Value null = LLVM::ZeroOp::create(builder, function.getType());
      Value profiles = LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne,
                                            function, null);
      auto branch = scf::IfOp::create(builder, profiles);
      builder.setInsertionPointToStart(branch.thenBlock());
      Value thread = arith::IndexCastOp::create(
          builder, builder.getI32Type(),
          phase::getArgument(program, ProgramArgument::Thread));
      Value number = LLVM::ConstantOp::create(
          builder,
          builder.getI32IntegerAttr(numbers.at(op->getAttrDictionary())));
      callStep(builder, step, function, offsetof(SandwichStep, profile),
               {thread, number});
      op->erase();
    } else if (isa<phase::RankOp>(op)) {
      Value rank = loadField(builder, builder.getI64Type(), step,
                             offsetof(SandwichStep, rank));
      op->getResult(0).replaceAllUsesWith(
          arith::IndexCastOp::create(builder, builder.getIndexType(), rank));
      op->erase();
    } else if (auto reduce = dyn_cast<phase::AllReduceOp>(op)) {
      lower(reduce, program);
    } else if (auto gather = dyn_cast<phase::AllGatherOp>(op)) {
      lower(gather, program);
    }
  });
  auto pointer = LLVM::LLVMPointerType::get(program.getContext());
  phase::getArgument(program, ProgramArgument::Team).setType(pointer);
  program.setFunctionType(FunctionType::get(
      program.getContext(), program.getBody().front().getArgumentTypes(), {}));
  program.setPrivate();
  // With a pointer for a team it is no phase program any more.
  program->removeDiscardableAttr(phase::programAttributeName);
}

/// Whether nothing else has, or will have, the names of what is added for the
/// programs of `module`.
LogicalResult verifyNames(ModuleOp module) {
  llvm::StringMap<Operation *> taken;
  for (Operation &op : module.getOps())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      taken[name.getValue()] = &op;
  for (auto program : module.getOps<func::FuncOp>()) {
    if (!phase::getProgram(program) && !phase::drawsTokens(program))
      continue;
    auto add = [&](const std::string &name,
                   StringRef purpose) -> LogicalResult {
      auto [other, isNew] = taken.try_emplace(name, program);
      if (isNew)
        return success();
      return other->second->emitOpError("has the name of the ")
             << purpose << " of @" << program.getName();
    };
    if (failed(add(getEntryPointName(program), "entry point")) ||
        failed(add(getPlanName(program), "plan")))
      return failure();
  }
  return success();
}

/// Whether nothing touches a team but operations of `phase` in the program it
/// runs: only there a team is a step.
LogicalResult verifyTeams(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (!llvm::any_of(op->getOperandTypes(), llvm::IsaPred<phase::TeamType>))
      return WalkResult::advance();
    auto function = op->getParentOfType<func::FuncOp>();
    if (isa_and_nonnull<phase::PhaseDialect>(op->getDialect()) && function &&
        phase::getProgram(function) &&
        op->getOperand(0) ==
            phase::getArgument(function, ProgramArgument::Team))
      return WalkResult::advance();
    op->emitOpError("cannot use a team; only the operations of phase in its "
                    "program can");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The program of `earlier` that computes the same as `program`, if there is
/// one: both phases do, where they have equally many threads and the same
/// schedules.
func::FuncOp findEqual(func::FuncOp program, ArrayRef<func::FuncOp> earlier) {
  for (func::FuncOp other : earlier)
    if (other.getFunctionType() == program.getFunctionType() &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &program.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return {};
}

struct PhaseToLLVM : sandwich::impl::PhaseToLLVMBase<PhaseToLLVM> {
  void runOnOperation() override {
    LLVMTypeConverter types(&getContext());
    if (failed(verifyNames(getOperation())) ||
        failed(verifyTeams(getOperation())))
      return signalPassFailure();
    FailureOr<int64_t> ranks = getRanks(getOperation());
    if (failed(ranks))
      return signalPassFailure();
    int64_t weightsEnd = getWeightsEnd(getOperation());
    SmallVector<func::FuncOp> distinct;
    SmallVector<std::pair<func::FuncOp, func::FuncOp>> repeated;
    for (auto program : getOperation().getOps<func::FuncOp>()) {
      if (!phase::getProgram(program))
        continue;
      addPlan(program, weightsEnd, *ranks);
      if (func::FuncOp equal = findEqual(program, distinct))
        repeated.emplace_back(program, equal);
      else
        distinct.push_back(program);
    }
    for (func::FuncOp program : distinct) {
      lowerTeam(program);
      EntryPointBuilder(program, types)
          .buildPhase(getEntryPointName(program), program);
    }
    for (auto [program, equal] : repeated) {
      EntryPointBuilder(equal, types)
          .buildPhase(getEntryPointName(program), program);
      program.erase();
    }
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!phase::drawsTokens(function))
        continue;
      addSamplingPlan(function);
      EntryPointBuilder(function, types)
          .buildSampling(getEntryPointName(function), function);
      function.setPrivate();
      function->removeDiscardableAttr(phase::samplingAttributeName);
    }
  }
};

} // namespace
