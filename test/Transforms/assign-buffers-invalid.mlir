// RUN: sandwich-opt %s -phase-assign-buffers -split-input-file -verify-diagnostics

// A phase has seven arguments.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Token ids are one tensor of 32-bit integers.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi64>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %positions, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// The cache is the last.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: index) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Logits are returned.
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) attributes {lm.phase = #lm.phase<decode>} {
  return
}

// -----

// A phase has a body.
// expected-error @below {{a phase is one block that returns}}
func.func private @decode(tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4xi32>, tensor<?xi32>, tensor<?xi32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>}

// -----

// It does not branch.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase is one block that returns}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  cf.br ^next
^next:
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Logits have channels.
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?xi32> attributes {lm.phase = #lm.phase<decode>} {
  return %ids : tensor<?xi32>
}

// -----

// By an operation that can write them to memory.
// expected-error @below {{a phase returns what an operation with a buffer form computes for nothing else}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c4 = arith.constant 4 : index
  %x = tensor.empty(%c4) : tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// A step has as many tokens as it is given.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<4xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Segments have four fields.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x3xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// They are no list of numbers.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Block tables follow each other, without rows.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?x4xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Logits are f32.
lm.weight @e : tensor<320x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xbf16> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xbf16>
  %g = lm.gather_rows %x, %rows : tensor<?x64xbf16>, tensor<?xi32> -> tensor<?x64xbf16>
  return %g : tensor<?x64xbf16>
}

// -----

// A phase returns.
// expected-error @below {{a phase is one block that returns}}
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<prefill>} {
  llvm.unreachable
}

// -----

// They are rows of tokens.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.gather_rows' op mixes rows of tokens with rows of logits}}
  %h = lm.gather_rows %g, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

// Rows are added to as many rows.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'gemm.matmul' op mixes rows of tokens with rows of logits}}
  %y = gemm.matmul %x, @w epilogue(<add_residual>) residual(%g : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Logits have room for the rows that are wanted.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'gemm.matmul' op computes logits for every token, not for the rows that are gathered}}
  %y = gemm.matmul %x, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Operations that only read a tensor are named, too.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'tensor.dim' op has no buffer form; convert it first}}
  %d = tensor.dim %ids, %c0 : tensor<?xi32>
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Not by a loop, which computes in the workspace.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"]
lm.weight @w : tensor<64x64xf32> from ["w"]
// expected-error @below {{a phase returns what an operation with a buffer form computes for nothing else}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %n = lm.rms_norm %h, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %n, @w epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// Nothing else reads them: they are not in the workspace.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
// expected-error @below {{a phase returns what an operation with a buffer form computes for nothing else}}
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %z = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %m = gemm.matmul %z, @w epilogue(<add_residual>) residual(%x : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Operations that should have become matmuls are named.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.linear' op has no buffer form; convert it first}}
  %y = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// So are operations of other dialects.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'tensor.cast' op has no buffer form; convert it first}}
  %y = tensor.cast %x : tensor<?x64xf32> to tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// A layer that computes elsewhere cannot be a loop over one buffer.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %z = lm.rms_norm %h, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // expected-error @below {{a layer must end by adding to its own input}}
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Nor one whose input is read after the residual was added.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %n = lm.rms_norm %h, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %n, @w epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    %m = lm.rms_norm %h, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // expected-error @below {{a layer must end by adding to its own input}}
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Nor one that multiplies what it overwrites.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %z = gemm.matmul %h, @w epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    // expected-error @below {{a layer must end by adding to its own input}}
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// A loop carries something.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{a loop over layers carries one tensor}}
  scf.for %layer = %c0 to %c0 step %c0 {
  }
  %y = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// But no more than one tensor.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %u = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{a loop over layers carries one tensor}}
  %y, %v = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x, %i = %u) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    scf.yield %h, %i : tensor<?x64xf32>, tensor<?x64xf32>
  }
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// It may overwrite it.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{the tensor a loop carries must be its own}}
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %n = lm.rms_norm %h, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %z = gemm.matmul %n, @w epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  %n = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Or an inner loop, again and again.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %u = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c1 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    // expected-error @below {{the tensor a loop carries must be its own}}
    %v = scf.for %i = %c0 to %c1 step %c1 iter_args(%j = %u) -> tensor<?x64xf32> {
      %n = lm.rms_norm %j, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
      %m = gemm.matmul %n, @w epilogue(<add_residual>) residual(%j : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
      scf.yield %m : tensor<?x64xf32>
    }
    %z = gemm.matmul %v, @w epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// It is a tensor.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{the tensor a loop carries must be its own}}
  %i = scf.for %layer = %c0 to %c0 step %c0 iter_args(%j = %c0) -> index {
    scf.yield %j : index
  }
  %y = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// There is no other control flow: all threads take the same way.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %true = arith.constant true
  // expected-error @below {{'scf.if' op cannot be in a phase; only loops over layers can hold operations}}
  scf.if %true {
  }
  %y = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Sums take the place of what nobody else needs.
lm.weight @embedding : tensor<320x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @head : tensor<320x64xf32> from ["h"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.all_reduce' op must be the last to use what an operation made for it}}
  %s = lm.all_reduce %x : tensor<?x64xf32> -> tensor<?x64xf32>
  %z = gemm.matmul %s, @w epilogue(<add_residual>) residual(%x : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gather_rows %z, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  %l = gemm.matmul %g, @head epilogue(<none>) : tensor<?x64xf32> -> tensor<?x320xf32>
  return %l : tensor<?x320xf32>
}

// -----

// The workspace is where ranks add up, and logits are not there.
lm.weight @embedding : tensor<320x64xf32> from ["e"]
lm.weight @head : tensor<320x64xf32> from ["h"] shard <columns, ranks = 2>
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  %l = gemm.matmul %g, @head epilogue(<none>) : tensor<?x64xf32> -> tensor<?x320xf32>
  // expected-error @below {{'lm.all_reduce' op sums in the workspace, where logits are not; divide their channels and use lm.all_gather}}
  %s = lm.all_reduce %l : tensor<?x320xf32> -> tensor<?x320xf32>
  return %s : tensor<?x320xf32>
}
