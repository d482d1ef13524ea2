// RUN: sandwich-opt %s -gemm-to-loops -split-input-file -verify-diagnostics

// Rotation pairs the halves of a head.
lm.weight @w : tensor<68x16xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0 stride 65536
func.func @program(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %blocks: memref<?x?xi32>, %cache: memref<?x2x1x2x272xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x16xf32>
  %table = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x17xf32>
  %y = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x34xf32>
  // expected-error @below {{'gemm.matmul' op epilogue 'rotate_append_kv' needs an even head_dim, got 17}}
  gemm.matmul %x, @w[%c1] epilogue(<rotate_append_kv>) rotary(%table : memref<?x17xf32>) cache(%cache : memref<?x2x1x2x272xf16>)
    positions(%positions : memref<?xi32>) sequences(%sequences : memref<?xi32>) blocks(%blocks : memref<?x?xi32>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_2x32, slice = [8, 544, 16], threads = [1, 1, 1], prefetch = [0, 0]>>)
    into %y : memref<?x16xf32> into memref<?x34xf32>
  return
}

// -----

// The cache has the heads that the weight has.
lm.weight @w : tensor<64x16xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0 stride 65536
func.func @program(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %blocks: memref<?x?xi32>, %cache: memref<?x2x2x2x256xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x16xf32>
  %table = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x16xf32>
  %y = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  // expected-error @below {{'gemm.matmul' op epilogue 'rotate_append_kv' needs a cache of 1 heads of 16 channels, got 'memref<?x2x2x2x256xf16>'}}
  gemm.matmul %x, @w[%c1] epilogue(<rotate_append_kv>) rotary(%table : memref<?x16xf32>) cache(%cache : memref<?x2x2x2x256xf16>)
    positions(%positions : memref<?xi32>) sequences(%sequences : memref<?xi32>) blocks(%blocks : memref<?x?xi32>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_2x32, slice = [8, 512, 16], threads = [1, 1, 1], prefetch = [0, 0]>>)
    into %y : memref<?x16xf32> into memref<?x32xf32>
  return
}

// -----

// And of its size.
lm.weight @w : tensor<64x16xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0 stride 65536
func.func @program(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %blocks: memref<?x?xi32>, %cache: memref<?x2x1x2x128xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x16xf32>
  %table = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x16xf32>
  %y = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  // expected-error @below {{'gemm.matmul' op epilogue 'rotate_append_kv' needs a cache of 1 heads of 16 channels, got 'memref<?x2x1x2x128xf16>'}}
  gemm.matmul %x, @w[%c1] epilogue(<rotate_append_kv>) rotary(%table : memref<?x16xf32>) cache(%cache : memref<?x2x1x2x128xf16>)
    positions(%positions : memref<?xi32>) sequences(%sequences : memref<?xi32>) blocks(%blocks : memref<?x?xi32>)
    schedules(<? : <micro_kernel = X86_AVX2_F32_2x32, slice = [8, 512, 16], threads = [1, 1, 1], prefetch = [0, 0]>>)
    into %y : memref<?x16xf32> into memref<?x32xf32>
  return
}
