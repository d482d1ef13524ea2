//===- LMOperands.td - Kinds of operands ------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMOPERANDS_TD
#define SANDWICH_DIALECT_LM_IR_LMOPERANDS_TD

include "sandwich/Dialect/LM/IR/LMAttributes.td"

/// Only the number of tokens is dynamic, and it always is.
def LM_HasTokens : CPred<
    "::llvm::cast<::mlir::ShapedType>($_self).isDynamicDim(0)">;
/// Channels are known and few enough that no size computed from them
/// overflows.
def LM_HasChannels : CPred<"::sandwich::lm::hasChannels($_self)">;
/// [tokens, channels] values: a tensor, or its buffer.
def LM_ActivationTensor : ConfinedType<
    2DTensorOf<[F32, BF16]>, [LM_HasTokens, LM_HasChannels],
    "tensor of f32 or bf16, a dynamic number of tokens by a static number of "
    "channels">;
def LM_ActivationBuffer : ConfinedType<
    MemRefRankOf<[F32, BF16], [2]>, [LM_HasTokens, LM_HasChannels],
    "memref of f32 or bf16, a dynamic number of tokens by a static number of "
    "channels">;
def LM_Activation : AnyTypeOf<[LM_ActivationTensor, LM_ActivationBuffer]>;
/// [tokens] ids, positions or row numbers.
def LM_IndicesTensor : ConfinedType<
    1DTensorOf<[I32]>, [LM_HasTokens],
    "tensor of a dynamic number of 32-bit signless integers">;
def LM_IndicesBuffer : ConfinedType<
    MemRefRankOf<[I32], [1]>, [LM_HasTokens],
    "memref of a dynamic number of 32-bit signless integers">;
def LM_Indices : AnyTypeOf<[LM_IndicesTensor, LM_IndicesBuffer]>;
/// The paged cache: as a value, or as its buffer.
def LM_KVCache : AnyTypeOf<[LM_KVCacheType,
                            MemRefRankOf<[F32, BF16, F16], [5]>]>;
/// [sequences, blocks] of the paged cache.
def LM_BlockTables : MemRefRankOf<[I32], [2]>;

#endif // SANDWICH_DIALECT_LM_IR_LMOPERANDS_TD
