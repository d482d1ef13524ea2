// RUN: sandwich-opt %s -gemm-polymerize -gemm-to-loops -canonicalize -cse | FileCheck %s

lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0

// While tuning, the sizes of slices, strips and chunks are loaded, and
// micro-kernels are called by address: there are none in the module.
// CHECK-LABEL: func @parameters
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
  %p = memref.view %workspace[%place][] : memref<?xi8> to memref<174xindex>
  // CHECK: %[[P:.*]] = memref.view %{{.*}}[%c33554432][] : memref<?xi8> to memref<174xindex>
  // CHECK-DAG: %[[SLICE_UNITS:.*]] = memref.load %[[P]][%c0]
  // CHECK-DAG: %[[SLICE_COLUMNS:.*]] = memref.load %[[P]][%c1]
  // CHECK-DAG: %[[SLICE_K:.*]] = memref.load %[[P]][%c2]
  // CHECK-DAG: %[[CHUNK_K:.*]] = memref.load %[[P]][%c3]
  // CHECK: scf.for %{{.*}} step %[[SLICE_COLUMNS]]
  // CHECK: scf.for %{{.*}} step %[[SLICE_K]]
  // CHECK: scf.for %{{.*}} step %[[CHUNK_K]]
  // CHECK: %[[NUMBER:.*]] = arith.addi %{{.*}}, %c11
  // CHECK-NEXT: %[[ADDRESS:.*]] = memref.load %[[P]][%[[NUMBER]]]
  // CHECK-NEXT: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
  // CHECK-NEXT: %[[POINTER:.*]] = llvm.inttoptr %[[INTEGER]]
  // CHECK-NEXT: %[[FUNCTION:.*]] = builtin.unrealized_conversion_cast %[[POINTER]]
  // CHECK: call_indirect %[[FUNCTION]](
  // CHECK-NOT: func.func
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_1x32, slice = [1, 32, 2], threads = [1, 1, 1], prefetch = [0, 0]>>)
    parameters(%p : memref<174xindex>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}
