//===- MatmulProgram.h - A phase program of one matmul ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The matmul of a model alone, in the form that a model has it in after
/// `phase-assign-buffers`: `gemm.matmul` with its epilogue in a phase program,
/// over layers of weights. `schedule-to-loops` makes of it what it makes of it
/// in a model, so that what is measured is what ships.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TUNING_MATMULPROGRAM_H
#define SANDWICH_TUNING_MATMULPROGRAM_H

#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/Schedule.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace sandwich {

/// What a program of one matmul is for.
struct MatmulProgram {
  /// With a packing.
  MatmulShape shape;
  /// Of all its schedules; where those of integers are beside tiles, these.
  MatrixISA isa = MatrixISA::X86_AVX2_F32;
  /// Of the team.
  int64_t threads = 1;
  /// The most rows of a step.
  int64_t maxRows = 512;
  /// Weights, each with its own bias and norms, and layers of the cache.
  int64_t layers = 1;

  auto operator<=>(const MatmulProgram &) const = default;

  /// Columns of the weight as stored: those of the shape, and what fills up the
  /// last groups of a gate and its up projection.
  int64_t storedColumns() const;
  /// Channels of a row of the result: columns, half of them, or those of the
  /// queries. Not positive where the epilogue does not fit the shape.
  int64_t resultChannels() const;
  bool bf16Input() const { return multipliesBF16(isa); }
  bool bf16Result() const {
    return shape.epilogue.feedsMatmuls && multipliesBF16(isa);
  }
  /// Elements from row to row.
  int64_t inputStride() const;
  int64_t resultStride() const;
  int64_t rotaryStride() const;
  /// Bytes of the weights of all layers, with biases and norms: where a layer's
  /// matrix lies, `weightPlace` says.
  int64_t weightBytes() const;
  /// Byte 0 of the matrix of layer 0, and the bytes to the next layer's.
  std::array<int64_t, 2> weightPlace() const;
  /// Bytes of the KV cache, with places for `maxRows` tokens; 0 where the
  /// epilogue writes none.
  int64_t cacheBytes() const;
};

/// A piece of the weights: the same columns and k of some layers.
struct WeightPiece {
  std::vector<int32_t> layers;
  /// The first ones.
  int64_t column = 0, k = 0;
};

/// One of the pieces of `layers` layers, `columns` columns and `k` k that the
/// weights of `program` divide into. Whatever sizes are asked for, those of
/// successive numbers are far from each other, so that what was read lately is
/// read again as late as possible. Sizes are at most those of the weights.
WeightPiece weightPiece(const MatmulProgram &program, int64_t number,
                        int64_t layers, int64_t columns, int64_t k);

/// Where the operands lie in the workspace, in bytes. The input is first.
struct MatmulWorkspace {
  /// Behind the input; the residual is there, too, and is overwritten.
  int64_t result = 0;
  /// [maxRows, head_dim] f32, rows `rotaryStride` apart; of `rotate_append_kv`
  /// only.
  int64_t rotaryTable = 0;
  /// Of all parts of K.
  int64_t partialSums = 0, partialSumsBytes = 0;
  /// `NestParameters`, and a `ThreadPart` for each thread.
  int64_t parameters = 0;
  /// Without what threads need beside that (see `SandwichPlan`).
  int64_t bytes = 0;

  static MatmulWorkspace of(const MatmulProgram &program,
                            const ScheduleTable &table);
};

/// The name of the program in IR, and of its entry point in object code.
inline constexpr llvm::StringLiteral matmulProgramName = "matmul";
inline constexpr llvm::StringLiteral matmulProgramSymbol =
    SANDWICH_PHASE_SYMBOL_PREFIX "matmul";

/// Whether the numbers of the schedule are constants, or `parameters`.
enum class ScheduleNumbers : uint8_t { Constants, Parameters };

/// Adds the program to `module`. A step multiplies its tokens with the layers
/// that it names where others name the rows whose logits are wanted, one after
/// another, with a barrier behind each. Token t has slot `slots[t]`.
/// `tokensBetween` promises how many tokens a step has. With parameters,
/// `table` has one schedule.
void addMatmulProgram(mlir::ModuleOp module, const MatmulProgram &program,
                      const ScheduleTable &table, ScheduleNumbers numbers,
                      std::array<int64_t, 2> tokensBetween);

} // namespace sandwich

#endif // SANDWICH_TUNING_MATMULPROGRAM_H
