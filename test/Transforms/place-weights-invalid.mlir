// RUN: sandwich-opt %s -lm-place-weights -split-input-file -verify-diagnostics

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
