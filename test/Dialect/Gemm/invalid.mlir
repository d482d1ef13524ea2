// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// #gemm.packing (C1): no size is zero.
// expected-error @below {{(C1) packing sizes must be between 1 and 4096}}
module attributes {test.a = #gemm.packing<panel = 32, tile = 0, k_step = 2, k_pack = 2>} {}

// -----

// #gemm.packing (C1): nor negative.
// expected-error @below {{(C1) packing sizes must be between 1 and 4096}}
module attributes {test.a = #gemm.packing<panel = 32, tile = 32, k_step = -2, k_pack = 2>} {}

// -----

// #gemm.packing (C1): nor so large that rounding up to it overflows.
// expected-error @below {{(C1) packing sizes must be between 1 and 4096}}
module attributes {test.a = #gemm.packing<panel = 9223372036854775807, tile = 1, k_step = 1, k_pack = 1>} {}

// -----

// #gemm.packing (C2): a panel is whole tiles.
// expected-error @below {{(C2) tile must divide panel}}
module attributes {test.a = #gemm.packing<panel = 32, tile = 12, k_step = 2, k_pack = 2>} {}

// -----

// #gemm.packing (C3): a step is whole groups of k.
// expected-error @below {{(C3) k_pack must divide k_step}}
module attributes {test.a = #gemm.packing<panel = 32, tile = 32, k_step = 3, k_pack = 2>} {}

// -----

// #gemm.schedule (C1): the name begins with an ISA that is known.
// expected-error @below {{(C1) 'RISCV_V_F32_8x12' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = RISCV_V_F32_8x12, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): it names rows and columns.
// expected-error @below {{(C1) 'X86_AVX512_F32' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): separated by an x.
// expected-error @below {{(C1) 'X86_AVX512_F32_14' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_14, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): as numbers, and nothing after them.
// expected-error @below {{(C1) 'X86_AVX512_F32_14x32y' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_14x32y, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): that are positive.
// expected-error @below {{(C1) 'X86_AVX512_F32_0x32' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_0x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): and fit 64 bits.
// expected-error @below {{(C1) 'X86_AVX512_F32_99999999999999999999x32' is no micro-kernel's name; they are ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_99999999999999999999x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): 16 x 32 sums alone are all 32 registers of AVX-512.
// expected-error @below {{(C1) X86_AVX512_F32_16x32 needs 35 registers, X86_AVX512_F32 has 32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_16x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): 15 x 32 sums leave 2 of the 3 registers for operands.
// expected-error @below {{(C1) X86_AVX512_BF16_15x32 needs 33 registers, X86_AVX512_BF16 has 32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_15x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): AVX2 has half as many, half as wide.
// expected-error @below {{(C1) X86_AVX2_F32_7x16 needs 17 registers, X86_AVX2_F32 has 16}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_7x16, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C6): a call takes whole steps of K.
// expected-error @below {{(C6) K of a chunk must be a multiple of 32, at most 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], k_chunk = 48>} {}

// -----

// #gemm.schedule (C7): vectors of x86-64 read rows as they are.
// expected-error @below {{(C7) X86_AVX2_F32_6x16 does not read packed input}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_6x16, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>} {}

// -----

// #gemm.schedule (C7): so does SVE in f32, which loads an element into every lane.
// expected-error @below {{(C7) ARM_SVE_F32_12x32 does not read packed input}}
module attributes {test.a = #gemm.schedule<micro_kernel = ARM_SVE_F32_12x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>} {}

// -----

// #gemm.schedule (C7): integers are rounded when they are packed.
// expected-error @below {{(C7) X86_AVX512_VNNI_6x32 reads packed input only}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_VNNI_6x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C8): vectors have nowhere to stream to.
// expected-error @below {{(C8) only tiles stream operands}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_6x16, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], streamed = weight>} {}

// -----

// #gemm.schedule (C9): floats have no groups.
// expected-error @below {{(C9) groups of k are for integers, and a multiple of 16, at most 256}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_6x16, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], k_group = 128>} {}

// -----

// #gemm.schedule (C9): scales come with 16 k or more.
// expected-error @below {{(C9) groups of k are for integers, and a multiple of 16, at most 256}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_VNNI_6x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 24>} {}

// -----

// #gemm.schedule (C10): vectors have no time beside multiplying.
// expected-error @below {{(C10) copies are made ahead for X86_AMX_BF16 only}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_6x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], copy = ahead>} {}

// -----

// There are two times to copy.
// expected-error @below {{'after' is no time to copy: before or ahead}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], copy = after>} {}

// -----

// The forms of input are two.
// expected-error @below {{'tiled' is no form of input: rows or packed}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], input = tiled>} {}

// -----

// So are the operands.
// expected-error @below {{'sums' is no set of operands: none, input, weight or both}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], streamed = sums>} {}

// -----

// #gemm.schedule (C1): AMX has 6 tiles of rows, 32 x 48 sums take all of them.
// expected-error @below {{(C1) X86_AMX_BF16_32x48 needs 8 tiles for 2 of rows and the sums, there are 6 for 2}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x48, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): columns are whole vectors.
// expected-error @below {{(C1) X86_AVX512_F32_6x24 needs 1 to 64 rows and a multiple of 16 columns, at most 256}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_F32_6x24, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): rows are few.
// expected-error @below {{(C1) X86_AVX2_F32_65x8 needs 1 to 64 rows and a multiple of 8 columns, at most 256}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_65x8, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C1): and columns.
// expected-error @below {{(C1) X86_AVX2_F32_1x264 needs 1 to 64 rows and a multiple of 8 columns, at most 256}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX2_F32_1x264, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): a slice is not empty.
// expected-error @below {{(C2) slice sizes must be between 1 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [0, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): sizes of a slice can be multiplied.
// expected-error @below {{(C2) slice sizes must be between 1 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 9223372036854775776, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): a slice has three sizes.
// expected-error @below {{'slice' has 3 sizes}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): some thread does the work.
// expected-error @below {{(C2) thread grid must have positive sizes and at most 1024 threads}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 0, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): teams are limited.
// expected-error @below {{(C2) thread grid must have positive sizes and at most 1024 threads}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1025, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): whichever way they divide the work.
// expected-error @below {{(C2) thread grid must have positive sizes and at most 1024 threads}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1024, 1024, 1024], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C2): a thread grid has three sizes.
// expected-error @below {{'threads' has 3 sizes}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C3): a slice has whole micro-kernels.
// expected-error @below {{(C3) slice columns must be a multiple of the micro-kernel's 16, slice K a multiple of 2}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x16, slice = [12, 40, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C3): wide ones too.
// expected-error @below {{(C3) slice columns must be a multiple of the micro-kernel's 64, slice K a multiple of 2}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_6x64, slice = [12, 96, 64], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C3): its K is whole packed steps.
// expected-error @below {{(C3) slice columns must be a multiple of the micro-kernel's 32, slice K a multiple of 32}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 48], threads = [1, 1, 1], prefetch = [0, 0]>} {}

// -----

// #gemm.schedule (C4): lines are counted.
// expected-error @below {{(C4) prefetch lines must be between 0 and 1024, their distance between 0 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [-1, 0]>} {}

// -----

// #gemm.schedule (C4): and not so many that their number overflows.
// expected-error @below {{(C4) prefetch lines must be between 0 and 1024, their distance between 0 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [4611686018427387904, 0]>} {}

// -----

// #gemm.schedule (C4): prefetches look ahead.
// expected-error @below {{(C4) prefetch lines must be between 0 and 1024, their distance between 0 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, -64]>} {}

// -----

// #gemm.schedule (C4): but not beyond every weight.
// expected-error @below {{(C4) prefetch lines must be between 0 and 1024, their distance between 0 and 2147483647}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 2147483648]>} {}

// -----

// #gemm.schedule (C5): there is a stream.
// expected-error @below {{(C5) prefetch streams must be between 1 and 64, and 1 where there is a distance}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], streams = 0>} {}

// -----

// #gemm.schedule (C5): not more streams than pages are followed.
// expected-error @below {{(C5) prefetch streams must be between 1 and 64, and 1 where there is a distance}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], streams = 65>} {}

// -----

// #gemm.schedule (C5): a distance means one stream.
// expected-error @below {{(C5) prefetch streams must be between 1 and 64, and 1 where there is a distance}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 512], streams = 2>} {}

// -----

// #gemm.schedule knows two orders.
// expected-error @below {{'depth_first' is no loop order: rows_outer or columns_outer}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], order = depth_first>} {}

// -----

// #gemm.schedule has nothing else.
// expected-error @below {{expected 'streams', 'hint', 'order', 'stores', 'k_chunk', 'input', 'streamed', 'k_group' or 'copy', in this order}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], speed = 3>} {}

// -----

// #gemm.schedule names its streams before its order.
// expected-error @below {{expected 'streams', 'hint', 'order', 'stores', 'k_chunk', 'input', 'streamed', 'k_group' or 'copy', in this order}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], order = rows_outer, streams = 2>} {}

// -----

// #gemm.schedule names each once.
// expected-error @below {{expected 'streams', 'hint', 'order', 'stores', 'k_chunk', 'input', 'streamed', 'k_group' or 'copy', in this order}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], stores = cached, stores = cached>} {}

// -----

// expected-error @below {{'l3' is no prefetch hint: l1, l2 or non_temporal}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], hint = l3>} {}

// -----

// expected-error @below {{'streaming' is no kind of stores: cached or non_temporal}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0], stores = streaming>} {}

// -----

// #gemm.schedule (C2): prefetch has two sizes.
// expected-error @below {{'prefetch' has 2 sizes}}
module attributes {test.a = #gemm.schedule<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1]>} {}

// -----

// #gemm.table (C1): there is an entry for every token count.
// expected-error @below {{(C1) the last entry of a table must be '?'}}
module attributes {test.a = #gemm.table<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>} {}

// -----

// #gemm.table (C1): a table is not empty.
// expected-error @below {{(C1) the last entry of a table must be '?'}}
module attributes {test.a = #gemm.table<>} {}

// -----

// #gemm.table (C2): token counts ascend.
// expected-error @below {{(C2) token counts must be positive and ascend}}
module attributes {test.a = #gemm.table<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, 12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>} {}

// -----

// #gemm.table (C2): each appears once.
// expected-error @below {{(C2) token counts must be positive and ascend}}
module attributes {test.a = #gemm.table<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, 16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>} {}

// -----

// #gemm.table (C2): they are positive.
// expected-error @below {{(C2) token counts must be positive and ascend}}
module attributes {test.a = #gemm.table<0 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>} {}

// -----

// #gemm.table (C2): only one entry is the last.
// expected-error @below {{(C2) token counts must be positive and ascend}}
module attributes {test.a = #gemm.table<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>} {}

// -----

// gemm.matmul (C1): a result or a destination.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32>
  return
}

// -----

// gemm.matmul (C1): all operands are in the same form.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %y: memref<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C1) mixes tensor form and buffer form}}
  gemm.matmul %x, @w epilogue(<none>) into %y : tensor<?x64xf32> into memref<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): the weight exists.

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @missing must be a weight of any number x 64 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @missing epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): it is a matrix.
lm.weight @w : tensor<64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 64 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): it takes the input's channels.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x48xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 48 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x48xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): it has layers if one is given.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %layer: index) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 64 elements, with layers, not interleaved}}
  %y = gemm.matmul %x, @w[%layer] epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): and a layer is given if it has them.
lm.weight @w : tensor<32x64xf32> layers 2 from ["w{}"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 64 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): a residual is only for the epilogue that adds it.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'none' does not take, or lacks one}}
  %y = gemm.matmul %x, @w epilogue(<none>) residual(%r : tensor<?x32xf32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): without a residual there is nothing to deal.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'none' does not take, or lacks one}}
  %y = "gemm.matmul"(%x) <{weight = @w, epilogue = #gemm.epilogue<none>, residual_ranks = 2 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0>}> : (tensor<?x64xf32>) -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): among several ranks.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) a residual is dealt among 2 to 64 ranks}}
  %y = gemm.matmul %x, @w epilogue(<add_residual>) residual(%r : tensor<?x32xf32> among 0) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): as many as a group can have.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %r: tensor<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) a residual is dealt among 2 to 64 ranks}}
  %y = gemm.matmul %x, @w epilogue(<add_residual>) residual(%r : tensor<?x32xf32> among 65) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): which needs it.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'add_residual' does not take, or lacks one}}
  %y = gemm.matmul %x, @w epilogue(<add_residual>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): rotation needs a table, a cache and slots.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'rotate_append_kv' does not take, or lacks one}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): queries are normalized if and only if keys are.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'rotate_append_kv' does not take, or lacks one}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) query_norm @n : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): keys and values have a place in the cache, also in buffer form.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: memref<?x64xf32>, %t: memref<?x32xf32>, %c: memref<?x2x1x2x512xf32>, %y: memref<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'rotate_append_kv' does not take, or lacks one}}
  gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : memref<?x32xf32>) cache(%c : memref<?x2x1x2x512xf32>) into %y : memref<?x64xf32> into memref<?x32xf32>
  return
}

