//===- KernelCalls.cpp - Operations that kernels compute ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCalls.h"

#include "sandwich/Conversion/BlockToVector.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"
#include "sandwich/Dialect/Phase/IR/Phase.h"
#include "sandwich/Kernel/Library.h"
#include "sandwich/Kernel/Text.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// The thread's rows of `buffer`, each from `channel` on as `extents` say.
static Value ownRows(LoopBuilder &builder, Value buffer, Value begin,
                     Value count, Value channel,
                     ArrayRef<KernelExtent> extents) {
  int64_t channels = 1;
  for (const KernelExtent &extent : extents.drop_front())
    channels *= extent.known;
  Value rows = memref::SubViewOp::create(
      builder, buffer, ArrayRef<OpFoldResult>{begin, channel},
      ArrayRef<OpFoldResult>{count, builder.getIndexAttr(channels)},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1), builder.getIndexAttr(1)});
  if (extents.size() == 2)
    return rows;
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  SmallVector<ReassociationIndices> dimensions = {{0}, {}};
  for (auto [number, extent] : llvm::enumerate(extents.drop_front())) {
    sizes.push_back(extent.known);
    dimensions.back().push_back(static_cast<int64_t>(number + 1));
  }
  return memref::ExpandShapeOp::create(builder, sizes, rows, dimensions);
}

FailureOr<func::FuncOp>
KernelFunctions::get(const KernelUse &use, ArrayRef<Type> types,
                     std::optional<MatrixISA> instructions) {
  func::FuncOp kernel = use.kernel;
  SmallVector<std::pair<StringRef, int64_t>> bindings;
  for (const auto &each : use.bindings)
    bindings.emplace_back(each.first(), each.second);
  llvm::sort(bindings);
  std::string key;
  llvm::raw_string_ostream stream(key);
  // Others may have its name.
  stream << kernel.getOperation();
  for (auto [name, value] : bindings)
    stream << " " << name << "=" << value;
  for (Type type : types)
    stream << " " << type;
  if (instructions)
    stream << " by " << sandwich::name(*instructions);
  func::FuncOp &function = functions[key];
  if (function)
    return function;
  std::string name = "kernel." + std::to_string(functions.size()) + "." +
                     kernel.getSymName().str();
  FailureOr<func::FuncOp> made = block::makeFunction(
      kernel, name, use.bindings,
      {.argumentTypes = types, .instructions = instructions});
  if (failed(made))
    return failure();
  // Beside the phases, which call it.
  (*made)->moveBefore(module.getBody(), module.getBody()->end());
  made->setPrivate();
  // What several have on the stack is not added up in their caller.
  if (!made->getOps<memref::AllocaOp>().empty()) {
    Builder builder(module.getContext());
    (*made)->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));
  }
  return function = *made;
}

LogicalResult KernelFunctions::call(LoopBuilder &builder, const KernelUse &use,
                                    ArrayRef<Value> arguments,
                                    std::optional<MatrixISA> instructions) {
  FailureOr<func::FuncOp> function =
      get(use, llvm::to_vector(ValueRange(arguments).getTypes()), instructions);
  if (failed(function))
    return failure();
  func::CallOp::create(builder, *function, arguments);
  return success();
}

LogicalResult KernelFunctions::addSampling(SamplingOp op,
                                           SymbolTableCollection &symbols,
                                           const Target &target) {
  FailureOr<std::optional<KernelUse>> use = findKernelUse(op, symbols);
  if (failed(use))
    return failure();
  if (*use) {
    LoopBuilder builder(op.getLoc(), op);
    // Its arguments are what the operation gives kernels, in the same order.
    func::FuncOp function = phase::createSampling(
        builder, op.getLoc(), op->getName().stripDialect(),
        static_cast<int64_t>(op.getVocabulary()));
    builder.setInsertionPointToStart(&function.getBody().front());
    if (failed(call(builder, **use,
                    llvm::to_vector_of<Value>(function.getArguments()),
                    attentionInstructions(target))))
      return failure();
    func::ReturnOp::create(builder);
  }
  op.erase();
  return success();
}

