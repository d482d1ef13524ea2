//===- Interpreter.h - What model IR means ----------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Computes the phases of model IR operation by operation, as the dialect's
/// pages define each, in f64 and without any of the compiler's passes: what
/// compiled code is compared with, and what a checkpoint's own values predict.
/// Works on all cores, with the same bits however many there are; some hundred
/// tokens of a model of a billion weights take minutes.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_INTERPRETER_INTERPRETER_H
#define SANDWICH_INTERPRETER_INTERPRETER_H

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sandwich {

/// [rows, channels] numbers, rows one after another.
struct Matrix {
  int64_t rows = 0;
  int64_t channels = 0;
  std::vector<double> values;

  Matrix(int64_t rows, int64_t channels)
      : rows(rows), channels(channels), values(rows * channels) {}
  double &at(int64_t row, int64_t channel) {
    return values[row * channels + channel];
  }
  double at(int64_t row, int64_t channel) const {
    return values[row * channels + channel];
  }
};

/// What a phase takes for one step, as `SandwichStep` of PhaseABI.h describes.
struct InterpreterStep {
  std::vector<int32_t> tokenIds, positions, cacheSlots;
  /// Four numbers for each segment.
  std::vector<int32_t> segments;
  std::vector<int32_t> blockTables, logitRows;
  /// Of phases that read them.
  std::vector<int32_t> tokenTypes;
};

struct InterpreterOptions {
  /// Keeps each weight that was read, in f32, for layers and steps that read it
  /// again. Otherwise it is read when an operation needs it and forgotten.
  bool keepsWeights = true;
  /// Hears, before each matmul, which weight it multiplies, the layer (0
  /// outside of layers), and its input. May be empty.
  std::function<void(lm::WeightOp weight, int64_t layer, const Matrix &input)>
      observeMatmul = {};
};

/// Runs steps one after another; later ones read what earlier ones wrote to the
/// cache.
class Interpreter {
public:
  /// The elements of `weight`, of layer `layer` where it has layers, row by row
  /// as its type says.
  using WeightReader = std::function<Result<std::vector<float>>(
      lm::WeightOp weight, int64_t layer)>;

  explicit Interpreter(WeightReader readWeight, InterpreterOptions options = {})
      : readWeight(std::move(readWeight)), options(std::move(options)) {}

  /// The result of `phase`, which has the arguments of a phase, for
  /// `step`. Phases of one module only, which outlives the interpreter. Emits
  /// an error on the operation that cannot be computed: one that is not of
  /// model IR for one rank, or that reads what is not there.
  mlir::FailureOr<Matrix> run(mlir::func::FuncOp phase,
                              const InterpreterStep &step);

private:
  friend class Evaluation;

  using Elements = std::shared_ptr<const std::vector<float>>;
  mlir::FailureOr<Elements> elementsOf(mlir::Operation *user,
                                       mlir::FlatSymbolRefAttr name,
                                       int64_t layer);

  WeightReader readWeight;
  InterpreterOptions options;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, Elements> weights;
  /// Key and value, all heads of each, by layer and place.
  llvm::DenseMap<std::pair<int64_t, int64_t>,
                 std::array<std::vector<double>, 2>>
      cache;
};

} // namespace sandwich

#endif // SANDWICH_INTERPRETER_INTERPRETER_H
