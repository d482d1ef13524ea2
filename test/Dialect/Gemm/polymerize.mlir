// RUN: sandwich-opt %s -gemm-polymerize -canonicalize -cse | FileCheck %s

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0

// Rows over two threads, columns over two: neighbours read the same weights.
// CHECK-LABEL: func @rows_and_columns
// CHECK-SAME: %[[THREAD:[a-z0-9]+]]: index, %{{.*}}: !phase.team
func.func @rows_and_columns(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  // CHECK: %[[PART_OF_ROWS:.*]] = arith.remui %[[THREAD]], %c2
  // CHECK: %[[OTHERS:.*]] = arith.divui %[[THREAD]], %c2
  // CHECK: %[[PART_OF_COLUMNS:.*]] = arith.minui %[[OTHERS]], %c2
  // CHECK: gemm.nest %{{.*}}, %{{.*}} rows(%{{.*}} to %{{.*}}) columns(%{{.*}} to %{{.*}}) k(%c0 to %c2048) schedule(<{{.*}}>) unit 32 rows_between [6, 50]
  // CHECK-NEXT: ^bb0(%[[SUMS:.*]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %[[ROW:.*]]: index, %[[ROWS:.*]]: index, %[[COLUMN:.*]]: index, %[[COLUMNS:.*]]: index):
  // CHECK-NEXT: gemm.epilogue %[[SUMS]] at(%[[ROW]], %[[COLUMN]]) size(%[[ROWS]], %[[COLUMNS]]) epilogue(<none>) into
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 2048], threads = [2, 2, 1], prefetch = [8, 4096]>>)
    tokens_between [12, 100] into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// A slice is cut to the matmul.
// CHECK-LABEL: func @large_slice
func.func @large_slice(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  // CHECK: gemm.nest {{.*}} rows(%c0 to %{{.*}}) columns(%{{.*}} to %{{.*}}) {{.*}} slice = [512, 512, 2048], {{.*}} rows_between [0, 512]
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [5000, 6400, 8192], threads = [1, 1, 1], prefetch = [8, 4096]>>)
    into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}

// While tuning, the part of a thread lies behind the numbers of the schedule.
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
  %place = arith.constant 33554432 : index
  %numbers = arith.constant 200 : index
  %p = memref.view %workspace[%place][%numbers] : memref<?xi8> to memref<?xindex>
  // CHECK: %[[DISTANCE:.*]] = arith.muli %[[THREAD]], %c7
  // CHECK: %[[FIRST:.*]] = arith.addi %[[DISTANCE]], %c146
  // CHECK: %[[ROW_BEGIN:.*]] = memref.load %[[P:.*]][%[[FIRST]]]
  // CHECK: %[[SECOND:.*]] = arith.addi %[[DISTANCE]], %c147
  // CHECK: %[[ROW_END:.*]] = memref.load %[[P]][%[[SECOND]]]
  // CHECK: gemm.nest %{{.*}}, %{{.*}} rows(%[[ROW_BEGIN]] to %[[ROW_END]]) columns({{.*}}) k({{.*}}) parameters(%{{.*}} : memref<?xindex>)
  // CHECK: gemm.epilogue
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_1x32, slice = [1, 32, 2], threads = [1, 1, 1], prefetch = [0, 0]>>)
    parameters(%p : memref<?xindex>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}
