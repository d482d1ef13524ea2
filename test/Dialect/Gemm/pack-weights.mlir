// RUN: sandwich-opt %s -gemm-pack-weights -split-input-file | FileCheck %s

// Each ISA has one packing, which a weight gets once however many matmuls and
// schedules read it; vectors and tables that are not multiplied get none.

// CHECK: lm.weight @norm : tensor<64xf32> from ["norm"]{{$}}
lm.weight @norm : tensor<64xf32> from ["norm"]
// CHECK: lm.weight @embedding : tensor<96x64xf32> from ["embedding"]{{$}}
lm.weight @embedding : tensor<96x64xf32> from ["embedding"]
// CHECK: lm.weight @f32 : tensor<96x64xf32> from ["f32"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1>
lm.weight @f32 : tensor<96x64xf32> from ["f32"]
// CHECK: lm.weight @bf16 : tensor<96x64xbf16> from ["bf16"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2>
lm.weight @bf16 : tensor<96x64xbf16> from ["bf16"]
// CHECK: lm.weight @amx : tensor<96x64xbf16> from ["amx"] packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>
lm.weight @amx : tensor<96x64xbf16> from ["amx"]

// Integers lie as instructions for them read them, with the panels of the
// micro-kernel; those of a table in narrow ones.
// CHECK: lm.weight @int4 : tensor<96x64xf32> from ["int4"] storage <int4, group = 32, scale = f16> packing #gemm.packing<panel = 32, tile = 32, k_step = 4, k_pack = 4>
lm.weight @int4 : tensor<96x64xf32> from ["int4"] storage <int4, group = 32, scale = f16>
// CHECK: lm.weight @table : tensor<96x64xf32> from ["table"] storage <int8, group = row, scale = f16> packing #gemm.packing<panel = 16, tile = 16, k_step = 4, k_pack = 4>
lm.weight @table : tensor<96x64xf32> from ["table"] storage <int8, group = row, scale = f16>

func.func @prefill(%x: tensor<?x64xbf16>, %z: tensor<?x64xf32>) {
  %0 = gemm.matmul %z, @f32 epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x96xf32>
  %1 = gemm.matmul %x, @bf16 epilogue(<none>)
    schedules(<8 : <micro_kernel = X86_AVX512_BF16_4x64, slice = [8, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  %2 = gemm.matmul %x, @amx epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AMX_BF16_16x64, slice = [16, 64, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  %3 = gemm.matmul %x, @int4 epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  return
}

// The other phase reads the same copy, here with vectors of another width.
func.func @decode(%x: tensor<?x64xf32>) {
  %0 = gemm.matmul %x, @f32 epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_F32_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return
}

// -----

// A packing that is there, and the one needed, stays.

// CHECK: lm.weight @w : tensor<96x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>
lm.weight @w : tensor<96x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %0 = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_F32_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
