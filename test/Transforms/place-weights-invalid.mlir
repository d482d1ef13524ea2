// RUN: sandwich-opt %s -lm-place-weights -split-input-file -verify-diagnostics

// K is whole steps of the packing: nothing fills it up.
// expected-error @below {{'lm.weight' op does not fit its packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>}}
lm.weight @w : tensor<64x48xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>
func.func @f(%x: tensor<?x48xf32>) -> tensor<?x64xf32> {
  %0 = lm.linear %x, @w : tensor<?x48xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// A vector has no columns to pack.
// expected-error @below {{'lm.weight' op does not fit its packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>}}
lm.weight @w : tensor<64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = lm.rms_norm %x, @w epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// Offsets do not overflow: filled up to panels, each of these takes 2^61 bytes.
lm.weight @u : tensor<1x2147483647xf32> layers 65536 from ["u{}"] packing #gemm.packing<panel = 4096, tile = 32, k_step = 1, k_pack = 1>
lm.weight @v : tensor<1x2147483647xf32> layers 65536 from ["v{}"] packing #gemm.packing<panel = 4096, tile = 32, k_step = 1, k_pack = 1>
// expected-error @below {{'lm.weight' op ends beyond the largest artifact of 2^62 bytes}}
lm.weight @w : tensor<1x2147483647xf32> layers 65536 from ["w{}"] packing #gemm.packing<panel = 4096, tile = 32, k_step = 1, k_pack = 1>
func.func @f(%x: tensor<?x2147483647xf32>, %layer: index) {
  %0 = lm.linear %x, @u[%layer] : tensor<?x2147483647xf32> -> tensor<?x1xf32>
  %1 = lm.linear %x, @v[%layer] : tensor<?x2147483647xf32> -> tensor<?x1xf32>
  %2 = lm.linear %x, @w[%layer] : tensor<?x2147483647xf32> -> tensor<?x1xf32>
  return
}
