//===- Interpreter.cpp - What model IR means ------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Interpreter/Interpreter.h"

#include "Products.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

using namespace mlir;
using namespace sandwich;

static constexpr int64_t blockTokens = lm::KVCacheType::blockTokens;

/// `value` as an element of `type` holds it; f32 is taken for exact.
static double roundTo(double value, Type type) {
  if (type.isF32())
    return value;
  llvm::APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  rounded.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.convertToDouble();
}

/// Rounds the channels of each head as a cache of `type` holds them.
static void roundHeads(MutableArrayRef<double> channels, lm::KVCacheType type) {
  const int64_t headDim = type.getHeadDim();
  for (; !channels.empty(); channels = channels.drop_front(headDim)) {
    MutableArrayRef<double> head = channels.take_front(headDim);
    if (!type.hasScales()) {
      for (double &channel : head)
        channel = roundTo(channel, type.getElementType());
      continue;
    }
    double largest = 0;
    for (double channel : head)
      largest = std::isfinite(channel)
                    ? std::max(largest, std::abs(channel))
                    : std::numeric_limits<double>::quiet_NaN();
    const double scale = largest / 127;
    for (double &channel : head)
      channel = scale * (channel == 0 ? 0 : std::nearbyint(channel / scale));
  }
}

namespace {

/// Keys and values of a head at some positions.
class ContextOfHead {
public:
  using Entry = std::array<std::vector<double>, 2>;

  /// Of channels `first` on of `entries`.
  ContextOfHead(ArrayRef<const Entry *> entries, int64_t first, int64_t headDim)
      : positions(static_cast<int64_t>(entries.size())), headDim(headDim),
        keys(positions * headDim), values(positions * headDim) {
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t c = 0; c < headDim; ++c) {
        keys[c * positions + p] = (*entries[p])[0][first + c];
        values[p * headDim + c] = (*entries[p])[1][first + c];
      }
  }

  /// Adds to `result` what `query` attends to among the first `attended`
  /// positions.
  void attend(int64_t attended, double scale, std::span<const double> query,
              std::span<double> result) const {
    std::vector<double> weights(attended);
    for (int64_t c = 0; c < headDim; ++c) {
      const double factor = scale * query[c];
      const double *channel = keys.data() + c * positions;
      for (int64_t p = 0; p < attended; ++p)
        weights[p] += factor * channel[p];
    }
    const double largest = *std::ranges::max_element(weights);
    double total = 0;
    for (double &weight : weights)
      total += weight = std::exp(weight - largest);
    for (int64_t p = 0; p < attended; ++p) {
      const double weight = weights[p] / total;
      for (int64_t c = 0; c < headDim; ++c)
        result[c] += weight * values[p * headDim + c];
    }
  }

private:
  const int64_t positions, headDim;
  /// [channel][position], and [position][channel].
  std::vector<double> keys, values;
};

} // namespace

static int64_t channelsOf(Value value) {
  return cast<ShapedType>(value.getType()).getDimSize(1);
}

namespace sandwich {

/// One step of one phase.
class Evaluation {
public:
  Evaluation(Interpreter &interpreter, func::FuncOp phase)
      : interpreter(interpreter), phase(phase) {}

  FailureOr<Matrix> run(const InterpreterStep &step);

private:
  LogicalResult evaluate(Block &block);
  LogicalResult evaluateAny(Operation *op);
  LogicalResult evaluate(scf::ForOp loop);
  LogicalResult evaluate(lm::AddOp op);
  LogicalResult evaluate(lm::AppendKVOp op);
  LogicalResult evaluate(lm::AttentionOp op);
  LogicalResult evaluate(lm::EmbedOp op);
  LogicalResult evaluate(lm::GatherRowsOp op);
  LogicalResult evaluate(lm::GeluOp op);
  LogicalResult evaluate(lm::L2NormalizeOp op);
  LogicalResult evaluate(lm::LayerNormOp op);
  LogicalResult evaluate(lm::LinearOp op);
  LogicalResult evaluate(lm::PoolOp op);
  LogicalResult evaluate(lm::RMSNormOp op);
  LogicalResult evaluate(lm::RotaryTableOp op);
  LogicalResult evaluate(lm::RotateOp op);
  LogicalResult evaluate(lm::RoundOp op);
  LogicalResult evaluate(lm::SiluMulOp op);
  LogicalResult evaluate(lm::TanhOp op);

  const Matrix &matrix(Value value) const { return *matrices.at(value); }
  ArrayRef<int32_t> indices(Value value) const { return integers.at(value); }
  int64_t layerOf(Value layer) const { return layer ? numbers.at(layer) : 0; }

