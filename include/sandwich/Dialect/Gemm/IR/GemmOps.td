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
include "sandwich/Dialect/LM/IR/LMInterfaces.td"
include "sandwich/Dialect/LM/IR/LMOperands.td"

/// What epilogues need beside the sums; each takes some of it.
defvar Gemm_EpilogueArguments = (ins
    Gemm_EpilogueAttr:$epilogue,
    Optional<LM_Activation>:$residual, OptionalAttr<I64Attr>:$residual_ranks,
    Optional<LM_Activation>:$rotary_table,
    Optional<LM_KVCache>:$kv_cache,
    Optional<LM_Indices>:$slots,
    OptionalAttr<FlatSymbolRefAttr>:$query_norm,
    OptionalAttr<FlatSymbolRefAttr>:$key_norm,
    OptionalAttr<F32Attr>:$norm_epsilon);
defvar Gemm_EpilogueFormat = [{
    `epilogue` `(` $epilogue `)`
    (`residual` `(` $residual^ `:` type($residual)
     (`among` $residual_ranks^)? `)`)?
    (`rotary` `(` $rotary_table^ `:` type($rotary_table) `)`)?
    (`cache` `(` $kv_cache^ `:` type($kv_cache) `)`)?
    (`slots` `(` $slots^ `:` type($slots) `)`)?
    (`query_norm` $query_norm^)? (`key_norm` $key_norm^)?
    (`epsilon` $norm_epsilon^)?
}];

def Gemm_MatmulOp : Op<Gemm_Dialect, "matmul", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<LM_StepOpInterface, [
      "getPhaseInputs", "getWeightUses", "getOverwritten", "canNarrowResult",
      "getPartialSumsBytes", "getCost"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A matmul with its epilogue and its schedules";
  let description = [{
    `sums = input * transpose(weight) + bias`, accumulated in f32, then the
    epilogue while the sums are still in cache:

    * `none`: `result = sums`.
    * `add_residual`: `result = residual + sums`. In buffer form the
      destination may be the residual's buffer. With `among` n ranks, which then
      add up their results, each rank adds the rows of the residual that
      `lm.deal_rows` gives it, and `result = sums` in the others.
    * `silu_mul`: the weight interleaves the rows of its two sources, a gate
      and an up projection; `result = silu(gate) * up`, with half as many
      channels. The bias is that of the gate, then that of the up projection.
    * `gelu_exact`, `gelu_tanh`: `result` is `lm.gelu` of that kind of `sums`.
    * `rotate_append_kv`: the channels are query heads, key heads and value
      heads. Query and key heads are normalized where `query_norm` and
      `key_norm` are given, then rotated by the table; queries are the result,
      keys and values go to the cache, those of token t to the place `slots[t]`.

    A layer's weight, bias and norms are its slices of the named weights.
    The input's element type is the one micro-kernels read. `tokens_between`
    promises the smallest and the largest number of tokens that the operation
    meets. `partial_sums` is the memory of threads that share K. While tuning,
    `parameters` (`NestParameters` of sandwich/Scheduling, and the part of each
    thread) replace most of the one schedule: see `gemm.nest`.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) the weight exists, has two dimensions, the input's channels, and
    layers if and only if one is given; only that of `silu_mul` is interleaved,
    of two sources; (C3) the operands an epilogue needs are given, and no
    others, and ranks are 2 to 64; (C4) the result's channels follow from the epilogue: as many as the
    weight has rows, which the residual has too, half of them for `silu_mul`;
    for `rotate_append_kv` whole heads of the table's channels, which are even
    and those of a head of the cache, while keys and values are the cache's
    heads; (C5) bias and norms exist, have a channel for each row and for each
    one of a head, and layers if and only if one is given; `norm_epsilon` is
    finite and positive; (C6) every schedule fits the weight's shape and packing
    and the input's element type; (C7) `tokens_between` is ascending and in
    buffer form only; (C8) beside `parameters` there is one schedule, whose
    thread grid divides nothing but K: the parts of threads are among the
    parameters.
  }];
  let arguments = !con((ins
      LM_Activation:$input, FlatSymbolRefAttr:$weight,
      OptionalAttr<FlatSymbolRefAttr>:$bias, Optional<Index>:$layer),
    Gemm_EpilogueArguments, (ins
      OptionalAttr<Gemm_ScheduleTableAttr>:$schedules,
      OptionalAttr<DenseI64ArrayAttr>:$tokens_between,
      Optional<MemRefRankOf<[I8], [1]>>:$partial_sums,
      Optional<MemRefRankOf<[Index], [1]>>:$parameters,
      Optional<LM_ActivationBuffer>:$destination));
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = !strconcat([{
    $input `,` $weight (`bias` $bias^)? (`[` $layer^ `]`)?
  }], Gemm_EpilogueFormat, [{
    (`schedules` `(` $schedules^ `)`)?
    (`tokens_between` $tokens_between^)?
    (`partial_sums` `(` $partial_sums^ `:` type($partial_sums) `)`)?
    (`parameters` `(` $parameters^ `:` type($parameters) `)`)?
    (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }]);
  let builders = [
    // A matmul in tensor form without epilogue.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input,
                   "::mlir::FlatSymbolRefAttr":$weight)>
  ];
  let hasVerifier = 1;
}

