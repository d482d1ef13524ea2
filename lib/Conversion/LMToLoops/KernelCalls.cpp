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
#include "sandwich/Kernel/Library.h"
#include "sandwich/Kernel/Text.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

/// The thread's rows of `buffer` from `channel` on, `channels` of each.
static Value ownRows(LoopBuilder &builder, Value buffer, Value begin,
                     Value count, Value channel, int64_t channels) {
  return memref::SubViewOp::create(
      builder, buffer, ArrayRef<OpFoldResult>{begin, channel},
      ArrayRef<OpFoldResult>{count, builder.getIndexAttr(channels)},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1), builder.getIndexAttr(1)});
}

FailureOr<func::FuncOp> KernelFunctions::get(const KernelUse &use,
                                             ArrayRef<Type> types) {
  func::FuncOp kernel = use.kernel;
  SmallVector<std::pair<StringRef, int64_t>> bindings;
  for (const auto &each : use.bindings)
    bindings.emplace_back(each.first(), each.second);
  llvm::sort(bindings);
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << kernel.getSymName();
  for (auto [name, value] : bindings)
    stream << " " << name << "=" << value;
  for (Type type : types)
    stream << " " << type;
  func::FuncOp &function = functions[key];
  if (function)
    return function;
  std::string name = "kernel." + std::to_string(functions.size()) + "." +
                     kernel.getSymName().str();
  FailureOr<func::FuncOp> made =
      block::makeFunction(kernel, name, use.bindings, types);
  if (failed(made))
    return failure();
  // Beside the phases, which call it.
  (*made)->moveBefore(module.getBody(), module.getBody()->end());
  made->setPrivate();
  return function = *made;
}

FailureOr<KernelUse>
KernelFunctions::fromLibrary(StepOpInterface op,
                             SymbolTableCollection &symbols) {
  const StringRef name = op->getName().stripDialect();
  kernel::TextOptions options;
  options.argumentTypes = kernelElementTypes(op, symbols);
  std::string key = name.str();
  llvm::raw_string_ostream stream(key);
  for (Type type : options.argumentTypes)
    stream << " " << type;
  OwningOpRef<ModuleOp> &kernels = library[key];
  if (!kernels) {
    std::string_view text = *kernel::libraryKernel({name.data(), name.size()});
    kernels =
        kernel::readText({text.data(), text.size()}, (name + ".kernel").str(),
                         options, *op->getContext());
  }
  if (!kernels)
    return failure();
  auto found = kernels->lookupSymbol<func::FuncOp>(name);
  FailureOr<block::Bindings> bindings =
      bindKernel(op, found, DictionaryAttr(), symbols);
  if (failed(bindings))
    return failure();
  return KernelUse{found, std::move(*bindings)};
}

LogicalResult lm::callKernel(StepOpInterface op, const KernelUse &use,
                             const ProgramContext &program) {
  LoopBuilder builder(op->getLoc(), op);
  const SmallVector<KernelArgument> given = op.getKernelArguments();
  const int64_t channels = kernelChannels(op, program.symbols);
  Value layer;
  for (Value operand : op->getOperands())
    if (operand.getType().isIndex())
      layer = operand;
  Value anyRows;
  for (const KernelArgument &argument : given)
    if (argument.kind == KernelArgument::Kind::Rows)
      anyRows = argument.rows;
  Value rows = memref::DimOp::create(builder, anyRows, 0);
  auto [begin, end] =
      builder.threadRange(rows, program.thread, program.threads);
  Value count = builder.sub(end, begin);
  const int64_t all = cast<MemRefType>(anyRows.getType()).getDimSize(1);
  LogicalResult result = success();
  const auto call = [&](Value channel) {
    SmallVector<Value> arguments;
    for (const KernelArgument &argument : given) {
      switch (argument.kind) {
      case KernelArgument::Kind::Rows:
        arguments.push_back(
            ownRows(builder, argument.rows, begin, count, channel, channels));
        break;
      case KernelArgument::Kind::Vector:
        arguments.push_back(getWeightSlice(builder, program.symbols, op,
                                           argument.vector, layer));
        break;
      case KernelArgument::Kind::Number:
        arguments.push_back(
            arith::ConstantOp::create(builder, argument.number));
        break;
      }
    }
    FailureOr<func::FuncOp> function = program.written.get(
        use, llvm::to_vector(ValueRange(arguments).getTypes()));
    if (failed(function))
      result = failure();
    else
      func::CallOp::create(builder, *function, arguments);
  };
  if (all == channels)
    call(builder.index(0));
  else
    builder.forLoop(builder.index(0), builder.index(all), channels, call);
  return result;
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult lowerByLibrary(LoopBuilder &,
                                    const ProgramContext &program, Op op) {
  auto step = cast<StepOpInterface>(op.getOperation());
  FailureOr<KernelUse> use = program.written.fromLibrary(step, program.symbols);
  return failed(use) ? failure() : callKernel(step, *use, program);
}

void lm::attachLibraryLowerings(MLIRContext &context) {
  AddOp::attachInterface<LoopLoweringModel<AddOp, lowerByLibrary<AddOp>>>(
      context);
  L2NormalizeOp::attachInterface<
      LoopLoweringModel<L2NormalizeOp, lowerByLibrary<L2NormalizeOp>>>(context);
  LayerNormOp::attachInterface<
      LoopLoweringModel<LayerNormOp, lowerByLibrary<LayerNormOp>>>(context);
  RMSNormOp::attachInterface<
      LoopLoweringModel<RMSNormOp, lowerByLibrary<RMSNormOp>>>(context);
  SiluMulOp::attachInterface<
      LoopLoweringModel<SiluMulOp, lowerByLibrary<SiluMulOp>>>(context);
}
