//===- GemmAttributes.td - Schedules as attributes ---------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_GEMM_IR_GEMMATTRIBUTES_TD
#define SANDWICH_DIALECT_GEMM_IR_GEMMATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "sandwich/Dialect/Gemm/IR/GemmDialect.td"
include "sandwich/Dialect/LM/IR/LMInterfaces.td"

def Gemm_EpilogueAttr : AttrDef<Gemm_Dialect, "Epilogue"> {
  let mnemonic = "epilogue";
  let summary = "What a matmul does to its sums";
  let description = [{
    `<none>`, `<add_residual>`, `<silu_mul>`, `<rotate_append_kv>`,
    `<gelu_exact>` or `<gelu_tanh>`: see `gemm.matmul`.
  }];
  let parameters = (ins "::sandwich::Epilogue":$value);
  let hasCustomAssemblyFormat = 1;
  let returnType = "::sandwich::Epilogue";
  let convertFromStorage = "$_self.getValue()";
}

def Gemm_PackingAttr : AttrDef<Gemm_Dialect, "Packing", [
    LM_PackingAttrInterface]> {
  let mnemonic = "packing";
  let summary = "How a weight lies in memory";
  let description = [{
    `[N/panel][K/k_step][panel/tile][k_step/k_pack][tile][k_pack]`: see
    `sandwich::Packing`. Of a quantized weight that is the order of the numbers
    of each group, `[N/panel][K/group]` pieces of bytes; see
    `sandwich::scalesOffset`.

    Constraints: (C1) all are between 1 and 4096; (C2) tile divides panel;
    (C3) k_pack divides k_step.
  }];
  let parameters = (ins "int64_t":$panel, "int64_t":$tile,
                        "int64_t":$kStep, "int64_t":$kPack);
  let assemblyFormat = [{
    `<` `panel` `=` $panel `,` `tile` `=` $tile `,` `k_step` `=` $kStep
        `,` `k_pack` `=` $kPack `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static PackingAttr get(::mlir::MLIRContext *context,
                           const ::sandwich::Packing &packing);
    ::sandwich::Packing getPacking() const;
    /// The buffer of one `[n, k]` weight slice in this packing: six dimensions
    /// of floats, or bytes `[n / panel][k / group][bytes of a group]`.
    ::mlir::MemRefType
    getBufferType(int64_t n, int64_t k,
                  const ::sandwich::StorageFormat &storage) const;
  }];
}

def Gemm_ScheduleAttr : AttrDef<Gemm_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How a matmul runs for a range of token counts";
  let description = [{
    ```mlir
    #gemm.schedule<micro_kernel = X86_AVX512_BF16_14x32,
                   slice = [512, 32, 512], threads = [1, 2, 1],
                   prefetch = [1, 0]>
    ```

    Then follow, where they differ from what is shown, `streams = 1`, the
    segments of the next slice that are prefetched in turn; `hint = l1`, where
    to; `order = rows_outer`, whether blocks of rows (`rows_outer`) or of columns
    (`columns_outer`) are the outer loop; `stores = cached`, or `non_temporal`;
    `k_chunk = 0`, K of one call of the micro-kernel, if not all of the slice's;
    `input = rows`, or `packed` by each thread in the order in which the
    micro-kernel reads it;
    `streamed = none`, `input`, `weight` or `both`: what tiles are loaded from
    past the nearest cache; `k_group = 0`, or how many k share a scale while
    integers are multiplied: slices of a weight of 4 bits are then copied to 8
    bits in longer groups first, and the input is rounded in groups as long; and
    `copy = before`, or `ahead`: whether slices of a quantized weight are unpacked
    before they are multiplied, or chunk by chunk while tiles multiply the one
    before.

    Constraints: (C1) the micro-kernel's name is in the grammar and it fits the
    register file of its ISA; (C2) the slice has three sizes between 1 and
    2147483647, the thread grid three positive ones whose product is at most
    1024; (C3) the slice's columns are a multiple of the micro-kernel's
    columns, its K of its k_step; (C4) prefetched
    lines are between 0 and 1024, at a distance of 0 to 2147483647 bytes;
    (C5) streams are between 1 and 64, and 1 where there is a distance; (C6) K of
    a chunk is a multiple of the k_step and not negative; (C7) only
    tiles, NEON, bfmmla and instructions for integers read packed input, and the
    last read no other; (C8) only tiles stream operands; (C9) only
    instructions for integers have groups of k, a multiple of 16 up to 256; (C10)
    only tiles of bf16 copy ahead.
  }];
  let parameters = (ins
    "::sandwich::Schedule":$schedule);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Gemm_ScheduleTableAttr : AttrDef<Gemm_Dialect, "ScheduleTable"> {
  let mnemonic = "table";
  let summary = "From token counts to schedules";
  let description = [{
    Each entry names the largest token count it serves; the last one, written
    `?`, serves all others.

    ```mlir
    #gemm.table<16 : #gemm.schedule<...>, ? : #gemm.schedule<...>>
    ```

    Constraints: (C1) there is at least one entry and the last is `?`;
    (C2) token counts are positive and ascend.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$maxRows,
    ArrayRefParameter<"ScheduleAttr">:$schedules);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // SANDWICH_DIALECT_GEMM_IR_GEMMATTRIBUTES_TD
