// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// lm.weight (C1): a weight is a vector or a matrix.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<2x64x64xf32> from ["w"]

// -----

// lm.weight (C1): a scalar is no weight.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<f32> from ["w"]

// -----

// lm.weight (C1): its dimensions are known.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<?x64xf32> from ["w"]

// -----

// lm.weight (C1): it is not empty.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<64x0xf32> from ["w"]

// -----

// lm.weight (C1): a dimension that overflows 32 bits is refused.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<2147483648xf32> from ["w"]

// -----

// lm.weight (C1): nor has its type a meaning of somebody else's.
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @w : tensor<64x64xf32, "encoding"> from ["w"]

// -----

// lm.weight: elements are those the artifact stores.
// expected-error @below {{'lm.weight' op attribute 'type' failed to satisfy constraint: type attribute of ranked tensor of 32-bit float or bfloat16 type values}}
lm.weight @w : tensor<64xf16> from ["w"]

// -----

// lm.weight (C2): a weight comes from somewhere.
// expected-error @below {{'lm.weight' op (C2) needs a source}}
lm.weight @w : tensor<64xf32> from []

// -----

// lm.weight (C3): there are layers if they are counted.
// expected-error @below {{'lm.weight' op (C3) layers must be between 1 and 4096}}
lm.weight @w : tensor<64xf32> layers 0 from ["w.{}"]

// -----

// lm.weight (C3): their number is not negative.
// expected-error @below {{'lm.weight' op (C3) layers must be between 1 and 4096}}
lm.weight @w : tensor<64xf32> layers -1 from ["w.{}"]

// -----

// lm.weight (C3): nor larger than any model has.
// expected-error @below {{'lm.weight' op (C3) layers must be between 1 and 4096}}
lm.weight @w : tensor<64xf32> layers 4097 from ["w.{}"]

// -----

// lm.weight (C3): a stacked weight has a source for each layer.
// expected-error @below {{'lm.weight' op (C3) source "w" must contain '{}' if and only if there are layers}}
lm.weight @w : tensor<64xf32> layers 2 from ["w"]

// -----

// lm.weight (C3): every source of a single weight is one tensor.
// expected-error @below {{'lm.weight' op (C3) source "u.{}" must contain '{}' if and only if there are layers}}
lm.weight @w : tensor<64x64xf32> from ["w", "u.{}"]

// -----

// lm.weight (C4): groups of interleaved rows are not empty.
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<64x64xf32> from ["w"] interleave 0

// -----

// lm.weight (C4): a negative group is refused, though it is a large unsigned one.
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<64x64xf32> from ["w"] interleave -9223372036854775808

// -----

// lm.weight (C4): groups fit a slice of a schedule.
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<64x64xf32> from ["w"] interleave 4097

// -----

// lm.weight (C4): a vector has no rows to interleave.
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<64xf32> from ["w"] interleave 16

// -----

// lm.weight (C4): sources alternate to the end.
// expected-error @below {{'lm.weight' op (C4) interleave must be between 1 and 4096, on two dimensions, the first shared equally by the sources}}
lm.weight @w : tensor<33x64xf32> from ["u", "v"] interleave 16

// -----

// lm.weight (C5): the bytes of all layers can be counted.
// expected-error @below {{'lm.weight' op (C5) all layers must have fewer than 2^48 elements}}
lm.weight @w : tensor<2147483647x2147483647xf32> layers 4096 from ["w.{}"]

// -----

// lm.weight (C5): 2^48 elements are the first too many.
// expected-error @below {{'lm.weight' op (C5) all layers must have fewer than 2^48 elements}}
lm.weight @w : tensor<262144x262144xf32> layers 4096 from ["w.{}"]

// -----

// lm.weight: a packing is what says how a matrix lies in memory.
// expected-error @below {{custom op 'lm.weight' invalid kind of attribute specified}}
lm.weight @w : tensor<96x64xf32> from ["w"] packing 3 : i64

// -----

// lm.weight (C6): K is whole steps of the packing: nothing fills it up.
// expected-error @below {{'lm.weight' op (C6) does not fit its packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>}}
lm.weight @w : tensor<64x48xbf16> from ["w"] packing #gemm.packing<panel = 32, tile = 16, k_step = 32, k_pack = 2>

// -----

// lm.weight (C6): a vector has no columns to pack.
// expected-error @below {{'lm.weight' op (C6) does not fit its packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>}}
lm.weight @w : tensor<64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1>

// -----

// lm.weight (C7): the artifact begins at 0.
// expected-error @below {{'lm.weight' op (C7) offset must be a multiple of 64 and not negative}}
lm.weight @w : tensor<64xf32> from ["w"] at -4096

// -----

// lm.weight (C7): weights begin on a cache line.
// expected-error @below {{'lm.weight' op (C7) offset must be a multiple of 64 and not negative}}
lm.weight @w : tensor<64xf32> from ["w"] at 4

// -----

// lm.weight (C8): a single weight has no stride.
// expected-error @below {{'lm.weight' op (C8) stride belongs to a weight with an offset and layers}}
lm.weight @w : tensor<64xf32> from ["w"] at 0 stride 256

// -----

// lm.weight (C8): every layer has a place if one has.
// expected-error @below {{'lm.weight' op (C8) stride belongs to a weight with an offset and layers}}
lm.weight @w : tensor<64xf32> layers 2 from ["w{}"] at 0

// -----

// lm.weight (C8): a distance needs a beginning.
// expected-error @below {{'lm.weight' op (C8) stride belongs to a weight with an offset and layers}}
"lm.weight"() {sym_name = "w", type = tensor<64xf32>, layers = 2 : i64, sources = ["w{}"], layer_stride = 256 : i64} : () -> ()

// -----

// lm.weight (C8): layers do not overlap.
// expected-error @below {{'lm.weight' op (C8) stride must be a multiple of 64 and at least the 256 bytes of a slice}}
lm.weight @w : tensor<64xf32> layers 2 from ["w{}"] at 0 stride 192

// -----

