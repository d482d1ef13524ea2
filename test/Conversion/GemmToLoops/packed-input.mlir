// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops -split-input-file | FileCheck %s

// Behind the sums of a block, 12 x 16 and a cache line, its input: 12 rows of 64 in
// f32. With all of K in one slice, the first of a thread's columns pack it for all of
// them, strip by strip, each to where its rows before it end.
// CHECK-LABEL: func @f32
// CHECK-SAME: workspace_bytes = 1000>
// CHECK: %[[SCRATCH:.*]] = memref.alloca() {alignment = 64 : i64} : memref<3904xi8>
// CHECK: %[[FIRST_COLUMN:.*]] = arith.minui %{{.*}}, %c64
// CHECK: memref.view %[[SCRATCH]][%c0{{[_0-9]*}}][] : memref<3904xi8> to memref<12x16xf32>
// CHECK: %[[PACKED:.*]] = memref.view %[[SCRATCH]][%c832][] : memref<3904xi8> to memref<1x768xf32>
// CHECK: scf.for %[[COLUMN:.*]] = %[[FIRST_COLUMN]] to
// CHECK: scf.for
// CHECK: %[[SLICE_K:.*]] = arith.minui
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[COLUMN]], %[[FIRST_COLUMN]]
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK: scf.for %[[STRIP:[a-z0-9]+]] =
// CHECK: %[[BEFORE:.*]] = arith.muli %[[STRIP]],
// CHECK-NEXT: %[[FIRST_ROW:.*]] = arith.addi %[[BEFORE]],
// CHECK: %[[ROWS:.*]] = arith.addi
// CHECK: %[[PLACE:.*]] = arith.muli %[[FIRST_ROW]], %[[SLICE_K]]
// Four rows of four k are transposed, the rest copied.
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: scf.for %[[K:.*]] =
// CHECK-COUNT-4: vector.load {{.*}}, vector<4xf32>
// CHECK-COUNT-8: vector.shuffle
// CHECK: %[[STEP:.*]] = arith.muli %[[K]], %[[ROWS]]
// CHECK-NEXT: %[[ELEMENT:.*]] = arith.addi %[[STEP]], %[[ROW]]
// CHECK-NEXT: %[[TO:.*]] = arith.addi %[[PLACE]], %[[ELEMENT]]
// CHECK-NEXT: vector.store %{{.*}}, %[[PACKED]][%{{.*}}, %[[TO]]] : memref<1x768xf32>, vector<4xf32>
// CHECK-COUNT-3: vector.store
// CHECK-NOT: vector.store
// The micro-kernel reads the strip from there.
// CHECK: arith.cmpi ne, %{{.*}}, %c0
// CHECK: scf.for %[[STRIP:[a-z0-9]+]] =
// CHECK: %[[BEFORE:.*]] = arith.muli %[[STRIP]],
// CHECK-NEXT: %[[FIRST_ROW:.*]] = arith.addi %[[BEFORE]],
// CHECK: %[[PLACE:.*]] = arith.muli %[[FIRST_ROW]], %[[SLICE_K]]
// CHECK: scf.index_switch
// CHECK-NEXT: case 1 {
// CHECK-NEXT: %[[INPUT:.*]] = memref.cast %[[PACKED]]
// CHECK: call @ARM_NEON_F32_1x16_packed(%[[INPUT]], %c0{{[_0-9]*}}, %[[PLACE]], %[[SLICE_K]],
// CHECK: default {
// CHECK-NEXT: %[[INPUT:.*]] = memref.cast %[[PACKED]]
// CHECK: call @ARM_NEON_F32_6x16_packed(%[[INPUT]], %c0{{[_0-9]*}}, %[[PLACE]], %[[SLICE_K]],
// CHECK-LABEL: func private @ARM_NEON_F32_1x16_packed
lm.weight @w : tensor<64x64xf32> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 1, k_pack = 1> at 0
func.func @f32(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 1000>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = ARM_NEON_F32_6x16, slice = [12, 16, 64], threads = [1, 2, 1], prefetch = [0, 0], input = packed>>)
    into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Of pairs of rows each of the two strips may add a row: 14 rows of 32 in bf16. A slice
// of K lies there until the next one, so that all columns pack it again. A strip begins
// a row later for each strip before it, and its last pair is the last two rows.
// CHECK-LABEL: func @bf16
// CHECK: %[[SCRATCH:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1728xi8>
// CHECK: %[[PACKED:.*]] = memref.view %[[SCRATCH]][%c832][] : memref<1728xi8> to memref<1x448xbf16>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[SLICE_K:.*]] = arith.minui %{{.*}}, %c32
// CHECK: scf.if %true{{[_0-9]*}} {
// CHECK: scf.for %[[STRIP:[a-z0-9]+]] =
// CHECK: %[[BEFORE:.*]] = arith.muli %[[STRIP]],
// CHECK-NEXT: %[[FIRST_ROW:.*]] = arith.addi %[[BEFORE]],
// CHECK: %[[FILLED:.*]] = arith.addi %[[FIRST_ROW]], %[[STRIP]]
// CHECK-NEXT: %[[PLACE:.*]] = arith.muli %[[FILLED]], %[[SLICE_K]]
// CHECK: %[[PAIRS:.*]] = arith.divui %{{.*}}, %c2
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK: scf.for %{{.*}} to %[[PAIRS]]
// CHECK: arith.minui %{{.*}}, %[[LAST]]
// CHECK-COUNT-2: vector.load {{.*}}, vector<4xbf16>
// CHECK: vector.store %{{.*}}, %[[PACKED]]{{.*}} : memref<1x448xbf16>, vector<8xbf16>
// CHECK-NOT: vector.store
// CHECK: arith.cmpi ne, %{{.*}}, %c0
// CHECK: scf.for %[[STRIP:[a-z0-9]+]] =
// CHECK: %[[BEFORE:.*]] = arith.muli %[[STRIP]],
// CHECK-NEXT: %[[FIRST_ROW:.*]] = arith.addi %[[BEFORE]],
// CHECK: %[[FILLED:.*]] = arith.addi %[[FIRST_ROW]], %[[STRIP]]
// CHECK-NEXT: %[[PLACE:.*]] = arith.muli %[[FILLED]], %[[SLICE_K]]
// CHECK: scf.index_switch
// CHECK: default {
// CHECK-NEXT: %[[INPUT:.*]] = memref.cast %[[PACKED]]
// CHECK: call @ARM_NEON_BF16_6x16_packed(%[[INPUT]], %c0{{[_0-9]*}}, %[[PLACE]], %[[SLICE_K]],
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 16, tile = 16, k_step = 4, k_pack = 4> at 0
func.func @bf16(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 1000>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xbf16>
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = ARM_NEON_BF16_6x16, slice = [12, 16, 32], threads = [1, 2, 1], prefetch = [0, 0], input = packed>>)
    into %logits : memref<?x64xbf16> into memref<?x64xf32>
  return
}
