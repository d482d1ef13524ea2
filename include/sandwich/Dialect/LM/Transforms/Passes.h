//===- Passes.h - Passes of lm -----------------------------------*- C++ -*-==//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_H
#define SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace sandwich::lm {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sandwich/Dialect/LM/Transforms/Passes.h.inc"

} // namespace sandwich::lm

#endif // SANDWICH_DIALECT_LM_TRANSFORMS_PASSES_H
