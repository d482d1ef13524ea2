//===- InputModule.cpp - IR from outside ----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InputModule.h"

#include "PrintAttribute.h"
#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Support/File.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace sandwich;

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

Result<OwningOpRef<ModuleOp>> sandwich::readInputModule(const std::string &path,
                                                        MLIRContext &context) {
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
  auto module = parseSourceString<ModuleOp>(text, &context, path);
  if (!module)
    return makeError(problem.empty() ? path + ": is not a module" : problem);
  return module;
}

Result<int64_t> sandwich::findRanks(ModuleOp module) {
  std::string problem;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          problem = describe(diagnostic);
        return success();
      });
  FailureOr<int64_t> ranks = lm::getRanks(module);
  if (failed(ranks))
    return makeError(problem);
  return *ranks;
}

/// Whether the checkpoint's tensors make up `weight` exactly.
static Status checkWeight(lm::WeightOp weight, const Checkpoint &checkpoint) {
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
      const std::string name = numberLayer(source.str(), layer);
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

/// The type of the elements of `own`'s matrices that are not quantized, which
/// all have one; of others where all are.
static Type getMatrixElementType(ModuleOp own) {
  for (auto weight : own.getOps<lm::WeightOp>())
    if (RankedTensorType type = weight.getTensorType();
        type.getRank() == 2 && !weight.getStorage())
      return type.getElementType();
  return BFloat16Type::get(own.getContext());
}

/// Whether `weight`, if it is a matrix that is not quantized, has elements of
/// type `expected`.
static Status checkMatrixType(lm::WeightOp weight, Type expected,
                              const std::string &elementTypes) {
  RankedTensorType type = weight.getTensorType();
  if (type.getRank() == 2 && !weight.getStorage() &&
      type.getElementType() != expected)
    return makeError("its type is ", print(type), ", but this checkpoint as ",
                     elementTypes, " needs ", print(expected));
  return {};
}

/// Whether the function `name` has the caches and logits the runtime prepares,
/// as in the compiler's `own` model.
static Status checkPhase(StringRef name, ModuleOp module, ModuleOp own,
                         const std::string &elementTypes) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
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
        ", but this checkpoint as ", elementTypes, " needs ", print(expected));
  return {};
}

/// Whether the tables that `phase` looks things up in have the rows that a
/// model of `config` may ask for, as nothing in the code checks an index.
static Status checkTables(func::FuncOp phase, const ModelConfig &config,
                          int64_t contextLength) {
  std::string problem;
  phase.walk([&](lm::EmbedOp op) {
    auto weight = phase->getParentOfType<ModuleOp>().lookupSymbol<lm::WeightOp>(
        op.getWeight());
    const int64_t rows =
        weight.getTensorType().getDimSize(0) - op.getOffsetAttr().getInt();
    int64_t needed = config.vocabSize;
    if (op.getInput() == lm::EmbeddedInput::TokenTypes)
      needed = config.encoder ? config.encoder->tokenTypes : 0;
    else if (op.getInput() == lm::EmbeddedInput::Positions)
      needed = contextLength;
    if (rows >= needed)
      return WalkResult::advance();
    llvm::raw_string_ostream(problem)
        << "@" << phase.getName() << " looks up "
        << lm::stringifyEmbeddedInput(op.getInput()) << " in " << rows
        << " rows of weight @" << op.getWeight() << ", and the model has "
        << needed;
    return WalkResult::interrupt();
  });
  return problem.empty() ? Status() : Status(makeError(problem));
}

Status sandwich::checkInputModule(ModuleOp module, ModuleOp own,
                                  const Checkpoint &checkpoint,
                                  const std::string &elementTypes,
                                  int64_t contextLength) {
  Type elementType = getMatrixElementType(own);
  for (auto weight : module.getOps<lm::WeightOp>()) {
    Status status = checkWeight(weight, checkpoint);
    if (status)
      status = checkMatrixType(weight, elementType, elementTypes);
    if (!status)
      return status.error().inContext("weight " + weight.getSymName().str());
  }
  for (lm::Phase phase : phasesOf(checkpoint.config()))
    SANDWICH_RETURN_IF_ERROR(
        checkPhase(lm::stringifyPhase(phase), module, own, elementTypes));
  SANDWICH_RETURN_IF_ERROR(runPasses(module, [](OpPassManager &manager) {
    manager.addPass(createVerifyPhases());
  }));
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!own.lookupSymbol(function.getName()))
      return makeError("@", function.getName().str(),
                       " is no phase that the runtime has");
    SANDWICH_RETURN_IF_ERROR(
        checkTables(function, checkpoint.config(), contextLength));
  }
  return {};
}
