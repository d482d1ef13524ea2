// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx2 threads=2" -verify-diagnostics

// A schedule that is there stays, with no more threads than the team has.
lm.weight @w : tensor<96x64xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  %y = gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>)
    : tensor<?x64xf32> -> tensor<?x96xf32>
  // expected-error @below {{'gemm.matmul' op has a schedule for 3 threads, the team has 2}}
  %z = gemm.matmul %x, @w epilogue(<none>)
    schedules(<6 : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 2, 1], prefetch = [0, 0]>,
               ? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 3, 1], prefetch = [0, 0]>>)
    : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y, %z : tensor<?x96xf32>, tensor<?x96xf32>
}