// lm.weight (C8): as they are stored, here 8 rows filled up to a panel of 32.
// expected-error @below {{'lm.weight' op (C8) stride must be a multiple of 64 and at least the 8192 bytes of a slice}}
lm.weight @w : tensor<8x64xf32> layers 2 from ["w{}"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0 stride 2048

// -----

// lm.weight (C8): every layer begins on a cache line.
// expected-error @below {{'lm.weight' op (C8) stride must be a multiple of 64 and at least the 256 bytes of a slice}}
lm.weight @w : tensor<64xf32> layers 2 from ["w{}"] at 0 stride 260

// -----

// !lm.kv_cache (C1): a cache has layers.
// expected-error @below {{(C1) layers must be between 1 and 4096, heads between 1 and 16384, head_dim between 1 and 4096}}
func.func private @f(!lm.kv_cache<layers = 0, heads = 1, head_dim = 32, f32>)

// -----

// !lm.kv_cache (C1): it has heads.
// expected-error @below {{(C1) layers must be between 1 and 4096, heads between 1 and 16384, head_dim between 1 and 4096}}
func.func private @f(!lm.kv_cache<layers = 1, heads = -1, head_dim = 32, f32>)

// -----

// !lm.kv_cache (C1): heads have channels, few enough to unroll over.
// expected-error @below {{(C1) layers must be between 1 and 4096, heads between 1 and 16384, head_dim between 1 and 4096}}
func.func private @f(!lm.kv_cache<layers = 1, heads = 1, head_dim = 4097, f32>)

// -----

// !lm.kv_cache (C2): elements are those attention reads.
// expected-error @below {{(C2) elements must be f32, bf16, f16 or i8}}
func.func private @f(!lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f64>)

// -----

// !lm.kv_cache (C2): not even where they are as wide.
// expected-error @below {{(C2) elements must be f32, bf16, f16 or i8}}
func.func private @f(!lm.kv_cache<layers = 1, heads = 1, head_dim = 32, i16>)

// -----

// !lm.kv_cache (C2): nor where they are integers of another kind.
// expected-error @below {{(C2) elements must be f32, bf16, f16 or i8}}
func.func private @f(!lm.kv_cache<layers = 1, heads = 1, head_dim = 32, si8>)

// -----

// !lm.kv_cache (C3): the scales of i8 lie in a cache line of their own.
// expected-error @below {{(C3) head_dim must be a multiple of 4 beside i8}}
func.func private @f(!lm.kv_cache<layers = 1, heads = 1, head_dim = 30, i8>)

// -----

// `lm.phase` is the only attribute of the dialect.
// expected-error @below {{unknown attribute 'lm.stage'}}
func.func private @f() attributes {lm.stage = #lm.phase<decode>}

// -----

// `lm.threads` is a number of threads.
// expected-error @below {{'lm.threads' is an i64 between 1 and 1024 on a function}}
func.func private @f() attributes {lm.threads = 0 : i64}

// -----

// `lm.threads` marks functions only.
// expected-error @below {{'lm.threads' is an i64 between 1 and 1024 on a function}}
module attributes {lm.threads = 2 : i64} {}

// -----

// `lm.phase` says which phase.
// expected-error @below {{'lm.phase' is a #lm.phase on a function}}
func.func private @f() attributes {lm.phase = 0 : i64}

// -----

// `lm.phase` marks functions only.
// expected-error @below {{'lm.phase' is a #lm.phase on a function}}
module attributes {lm.phase = #lm.phase<decode>} {}

// -----

// Every operation with a destination (C1): a result or a destination.
lm.weight @e : tensor<8x64xf32> from ["e"]
func.func @f(%ids: tensor<?xi32>) {
  // expected-error @below {{'lm.embed' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  lm.embed %ids, @e : tensor<?xi32>
  return
}

// -----

// Every operation with a destination (C1): not both.
lm.weight @e : tensor<8x64xf32> from ["e"]
func.func @f(%ids: tensor<?xi32>, %y: memref<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  %x = lm.embed %ids, @e into %y : tensor<?xi32> into memref<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Every operation with a destination (C1): tensors are not read into buffers.
lm.weight @n : tensor<64xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.rms_norm' op (C1) mixes tensor form and buffer form}}
  lm.rms_norm %x, @n epsilon 1.0 into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// Every operation with a destination (C1): nor buffers into tensors.
func.func @f(%positions: memref<?xi32>) -> tensor<?x2xf32> {
  // expected-error @below {{'lm.rotary_table' op (C1) mixes tensor form and buffer form}}
  %t = lm.rotary_table %positions frequencies [1.0] : memref<?xi32> -> tensor<?x2xf32>
  return %t : tensor<?x2xf32>
}

// -----

// Activations have a static number of channels.
func.func @f(%x: tensor<?x?xf32>, %rows: tensor<?xi32>) -> tensor<?x?xf32> {
  // expected-error @below {{'lm.gather_rows' op operand #0 must be tensor of f32 or bf16, a dynamic number of tokens by a static number of channels or memref of f32 or bf16, a dynamic number of tokens by a static number of channels, but got 'tensor<?x?xf32>'}}
  %y = lm.gather_rows %x, %rows : tensor<?x?xf32>, tensor<?xi32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Activations have channels: a table of no angles would divide by zero.
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x0xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rotate' op operand #1 must be tensor of f32 or bf16, a dynamic number of tokens by a static number of channels or memref of f32 or bf16, a dynamic number of tokens by a static number of channels, but got 'tensor<?x0xf32>'}}
  %y = lm.rotate %x, %table : tensor<?x64xf32>, tensor<?x0xf32>
  return %y : tensor<?x64xf32>
}

// -----

// The number of tokens is dynamic.
lm.weight @e : tensor<8x64xf32> from ["e"]
func.func @f(%ids: tensor<?xi32>) -> tensor<7x64xf32> {
  // expected-error @below {{'lm.embed' op result #0 must be tensor of f32 or bf16, a dynamic number of tokens by a static number of channels, but got 'tensor<7x64xf32>'}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<7x64xf32>
  return %x : tensor<7x64xf32>
}

// -----

// In buffers too.
lm.weight @e : tensor<8x64xf32> from ["e"]
func.func @f(%ids: memref<?xi32>, %x: memref<7x64xf32>) {
  // expected-error @below {{'lm.embed' op operand #1 must be memref of f32 or bf16, a dynamic number of tokens by a static number of channels, but got 'memref<7x64xf32>'}}
  lm.embed %ids, @e into %x : memref<?xi32> into memref<7x64xf32>
  return
}

// -----

// And that of ids, positions and rows.
lm.weight @e : tensor<8x64xf32> from ["e"]
func.func @f(%ids: tensor<4xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op operand #0 must be tensor of a dynamic number of 32-bit signless integers or memref of a dynamic number of 32-bit signless integers, but got 'tensor<4xi32>'}}
  %x = lm.embed %ids, @e : tensor<4xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.embed (C2): its table is a weight.
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C2) @missing must be a weight of any number x 64 elements, without layers, not interleaved}}
  %x = lm.embed %ids, @missing : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.embed (C2): its table has no layers.
lm.weight @e : tensor<8x64xf32> layers 2 from ["e{}"]
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C2) @e must be a weight of any number x 64 elements, without layers, not interleaved}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.embed (C2): rows of the table are rows of the result.
lm.weight @e : tensor<8x32xf32> from ["e"]
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C2) @e must be a weight of any number x 64 elements, without layers, not interleaved}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.embed (C2): the table is a matrix.
lm.weight @e : tensor<64xf32> from ["e"]
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C2) @e must be a weight of any number x 64 elements, without layers, not interleaved}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.embed (C2): rows are found by their number, as they are not where they alternate.
lm.weight @e : tensor<320x64xf32> from ["u", "v"] interleave 16
func.func @f(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.embed' op (C2) @e must be a weight of any number x 64 elements, without layers, not interleaved}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// lm.rms_norm (C3): a stacked weight needs the layer.
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rms_norm' op (C3) @n must be a weight of any number elements, without layers, not interleaved}}
  %y = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// lm.rms_norm (C2): channels stay.
lm.weight @n : tensor<32xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.rms_norm' op (C2) input and result differ in channels}}
  %y = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.rms_norm (C3): whole groups of channels are normalized.
lm.weight @n : tensor<48xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rms_norm' op (C3) channels must be a multiple of the weight's size}}
  %y = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// lm.rms_norm (C3): a weight is verified before it is used.
