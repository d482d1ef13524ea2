// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16" -split-input-file -verify-diagnostics

// A buffer has the elements it has.
lm.weight @w : tensor<96x64xbf16> from ["w"]
func.func @f(%x: memref<?x64xf32>, %y: memref<?x96xf32>) {
  // expected-error @below {{'gemm.matmul' op multiplies bf16, but reads a buffer of f32}}
  gemm.matmul %x, @w epilogue(<none>) into %y : memref<?x64xf32> into memref<?x96xf32>
  return
}
