//===- LMOps.td - Operations of lm -------------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMOPS_TD
#define SANDWICH_DIALECT_LM_IR_LMOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "sandwich/Dialect/LM/IR/LMInterfaces.td"
include "sandwich/Dialect/LM/IR/LMOperands.td"

class LM_Op<string mnemonic, list<Trait> traits = []>
    : Op<LM_Dialect, mnemonic, traits>;

/// What an operation tells of itself, of `StepOpInterface`, beside defaults.
class LM_Tells<list<string> methods>
    : DeclareOpInterfaceMethods<LM_StepOpInterface, methods>;

/// An operation that a kernel can compute, beside defaults.
class LM_ByKernel<list<string> methods = []>
    : DeclareOpInterfaceMethods<LM_KernelOpInterface, methods>;

/// An operation that exists in tensor form only; a later pass fuses it away.
class LM_TensorOp<string mnemonic, list<Trait> traits = [],
                  list<string> told = []>
    : LM_Op<mnemonic, !listconcat(traits, [Pure, LM_Tells<told>])> {
  let extraClassDeclaration = "bool hasBufferForm() { return false; }";
}

/// An operation with a tensor form (one result, no destination) and a buffer
/// form (a destination, no result): constraint (C1) of every such operation.
class LM_DestinationOp<string mnemonic, list<Trait> traits = [],
                       list<string> told = []>
    : LM_Op<mnemonic, !listconcat(traits, [
        LM_Tells<told>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>])> {
  let hasVerifier = 1;
  // Most write their destination and read all else.
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance>
            &effects) {
      ::sandwich::lm::getBufferEffects(*this, getDestinationMutable(), effects);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

def LM_WeightOp : LM_Op<"weight", [Symbol]> {
  let summary = "A weight of the model, by name";
  let description = [{
    Names a tensor that is stored in the artifact and says which tensors of
    the checkpoint it is made from. With `layers`, there is one slice of the
    given type for each layer, and `{}` in a source stands for its number.
    Several sources are concatenated along the rows, or, with `interleave`,
    alternate in groups of that many rows, each source's last group filled up
    with zeros.

    With `storage`, its values are rounded to numbers that share scales; without,
    they are stored as elements of the type.

    With `shard`, it is what one rank of a group has of the sources.

    `packing`, `offset` and `layer_stride` (bytes) say how and where the
    artifact stores it, once passes have decided.

    ```mlir
    lm.weight @q_proj : tensor<2048x2048xbf16> layers 24
        from ["model.layers.{}.self_attn.q_proj.weight"]
    lm.weight @o_proj : tensor<2048x2048xf32> layers 24
        from ["model.layers.{}.self_attn.o_proj.weight"]
        storage <int4, group = 32, scale = f16>
    ```

    Constraints: (C1) the type has one or two static dimensions between 1 and
    2147483647 and no encoding; (C2) there is at least one source;
    (C3) `layers` is between 1 and 4096, and a source contains `{}` if and
    only if it is given; (C4) `interleave` is between 1 and 4096, on a weight
    with two dimensions whose rows all sources have the same share of; (C5) all
    layers together have fewer than 2^48 elements; (C6) `packing` is on a weight
    with two dimensions, the second a multiple of its `k_step`; (C7) `offset` is
    a multiple of 64 and not negative; (C8) `layer_stride` is given if and only
    if `offset` and `layers` are, a multiple of 64 and no less than the bytes of
    a slice; (C9) a weight in shards of `columns` has two dimensions; (C10)
    `storage` is on a weight of f32 with two dimensions, the second a multiple of
    a group; it has a packing if it has an offset.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      TypeAttrOf<RankedTensorOf<[F32, BF16]>>:$type,
      OptionalAttr<I64Attr>:$layers, StrArrayAttr:$sources,
      OptionalAttr<I64Attr>:$interleave,
      OptionalAttr<LM_StorageAttr>:$storage,
      OptionalAttr<LM_ShardAttr>:$shard,
      OptionalAttr<LM_PackingAttrInterface>:$packing,
      OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$layer_stride);
  let assemblyFormat = [{
    $sym_name `:` $type (`layers` $layers^)? `from` $sources
    (`interleave` $interleave^)? (`storage` $storage^)? (`shard` $shard^)?
    (`packing` $packing^)?
    (`at` $offset^ (`stride` $layer_stride^)?)? attr-dict
  }];
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type,
                   "::mlir::ArrayAttr":$sources,
                   CArg<"std::optional<int64_t>", "{}">:$layers)>
  ];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::mlir::cast<::mlir::RankedTensorType>(getType());
    }
    /// How its numbers are stored.
    ::sandwich::StorageFormat getStorageFormat();
    /// Rows of a slice as stored: with those that fill up interleaved groups,
    /// but not those that fill up a packing.
    int64_t getStoredRows();
    /// The buffer of one slice: its packing's, or row-major without one.
    ::mlir::MemRefType getBufferType();
    /// Bytes of one slice in the artifact.
    int64_t getSliceBytes();
  }];
}

