// RUN: sandwich-opt %s -lm-partition=ranks=2 -split-input-file | FileCheck %s
// RUN: sandwich-opt %s -split-input-file > %t.whole
// RUN: sandwich-opt %s -lm-partition=ranks=1 -split-input-file | diff %t.whole -

// The program of one of two ranks: half of the heads, with the rank's rows of
// biases, and half of the intermediate channels; norms and the embedding whole.

// CHECK: lm.weight @embedding : tensor<320x64xf32> from ["embed"]{{$}}
// A tied head is a weight of its own: the embedding must stay whole.
// CHECK-NEXT: lm.weight @embedding.shard : tensor<160x64xf32> from ["embed"] shard <rows, ranks = 2>
lm.weight @embedding : tensor<320x64xf32> from ["embed"]
// CHECK-NEXT: lm.weight @norm : tensor<64xf32> layers 2 from ["norm.{}"]{{$}}
lm.weight @norm : tensor<64xf32> layers 2 from ["norm.{}"]
// CHECK-NEXT: lm.weight @head_norm : tensor<16xf32> layers 2 from ["head_norm.{}"]{{$}}
lm.weight @head_norm : tensor<16xf32> layers 2 from ["head_norm.{}"]
// CHECK-NEXT: lm.weight @q : tensor<32x64xf32> layers 2 from ["q.{}"] shard <rows, ranks = 2>
lm.weight @q : tensor<64x64xf32> layers 2 from ["q.{}"]
// CHECK-NEXT: lm.weight @q.bias : tensor<32xf32> layers 2 from ["q.bias.{}"] shard <rows, ranks = 2>
lm.weight @q.bias : tensor<64xf32> layers 2 from ["q.bias.{}"]
// CHECK-NEXT: lm.weight @k : tensor<16x64xf32> layers 2 from ["k.{}"] shard <rows, ranks = 2>
lm.weight @k : tensor<32x64xf32> layers 2 from ["k.{}"]
// CHECK-NEXT: lm.weight @k.bias : tensor<16xf32> layers 2 from ["k.bias.{}"] shard <rows, ranks = 2>
lm.weight @k.bias : tensor<32xf32> layers 2 from ["k.bias.{}"]
// CHECK-NEXT: lm.weight @v : tensor<16x64xf32> layers 2 from ["v.{}"] shard <rows, ranks = 2>
lm.weight @v : tensor<32x64xf32> layers 2 from ["v.{}"]
// CHECK-NEXT: lm.weight @v.bias : tensor<16xf32> layers 2 from ["v.bias.{}"] shard <rows, ranks = 2>
lm.weight @v.bias : tensor<32xf32> layers 2 from ["v.bias.{}"]
// CHECK-NEXT: lm.weight @o : tensor<64x32xf32> layers 2 from ["o.{}"] shard <columns, ranks = 2>
lm.weight @o : tensor<64x64xf32> layers 2 from ["o.{}"]
// What all ranks add up counts once.
// CHECK-NEXT: lm.weight @o.bias : tensor<64xf32> layers 2 from ["o.bias.{}"] shard <first, ranks = 2>
lm.weight @o.bias : tensor<64xf32> layers 2 from ["o.bias.{}"]
// CHECK-NEXT: lm.weight @gate : tensor<48x64xf32> layers 2 from ["gate.{}"] shard <rows, ranks = 2>
lm.weight @gate : tensor<96x64xf32> layers 2 from ["gate.{}"]
// CHECK-NEXT: lm.weight @up : tensor<48x64xf32> layers 2 from ["up.{}"] shard <rows, ranks = 2>
lm.weight @up : tensor<96x64xf32> layers 2 from ["up.{}"]
// CHECK-NEXT: lm.weight @down : tensor<64x48xf32> layers 2 from ["down.{}"] shard <columns, ranks = 2>
lm.weight @down : tensor<64x96xf32> layers 2 from ["down.{}"]