  /// Gives the result of `op` what `compute` says of each row and channel,
  /// called by several threads.
  template <typename Op>
  LogicalResult
  setResult(Op op, int64_t rows,
            function_ref<double(int64_t row, int64_t channel)> compute);
  /// The same, of as many rows as `like` has.
  template <typename Op>
  LogicalResult
  setResult(Op op, Value like,
            function_ref<double(int64_t row, int64_t channel)> compute) {
    return setResult(op, matrix(like).rows, compute);
  }

  /// Gives the result of `op` `computed`, rounded to its elements.
  template <typename Op> LogicalResult setResult(Op op, Matrix computed) {
    const auto values = std::make_shared<const Matrix>(std::move(computed));
    if (getElementTypeOrSelf(op.getResult().getType()).isF32()) {
      matrices[op.getResult()] = values;
      return success();
    }
    return setResult(op, values->rows, [&](int64_t row, int64_t channel) {
      return values->at(row, channel);
    });
  }

  /// Whether `index` is one of `count`.
  static LogicalResult verifyIndex(Operation *op, StringRef what, int64_t index,
                                   int64_t count) {
    if (index >= 0 && index < count)
      return success();
    return op->emitOpError("reads ") << what << " " << index << " of " << count;
  }

  Interpreter &interpreter;
  func::FuncOp phase;
  llvm::DenseMap<Value, std::shared_ptr<const Matrix>> matrices;
  llvm::DenseMap<Value, ArrayRef<int32_t>> integers;
  llvm::DenseMap<Value, int64_t> numbers;
};

} // namespace sandwich

template <typename Op>
LogicalResult Evaluation::setResult(
    Op op, int64_t rows,
    function_ref<double(int64_t row, int64_t channel)> compute) {
  Value result = op.getResult();
  Type element = getElementTypeOrSelf(result);
  auto computed = std::make_shared<Matrix>(rows, channelsOf(result));
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, rows),
      [&](const tbb::blocked_range<int64_t> &range) {
        for (int64_t row = range.begin(); row < range.end(); ++row)
          for (int64_t channel = 0; channel < computed->channels; ++channel)
            computed->at(row, channel) =
                roundTo(compute(row, channel), element);
      });
  matrices[result] = std::move(computed);
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult Evaluation::evaluate(lm::AddOp op) {
  const Matrix &lhs = matrix(op.getLhs()), &rhs = matrix(op.getRhs());
  return setResult(op, op.getLhs(), [&](int64_t row, int64_t channel) {
    return lhs.at(row, channel) + rhs.at(row, channel);
  });
}

LogicalResult Evaluation::evaluate(lm::AppendKVOp op) {
  const lm::KVCacheType type = lm::getKVCacheType(op.getKvCache().getType());
  ArrayRef<int32_t> slots = indices(op.getSlots());
  for (auto [token, slot] : llvm::enumerate(slots)) {
    auto &entry = interpreter.cache[{layerOf(op.getLayer()), slot}];
    for (auto [part, source] :
         llvm::zip_equal(entry, ValueRange{op.getKey(), op.getValue()})) {
      const Matrix &values = matrix(source);
      part.resize(values.channels);
      for (int64_t channel = 0; channel < values.channels; ++channel)
        part[channel] = values.at(static_cast<int64_t>(token), channel);
      roundHeads(part, type);
    }
  }
  return success();
}

LogicalResult Evaluation::evaluate(lm::AttentionOp op) {
  const Matrix &query = matrix(op.getQuery());
  ArrayRef<int32_t> segments = indices(op.getSegments());
  ArrayRef<int32_t> blocks = indices(op.getBlockTables());
  const AttentionShape shape = op.getShape();
  const int64_t headDim =
      lm::getKVCacheType(op.getKvCache().getType()).getHeadDim();
  const double scale = op.getScale().convertToDouble();
  Matrix result(query.rows, query.channels);
  for (; !segments.empty(); segments = segments.drop_front(4)) {
    const int64_t firstToken = segments[0], tokens = segments[1],
                  firstPosition = segments[2], firstBlock = segments[3];
    // Of each position that some token attends to.
    std::vector<const std::array<std::vector<double>, 2> *> context;
    for (int64_t p = 0; p < firstPosition + tokens; ++p) {
      const int64_t block = firstBlock + p / blockTokens;
      if (failed(verifyIndex(op, "block", block,
                             static_cast<int64_t>(blocks.size()))))
        return failure();
      auto found = interpreter.cache.find(
          {layerOf(op.getLayer()),
           blocks[block] * blockTokens + p % blockTokens});
      if (found == interpreter.cache.end())
        return op.emitOpError("reads position ")
               << p << ", which was not written to the cache";
      context.push_back(&found->second);
    }
    if (tokens < 1)
      continue;
    for (int64_t row : {firstToken, firstToken + tokens - 1})
      if (failed(verifyIndex(op, "token", row, query.rows)))
        return failure();
    tbb::parallel_for(int64_t(0), shape.cacheHeads, [&](int64_t cacheHead) {
      // Channels of a position lie together, and positions of a channel.
      const ContextOfHead head(context, cacheHead * headDim, headDim);
      for (int64_t token = 0; token < tokens; ++token) {
        const int64_t attended =
            firstPosition + (op.getBidirectional() ? tokens : token + 1);
        for (int64_t first = cacheHead * shape.group * headDim,
                     end = first + shape.group * headDim;
             first < end; first += headDim) {
          const int64_t begin = (firstToken + token) * query.channels + first;
          head.attend(attended, scale,
                      std::span(query.values).subspan(begin, headDim),
                      std::span(result.values).subspan(begin, headDim));
        }
      }
    });
  }
  return setResult(op, std::move(result));
}

