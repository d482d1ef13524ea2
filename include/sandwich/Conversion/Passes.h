//===- Passes.h - Lowerings between dialects --------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_PASSES_H
#define SANDWICH_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
namespace arith {
class ArithDialect;
} // namespace arith
namespace func {
class FuncDialect;
} // namespace func
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace math {
class MathDialect;
} // namespace math
namespace memref {
class MemRefDialect;
} // namespace memref
namespace scf {
class SCFDialect;
} // namespace scf
namespace vector {
class VectorDialect;
} // namespace vector
namespace x86vector {
class X86VectorDialect;
} // namespace x86vector
} // namespace mlir

namespace sandwich {

namespace phase {
class PhaseDialect;
} // namespace phase
namespace tile {
class TileDialect;
} // namespace tile

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sandwich/Conversion/Passes.h.inc"

} // namespace sandwich

#endif // SANDWICH_CONVERSION_PASSES_H
