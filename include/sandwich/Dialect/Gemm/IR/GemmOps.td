//===- GemmOps.td - Operations of gemm ---------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_IR_GEMMOPS_TD
#define SANDWICH_DIALECT_GEMM_IR_GEMMOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "sandwich/Dialect/Gemm/IR/GemmAttributes.td"
include "sandwich/Dialect/LM/IR/LMOperands.td"

def Gemm_MatmulOp : Op<Gemm_Dialect, "matmul", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A matmul with its epilogue and its schedules";
  let description = [{
    `sums = input * transpose(weight) + bias`, accumulated in f32, then the
    epilogue while the sums are still in cache:

    * `none`: `result = sums`.
    * `add_residual`: `result = residual + sums`. In buffer form the
      destination may be the residual's buffer.
    * `silu_mul`: the weight interleaves the rows of its two sources, a gate
      and an up projection; `result = silu(gate) * up`, with half as many
      channels. The bias is that of the gate, then that of the up projection.
    * `rotate_append_kv`: the channels are query heads, key heads and value
      heads. Query and key heads are normalized where `query_norm` and
      `key_norm` are given, then rotated by the table; queries are the result,
      keys and values go to the cache.

    A layer's weight, bias and norms are its slices of the named weights.
    The input's element type is the one micro-kernels read.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) the weight exists, has two dimensions, the input's channels, and
    layers if and only if one is given; only that of `silu_mul` is interleaved,
    of two sources; (C3) the operands an epilogue needs are given, and no
    others; (C4) the result's channels follow from the epilogue: as many as the
    weight has rows, which the residual has too, half of them for `silu_mul`;
    for `rotate_append_kv` whole heads of the table's channels, which are even
    and those of a head of the cache, while keys and values are the cache's
    heads; (C5) bias and norms exist, have a channel for each row and for each
    one of a head, and layers if and only if one is given; `norm_epsilon` is
    finite and positive; (C6) every schedule fits the weight's shape and the
    input's element type.
  }];
  let arguments = (ins
    LM_Activation:$input, FlatSymbolRefAttr:$weight,
    OptionalAttr<FlatSymbolRefAttr>:$bias, Optional<Index>:$layer,
    Gemm_EpilogueAttr:$epilogue,
    Optional<LM_Activation>:$residual,
    Optional<LM_Activation>:$rotary_table,
    Optional<LM_KVCache>:$kv_cache,
    Optional<LM_Indices>:$positions,
    Optional<LM_Indices>:$sequences,
    Optional<LM_BlockTables>:$block_tables,
    OptionalAttr<FlatSymbolRefAttr>:$query_norm,
    OptionalAttr<FlatSymbolRefAttr>:$key_norm,
    OptionalAttr<F32Attr>:$norm_epsilon,
    OptionalAttr<Gemm_ScheduleTableAttr>:$schedules,
    Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? (`[` $layer^ `]`)?
    `epilogue` `(` $epilogue `)`
    (`residual` `(` $residual^ `:` type($residual) `)`)?
    (`rotary` `(` $rotary_table^ `:` type($rotary_table) `)`)?
    (`cache` `(` $kv_cache^ `:` type($kv_cache) `)`)?
    (`positions` `(` $positions^ `:` type($positions) `)`)?
    (`sequences` `(` $sequences^ `:` type($sequences) `)`)?
    (`blocks` `(` $block_tables^ `:` type($block_tables) `)`)?
    (`query_norm` $query_norm^)? (`key_norm` $key_norm^)?
    (`epsilon` $norm_epsilon^)?
    (`schedules` `(` $schedules^ `)`)?
    (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }];
  let builders = [
    // A matmul in tensor form without epilogue.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input,
                   "::mlir::FlatSymbolRefAttr":$weight)>
  ];
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_GEMM_IR_GEMMOPS_TD
