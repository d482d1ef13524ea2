// RUN: sandwich-opt %s -lm-place-weights -split-input-file | FileCheck %s

// Weights lie in the order of the module: matrices begin on a page, vectors on
// a cache line, and so does each layer's slice. What nothing reads is gone.

// 320 * 64 * 2 bytes are ten pages.
// CHECK: lm.weight @embedding : tensor<320x64xbf16> from ["e"] at 0{{$}}
lm.weight @embedding : tensor<320x64xbf16> from ["e"]
// 65 * 4 bytes fill four cache lines and one float of a fifth.
// CHECK-NEXT: lm.weight @norm : tensor<65xf32> layers 3 from ["n{}"] at 40960 stride 320
lm.weight @norm : tensor<65xf32> layers 3 from ["n{}"]
// CHECK-NOT: @unused
lm.weight @unused : tensor<64xf32> from ["unused"]
// CHECK-NEXT: lm.weight @final : tensor<65xf32> from ["f"] at 41920{{$}}
lm.weight @final : tensor<65xf32> from ["f"]
// One panel of 32 columns holds the 3 rows: 32 * 64 * 4 bytes for each layer.
// CHECK-NEXT: lm.weight @packed : tensor<3x64xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 45056 stride 8192
lm.weight @packed : tensor<3x64xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>
// Gate and up have 20 rows each: filled up to groups of 16 they are 64, two panels.
// CHECK-NEXT: lm.weight @gate_up : tensor<40x64xbf16> from ["g", "u"] interleave 16 packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 61440{{$}}
lm.weight @gate_up : tensor<40x64xbf16> from ["g", "u"] interleave 16 packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2>
// CHECK-NEXT: lm.weight @last : tensor<1xf32> from ["l"] at 69632{{$}}
lm.weight @last : tensor<1xf32> from ["l"]

// CHECK: func @f
func.func @f(%ids: tensor<?xi32>, %layer: index, %x: tensor<?x65xf32>, %y: tensor<?x64xf32>) {
  %0 = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %1 = lm.rms_norm %x, @norm[%layer] epsilon 1.0 : tensor<?x65xf32> -> tensor<?x65xf32>
  %2 = lm.rms_norm %x, @final epsilon 1.0 : tensor<?x65xf32> -> tensor<?x65xf32>
  %3 = gemm.matmul %y, @packed[%layer] epilogue(<none>) : tensor<?x64xf32> -> tensor<?x3xf32>
  %4 = gemm.matmul %y, @gate_up epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x20xf32>
  %5 = lm.rms_norm %x, @last epsilon 1.0 : tensor<?x65xf32> -> tensor<?x65xf32>
  return
}

// -----

// Places that are there are decided anew.

// CHECK: lm.weight @w : tensor<64x64xf32> from ["w"] at 0{{$}}
lm.weight @w : tensor<64x64xf32> from ["w"] at 12288
// CHECK: func @f
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// What all ranks read comes first, a rank's shard at the next 2 MiB behind it.

// CHECK: lm.weight @first_shard {{.*}} at 2097152
lm.weight @first_shard : tensor<16x64xf32> from ["a"] shard <rows, ranks = 2>
// CHECK: lm.weight @whole {{.*}} at 0
lm.weight @whole : tensor<320x64xf32> from ["b"]
// CHECK: lm.weight @second_shard {{.*}} at 2101248
lm.weight @second_shard : tensor<16x64xf32> from ["c"] shard <columns, ranks = 2>
func.func private @shard_uses() attributes {weights = [@first_shard, @whole, @second_shard]}