// -----

// gemm.matmul (C3): only what is appended has one.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %s: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C3) has operands that epilogue 'none' does not take, or lacks one}}
  %y = gemm.matmul %x, @w epilogue(<none>) slots(%s : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C2): gate and up lie together in the weight.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 64 elements, without layers, interleaved}}
  %y = gemm.matmul %x, @w epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x16xf32>
  return
}

// -----

// gemm.matmul (C2): and nothing else does.
lm.weight @w : tensor<48x64xf32> from ["gate", "up", "down"] interleave 16
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be made from a gate and an up projection, not from 3 sources}}
  %y = gemm.matmul %x, @w epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x24xf32>
  return
}

// -----

// gemm.matmul (C2): no other epilogue knows rows that alternate.
lm.weight @w : tensor<32x64xf32> from ["gate", "up"] interleave 16
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C2) @w must be a weight of any number x 64 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): gate and up make one channel.
lm.weight @w : tensor<32x64xf32> from ["gate", "up"] interleave 16
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C4) @w must have 64 rows for this result}}
  %y = gemm.matmul %x, @w epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): without epilogue there is a channel for each row of the weight.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C4) @w must have 16 rows for this result}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x16xf32>
  return
}

// -----

// gemm.matmul (C4): so has the residual.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %r: tensor<?x16xf32>) {
  // expected-error @below {{'gemm.matmul' op (C4) residual must have 32 channels}}
  %y = gemm.matmul %x, @w epilogue(<add_residual>) residual(%r : tensor<?x16xf32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): queries are whole heads.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) result must be whole heads of 32 channels}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x48xf32>
  return
}