%c1 = arith.constant 1 : index
%x = tensor.empty(%c1) : tensor<?x64xf32>
%y = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
// expected-error @below {{'lm.weight' op (C1) needs a type with one or two static dimensions between 1 and 2147483647 and no encoding}}
lm.weight @n : tensor<0xf32> from ["n"]

// -----

// lm.rms_norm (C3): one without a type too.
%c1 = arith.constant 1 : index
%x = tensor.empty(%c1) : tensor<?x64xf32>
%y = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
// expected-error @below {{'lm.weight' op requires attribute 'type'}}
"lm.weight"() {sym_name = "n", sources = ["n"]} : () -> ()

// -----

// lm.rms_norm (C4): epsilon keeps the root from zero.
lm.weight @n : tensor<64xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rms_norm' op (C4) epsilon must be finite and positive}}
  %y = lm.rms_norm %x, @n epsilon 0.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// lm.rms_norm (C4): and is a number.
lm.weight @n : tensor<64xf32> from ["n"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rms_norm' op (C4) epsilon must be finite and positive}}
  %y = lm.rms_norm %x, @n epsilon 0x7FC00000 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// lm.rotary_table (C2): a cosine and a sine for each frequency.
func.func @f(%positions: tensor<?xi32>) -> tensor<?x6xf32> {
  // expected-error @below {{'lm.rotary_table' op (C2) result must be f32 with two channels for each frequency}}
  %t = lm.rotary_table %positions frequencies [1.0, 0.5] : tensor<?xi32> -> tensor<?x6xf32>
  return %t : tensor<?x6xf32>
}

// -----

// lm.rotary_table (C2): angles need the precision of f32.
func.func @f(%positions: tensor<?xi32>) -> tensor<?x4xbf16> {
  // expected-error @below {{'lm.rotary_table' op (C2) result must be f32 with two channels for each frequency}}
  %t = lm.rotary_table %positions frequencies [1.0, 0.5] : tensor<?xi32> -> tensor<?x4xbf16>
  return %t : tensor<?x4xbf16>
}

// -----

// lm.rotary_table (C3): an infinite angle has no cosine.
func.func @f(%positions: tensor<?xi32>) -> tensor<?x4xf32> {
  // expected-error @below {{'lm.rotary_table' op (C3) frequencies must be finite and not negative}}
  %t = lm.rotary_table %positions frequencies [1.0, 0x7F800000] : tensor<?xi32> -> tensor<?x4xf32>
  return %t : tensor<?x4xf32>
}

// -----

// lm.rotary_table (C3): nor has what is no number.
func.func @f(%positions: tensor<?xi32>) -> tensor<?x4xf32> {
  // expected-error @below {{'lm.rotary_table' op (C3) frequencies must be finite and not negative}}
  %t = lm.rotary_table %positions frequencies [1.0, 0x7FC00000] : tensor<?xi32> -> tensor<?x4xf32>
  return %t : tensor<?x4xf32>
}

// -----

// #lm.attention_table (C1): every step has a schedule.
// expected-error @below {{(C1) the last entry must be for all: [?, ?]}}
func.func private @f() attributes {test.table = #lm.attention_table<[1, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): every schedule has steps.
// expected-error @below {{(C1) entry 1 serves nothing that entry 0 does not}}
func.func private @f() attributes {test.table = #lm.attention_table<[4, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [2, 100] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): no step has no segments.
// expected-error @below {{(C1) numbers of segments and positions must be positive}}
func.func private @f() attributes {test.table = #lm.attention_table<[0, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): its schedules are schedules.
// expected-error @below {{(C1) prefill must have 1 to 16 rows}}
func.func private @f() attributes {test.table = #lm.attention_table<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [17, 1, 1]>>}

// -----

// lm.attention (C1): a cache that is a value gives values.
func.func @f(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %y: memref<?x32xf32>) {
  // expected-error @below {{'lm.attention' op (C1) mixes tensor form and buffer form}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %y
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention (C2): as many channels out as in.
func.func @f(%q: tensor<?x64xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.attention' op (C2) query and result differ in channels}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.attention (C2): query heads share the cache's heads in equal groups.
func.func @f(%q: tensor<?x96xf32>, %cache: !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x96xf32> {
  // expected-error @below {{'lm.attention' op (C2) query channels must be a multiple of the cache's heads times head_dim}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x96xf32>, !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// lm.attention (C5): whole tiles of the query heads that share one of the cache's.
func.func @f(%q: tensor<?x96xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x96xf32> {
  // expected-error @below {{'lm.attention' op (C5) rows of decode must divide the 3 query heads of each of the cache's, got 2}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [2, 1, 1], split = 1, prefill = [1, 1, 1]>>)
    : tensor<?x96xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// lm.attention (C5): instructions that multiply bf16 read a cache of it.
func.func @f(%q: tensor<?x96xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f16>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x96xf32> {
  // expected-error @below {{'lm.attention' op (C5) X86_AVX512_BF16 needs a cache of bf16}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], instructions = X86_AVX512_BF16>>)
    : tensor<?x96xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// lm.attention (C5): and whole vectors of channels.
func.func @f(%q: tensor<?x40xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 40, bf16>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x40xf32> {
  // expected-error @below {{'lm.attention' op (C5) X86_AVX512_BF16 needs heads of a multiple of 16 channels, got 40}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], instructions = X86_AVX512_BF16>>)
    : tensor<?x40xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 40, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// -----

// lm.attention (C6): parts of contexts are kept somewhere.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op (C6) a schedule that splits contexts needs partial sums}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: a segment has four fields.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x3xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op operand #3 must be tensor of a dynamic number of segments by four 32-bit signless integers or memref of a dynamic number of segments by four 32-bit signless integers, but got 'memref<?x3xi32>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x3xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: so does one in tensor form.
func.func @f(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x?xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.attention' op operand #3 must be tensor of a dynamic number of segments by four 32-bit signless integers or memref of a dynamic number of segments by four 32-bit signless integers, but got 'tensor<?x?xi32>'}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.attention: a step has as many segments as it is given.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<2x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op operand #3 must be tensor of a dynamic number of segments by four 32-bit signless integers or memref of a dynamic number of segments by four 32-bit signless integers, but got 'memref<2x4xi32>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<2x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: fields are 32-bit integers.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi64>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op operand #3 must be tensor of a dynamic number of segments by four 32-bit signless integers or memref of a dynamic number of segments by four 32-bit signless integers, but got 'memref<?x4xi64>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi64>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: block tables follow each other, without rows.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?x?xi32>) {
  // expected-error @below {{'lm.attention' op operand #4 must be tensor of a dynamic number of 32-bit signless integers or memref of a dynamic number of 32-bit signless integers, but got 'memref<?x?xi32>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?x?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention (C3): keys and values of whole blocks.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x500xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op (C3) 'memref<?x1x1x2x500xf32>' is not the buffer of a !lm.kv_cache}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x500xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention (C2): of a buffer of i8, what scales take is no channel.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xi8>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op (C2) query channels must be a multiple of the cache's heads times head_dim}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xi8>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention (C3): a head has no more channels than code can be unrolled for.
func.func @f(%q: memref<?x16777216xf32>, %cache: memref<?x1x1x2x268435456xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op (C3) 'memref<?x1x1x2x268435456xf32>' is not the buffer of a !lm.kv_cache}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x16777216xf32>, memref<?x1x1x2x268435456xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x16777216xf32>
  return
}

// -----

// lm.attention (C4): scores are numbers.
func.func @f(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.attention' op (C4) scale must be finite and positive}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 0x7F800000
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// #lm.attention_schedule (C1): a tile has rows.
// expected-error @below {{(C1) decode must have 1 to 16 rows}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [0, 1, 1], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): and no more of them than a vector has elements.
// expected-error @below {{(C1) decode must have 1 to 16 rows}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [17, 1, 1], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): so does one of several tokens.
// expected-error @below {{(C1) prefill must have 1 to 16 rows}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [-1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): it has no more of them.
// expected-error @below {{(C1) prefill must have 1 to 16 rows}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [17, 1, 1]>}

// -----

// #lm.attention_schedule (C1): some block of keys is multiplied.
// expected-error @below {{(C1) decode must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 0, 1], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): their number is not negative.
// expected-error @below {{(C1) prefill must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, -2, 2]>}

// -----

// #lm.attention_schedule (C1): chunks are not empty.
// expected-error @below {{(C1) decode must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 0], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): scores of a chunk fit the stack.
// expected-error @below {{(C1) prefill must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 65]>}

// -----

// #lm.attention_schedule (C1): a chunk is multiplied in equal steps.
// expected-error @below {{(C1) decode must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 2, 3], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): no step is longer than a chunk.
// expected-error @below {{(C1) prefill must have chunks of 1 to 64 blocks, a multiple of those multiplied at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 4, 2]>}

// -----

// #lm.attention_schedule (C1): a context is at least one part.
// expected-error @below {{(C1) split must be 1 to 1024}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 0, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): it has no more parts than there can be threads.
// expected-error @below {{(C1) split must be 1 to 1024}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1025, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule: tiles have three sizes.
// expected-error @below {{expected ','}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1], split = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule: sizes are numbers.
// expected-error @below {{expected integer value}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, ?, 1]>}

// -----

// #lm.attention_schedule: they fit 64 bits.
// expected-error @below {{integer value too large}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 9223372036854775808, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule: its parts have names.
// expected-error @below {{expected 'split'}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], parts = 1, prefill = [1, 1, 1]>}

// -----

// #lm.attention_schedule (C1): some tile meets a chunk.
// expected-error @below {{(C1) tiles must be 1 to 64}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 0>}

// -----

// #lm.attention_schedule (C1): their queries are kept on the stack.
// expected-error @below {{(C1) tiles must be 1 to 64}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 65>}

// -----

// #lm.attention_schedule (C1): instructions have code for attention.
// expected-error @below {{(C1) prefill multiplies by X86_AVX512_BF16, by X86_AMX_BF16, or by FMA}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], instructions = X86_AVX2_F32>}

// -----

// #lm.attention_schedule (C1): a step of tiles is two blocks.
// expected-error @below {{(C1) X86_AMX_BF16 needs chunks of a multiple of 2 blocks}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [16, 1, 1], instructions = X86_AMX_BF16>}

// -----

// #lm.attention_schedule (C1): no panel is wider.
// expected-error @below {{(C1) micro-kernels multiply at most 4 blocks of keys at once}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [4, 5, 5], instructions = X86_AVX512_BF16>}

// -----

// #lm.attention_schedule (C1): a tile is one micro-kernel, whose sums are in registers.
// expected-error @below {{(C1) X86_AVX512_BF16_16x32 needs 35 registers, X86_AVX512_BF16 has 32}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [16, 2, 2], instructions = X86_AVX512_BF16>}

// -----

// #lm.attention_schedule: instructions have names.
// expected-error @below {{unknown instructions X87}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], instructions = X87>}

// -----

// #lm.attention_schedule: nothing else follows.
// expected-error @below {{expected 'instructions'}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], sheets = 2>}

// -----

// #lm.attention_schedule: each is said once, in order.
// expected-error @below {{expected 'instructions'}}
func.func private @f() attributes {test.a = #lm.attention_schedule<decode = [1, 1, 1], split = 1, prefill = [1, 1, 1], tiles = 2, tiles = 2>}

// -----

// #lm.attention_table (C1): a table serves all steps.
// expected-error @below {{(C1) the last entry must be for all: [?, ?]}}
func.func private @f() attributes {test.a = #lm.attention_table<[1, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): those with long contexts, too.
// expected-error @below {{(C1) the last entry must be for all: [?, ?]}}
func.func private @f() attributes {test.a = #lm.attention_table<[?, 1] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): an empty one serves none.
// expected-error @below {{(C1) the last entry must be for all: [?, ?]}}
func.func private @f() attributes {test.a = #lm.attention_table<>}

// -----

// #lm.attention_table (C1): steps have segments.
// expected-error @below {{(C1) numbers of segments and positions must be positive}}
func.func private @f() attributes {test.a = #lm.attention_table<[0, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): contexts have positions.
// expected-error @below {{(C1) numbers of segments and positions must be positive}}
func.func private @f() attributes {test.a = #lm.attention_table<[?, -1] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): a second entry for the same steps is none.
// expected-error @below {{(C1) entry 1 serves nothing that entry 0 does not}}
func.func private @f() attributes {test.a = #lm.attention_table<[2, 2] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [2, 2] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): nor is one for fewer steps than any before.
// expected-error @below {{(C1) entry 2 serves nothing that entry 0 does not}}
func.func private @f() attributes {test.a = #lm.attention_table<[2, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, 4] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [1, 8] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): nothing comes after the entry for all.
// expected-error @below {{(C1) entry 1 serves nothing that entry 0 does not}}
func.func private @f() attributes {test.a = #lm.attention_table<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table (C1): its schedules are verified.
// expected-error @below {{(C1) decode must have 1 to 16 rows}}
func.func private @f() attributes {test.a = #lm.attention_table<[?, ?] : <decode = [0, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table: an entry has two limits.
// expected-error @below {{expected ','}}
func.func private @f() attributes {test.a = #lm.attention_table<[?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table: limits are numbers.
// expected-error @below {{expected integer value}}
func.func private @f() attributes {test.a = #lm.attention_table<[few, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>}

// -----

// #lm.attention_table: entries are schedules.
// expected-error @below {{expected '<'}}
func.func private @f() attributes {test.a = #lm.attention_table<[?, ?] : 1 : i64>}

// -----

// lm.attention (C5): tiles of query heads are whole.
func.func @f(%q: tensor<?x128xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x128xf32> {
  // expected-error @below {{'lm.attention' op (C5) rows of decode must divide the 4 query heads of each of the cache's, got 3}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[?, ?] : <decode = [3, 1, 1], split = 1, prefill = [1, 1, 1]>>)
    : tensor<?x128xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// lm.attention (C5): no tile is larger than the group.
func.func @f(%q: tensor<?x128xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x128xf32> {
  // expected-error @below {{'lm.attention' op (C5) rows of decode must divide the 4 query heads of each of the cache's, got 8}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[?, ?] : <decode = [8, 1, 1], split = 1, prefill = [1, 1, 1]>>)
    : tensor<?x128xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// lm.attention (C5): in every entry.
func.func @f(%q: tensor<?x128xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x128xf32> {
  // expected-error @below {{'lm.attention' op (C5) rows of decode must divide the 4 query heads of each of the cache's, got 3}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[1, ?] : <decode = [3, 1, 1], split = 1, prefill = [1, 1, 1]>, [?, ?] : <decode = [2, 1, 1], split = 1, prefill = [1, 1, 1]>>)
    : tensor<?x128xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// lm.attention (C6): parts of contexts are added up somewhere.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  // expected-error @below {{'lm.attention' op (C6) a schedule that splits contexts needs partial sums}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[1, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>, [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: it is known how many parts there is room for.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %sums: memref<?xi8>) {
  // expected-error @below {{'lm.attention' op operand #5 must be memref of a static number of 8-bit signless integers without a layout, but got 'memref<?xi8>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%sums : memref<?xi8>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: partial sums are bytes.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %sums: memref<1024xf32>) {
  // expected-error @below {{'lm.attention' op operand #5 must be memref of a static number of 8-bit signless integers without a layout, but got 'memref<1024xf32>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%sums : memref<1024xf32>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention: they begin where their memory does.
func.func @f(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %sums: memref<1024xi8, strided<[1], offset: ?>>) {
  // expected-error @below {{'lm.attention' op operand #5 must be memref of a static number of 8-bit signless integers without a layout, but got 'memref<1024xi8, strided<[1], offset: ?>>'}}
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 schedules(<[?, ?] : <decode = [1, 1, 1], split = 2, prefill = [1, 1, 1]>>) partial_sums(%sums : memref<1024xi8, strided<[1], offset: ?>>) into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}

// -----

// lm.attention (C1): partial sums are a buffer, which values have none of.
func.func @f(%q: tensor<?x128xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %sums: memref<4096xi8>) -> tensor<?x128xf32> {
  // expected-error @below {{'lm.attention' op (C1) mixes tensor form and buffer form}}
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 partial_sums(%sums : memref<4096xi8>)
    : tensor<?x128xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// lm.gather_rows (C1): rows are copied to somewhere.
func.func @f(%x: memref<?x64xf32>, %rows: memref<?xi32>) {
  // expected-error @below {{'lm.gather_rows' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  lm.gather_rows %x, %rows : memref<?x64xf32>, memref<?xi32>
  return
}

// -----

// lm.gather_rows (C2): rows are copied, not converted.
func.func @f(%x: tensor<?x64xf32>, %rows: tensor<?xi32>) -> tensor<?x64xbf16> {
  // expected-error @below {{'lm.gather_rows' op (C2) input and result differ in more than rows}}
  %y = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// -----

// lm.linear (C1): its weight exists.
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C1) @missing must be a weight of 32 x 64 elements, without layers, not interleaved}}
  %y = lm.linear %x, @missing : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.linear (C1): a function is no weight.
func.func private @w()
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C1) @w must be a weight of 32 x 64 elements, without layers, not interleaved}}
  %y = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.linear (C1): weights are stored as output channels by input channels.
lm.weight @w : tensor<64x32xf32> from ["w"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C1) @w must be a weight of 32 x 64 elements, without layers, not interleaved}}
  %y = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.linear (C1): rows of the weight are output channels in turn.
lm.weight @w : tensor<32x64xf32> from ["u", "v"] interleave 16
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C1) @w must be a weight of 32 x 64 elements, without layers, not interleaved}}
  %y = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.linear (C2): one bias for each output channel.
lm.weight @w : tensor<32x64xf32> from ["w"]
lm.weight @b : tensor<64xf32> from ["b"]
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C2) @b must be a weight of 32 elements, without layers, not interleaved}}
  %y = lm.linear %x, @w bias @b : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.linear (C2): weight and bias are of one layer.
lm.weight @w : tensor<32x64xf32> layers 2 from ["w{}"]
lm.weight @b : tensor<32xf32> from ["b"]
func.func @f(%x: tensor<?x64xf32>, %layer: index) -> tensor<?x32xf32> {
  // expected-error @below {{'lm.linear' op (C2) @b must be a weight of 32 elements, with layers, not interleaved}}
  %y = lm.linear %x, @w bias @b[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// lm.rotate (C3): channels are rotated in pairs.
func.func @f(%x: tensor<?x9xf32>, %table: tensor<?x3xf32>) -> tensor<?x9xf32> {
  // expected-error @below {{'lm.rotate' op (C3) table must have an even number of channels}}
  %y = lm.rotate %x, %table : tensor<?x9xf32>, tensor<?x3xf32>
  return %y : tensor<?x9xf32>
}

// -----

// lm.rotate (C3): whole heads are rotated.
func.func @f(%x: tensor<?x64xf32>, %table: tensor<?x48xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{'lm.rotate' op (C3) input channels must be a multiple of the table's}}
  %y = lm.rotate %x, %table : tensor<?x64xf32>, tensor<?x48xf32>
  return %y : tensor<?x64xf32>
}

// -----

// lm.append_kv (C1): keys and values fill the cache's heads.
func.func @f(%k: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, %layer: index, %slots: tensor<?xi32>) {
  // expected-error @below {{'lm.append_kv' op (C1) keys and values must have 64 channels}}
  lm.append_kv %k, %k to %cache[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, tensor<?xi32>
  return
}

// -----

// lm.append_kv (C2): not every buffer is a cache's.
func.func @f(%k: memref<?x32xf32>, %cache: memref<?x1x1x2x100xf32>, %layer: index, %slots: memref<?xi32>) {
  // expected-error @below {{'lm.append_kv' op (C2) 'memref<?x1x1x2x100xf32>' is not the buffer of a !lm.kv_cache}}
  lm.append_kv %k, %k to %cache[%layer] slots %slots : memref<?x32xf32>, memref<?x1x1x2x100xf32>, memref<?xi32>
  return
}

// -----

// lm.append_kv (C3): is in one form.
func.func @f(%k: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %slots: memref<?xi32>) {
  // expected-error @below {{'lm.append_kv' op (C3) mixes tensor form and buffer form}}
  lm.append_kv %k, %k to %cache[%layer] slots %slots
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, memref<?xi32>
  return
}

// -----

// The generic form meets the same checks, not an assertion.
// expected-error @below {{'lm.weight' op attribute 'type' failed to satisfy constraint: type attribute of ranked tensor of 32-bit float or bfloat16 type values}}
"lm.weight"() {sym_name = "w", type = tensor<*xf32>, sources = []} : () -> ()

// -----

// #lm.shard (C1): one rank has the whole weight.
// expected-error @below {{(C1) ranks must be between 2 and 64}}
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 1>

// -----

// #lm.shard (C1): there is a largest group.
// expected-error @below {{(C1) ranks must be between 2 and 64}}
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 65>

// -----

// #lm.storage (C1): floats are the weight's element type.
// expected-error @below {{(C1) bf16 has no scales; it is the weight's element type}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <bf16, group = 32, scale = f16>

// -----

// #lm.storage (C1): groups are whole loads of vectors.
// expected-error @below {{(C1) the k of a group, 24, must be a multiple of 16, at most 65536, or a whole row}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 24, scale = f16>

// -----

// #lm.storage (C1): groups are of positive size.
// expected-error @below {{(C1) the k of a group, -32, must be a multiple of 16, at most 65536, or a whole row}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = -32, scale = f16>

// -----

// #lm.storage (C1): there is a largest group.
// expected-error @below {{(C1) the k of a group, 131072, must be a multiple of 16, at most 65536, or a whole row}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 131072, scale = f16>

// -----

// #lm.storage (C1): fp8 has signs instead of a minimum.
// expected-error @below {{(C1) fp8 has no minimum, as its numbers have signs}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <fp8, group = 32, scale = f16, offset = minimum>

// -----

// #lm.storage (C1): groups of fp8 are as those of integers.
// expected-error @below {{(C1) the k of a group, 24, must be a multiple of 16, at most 65536, or a whole row}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <fp8, group = 24, scale = f16>

// -----

// expected-error @below {{'int3' is no format of numbers: int8, int4 or fp8}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int3, group = 32, scale = f16>

// -----


// expected-error @below {{a group of a whole row is 'row'}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 0, scale = f16>

// -----

// expected-error @below {{'bf16' is no format of scales: f32 or f16}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = bf16>

// -----

// expected-error @below {{'zero' is no offset of a group: none or minimum}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = f16, offset = zero>

// -----

// lm.weight (C10): integers stand for values of f32.
// expected-error @below {{'lm.weight' op (C10) only a weight of f32 with two dimensions is quantized}}
lm.weight @w : tensor<64x64xbf16> from ["w"] storage <int4, group = 32, scale = f16>

// -----

// lm.weight (C10): a vector is not quantized.
// expected-error @below {{'lm.weight' op (C10) only a weight of f32 with two dimensions is quantized}}
lm.weight @w : tensor<64xf32> from ["w"] storage <int4, group = 32, scale = f16>

// -----

// lm.weight (C10): rows are whole groups.
// expected-error @below {{'lm.weight' op (C10) int4-g64-f16 needs K to be a multiple of 64; it is 96}}
lm.weight @w : tensor<64x96xf32> from ["w"] storage <int4, group = 64, scale = f16>

// -----

// lm.weight (C10): a whole row is a group, too.
// expected-error @below {{'lm.weight' op (C10) int8-row-f32 needs K to be a multiple of 16 and at most 65536; it is 100}}
lm.weight @w : tensor<64x100xf32> from ["w"] storage <int8, group = row, scale = f32>

// -----

// lm.weight (C10): the packing says where integers lie.
// expected-error @below {{'lm.weight' op (C10) needs a packing to be stored as #lm.storage<int4, group = 32, scale = f16>}}
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = f16> at 0

// -----

// lm.weight (C9): a vector has no columns.
// expected-error @below {{'lm.weight' op (C9) only a weight with two dimensions has columns}}
lm.weight @w : tensor<64xf32> from ["w"] shard <columns, ranks = 2>

// -----

// lm.add (C1): has a result or a destination.
func.func @f(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.add' op (C1) mixes tensor form and buffer form}}
  lm.add %x, %x into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.add (C2): all have as many channels.
func.func @f(%x: tensor<?x64xf32>, %y: tensor<?x32xf32>) {
  // expected-error @below {{'lm.add' op (C2) operands and result differ in channels}}
  %z = lm.add %x, %y : tensor<?x64xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  return
}

// -----

// lm.silu_mul (C1): has a result or a destination.
func.func @f(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.silu_mul' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  "lm.silu_mul"(%x, %x) : (memref<?x64xf32>, memref<?x64xf32>) -> ()
  return
}

// -----

// lm.silu_mul (C2): all have as many channels.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.silu_mul' op (C2) operands and result differ in channels}}
  %z = lm.silu_mul %x, %x : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.rotate (C1): has a result or a destination.
func.func @f(%x: memref<?x64xf32>, %t: memref<?x32xf32>) {
  // expected-error @below {{'lm.rotate' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  "lm.rotate"(%x, %t) : (memref<?x64xf32>, memref<?x32xf32>) -> ()
  return
}

// -----

// lm.rotate (C2): input and result are alike.
func.func @f(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>) {
  // expected-error @below {{'lm.rotate' op (C2) operands and result differ in channels or elements}}
  %z = lm.rotate %x, %t : tensor<?x64xf32>, tensor<?x32xf32> -> tensor<?x64xbf16>
  return
}

// -----

// lm.deal_rows (C1): has a result or a destination.
func.func @f(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.deal_rows' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  "lm.deal_rows"(%x) {ranks = 2 : i64} : (memref<?x64xf32>) -> ()
  return
}

// -----

// lm.deal_rows (C2): input and result are alike.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.deal_rows' op (C2) operands and result differ in channels or elements}}
  %y = lm.deal_rows %x among 2 : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.deal_rows (C3): one rank has nobody to deal to.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.deal_rows' op (C3) ranks must be between 2 and 64}}
  %y = lm.deal_rows %x among 1 : tensor<?x64xf32>
  return
}

// -----

// lm.deal_rows (C3): a group has an end.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.deal_rows' op (C3) ranks must be between 2 and 64}}
  %y = lm.deal_rows %x among 65 : tensor<?x64xf32>
  return
}

// -----

// lm.all_reduce (C1): sums are a value or in a buffer.
func.func @f(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.all_reduce' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  lm.all_reduce %x : memref<?x64xf32>
  return
}

// -----

// lm.all_reduce (C1): where their terms are.
func.func @f(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.all_reduce' op (C1) mixes tensor form and buffer form}}
  lm.all_reduce %x into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.all_reduce (C2): ranks add up f32.
func.func @f(%x: tensor<?x64xbf16>) {
  // expected-error @below {{'lm.all_reduce' op (C2) input and result must be f32 with the same number of channels}}
  %y = lm.all_reduce %x : tensor<?x64xbf16> -> tensor<?x64xbf16>
  return
}

// -----

// lm.all_reduce (C2): as many as there are.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_reduce' op (C2) input and result must be f32 with the same number of channels}}
  %y = lm.all_reduce %x : tensor<?x64xf32> -> tensor<?x128xf32>
  return
}

// -----

// lm.all_reduce (C3): in place.
func.func @f(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.all_reduce' op (C3) the destination must be the input, without gaps between its rows}}
  lm.all_reduce %x into %y : memref<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.all_reduce (C3): as one piece of memory.
func.func @f(%x: memref<?x64xf32, strided<[96, 1]>>) {
  // expected-error @below {{'lm.all_reduce' op (C3) the destination must be the input, without gaps between its rows}}
  lm.all_reduce %x into %x : memref<?x64xf32, strided<[96, 1]>> into memref<?x64xf32, strided<[96, 1]>>
  return
}

// -----

// lm.all_gather (C1): channels are gathered somewhere.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  lm.all_gather %x : tensor<?x64xf32>
  return
}

// -----

// lm.all_gather (C1): where they come from.
func.func @f(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C1) mixes tensor form and buffer form}}
  %y = lm.all_gather %x : memref<?x64xf32> -> tensor<?x128xf32>
  return
}

// -----

// lm.all_gather (C2): ranks exchange f32.
func.func @f(%x: tensor<?x64xbf16>) {
  // expected-error @below {{'lm.all_gather' op (C2) input and result must be f32, the result with 2 to 64 times the input's channels}}
  %y = lm.all_gather %x : tensor<?x64xbf16> -> tensor<?x128xf32>
  return
}

// -----

// lm.all_gather (C2): and do not convert it.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C2) input and result must be f32, the result with 2 to 64 times the input's channels}}
  %y = lm.all_gather %x : tensor<?x64xf32> -> tensor<?x128xbf16>
  return
}

// -----

// lm.all_gather (C2): every rank has as many channels.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C2) input and result must be f32, the result with 2 to 64 times the input's channels}}
  %y = lm.all_gather %x : tensor<?x64xf32> -> tensor<?x100xf32>
  return
}

// -----

// lm.all_gather (C2): there are several.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C2) input and result must be f32, the result with 2 to 64 times the input's channels}}
  %y = lm.all_gather %x : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// lm.all_gather (C2): and not more than a group can have.
func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.all_gather' op (C2) input and result must be f32, the result with 2 to 64 times the input's channels}}
  %y = lm.all_gather %x : tensor<?x64xf32> -> tensor<?x4160xf32>
  return
}

// -----

// lm.all_gather (C3): as pieces of memory.
func.func @f(%x: memref<?x64xf32, strided<[96, 1]>>, %y: memref<?x128xf32>) {
  // expected-error @below {{'lm.all_gather' op (C3) rows must follow each other without gaps}}
  lm.all_gather %x into %y : memref<?x64xf32, strided<[96, 1]>> into memref<?x128xf32>
  return
}

// -----

// lm.all_gather (C3): into one piece.
func.func @f(%x: memref<?x64xf32>, %y: memref<?x128xf32, strided<[160, 1]>>) {
  // expected-error @below {{'lm.all_gather' op (C3) rows must follow each other without gaps}}
  lm.all_gather %x into %y : memref<?x64xf32> into memref<?x128xf32, strided<[160, 1]>>
  return
}

// -----

// `lm.deterministic` has no value.
// expected-error @below {{'lm.deterministic' has no value and is on a module}}
module attributes {lm.deterministic = true} {}

// -----

// `lm.deterministic` is for all of a model.
// expected-error @below {{'lm.deterministic' has no value and is on a module}}
func.func private @f() attributes {lm.deterministic}

// -----

// lm.layer_norm (C1): has a result or a destination.
func.func @layer_norm_form(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.layer_norm' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  "lm.layer_norm"(%x) <{weight = @n, bias = @n, epsilon = 1.0 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (memref<?x64xf32>) -> ()
  return
}

// -----

// lm.layer_norm (C2): channels stay.
func.func @layer_norm_channels(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.layer_norm' op (C2) input and result differ in channels}}
  %y = lm.layer_norm %x, @n bias @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.layer_norm (C3): all channels are normalized together.
lm.weight @n : tensor<32xf32> from ["n"]
func.func @layer_norm_weight(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.layer_norm' op (C3) @n must be a weight of 64 elements, without layers, not interleaved}}
  %y = lm.layer_norm %x, @n bias @n epsilon 1.0 : tensor<?x64xf32>
  return
}

// -----

// lm.layer_norm (C3): the bias too.
lm.weight @n : tensor<64xf32> from ["n"]
lm.weight @b : tensor<64xf32> layers 2 from ["b{}"]
func.func @layer_norm_bias(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.layer_norm' op (C3) @b must be a weight of 64 elements, without layers, not interleaved}}
  %y = lm.layer_norm %x, @n bias @b epsilon 1.0 : tensor<?x64xf32>
  return
}

// -----

// lm.layer_norm (C4): epsilon keeps the root from zero.
lm.weight @n : tensor<64xf32> from ["n"]
func.func @layer_norm_epsilon(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.layer_norm' op (C4) epsilon must be finite and positive}}
  %y = lm.layer_norm %x, @n bias @n epsilon -1.0 : tensor<?x64xf32>
  return
}

// -----

// lm.gelu (C1): tensors or buffers.
func.func @gelu_form(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.gelu' op (C1) mixes tensor form and buffer form}}
  lm.gelu %x <exact> into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.gelu (C2): channels stay.
func.func @gelu_channels(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.gelu' op (C2) operands and result differ in channels}}
  %y = lm.gelu %x <tanh> : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.gelu: there are two kinds.
func.func @gelu_kind(%x: tensor<?x64xf32>) {
  // expected-error @below {{expected ::sandwich::lm::GeluKind to be one of: exact, tanh}}
  // expected-error @below {{custom op 'lm.gelu' failed to parse LM_GeluKindAttr parameter 'value' which is to be a `::sandwich::lm::GeluKind`}}
  %y = lm.gelu %x <sigmoid> : tensor<?x64xf32>
  return
}

// -----

// lm.append_kv: three types, or four.
func.func @append_kv_types(%k: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, %layer: index, %slots: tensor<?xi32>) {
  // expected-error @below {{expected the types of keys, of values where it is another, of the cache and of slots}}
  lm.append_kv %k, %k to %cache[%layer] slots %slots : tensor<?x32xf32>, tensor<?xi32>
  return
}

// -----

// lm.append_kv (C1): values too.
func.func @append_kv_values(%k: tensor<?x32xf32>, %v: tensor<?x64xf32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, %layer: index, %slots: tensor<?xi32>) {
  // expected-error @below {{'lm.append_kv' op (C1) keys and values must have 32 channels}}
  lm.append_kv %k, %v to %cache[%layer] slots %slots
    : tensor<?x32xf32>, tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, tensor<?xi32>
  return
}

// -----

// lm.round (C2): channels stay.
func.func @round_channels(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.round' op (C2) operands and result differ in channels}}
  %y = lm.round %x : tensor<?x64xf32> -> tensor<?x32xbf16>
  return
}

// -----

// lm.round (C3): from f32 to bf16.
func.func @round_elements(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.round' op (C3) rounds f32 to bf16}}
  %y = lm.round %x : tensor<?x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// lm.round (C1): has a result or a destination.
func.func @round_form(%x: memref<?x64xf32>) {
  // expected-error @below {{'lm.round' op (C1) needs a result (tensor form) or a destination (buffer form)}}
  "lm.round"(%x) : (memref<?x64xf32>) -> ()
  return
}

// -----

// lm.embed (C3): only positions begin behind the first row.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @embed_offset_of_ids(%ids: tensor<?xi32>) {
  // expected-error @below {{'lm.embed' op (C3) offset must be between 0 and the weight's rows, and 0 but for positions}}
  %x = lm.embed %ids, @e offset 1 : tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

// lm.embed (C3): the first row is one of the table.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @embed_offset_beyond(%ids: tensor<?xi32>) {
  // expected-error @below {{'lm.embed' op (C3) offset must be between 0 and the weight's rows, and 0 but for positions}}
  %x = lm.embed %ids, @e of <positions> offset 320 : tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

// lm.embed (C3): there is no row before the first.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @embed_offset_negative(%ids: tensor<?xi32>) {
  // expected-error @below {{'lm.embed' op (C3) offset must be between 0 and the weight's rows, and 0 but for positions}}
  %x = lm.embed %ids, @e of <positions> offset -1 : tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

// lm.tanh (C1): tensors or buffers.
func.func @tanh_form(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.tanh' op (C1) mixes tensor form and buffer form}}
  lm.tanh %x into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.tanh (C2): channels stay.
func.func @tanh_channels(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.tanh' op (C2) operands and result differ in channels}}
  %y = lm.tanh %x : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.l2_normalize (C1): tensors or buffers.
func.func @l2_normalize_form(%x: tensor<?x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.l2_normalize' op (C1) mixes tensor form and buffer form}}
  lm.l2_normalize %x into %y : tensor<?x64xf32> into memref<?x64xf32>
  return
}

// -----

// lm.l2_normalize (C2): channels stay.
func.func @l2_normalize_channels(%x: tensor<?x64xf32>) {
  // expected-error @below {{'lm.l2_normalize' op (C2) operands and result differ in channels}}
  %y = lm.l2_normalize %x : tensor<?x64xf32> -> tensor<?x32xf32>
  return
}

// -----

// lm.pool (C1): tensors or buffers.
func.func @pool_form(%x: tensor<?x64xf32>, %segments: tensor<?x4xi32>, %y: memref<?x64xf32>) {
  // expected-error @below {{'lm.pool' op (C1) mixes tensor form and buffer form}}
  lm.pool %x, %segments <cls> into %y : tensor<?x64xf32>, tensor<?x4xi32> into memref<?x64xf32>
  return
}

// -----

// lm.pool (C2): channels stay.
func.func @pool_channels(%x: tensor<?x64xf32>, %segments: tensor<?x4xi32>) {
  // expected-error @below {{'lm.pool' op (C2) operands and result differ in channels}}
  %y = lm.pool %x, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x32xf32>
  return
}

// -----

// lm.sampling (C1): there is a token.
// expected-error @below {{'lm.sampling' op (C1) needs a vocabulary between 1 and 2147483647, not 0}}
lm.sampling 0

// -----

// lm.sampling (C1): token ids are 32 bits.
// expected-error @below {{'lm.sampling' op (C1) needs a vocabulary between 1 and 2147483647, not 2147483648}}
lm.sampling 2147483648
