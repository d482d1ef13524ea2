// RUN: sandwich-opt %s -lm-partition=ranks=4 -split-input-file -verify-diagnostics

// A rank has whole heads.
// expected-error @below {{'func.func' op cannot be divided: 4 ranks do not divide 6 query heads; 1, 2, 3 and 6 are possible}}
func.func @heads(%q: tensor<?x96xf32>, %cache: !lm.kv_cache<layers = 2, heads = 6, head_dim = 16, f32>, %layer: index,
    %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) attributes {lm.phase = #lm.phase<decode>} {
  %a = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x96xf32>, !lm.kv_cache<layers = 2, heads = 6, head_dim = 16, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x96xf32>
  return
}

// -----

// And whole KV heads.
// expected-error @below {{'func.func' op cannot be divided: 4 ranks do not divide 2 KV heads; 1 and 2 are possible}}
func.func @kv_heads(%q: tensor<?x64xf32>, %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>, %layer: index,
    %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) attributes {lm.phase = #lm.phase<decode>} {
  %a = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

// Also those of a cache that nothing reads.
// expected-error @below {{'func.func' op cannot be divided: 4 ranks do not divide 2 KV heads; 1 and 2 are possible}}
func.func @unused_cache(%x: tensor<?x64xf32>, %cache: !lm.kv_cache<layers = 2, heads = 2, head_dim = 16, f32>) attributes {lm.phase = #lm.phase<decode>} {
  return
}

// -----

// expected-error @below {{'func.func' op cannot be divided: 4 ranks do not divide 98 intermediate features; 1, 2, 7, 14 and 49 are possible}}
func.func @intermediate(%x: tensor<?x98xf32>) attributes {lm.phase = #lm.phase<decode>} {
  %s = lm.silu_mul %x, %x : tensor<?x98xf32>
  return
}

// -----

lm.weight @head : tensor<321x64xf32> from ["head"]
// expected-error @below {{'func.func' op cannot be divided: 4 ranks do not divide 321 vocabulary entries; 1 and 3 are possible}}
func.func @vocabulary(%x: tensor<?x64xf32>) -> tensor<?x321xf32> attributes {lm.phase = #lm.phase<decode>} {
  %l = lm.linear %x, @head : tensor<?x64xf32> -> tensor<?x321xf32>
  return %l : tensor<?x321xf32>
}

// -----

// What is divided by channels must come from a weight that can be.
func.func @origin(%x: tensor<?x64xf32>) attributes {lm.phase = #lm.phase<decode>} {
  // expected-error @below {{'lm.silu_mul' op cannot be divided: what it reads must come from linear layers}}
  %s = lm.silu_mul %x, %x : tensor<?x64xf32>
  return
}

// -----

// A norm of rows needs all of their channels.
lm.weight @gate : tensor<64x64xf32> from ["gate"]
lm.weight @norm : tensor<64xf32> from ["norm"]
func.func @norm_of_part(%x: tensor<?x64xf32>) attributes {lm.phase = #lm.phase<decode>} {
  %g = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.rms_norm' op cannot be divided: it needs all channels of a value of which each rank has a part}}
  %n = lm.rms_norm %g, @norm epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  %s = lm.silu_mul %n, %n : tensor<?x64xf32>
  return
}

// -----

// A layer cannot be divided on both sides.
lm.weight @gate : tensor<64x64xf32> from ["gate"]
func.func @both(%x: tensor<?x64xf32>) attributes {lm.phase = #lm.phase<decode>} {
  %g = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  %s = lm.silu_mul %g, %g : tensor<?x64xf32>
  // expected-error @below {{'lm.linear' op cannot be divided: its input is divided by channels, and so is its result}}
  %h = lm.linear %s, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  %t = lm.silu_mul %h, %h : tensor<?x64xf32>
  return
}

// -----

// Which rows of several sources a rank would have is not known.
// expected-error @below {{'lm.weight' op cannot be divided by rows: it has several sources}}
lm.weight @gate : tensor<64x64xf32> from ["a", "b"]
func.func @sources(%x: tensor<?x64xf32>) attributes {lm.phase = #lm.phase<decode>} {
  %g = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  %s = lm.silu_mul %g, %g : tensor<?x64xf32>
  return
}

// -----

// expected-error @below {{'lm.weight' op is a shard: the model is divided already}}
lm.weight @gate : tensor<64x64xf32> from ["a"] shard <rows, ranks = 2>

// -----

// A rank cannot add what it has of some channels to its part of all of them.
lm.weight @gate : tensor<64x64xf32> from ["gate"]
lm.weight @down : tensor<64x64xf32> from ["down"]
func.func @residual(%x: tensor<?x64xf32>) attributes {lm.phase = #lm.phase<decode>} {
  %g = lm.linear %x, @gate : tensor<?x64xf32> -> tensor<?x64xf32>
  %s = lm.silu_mul %g, %g : tensor<?x64xf32>
  %d = lm.linear %s, @down : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.add' op cannot be divided: it needs all channels of a value of which each rank has a part}}
  %r = lm.add %d, %s : tensor<?x64xf32>
  return
}

// -----

// What nothing leads to can be made from itself.
// expected-error @below {{'func.func' op cannot be divided: it is not one block}}
func.func @unreachable(%x: tensor<?x64xf32>, %table: tensor<?x16xf32>, %cache: !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, f32>,
    %layer: index, %s: tensor<?x4xi32>, %i: tensor<?xi32>) attributes {lm.phase = #lm.phase<decode>} {
  return
^bb1:
  %q = lm.rotate %r, %table : tensor<?x64xf32>, tensor<?x16xf32>
  %r = lm.rotate %q, %table : tensor<?x64xf32>, tensor<?x16xf32>
  %a = lm.attention %r, %cache[%layer] segments %s blocks %i scale 1.0 : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  cf.br ^bb1
}
