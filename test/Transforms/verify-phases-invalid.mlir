// RUN: sandwich-opt %s -lm-verify-phases -split-input-file -verify-diagnostics

// A null pointer would be loaded where the model runs.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'llvm.mlir.zero' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  %p = llvm.mlir.zero : !llvm.ptr
  %l = llvm.load %p : !llvm.ptr -> i64
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Nobody knows what assembly does.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'llvm.inline_asm' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  llvm.inline_asm has_side_effects "ud2", "" : () -> ()
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Nor what other functions do, which can only be called in one.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'func.func' op cannot be in a model; only weights, functions with 'lm.phase', lm.sampling and the module of kernels can}}
func.func private @helper()
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// However deep a call lies.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {
    // expected-error @below {{'func.call' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
    func.call @prefill(%ids, %ids, %ids, %segments, %ids, %ids, %cache) : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4xi32>, tensor<?xi32>, tensor<?xi32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
  }
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// A module in a phase has symbols of its own.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'builtin.module' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  builtin.module {
  }
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Nothing in a model computes with constants of other types.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'arith.constant' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  %huge = arith.constant dense<1.0> : tensor<1073741824xf32>
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// What LLVM would take from a function stays out of a model.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'func.func' op cannot have an attribute "passthrough" in a model}}
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>, passthrough = ["naked"]} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// So does what it would take from an argument,
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'func.func' op cannot have attributes of arguments and results in a model}}
func.func @prefill(%ids: tensor<?xi32> {llvm.noalias}, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// or from an operation.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op cannot have an attribute "llvm.note" in a model}}
  %x = lm.embed %ids, @e {llvm.note = 1 : i64} : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// The runtime prepares the same for every phase.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions and cache slots (tensor<?xi32>), segments (tensor<?x4xi32>), block tables and logit rows (tensor<?xi32>), a cache, and token types (tensor<?xi32>) if it reads them, and returns rows (tensor<?xNxf32>)}}
func.func @prefill(%ids: tensor<?xi32>) attributes {lm.phase = #lm.phase<prefill>} {
  return
}

// -----

// There is no third layer of two.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    // expected-error @below {{'lm.rms_norm' op has a layer that is neither a constant nor counted by a loop from 0 to at most 2}}
    %n = lm.rms_norm %x, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// A constant is a layer that there is.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.rms_norm' op has a layer that is neither a constant nor counted by a loop from 0 to at most 2}}
  %n = lm.rms_norm %x, @n[%c2] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// The count begins with the first.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'scf.for' op must count layers, from 0 to at most 4096}}
  scf.for %i = %c1 to %c2 step %c1 {
    %n = lm.rms_norm %x, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// The cache has layers too.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<16x64xf32> layers 3 from ["w{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    %k = lm.linear %x, @w[%i] : tensor<?x64xf32> -> tensor<?x16xf32>
    // expected-error @below {{'lm.append_kv' op has a layer that is neither a constant nor counted by a loop from 0 to at most 2}}
    lm.append_kv %k, %k to %cache[%i] slots %slots : tensor<?x16xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>, tensor<?xi32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// A token id can be any of the vocabulary.
lm.weight @e : tensor<63x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op needs the 64 rows of the vocabulary, weight @e has 63}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// All ranks look up all tokens,
lm.weight @e : tensor<64x64xf32> from ["e"] shard <first, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op needs weight @e whole, not in shards of 'first'}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// and normalize all channels alike.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"] shard <first, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.rms_norm' op needs weight @n whole, not in shards of 'first'}}
  %n = lm.rms_norm %x, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Every rank would add the bias to its part of the sum.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <columns, ranks = 2>
lm.weight @b : tensor<64xf32> from ["b"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.linear' op needs weight @b in shards of 'first', not whole}}
  %l = lm.linear %x, @w bias @b : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Ranks have different parts of a sum.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <columns, ranks = 2>
lm.weight @n : tensor<64xf32> from ["n"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %l = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.rms_norm' op reads the result of lm.linear, one rank's part, before lm.all_reduce sums it}}
  %n = lm.rms_norm %l, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Every rank would add what all have.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <columns, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %l = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.add' op sums what is one rank's part and what all ranks have alike}}
  %s = lm.add %l, %x : tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// What is no part of a sum is not summed.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <columns, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.all_reduce' op sums what is no part of a sum over the ranks}}
  %s = lm.all_reduce %x : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// A residual is dealt only to what is summed.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'gemm.matmul' op has an epilogue that does not fit a weight of which ranks have no columns}}
  %s = gemm.matmul %x, @w epilogue(<add_residual>) residual(%x : tensor<?x64xf32> among 2) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// All in a module are of the same ranks.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"] shard <rows, ranks = 2>
