//===- Intrinsics.h - What intrinsics compute -------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The intrinsics of AVX2, AVX-512 and NEON that numerical kernels use, each
/// with an expression for lane `i` of its result. One table tells all that is
/// known of them: how they are declared, what they compute, and so what they
/// are raised to (section 6.1 of the Sandwich paper).
///
/// A table is text, of rules like
///
///     masked _mm512_add_ps(a, b: f32x16) -> f32x16 = a[i] + b[i]
///     _mm512_loadu_ps(p: const f32*) -> f32x16 = p[i]
///     _mm512_mask_storeu_ps(p: f32*, k: mask16, a: f32x16): p[i] = a[i] if
///     k[i]
///
/// `masked` adds what `_mm512_mask_add_ps` and `_mm512_maskz_add_ps` compute.
/// `[avx512f]` says what the rules behind it need, and rules inside of
/// `each p, n in (_mm256, 8), (_mm512, 16) { ... }` are there for both pairs of
/// texts for `{p}` and `{n}`.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_INTRINSICS_H
#define SANDWICH_KERNEL_INTRINSICS_H

#include "sandwich/Support/Result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::kernel {

/// The numbers of lanes. `Bool` is a lane of a mask.
enum class LaneType : uint8_t {
  Bool,
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  F16,
  BF16,
  F32,
  F64,
};
/// `f32`, `u8`, `bool`.
std::string_view name(LaneType type);
std::optional<LaneType> laneTypeNamed(std::string_view name);
int64_t bitsOf(LaneType type);
bool isFloat(LaneType type);
bool isSigned(LaneType type);

/// A number with its type; what the type does not have of the bits is 0.
struct Lane {
  LaneType type = LaneType::Bool;
  uint64_t bits = 0;

  bool operator==(const Lane &) const = default;
};

/// A number, a vector of `lanes` numbers or a mask, memory that numbers of
/// `lane` are read from or written to, or a number that is known when a kernel
/// is compiled.
struct ParameterType {
  enum class Kind : uint8_t { Number, Vector, Mask, Pointer, Immediate };
  Kind kind = Kind::Number;
  LaneType lane = LaneType::F32;
  /// Of vectors and masks; of memory, those of the vector that its pointer is
  /// said to point to, or 0.
  int64_t lanes = 0;
  bool isConst = false;
  /// The immediate numbers that there are, from the first to the last.
  int64_t first = 0, last = 0;

  bool operator==(const ParameterType &) const = default;
};

struct Parameter {
  std::string name;
  ParameterType type;
};

/// What a lane is computed by.
struct Expression {
  enum class Kind : uint8_t {
    /// `number`, of `type`.
    Constant,
    /// `i`, or the variable of a fold: an index.
    Index,
    /// The immediate parameter number `number`, an index.
    Immediate,
    /// Of parameter number `number`, a number or the lane or element that the
    /// operand, an index, tells.
    Argument,
    /// Any number of the type that is asked for: 0 here.
    Undefined,
    /// Of the operands.
    Negate,
    Not,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    /// The second operand where the first holds, else the third; the other one
    /// is not computed.
    Select,
    /// To `type`: integers wrap, floats are rounded to the nearest, and become
    /// integers towards zero, or, where they are no such integer, the most
    /// negative one.
    Convert,
    /// To `type`, an integer, at most its largest and smallest; no number is 0.
    Saturate,
    /// The same bits as `type`.
    Reinterpret,
    Fma,
    SquareRoot,
    Absolute,
    /// To an integer: to the nearest (of two the even one), down, up, to zero.
    Round,
    Floor,
    Ceil,
    Truncate,
    /// The smaller and the larger one; no number if an operand is none.
    Minimum,
    Maximum,
    /// 2 to the power of the operand.
    PowerOfTwo,
    /// Sums, and the like, of the operand for all values of the variable with
    /// the name `name` below `number`: of each with the one half of them behind
    /// it, then of these, and so on; or, `pairs`, of neighbours. Compilers
    /// differ about the smallest and largest where one is no number.
    FoldAdd,
    FoldMinimum,
    FoldMaximum,
    FoldOr,
  };
  Kind kind = Kind::Constant;
  /// Nothing: an index, a signed integer of 64 bits.
  std::optional<LaneType> type;
  std::vector<Expression> operands;
  int64_t number = 0;
  std::string name;
  bool pairs = false;
};

/// What is written to memory for each lane: where `condition` holds, if there
/// is one, the value to the element `index` of parameter number `parameter`.
struct Store {
  int64_t parameter = 0, lanes = 0;
  Expression index, value;
  std::optional<Expression> condition;
};

struct Intrinsic {
  std::string name;
  /// What CPUs must have, as compilers call it: `avx512f,avx512bw`.
  std::string features;
  std::vector<Parameter> parameters;
  /// Nothing: it only writes to memory.
  std::optional<ParameterType> result;
  /// Of lane `i` of the result.
  Expression value;
  std::optional<Store> store;
};

/// A value of a parameter: its lanes, or the bytes that a pointer points to.
struct Argument {
  std::vector<Lane> lanes;
  std::span<std::byte> memory;
};

class IntrinsicTable {
public:
  /// An error names the line and what is wrong with it.
  static Result<IntrinsicTable> parse(std::string_view text);
  /// Those of the architecture, which are a part of this program.
  static const IntrinsicTable &x86();

  /// Null if there is none of that name.
  const Intrinsic *find(std::string_view name) const;
  const std::map<std::string, Intrinsic, std::less<>> &all() const {
    return intrinsics;
  }

private:
  std::map<std::string, Intrinsic, std::less<>> intrinsics;
};

/// The lanes of the result of `intrinsic` for `arguments`, which are as its
/// parameters say; writes to the memory of pointers. An error if it reads or
/// writes what is not there.
Result<std::vector<Lane>> evaluate(const Intrinsic &intrinsic,
                                   std::span<const Argument> arguments);

/// `uint8_t`, `float`; of floats of 16 bits and of truths `uint16_t`.
std::string cTypeOf(LaneType type);
/// `__m512`, `__m256i`, `__m512bh`.
std::string cVectorType(LaneType type, int64_t lanes);
/// As compilers' headers have it: `const float *`, `__mmask16`, `int` of what
/// is immediate.
std::string cTypeOf(const ParameterType &type);
/// A header of C, and C++, that can take the place of `immintrin.h` where
/// nothing is compiled: the table's intrinsics as functions, never as macros,
/// whose pointers are `void *`, and the types and macros that come with them.
std::string declareX86Intrinsics();

/// The text of the table of x86.
std::string_view x86IntrinsicsText();

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_INTRINSICS_H
