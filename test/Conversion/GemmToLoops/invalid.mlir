// RUN: sandwich-opt %s -gemm-to-loops -split-input-file -verify-diagnostics

// The passes have an order.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op must have become nests; run gemm-dispatch, gemm-split-k and gemm-polymerize first}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 1], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// A bias lies in the memory of a program.
lm.weight @b : tensor<64xf32> from ["b"] at 0
func.func @plain(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op must be inside a phase program to read @b}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) bias @b epilogue(<none>) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Who adds a residual in turn must be a rank.
func.func @plain(%s: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'gemm.epilogue' op must be inside a phase program to know its rank}}
  gemm.epilogue %s at(%i, %i) size(%i, %i) epilogue(<add_residual>) residual(%y : memref<?x64xf32> among 2) into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Of the group that has the weights.
lm.weight @w : tensor<64x32xf32> from ["w"] shard <columns, ranks = 2> at 0
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xf32>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  // expected-error @below {{'gemm.epilogue' op deals a residual among 4 ranks, the weights are for 2}}
  gemm.epilogue %logits at(%thread, %thread) size(%thread, %thread) epilogue(<add_residual>) residual(%logits : memref<?x64xf32> among 4) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
