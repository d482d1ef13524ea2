// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -split-input-file | FileCheck %s

// Few sums are on a thread's stack.
// CHECK-LABEL: func @few
// CHECK-SAME: workspace_bytes = 1000>
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<2112xi8>
lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1> at 0
func.func @few(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 1000>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [16, 32, 64], threads = [1, 2, 1], prefetch = [0, 0]>>)
    into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Many are behind the workspace, each thread's on pages of its own: 512 rows of 64
// columns are 128 KiB, and a cache line.
// CHECK-LABEL: func @many
// CHECK-SAME: %[[WORKSPACE:[a-z0-9]+]]: memref<?xi8>, %[[THREAD:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: !phase.team)
// CHECK-SAME: workspace_bytes = 274432>
// CHECK-NOT: memref.alloca
// CHECK: %[[OWN:.*]] = arith.muli %[[THREAD]], %c135168
// CHECK: %[[PLACE:.*]] = arith.addi %[[OWN]], %c4096
// CHECK: memref.view %[[WORKSPACE]][%[[PLACE]]][] : memref<?xi8> to memref<131136xi8>
lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1> at 0
func.func @many(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 1000>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [512, 64, 64], threads = [2, 1, 1], prefetch = [0, 0]>>)
    into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
