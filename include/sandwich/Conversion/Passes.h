//===- Passes.h - Between dialects --------------------------- -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_CONVERSION_PASSES_H
#define SANDWICH_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace sandwich {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "sandwich/Conversion/Passes.h.inc"

} // namespace sandwich

#endif // SANDWICH_CONVERSION_PASSES_H