// expected-error @below {{'lm.weight' op is a shard of 3 ranks, others are of 2}}
lm.weight @v : tensor<64x64xf32> from ["v"] shard <rows, ranks = 3>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// A step would not end, whether something has layers or not.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 9223372036854775807 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'scf.for' op must count layers, from 0 to at most 4096}}
  %y = scf.for %i = %c0 to %end step %c1 iter_args(%carried = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %carried, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %s = gemm.matmul %n, @w epilogue(<add_residual>) residual(%carried : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %s : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// Nothing has so many layers.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 4097 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'scf.for' op must count layers, from 0 to at most 4096}}
  %y = scf.for %i = %c0 to %end step %c1 iter_args(%carried = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %carried, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %s = gemm.matmul %n, @w epilogue(<add_residual>) residual(%carried : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %s : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// A loop goes on.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'scf.for' op must count layers, from 0 to at most 4096}}
  %y = scf.for %i = %c0 to %c1 step %c0 iter_args(%carried = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %carried, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %s = gemm.matmul %n, @w epilogue(<add_residual>) residual(%carried : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %s : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// The first layer is 0.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @n : tensor<64xf32> from ["n"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'scf.for' op must count layers, from 0 to at most 4096}}
  %y = scf.for %i = %c1 to %c1 step %c1 iter_args(%carried = %x) -> (tensor<?x64xf32>) {
    %n = lm.rms_norm %carried, @n epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    %s = gemm.matmul %n, @w epilogue(<add_residual>) residual(%carried : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %s : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// Loops in loops would take as long as one that counts further.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'scf.for' op is in another loop, but a layer has no layers}}
    scf.for %j = %c0 to %c1 step %c1 {
    }
  }
  return %x : tensor<?x64xf32>
}

// -----

// The runtime knows that token ids are below the vocabulary's size, not that
// positions are.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  // expected-error @below {{'lm.embed' op must take the token ids that its phase takes}}
  %x = lm.embed %positions, @e : tensor<?xi32> -> tensor<?x64xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Angles are those of positions.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x2xf32> attributes {lm.phase = #lm.phase<decode>} {
  // expected-error @below {{'lm.rotary_table' op must take the positions that its phase takes}}
  %x = lm.rotary_table %rows frequencies [1.0] : tensor<?xi32> -> tensor<?x2xf32>
  %g = lm.gather_rows %x, %rows : tensor<?x2xf32>, tensor<?xi32> -> tensor<?x2xf32>
  return %g : tensor<?x2xf32>
}

// -----

// Attention stays within the cache's blocks of its sequences.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lm.attention' op must take the block tables that its phase takes}}
    %a = lm.attention %x, %cache[%i] segments %segments blocks %ids scale 1.0
      : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  }
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// It reads what it is told of them, not what was carried on.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %last = scf.for %i = %c0 to %c1 step %c1 iter_args(%carried = %segments) -> (tensor<?x4xi32>) {
    // expected-error @below {{'lm.attention' op must take the segments that its phase takes}}
    %a = lm.attention %x, %cache[%i] segments %carried blocks %blocks scale 1.0
      : tensor<?x64xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
    scf.yield %carried : tensor<?x4xi32>
  }
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Keys and values go where nothing else lies.
lm.weight @e : tensor<320x64xf32> from ["e"]
lm.weight @qkv : tensor<128x64xf32> layers 2 from ["q{}", "k{}", "v{}"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %t = lm.rotary_table %positions frequencies [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.29, 0.28, 0.27, 0.26, 0.25, 0.24, 0.23, 0.22] : tensor<?xi32> -> tensor<?x32xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'gemm.matmul' op must take the cache slots that its phase takes}}
    %q = gemm.matmul %x, @qkv[%i] epilogue(<rotate_append_kv>) rotary(%t : tensor<?x32xf32>)
      cache(%cache : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) slots(%positions : tensor<?xi32>)
      : tensor<?x64xf32> -> tensor<?x64xf32>
  }
  %g = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Rows that are gathered exist.
lm.weight @e : tensor<320x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x64xf32> attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.gather_rows' op must take the logit rows that its phase takes}}
  %g = lm.gather_rows %x, %ids : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %g : tensor<?x64xf32>
}

// -----

// Nor before it is fused with its projections.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @k : tensor<16x64xf32> from ["k"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %end = arith.constant 2 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %k = lm.linear %x, @k : tensor<?x64xf32> -> tensor<?x16xf32>
  scf.for %i = %c0 to %end step %c1 {
    // expected-error @below {{'lm.append_kv' op must take the cache slots that its phase takes}}
    lm.append_kv %k, %k to %cache[%i] slots %rows : tensor<?x16xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>, tensor<?xi32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// Without any function there is nothing that would not be looked at.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'llvm.func' op cannot be in a model; only weights, functions with 'lm.phase', lm.sampling and the module of kernels can}}
llvm.func @constructor() {
  llvm.return
}

// -----

// The heads of a token are on the stack of a thread all at once.
lm.weight @e : tensor<64x1048576xf32> from ["e"]
lm.weight @w : tensor<64x1048576xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x1048576xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: attention of its phase would keep 8519680 bytes there, at most 1048576 are accepted}}
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      : tensor<?x1048576xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x1048576xf32>
  }
  %l = lm.linear %x, @w : tensor<?x1048576xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// So are those of attention to other numbers of heads.
