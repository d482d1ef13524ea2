//===- LM.h - The language-model dialect ------------------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LM_H
#define SANDWICH_DIALECT_LM_IR_LM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "sandwich/Dialect/LM/IR/StepOp.h"
#include "sandwich/Quantization/StorageFormat.h"
#include "sandwich/Runtime/PhaseABI.h"
#include "sandwich/Scheduling/AttentionSchedule.h"
#include "sandwich/Support/ModelLimits.h"

#include "llvm/ADT/Hashing.h"

namespace sandwich {
llvm::hash_code hash_value(const AttentionSchedule &schedule);
llvm::hash_code hash_value(const AttentionTable &table);
llvm::hash_code hash_value(const StorageFormat &format);
} // namespace sandwich

#include "sandwich/Dialect/LM/IR/LMDialect.h.inc"
#include "sandwich/Dialect/LM/IR/LMEnums.h.inc"
#include "sandwich/Dialect/LM/IR/LMInterfaces.h.inc"
#include "sandwich/Dialect/LM/IR/LMOpInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/LM/IR/LMAttributes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/LM/IR/LMOps.h.inc"

namespace sandwich::lm {

/// The attribute that marks a phase's function.
inline constexpr llvm::StringLiteral phaseAttributeName = "lm.phase";

/// Whether `phase` returns something of whole texts, each of which is one
/// segment of the step, instead of logits.
inline bool encodes(Phase phase) {
  return phase != Phase::Prefill && phase != Phase::Decode;
}

/// The attribute of a phase's function that says how many threads run it, where
/// the passes' options are not to decide: between 1 and SANDWICH_MAX_THREADS.
inline constexpr llvm::StringLiteral threadsAttributeName = "lm.threads";

/// Attribute of an operation that a kernel computes, a `#lm.kernel`; and the
/// module beside the phases that has the kernels.
inline constexpr llvm::StringLiteral kernelAttributeName = "lm.kernel";
inline constexpr llvm::StringLiteral kernelsModuleName = "kernels";

/// The threads that run `function`: what it says, or `given`.
int64_t getThreads(mlir::Operation *function, int64_t given);

/// The attribute of a module, of no value, with which the results of a sequence
/// do not depend, in any bit, on what else is in its steps: schedules then keep
/// the order of sums whatever the number of tokens is.
inline constexpr llvm::StringLiteral deterministicAttributeName =
    "lm.deterministic";

/// Whether the module of `op` has that attribute.
bool isDeterministic(mlir::Operation *op);

/// The most elements of one dimension, so that the bytes of a tensor with two
/// fit 64 bits.
inline constexpr int64_t maxDimension = INT32_MAX;
/// The most of a stacked weight's layers.
inline constexpr int64_t maxLayers = model_limits::layers;
/// The most KV heads of one layer.
inline constexpr int64_t maxHeads = model_limits::heads;
/// The most rows that alternate between the sources of a weight.
inline constexpr int64_t maxInterleave = 1 << 12;
/// The most channels of one attention head.
inline constexpr int64_t maxHeadDim = model_limits::headDim;

/// Whether the second dimension of `type` is between 1 and `maxDimension`.
bool hasChannels(mlir::Type type);

/// The weight `name` refers to from `user`, or null. A pass has one `symbols`
/// for all that it looks up: the first look reads the whole module.
WeightOp lookupWeight(mlir::SymbolTableCollection &symbols,
                      mlir::Operation *user, mlir::FlatSymbolRefAttr name);

/// What an operation needs a weight that it names to be.
struct WeightShape {
  /// `ShapedType::kDynamic` for a dimension of any size.
  llvm::SmallVector<int64_t, 2> shape;
  bool hasLayers = false;
  bool interleaved = false;
};

/// The weight `name` refers to from `user` if it is as `use` says, else an
/// error on `user` that begins with the number of the violated `constraint`.
/// Only for `verifySymbolUses`: elsewhere the weight may not be verified yet.
mlir::FailureOr<WeightOp> verifyWeightUse(mlir::Operation *user,
                                          mlir::SymbolTableCollection &symbols,
                                          mlir::FlatSymbolRefAttr name,
                                          const WeightShape &use,
                                          llvm::StringRef constraint);

/// The cache that a value of `type` (a cache or a buffer) is or stores; null
/// for a buffer that stores none.
KVCacheType getKVCacheType(mlir::Type type);

/// How the numbers of a weight are stored: as `storage` says if it is there,
/// else as they are, elements of `type`, which is f32 or bf16.
StorageFormat storageFormatOf(StorageAttr storage, mlir::Type type);

/// f32, bf16 or f16, as attention's schedules name it.
AttentionElement attentionElementOf(mlir::Type type);
mlir::Type getType(AttentionElement element, mlir::MLIRContext *context);

/// Among how many ranks the weights of `module` are divided; 1 if they are
/// whole. Fails, with an error on what differs, where weights or operations of
/// several ranks disagree.
mlir::FailureOr<int64_t> getRanks(mlir::ModuleOp module);

/// Whether `value` is a positive number.
bool isPositive(const llvm::APFloat &value);

/// Checks that `user` is in tensor form (one result, no destination) or in
/// buffer form (the opposite, and no tensor operand), as every operation with
/// a destination must be.
mlir::LogicalResult verifyForm(mlir::Operation *user, mlir::Value result,
                               mlir::Value destination);

/// The result of the tensor form or the destination of the buffer form.
template <typename Op> mlir::ShapedType getDestinationType(Op op) {
  mlir::Value value = op.getResult() ? mlir::Value(op.getResult())
                                     : mlir::Value(op.getDestination());
  return mlir::cast<mlir::ShapedType>(value.getType());
}

/// Reads from every buffer operand of `op` but `destination` (one or none),
/// which it writes. The same buffer may be another operand too.
void getBufferEffects(
    mlir::Operation *op, mlir::MutableOperandRange destination,
    llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance> &effects);

/// What it costs to multiply rows by `weight`.
StepCost getMatmulCost(WeightOp weight);

} // namespace sandwich::lm

#endif // SANDWICH_DIALECT_LM_IR_LM_H
