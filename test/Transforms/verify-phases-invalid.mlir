// RUN: sandwich-opt %s -lm-verify-phases -split-input-file -verify-diagnostics

// A null pointer would be loaded where the model runs.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'llvm.inline_asm' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
  llvm.inline_asm has_side_effects "ud2", "" : () -> ()
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Nor what other functions do, which can only be called in one.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'func.func' op cannot be in a model; only weights and functions with 'lm.phase' can}}
func.func private @helper()
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// However deep a call lies.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {
    // expected-error @below {{'func.call' op cannot be in a phase; only operations of lm, gemm.matmul, loops over layers and constants of type index can}}
    func.call @prefill(%ids, %ids, %ids, %ids, %cache) : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
  }
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// A module in a phase has symbols of its own.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>, passthrough = ["naked"]} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// So does what it would take from an argument,
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{'func.func' op cannot have attributes of arguments and results in a model}}
func.func @prefill(%ids: tensor<?xi32> {llvm.noalias}, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// or from an operation.
lm.weight @e : tensor<64x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op cannot have an attribute "llvm.note" in a model}}
  %x = lm.embed %ids, @e {llvm.note = 1 : i64} : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// The runtime prepares the same for every phase.
lm.weight @e : tensor<64x64xf32> from ["e"]
// expected-error @below {{a phase takes token ids, positions, sequences and logit rows (tensor<?xi32>) and a cache, and returns logits (tensor<?xNxf32>)}}
func.func @prefill(%ids: tensor<?xi32>) attributes {lm.phase = #lm.phase<prefill>} {
  return
}

// -----

// There is no third layer of two.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    // expected-error @below {{'lm.rms_norm' op has a layer that is not counted by a loop from 0 to at most 2}}
    %n = lm.rms_norm %x, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// A constant is no count.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{'lm.rms_norm' op has a layer that is not counted by a loop from 0 to at most 2}}
  %n = lm.rms_norm %x, @n[%c1] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// Nor is one from another layer than the first.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> layers 2 from ["n{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c1 to %c2 step %c1 {
    // expected-error @below {{'lm.rms_norm' op has a layer that is not counted by a loop from 0 to at most 2}}
    %n = lm.rms_norm %x, @n[%i] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// The cache has layers too.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @w : tensor<16x64xf32> layers 3 from ["w{}"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    %k = lm.linear %x, @w[%i] : tensor<?x64xf32> -> tensor<?x16xf32>
    // expected-error @below {{'lm.append_kv' op has a layer that is not counted by a loop from 0 to at most 2}}
    lm.append_kv %k, %k to %cache[%i] positions %positions sequences %sequences : tensor<?x16xf32>, <layers = 2, heads = 1, head_dim = 16, f32>, tensor<?xi32>, tensor<?xi32>
  }
  return %x : tensor<?x64xf32>
}

// -----

// A token id can be any of the vocabulary.
lm.weight @e : tensor<63x64xf32> from ["e"]
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op needs the 64 rows of the vocabulary, weight @e has 63}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// All ranks look up all tokens,
lm.weight @e : tensor<64x64xf32> from ["e"] shard <first, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  // expected-error @below {{'lm.embed' op needs weight @e whole, not in shards of 'first'}}
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}

// -----

// and normalize all channels alike.
lm.weight @e : tensor<64x64xf32> from ["e"]
lm.weight @n : tensor<64xf32> from ["n"] shard <first, ranks = 2>
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
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
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %sequences: tensor<?xi32>, %rows: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 16, f32>) -> tensor<?x64xf32>
    attributes {lm.phase = #lm.phase<prefill>} {
  %x = lm.embed %ids, @e : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}