lm.weight @e : tensor<64x65536xf32> from ["e"]
lm.weight @f : tensor<64x66560xf32> from ["f"]
lm.weight @w : tensor<64x65536xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x65536xf32>
  %y = lm.embed %ids, @f : tensor<?xi32> -> tensor<?x66560xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      : tensor<?x65536xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x65536xf32>
    %b = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      : tensor<?x65536xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x65536xf32>
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: attention of its phase would keep 1073280 bytes there, at most 1048576 are accepted}}
    %c = lm.attention %y, %cache[%i] segments %segments blocks %blocks scale 1.0
      : tensor<?x66560xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x66560xf32>
  }
  %l = lm.linear %x, @w : tensor<?x65536xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// Tiles of other numbers of heads have memory of their own.
lm.weight @e : tensor<64x65536xf32> from ["e"]
lm.weight @w : tensor<64x65536xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x65536xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: attention of its phase would keep 1064960 bytes there, at most 1048576 are accepted}}
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[1, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>,
                 [2, ?] : <decode = [2, 1, 1], split = 1, prefill = [1, 1, 1]>,
                 [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>)
      : tensor<?x65536xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x65536xf32>
  }
  %l = lm.linear %x, @w : tensor<?x65536xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// So have those of several tokens, of which one, as large as can be, is accepted.
lm.weight @e : tensor<64x1024xf32> from ["e"]
lm.weight @w : tensor<64x1024xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x1024xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: tiles of attention of its phase would keep 838464 bytes there, at most 786432 are accepted}}
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[1, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 1]>,
                 [2, ?] : <decode = [1, 1, 1], split = 1, prefill = [15, 1, 1]>,
                 [3, ?] : <decode = [1, 1, 1], split = 1, prefill = [14, 1, 1]>,
                 [4, ?] : <decode = [1, 1, 1], split = 1, prefill = [13, 1, 1]>,
                 [5, ?] : <decode = [1, 1, 1], split = 1, prefill = [12, 1, 1]>,
                 [6, ?] : <decode = [1, 1, 1], split = 1, prefill = [11, 1, 1]>,
                 [7, ?] : <decode = [1, 1, 1], split = 1, prefill = [10, 1, 1]>,
                 [8, ?] : <decode = [1, 1, 1], split = 1, prefill = [9, 1, 1]>,
                 [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>)
      : tensor<?x1024xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x1024xf32>
  }
  %l = lm.linear %x, @w : tensor<?x1024xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// So have scores.
lm.weight @e : tensor<64x1024xf32> from ["e"]
lm.weight @w : tensor<64x1024xf32> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x1024xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: tiles of attention of its phase would keep 797760 bytes there, at most 786432 are accepted}}
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[1, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 64]>,
                 [2, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 63]>,
                 [3, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 62]>,
                 [4, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 61]>,
                 [5, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 60]>,
                 [6, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 59]>,
                 [7, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 58]>,
                 [8, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 57]>,
                 [9, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 56]>,
                 [10, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 55]>,
                 [11, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 54]>,
                 [12, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 53]>,
                 [13, ?] : <decode = [1, 1, 1], split = 1, prefill = [16, 1, 52]>,
                 [?, ?] : <decode = [1, 1, 1], split = 1, prefill = [1, 1, 1]>>)
      : tensor<?x1024xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x1024xf32>
  }
  %l = lm.linear %x, @w : tensor<?x1024xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// Several tiles keep as much as as many rows, and what is packed for matrix
