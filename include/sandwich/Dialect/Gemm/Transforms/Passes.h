//===- Passes.h - Passes of gemm ----------------------------- -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_H
#define SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace sandwich::gemm {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sandwich/Dialect/Gemm/Transforms/Passes.h.inc"

} // namespace sandwich::gemm

#endif // SANDWICH_DIALECT_GEMM_TRANSFORMS_PASSES_H
