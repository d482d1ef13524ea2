//===- Passes.h - Passes of topo --------------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_H
#define SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_H

#include "sandwich/Dialect/Topo/IR/Topo.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace sandwich::topo {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sandwich/Dialect/Topo/Transforms/Passes.h.inc"

} // namespace sandwich::topo

#endif // SANDWICH_DIALECT_TOPO_TRANSFORMS_PASSES_H