LogicalResult Evaluation::evaluate(lm::EmbedOp op) {
  FailureOr<Interpreter::Elements> table =
      interpreter.elementsOf(op, op.getWeightAttr(), 0);
  if (failed(table))
    return failure();
  ArrayRef<int32_t> ids = indices(op.getIndices());
  const int64_t channels = channelsOf(op.getResult());
  const int64_t rows = static_cast<int64_t>((*table)->size()) / channels;
  const int64_t offset = op.getOffsetAttr().getInt();
  for (int32_t id : ids)
    if (failed(verifyIndex(op, "row", id + offset, rows)))
      return failure();
  return setResult(op, static_cast<int64_t>(ids.size()),
                   [&](int64_t row, int64_t channel) {
                     return (**table)[(ids[row] + offset) * channels + channel];
                   });
}

LogicalResult Evaluation::evaluate(lm::GatherRowsOp op) {
  const Matrix &input = matrix(op.getInput());
  ArrayRef<int32_t> rows = indices(op.getRows());
  for (int32_t row : rows)
    if (failed(verifyIndex(op, "row", row, input.rows)))
      return failure();
  return setResult(op, static_cast<int64_t>(rows.size()),
                   [&](int64_t row, int64_t channel) {
                     return input.at(rows[row], channel);
                   });
}

LogicalResult Evaluation::evaluate(lm::GeluOp op) {
  const Matrix &input = matrix(op.getInput());
  const bool isExact = op.getKind() == lm::GeluKind::Exact;
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    const double x = input.at(row, channel);
    const double y = isExact ? std::erf(x / std::numbers::sqrt2)
                             : std::tanh(std::sqrt(2 / std::numbers::pi) *
                                         (x + 0.044715 * x * x * x));
    return x * (1 + y) / 2;
  });
}

LogicalResult Evaluation::evaluate(lm::LayerNormOp op) {
  const int64_t layer = layerOf(op.getLayer());
  FailureOr<Interpreter::Elements> weight =
      interpreter.elementsOf(op, op.getWeightAttr(), layer);
  if (failed(weight))
    return failure();
  FailureOr<Interpreter::Elements> bias =
      interpreter.elementsOf(op, op.getBiasAttr(), layer);
  if (failed(bias))
    return failure();
  const Matrix &input = matrix(op.getInput());
  Matrix normed = input;
  for (int64_t row = 0; row < input.rows; ++row) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < input.channels; ++c)
      mean += input.at(row, c) / static_cast<double>(input.channels);
    for (int64_t c = 0; c < input.channels; ++c)
      variance += std::pow(input.at(row, c) - mean, 2) /
                  static_cast<double>(input.channels);
    const double root = std::sqrt(variance + op.getEpsilon().convertToDouble());
    for (int64_t c = 0; c < input.channels; ++c)
      normed.at(row, c) = (input.at(row, c) - mean) / root;
  }
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    return normed.at(row, channel) * (**weight)[channel] + (**bias)[channel];
  });
}

