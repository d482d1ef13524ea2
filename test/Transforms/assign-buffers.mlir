// RUN: sandwich-opt %s -phase-assign-buffers="threads=2 max-tokens=16 max-logit-rows=4" | FileCheck %s

lm.weight @embedding : tensor<320x64xf32> from ["e"]
lm.weight @norm : tensor<64xf32> layers 2 from ["n{}"]
lm.weight @w : tensor<64x64xf32> layers 2 from ["w{}"]
lm.weight @final : tensor<64xf32> from ["f"]
lm.weight @qkv : tensor<128x64xf32> layers 2 from ["q{}", "k{}", "v{}"]
lm.weight @head : tensor<320x64xf32> from ["h"]

// A phase becomes a program over the fixed arguments. Every tensor has a place
// in the workspace for the largest step, rows one cache line apart from the
// next power of two, and a place is used again when its value is dead:
//
//   table     [0, 16*48*4)          read in every iteration: lives to the end of the loop
//   residual  [3072, +16*80*4)      lives from the embedding to gather_rows
//   norm      [8192, +5120)         dead after the projections ...
//   query     [13312, +5120)
//   attention [8192, +5120)         ... so attention's result takes its place
//   gathered  [0, +4*80*4)          rows of logits: fewer, where the table was
//   final     [1280, +1280)

// CHECK-LABEL: func @decode(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: memref<?xi32>, %[[POSITIONS:[a-z0-9]+]]: memref<?xi32>, %[[SLOTS:[a-z0-9]+]]: memref<?xi32>, %[[SEGMENTS:[a-z0-9]+]]: memref<?x4xi32>,
// CHECK-SAME: %[[BLOCKS:[a-z0-9]+]]: memref<?xi32>, %[[ROWS:[a-z0-9]+]]: memref<?xi32>, %[[CACHE:[a-z0-9]+]]: memref<?x2x1x2x512xf32>, %[[LOGITS:[a-z0-9]+]]: memref<?x320xf32>,
// CHECK-SAME: %[[WEIGHTS:[a-z0-9]+]]: memref<?xi8>, %[[WORKSPACE:[a-z0-9]+]]: memref<?xi8>, %[[THREAD:[a-z0-9]+]]: index, %[[TEAM:[a-z0-9]+]]: !phase.team)
// CHECK-SAME: lm.phase = #lm.phase<decode>
// CHECK-SAME: phase.program = #phase.program<threads = 2, max_tokens = 16, max_logit_rows = 4, workspace_bytes = 18432>
// CHECK-DAG: %[[TOKENS:.*]] = memref.dim %[[IDS]], %{{.*}} : memref<?xi32>
// CHECK-DAG: %[[LOGIT_ROWS:.*]] = memref.dim %[[ROWS]], %{{.*}} : memref<?xi32>
// CHECK: %[[AT:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[TOKENS]]] : memref<?xi8> to memref<?x48xf32>
// CHECK-NEXT: %[[TABLE:.*]] = memref.subview %[[VIEW]][0, 0] [%[[TOKENS]], 32] [1, 1] : memref<?x48xf32> to memref<?x32xf32, strided<[48, 1]>>
// CHECK-NEXT: %[[AT:.*]] = arith.constant 3072 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[TOKENS]]] : memref<?xi8> to memref<?x80xf32>
// CHECK-NEXT: %[[X:.*]] = memref.subview %[[VIEW]]
// CHECK-NEXT: %[[AT:.*]] = arith.constant 8192 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[TOKENS]]]
// CHECK-NEXT: %[[NORM:.*]] = memref.subview %[[VIEW]]
// CHECK-NEXT: %[[AT:.*]] = arith.constant 13312 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[TOKENS]]]
// CHECK-NEXT: %[[QUERY:.*]] = memref.subview %[[VIEW]]
// CHECK-NEXT: %[[AT:.*]] = arith.constant 8192 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[TOKENS]]]
// CHECK-NEXT: %[[ATTENTION:.*]] = memref.subview %[[VIEW]]
// CHECK-NEXT: %[[AT:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[LOGIT_ROWS]]]
// CHECK-NEXT: %[[GATHERED:.*]] = memref.subview %[[VIEW]]
// CHECK-NEXT: %[[AT:.*]] = arith.constant 1280 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%[[LOGIT_ROWS]]]
// CHECK-NEXT: %[[FINAL:.*]] = memref.subview %[[VIEW]]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK: lm.rotary_table %[[POSITIONS]] frequencies {{.*}} into %[[TABLE]]
  %table = lm.rotary_table %positions frequencies [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.29, 0.28, 0.27, 0.26, 0.25, 0.24, 0.23, 0.22] : tensor<?xi32> -> tensor<?x32xf32>
  // CHECK-NEXT: lm.embed %[[IDS]], @embedding into %[[X]]
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // The loop carries nothing: the layer works in place.
  // CHECK-NEXT: scf.for %[[LAYER:.*]] = %{{.*}} to %{{.*}} step %{{[^ ]*}} {
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    // CHECK-NEXT: lm.rms_norm %[[X]], @norm[%[[LAYER]]] epsilon 1.000000e+00 into %[[NORM]]
    %n = lm.rms_norm %h, @norm[%layer] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: gemm.matmul %[[NORM]], @qkv[%[[LAYER]]] epilogue(<rotate_append_kv>) rotary(%[[TABLE]] {{.*}}) cache(%[[CACHE]] {{.*}} slots(%[[SLOTS]] : memref<?xi32>) into %[[QUERY]]
    %q = gemm.matmul %n, @qkv[%layer] epilogue(<rotate_append_kv>) rotary(%table : tensor<?x32xf32>)
      cache(%cache : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%slots : tensor<?xi32>)
      : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: lm.attention %[[QUERY]], %[[CACHE]][%[[LAYER]]] segments %[[SEGMENTS]] blocks %[[BLOCKS]] scale 1.000000e+00 into %[[ATTENTION]]
    %a = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
      : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
    // The residual is added where it lies.
    // CHECK-NEXT: gemm.matmul %[[ATTENTION]], @w[%[[LAYER]]] epilogue(<add_residual>) residual(%[[X]] {{.*}}) into %[[X]]
    %z = gemm.matmul %a, @w[%layer] epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: }
    scf.yield %z : tensor<?x64xf32>
  }
  // CHECK-NEXT: lm.gather_rows %[[X]], %[[ROWS]] into %[[GATHERED]]
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: lm.rms_norm %[[GATHERED]], @final epsilon 1.000000e+00 into %[[FINAL]]
  %f = lm.rms_norm %g, @final epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  // Logits have their own argument.
  // CHECK-NEXT: gemm.matmul %[[FINAL]], @head epilogue(<none>) into %[[LOGITS]]
  %logits = gemm.matmul %f, @head epilogue(<none>) : tensor<?x64xf32> -> tensor<?x320xf32>
  // CHECK-NEXT: return
  return %logits : tensor<?x320xf32>
}

