// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16" -split-input-file -verify-diagnostics

// An argument of the function is made nowhere it could be rounded.
lm.weight @w : tensor<96x64xbf16> from ["w"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // expected-error @below {{'gemm.matmul' op reads an input that cannot be rounded to bf16 where it is made}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// A value that another operation reads in f32 stays f32.
lm.weight @w : tensor<64x64xbf16> from ["w"]
lm.weight @norm : tensor<64xf32> from ["norm"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %n = lm.rms_norm %x, @norm epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-error @below {{'gemm.matmul' op reads an input that cannot be rounded to bf16 where it is made}}
  %y = gemm.matmul %n, @w epilogue(<add_residual>) residual(%n : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