def Gemm_NestOp : Op<Gemm_Dialect, "nest", [NoTerminator, SingleBlock]> {
  let summary = "One thread's part of a matmul, as slices around a micro-kernel";
  let description = [{
    Multiplies the rows, columns and k of a thread's part, slice by slice in the
    order of the schedule, and runs the body once for each block of sums, when
    all the part's k are in it. The body's arguments are the sums, the block's
    first row and number of rows, its first column and number of columns: sums
    of row `r` and column `c` of the block are `sums[r, c]`. Columns from there
    on to the next multiple of 16 exist, so that vectors may read across the
    end.

    ```mlir
    gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
        schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [48, 64, 512], threads = [1, 2, 1], prefetch = [2, 0]>)
        unit 32 rows_between [17, 512] : memref<?x2048xbf16, strided<[2080, 1]>>, memref<16x1024x1x1x32x2xbf16> {
    ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
      gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y : ...
    }
    ```

    The thread grid of the schedule was consumed when the part was computed.
    While tuning, `parameters` (`NestParameters` of sandwich/Scheduling) replace
    the schedule's slice, rows of the micro-kernel, streaming and prefetching,
    and hold the addresses of micro-kernels; the schedule then only tells the
    instructions, the columns of the micro-kernel, the loop order and whether
    the input is packed.

    Columns begin at multiples of `unit` and end at one, or where the weight
    ends, k at multiples of what a round of the micro-kernel multiplies, of a
    quantized weight at whole groups.
    `rows_between` promises how many rows the part has. Has unknown memory
    effects, as its body may have any.

    A quantized weight is bytes, whose meaning `stored` tells. Micro-kernels that
    multiply floats read it from a copy of the slice, to which it is unpacked
    before; or, where a slice of integers is one strip of up to eight rows, of
    whole groups and panels, as it is stored, and widen its numbers in registers,
    unless the module is `lm.deterministic`. Those that multiply integers take
    one of integers as it is, or, of 4 bits, from a copy of the slice in 8 bits
    with a scale for `k_group` k, and the
    input rounded to int8 in groups of as many k, each with a scale of its own.

    Constraints: (C1) the weight is packed, static, and as the micro-kernel
    reads it, and `stored` is there if and only if it is bytes; (C2) the input's
    channels are the weight's k, in contiguous rows at a static distance, of the
    element type that the micro-kernel reads; (C3) the body takes sums and four
    indices; (C4) `unit` is a positive multiple of the packing's panel; (C5)
    `rows_between` are two numbers, ascending, the second one positive and no
    dimension too large; (C6) without `parameters`, a slice has at most 2^18
    sums, 2^19 elements of packed input, 2^21 of tiles of integers, of tiles in
    whole tiles of rows, and
    2^20 of an unpacked weight, and its columns are whole panels; of a quantized
    weight its k are all, whole groups or, unpacked, an equal part of one, those
    of a chunk of integers whole groups, and so is where the part of k begins and
    ends, if these are constants; (C7) a quantized weight is
    prefetched at a distance only where micro-kernels read it as it
    is stored or copied ahead, there by one line, and as one line at a distance
    of 0 where it is copied; (C8) tiles of integers multiply 8 bits, or copies, in
    groups of a multiple of 32 k, with at most four tiles of sums where 64 does not
    divide that; `k_group` is
    several groups of a weight of 4 bits, divides k, which no threads share, and is
    given only where the module is not `lm.deterministic`; (C9) `copy = ahead` is
    for a weight that is unpacked for tiles of bf16, in groups of a multiple of 32
    k, whose panels have the micro-kernel's columns, a multiple of 32, in a slice of
    all of k, and not with `parameters`.
  }];
  let arguments = (ins
    LM_ActivationBuffer:$input,
    AnyTypeOf<[MemRefRankOf<[F32, BF16], [6]>,
               MemRefRankOf<[I8], [3]>]>:$weight,
    Index:$row_begin, Index:$row_end, Index:$column_begin, Index:$column_end,
    Index:$k_begin, Index:$k_end,
    Optional<MemRefRankOf<[Index], [1]>>:$parameters,
    Gemm_ScheduleAttr:$schedule, I64Attr:$unit,
    DenseI64ArrayAttr:$rows_between,
    OptionalAttr<LM_StorageAttr>:$storage,
    OptionalAttr<Gemm_PackingAttr>:$packing);
  let regions = (region SizedRegion<1>:$body_region);
  let assemblyFormat = [{
    $input `,` $weight
    `rows` `(` $row_begin `to` $row_end `)`
    `columns` `(` $column_begin `to` $column_end `)`
    `k` `(` $k_begin `to` $k_end `)`
    (`parameters` `(` $parameters^ `:` type($parameters) `)`)?
    `schedule` `(` $schedule `)` `unit` $unit `rows_between` $rows_between
    (`stored` $storage^ `packing` $packing)?
    attr-dict `:` type($input) `,` type($weight) $body_region
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$weight,
                   "::llvm::ArrayRef<::mlir::Value>":$part,
                   "::mlir::Value":$parameters,
                   "const ::sandwich::Schedule &":$schedule, "int64_t":$unit,
                   "::llvm::ArrayRef<int64_t>":$rowsBetween,
                   "::sandwich::lm::StorageAttr":$storage,
                   "::sandwich::gemm::PackingAttr":$packing)>
  ];
  let extraClassDeclaration = [{
    /// Of the weight.
    ::sandwich::Packing getWeightPacking();
    ::sandwich::StorageFormat getStorageFormat();
    /// Whether integers are widened in registers, not unpacked before.
    bool widensGroups();
    /// The weight, and whether sums must not depend on the number of rows.
    ::sandwich::MatmulShape getShape();
    int64_t getK();
    /// Columns as packed, with those that fill up the last panel.
    int64_t getPackedColumns();
    ::mlir::BlockArgument getSums() { return getBody()->getArgument(0); }
    /// Where the body's positions are: first row, rows, first column, columns.
    ::mlir::ValueRange getPlace() { return getBody()->getArguments().drop_front(); }
  }];
  let hasVerifier = 1;
}

