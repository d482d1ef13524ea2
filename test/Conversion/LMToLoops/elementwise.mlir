// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 -canonicalize -cse | FileCheck %s

// What is usually fused into matmuls runs by itself, by kernels or in vectors, all
// but lm.append_kv row by row.

// CHECK-LABEL: func @add_and_round
func.func @add_and_round(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x512xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 65536>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16384 = arith.constant 16384 : index
  %c32768 = arith.constant 32768 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c16384][%tokens] : memref<?xi8> to memref<?x32xf32>
  %z = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x32xbf16>
  // CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x32xf32>
  // CHECK: %[[Y:.*]] = memref.view {{.*}} to memref<?x32xf32>
  // CHECK: %[[LHS:.*]] = memref.subview %[[X]][%[[BEGIN:.*]], 0] [%[[ROWS:.*]], 32] [1, 1]
  // CHECK: %[[RHS:.*]] = memref.subview %[[Y]][%[[BEGIN]], 0] [%[[ROWS]], 32] [1, 1]
  // CHECK: call @kernel.{{[0-9]+}}.add(%[[LHS]], %[[RHS]], %[[LHS]])
  lm.add %x, %y into %x : memref<?x32xf32> into memref<?x32xf32>
  // CHECK: %[[COPY:.*]] = memref.subview %{{.*}} : memref<?x32xbf16>
  // CHECK: call @kernel.{{[0-9]+}}.rounded(%[[LHS]], %[[COPY]])
  lm.round %x into %z : memref<?x32xf32> into memref<?x32xbf16>
  return
}

// A rank keeps its own rows and makes zeros of the others.

// CHECK-LABEL: func @deal_rows
func.func @deal_rows(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x512xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 65536>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16384 = arith.constant 16384 : index
  %c32768 = arith.constant 32768 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c16384][%tokens] : memref<?xi8> to memref<?x32xf32>
  %z = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x32xbf16>
  // CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x32xf32>
  // CHECK: %[[RANK:.*]] = phase.rank
  // CHECK: scf.for %[[ROW:.*]] =
  // CHECK: %[[OWNER:.*]] = arith.remui %[[ROW]], %{{.*}}
  // CHECK: %[[OWN:.*]] = arith.cmpi eq, %[[OWNER]], %[[RANK]]
  // CHECK: arith.select %[[OWN]], %{{.*}}, %{{.*}} : vector<16xf32>
  lm.deal_rows %x among 2 into %y : memref<?x32xf32> into memref<?x32xf32>
  return
}

// Halves of a head turn together.

// CHECK-LABEL: func @rotate
func.func @rotate(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x512xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 65536>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16384 = arith.constant 16384 : index
  %c32768 = arith.constant 32768 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c16384][%tokens] : memref<?xi8> to memref<?x32xf32>
  %z = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x32xbf16>
  // CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x32xf32>
  %table = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x16xf32>
  // CHECK: %[[TABLE:.*]] = memref.view {{.*}} to memref<?x16xf32>
  // Two heads of sixteen channels.
  // CHECK: %[[OWN:.*]] = memref.subview %[[X]][%[[BEGIN:.*]], 0] [%[[ROWS:.*]], 32]
  // CHECK: %[[HEADS:.*]] = memref.expand_shape %[[OWN]] {{.*}} into memref<?x2x16xf32,
  // CHECK: %[[ANGLES:.*]] = memref.subview %[[TABLE]][%[[BEGIN]], 0] [%[[ROWS]], 16]
  // CHECK: call @kernel.{{[0-9]+}}.rotate(%[[HEADS]], %[[ANGLES]], %[[HEADS]])
  lm.rotate %x, %table into %x : memref<?x32xf32>, memref<?x16xf32> into memref<?x32xf32>
  return
}

// Keys lie across tokens, in pairs of channels, values along channels; both go
// where the token's slot is.

// CHECK-LABEL: func @append_kv
func.func @append_kv(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x512xbf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 65536>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16384 = arith.constant 16384 : index
  %c32768 = arith.constant 32768 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c16384][%tokens] : memref<?xi8> to memref<?x32xf32>
  %z = memref.view %workspace[%c32768][%tokens] : memref<?xi8> to memref<?x32xbf16>
  // Head by head, and in each the rows.
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c2
  // CHECK: scf.for %[[ROW:.*]] =
  // CHECK: %[[SLOT:.*]] = memref.load %{{.*}}[%[[ROW]]] : memref<?xi32>
  // CHECK: arith.divui
  // CHECK: arith.remui
  // CHECK-COUNT-8: vector.store %{{.*}} : memref<?x2x2x2x512xbf16>, vector<2xbf16>
  // CHECK: vector.store %{{.*}} : memref<?x2x2x2x512xbf16>, vector<16xbf16>
  %values = memref.view %workspace[%c16384][%tokens] : memref<?xi8> to memref<?x64xf32>
  lm.append_kv %values, %values to %cache[%c1] slots %slots : memref<?x64xf32>, memref<?x2x2x2x512xbf16>, memref<?xi32>
  return
}
