// RUN: sandwich-opt %s -lm-to-gemm -split-input-file | FileCheck %s

// Query, key and value projections, the rotation of the first two and the write
// to the cache are one matmul over one weight. Both phases use the same one,
// and the parts are gone.

// CHECK-NOT: lm.weight @layers.self_attn.q_proj
// CHECK: lm.weight @layers.self_attn.qkv_proj : tensor<128x64xbf16> layers 2 from ["layers.{}.q_proj", "layers.{}.k_proj", "layers.{}.v_proj"]{{$}}
// CHECK-NOT: lm.weight
lm.weight @layers.self_attn.q_proj : tensor<64x64xbf16> layers 2 from ["layers.{}.q_proj"]
lm.weight @layers.self_attn.k_proj : tensor<32x64xbf16> layers 2 from ["layers.{}.k_proj"]
lm.weight @layers.self_attn.v_proj : tensor<32x64xbf16> layers 2 from ["layers.{}.v_proj"]

// CHECK-LABEL: func @prefill(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>, %[[T:[a-z0-9]+]]: tensor<?x16xf32>, %[[S:[a-z0-9]+]]: tensor<?xi32>, %[[C:[a-z0-9]+]]: !lm.kv_cache<{{.*}}>, %[[L:[a-z0-9]+]]: index)
func.func @prefill(%x: tensor<?x64xf32>, %table: tensor<?x16xf32>, %slots: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f16>, %layer: index) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[Q:.*]] = gemm.matmul %[[X]], @layers.self_attn.qkv_proj[%[[L]]] epilogue(<rotate_append_kv>) rotary(%[[T]] : tensor<?x16xf32>)
  // CHECK-SAME: cache(%[[C]] : !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f16>)
  // CHECK-SAME: slots(%[[S]] : tensor<?xi32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: return %[[Q]]
  %q = lm.linear %x, @layers.self_attn.q_proj[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %x, @layers.self_attn.k_proj[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layers.self_attn.v_proj[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x64xf32>, tensor<?x16xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x16xf32>
  lm.append_kv %rk, %v to %cache[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f16>, tensor<?xi32>
  return %rq : tensor<?x64xf32>
}

// The order in which the projections are written does not matter.

// CHECK-LABEL: func @decode(
func.func @decode(%x: tensor<?x64xf32>, %table: tensor<?x16xf32>, %slots: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f16>, %layer: index) -> tensor<?x64xf32> {
  // CHECK-NEXT: gemm.matmul %{{.*}}, @layers.self_attn.qkv_proj[%{{.*}}] epilogue(<rotate_append_kv>)
  // CHECK-NEXT: return
  %v = lm.linear %x, @layers.self_attn.v_proj[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @layers.self_attn.k_proj[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x16xf32>
  lm.append_kv %rk, %v to %cache[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f16>, tensor<?xi32>
  %q = lm.linear %x, @layers.self_attn.q_proj[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
  %rq = lm.rotate %q, %table : tensor<?x64xf32>, tensor<?x16xf32>
  return %rq : tensor<?x64xf32>
}

// -----

// Biases are fused like the rows of the weights (Qwen2).

// CHECK-DAG: lm.weight @layers.self_attn.qkv_proj : tensor<96x64xf32> layers 2 from ["q{}", "k{}", "v{}"]{{$}}
// CHECK-DAG: lm.weight @layers.self_attn.qkv_proj.bias : tensor<96xf32> layers 2 from ["qb{}", "kb{}", "vb{}"]{{$}}
lm.weight @layers.self_attn.q_proj : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @layers.self_attn.q_proj.bias : tensor<32xf32> layers 2 from ["qb{}"]
lm.weight @layers.self_attn.k_proj : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @layers.self_attn.k_proj.bias : tensor<32xf32> layers 2 from ["kb{}"]
lm.weight @layers.self_attn.v_proj : tensor<32x64xf32> layers 2 from ["v{}"]
lm.weight @layers.self_attn.v_proj.bias : tensor<32xf32> layers 2 from ["vb{}"]

// CHECK-LABEL: func @bias
func.func @bias(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  // CHECK: gemm.matmul %{{.*}}, @layers.self_attn.qkv_proj bias @layers.self_attn.qkv_proj.bias[%{{.*}}] epilogue(<rotate_append_kv>)
  // CHECK-NOT: = lm.
  // CHECK-NOT: lm.append_kv
  %q = lm.linear %x, @layers.self_attn.q_proj bias @layers.self_attn.q_proj.bias[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @layers.self_attn.k_proj bias @layers.self_attn.k_proj.bias[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @layers.self_attn.v_proj bias @layers.self_attn.v_proj.bias[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Norms of query and key heads come along (Qwen3).

lm.weight @q : tensor<64x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
lm.weight @q_norm : tensor<32xf32> layers 2 from ["qn{}"]
lm.weight @k_norm : tensor<32xf32> layers 2 from ["kn{}"]

// CHECK-LABEL: func @norms
func.func @norms(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x64xf32> {
  // CHECK: gemm.matmul %{{.*}}, @q.qkv_proj[%{{.*}}] epilogue(<rotate_append_kv>) {{.*}} query_norm @q_norm key_norm @k_norm epsilon 9.99999997E-7 :
  // CHECK-NOT: = lm.
  // CHECK-NOT: lm.append_kv
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %nq = lm.rms_norm %q, @q_norm[%layer] epsilon 1.0e-06 : tensor<?x64xf32> -> tensor<?x64xf32>
  %nk = lm.rms_norm %k, @k_norm[%layer] epsilon 1.0e-06 : tensor<?x32xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %nq, %table : tensor<?x64xf32>, tensor<?x32xf32>
  %rk = lm.rotate %nk, %table : tensor<?x32xf32>, tensor<?x32xf32>
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x64xf32>
}

// -----

// One projection may serve as query, key and value; it is erased once.

// CHECK: lm.weight @w.qkv_proj : tensor<96x64xf32> layers 2 from ["w{}", "w{}", "w{}"]
lm.weight @w : tensor<32x64xf32> layers 2 from ["w{}"]
// CHECK-LABEL: func @shared
func.func @shared(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  // CHECK: gemm.matmul %{{.*}}, @w.qkv_proj[%{{.*}}] epilogue(<rotate_append_kv>)
  // CHECK-NOT: = lm.
  // CHECK-NOT: lm.append_kv
  %w = lm.linear %x, @w[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %w, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %w, %table : tensor<?x32xf32>, tensor<?x32xf32>
  lm.append_kv %rk, %w to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}