// -----

// gemm.matmul (C4): for each key there is a value.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) @w must have 128 rows for this result}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// gemm.matmul (C4): there are keys.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) @w must have 160 rows for this result}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return
}

// -----

// gemm.matmul (C4): heads are those of the cache.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x16xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) table must have the channels of a head of the cache, an even number, got 16 and 32}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x16xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): rotation pairs the halves of a head.
lm.weight @w : tensor<51x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x17xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 17, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) table must have the channels of a head of the cache, an even number, got 17 and 17}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x17xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 17, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x17xf32>
  return
}

// -----

// gemm.matmul (C4): the cache has the heads that the weight has.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 2, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C4) @w must have 160 rows for this result}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 2, head_dim = 32, f32>) slots(%p : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): so does its buffer.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: memref<?x64xf32>, %t: memref<?x32xf32>, %c: memref<?x2x1x2x256xf32>, %p: memref<?xi32>, %y: memref<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C4) table must have the channels of a head of the cache, an even number, got 32 and 16}}
  gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : memref<?x32xf32>) cache(%c : memref<?x2x1x2x256xf32>) slots(%p : memref<?xi32>) into %y : memref<?x64xf32> into memref<?x32xf32>
  return
}

// -----

// gemm.matmul (C4): which holds keys and values.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: memref<?x64xf32>, %t: memref<?x32xf32>, %c: memref<?x2x1x1x512xf32>, %p: memref<?xi32>, %y: memref<?x32xf32>) {
  // expected-error @below {{'gemm.matmul' op (C4) 'memref<?x2x1x1x512xf32>' is not the buffer of a !lm.kv_cache}}
  gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : memref<?x32xf32>) cache(%c : memref<?x2x1x1x512xf32>) slots(%p : memref<?xi32>) into %y : memref<?x64xf32> into memref<?x32xf32>
  return
}