LogicalResult Evaluation::evaluate(lm::LinearOp op) {
  const int64_t layer = layerOf(op.getLayer());
  FailureOr<Interpreter::Elements> weight =
      interpreter.elementsOf(op, op.getWeightAttr(), layer);
  if (failed(weight))
    return failure();
  FailureOr<Interpreter::Elements> bias = Interpreter::Elements();
  if (op.getBiasAttr())
    bias = interpreter.elementsOf(op, op.getBiasAttr(), layer);
  if (failed(bias))
    return failure();
  const Matrix &input = matrix(op.getInput());
  if (interpreter.options.observeMatmul)
    interpreter.options.observeMatmul(
        lm::lookupWeight(interpreter.symbols, op, op.getWeightAttr()), layer,
        input);
  Matrix sums(input.rows, channelsOf(op.getResult()));
  if (*bias)
    for (int64_t row = 0; row < sums.rows; ++row)
      for (int64_t channel = 0; channel < sums.channels; ++channel)
        sums.at(row, channel) = (**bias)[channel];
  addProduct(input, **weight, sums);
  return setResult(op, std::move(sums));
}

LogicalResult Evaluation::evaluate(lm::L2NormalizeOp op) {
  const Matrix &input = matrix(op.getInput());
  std::vector<double> lengths(input.rows);
  for (int64_t row = 0; row < input.rows; ++row) {
    for (int64_t c = 0; c < input.channels; ++c)
      lengths[row] += std::pow(input.at(row, c), 2);
    lengths[row] = std::max(std::sqrt(lengths[row]), 1e-12);
  }
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    return input.at(row, channel) / lengths[row];
  });
}

LogicalResult Evaluation::evaluate(lm::PoolOp op) {
  const Matrix &input = matrix(op.getInput());
  ArrayRef<int32_t> segments = indices(op.getSegments());
  const auto rows = static_cast<int64_t>(segments.size() / 4);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = segments[4 * row], tokens = segments[4 * row + 1];
    if (tokens < 1)
      return op.emitOpError("reads a segment without tokens");
    if (failed(verifyIndex(op, "token", first, input.rows)) ||
        failed(verifyIndex(op, "token", first + tokens - 1, input.rows)))
      return failure();
  }
  return setResult(op, rows, [&](int64_t row, int64_t channel) {
    const int64_t first = segments[4 * row], tokens = segments[4 * row + 1];
    if (op.getKind() == lm::PoolKind::Cls)
      return input.at(first, channel);
    if (op.getKind() == lm::PoolKind::Last)
      return input.at(first + tokens - 1, channel);
    double sum = 0;
    for (int64_t token = first; token < first + tokens; ++token)
      sum += input.at(token, channel);
    return sum / static_cast<double>(tokens);
  });
}

LogicalResult Evaluation::evaluate(lm::RMSNormOp op) {
  FailureOr<Interpreter::Elements> weight =
      interpreter.elementsOf(op, op.getWeightAttr(), layerOf(op.getLayer()));
  if (failed(weight))
    return failure();
  const Matrix &input = matrix(op.getInput());
  const auto size = static_cast<int64_t>((*weight)->size());
  const double epsilon = op.getEpsilon().convertToDouble();
  Matrix normed = input;
  for (int64_t row = 0; row < input.rows; ++row)
    for (int64_t first = 0; first < input.channels; first += size) {
      double mean = 0;
      for (int64_t c = first; c < first + size; ++c)
        mean += std::pow(input.at(row, c), 2) / static_cast<double>(size);
      for (int64_t c = first; c < first + size; ++c)
        normed.at(row, c) /= std::sqrt(mean + epsilon);
    }
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    return normed.at(row, channel) * (**weight)[channel % size];
  });
}

LogicalResult Evaluation::evaluate(lm::RotaryTableOp op) {
  ArrayRef<int32_t> positions = indices(op.getPositions());
  ArrayRef<float> frequencies = op.getFrequencies();
  const auto half = static_cast<int64_t>(frequencies.size());
  return setResult(op, static_cast<int64_t>(positions.size()),
                   [&](int64_t row, int64_t channel) {
                     const double angle =
                         positions[row] *
                         static_cast<double>(frequencies[channel % half]);
                     return channel < half ? std::cos(angle) : std::sin(angle);
                   });
}

LogicalResult Evaluation::evaluate(lm::RotateOp op) {
  const Matrix &input = matrix(op.getInput()), &table = matrix(op.getTable());
  const int64_t half = table.channels / 2;
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    const int64_t pair = channel % half;
    const double cosine = table.at(row, pair),
                 sine = table.at(row, half + pair);
    const double x = input.at(row, channel);
    return channel % table.channels < half
               ? x * cosine - input.at(row, channel + half) * sine
               : x * cosine + input.at(row, channel - half) * sine;
  });
}

LogicalResult Evaluation::evaluate(lm::RoundOp op) {
  const Matrix &input = matrix(op.getInput());
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    return input.at(row, channel);
  });
}

