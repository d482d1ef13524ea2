// RUN: sandwich-opt %s -phase-insert-barriers -split-input-file -verify-diagnostics

// Threads that go different ways would wait for each other at different
// barriers.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %true = arith.constant true
  // expected-error @below {{'scf.if' op cannot hold what all threads run together; only loops can}}
  scf.if %true {
    lm.embed %ids, @e into %logits : memref<?xi32> into memref<?x64xf32>
  }
  return
}

// -----

// However deep it lies.
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %layer = %c0 to %c1 step %c1 {
    // expected-error @below {{'scf.if' op cannot hold what all threads run together; only loops can}}
    scf.if %true {
      scf.for %i = %c0 to %c1 step %c1 {
        phase.barrier %team
      }
    }
  }
  return
}
