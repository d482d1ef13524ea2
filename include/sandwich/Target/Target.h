//===- Target.h - What code is compiled for ---------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The CPU model schedules are chosen from: which matrix instructions there
/// are, how many registers hold their operands, how large the caches are.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_TARGET_TARGET_H
#define SANDWICH_TARGET_TARGET_H

#include "sandwich/Support/Result.h"
#include "sandwich/Target/CpuFeatures.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Bytes of a cache line, on all CPUs that targets are for but A64FX, whose
/// lines are four of these.
inline constexpr int64_t cacheLineBytes = 64;

/// f32 elements that vector code outside of micro-kernels works on at a time: a
/// cache line of them. Where registers are narrower, LLVM takes several.
inline constexpr int64_t vectorWidth = cacheLineBytes / sizeof(float);

/// The instructions a micro-kernel multiplies with, and the element type they
/// take: the first part of a micro-kernel's name.
enum class MatrixISA {
  /// AVX2 and FMA, f32; bf16 weights are widened in registers.
  X86_AVX2_F32,
  /// AVX2: vpmaddubsw and vpmaddwd, four k of integers of a weight and of an
  /// input rounded to int8, in three instructions or more.
  X86_AVX2_INT8,
  /// AVX-VNNI: vpdpbusd on half as long registers as AVX512_VNNI's.
  X86_AVX_VNNI,
  /// AVX-512F, f32; bf16 weights are widened in registers.
  X86_AVX512_F32,
  /// AVX512_VNNI: vpdpbusd, four k of integers of a weight without signs and of
  /// an input rounded to int8.
  X86_AVX512_VNNI,
  /// AVX512_BF16: vdpbf16ps, pairs of bf16 into f32.
  X86_AVX512_BF16,
  /// AMX-TILE and AMX-BF16: tdpbf16ps, tiles of 16 rows of 64 bytes.
  X86_AMX_BF16,
  /// AMX-TILE and AMX-INT8: tdpbsud, tiles of 16 rows of 64 integers of 8 bits,
  /// of an input rounded to int8 and of a weight without signs.
  X86_AMX_INT8,
  /// NEON, f32: fmla.
  ARM_NEON_F32,
  /// NEON with dot products: sdot, four k of integers of a weight and of an
  /// input rounded to int8.
  ARM_NEON_DOTPROD,
  /// NEON with I8MM: usmmla, and smmla for numbers of 8 bits with minima, 2 x 8
  /// integers of a weight times 8 x 2 of an input rounded to int8 into 2 x 2
  /// i32.
  ARM_NEON_I8MM,
  /// NEON with BF16: bfmmla, 2 x 4 times 4 x 2 bf16 into 2 x 2 f32.
  ARM_NEON_BF16,
  /// SVE, f32: fmla on vectors as long as the CPU has them, up to 512 bits;
  /// bf16 weights are widened in registers.
  ARM_SVE_F32,
  /// SVE with BF16: bfmmla in each 128 bits of such vectors.
  ARM_SVE_BF16,
};

/// How many there are.
inline constexpr size_t matrixISACount =
    static_cast<size_t>(MatrixISA::ARM_SVE_BF16) + 1;

/// The registers that hold a micro-kernel's sums and operands; where they are
/// of several lengths, the longest.
struct RegisterFile {
  /// Vector registers, or tiles.
  int64_t registers;
  /// Sums in one register: 1 row of a vector, 16 of a tile, 2 of those of
  /// bfmmla and usmmla.
  int64_t rows, columns;
};

/// `X86_AVX512_BF16` and so on, as micro-kernel names begin.
std::string_view name(MatrixISA isa);

/// Every instruction set, in the order of `MatrixISA`.
std::span<const MatrixISA> allMatrixISAs();

RegisterFile registerFileOf(MatrixISA isa);

/// The CPUs that have the instructions.
CpuArchitecture architectureOf(MatrixISA isa);

/// Whether the instructions multiply tiles of rows, as many in each as are
/// configured when the program runs; others take single rows.
bool hasTiles(MatrixISA isa);

/// Of a vector whose length is the CPU's to choose: the longest that code is
/// made for.
inline constexpr int64_t longestScalableVectorBytes = 64;

/// Whether the length of a register is the CPU's to choose, so that the same
/// code runs with any: what needs one of the longest goes through shorter ones
/// in several passes.
bool hasScalableVectors(MatrixISA isa);

/// The numbers that instructions multiply.
enum class MatrixElement : uint8_t { F32, BF16, Int8 };

/// `f32`, `bf16` or `int8`.
std::string_view name(MatrixElement element);

MatrixElement elementOf(MatrixISA isa);

/// Whether the instructions multiply bf16.
inline bool multipliesBF16(MatrixISA isa) {
  return elementOf(isa) == MatrixElement::BF16;
}

/// Whether the instructions multiply integers, to which an input of f32 or
/// bf16 is rounded when it is packed.
inline bool multipliesIntegers(MatrixISA isa) {
  return elementOf(isa) == MatrixElement::Int8;
}

/// What the compiler knows of the CPU it compiles for.
struct Target {
  /// `x86-64-avx2`, `x86-64-avx-vnni`, `x86-64-avx512`, `x86-64-avx512-vnni`,
  /// `x86-64-avx512-bf16`, `x86-64-amx`, `aarch64-neon`,
  /// `aarch64-neon-dotprod`, `aarch64-neon-i8mm`, `aarch64-sve`,
  /// `aarch64-sve-bf16`, `aarch64-neon-bf16`.
  std::string name;
  CpuArchitecture architecture = CpuArchitecture::X86_64;
  /// Best last; the schedule rule prefers the last that fits a matmul.
  std::vector<MatrixISA> matrixISAs;
  /// What the code may use and the machine that runs it must have.
  CpuFeatures features;
  /// Of one core, in bytes.
  int64_t l1DataBytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;

  /// The registers of the widest vectors whose width is known.
  RegisterFile vectorRegisters() const;

  /// LLVM's name for machine, system and ABI: `x86_64-unknown-linux-gnu`.
  std::string_view triple() const;

  /// LLVM's name for the oldest CPU of the architecture.
  std::string_view baselineCpu() const;

  /// The features as LLVM's `+a,+b` list.
  std::string featureString() const;
};

/// Names that `getTarget` accepts, besides `host`.
std::vector<std::string> targetNames();

/// The target called `name`; `host` is the best one this CPU runs, with its
/// cache sizes. Errors: an unknown name; an x86-64 host without AVX2.
Result<Target> getTarget(std::string_view name);

} // namespace sandwich

#endif // SANDWICH_TARGET_TARGET_H
