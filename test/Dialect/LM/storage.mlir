// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: sandwich-opt %s | sandwich-opt | FileCheck %s
//
// What is stored is printed as it is written; a group of a whole row has a name.

// CHECK: lm.weight @groups : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = f16>{{$}}
lm.weight @groups : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = f16>
// CHECK: lm.weight @rows : tensor<64x64xf32> layers 2 from ["w{}"] storage <int8, group = row, scale = f32>{{$}}
lm.weight @rows : tensor<64x64xf32> layers 2 from ["w{}"] storage <int8, group = row, scale = f32>
// CHECK: lm.weight @minima : tensor<64x64xf32> from ["w"] storage <int4, group = 16, scale = f16, offset = minimum>{{$}}
lm.weight @minima : tensor<64x64xf32> from ["w"] storage <int4, group = 16, scale = f16, offset = minimum>
// CHECK: lm.weight @floats : tensor<64x64xf32> from ["w"] storage <fp8, group = row, scale = f32>{{$}}
lm.weight @floats : tensor<64x64xf32> from ["w"] storage <fp8, group = row, scale = f32>
// CHECK: lm.weight @blocks : tensor<64x128xf32> layers 2 from ["w{}"] storage <fp8, group = 128, scale = f16>{{$}}
lm.weight @blocks : tensor<64x128xf32> layers 2 from ["w{}"] storage <fp8, group = 128, scale = f16>
// CHECK: lm.weight @none : tensor<64x64xf32> from ["w"] storage <int4, group = 16, scale = f16>{{$}}
lm.weight @none : tensor<64x64xf32> from ["w"] storage <int4, group = 16, scale = f16, offset = none>
// CHECK: lm.weight @shard : tensor<64x64xf32> from ["a", "b"] interleave 16 storage <int8, group = 64, scale = f16> shard <rows, ranks = 2> packing #gemm.packing<panel = 32, tile = 32, k_step = 4, k_pack = 4> at 4096
lm.weight @shard : tensor<64x64xf32> from ["a", "b"] interleave 16
    storage <int8, group = 64, scale = f16> shard <rows, ranks = 2>
    packing #gemm.packing<panel = 32, tile = 32, k_step = 4, k_pack = 4> at 4096
