// RUN: sandwich-opt %s -split-input-file -verify-diagnostics -gemm-schedule="target=x86-64-avx2 threads=2" | FileCheck %s

// Threads do not share K, where they would without the attribute.

// CHECK-LABEL: func @narrow
// CHECK-NOT: threads = [1, 1, 2]
// CHECK: return
module attributes {lm.deterministic} {
lm.weight @w : tensor<16x4096xf32> from ["w"]
func.func @narrow(%x: tensor<?x4096xf32>) -> tensor<?x16xf32> {
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x4096xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
}

// -----

module attributes {lm.deterministic} {
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @shared(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // expected-error @below {{2 threads share K, where sums must not depend on the number of tokens}}
  %y = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 2], prefetch = [0, 0]>>)
    : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
}

// -----

// Instructions differ in how they round.

module attributes {lm.deterministic} {
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @mixed(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // expected-error @below {{must be deterministic, but multiplies @w by different instructions, X86_AVX2_F32 and X86_AVX512_F32}}
  %y = gemm.matmul %x, @w epilogue(<none>)
    schedules(<6 : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AVX512_F32_6x32, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>)
    : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}
}
