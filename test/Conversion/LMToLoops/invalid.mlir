// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512 -split-input-file -verify-diagnostics

// Only phase programs have threads and weights.
func.func @plain(%x: memref<?x32xf32>, %rows: memref<?xi32>) {
  // expected-error @below {{'lm.gather_rows' op must be in a phase program with 'phase.program'}}
  lm.gather_rows %x, %rows into %x : memref<?x32xf32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// Weights must have their place.
lm.weight @embedding : tensor<100x32xbf16> from ["embedding"]
func.func @embed(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  // expected-error @below {{'lm.embed' op needs the place of weight @embedding in the artifact}}
  lm.embed %token_ids, @embedding into %x : memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// Vectors need contiguous channels.
func.func @strided(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %y = memref.subview %x[0, 0] [%tokens, 32] [1, 2] : memref<?x64xf32> to memref<?x32xf32, strided<[64, 2]>>
  // expected-error @below {{'lm.gather_rows' op needs buffers whose last dimension is contiguous, got 'memref<?x32xf32, strided<[64, 2]>>'}}
  lm.gather_rows %y, %logit_rows into %logits : memref<?x32xf32, strided<[64, 2]>>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// Partial sums have room for the parts of as many segments as a step can have: 2 for
// each of 16 tokens, each of 4 heads of 64 channels and two numbers.
func.func @few_sums(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 16, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  %sums = memref.view %workspace[%c0][] : memref<?xi8> to memref<33728xi8>
  // expected-error @below {{'lm.attention' op needs 33792 bytes of partial sums, has 33728}}
  lm.attention %q, %cache[%c0] segments %segments blocks %block_tables scale 0.125
    schedules(<[?, ?] : <decode = [2, 2, 2], split = 2, prefill = [4, 1, 1]>>) partial_sums(%sums : memref<33728xi8>)
    into %q : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}
