// RUN: sandwich-opt %s -allow-unregistered-dialect -phase-insert-barriers -split-input-file | FileCheck %s

// Operations that split the same rows the same way need no barrier between
// them: a thread reads what it wrote itself.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"]
// CHECK-LABEL: func @rows
func.func @rows(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK-NOT: phase.barrier
  // CHECK: lm.embed
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: return
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  lm.rms_norm %x, @n epsilon 1.0 into %x : memref<?x64xf32> into memref<?x64xf32>
  lm.rms_norm %x, @n epsilon 1.0 into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// A matmul reads all channels of a row and writes some: what it reads must be
// complete, and what it wrote must be before it is read.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"]
lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @columns
// CHECK-SAME: %[[TEAM:[a-z0-9]+]]: !phase.team)
func.func @columns(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %y = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: phase.barrier %[[TEAM]]
  // CHECK-NEXT: gemm.matmul
  // CHECK-NEXT: phase.barrier %[[TEAM]]
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: return
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>) into %y : memref<?x64xf32> into memref<?x64xf32>
  lm.rms_norm %y, @n epsilon 1.0 into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Two matmuls of one input write to different bytes: nothing crosses. A third
// that overwrites what the first still reads on another thread waits.

lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @bytes
func.func @bytes(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 12288>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %c8188 = arith.constant 8188 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %y = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x64xf32>
  // The last four bytes of %y for 16 tokens.
  %z = memref.view %workspace[%c8188][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: gemm.matmul
  // CHECK-NEXT: gemm.matmul
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul
  // CHECK-NEXT: return
  gemm.matmul %x, @w epilogue(<none>) into %y : memref<?x64xf32> into memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>) into %z : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Memory has many names: whatever views and casts make of it, it is the same,
// and what comes from elsewhere may be any memory.

lm.weight @e : tensor<320x64xf32> from ["e"]
// CHECK-LABEL: func @names
func.func @names(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %y = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x64xf32>
  %cast = memref.cast %x : memref<?x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
  %part = memref.cast %workspace : memref<?xi8> to memref<8192xi8>
  %viewed = memref.view %part[%c0][%tokens] : memref<8192xi8> to memref<?x64xf32>
  %unknown = "test.buffer"() : () -> memref<?x64xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  lm.gather_rows %cast, %rows into %y : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<?xi32> into memref<?x64xf32>
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  lm.gather_rows %viewed, %rows into %y : memref<?x64xf32>, memref<?xi32> into memref<?x64xf32>
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  lm.gather_rows %unknown, %rows into %logits : memref<?x64xf32>, memref<?xi32> into memref<?x64xf32>
  // CHECK-NEXT: return
  return
}

// -----

// The end of a layer meets the begin of the next one, so there is a barrier at
// the begin of the loop's body, which also covers the way into it. The cache is
// memory like any other.

lm.weight @e : tensor<320x32xf32> from ["e"]
lm.weight @n : tensor<32xf32> layers 2 from ["n{}"]
lm.weight @qkv : tensor<96x32xf32> layers 2 from ["q{}", "k{}", "v{}"]
lm.weight @o : tensor<32x32xf32> layers 2 from ["o{}"]
// CHECK-LABEL: func @layers
func.func @layers(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c12288 = arith.constant 12288 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %norm = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x32xf32>
  %query = memref.view %workspace[%c8192][%tokens] : memref<?xi8> to memref<?x32xf32>
  %table = memref.view %workspace[%c12288][%tokens] : memref<?xi8> to memref<?x32xf32>
  // CHECK: lm.rotary_table
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul {{.*}}<rotate_append_kv>
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.attention
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul {{.*}}<add_residual>
  // CHECK-NEXT: }
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  // CHECK-NEXT: return
  lm.rotary_table %positions frequencies [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.29, 0.28, 0.27, 0.26, 0.25, 0.24, 0.23, 0.22] into %table : memref<?xi32> into memref<?x32xf32>
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x32xf32>
  scf.for %layer = %c0 to %c2 step %c1 {
    lm.rms_norm %x, @n[%layer] epsilon 1.0 into %norm : memref<?x32xf32> into memref<?x32xf32>
    gemm.matmul %norm, @qkv[%layer] epilogue(<rotate_append_kv>) rotary(%table : memref<?x32xf32>) cache(%cache : memref<?x2x1x2x512xf32>)
      slots(%slots : memref<?xi32>) into %query
      : memref<?x32xf32> into memref<?x32xf32>
    lm.attention %query, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %norm
      : memref<?x32xf32>, memref<?x2x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
    gemm.matmul %norm, @o[%layer] epilogue(<add_residual>) residual(%x : memref<?x32xf32>) into %x : memref<?x32xf32> into memref<?x32xf32>
  }
  lm.gather_rows %x, %rows into %logits : memref<?x32xf32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// A loop whose iterations stay within their rows needs none at all.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
// CHECK-LABEL: func @row_loop
func.func @row_loop(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK-NOT: phase.barrier
  // CHECK: return
  lm.embed %ids, @e into %logits : memref<?xi32> into memref<?x64xf32>
  scf.for %layer = %c0 to %c2 step %c1 {
    lm.rms_norm %logits, @n[%layer] epsilon 1.0 into %logits : memref<?x64xf32> into memref<?x64xf32>
  }
  return
}

// -----

// A loop that may run no iteration: what comes after it may follow what comes
// before it.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @stacked : tensor<64x64xf32> layers 2 from ["w{}"]
// CHECK-LABEL: func @perhaps_no_iteration
func.func @perhaps_no_iteration(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %y = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x64xf32>
  %z = memref.view %workspace[%c8192][%tokens] : memref<?xi8> to memref<?x64xf32>
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  lm.embed %ids, @e into %y : memref<?xi32> into memref<?x64xf32>
  // The barrier inside the loop does not separate %x's two uses.
  // CHECK: scf.for
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul
  scf.for %layer = %c0 to %tokens step %c1 {
    gemm.matmul %y, @stacked[%layer] epilogue(<none>) into %z : memref<?x64xf32> into memref<?x64xf32>
  }
  // CHECK: phase.barrier
  // CHECK-NEXT: gemm.matmul
  gemm.matmul %x, @w epilogue(<none>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// A barrier that is there is not doubled, and without a program there is no team
// to wait for.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @twice
func.func @twice(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  phase.barrier %team
  gemm.matmul %x, @w epilogue(<none>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
// CHECK-LABEL: func @no_program
func.func @no_program(%ids: memref<?xi32>, %x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  // CHECK-NOT: phase.barrier
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// What ranks exchange is read and written by all threads, also where it is said
// in the dialect of programs.

lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<32x64xf32> from ["w"] shard <rows, ranks = 2>
// CHECK-LABEL: func @ranks
func.func @ranks(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c4096 = arith.constant 4096 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %part = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x32xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.all_reduce
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: phase.all_gather
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  // CHECK-NEXT: return
  lm.embed %ids, @e into %x : memref<?xi32> into memref<?x64xf32>
  phase.all_reduce %team, %x : memref<?x64xf32>
  gemm.matmul %x, @w epilogue(<none>) into %part : memref<?x64xf32> into memref<?x32xf32>
  phase.all_gather %team, %part into %x : memref<?x32xf32> into memref<?x64xf32>
  lm.gather_rows %x, %rows into %logits : memref<?x64xf32>, memref<?xi32> into memref<?x64xf32>
  return
}

// -----

// Threads of attention read each other's partial sums at its end: what is in the
// same memory before and after waits. Where they are elsewhere, nobody does.

lm.weight @e : tensor<320x32xf32> from ["e"]
// CHECK-LABEL: func @partial_sums
func.func @partial_sums(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %c4096 = arith.constant 4096 : index
  %c12288 = arith.constant 12288 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c2048][%tokens] : memref<?xi8> to memref<?x32xf32>
  %sums = memref.view %workspace[%c4096][] : memref<?xi8> to memref<4352xi8>
  %same = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x32xf32>
  %other = memref.view %workspace[%c12288][%tokens] : memref<?xi8> to memref<?x32xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.attention
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: return
  lm.embed %ids, @e into %q : memref<?xi32> into memref<?x32xf32>
  lm.embed %ids, @e into %same : memref<?xi32> into memref<?x32xf32>
  lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%sums : memref<4352xi8>)
    into %y : memref<?x32xf32>, memref<?x2x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  lm.embed %ids, @e into %other : memref<?xi32> into memref<?x32xf32>
  lm.embed %ids, @e into %same : memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// What was written there alone is what attention waits for.

lm.weight @e : tensor<320x32xf32> from ["e"]
// CHECK-LABEL: func @partial_sums_alone
func.func @partial_sums_alone(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 16384>} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %c4096 = arith.constant 4096 : index
  %c12288 = arith.constant 12288 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  %y = memref.view %workspace[%c2048][%tokens] : memref<?xi8> to memref<?x32xf32>
  %sums = memref.view %workspace[%c4096][] : memref<?xi8> to memref<4352xi8>
  %same = memref.view %workspace[%c4096][%tokens] : memref<?xi8> to memref<?x32xf32>
  %other = memref.view %workspace[%c12288][%tokens] : memref<?xi8> to memref<?x32xf32>
  // CHECK: lm.embed
  // CHECK-NEXT: lm.attention
  // CHECK-NEXT: lm.embed
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.attention
  // CHECK-NEXT: return
  lm.embed %ids, @e into %other : memref<?xi32> into memref<?x32xf32>
  lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 1.0
    into %y : memref<?x32xf32>, memref<?x2x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  lm.embed %ids, @e into %same : memref<?xi32> into memref<?x32xf32>
  lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%sums : memref<4352xi8>)
    into %logits : memref<?x32xf32>, memref<?x2x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// What is done to rows by themselves follows on rows without a barrier. The
// cache is no such rows: a token may read what any other one wrote.

lm.weight @n : tensor<64xf32> from ["n"]
// CHECK-LABEL: func @elementwise
func.func @elementwise(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x1024xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // CHECK-NOT: phase.barrier
  // CHECK: lm.layer_norm
  // CHECK-NEXT: lm.gelu
  // CHECK-NEXT: lm.add
  // CHECK-NEXT: lm.append_kv
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.append_kv
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.attention
  lm.layer_norm %x, @n bias @n epsilon 1.0 into %x : memref<?x64xf32> into memref<?x64xf32>
  lm.gelu %x <exact> into %x : memref<?x64xf32> into memref<?x64xf32>
  lm.add %x, %x into %x : memref<?x64xf32> into memref<?x64xf32>
  lm.append_kv %x, %x to %cache[%c0] slots %slots : memref<?x64xf32>, memref<?x2x1x2x1024xf32>, memref<?xi32>
  lm.append_kv %x, %x to %cache[%c0] slots %slots : memref<?x64xf32>, memref<?x2x1x2x1024xf32>, memref<?xi32>
  lm.attention %x, %cache[%c0] segments %segments blocks %blocks scale 0.125 bidirectional into %logits
    : memref<?x64xf32>, memref<?x2x1x2x1024xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x64xf32>
  return
}
