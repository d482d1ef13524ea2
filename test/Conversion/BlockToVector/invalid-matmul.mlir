// RUN: sandwich-opt %s --block-to-vector=instructions=X86_AMX_BF16 -verify-diagnostics
// RUN: sandwich-opt %s --block-to-vector=instructions=X86_AVX512_BF16 -verify-diagnostics
// RUN: sandwich-opt %s --block-to-vector -verify-diagnostics

// Whatever multiplies, there is no code without end.
func.func @unrolled(%x: memref<16x1024xbf16> {block.sizes = #block.sizes<16, 1024>}, %w: memref<512x2x64xbf16> {block.sizes = #block.sizes<512, 2, 64>},
                    %y: memref<16x64xf32> {block.sizes = #block.sizes<16, 64>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4000 : index
  %none = arith.constant 0.0 : f32
  %i = block.range %zero : !block.range<16>
  %k = block.range %zero : !block.range<1024>
  %p = block.range %zero : !block.range<512>
  %two = block.range %zero : !block.range<2>
  %j = block.range %zero : !block.range<64>
  %start = block.splat %none : f32 -> tensor<16x64xf32, #block.sizes<16, 64>>
  %inputs = block.load %x[%i, %k] : memref<16x1024xbf16>, !block.range<16>, !block.range<1024> -> tensor<16x1024xbf16, #block.sizes<16, 1024>>
  %weights = block.load %w[%p, %two, %j] : memref<512x2x64xbf16>, !block.range<512>, !block.range<2>, !block.range<64> -> tensor<512x2x64xbf16, #block.sizes<512, 2, 64>>
  %sums = scf.for %turn = %zero to %n step %one iter_args(%carried = %start) -> (tensor<16x64xf32, #block.sizes<16, 64>>) {
    // expected-error @below {{is too much: the kernel takes more than 131072 operations with these parameters}}
    %next = block.matmul %inputs, %weights, %carried : tensor<16x1024xbf16, #block.sizes<16, 1024>>, tensor<512x2x64xbf16, #block.sizes<512, 2, 64>> -> tensor<16x64xf32, #block.sizes<16, 64>>
    scf.yield %next : tensor<16x64xf32, #block.sizes<16, 64>>
  } {block.unroll}
  block.store %sums, %y[%i, %j] : tensor<16x64xf32, #block.sizes<16, 64>>, memref<16x64xf32>, !block.range<16>, !block.range<64>
  return
}
