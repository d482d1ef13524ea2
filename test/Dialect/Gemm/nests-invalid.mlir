// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -split-input-file -verify-diagnostics

// Threads that share K need memory.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x96xbf16>
  %x = memref.subview %input[0, 0] [%tokens, 64] [1, 1] : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op splits K over threads and needs 262208 bytes for partial sums}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 1, 2], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16, strided<[96, 1]>> into memref<?x64xf32>
  return
}

// -----

// The team must be large enough.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x96xbf16>
  %x = memref.subview %input[0, 0] [%tokens, 64] [1, 1] : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op has a schedule for 3 threads, the program has 2}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 3, 1], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16, strided<[96, 1]>> into memref<?x64xf32>
  return
}

// -----

// The weight must have a place.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2>
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x96xbf16>
  %x = memref.subview %input[0, 0] [%tokens, 64] [1, 1] : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs a weight with a packing and a place: @w}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16, strided<[96, 1]>> into memref<?x64xf32>
  return
}

// -----

// Schedules must have been chosen.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x96xbf16>
  %x = memref.subview %input[0, 0] [%tokens, 64] [1, 1] : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs schedules to become loops}}
  gemm.matmul %x, @w epilogue(<none>)
    into %y : memref<?x64xbf16, strided<[96, 1]>> into memref<?x64xf32>
  return
}

// -----

// The rows of the input lie at a distance known when it compiles.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %input = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x96xbf16>
  %view = memref.subview %input[0, 0] [%tokens, 64] [1, 1] : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
  %x = memref.cast %view : memref<?x64xbf16, strided<[96, 1]>> to memref<?x64xbf16, strided<[?, 1]>>
  %y = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  // expected-error @below {{'gemm.matmul' op needs an input with contiguous rows at a static distance, not 'memref<?x64xbf16, strided<[?, 1]>>'}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 64], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %y : memref<?x64xbf16, strided<[?, 1]>> into memref<?x64xf32>
  return
}

// -----

// A matmul runs as a thread of a phase program.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @plain(%x: memref<?x64xbf16>, %y: memref<?x64xf32>) {
  // expected-error @below {{'gemm.matmul' op must be inside a phase program to become loops}}
  gemm.matmul %x, @w epilogue(<none>) into %y : memref<?x64xbf16> into memref<?x64xf32>
  return
}

// -----

// Tensors must have become buffers.
lm.weight @w : tensor<64x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @tensors(%x: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  // expected-error @below {{'gemm.matmul' op must be in buffer form to become loops}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Sums of one row must fit the scratch memory.
lm.weight @w : tensor<262176x64xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x262176xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 2, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xbf16>
  // expected-error @below {{'gemm.matmul' op cannot be divided: a slice of 1 x 262176 has more than 262144 sums}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 262176, 64], threads = [1, 2, 1], prefetch = [1, 0]>>)
    into %logits : memref<?x64xbf16> into memref<?x262176xf32>
  return
}

// -----

// Every thread has a part.
lm.weight @w : tensor<512x2048xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 0
func.func @program(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %blocks: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x1x1x2x256xf16>, %logits: memref<?x16xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 512, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x2048xbf16>
  %offset = arith.constant 16777216 : index
  %y = memref.view %workspace[%offset][%tokens] : memref<?xi8> to memref<?x512xf32>
  %place = arith.constant 33554432 : index
  %p = memref.view %workspace[%place][] : memref<?xi8> to memref<173xindex>
  // expected-error @below {{'gemm.matmul' op needs 174 parameters for 4 threads, not 173}}
  gemm.matmul %x, @w epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_1x32, slice = [1, 32, 2], threads = [1, 1, 1], prefetch = [0, 0]>>)
    parameters(%p : memref<173xindex>) into %y : memref<?x2048xbf16> into memref<?x512xf32>
  return
}
