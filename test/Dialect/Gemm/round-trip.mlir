// RUN: sandwich-opt %s --verify-roundtrip | FileCheck %s

lm.weight @down : tensor<64x96xbf16> layers 2 from ["layers.{}.down"]
lm.weight @gate_up : tensor<192x64xbf16> layers 2 from ["layers.{}.gate", "layers.{}.up"] interleave 32
lm.weight @qkv : tensor<128x64xbf16> layers 2 from ["layers.{}.q", "layers.{}.k", "layers.{}.v"]

// CHECK-LABEL: func @matmuls
func.func @matmuls(%x: tensor<?x64xbf16>, %residual: tensor<?x64xf32>, %table: tensor<?x32xf32>,
    %positions: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, %layer: index) -> tensor<?x64xf32> {
  // CHECK: gemm.matmul %{{.*}}, @qkv[%{{.*}}] epilogue(<rotate_append_kv>) rotary(%{{.*}} : tensor<?x32xf32>) cache(
  %q = gemm.matmul %x, @qkv[%layer] epilogue(<rotate_append_kv>) rotary(%table : tensor<?x32xf32>)
    cache(%cache : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>)
    positions(%positions : tensor<?xi32>) sequences(%positions : tensor<?xi32>)
    : tensor<?x64xbf16> -> tensor<?x64xf32>
  // CHECK: gemm.matmul %{{.*}}, @gate_up[%{{.*}}] epilogue(<silu_mul>) : tensor<?x64xbf16> -> tensor<?x96xbf16>
  %h = gemm.matmul %x, @gate_up[%layer] epilogue(<silu_mul>) : tensor<?x64xbf16> -> tensor<?x96xbf16>
  // CHECK: gemm.matmul {{.*}} epilogue(<add_residual>) residual({{.*}}) schedules(<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 2, 1], prefetch = [8, 4096]>, ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 96], threads = [1, 2, 1], prefetch = [1, 0]>>)
  %y = gemm.matmul %h, @down[%layer] epilogue(<add_residual>) residual(%residual : tensor<?x64xf32>)
    schedules(<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 2, 1], prefetch = [8, 4096]>,
               ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 96], threads = [1, 2, 1], prefetch = [1, 0]>>)
    : tensor<?x96xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
