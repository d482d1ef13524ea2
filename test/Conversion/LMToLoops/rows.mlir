// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 -canonicalize -cse | FileCheck %s

// Each thread copies its own rows, in vectors.

// CHECK-LABEL: func @gather_rows
func.func @gather_rows(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
  // CHECK: %[[ROWS:.*]] = memref.dim %[[NUMBERS:arg5]], %{{.*}} : memref<?xi32>
  // CHECK: %[[FIRST:.*]] = arith.muli %[[THREAD:.*]], %[[ROWS]]
  // CHECK: %[[BEGIN:.*]] = arith.divui %[[FIRST]], %[[C4]]
  // CHECK: %[[END:.*]] = arith.divui %{{.*}}, %[[C4]]
  // CHECK: scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
  // CHECK:   %[[NUMBER:.*]] = memref.load %[[NUMBERS]][%[[ROW]]]
  // CHECK:   %[[FROM:.*]] = arith.index_cast %[[NUMBER]] : i32 to index
  // CHECK:   scf.for %[[K:.*]] =
  // CHECK:     %[[PIECE:.*]] = vector.load %[[X:.*]][%[[FROM]], %[[K]]] : memref<?x32xf32>, vector<16xf32>
  // CHECK:     vector.store %[[PIECE]], %{{.*}}[%[[ROW]], %[[K]]]
  // CHECK-NOT: lm.gather_rows
  lm.gather_rows %x, %logit_rows into %logits : memref<?x32xf32>, memref<?xi32> into memref<?x32xf32>
  return
}

// Channels that fill no vector are one narrower vector; bf16 is widened.

lm.weight @narrow : tensor<100x20xbf16> from ["narrow"] at 128
// CHECK-LABEL: func @embed
func.func @embed(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x20xf32>
  // CHECK: memref.view %{{.*}}[%c128][] : memref<?xi8> to memref<100x20xbf16>
  // CHECK: vector.load %{{.*}} : memref<100x20xbf16>, vector<16xbf16>
  // CHECK: arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
  // CHECK: vector.load %{{.*}} : memref<100x20xbf16>, vector<4xbf16>
  // CHECK: vector.store %{{.*}} : memref<?x20xf32>, vector<4xf32>
  lm.embed %token_ids, @narrow into %x : memref<?xi32> into memref<?x20xf32>
  return
}

// A tied output head is read where matmuls have it.

lm.weight @tied : tensor<100x64xbf16> from ["tied"] packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2> at 0
// CHECK-LABEL: func @embed_packed
func.func @embed_packed(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: vector.load %{{.*}} : memref<4x2x2x16x16x2xbf16>, vector<2xbf16>
  lm.embed %token_ids, @tied into %x : memref<?xi32> into memref<?x64xf32>
  return
}

// Norms are kernels of the library, called for the thread's rows.

lm.weight @norm : tensor<256xf32> layers 2 from ["norm{}"] at 0 stride 1024
// CHECK-LABEL: func @rms_norm
func.func @rms_norm(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xf32>
  // CHECK: %[[ROWS:.*]] = memref.subview %{{.*}}[%{{.*}}, 0] [%{{.*}}, 256] [1, 1]
  // CHECK: call @kernel.{{[0-9]+}}.rms_norm(%[[ROWS]], %{{.*}}, %{{.*}}, %[[ROWS]])
  lm.rms_norm %x, @norm[%c1] epsilon 1.0e-5 into %x : memref<?x256xf32> into memref<?x256xf32>
  return
}

// The row may be written where it is read.

lm.weight @row_norm : tensor<128xf32> layers 2 from ["norm{}"] at 0 stride 512
lm.weight @row_norm.bias : tensor<128xf32> layers 2 from ["bias{}"] at 1024 stride 512
// CHECK-LABEL: func @layer_norm
func.func @layer_norm(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x128xf32>
  // CHECK: call @kernel.{{[0-9]+}}.layer_norm(
  lm.layer_norm %x, @row_norm bias @row_norm.bias[%c1] epsilon 1.0e-5 into %x : memref<?x128xf32> into memref<?x128xf32>
  return
}

