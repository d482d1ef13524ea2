// RUN: sandwich-opt %s -lm-verify-phases -split-input-file -o %t
// RUN: sandwich-opt %s -split-input-file | diff - %t

// A phase of one of two ranks, with its sum and its dealt residual.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
lm.weight @w : tensor<64x64xf32> layers 2 from ["w{}"] shard <columns, ranks = 2>
lm.weight @b : tensor<64xf32> layers 2 from ["b{}"] shard <first, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %i = %c0 to %c2 step %c1 iter_args(%carried = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %carried, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %part = gemm.matmul %n, @w bias @b[%i] epilogue(<add_residual>) residual(%carried : tensor<?x64xf32> among 2) : tensor<?x64xf32> -> tensor<?x64xf32>
    %sum = lm.all_reduce %part : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %sum : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// Programs may hold what they like, as the code of kernels that are tested does.
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %p = llvm.mlir.zero : !llvm.ptr
  return
}

// -----

// Tiles of attention share their memory with those of the same size.
lm.weight @e : tensor<64x32768xf32> from ["e"]
lm.weight @w : tensor<64x32768xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x32768xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[1, ?] : <decode = [2, 1, 1], split = 1, prefill = [1, 1, 1]>,
                 [2, ?] : <decode = [2, 1, 1], split = 2, prefill = [16, 1, 64]>,
                 [?, ?] : <decode = [2, 2, 64], split = 1, prefill = [1, 1, 1]>>)
      : tensor<?x32768xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32768xf32>
  }
  %l = lm.linear %x, @w : tensor<?x32768xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}