LogicalResult Evaluation::evaluate(lm::SiluMulOp op) {
  const Matrix &gate = matrix(op.getGate()), &up = matrix(op.getUp());
  return setResult(op, op.getGate(), [&](int64_t row, int64_t channel) {
    const double x = gate.at(row, channel);
    return x / (1 + std::exp(-x)) * up.at(row, channel);
  });
}

LogicalResult Evaluation::evaluate(lm::TanhOp op) {
  const Matrix &input = matrix(op.getInput());
  return setResult(op, op.getInput(), [&](int64_t row, int64_t channel) {
    return std::tanh(input.at(row, channel));
  });
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

LogicalResult Evaluation::evaluate(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!first || !end || !step || *step <= 0)
    return loop.emitOpError("does not count layers");
  if (!llvm::all_of(loop.getInitArgs(),
                    [&](Value value) { return matrices.contains(value); }))
    return loop.emitOpError("carries what is no activation");
  for (auto [argument, initial] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    matrices[argument] = matrices.at(initial);
  for (int64_t layer = *first; layer < *end; layer += *step) {
    numbers[loop.getInductionVar()] = layer;
    if (failed(evaluate(*loop.getBody())))
      return failure();
    // All are read before the first is written.
    auto yielded =
        llvm::map_to_vector(loop.getYieldedValues(),
                            [&](Value value) { return matrices.at(value); });
    for (auto [argument, value] :
         llvm::zip_equal(loop.getRegionIterArgs(), yielded))
      matrices[argument] = value;
  }
  for (auto [result, argument] :
       llvm::zip_equal(loop.getResults(), loop.getRegionIterArgs()))
    matrices[result] = matrices.at(argument);
  return success();
}

LogicalResult Evaluation::evaluateAny(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp, lm::AddOp, lm::AppendKVOp, lm::AttentionOp, lm::EmbedOp,
            lm::GatherRowsOp, lm::GeluOp, lm::L2NormalizeOp, lm::LayerNormOp,
            lm::LinearOp, lm::PoolOp, lm::RMSNormOp, lm::RotaryTableOp,
            lm::RotateOp, lm::RoundOp, lm::SiluMulOp, lm::TanhOp>(
          [this](auto each) { return evaluate(each); })
      .Case([this](arith::ConstantIndexOp constant) {
        numbers[constant] = constant.value();
        return success();
      })
      .Default([](Operation *other) -> LogicalResult {
        return other->emitOpError("is not of model IR for one rank");
      });
}

LogicalResult Evaluation::evaluate(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(evaluateAny(&op)))
      return failure();
  return success();
}

FailureOr<Matrix> Evaluation::run(const InterpreterStep &step) {
  const ArrayRef<int32_t> arguments[] = {step.tokenIds,    step.positions,
                                         step.cacheSlots,  step.segments,
                                         step.blockTables, step.logitRows};
  // Then come the cache, and in some token types.
  const unsigned inputs = phase.getNumArguments();
  const unsigned most = std::size(arguments) + 2;
  if (phase.isExternal() || !llvm::hasSingleElement(phase.getBody()) ||
      (inputs != most && inputs + 1 != most))
    return phase.emitError(
        "is not a phase of seven or eight arguments in one block");
  for (auto [argument, values] :
       llvm::zip_first(arguments, phase.getArguments()))
    integers[values] = argument;
  if (inputs == most)
    integers[phase.getArguments().back()] = step.tokenTypes;
  Block &body = phase.getBody().front();
  if (failed(evaluate(body)))
    return failure();
  auto returned = cast<func::ReturnOp>(body.getTerminator());
  if (returned.getNumOperands() != 1 ||
      !matrices.contains(returned.getOperand(0)))
    return returned.emitOpError("does not return what was computed");
  return matrix(returned.getOperand(0));
}

FailureOr<Matrix> Interpreter::run(func::FuncOp phase,
                                   const InterpreterStep &step) {
  return Evaluation(*this, phase).run(step);
}

FailureOr<Interpreter::Elements> Interpreter::elementsOf(Operation *user,
                                                         FlatSymbolRefAttr name,
                                                         int64_t layer) {
  lm::WeightOp weight = lm::lookupWeight(symbols, user, name);
  if (!weight)
    return user->emitOpError("names no weight: ") << name;
  if (weight.getShardAttr())
    return weight.emitOpError("is a shard: the interpreter is of one rank");
  const std::pair key(weight.getOperation(), layer);
  if (auto known = weights.find(key); known != weights.end())
    return known->second;
  Result<std::vector<float>> read = readWeight(weight, layer);
  if (!read)
    return weight.emitOpError(read.error().message);
  auto elements = std::make_shared<const std::vector<float>>(std::move(*read));
  if (options.keepsWeights)
    weights[key] = elements;
  return elements;
}