// CHECK-LABEL: func @gelu
func.func @gelu(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: call @[[EXACT:kernel.[0-9]+.gelu]](
  lm.gelu %x <exact> into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK-NOT: @[[EXACT]]
  // CHECK: call @kernel.{{[0-9]+}}.gelu(
  lm.gelu %x <tanh> into %x : memref<?x64xf32> into memref<?x64xf32>
  return
}

// CHECK-LABEL: func @tanh
func.func @tanh(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: call @kernel.{{[0-9]+}}.hyperbolic_tangent(
  lm.tanh %x into %x : memref<?x64xf32> into memref<?x64xf32>
  return
}

// A length is at least 1e-12.

// CHECK-LABEL: func @l2_normalize
func.func @l2_normalize(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: call @kernel.{{[0-9]+}}.l2_normalize(
  lm.l2_normalize %x into %x : memref<?x64xf32> into memref<?x64xf32>
  return
}

// Rows of segments; those that are added stay in a register, in f64.

// CHECK-LABEL: func @pool
func.func @pool(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 8, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: memref.load %{{.*}} : memref<?x4xi32>
  // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<16xf64>)
  // CHECK: arith.addf %[[SUM]], %{{.*}} : vector<16xf64>
  // CHECK: arith.divf %{{.*}} : vector<16xf64>
  // CHECK: arith.truncf %{{.*}} : vector<16xf64> to vector<16xf32>
  lm.pool %x, %segments <mean> into %logits : memref<?x64xf32>, memref<?x4xi32> into memref<?x64xf32>
  // CHECK: scf.for
  // CHECK-NOT: iter_args
  // CHECK: vector.store
  lm.pool %x, %segments <last> into %logits : memref<?x64xf32>, memref<?x4xi32> into memref<?x64xf32>
  return
}

// Angles are reduced in f64, frequencies are constants.

// CHECK-LABEL: func @rotary_table
func.func @rotary_table(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x4xf32>
  // CHECK-DAG: arith.constant dense<[1.000000e+00, 5.000000e-01]> : vector<2xf32>
  // CHECK: arith.sitofp %{{.*}} : i32 to f32
  // CHECK: arith.extf %{{.*}} : vector<2xf32> to vector<2xf64>
  // CHECK: math.roundeven %{{.*}} : vector<2xf64>
  lm.rotary_table %positions frequencies [1.0, 0.5] into %x : memref<?xi32> into memref<?x4xf32>
  return
}

// A thread takes part in what ranks do together.

// CHECK-LABEL: func @ranks
func.func @ranks(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x320xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 32768>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %part = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x160xf32>
  // CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x64xf32>
  // CHECK: phase.all_reduce %{{.*}}, %[[X]] : memref<?x64xf32>
  lm.all_reduce %x into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK: phase.all_gather %{{.*}}, %{{.*}} into %{{.*}} : memref<?x160xf32> into memref<?x320xf32>
  lm.all_gather %part into %logits : memref<?x160xf32> into memref<?x320xf32>
  return
}

// Sums of 64 numbers at a time; rows are a multiple of them, so that nothing is
// masked. The mean comes before the distances from it.
// CHECK-LABEL: func private @kernel.{{[0-9]+}}.rms_norm(
// CHECK-SAME: memref<?x256xf32, strided<[256, 1], offset: ?>>, %{{.*}}: memref<256xf32>, %{{.*}}: f32
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
// CHECK: vector.reduction <add>
// CHECK: math.sqrt
// CHECK-NOT: mask
// CHECK-LABEL: func private @kernel.{{[0-9]+}}.layer_norm(
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
// CHECK: vector.reduction <add>
// CHECK: arith.divf
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
// CHECK: arith.subf
// CHECK: vector.reduction <add>
// CHECK: math.sqrt
// CHECK: math.fma
// CHECK-NEXT: vector.store
// CHECK-LABEL: func private @kernel.{{[0-9]+}}.l2_normalize(
// CHECK: %[[ROOT:.*]] = math.sqrt %{{.*}} : f32
// CHECK: %[[LENGTH:.*]] = arith.maximumf %[[ROOT]], %{{.*}} : f32
// CHECK: vector.broadcast %[[LENGTH]] : f32 to vector<64xf32>
// CHECK: arith.divf %{{.*}} : vector<64xf32>