//===----------------------------------------------------------------------===//
// Operations that survive to code generation
//===----------------------------------------------------------------------===//

def LM_EmbedOp : LM_DestinationOp<"embed", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>],
    ["getPhaseInputs", "splitsRows", "getWeightUses"]> {
  let summary = "Rows of an embedding table";
  let description = [{
    `result[t, :] = weight[indices[t] + offset, :]`, widened to the result's
    type. What the phase was given for each token (`of`) is its id, where it is
    not said; or its type, the number of the text that it is of; or its position,
    where those are learned (BERT; `offset` 2 in RoBERTa).

    ```mlir
    %x = lm.embed %ids, @words : tensor<?xi32> -> tensor<?x768xf32>
    %p = lm.embed %positions, @positions of <positions> offset 2 : tensor<?xi32> -> tensor<?x768xf32>
    ```

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) the weight exists, has two dimensions, the result's channels and no
    layers, and is not interleaved; (C3) `offset` is not negative and below the
    weight's rows, and 0 but for positions.
  }];
  let arguments = (ins LM_Indices:$indices, FlatSymbolRefAttr:$weight,
      DefaultValuedAttr<LM_EmbeddedInputAttr,
          "::sandwich::lm::EmbeddedInput::TokenIds">:$input,
      DefaultValuedAttr<I64Attr, "0">:$offset,
      Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $indices `,` $weight (`of` $input^)? (`offset` $offset^)?
    (`into` $destination^)? attr-dict
    `:` type($indices) (`into` type($destination)^)? (`->` type($result)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$indices,
                   "::mlir::FlatSymbolRefAttr":$weight,
                   CArg<"::sandwich::lm::EmbeddedInput",
                        "::sandwich::lm::EmbeddedInput::TokenIds">:$input,
                   CArg<"int64_t", "0">:$offset)>
  ];
}

def LM_RMSNormOp : LM_DestinationOp<"rms_norm", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    LM_ByKernel<>],
    ["splitsRows", "getWeightUses", "canNarrowResult"]> {
  let summary = "Root-mean-square normalization";
  let description = [{
    Over each consecutive group of as many channels as the weight has (the
    whole row for a layer's norm, one head for the query and key norms of
    Qwen3): `x / sqrt(mean(x * x) + epsilon) * weight`, in f32, rounded to the
    result's type.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels; (C3) the weight
    exists, has one dimension that divides the channels, and layers if and only
    if one is given; (C4) `epsilon` is finite and positive.
  }];
  let arguments = (ins LM_Activation:$input, FlatSymbolRefAttr:$weight,
                       Optional<Index>:$layer, F32Attr:$epsilon,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight (`[` $layer^ `]`)? `epsilon` $epsilon
    (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }];
}