// -----

// gemm.matmul (C5): a bias for each row of the weight.
lm.weight @w : tensor<32x64xf32> from ["w"]
lm.weight @b : tensor<64xf32> from ["b"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C5) @b must be a weight of 32 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w bias @b epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C5): that exists.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C5) @b must be a weight of 32 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w bias @b epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C5): for each layer.
lm.weight @w : tensor<32x64xf32> layers 2 from ["w{}"]
lm.weight @b : tensor<32xf32> from ["b"]
func.func @f(%x: tensor<?x64xf32>, %layer: index) {
  // expected-error @below {{'gemm.matmul' op (C5) @b must be a weight of 32 elements, with layers, not interleaved}}
  %y = gemm.matmul %x, @w bias @b[%layer] epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C5): norms are of one head.
lm.weight @w : tensor<96x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C5) @n must be a weight of 32 elements, without layers, not interleaved}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) query_norm @n key_norm @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C5): epsilon keeps the root from zero.
lm.weight @w : tensor<96x64xf32> from ["w"]
lm.weight @n : tensor<32xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C5) epsilon must be finite and positive}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%p : tensor<?xi32>) query_norm @n key_norm @n epsilon -1.0 : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): instructions for bf16 need bf16 weights.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xbf16>) {
  // expected-error @below {{'gemm.matmul' op (C6) X86_AVX512_BF16_12x32 does not multiply weights of f32}}
  %y = gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): and bf16 inputs.
