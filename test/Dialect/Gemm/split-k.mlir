// RUN: sandwich-opt %s -gemm-split-k -canonicalize -cse | FileCheck %s

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0

// Sums of each part of K, a barrier, and everybody adds up some columns.
// CHECK-LABEL: func @split
// CHECK-SAME: %[[THREAD:[a-z0-9]+]]: index, %[[TEAM:[a-z0-9]+]]: !phase.team
func.func @split(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  %sums_offset = arith.constant 33554432 : index
  %sums = memref.view %workspace[%sums_offset][] : memref<?xi8> to memref<2097216xi8>
  // CHECK: %[[SUMS:.*]] = memref.view %{{.*}}[%c0][%{{.*}}] : memref<2097216xi8> to memref<2x?x512xf32>
  // CHECK: %[[PART_OF_K:.*]] = arith.remui %[[THREAD]], %c2
  // CHECK: gemm.nest
  // CHECK-NOT: gemm.epilogue
  // CHECK: vector.store %{{.*}}, %[[SUMS]][%[[PART_OF_K]], %{{.*}}, %{{.*}}]
  // CHECK: phase.barrier %[[TEAM]]
  // CHECK: vector.load %[[SUMS]][%c0,
  // CHECK: vector.load %[[SUMS]][%c1,
  // CHECK: arith.addf
  // CHECK: vector.store %{{.*}}, %[[SUMS]][%c0,
  // CHECK: scf.if
  // CHECK: %[[BLOCK:.*]] = memref.subview %[[SUMS]]
  // CHECK: gemm.epilogue %[[BLOCK]] at(%c0, %{{.*}}) size(%{{.*}}, %{{.*}}) epilogue(<none>) into
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 2, 2], prefetch = [8, 4096]>>)
    partial_sums(%sums : memref<2097216xi8>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// Sums of as many tokens as there can be.
// CHECK-LABEL: func @few_tokens
func.func @few_tokens(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  %sums_offset = arith.constant 33554432 : index
  %sums = memref.view %workspace[%sums_offset][] : memref<?xi8> to memref<16448xi8>
  // CHECK: gemm.nest
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 1, 2], prefetch = [8, 4096]>>)
    tokens_between [3, 4] partial_sums(%sums : memref<16448xi8>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// Others are left alone.
// CHECK-LABEL: func @whole
func.func @whole(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  // CHECK: gemm.matmul
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [1, 2, 1], prefetch = [8, 4096]>>)
    into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// While tuning, the part of a thread, and which one of K, is loaded; the columns
// that it adds up are its share as ever.
// CHECK-LABEL: func @parameters
// CHECK-SAME: %[[THREAD:[a-z0-9]+]]: index, %{{.*}}: !phase.team
func.func @parameters(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  %sums_offset = arith.constant 33554432 : index
  %sums = memref.view %workspace[%sums_offset][] : memref<?xi8> to memref<2097216xi8>
  %place = arith.constant 67108864 : index
  %p = memref.view %workspace[%place][] : memref<?xi8> to memref<174xindex>
  // CHECK: %[[DISTANCE:.*]] = arith.muli %[[THREAD]], %c7
  // CHECK: %[[PLACE:.*]] = arith.addi %[[DISTANCE]], %c152
  // CHECK: %[[PART_OF_K:.*]] = memref.load %{{.*}}[%[[PLACE]]] : memref<174xindex>
  // CHECK: gemm.nest {{.*}} parameters(%{{.*}} : memref<174xindex>)
  // CHECK: vector.store %{{.*}}, %{{.*}}[%[[PART_OF_K]], %{{.*}}, %{{.*}}] : memref<2x?x512xf32>
  // CHECK: phase.barrier
  // CHECK: gemm.epilogue
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_1x32, slice = [1, 32, 2], threads = [1, 1, 2], prefetch = [0, 0]>>)
    partial_sums(%sums : memref<2097216xi8>) parameters(%p : memref<174xindex>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}