def LM_LayerNormOp : LM_DestinationOp<"layer_norm", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    LM_ByKernel<>],
    ["splitsRows", "getWeightUses", "getOverwritten", "canNarrowResult"]> {
  let summary = "Layer normalization";
  let description = [{
    Over all channels of a row: `(x - mean(x)) / sqrt(variance(x) + epsilon) *
    weight + bias`, in f32, rounded to the result's type. The variance is that
    of the row itself, the mean square of its distances from the mean (Ba et
    al., 2016).

    ```mlir
    %y = lm.layer_norm %x, @norm bias @norm.bias[%layer] epsilon 1.0e-12 : tensor<?x768xf32>
    ```

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels; (C3) weight and bias
    exist, have one dimension, the channels, and layers if and only if one is
    given; (C4) `epsilon` is finite and positive.
  }];
  let arguments = (ins LM_Activation:$input, FlatSymbolRefAttr:$weight,
                       FlatSymbolRefAttr:$bias, Optional<Index>:$layer,
                       F32Attr:$epsilon,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight `bias` $bias (`[` $layer^ `]`)? `epsilon` $epsilon
    (`into` $destination^)? attr-dict
    `:` type($input)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

def LM_L2NormalizeOp : LM_DestinationOp<"l2_normalize", [LM_ByKernel<>],
    ["splitsRows", "getOverwritten", "canNarrowResult"]> {
  let summary = "Rows of length one";
  let description = [{
    `x / max(sqrt(sum(x * x)), 1e-12)` over all channels of a row, in f32,
    rounded to the result's type: what makes a scalar product of embeddings their
    cosine.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$input,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input (`into` $destination^)? attr-dict `:` type($input)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

def LM_RotaryTableOp : LM_DestinationOp<"rotary_table", [],
    ["getPhaseInputs", "splitsRows"]> {
  let summary = "Cosines and sines of the rotary position embedding";
  let description = [{
    `result[t, i] = cos(positions[t] * frequencies[i])` for the first half of
    the channels, and the sine for the second half. Frequencies are in radians
    a position and already carry the model's RoPE scaling. Computed once a
    step, used by every layer.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) the result is f32 with twice as many channels as there are frequencies;
    (C3) frequencies are finite and not negative.
  }];
  let arguments = (ins LM_Indices:$positions,
                       DenseF32ArrayAttr:$frequencies,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $positions `frequencies` custom<Frequencies>($frequencies) (`into` $destination^)? attr-dict
    `:` type($positions) (`into` type($destination)^)? (`->` type($result)^)?
  }];
}

def LM_AttentionOp : LM_DestinationOp<"attention", [AttrSizedOperandSegments,
    LM_ByKernel<["getKernelConstants"]>],
    ["getPhaseInputs", "canNarrowResult", "getPartialSumsBytes",
     "getCost"]> {
  let summary = "Attention over the paged cache";
  let description = [{
    For each token and query head, softmax of `scale * query . key` over the
    positions of the token's sequence up to its own, or, where it is
    `bidirectional`, up to its segment's last, times the values; keys and values
    come from the cache, where this step's own tokens have been written
    before. `segments` says which tokens follow each other in a sequence, and
    which of the `blocks` are that sequence's. Query heads share the cache's
    heads in equal groups. The softmax streams over blocks (FlashAttention), so
    no score matrix is stored. `schedules` say how; `partial_sums` is memory for
    parts of contexts that are computed apart. Who runs a `bidirectional` program
    gives it whole sequences, each as one segment: nothing in it knows of tokens
    that come later.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) query and result have the same number of channels, a multiple of the
    cache's heads times its head_dim; (C3) a cache's buffer is that of a
    `!lm.kv_cache`; (C4) `scale` is finite and positive; (C5) rows of `decode`
    schedules divide the query heads that share one of the cache's, and
    `instructions` have a cache of bf16, with heads of a multiple of 16 channels;
    (C6) in buffer form, schedules that split have partial sums.
  }];
  let arguments = (ins LM_Activation:$query, LM_KVCache:$kv_cache,
                       Index:$layer, LM_Segments:$segments,
                       LM_Indices:$block_tables, F32Attr:$scale,
                       UnitAttr:$bidirectional,
                       OptionalAttr<LM_AttentionTableAttr>:$schedules,
                       Optional<LM_PartialSums>:$partial_sums,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $query `,` $kv_cache `[` $layer `]` `segments` $segments
    `blocks` $block_tables `scale` $scale (`bidirectional` $bidirectional^)?
    (`schedules` `(` $schedules^ `)`)?
    (`partial_sums` `(` $partial_sums^ `:` type($partial_sums) `)`)?
    (`into` $destination^)? attr-dict
    `:` type($query) `,` type($kv_cache) `,` type($segments) `,`
    type($block_tables) (`into` type($destination)^)? (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::sandwich::AttentionShape getShape();
  }];
  // Partial sums are written as well.
  let extraClassDefinition = "";
}

def LM_GatherRowsOp : LM_DestinationOp<"gather_rows", [],
    ["getPhaseInputs", "getResultRows"]> {
  let summary = "Chosen rows of an activation";
  let description = [{
    `result[i, :] = input[rows[i], :]`: the tokens whose logits are wanted.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result agree in everything but the rows.
  }];
  let arguments = (ins LM_Activation:$input, LM_Indices:$rows,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $rows (`into` $destination^)? attr-dict
    `:` type($input) `,` type($rows) (`into` type($destination)^)?
    (`->` type($result)^)?
  }];
}

def LM_PoolOp : LM_DestinationOp<"pool", [],
    ["getPhaseInputs", "getResultRows", "canNarrowResult"]> {
  let summary = "One row for each segment";
  let description = [{
    Of the rows of each segment, which is a whole text, `cls` takes the first,
    `last` the last, and `mean` their mean, added in f64, rounded to the result's
    type. There are as many results as rows that the phase returns, so whoever
    runs it asks for as many as there are segments.

    ```mlir
    %y = lm.pool %x, %segments <mean> : tensor<?x768xf32>, tensor<?x4xi32> -> tensor<?x768xf32>
    ```

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$input, LM_Segments:$segments,
                       LM_PoolKindAttr:$kind,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $segments $kind (`into` $destination^)? attr-dict
    `:` type($input) `,` type($segments) (`into` type($destination)^)?
    (`->` type($result)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Operations of several ranks
//===----------------------------------------------------------------------===//

def LM_AllReduceOp : LM_DestinationOp<"all_reduce", [],
    ["getOverwritten"]> {
  let summary = "The sum over ranks";
  let description = [{
    Every rank of the tensor-parallel group has an `input` of its own; the
    result of each is the sum of all, added in the order of the ranks, so it is
    the same everywhere to the last bit. All ranks meet in it.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result are f32 with the same number of channels; (C3) in
    buffer form the destination is the input, and its rows follow each other
    without gaps.
  }];
  let arguments = (ins LM_Activation:$input,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }];
}

def LM_AllGatherOp : LM_DestinationOp<"all_gather"> {
  let summary = "The channels of all ranks";
  let description = [{
    `result[t, r * n + i]` is `input[t, i]` of rank r, n being the channels of
    the input: every rank gets those of all, which meet in it.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result are f32, the result has 2 to 64 times the input's
    channels; (C3) in buffer form the rows of both follow each other without
    gaps.
  }];
  let arguments = (ins LM_Activation:$input,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    /// Of the group: how many times the input's channels the result has.
    int64_t getRanks();
  }];
}

//===----------------------------------------------------------------------===//
// Operations that fuse into matmuls, or run by themselves
//===----------------------------------------------------------------------===//

def LM_LinearOp : LM_TensorOp<"linear", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>],
    ["getWeightUses", "getCost"]> {
  let summary = "A dense layer";
  let description = [{
    `result = input * transpose(weight) + bias`, with `weight` as
    [output channels, input channels], as checkpoints store it.

    Constraints: (C1) the weight exists, has the result's and the input's
    channels, layers if and only if one is given, and is not interleaved;
    (C2) so does the bias, with the result's channels.
  }];
  let arguments = (ins LM_ActivationTensor:$input, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias,
                       Optional<Index>:$layer);
  let results = (outs LM_ActivationTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? (`[` $layer^ `]`)? attr-dict
    `:` type($input) `->` type($result)
  }];
}

def LM_RotateOp : LM_DestinationOp<"rotate", [LM_ByKernel<>],
    ["splitsRows", "getOverwritten"]> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates each head's channel pairs (i, i + head_dim/2) by the angles of the
    table, whose channels say what head_dim is.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result agree in channels and elements; (C3) the table's
    channels are even, and the input's a multiple of them.
  }];
  let arguments = (ins LM_Activation:$input, LM_Activation:$table,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `,` $table (`into` $destination^)? attr-dict
    `:` type($input) `,` type($table)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

def LM_AppendKVOp : LM_Op<"append_kv", [
    LM_Tells<["getPhaseInputs", "splitsRows"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Writes a step's keys and values to the cache";
  let description = [{
    Those of token t go to the place `slots[t]`: block times 16 and the place in
    that block.

    Constraints: (C1) keys and values have as many channels as the cache has
    heads times head_dim; (C2) a cache's buffer is that of a `!lm.kv_cache`;
    (C3) all operands are tensors and a cache, or all are buffers.
  }];
  let arguments = (ins LM_Activation:$key, LM_Activation:$value,
      LM_KVCache:$kv_cache, Index:$layer, LM_Indices:$slots);
  let assemblyFormat = [{
    $key `,` $value `to` $kv_cache `[` $layer `]` `slots` $slots attr-dict
    `:` custom<AppendTypes>(type($key), type($value), type($kv_cache),
                            type($slots))
  }];
  let hasVerifier = 1;
}

def LM_SiluMulOp : LM_DestinationOp<"silu_mul", [LM_ByKernel<>],
    ["splitsRows", "getOverwritten", "canNarrowResult"]> {
  let summary = "The gated activation of the feed-forward block";
  let description = [{
    `result = gate * sigmoid(gate) * up`, rounded to the result's type.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) operands and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$gate, LM_Activation:$up,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $gate `,` $up (`into` $destination^)? attr-dict
    `:` custom<PairTypes>(type($gate), type($up), type($destination),
                          type($result))
  }];
}

def LM_GeluOp : LM_DestinationOp<"gelu", [LM_ByKernel<["getKernelConstants"]>],
    ["splitsRows", "getOverwritten", "canNarrowResult"]> {
  let summary = "The activation of the feed-forward block, without a gate";
  let description = [{
    Of each element, rounded to the result's type (Hendrycks and Gimpel, 2016):
    `exact` is `x * (1 + erf(x / sqrt(2))) / 2`; `tanh` is
    `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2`.

    ```mlir
    %y = lm.gelu %x <exact> : tensor<?x3072xf32>
    ```

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$input, LM_GeluKindAttr:$kind,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input $kind (`into` $destination^)? attr-dict `:` type($input)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

def LM_TanhOp : LM_DestinationOp<"tanh", [LM_ByKernel<>],
    ["splitsRows", "getOverwritten", "canNarrowResult"]> {
  let summary = "The activation of a classification head";
  let description = [{
    `tanh(x)` of each element, rounded to the result's type.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$input,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input (`into` $destination^)? attr-dict `:` type($input)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

def LM_AddOp : LM_DestinationOp<"add", [LM_ByKernel<>],
    ["splitsRows", "getOverwritten", "canNarrowResult"]> {
  let summary = "The residual connection";
  let description = [{
    `result = lhs + rhs`, rounded to the result's type.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) operands and result have the same number of channels.
  }];
  let arguments = (ins LM_Activation:$lhs, LM_Activation:$rhs,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`into` $destination^)? attr-dict
    `:` custom<PairTypes>(type($lhs), type($rhs), type($destination),
                          type($result))
  }];
}

def LM_RoundOp : LM_DestinationOp<"round", [LM_ByKernel<>],
    ["splitsRows"]> {
  let summary = "A copy of an activation in bf16";
  let description = [{
    `result = input`, rounded to the nearest bf16, ties to even: what matmuls of
    bf16 read where something else needs the input as it is.

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result have the same number of channels; (C3) the input is
    f32, the result bf16.
  }];
  let arguments = (ins LM_Activation:$input,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input (`into` $destination^)? attr-dict
    `:` type($input) (`into` type($destination)^)? (`->` type($result)^)?
  }];
}

def LM_DealRowsOp : LM_DestinationOp<"deal_rows", [],
    ["splitsRows", "getOverwritten"]> {
  let summary = "Rows of which each rank keeps its own";
  let description = [{
    `result[t, :] = input[t, :]` on rank `t mod ranks`, zeros on the others: the
    sum of the results over the ranks is the input, where that is the same on
    all of them. Rows are dealt in turn so that all ranks have as much to do. In
    a module that is `lm.deterministic`, rank 0 has all of them: otherwise the
    order in which a row is summed depended on its place in the step.

    ```mlir
    %own = lm.deal_rows %x among 2 : tensor<?x64xf32>
    %sums = lm.add %own, %part : tensor<?x64xf32>
    %y = lm.all_reduce %sums : tensor<?x64xf32> -> tensor<?x64xf32>
    ```

    Constraints: (C1) tensor form (a result) or buffer form (a destination);
    (C2) input and result agree in channels and elements; (C3) `ranks` is
    between 2 and 64.
  }];
  let arguments = (ins LM_Activation:$input, I64Attr:$ranks,
                       Optional<LM_ActivationBuffer>:$destination);
  let results = (outs Optional<LM_ActivationTensor>:$result);
  let assemblyFormat = [{
    $input `among` $ranks (`into` $destination^)? attr-dict `:` type($input)
    `` custom<ResultType>(ref(type($input)), type($destination), type($result))
  }];
}

//===----------------------------------------------------------------------===//
// Beside the phases
//===----------------------------------------------------------------------===//

def LM_SamplingOp : LM_Op<"sampling", [LM_ByKernel<>]> {
  let summary = "How the token that follows is drawn";
  let description = [{
    Stands beside the phases of a model that generates text. Of a row of
    `vocabulary` logits, after all that a request changes of them, the runtime
    draws a token as it defines (Sampling/Sampler.h); or, at temperatures above
    0, the kernel does that `lm.kernel` says. It is given the logits, the
    options of the request, a number that is drawn from [0, 1), memory for as
    many numbers as there are logits, and memory for the token.

    ```mlir
    lm.sampling 32000 {lm.kernel = #lm.kernel<@kernels::@sampling>}
    ```

    Constraints: (C1) `vocabulary` is between 1 and 2147483647.
  }];
  let arguments = (ins I64Attr:$vocabulary);
  let assemblyFormat = "$vocabulary attr-dict";
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_LM_IR_LMOPS_TD