lm.weight @w : tensor<32x64xbf16> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C6) X86_AVX512_BF16_12x32 does not read an input of 'f32'}}
  %y = gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): fp8 is multiplied as floats, not by inputs that are rounded.
lm.weight @w : tensor<32x64xf32> from ["w"] storage <fp8, group = row, scale = f32>
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C6) X86_AVX512_VNNI_6x32 does not multiply weights of fp8-row-f32}}
  %y = gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): those for f32 do not read bf16 inputs.
lm.weight @w : tensor<32x64xbf16> from ["w"]
func.func @f(%x: tensor<?x64xbf16>) {
  // expected-error @below {{'gemm.matmul' op (C6) X86_AVX512_F32_12x32 does not read an input of 'bf16'}}
  %y = gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_F32_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): AMX multiplies 32 k at once.
lm.weight @w : tensor<32x48xbf16> from ["w"]
func.func @f(%x: tensor<?x48xbf16>) {
  // expected-error @below {{'gemm.matmul' op (C6) X86_AMX_BF16_32x32 needs K to be a multiple of 32; it is 48}}
  %y = gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x48xbf16> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C6): a head is on one thread.
lm.weight @w : tensor<192x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x64xf32>, %c: !lm.kv_cache<layers = 2, heads = 1, head_dim = 64, f32>, %p: tensor<?xi32>) {
  // expected-error @below {{'gemm.matmul' op (C6) slice columns 32 must be a multiple of 64, which the epilogue needs together}}
  %y = gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : tensor<?x64xf32>) cache(%c : !lm.kv_cache<layers = 2, heads = 1, head_dim = 64, f32>) slots(%p : tensor<?xi32>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// gemm.matmul (C6): every schedule of a table is checked, here that gate and up are together.
lm.weight @w : tensor<128x64xf32> from ["gate", "up"] interleave 32
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C6) slice columns 96 must be a multiple of 64, which the epilogue needs together}}
  %y = gemm.matmul %x, @w epilogue(<silu_mul>) schedules(<6 : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>, ? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 96, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// gemm.matmul (C2): a weight is verified before it is used.
%c1 = arith.constant 1 : index
%x = tensor.empty(%c1) : tensor<?x64xf32>
%y = gemm.matmul %x, @w epilogue(<silu_mul>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x16xf32>
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<32x64xf32> from ["gate", "up"] interleave 0

// -----

// The generic form meets the same checks, not an assertion.
// expected-error @below {{'gemm.matmul' op expected 1 or more operands, but found 0}}
"gemm.matmul"() : () -> ()

// -----

// gemm.matmul (C7): two numbers.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<64xi8>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C7) tokens_between needs two numbers, ascending, in buffer form}}
  gemm.matmul %x, @w epilogue(<none>) tokens_between [1, 2, 3] into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// gemm.matmul (C7): they ascend.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<64xi8>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C7) tokens_between needs two numbers, ascending, in buffer form}}
  gemm.matmul %x, @w epilogue(<none>) tokens_between [2, 1] into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// gemm.matmul (C8): parameters are of a schedule.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<?xindex>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C8) parameters need one schedule, whose thread grid divides nothing but K}}
  gemm.matmul %x, @w epilogue(<none>) parameters(%p : memref<?xindex>) into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// gemm.matmul (C8): parameters are of one schedule alone.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<?xindex>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C8) parameters need one schedule, whose thread grid divides nothing but K}}
  gemm.matmul %x, @w epilogue(<none>) schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [8, 0]>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [8, 0]>>) parameters(%p : memref<?xindex>) into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// gemm.matmul (C8): parameters are of no other grid.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<?xindex>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C8) parameters need one schedule, whose thread grid divides nothing but K}}
  gemm.matmul %x, @w epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 2, 1], prefetch = [8, 0]>>) parameters(%p : memref<?xindex>) into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// #gemm.epilogue: names are known.
