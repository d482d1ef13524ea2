//===- ModelBuilder.h - From a configuration to model IR --------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_MODELBUILDER_H
#define SANDWICH_FRONTEND_MODELBUILDER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Frontend/ModelConfig.h"

#include <vector>

namespace sandwich {

/// The phases of the model, in their order: `prefill` and `decode`, or those in
/// which it embeds or classifies.
std::vector<lm::Phase> phasesOf(const ModelConfig &config);

/// The model IR of `config`: its weights as `lm.weight` symbols, and a function
/// for each of `phasesOf`. Matrices have elements of `elementType`
/// (f32 or bf16), vectors are f32; the KV cache has elements of `cacheType`
/// (f32, bf16 or f16). The dialects must be loaded.
mlir::OwningOpRef<mlir::ModuleOp> buildModel(mlir::MLIRContext *context,
                                             const ModelConfig &config,
                                             mlir::Type elementType,
                                             mlir::Type cacheType);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_MODELBUILDER_H
