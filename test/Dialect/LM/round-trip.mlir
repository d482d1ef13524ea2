// RUN: sandwich-opt %s --verify-roundtrip | FileCheck %s

// The whole model IR of a one-matmul model, in tensor form.

// CHECK: lm.weight @embedding : tensor<320x64xbf16> from ["model.embed_tokens.weight"]
lm.weight @embedding : tensor<320x64xbf16> from ["model.embed_tokens.weight"]
// CHECK: lm.weight @norm : tensor<64xf32> layers 2 from ["layers.{}.norm"]
lm.weight @norm : tensor<64xf32> layers 2 from ["layers.{}.norm"]
// CHECK: lm.weight @qkv : tensor<128x64xbf16> layers 2 from ["layers.{}.q", "layers.{}.kv"]
lm.weight @qkv : tensor<128x64xbf16> layers 2 from ["layers.{}.q", "layers.{}.kv"]
// CHECK: lm.weight @gate_up : tensor<128x64xbf16> layers 2 from ["layers.{}.gate", "layers.{}.up"]
// CHECK-SAME: interleave 32 packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 4096 stride 16384
lm.weight @gate_up : tensor<128x64xbf16> layers 2 from ["layers.{}.gate", "layers.{}.up"]
  interleave 32 packing #gemm.packing<panel = 32, tile = 32, k_step = 2, k_pack = 2> at 4096 stride 16384