lm.weight @w : tensor<32x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'relu' is no epilogue: none, add_residual, silu_mul, rotate_append_kv, gelu_exact or gelu_tanh}}
  %y = gemm.matmul %x, @w epilogue(<relu>) : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// gemm.matmul (C7): there are no negative tokens.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%x: memref<?x64xbf16>, %p: memref<64xi8>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op (C7) tokens_between needs two numbers, ascending, in buffer form}}
  gemm.matmul %x, @w epilogue(<none>) tokens_between [-1, 1] into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// gemm.nest (C1): the micro-kernel reads the packing.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x2x2x16x16x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_BF16_12x32 does not read a weight of 'memref<2x2x2x16x16x2xbf16>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x2x2x16x16x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): bytes need a meaning.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_F32_12x32 does not read a weight of 'memref<2x2x576xi8>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): floats have one.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x64x1x1x32x1xf32>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_F32_12x32 does not read a weight of 'memref<2x64x1x1x32x1xf32>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x64x1x1x32x1xf32> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): a group has numbers and scales.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x575xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_F32_12x32 does not read a weight of 'memref<2x2x575xi8>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x575xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): groups are as long as the storage says.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x4x288xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_F32_12x32 does not read a weight of 'memref<2x4x288xi8>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x4x288xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): four numbers of each column lie together.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_F32_12x32 does not read a weight of 'memref<2x2x576xi8>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 2, k_pack = 2> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): fp8 is multiplied as floats, not by inputs that are rounded.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x1088xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_VNNI_6x32 does not read a weight of 'memref<2x2x1088xi8>', stored as #lm.storage<fp8, group = 32, scale = f16>}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] stored <fp8, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x1088xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): a slice that is unpacked has a largest size.
func.func @nest(%x: memref<?x65536xf32>, %w: memref<1x1x1048640xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) at most 1048576 weights can be unpacked, of whole groups or an equal part of one; a slice has 64 x 32768}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 32768], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = row, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x65536xf32>, memref<1x1x1048640xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C7): what is copied is prefetched slice by slice.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C7) of a quantized weight that is copied the next slice is prefetched, as a line at a distance of 0, or, where that is done ahead, each line at a greater one}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [24, 64, 64], threads = [1, 1, 1], prefetch = [4, 1152]>) unit 32 rows_between [1, 24] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C7): integers are not prefetched without a distance.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C7) a quantized weight that micro-kernels read as it is stored is prefetched at a distance only}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [4, 0], input = packed>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): longer groups are several whole ones.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) groups of 48 k must be several of the weight's 32, at most 256 k, and divide K = 256}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 48>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): they divide K.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) groups of 96 k must be several of the weight's 32, at most 256 k, and divide K = 256}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 96>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): threads would begin within a group.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) 2 threads share K, of groups of 128 k}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 2], prefetch = [0, 0], input = packed, k_group = 128>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): numbers of 8 bits would lose by it.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x1088xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) groups of 128 k are for weights of 4 bits that are multiplied as integers, not for int8-g32-f16 by X86_AVX512_VNNI_6x32}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 128>) unit 32 rows_between [1, 12] stored <int8, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x1088xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): sums would depend on the rows.
module attributes {lm.deterministic} {
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) groups of 128 k, where sums must not depend on the number of tokens}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 128>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}
}

// -----