FailureOr<func::FuncOp> KernelFunctions::fromLibrary(StringRef name,
                                                     ArrayRef<Type> types,
                                                     MLIRContext *context) {
  kernel::TextOptions options;
  options.argumentTypes = llvm::to_vector(types);
  std::string key = name.str();
  llvm::raw_string_ostream stream(key);
  for (Type type : types)
    stream << " " << type;
  OwningOpRef<ModuleOp> &kernels = library[key];
  if (!kernels) {
    std::string_view text = *kernel::libraryKernel({name.data(), name.size()});
    kernels = kernel::readText({text.data(), text.size()},
                               (name + ".kernel").str(), options, *context);
  }
  if (!kernels)
    return failure();
  return findKernel(*kernels, name);
}

/// Builds, in front of `op`, which is in buffer form, calls of its kernel for
/// the thread's rows. Errors are emitted.
static LogicalResult callForRows(LoopBuilder &builder, Operation *op,
                                 const KernelUse &use,
                                 ArrayRef<KernelArgument> given,
                                 const ProgramContext &program) {
  Value layer;
  for (Value operand : op->getOperands())
    if (operand.getType().isIndex())
      layer = operand;
  Value anyRows;
  int64_t channels = 1;
  for (const KernelArgument &argument : given)
    if (argument.isActivation) {
      anyRows = argument.rows;
      channels = 1;
      for (const KernelExtent &extent : ArrayRef(argument.extents).drop_front())
        channels *= extent.known;
    }
  Value rows = memref::DimOp::create(builder, anyRows, 0);
  auto [begin, end] =
      builder.threadRange(rows, program.thread, program.threads);
  Value count = builder.sub(end, begin);
  const int64_t all = cast<MemRefType>(anyRows.getType()).getDimSize(1);
  LogicalResult result = success();
  const auto call = [&](Value channel) {
    SmallVector<Value> arguments;
    for (const KernelArgument &argument : given) {
      if (argument.isActivation)
        arguments.push_back(ownRows(builder, argument.rows, begin, count,
                                    channel, argument.extents));
      else if (argument.vector)
        arguments.push_back(getWeightSlice(builder, program.symbols, op,
                                           argument.vector, layer));
      else
        arguments.push_back(
            arith::ConstantOp::create(builder, argument.number));
    }
    if (failed(program.kernels.call(builder, use, arguments,
                                    attentionInstructions(program.target))))
      result = failure();
  };
  if (all == channels)
    call(builder.index(0));
  else
    builder.forLoop(builder.index(0), builder.index(all), channels, call);
  return result;
}

/// By the kernel that the operation says, or the one in kernels/ that has its
/// name.
template <typename Op>
static LogicalResult lowerByKernel(LoopBuilder &builder,
                                   const ProgramContext &program, Op op) {
  auto computed = cast<KernelOpInterface>(op.getOperation());
  const SmallVector<KernelArgument> arguments =
      kernelArguments(computed, program.symbols);
  FailureOr<std::optional<KernelUse>> use = findKernelUse(op, program.symbols);
  if (failed(use))
    return failure();
  if (*use)
    return callForRows(builder, op, **use, arguments, program);
  FailureOr<func::FuncOp> kernel = program.kernels.fromLibrary(
      op->getName().stripDialect(), kernelElementTypes(arguments),
      op.getContext());
  if (failed(kernel))
    return failure();
  FailureOr<block::Bindings> bindings = bindKernel(
      op, *kernel, arguments, computed.getKernelConstants(), DictionaryAttr());
  if (failed(bindings))
    return failure();
  return callForRows(builder, op, {*kernel, std::move(*bindings)}, arguments,
                     program);
}

template <typename... Ops>
static void attachKernelLowerings(MLIRContext &context) {
  (Ops::template attachInterface<LoopLoweringModel<Ops, lowerByKernel<Ops>>>(
       context),
   ...);
}

void lm::attachKernelLowerings(MLIRContext &context) {
  ::attachKernelLowerings<AddOp, GeluOp, L2NormalizeOp, LayerNormOp, RMSNormOp,
                          RotateOp, RoundOp, SiluMulOp, TanhOp>(context);
}
