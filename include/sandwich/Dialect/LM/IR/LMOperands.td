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
/// [tokens] ids, positions, cache slots or row numbers; [blocks] block tables.
def LM_IndicesTensor : ConfinedType<
    1DTensorOf<[I32]>, [LM_HasTokens],
    "tensor of a dynamic number of 32-bit signless integers">;
def LM_IndicesBuffer : ConfinedType<
    MemRefRankOf<[I32], [1]>, [LM_HasTokens],
    "memref of a dynamic number of 32-bit signless integers">;
def LM_Indices : AnyTypeOf<[LM_IndicesTensor, LM_IndicesBuffer]>;
/// The paged cache: as a value, or as its buffer.
def LM_KVCache : AnyTypeOf<[LM_KVCacheType,
                            MemRefRankOf<[F32, BF16, F16, I8], [5]>]>;
/// [segments, 4] the fields of each segment, as PhaseABI.h has them.
def LM_HasSegmentFields : CPred<
    "::llvm::cast<::mlir::ShapedType>($_self).getDimSize(1) == 4">;
def LM_SegmentsTensor : ConfinedType<
    2DTensorOf<[I32]>, [LM_HasTokens, LM_HasSegmentFields],
    "tensor of a dynamic number of segments by four 32-bit signless integers">;
def LM_SegmentsBuffer : ConfinedType<
    MemRefRankOf<[I32], [2]>, [LM_HasTokens, LM_HasSegmentFields],
    "memref of a dynamic number of segments by four 32-bit signless integers">;
def LM_Segments : AnyTypeOf<[LM_SegmentsTensor, LM_SegmentsBuffer]>;

/// Memory for parts of sums, in bytes.
def LM_PartialSums : ConfinedType<
    MemRefRankOf<[I8], [1]>,
    [HasStaticShapePred,
     CPred<"::llvm::cast<::mlir::MemRefType>($_self).getLayout().isIdentity()">],
    "memref of a static number of 8-bit signless integers without a layout">;

#endif // SANDWICH_DIALECT_LM_IR_LMOPERANDS_TD