// A residual that is read again later is not overwritten; bf16 rows are padded
// by as many bytes.

// CHECK-LABEL: func @residual_kept(
// CHECK: memref.view {{.*}} to memref<?x80xf32>
// CHECK: %[[X:.*]] = memref.subview
// CHECK: memref.view {{.*}} to memref<?x96xbf16>
// CHECK: %[[N:.*]] = memref.subview {{.*}} : memref<?x96xbf16> to memref<?x64xbf16, strided<[96, 1]>>
// CHECK: %[[Y:.*]] = memref.subview
// CHECK: lm.embed %{{.*}}, @embedding into %[[X]]
// CHECK: lm.rms_norm %[[X]], @final epsilon 1.000000e+00 into %[[N]]
// CHECK: gemm.matmul %[[N]], @square epilogue(<add_residual>) residual(%[[X]] {{.*}} into %[[Y]]
// CHECK: gemm.matmul %[[Y]], @square epilogue(<add_residual>) residual(%[[X]] {{.*}} into %[[X]]
lm.weight @square : tensor<64x64xf32> from ["s"]
func.func @residual_kept(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %n = lm.rms_norm %x, @final epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xbf16>
  %y = gemm.matmul %n, @square epilogue(<add_residual>) residual(%x : tensor<?x64xf32>) : tensor<?x64xbf16> -> tensor<?x64xf32>
  %z = gemm.matmul %y, @square epilogue(<add_residual>) residual(%x : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gather_rows %z, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// Neither is one that the next iteration of a loop reads.

// CHECK-LABEL: func @residual_of_every_layer(
// CHECK: lm.embed %{{.*}}, @embedding into %[[X:.*]] : memref<?xi32> into
// CHECK: lm.embed %{{.*}}, @embedding into %[[E:.*]] : memref<?xi32> into
// CHECK: scf.for
// CHECK: lm.rms_norm %[[X]], {{.*}} into %[[N:[^ ]*]] :
// CHECK-NEXT: gemm.matmul %[[N]], {{.*}} residual(%[[E]] {{.*}} into %[[Y:[^ ]*]] :
// CHECK-NOT: into %[[E]] :
// CHECK: gemm.matmul %[[Y]], {{.*}} residual(%[[X]] {{.*}} into %[[X]] :
func.func @residual_of_every_layer(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %e = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %l = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %a, @norm[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %y = gemm.matmul %n, @w[%i] epilogue(<add_residual>) residual(%e : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %y, @w[%i] epilogue(<add_residual>) residual(%a : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %l, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// Attention that splits contexts has memory for the parts of as many segments as
// its schedules serve, in the largest step: 3 for each of 4 segments, more than 5
// for one, of 2 heads with 32 sums and two numbers each. It lives for the operation
// alone: what comes after it takes its place.
//
//   residual  [0, +16*80*4)
//   query     [5120, +5120)
//   sums      [10240, +12*2*34*4 = 3264)
//   attention [13504, +5120)
//   later     [5120, +5120), [10240, ...)

// CHECK-LABEL: func @split_attention(
// CHECK-SAME: %[[WORKSPACE:[a-z0-9]+]]: memref<?xi8>, %{{[a-z0-9]+}}: index, %{{[a-z0-9]+}}: !phase.team)
// CHECK-SAME: workspace_bytes = 18624>
// CHECK: %[[AT:.*]] = arith.constant 10240 : index
// CHECK-NEXT: %[[SUMS:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][] : memref<?xi8> to memref<3264xi8>
// CHECK-NEXT: %{{.*}} = arith.constant 13504 : index
// CHECK: %{{.*}} = arith.constant 5120 : index
// CHECK: %[[AT:.*]] = arith.constant 10240 : index
// CHECK-NEXT: %[[VIEW:.*]] = memref.view %[[WORKSPACE]][%[[AT]]][%{{.*}}] : memref<?xi8> to memref<?x80xf32>
// CHECK-NEXT: %[[AFTER:.*]] = memref.subview %[[VIEW]]
// CHECK: lm.attention {{.*}} partial_sums(%[[SUMS]] : memref<3264xi8>) into
// CHECK-NOT: %[[SUMS]]
// CHECK: lm.rms_norm {{.*}} into %[[AFTER]] :
func.func @split_attention(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %l = scf.for %i = %c0 to %c2 step %c1 iter_args(%r = %x) -> (tensor<?x64xf32>) {
    %q = lm.rms_norm %r, @norm[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %a = lm.attention %q, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[1, ?] : <decode = [2, 1, 1], split = 5, prefill = [1, 1, 1]>,
                 [4, ?] : <decode = [2, 1, 1], split = 3, prefill = [1, 1, 1]>,
                 [?, ?] : <decode = [2, 1, 1], split = 1, prefill = [1, 1, 1]>>)
      : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
    %n = lm.rms_norm %a, @norm[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %m = lm.rms_norm %n, @norm[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %m, @w[%i] epilogue(<add_residual>) residual(%r : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %l, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// No step has more segments than tokens: 16 of them in 2 parts.

// CHECK-LABEL: func @split_all(
// CHECK: memref.view %{{.*}}[%{{.*}}][] : memref<?xi8> to memref<8704xi8>
func.func @split_all(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %a = lm.attention %x, %cache[%c0] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [2, 1, 1], split = 2, prefill = [1, 1, 1]>>)
    : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %a, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// What else is said of a phase, its arguments and its loops stays.

// CHECK-LABEL: func private @attributes(
// CHECK-SAME: memref<?xi32> {test.ids}, %{{[a-z0-9]*}}: memref<?xi32>,
// CHECK-SAME: memref<?x2x1x2x512xf32> {test.cache},
// CHECK-SAME: attributes {lm.phase = #lm.phase<decode>, phase.program = {{.*}}, test.function}
// CHECK: scf.for unsigned
// CHECK: } {test.loop}
func.func private @attributes(%ids: tensor<?xi32> {test.ids}, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32> {test.cache}) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>, test.function} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %l = scf.for unsigned %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %a, @norm[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %n, @w[%i] epilogue(<add_residual>) residual(%a : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  } {test.loop}
  %g = lm.gather_rows %l, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// Functions that are no phase stay as they are.

// CHECK-LABEL: func @other(%{{.*}}: tensor<?xi32>) -> tensor<?xi32>
func.func @other(%x: tensor<?xi32>) -> tensor<?xi32> {
  return %x : tensor<?xi32>
}