// CHECK-LABEL: func @decode
// CHECK-SAME: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x320xf32>
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %table = lm.rotary_table %positions frequencies [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3] : tensor<?xi32> -> tensor<?x16xf32>
  // CHECK: lm.embed %{{.*}}, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: scf.for %[[LAYER:.*]] = {{.*}} iter_args(%[[H:.*]] = %{{.*}}) -> (tensor<?x64xf32>)
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    // CHECK-NEXT: %[[N:.*]] = lm.rms_norm %[[H]], @norm[%[[LAYER]]] {{.*}} : tensor<?x64xf32> -> tensor<?x64xf32>
    %n = lm.rms_norm %h, @norm[%layer] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: %[[Q:.*]] = lm.linear %[[N]], @q bias @q.bias[%[[LAYER]]] : tensor<?x64xf32> -> tensor<?x32xf32>
    %q = lm.linear %n, @q bias @q.bias[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: lm.linear %[[N]], @k bias @k.bias[%[[LAYER]]] : tensor<?x64xf32> -> tensor<?x16xf32>
    %k = lm.linear %n, @k bias @k.bias[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
    // CHECK-NEXT: lm.linear %[[N]], @v bias @v.bias[%[[LAYER]]] : tensor<?x64xf32> -> tensor<?x16xf32>
    %v = lm.linear %n, @v bias @v.bias[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
    // Norms of heads are those of all heads.
    // CHECK-NEXT: lm.rms_norm %[[Q]], @head_norm[%[[LAYER]]] {{.*}} : tensor<?x32xf32> -> tensor<?x32xf32>
    %qn = lm.rms_norm %q, @head_norm[%layer] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: lm.rotate {{.*}} : tensor<?x32xf32>, tensor<?x16xf32>
    %qr = lm.rotate %qn, %table : tensor<?x64xf32>, tensor<?x16xf32>
    // CHECK-NEXT: lm.rotate {{.*}} : tensor<?x16xf32>, tensor<?x16xf32>
    %kr = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x16xf32>
    // CHECK-NEXT: lm.append_kv {{.*}} : tensor<?x16xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>
    lm.append_kv %kr, %v to %cache[%layer] slots %slots
      : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>, tensor<?xi32>
    // CHECK-NEXT: %[[A:.*]] = lm.attention {{.*}} -> tensor<?x32xf32>
    %a = lm.attention %qr, %cache[%layer] segments %segments blocks %blocks scale 1.0
      : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
    // CHECK-NEXT: %[[O:.*]] = lm.linear %[[A]], @o bias @o.bias[%[[LAYER]]] : tensor<?x32xf32> -> tensor<?x64xf32>
    %o = lm.linear %a, @o bias @o.bias[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
    // The residual is summed over the ranks as well: each adds its own rows.
    // CHECK-NEXT: %[[OWN:.*]] = lm.deal_rows %[[H]] among 2 : tensor<?x64xf32>
    // CHECK-NEXT: %[[P:.*]] = lm.add %[[OWN]], %[[O]]
    // CHECK-NEXT: %[[X1:.*]] = lm.all_reduce %[[P]] : tensor<?x64xf32> -> tensor<?x64xf32>
    %x1 = lm.add %h, %o : tensor<?x64xf32>
    // CHECK-NEXT: lm.linear %[[X1]], @gate[%[[LAYER]]] : tensor<?x64xf32> -> tensor<?x48xf32>
    %g = lm.linear %x1, @gate[%layer] : tensor<?x64xf32> -> tensor<?x96xf32>
    // CHECK-NEXT: lm.linear %[[X1]], @up[%[[LAYER]]] : tensor<?x64xf32> -> tensor<?x48xf32>
    %u = lm.linear %x1, @up[%layer] : tensor<?x64xf32> -> tensor<?x96xf32>
    // CHECK-NEXT: lm.silu_mul {{.*}} : tensor<?x48xf32>
    %s = lm.silu_mul %g, %u : tensor<?x96xf32>
    // CHECK-NEXT: %[[D:.*]] = lm.linear %{{.*}}, @down[%[[LAYER]]] : tensor<?x48xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: %[[OWN:.*]] = lm.deal_rows %[[X1]] among 2 : tensor<?x64xf32>
    // CHECK-NEXT: %[[P:.*]] = lm.add %[[OWN]], %[[D]]
    // CHECK-NEXT: %[[X2:.*]] = lm.all_reduce %[[P]] : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: scf.yield %[[X2]]
    %d = lm.linear %s, @down[%layer] : tensor<?x96xf32> -> tensor<?x64xf32>
    %x2 = lm.add %x1, %d : tensor<?x64xf32>
    scf.yield %x2 : tensor<?x64xf32>
  }
  %last = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: %[[P:.*]] = lm.linear %{{.*}}, @embedding.shard : tensor<?x64xf32> -> tensor<?x160xf32>
  // CHECK-NEXT: %[[L:.*]] = lm.all_gather %[[P]] : tensor<?x160xf32> -> tensor<?x320xf32>
  // CHECK-NEXT: return %[[L]] : tensor<?x320xf32>
  %l = lm.linear %last, @embedding : tensor<?x64xf32> -> tensor<?x320xf32>
  return %l : tensor<?x320xf32>
}

// -----

// A head of its own is divided where it is. What nobody divides by channels
// every rank computes.

// CHECK: lm.weight @embedding : tensor<320x64xf32> from ["embed"]{{$}}
lm.weight @embedding : tensor<320x64xf32> from ["embed"]
// CHECK-NEXT: lm.weight @mix : tensor<64x64xf32> from ["mix"]{{$}}
lm.weight @mix : tensor<64x64xf32> from ["mix"]
// CHECK-NEXT: lm.weight @head : tensor<160x64xf32> from ["head"] shard <rows, ranks = 2>
lm.weight @head : tensor<320x64xf32> from ["head"]
// CHECK-LABEL: func @prefill
func.func @prefill(%ids: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.linear %{{.*}}, @mix : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: lm.linear %{{.*}}, @head : tensor<?x64xf32> -> tensor<?x160xf32>
  %m = lm.linear %x, @mix : tensor<?x64xf32> -> tensor<?x64xf32>
  %l = lm.linear %m, @head : tensor<?x64xf32> -> tensor<?x320xf32>
  return %l : tensor<?x320xf32>
}

// -----

// Sums that something beside the residual connection needs are those of the
// linear layer alone.

lm.weight @up : tensor<96x64xf32> from ["up"]
lm.weight @down : tensor<64x96xf32> from ["down"]
// CHECK-LABEL: func @used_twice
func.func @used_twice(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
  %u = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x96xf32>
  %s = lm.silu_mul %u, %u : tensor<?x96xf32>
  // CHECK: %[[P:.*]] = lm.linear %{{.*}}, @down
  // CHECK-NEXT: %[[D:.*]] = lm.all_reduce %[[P]]
  // CHECK-NEXT: %[[Y:.*]] = lm.add %{{.*}}, %[[D]]
  // CHECK-NEXT: lm.add %[[D]], %[[Y]]
  %d = lm.linear %s, @down : tensor<?x96xf32> -> tensor<?x64xf32>
  %y = lm.add %x, %d : tensor<?x64xf32>
  %z = lm.add %d, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// A function that is no phase stays as it is.

lm.weight @head : tensor<320x64xf32> from ["head"]
// CHECK-LABEL: func @other
func.func @other(%x: tensor<?x64xf32>) -> tensor<?x320xf32> {
  // CHECK-NEXT: lm.linear %{{.*}}, @head : tensor<?x64xf32> -> tensor<?x320xf32>
  %l = lm.linear %x, @head : tensor<?x64xf32> -> tensor<?x320xf32>
  return %l : tensor<?x320xf32>
}

// -----

// A feed-forward block without a gate; norms of rows are of sums.

// CHECK: lm.weight @norm : tensor<64xf32> from ["norm"]{{$}}
lm.weight @norm : tensor<64xf32> from ["norm"]
// CHECK-NEXT: lm.weight @up : tensor<48x64xf32> from ["up"] shard <rows, ranks = 2>
lm.weight @up : tensor<96x64xf32> from ["up"]
// CHECK-NEXT: lm.weight @down : tensor<64x48xf32> from ["down"] shard <columns, ranks = 2>
lm.weight @down : tensor<64x96xf32> from ["down"]
// CHECK-LABEL: func @gelu
func.func @gelu(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
  // CHECK: %[[U:.*]] = lm.linear %{{.*}}, @up : tensor<?x64xf32> -> tensor<?x48xf32>
  %u = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x96xf32>
  // CHECK-NEXT: %[[G:.*]] = lm.gelu %[[U]] <exact> : tensor<?x48xf32>
  %g = lm.gelu %u <exact> : tensor<?x96xf32>
  // CHECK-NEXT: %[[D:.*]] = lm.linear %[[G]], @down
  %d = lm.linear %g, @down : tensor<?x96xf32> -> tensor<?x64xf32>
  // CHECK: %[[S:.*]] = lm.all_reduce
  %y = lm.add %x, %d : tensor<?x64xf32>
  // CHECK-NEXT: lm.layer_norm %[[S]], @norm bias @norm epsilon {{.*}} : tensor<?x64xf32>
  %n = lm.layer_norm %y, @norm bias @norm epsilon 1.0 : tensor<?x64xf32>
  return %n : tensor<?x64xf32>
}

// -----

// A projection in front of a norm of rows is computed by all ranks.

// CHECK: lm.weight @norm : tensor<64xf32> from ["norm"]{{$}}
lm.weight @norm : tensor<64xf32> from ["norm"]
// CHECK-NEXT: lm.weight @dense : tensor<64x64xf32> from ["dense"]{{$}}
lm.weight @dense : tensor<64x64xf32> from ["dense"]
// CHECK-LABEL: func @transform
func.func @transform(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
  // CHECK-NEXT: lm.linear {{.*}} -> tensor<?x64xf32>
  // CHECK-NEXT: lm.gelu {{.*}} : tensor<?x64xf32>
  // CHECK-NEXT: lm.layer_norm {{.*}} : tensor<?x64xf32>
  // CHECK-NEXT: return
  %d = lm.linear %x, @dense : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gelu %d <tanh> : tensor<?x64xf32>
  %n = lm.layer_norm %g, @norm bias @norm epsilon 1.0 : tensor<?x64xf32>
  return %n : tensor<?x64xf32>
}
