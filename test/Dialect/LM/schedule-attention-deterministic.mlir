// RUN: sandwich-opt %s -split-input-file -verify-diagnostics -lm-schedule-attention="target=x86-64-avx512 threads=2" | FileCheck %s

// Nothing is split, and both kinds of tiles rescale after the same positions.

// CHECK-LABEL: func @untuned
// CHECK: schedules(<[?, ?] : <decode = [1, 8, 8], split = 1, prefill = [12, 2, 8]>>) :
module attributes {lm.deterministic} {
func.func @untuned(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
}

// -----

// What is given must do so, too.

module attributes {lm.deterministic} {
func.func @split(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.attention' op must be deterministic, but entry 0 splits contexts}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 8, 8], split = 2, prefill = [12, 2, 8]>>)
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
}

// -----

// The chunks of one phase are those of the other.

module attributes {lm.deterministic} {
func.func @chunks(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %x = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 8, 8], split = 1, prefill = [12, 2, 8]>>)
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  // expected-error @below {{'lm.attention' op must be deterministic, but entry 0 has other chunks than of 8 blocks}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 8, 16], split = 1, prefill = [12, 2, 16]>>)
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %x, %y : tensor<?x32xf32>, tensor<?x32xf32>
}
}