def Gemm_EpilogueOp : Op<Gemm_Dialect, "epilogue", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "What a matmul does to one block of its sums";
  let description = [{
    Adds the bias, applies the epilogue of `gemm.matmul`, and writes the rows
    and columns of the destination, or the cache, that belong to the block, and
    no others. Where there is a cache, the sums may be anything afterwards. The
    block's first column and its columns count rows of the weight as packed; it
    begins at a multiple of what the epilogue needs together (a head, a pair of
    interleaved groups). With `non_temporal` it writes past the caches where the
    destination is aligned to cache lines, and what it wrote is visible to other
    threads after the next barrier as ever.

    Constraints: (C1) sums, destination and residual have contiguous rows;
    (C2) `interleave`, the rows that alternate between a gate and its up
    projection, is between 1 and 4096 and given for `silu_mul` only; as for
    `gemm.matmul`: (C3) the operands the epilogue needs are given, and no others;
    (C4) the channels of the destination are those of the residual, or whole
    heads of the cache; (C5) bias and norms exist, have a channel for each row of
    the weight and for each one of a head, and layers if and only if one is
    given.
  }];
  let arguments = !con((ins
      MemRefRankOf<[F32], [2]>:$sums, Index:$first_row, Index:$first_column,
      Index:$rows, Index:$columns,
      OptionalAttr<FlatSymbolRefAttr>:$bias, Optional<Index>:$layer),
    Gemm_EpilogueArguments, (ins
      OptionalAttr<I64Attr>:$interleave, UnitAttr:$non_temporal,
      LM_ActivationBuffer:$destination));
  let assemblyFormat = !strconcat([{
    $sums `at` `(` $first_row `,` $first_column `)`
    `size` `(` $rows `,` $columns `)` (`bias` $bias^)? (`layer` $layer^)?
  }], Gemm_EpilogueFormat, [{
    (`interleave` $interleave^)? (`non_temporal` $non_temporal^)?
    `into` $destination attr-dict
    `:` type($sums) `into` type($destination)
  }]);
  let builders = [
    /// The epilogue of `matmul` on a block at `place`: its first row, rows,
    /// first column and columns.
    OpBuilder<(ins "::sandwich::gemm::MatmulOp":$matmul, "::mlir::Value":$sums,
                   "::mlir::ValueRange":$place,
                   "::mlir::SymbolTableCollection &":$symbols)>
  ];
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_GEMM_IR_GEMMOPS_TD
