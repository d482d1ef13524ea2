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
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/File.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

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

/// "lm.embed"
static std::string nameOf(Operation *op) {
  return op->getName().getStringRef().str();
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
static Status checkLayers(func::FuncOp function, int64_t layers) {
  Operation *wrong = nullptr;
  function.walk([&](Operation *op) {
    if (isa_and_nonnull<lm::LMDialect, gemm::GemmDialect>(op->getDialect()))
      for (Value operand : op->getOperands())
        if (operand.getType().isIndex() && !isLayer(operand, layers))
          wrong = op;
  });
  if (!wrong)
    return {};
  return makeError("@", function.getName().str(), ": ", nameOf(wrong),
                   " has a layer that is not counted by a loop from 0 to at "
                   "most ",
                   layers);
}

/// What a rank has of the weight `name` that `user` names, or nothing if that
/// is all of it.
static std::optional<lm::ShardKind> findShard(Operation *user,
                                              FlatSymbolRefAttr name) {
  lm::ShardAttr shard = lm::lookupWeight(user, name).getShardAttr();
  return shard ? std::optional(shard.getKind()) : std::nullopt;
}

/// Whether ranks have of the weight `name`, if there is one, what `op` needs.
static Status checkShard(Operation *op, FlatSymbolRefAttr name,
                         std::optional<lm::ShardKind> needed) {
  auto describe = [](std::optional<lm::ShardKind> kind) {
    return kind ? "in shards of '" + lm::stringifyShardKind(*kind).str() + "'"
                : "whole";
  };
  std::optional<lm::ShardKind> actual = name ? findShard(op, name) : needed;
  if (actual == needed)
    return {};
  return makeError(nameOf(op), " needs weight ", name.getValue().str(), " ",
                   describe(needed), ", not ", describe(actual));
}

/// Whether ranks have of the weights of `op` what makes its result the same on
/// all of them, their own channels, or their part of a sum; and whether each
/// token of the `vocabulary` has its row, as the code does not check token ids.
static Status checkWeights(Operation *op, int64_t vocabulary) {
  if (auto embed = dyn_cast<lm::EmbedOp>(op)) {
    FlatSymbolRefAttr table = embed.getWeightAttr();
    SANDWICH_RETURN_IF_ERROR(checkShard(op, table, std::nullopt));
    int64_t rows = lm::lookupWeight(op, table).getTensorType().getDimSize(0);
    if (rows < vocabulary)
      return makeError(nameOf(op), " needs the ", vocabulary,
                       " rows of the vocabulary, weight ",
                       table.getValue().str(), " has ", rows);
    return {};
  }
  if (auto norm = dyn_cast<lm::RMSNormOp>(op))
    return checkShard(op, norm.getWeightAttr(), std::nullopt);
  FlatSymbolRefAttr weight, bias;
  if (auto linear = dyn_cast<lm::LinearOp>(op)) {
    weight = linear.getWeightAttr();
    bias = linear.getBiasAttr();
  } else if (auto matmul = dyn_cast<gemm::MatmulOp>(op)) {
    weight = matmul.getWeightAttr();
    bias = matmul.getBiasAttr();
    for (FlatSymbolRefAttr norm :
         {matmul.getQueryNormAttr(), matmul.getKeyNormAttr()})
      SANDWICH_RETURN_IF_ERROR(checkShard(op, norm, std::nullopt));
  } else {
    return {};
  }
  std::optional<lm::ShardKind> kind = findShard(op, weight);
  if (kind == lm::ShardKind::First)
    return checkShard(op, weight, std::nullopt);
  if (kind == lm::ShardKind::Columns)
    kind = lm::ShardKind::First;
  return checkShard(op, bias, kind);
}

namespace {

/// Tells the parts of sums over ranks, which differ between ranks, from all
/// that ranks may read.
class SumParts {
public:
  /// Error: `op` reads parts as though they were sums, or makes a sum of what
  /// are not all parts. What `op` reads must have been added.
  Status add(Operation *op);

private:
  Status addTerms(Operation *op, ValueRange terms, bool areParts);

  DenseSet<Value> parts;
};

} // namespace

/// Whether a rank has columns of `weight`, so that what `op` multiplies is a
/// part.
static bool hasColumns(Operation *op, FlatSymbolRefAttr weight) {
  return findShard(op, weight) == lm::ShardKind::Columns;
}

/// Adds `op`, of whose operands `terms` alone may be parts, and are if
/// `areParts`, as the result is then.
Status SumParts::addTerms(Operation *op, ValueRange terms, bool areParts) {
  for (Value operand : op->getOperands())
    if (parts.contains(operand) && !llvm::is_contained(terms, operand))
      return makeError("the result of ", nameOf(operand.getDefiningOp()),
                       " must be summed by lm.all_reduce before ", nameOf(op),
                       " reads it");
  for (Value term : terms)
    if (parts.contains(term) != areParts)
      return makeError(nameOf(op), " sums what is one rank's part and what all "
                                   "ranks have alike");
  if (areParts)
    parts.insert_range(op->getResults());
  return {};
}

Status SumParts::add(Operation *op) {
  if (auto linear = dyn_cast<lm::LinearOp>(op))
    return addTerms(op, {}, hasColumns(op, linear.getWeightAttr()));
  if (isa<lm::DealRowsOp>(op))
    return addTerms(op, {}, true);
  if (auto add = dyn_cast<lm::AddOp>(op))
    return addTerms(op, op->getOperands(), parts.contains(add.getLhs()));
  if (auto reduce = dyn_cast<lm::AllReduceOp>(op)) {
    if (!parts.contains(reduce.getInput()))
      return makeError("lm.all_reduce sums what is no part of a sum over the "
                       "ranks");
    return {};
  }
  auto matmul = dyn_cast<gemm::MatmulOp>(op);
  if (!matmul)
    return addTerms(op, {}, false);
  bool isPart = hasColumns(op, matmul.getWeightAttr());
  bool deals = matmul.getResidualRanks().has_value();
  gemm::Epilogue epilogue = matmul.getEpilogue();
  if (isPart ? epilogue != gemm::Epilogue::None &&
                   epilogue != gemm::Epilogue::AddResidual
             : deals)
    return makeError("gemm.matmul has an epilogue that does not fit a weight "
                     "of which ranks have ",
                     isPart ? "columns" : "no columns");
  return addTerms(
      op, deals ? ValueRange() : OperandRange(matmul.getResidualMutable()),
      isPart);
}

/// Whether the weights in `function` fit its operations, and ranks add up all
/// in it that is a part of a sum, and nothing else.
static Status checkOperations(func::FuncOp function, int64_t vocabulary) {
  SumParts parts;
  Status status;
  function.walk([&](Operation *op) {
    status = checkWeights(op, vocabulary);
    if (status)
      status = parts.add(op);
    return status ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (status)
    return {};
  return makeError("@", function.getName().str(), ": ", status.error().message);
}

/// Whether the function `name` has the caches and logits the runtime prepares,
/// as in the compiler's `own` model.
static Status checkPhase(StringRef name, ModuleOp module, ModuleOp own,
                         const Checkpoint &checkpoint,
                         const std::string &dtype) {
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
        ", but this checkpoint as ", dtype, " needs ", print(expected));
  SANDWICH_RETURN_IF_ERROR(checkLayers(function, checkpoint.config().layers));
  return checkOperations(function, checkpoint.config().vocabSize);
}

Status sandwich::checkInputModule(ModuleOp module, ModuleOp own,
                                  const Checkpoint &checkpoint,
                                  const std::string &dtype) {
  for (auto weight : module.getOps<lm::WeightOp>())
    if (Status status = checkWeight(weight, checkpoint); !status)
      return status.error().inContext("weight " + weight.getSymName().str());
  SANDWICH_RETURN_IF_ERROR(
      checkPhase("prefill", module, own, checkpoint, dtype));
  return checkPhase("decode", module, own, checkpoint, dtype);
}
