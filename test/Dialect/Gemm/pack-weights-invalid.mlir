// RUN: sandwich-opt %s -gemm-pack-weights -split-input-file -verify-diagnostics

// Only schedules say what packing is needed.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // expected-error @below {{'gemm.matmul' op has no schedules to choose a packing for}}
  %0 = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// One matmul cannot run on vectors for few tokens and on tiles for many.
lm.weight @w : tensor<96x64xbf16> from ["w"]
func.func @f(%x: tensor<?x64xbf16>) -> tensor<?x96xf32> {
  // expected-error @below {{'gemm.matmul' op X86_AMX_BF16_32x32 needs packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>, but @w is packed as #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2>; one copy of a weight serves all schedules}}
  %0 = gemm.matmul %x, @w epilogue(<none>)
    schedules(<8 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// Nor can the phases differ.
lm.weight @w : tensor<96x64xbf16> from ["w"]
func.func @prefill(%x: tensor<?x64xbf16>) -> tensor<?x96xf32> {
  %0 = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
func.func @decode(%x: tensor<?x64xbf16>) -> tensor<?x96xf32> {
  // expected-error @below {{'gemm.matmul' op X86_AVX512_BF16_12x32 needs packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2>, but @w is packed as #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>; one copy of a weight serves all schedules}}
  %0 = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xbf16> -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// -----

// Another packing takes other bytes.
lm.weight @w : tensor<97x64xf32> from ["w"] at 0
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x97xf32> {
  // expected-error @below {{'gemm.matmul' op cannot choose a packing of @w, which has a place already}}
  %0 = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) : tensor<?x64xf32> -> tensor<?x97xf32>
  return %0 : tensor<?x97xf32>
}
