// RUN: sandwich-opt %s -lm-to-gemm -split-input-file | FileCheck %s

// What fits no epilogue stays an operation of its own, beside matmuls that do
// nothing else to their sums.

// Keys are rotated.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %k, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// In heads of the cache.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x16xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x16xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x16xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// A value is a projection.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.silu_mul %y, %y : tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// So is what is rotated.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.silu_mul %y, %y : tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// There is a query, rotated by the same table.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %other: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %other : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// All three projections read one input.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %z: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %z, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// The query too.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %z: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %q = lm.linear %z, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// The cache's layer is that of the weights.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %other: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%other] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%other] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%other] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Keys and values are of one layer.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %other: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%other] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// All have a bias or none.
lm.weight @q : tensor<32x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["v{}"]
lm.weight @b : tensor<32xf32> layers 2 from ["b{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q bias @b[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Queries and keys are both normalized or neither.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
lm.weight @n : tensor<32xf32> layers 2 from ["n{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %nq = lm.rms_norm %q, @n[%layer] epsilon 1.0 : tensor<?x32xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %nq, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// With one epsilon: the matmul has no second one.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
lm.weight @n : tensor<32xf32> layers 2 from ["n{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %nq = lm.rms_norm %q, @n[%layer] epsilon 1.0 : tensor<?x32xf32> -> tensor<?x32xf32>
  %nk = lm.rms_norm %k, @n[%layer] epsilon 2.0 : tensor<?x32xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %nq, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %nk, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// By the norms of the projections' own layer.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
lm.weight @n : tensor<32xf32> layers 2 from ["n{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index, %other: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %nq = lm.rms_norm %q, @n[%layer] epsilon 1.0 : tensor<?x32xf32> -> tensor<?x32xf32>
  %nk = lm.rms_norm %k, @n[%other] epsilon 1.0 : tensor<?x32xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %nq, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %nk, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Rows of different types are not concatenated.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xbf16> layers 2 from ["{}v"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Nor stacks of different heights.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 3 from ["{}v"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x32xf32>
}

// -----

// Queries are read after the cache is written.
lm.weight @q : tensor<32x64xf32> layers 2 from ["{}q"]
lm.weight @k : tensor<32x64xf32> layers 2 from ["{}k"]
lm.weight @v : tensor<32x64xf32> layers 2 from ["{}v"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x32xf32>, %p: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, %layer: index) -> tensor<?x32xf32> {
  %q = lm.linear %x, @q[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %k = lm.linear %x, @k[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %v = lm.linear %x, @v[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %rq = lm.rotate %q, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %table : tensor<?x32xf32>, tensor<?x32xf32>
  %early = lm.silu_mul %rq, %rq : tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %cache[%layer] slots %p : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?xi32>
  return %early : tensor<?x32xf32>
}

// -----

// Gate and up read one input.
lm.weight @g : tensor<32x64xf32> from ["g"]
lm.weight @u : tensor<32x64xf32> from ["u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %z: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.linear %z, @u : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// Both are projections.
lm.weight @g : tensor<32x64xf32> from ["g"]
lm.weight @u : tensor<32x64xf32> from ["u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.add %y, %y : tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// Without bias.
lm.weight @g : tensor<32x64xf32> from ["g"]
lm.weight @u : tensor<32x64xf32> from ["u"]
lm.weight @b : tensor<32xf32> from ["b"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.linear %x, @u bias @b : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// Of one layer.
lm.weight @g : tensor<32x64xf32> layers 2 from ["{}g"]
lm.weight @u : tensor<32x64xf32> layers 2 from ["{}u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %layer: index, %other: index) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.linear %x, @u[%other] : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// And of one type.
lm.weight @g : tensor<32x64xf32> from ["g"]
lm.weight @u : tensor<32x64xbf16> from ["u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.linear %x, @u : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// Of one tensor each: more would alternate with each other.
lm.weight @g : tensor<32x64xf32> from ["g0", "g1"]
lm.weight @u : tensor<32x64xf32> from ["u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %gate = lm.linear %x, @g : tensor<?x64xf32> -> tensor<?x32xf32>
  %up = lm.linear %x, @u : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu_mul
  %h = lm.silu_mul %gate, %up : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

// -----

// Gate and up of every iteration are not fused into one that is computed once
// before, nor the other way round.
lm.weight @gate : tensor<64x64xf32> from ["g"]
lm.weight @up : tensor<64x64xf32> from ["u"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %a: index, %b: index, %s: index) -> tensor<?x64xf32> {
  %gate = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  %up = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = scf.for %i = %a to %b step %s iter_args(%h = %x) -> tensor<?x64xf32> {
    // CHECK: lm.silu_mul
    %z = lm.silu_mul %gate, %up : tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// Norms of query and key are over heads, not over whole rows.
lm.weight @q : tensor<64x64xf32> layers 2 from ["q{}"]
lm.weight @k : tensor<64x64xf32> layers 2 from ["k{}"]
lm.weight @v : tensor<64x64xf32> layers 2 from ["v{}"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
// CHECK-LABEL: func @f(
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %p: tensor<?xi32>, %i: index, %c: !lm.kv_cache<layers = 2, heads = 2, head_dim = 32, f32>) -> tensor<?x64xf32> {
  %q0 = lm.linear %x, @q[%i] : tensor<?x64xf32> -> tensor<?x64xf32>
  %q = lm.rms_norm %q0, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  %k0 = lm.linear %x, @k[%i] : tensor<?x64xf32> -> tensor<?x64xf32>
  %k = lm.rms_norm %k0, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  %v = lm.linear %x, @v[%i] : tensor<?x64xf32> -> tensor<?x64xf32>
  %rq = lm.rotate %q, %t : tensor<?x64xf32>, tensor<?x32xf32>
  %rk = lm.rotate %k, %t : tensor<?x64xf32>, tensor<?x32xf32>
  // CHECK: lm.append_kv
  lm.append_kv %rk, %v to %c[%i] slots %p : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 32, f32>, tensor<?xi32>
  return %rq : tensor<?x64xf32>
}