// instructions has memory of its own.
lm.weight @e : tensor<64x1024xbf16> from ["e"]
lm.weight @w : tensor<64x1024xbf16> from ["w"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, bf16>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x1024xf32>
  scf.for %i = %c0 to %c1 step %c1 {
    %a = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [8, 1, 4], tiles = 8>>)
      : tensor<?x1024xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x1024xf32>
    // expected-error @below {{'lm.attention' op needs too much of a thread's stack: tiles of attention of its phase would keep 998976 bytes there, at most 786432 are accepted}}
    %b = lm.attention %x, %cache[%i] segments %segments blocks %blocks scale 1.0
      schedules(<[?, ?] : <decode = [1, 1, 1], split = 1, prefill = [8, 1, 4], tiles = 4, instructions = X86_AVX512_BF16>>)
      : tensor<?x1024xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 1024, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x1024xf32>
  }
  %l = lm.linear %x, @w : tensor<?x1024xf32> -> tensor<?x64xf32>
  return %l : tensor<?x64xf32>
}

// -----

// Logits are of the rows that are asked for, not of segments.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.pool' op makes a row for each segment, but a phase that is for prefill returns others}}
  %y = lm.pool %x, %segments <mean> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// So are the vectors of tokens.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @embed_tokens(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<embed_tokens>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.pool' op makes a row for each segment, but a phase that is for embed_tokens returns others}}
  %y = lm.pool %x, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Types are looked up by what the phase was given as types.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @embed(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>, %types: tensor<?xi32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<embed>} {
  // expected-error @below {{'lm.embed' op must take the token types that its phase takes}}
  %x = lm.embed %ids, @e of <token_types> : tensor<?xi32> -> tensor<?x64xf32>
  %y = lm.pool %x, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Which it may not be given.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @embed(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<embed>} {
  // expected-error @below {{'lm.embed' op must take the token types that its phase takes}}
  %x = lm.embed %ids, @e of <token_types> : tensor<?xi32> -> tensor<?x64xf32>
  %y = lm.pool %x, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A layer that is a constant is one of the cache's, too.
lm.weight @e : tensor<64x16xf32> from ["e"]
func.func @embed(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x16xf32>
    attributes {lm.phase = #lm.phase<embed>} {
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x16xf32>
  // expected-error @below {{'lm.append_kv' op has a layer that is neither a constant nor counted by a loop from 0 to at most 2}}
  lm.append_kv %x, %x to %cache[%c2] slots %slots : tensor<?x16xf32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>, tensor<?xi32>
  %y = lm.pool %x, %segments <cls> : tensor<?x16xf32>, tensor<?x4xi32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// What is in the module of kernels is kernels, of known operations.

lm.weight @w : tensor<4xf32> from ["w"]
module @kernels {
  // expected-error @below {{'func.func' op cannot be in a kernel}}
  func.func @f() { return }
}

// -----

lm.weight @w : tensor<4xf32> from ["w"]
module @kernels {
  func.func @f(%x: f32) attributes {block.parameters = #block.parameters<>} {
    // expected-error @below {{'scf.while' op cannot be in a kernel}}
    scf.while : () -> () {
      %more = arith.constant false
      scf.condition(%more)
    } do {
      scf.yield
    }
    return
  }
}

// -----

// Tokens are drawn in one way.
lm.sampling 64
// expected-error @below {{'lm.sampling' op is there twice}}
lm.sampling 64

// -----

// A kernel would read beyond the logits.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'lm.sampling' op is of 65 logits, and @decode returns 64}}
lm.sampling 65
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = lm.gather_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// An encoder has no tokens to draw.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'lm.sampling' op is of a model that generates text, and @embed returns no logits}}
lm.sampling 64
func.func @embed(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<embed>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  %y = lm.pool %x, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// What draws is a kernel of the module.
// expected-error @below {{'lm.sampling' op is computed by @kernels::@sampling, which is no kernel of the module}}
lm.sampling 64 {lm.kernel = #lm.kernel<@kernels::@sampling>}

// -----

// It draws for all phases, and is in none.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<decode>} {
  // expected-error @below {{'lm.sampling' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  lm.sampling 64
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// What it becomes has a name.
// expected-error @below {{cannot be called @sampling beside lm.sampling}}
lm.weight @sampling : tensor<64x64xf32> from ["e"]
lm.sampling 64