// CHECK-LABEL: func @decode
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>,
                  %slots: tensor<?xi32>, %segments: tensor<?x4xi32>,
                  %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
                  %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>,
                  %layer: index) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  // CHECK: lm.embed %{{.*}}, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.rotary_table %{{.*}} frequencies [1.000000e+00, 5.000000e-01] : tensor<?xi32> -> tensor<?x4xf32>
  %t = lm.rotary_table %positions frequencies [1.0, 0.5] : tensor<?xi32> -> tensor<?x4xf32>
  // CHECK: lm.rms_norm %{{.*}}, @norm[%{{.*}}] epsilon 9.99999974E-6 : tensor<?x64xf32> -> tensor<?x64xbf16>
  %n = lm.rms_norm %x, @norm[%layer] epsilon 1.0e-05 : tensor<?x64xf32> -> tensor<?x64xbf16>
  // CHECK: lm.linear %{{.*}}, @qkv[%{{.*}}] : tensor<?x64xf32> -> tensor<?x128xf32>
  %y = lm.linear %x, @qkv[%layer] : tensor<?x64xf32> -> tensor<?x128xf32>
  // CHECK: lm.rotate %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x4xf32>
  %r = lm.rotate %x, %t : tensor<?x64xf32>, tensor<?x4xf32>
  %k = lm.embed %ids, @kv : tensor<?xi32> -> tensor<?x32xf32>
  // CHECK: lm.append_kv %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}}] slots %{{.*}} : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?xi32>
  lm.append_kv %k, %k to %cache[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?xi32>
  // CHECK: lm.attention %{{.*}}, %{{.*}}[%{{.*}}] segments %{{.*}} blocks %{{.*}} scale 1.250000e-01 : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  %a = lm.attention %r, %cache[%layer] segments %segments blocks %blocks scale 0.125
    : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.silu_mul
  %s = lm.silu_mul %a, %x : tensor<?x64xf32>
  // CHECK: lm.layer_norm %{{.*}}, @norm bias @norm[%{{.*}}] epsilon 9.99999974E-6 : tensor<?x64xf32>{{$}}
  %ln = lm.layer_norm %x, @norm bias @norm[%layer] epsilon 1.0e-05 : tensor<?x64xf32>
  // CHECK: lm.gelu %{{.*}} <exact> : tensor<?x64xf32> -> tensor<?x64xbf16>
  %g0 = lm.gelu %ln <exact> : tensor<?x64xf32> -> tensor<?x64xbf16>
  // CHECK: lm.gelu %{{.*}} <tanh> : tensor<?x64xf32>{{$}}
  %g1 = lm.gelu %ln <tanh> : tensor<?x64xf32>
  // CHECK: lm.tanh %{{.*}} : tensor<?x64xf32>{{$}}
  %th = lm.tanh %ln : tensor<?x64xf32>
  // CHECK: lm.l2_normalize %{{.*}} : tensor<?x64xf32>{{$}}
  %l2 = lm.l2_normalize %th : tensor<?x64xf32>
  // CHECK: lm.pool %{{.*}}, %{{.*}} <mean> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  %p0 = lm.pool %l2, %segments <mean> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  // CHECK: lm.pool %{{.*}}, %{{.*}} <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xbf16>
  %p1 = lm.pool %l2, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xbf16>
  // CHECK: lm.pool %{{.*}}, %{{.*}} <last>
  %p2 = lm.pool %l2, %segments <last> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  // CHECK: lm.embed %{{.*}}, @embedding of <positions> offset 2 : tensor<?xi32> -> tensor<?x64xf32>
  %e0 = lm.embed %positions, @embedding of <positions> offset 2 : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.embed %{{.*}}, @embedding of <token_types> : tensor<?xi32> -> tensor<?x64xf32>
  %e1 = lm.embed %ids, @embedding of <token_types> : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.attention {{.*}} scale 1.250000e-01 bidirectional : tensor<?x64xf32>
  %b = lm.attention %r, %cache[%layer] segments %segments blocks %blocks scale 0.125 bidirectional
    : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK: lm.add
  %z = lm.add %s, %x : tensor<?x64xf32>
  // CHECK: lm.gather_rows %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %z, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

lm.weight @kv : tensor<320x32xbf16> from ["kv"]

// Buffer form.

// CHECK-LABEL: func @buffers
func.func @buffers(%x: memref<?x64xf32>, %y: memref<?x64xbf16, strided<[96, 1]>>, %layer: index) {
  // CHECK: lm.rms_norm %{{.*}}, @norm[%{{.*}}] epsilon 9.99999974E-6 into %{{.*}} : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  lm.rms_norm %x, @norm[%layer] epsilon 1.0e-05 into %y : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  // CHECK: lm.layer_norm %{{.*}}, @norm bias @norm[%{{.*}}] epsilon 9.99999974E-6 into %{{.*}} : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  lm.layer_norm %x, @norm bias @norm[%layer] epsilon 1.0e-05 into %y : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  // CHECK: lm.gelu %{{.*}} <tanh> into %{{.*}} : memref<?x64xf32> into memref<?x64xf32>
  lm.gelu %x <tanh> into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK: lm.tanh %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xf32>
  lm.tanh %x into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK: lm.l2_normalize %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  lm.l2_normalize %x into %y : memref<?x64xf32> into memref<?x64xbf16, strided<[96, 1]>>
  return
}

// CHECK-LABEL: func @pool_buffers
func.func @pool_buffers(%x: memref<?x64xf32>, %segments: memref<?x4xi32>, %y: memref<?x64xf32>) {
  // CHECK: lm.pool %{{.*}}, %{{.*}} <last> into %{{.*}} : memref<?x64xf32>, memref<?x4xi32> into memref<?x64xf32>
  lm.pool %x, %segments <last> into %y : memref<?x64xf32>, memref<?x4xi32> into memref<?x64xf32>
  return
}

// What a model that encodes is made of.

// CHECK-LABEL: func private @embed
// CHECK-SAME: lm.phase = #lm.phase<embed>
func.func private @embed() attributes {lm.phase = #lm.phase<embed>}
// CHECK: lm.phase = #lm.phase<embed_tokens>
func.func private @embed_tokens() attributes {lm.phase = #lm.phase<embed_tokens>}
// CHECK: lm.phase = #lm.phase<classify>
func.func private @classify() attributes {lm.phase = #lm.phase<classify>}

// A cache of each element type, as a value and as its buffer.

// CHECK-LABEL: func @caches
func.func @caches(%q: tensor<?x32xf32>, %layer: index, %slots: tensor<?xi32>,
    // CHECK-SAME: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>
    %f32: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>,
    // CHECK-SAME: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, bf16>
    %bf16: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, bf16>,
    // CHECK-SAME: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f16>
    %f16: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f16>,
    // CHECK-SAME: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, i8>
    %i8: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, i8>) {
  // CHECK: lm.append_kv {{.*}}, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, bf16>,
  lm.append_kv %q, %q to %bf16[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, bf16>, tensor<?xi32>
  return
}

// A buffer of i8 has 16 scales of 4 bytes behind the channels of 16 tokens.

// CHECK-LABEL: func @integer_cache_buffer
func.func @integer_cache_buffer(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x576xi8>, %layer: index,
                                %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %y: memref<?x32xf32>) {
  // CHECK: lm.attention {{.*}} : memref<?x32xf32>, memref<?x1x1x2x576xi8>, memref<?x4xi32>, memref<?xi32> into
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 0.125 into %y
    : memref<?x32xf32>, memref<?x1x1x2x576xi8>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// CHECK-LABEL: func @cache_buffer
func.func @cache_buffer(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xbf16>, %layer: index,
                        %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %y: memref<?x32xf32>) {
  // CHECK: lm.attention {{.*}} : memref<?x32xf32>, memref<?x1x1x2x512xbf16>, memref<?x4xi32>, memref<?xi32> into
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 0.125 into %y
    : memref<?x32xf32>, memref<?x1x1x2x512xbf16>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// How attention runs: a table from steps to schedules, or one schedule. `?` is what
// the largest number says.

// CHECK-LABEL: func private @attention_schedule()
// CHECK-SAME: test.schedule = #lm.attention_schedule<decode = [4, 2, 2], split = 1024, prefill = [16, 4, 64]>
func.func private @attention_schedule()
  attributes {test.schedule = #lm.attention_schedule<decode = [4, 2, 2], split = 1024, prefill = [16, 4, 64]>}
// What is not said is not printed: one tile at a time, which FMA multiplies.
// CHECK-LABEL: func private @attention_tiles()
// CHECK-SAME: test.both = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [6, 4, 8], tiles = 64, instructions = X86_AVX512_BF16>
// CHECK-SAME: test.instructions = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [6, 2, 2], instructions = X86_AVX512_BF16>
// CHECK-SAME: test.one = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>
// CHECK-SAME: test.tiles = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 2>
func.func private @attention_tiles()
  attributes {
    test.both = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [6, 4, 8], tiles = 64, instructions = X86_AVX512_BF16>,
    test.instructions = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [6, 2, 2], instructions = X86_AVX512_BF16>,
    test.one = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 1>,
    test.tiles = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 2>}

// CHECK-LABEL: func private @attention_table()
// CHECK-SAME: test.table = #lm.attention_table<[1, 128] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, 9] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>
func.func private @attention_table()
  attributes {test.table = #lm.attention_table<
    [1, 128] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>,
    [9223372036854775807, 9] : #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>,
    [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// CHECK-LABEL: func @schedules
func.func @schedules(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index,
                     %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  // Values need no memory for what is split.
  // CHECK: scale 1.000000e+00 schedules(<[2, ?] : <decode = [1, 2, 4], split = 3, prefill = [2, 1, 8]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>) : tensor<?x32xf32>,
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[2, ?] : <decode = [1, 2, 4], split = 3, prefill = [2, 1, 8]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>)
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK-LABEL: func @partial_sums
func.func @partial_sums(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xbf16>, %layer: index,
                        %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %sums: memref<1024xi8>) {
  // CHECK: schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%{{.*}} : memref<1024xi8>) into %{{.*}} : memref<?x32xf32>,
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(#lm.attention_table<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>)
    partial_sums(%sums : memref<1024xi8>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xbf16>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// Frequencies keep every bit.

// CHECK-LABEL: func @frequencies
func.func @frequencies(%positions: tensor<?xi32>) -> tensor<?x8xf32> {
  // CHECK: lm.rotary_table %{{.*}} frequencies [0.316227764, 0.316227794, 1.17549435E-38, 0.000000e+00]
  %t = lm.rotary_table %positions frequencies [0.316227764, 0.316227794, 1.17549435E-38, 0.0] : tensor<?xi32> -> tensor<?x8xf32>
  return %t : tensor<?x8xf32>
}

// What ranks have and do together.

// CHECK: lm.weight @rows : tensor<32x64xf32> from ["rows"] shard <rows, ranks = 2>
lm.weight @rows : tensor<32x64xf32> from ["rows"] shard <rows, ranks = 2>
// CHECK: lm.weight @columns : tensor<32x64xf32> layers 2 from ["columns.{}"] shard <columns, ranks = 64> at 0 stride 8192
lm.weight @columns : tensor<32x64xf32> layers 2 from ["columns.{}"] shard #lm.shard<columns, ranks = 64> at 0 stride 8192
// CHECK: lm.weight @first : tensor<32xf32> from ["first"] shard <first, ranks = 2>
lm.weight @first : tensor<32xf32> from ["first"] shard <first, ranks = 2>

// CHECK-LABEL: func @ranks
func.func @ranks(%x: tensor<?x64xf32>, %y: memref<?x64xf32>, %whole: memref<?x128xf32>) -> tensor<?x192xf32> {
  // CHECK-NEXT: lm.deal_rows %{{.*}} among 3 : tensor<?x64xf32>
  %own = lm.deal_rows %x among 3 : tensor<?x64xf32>
  // CHECK-NEXT: lm.all_reduce %{{.*}} : tensor<?x64xf32> -> tensor<?x64xf32>
  %sum = lm.all_reduce %own : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: lm.all_gather %{{.*}} : tensor<?x64xf32> -> tensor<?x192xf32>
  %all = lm.all_gather %sum : tensor<?x64xf32> -> tensor<?x192xf32>
  // CHECK-NEXT: lm.all_reduce %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xf32>
  lm.all_reduce %y into %y : memref<?x64xf32> into memref<?x64xf32>
  // CHECK-NEXT: lm.all_gather %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x128xf32>
  lm.all_gather %y into %whole : memref<?x64xf32> into memref<?x128xf32>
  return %all : tensor<?x192xf32>
}

// What fuses into matmuls has a buffer form as well, and writes types once where
// they are the same.

// CHECK-LABEL: func @elementwise_buffers
func.func @elementwise_buffers(%x: memref<?x64xf32>, %wide: memref<?x64xf32, strided<[80, 1]>>, %n: memref<?x64xbf16>, %t: memref<?x32xf32>,
    %cache: memref<?x1x2x2x512xf32>, %layer: index, %slots: memref<?xi32>, %padded: memref<?x64xf32, strided<[96, 1]>>, %rounded: memref<?x64xbf16>) {
  // CHECK-NEXT: lm.add %{{.*}}, %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xf32>
  lm.add %x, %x into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK-NEXT: lm.add %{{.*}}, %{{.*}} into %{{.*}} : memref<?x64xf32>, memref<?x64xf32, strided<[80, 1]>> into memref<?x64xbf16>
  lm.add %x, %wide into %n : memref<?x64xf32>, memref<?x64xf32, strided<[80, 1]>> into memref<?x64xbf16>
  // CHECK-NEXT: lm.silu_mul %{{.*}}, %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xbf16>
  lm.silu_mul %x, %x into %n : memref<?x64xf32> into memref<?x64xbf16>
  // CHECK-NEXT: lm.rotate %{{.*}}, %{{.*}} into %{{.*}} : memref<?x64xf32>, memref<?x32xf32> into memref<?x64xf32>
  lm.rotate %x, %t into %x : memref<?x64xf32>, memref<?x32xf32> into memref<?x64xf32>
  // CHECK-NEXT: lm.deal_rows %{{.*}} among 2 into %{{.*}} : memref<?x64xf32> into memref<?x64xf32>
  lm.deal_rows %x among 2 into %x : memref<?x64xf32> into memref<?x64xf32>
  // CHECK-NEXT: lm.append_kv %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}}] slots %{{.*}} : memref<?x64xf32>, memref<?x1x2x2x512xf32>, memref<?xi32>
  lm.append_kv %x, %x to %cache[%layer] slots %slots : memref<?x64xf32>, memref<?x1x2x2x512xf32>, memref<?xi32>
  // Keys that lie elsewhere than values.
  // CHECK-NEXT: lm.append_kv %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}}] slots %{{.*}} : memref<?x64xf32, strided<[96, 1]>>, memref<?x64xf32>, memref<?x1x2x2x512xf32>, memref<?xi32>
  lm.append_kv %padded, %x to %cache[%layer] slots %slots : memref<?x64xf32, strided<[96, 1]>>, memref<?x64xf32>, memref<?x1x2x2x512xf32>, memref<?xi32>
  // CHECK-NEXT: lm.round %{{.*}} into %{{.*}} : memref<?x64xf32> into memref<?x64xbf16>
  lm.round %x into %rounded : memref<?x64xf32> into memref<?x64xbf16>
  return
}

// Results are rounded where they are made.

// CHECK-LABEL: func @narrow_results
func.func @narrow_results(%x: tensor<?x64xf32>) -> (tensor<?x64xbf16>, tensor<?x64xbf16>) {
  // CHECK: lm.silu_mul %{{.*}}, %{{.*}} : tensor<?x64xf32> -> tensor<?x64xbf16>
  %s = lm.silu_mul %x, %x : tensor<?x64xf32> -> tensor<?x64xbf16>
  // CHECK: lm.add %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x64xbf16> -> tensor<?x64xbf16>
  %a = lm.add %x, %s : tensor<?x64xf32>, tensor<?x64xbf16> -> tensor<?x64xbf16>
  return %s, %a : tensor<?x64xbf16>, tensor<?x64xbf16>
}

// How tokens are drawn stands beside the phases.

// CHECK: lm.sampling 320 {lm.kernel = #lm.kernel<@kernels::@sampling>}
lm.sampling 320 {lm.kernel = #lm.kernel<@kernels::@sampling>}