// gemm.nest (C6): a slice that is unpacked has whole groups or an equal part of one.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) at most 1048576 weights can be unpacked, of whole groups or an equal part of one; a slice has 64 x 48}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 64, 48], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): integers have their scales behind whole groups only.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) integers are multiplied in whole groups of 32 k; a slice has 48}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 48], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): so do chunks.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) integers are multiplied in whole groups of 32 k; a slice has 64, a chunk 16}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0], k_chunk = 16, input = packed>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): a thread's part has whole groups.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x2x576xi8>, %i: index) {
  %k = arith.constant 16 : index
  // expected-error @below {{'gemm.nest' op (C6) k must begin and end at whole groups of 32, not at 16}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%k to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x64xf32>, memref<2x2x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): floats are not multiplied as integers.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x64x1x1x32x1xf32>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_VNNI_6x32 does not read a weight of 'memref<2x64x1x1x32x1xf32>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] : memref<?x64xf32>, memref<2x64x1x1x32x1xf32> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): its size is known.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<?x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_BF16_12x32 does not read a weight of 'memref<?x32x1x1x32x2xbf16>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<?x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): it is in one piece.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16, strided<[4096, 64, 64, 64, 2, 1]>>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AVX512_BF16_12x32 does not read a weight of 'memref<2x32x1x1x32x2xbf16, strided<[4096, 64, 64, 64, 2, 1]>>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16, strided<[4096, 64, 64, 64, 2, 1]>> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C2): as many channels as k.
func.func @nest(%x: memref<?x96xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C2) X86_AVX512_BF16_12x32 needs 64 bf16 channels in contiguous rows at a static distance, not 'memref<?x96xbf16>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x96xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C2): of the type that is multiplied.
func.func @nest(%x: memref<?x64xf32>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C2) X86_AVX512_BF16_12x32 needs 64 bf16 channels in contiguous rows at a static distance, not 'memref<?x64xf32>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xf32>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C2): at a static distance.
func.func @nest(%x: memref<?x64xbf16, strided<[?, 1]>>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C2) X86_AVX512_BF16_12x32 needs 64 bf16 channels in contiguous rows at a static distance, not 'memref<?x64xbf16, strided<[?, 1]>>'}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16, strided<[?, 1]>>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C3): the body takes a block.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C3) body must take 'memref<?x?xf32, strided<[?, 1], offset: ?>>' and four indices}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index):
  }
  return
}

// -----

// gemm.nest (C4): threads share whole panels.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C4) unit must be a positive multiple of a panel's 32 columns}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 48 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C4): and some.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C4) unit must be a positive multiple of a panel's 32 columns}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 0 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C5): rows ascend.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C5) rows_between needs two numbers, ascending, the second one between 1 and 2147483647}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [3, 2] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C5): there may be some.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C5) rows_between needs two numbers, ascending, the second one between 1 and 2147483647}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [0, 0] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.epilogue (C3): a residual for who adds it.
func.func @epilogue(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C3) has operands that epilogue 'none' does not take, or lacks one}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<none>) residual(%y : memref<?x64xf32>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C3): and one for who does.
func.func @epilogue(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C3) has operands that epilogue 'add_residual' does not take, or lacks one}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<add_residual>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C2): groups alternate for silu_mul.
func.func @epilogue(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C2) interleave must be between 1 and 4096, and given for silu_mul only}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<silu_mul>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C2): in a positive number of rows.
func.func @epilogue(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C2) interleave must be between 1 and 4096, and given for silu_mul only}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<silu_mul>) interleave 0 into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C2): and for nobody else.
func.func @epilogue(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C2) interleave must be between 1 and 4096, and given for silu_mul only}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<none>) interleave 16 into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.nest (C5): not more than any buffer has.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C5) rows_between needs two numbers, ascending, the second one between 1 and 2147483647}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 64, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 4294967296] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): sums stay near.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C6) slice must have whole panels, and at most 262144 sums; it has 2147483647 x 2147483616}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [2147483647, 2147483616, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): of tiles in memory there are whole ones.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x2x2x16x16x2xbf16>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) slice must have whole panels, and at most 262144 sums; it has 16 x 32768}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [1, 32768, 64], threads = [1, 1, 1], prefetch = [0, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x2x2x16x16x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): nor is more packed than stays near.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x2x2x16x16x2xbf16>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C6) at most 524288 elements of input can be packed; a slice has 8192 x 2147483616}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [8192, 32, 2147483616], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x2x2x16x16x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C6): panels stay whole.
func.func @nest(%x: memref<?x64xbf16>, %w: memref<2x32x1x1x32x2xbf16>, %i: index, %m: memref<64xi8>, %p: memref<?xindex>) {
  // expected-error @below {{'gemm.nest' op (C6) slice must have whole panels, and at most 262144 sums; it has 12 x 16}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x16, slice = [12, 16, 64], threads = [1, 1, 1], prefetch = [1, 0]>) unit 32 rows_between [1, 12] : memref<?x64xbf16>, memref<2x32x1x1x32x2xbf16> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.epilogue (C1): vectors of sums.
func.func @epilogue(%s: memref<?x64xf32>, %t: memref<?x64xf32, strided<[1, 64]>>, %y: memref<?x64xf32>, %z: memref<?x64xf32, strided<[128, 2]>>, %r: memref<?x32xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C1) needs contiguous rows of sums, destination and residual}}
  gemm.epilogue %t at(%i, %i) size(%i, %i) epilogue(<none>) into %y : memref<?x64xf32, strided<[1, 64]>> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C1): and of results.
