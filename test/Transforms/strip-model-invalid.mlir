// RUN: sandwich-opt %s -strip-model -split-input-file -verify-diagnostics

// A weight that is still read stays, or nothing would say which one that was.
lm.weight @w : tensor<320x64xf32> from ["w"]
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op refers to @w; convert it first}}
  %0 = lm.embed %ids, @w : tensor<?xi32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// Nor is a kernel forgotten that draws tokens.
// expected-error @below {{'lm.sampling' op has a kernel; convert it first}}
lm.sampling 64 {lm.kernel = #lm.kernel<@kernels::@sampling>}