func.func @epilogue(%s: memref<?x64xf32>, %t: memref<?x64xf32, strided<[1, 64]>>, %y: memref<?x64xf32>, %z: memref<?x64xf32, strided<[128, 2]>>, %r: memref<?x32xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C1) needs contiguous rows of sums, destination and residual}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<none>) into %z : memref<?x64xf32> into memref<?x64xf32, strided<[128, 2]>>
  return
}

// -----

// gemm.epilogue (C2): not more than a weight alternates in.
func.func @epilogue(%s: memref<?x64xf32>, %t: memref<?x64xf32, strided<[1, 64]>>, %y: memref<?x64xf32>, %z: memref<?x64xf32, strided<[128, 2]>>, %r: memref<?x32xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C2) interleave must be between 1 and 4096, and given for silu_mul only}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<silu_mul>) interleave 9223372036854775807 into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C4): who adds has as many channels.
func.func @epilogue(%s: memref<?x64xf32>, %t: memref<?x64xf32, strided<[1, 64]>>, %y: memref<?x64xf32>, %z: memref<?x64xf32, strided<[128, 2]>>, %r: memref<?x32xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C4) residual must have 64 channels}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<add_residual>) residual(%r : memref<?x32xf32>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.epilogue (C5): a bias exists.
func.func @epilogue(%s: memref<?x64xf32>, %t: memref<?x64xf32, strided<[1, 64]>>, %y: memref<?x64xf32>, %z: memref<?x64xf32, strided<[128, 2]>>, %r: memref<?x32xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op (C5) @none must be a weight of 64 elements, without layers, not interleaved}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) bias @none epilogue(<none>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// gemm.nest (C8): tiles take no numbers of 4 bits.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) X86_AMX_INT8_32x32 multiplies numbers of 8 bits in groups of a multiple of 32 k, or those of 4 bits copied to such, not int4-g32-f16 of 256 k}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_INT8_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x8x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C1): nor short groups of 8 bits.
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x16x576xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C1) X86_AMX_INT8_32x32 does not read a weight of}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_INT8_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 32 rows_between [1, 12] stored <int8, group = 16, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<2x16x576xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C8): inputs in groups of 32 k leave tiles for four sums.
func.func @nest(%x: memref<?x256xf32>, %w: memref<5x8x544xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C8) X86_AMX_INT8_16x80 has more than four tiles of sums, which inputs of 32 k leave}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_INT8_16x80, slice = [64, 80, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed>) unit 80 rows_between [1, 12] stored <int8, group = 32, scale = f16> packing <panel = 16, tile = 16, k_step = 4, k_pack = 4> : memref<?x256xf32>, memref<5x8x544xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C9): a slice of all of k.
func.func @nest(%x: memref<?x256xbf16>, %w: memref<2x8x1088xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C9) only panels of a multiple of 32 columns, as many as the micro-kernel has, are unpacked ahead, for X86_AMX_BF16, in groups of a multiple of 32 k, and with a slice of all of K that no threads share}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [64, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], copy = ahead>) unit 32 rows_between [1, 12] stored <int8, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xbf16>, memref<2x8x1088xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}

// -----

// gemm.nest (C9): all of k.
func.func @nest(%x: memref<?x256xbf16>, %w: memref<2x8x1088xi8>, %i: index) {
  // expected-error @below {{'gemm.nest' op (C9) what is copied ahead is all of k, without parameters}}
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], copy = ahead>) unit 32 rows_between [1, 12] stored <int8, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4> : memref<?x256xbf16>, memref<2x8x1088xi8> {
  ^bb0(%s: memref<?x?xf32, strided<[?, 1], offset: ?>>, %r: index, %rs: index, %c: index, %cs: index):
  }
  return
}
