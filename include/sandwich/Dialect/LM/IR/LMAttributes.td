//===- LMAttributes.td - Types and attributes of lm --------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMATTRIBUTES_TD
#define SANDWICH_DIALECT_LM_IR_LMATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "sandwich/Dialect/LM/IR/LMDialect.td"

def LM_Phase : I32EnumAttr<"Phase", "a phase of serving", [
    I32EnumAttrCase<"Prefill", 0, "prefill">,
    I32EnumAttrCase<"Decode", 1, "decode">,
    I32EnumAttrCase<"Embed", 2, "embed">,
    I32EnumAttrCase<"EmbedTokens", 3, "embed_tokens">,
    I32EnumAttrCase<"Classify", 4, "classify">]> {
  let cppNamespace = "::sandwich::lm";
  let genSpecializedAttr = 0;
}

/// Marks a function as a phase's program, under the name `lm.phase`. `prefill`
/// and `decode` return logits; both take any steps, prefill is made for pieces of
/// prompts, decode for single tokens. `embed` returns one embedding for each
/// segment, `embed_tokens` those of the tokens that are asked for, `classify` the
/// scores of each segment.
def LM_PhaseAttr : EnumAttr<LM_Dialect, LM_Phase, "phase"> {
  let assemblyFormat = "`<` $value `>`";
}

def LM_GeluKind : I32EnumAttr<"GeluKind", "how GELU is computed", [
    I32EnumAttrCase<"Exact", 0, "exact">,
    I32EnumAttrCase<"Tanh", 1, "tanh">]> {
  let cppNamespace = "::sandwich::lm";
  let genSpecializedAttr = 0;
}
def LM_GeluKindAttr : EnumAttr<LM_Dialect, LM_GeluKind, "gelu_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def LM_PoolKind : I32EnumAttr<"PoolKind", "what is made of a segment's rows", [
    I32EnumAttrCase<"Cls", 0, "cls">,
    I32EnumAttrCase<"Mean", 1, "mean">,
    I32EnumAttrCase<"Last", 2, "last">]> {
  let cppNamespace = "::sandwich::lm";
  let genSpecializedAttr = 0;
}
def LM_PoolKindAttr : EnumAttr<LM_Dialect, LM_PoolKind, "pool_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def LM_EmbeddedInput : I32EnumAttr<"EmbeddedInput",
    "what of a token is looked up", [
    I32EnumAttrCase<"TokenIds", 0, "token_ids">,
    I32EnumAttrCase<"TokenTypes", 1, "token_types">,
    I32EnumAttrCase<"Positions", 2, "positions">]> {
  let cppNamespace = "::sandwich::lm";
  let genSpecializedAttr = 0;
}
def LM_EmbeddedInputAttr :
    EnumAttr<LM_Dialect, LM_EmbeddedInput, "embedded_input"> {
  let assemblyFormat = "`<` $value `>`";
}

def LM_ShardKind : I32EnumAttr<"ShardKind", "what a rank has of a weight", [
    I32EnumAttrCase<"Rows", 0, "rows">,
    I32EnumAttrCase<"Columns", 1, "columns">,
    I32EnumAttrCase<"First", 2, "first">]> {
  let cppNamespace = "::sandwich::lm";
  let genSpecializedAttr = 0;
}

def LM_ShardAttr : AttrDef<LM_Dialect, "Shard"> {
  let mnemonic = "shard";
  let summary = "What one rank of a tensor-parallel group has of a weight";
  let description = [{
    With `rows` or `columns`, each of the weight's sources is cut along that
    dimension into as many equal parts as there are ranks, and rank r has the
    parts number r (rows of a vector are its elements). With `first`, rank 0 has
    the whole weight and the others have zeros: what all ranks add up counts
    once. The type of the weight is that of one rank's part.

    ```mlir
    lm.weight @o_proj : tensor<2048x1024xbf16> layers 24
        from ["model.layers.{}.self_attn.o_proj.weight"]
        shard #lm.shard<columns, ranks = 2>
    ```

    Constraints: (C1) `ranks` is between 2 and 64.
  }];
  let parameters = (ins EnumParameter<LM_ShardKind>:$kind, "int64_t":$ranks);
  let assemblyFormat = "`<` $kind `,` `ranks` `=` $ranks `>`";
  let genVerifyDecl = 1;
}

def LM_StorageAttr : AttrDef<LM_Dialect, "Storage"> {
  let mnemonic = "storage";
  let summary = "How the numbers of a quantized weight are stored";
  let description = [{
    Integers of 4 or 8 bits, or floats of 8 (`fp8`, which is E4M3FN), in groups
    along K (`group = row`: all of K) that share a scale of f16 or f32: `value =
    scale * number`. With `offset = minimum` the least integer of a group stands
    for its minimum instead, which is stored beside the scale: `value = scale *
    stored + minimum`, where `stored` is not negative. See
    `sandwich::StorageFormat`.

    ```mlir
    #lm.storage<int4, group = 32, scale = f16>
    ```

    Constraints: (C1) numbers are integers, or fp8, which has no minimum; a group
    has a multiple of 16 k, at most 65536.
  }];
  let parameters = (ins "::sandwich::StorageFormat":$format);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def LM_AttentionScheduleAttr : AttrDef<LM_Dialect, "AttentionSchedule"> {
  let mnemonic = "attention_schedule";
  let summary = "How attention runs";
  let description = [{
    Queries that read the same keys are the rows of a tile; `[rows, key_blocks,
    chunk]` are its rows, the blocks of keys that are multiplied at once, and
    the blocks whose scores are held at once. `decode` is for segments of one
    token, whose rows are query heads, `prefill` for longer ones, whose rows are
    tokens and query heads. `split` parts of the context of a segment of one
    token are computed apart and then added up (flash-decoding). `tiles` of
    `prefill` meet a chunk one after another, 1 where it is not said. Its
    `instructions` multiply bf16; without, FMA multiplies f32.

    ```mlir
    #lm.attention_schedule<decode = [4, 2, 2], split = 2, prefill = [12, 2, 12], tiles = 32, instructions = X86_AVX512_BF16>
    ```

    Constraints: (C1) rows are 1 to 16; chunks are 1 to 64, and multiples of
    `key_blocks`; rows times `key_blocks` are at most 64; `split` is 1 to 1024;
    `tiles` is 1 to 64; `instructions` are `X86_AVX512_BF16` or `X86_AMX_BF16`,
    whose registers hold the sums of a tile's rows by 16 columns for each of at
    most 4 `key_blocks`.
  }];
  let parameters = (ins "::sandwich::AttentionSchedule":$schedule);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def LM_AttentionTableAttr : AttrDef<LM_Dialect, "AttentionTable"> {
  let mnemonic = "attention_table";
  let summary = "From steps to schedules of attention";
  let description = [{
    Each entry names the most segments of the steps it serves, and their longest
    context, in positions, whatever the segments are; `?` for any. The first one
    that serves a step counts.

    ```mlir
    #lm.attention_table<[1, 128] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>,
                        [1, ?] : <decode = [1, 2, 2], split = 2, prefill = [12, 2, 8]>,
                        [?, ?] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>>
    ```

    Constraints: (C1) there are 1 to 32 entries, the last is `[?, ?]`, each
    serves steps that no earlier one does, and numbers are positive.
  }];
  let parameters = (ins "::sandwich::AttentionTable":$table);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def LM_KVCacheType : TypeDef<LM_Dialect, "KVCache"> {
  let mnemonic = "kv_cache";
  let summary = "Keys and values of every token, in blocks";
  let description = [{
    A paged cache (PagedAttention): blocks of 16 tokens, found through one
    block table for each sequence. A block holds, for each layer and head, the
    keys with tokens innermost (`[head_dim][16]`), so that 16 scores form one
    vector, and the values with the head innermost (`[16][head_dim]`). Where
    `head_dim` is a multiple of 4, channels of bf16 keys are in pairs
    (`[head_dim / 2][16][2]`): so instructions for bf16 multiply them, and where
    they are widened, a cache line is a vector of even channels and one of odd
    ones.

    ```mlir
    !lm.kv_cache<layers = 24, heads = 16, head_dim = 128, bf16>
    ```

    Keys and values are rounded to its elements, to the nearest with ties to
    even, and widened to f32 again where they are read. What lies beyond the
    largest element becomes infinite, which makes NaN of the attention that
    reads it.

    The channels of an i8 key, or value, of one head share a scale in f32, their
    largest magnitude being 127. The 16 scales of a block lie in a cache line
    behind the keys, and behind the values, that they are of: with tokens
    innermost, so that scores, and the weights of values, are multiplied by them
    as vectors. Where a channel is no finite number, the scale is NaN.

    Constraints: (C1) `layers` and `head_dim` are between 1 and 4096, `heads`
    is between 1 and 16384; (C2) elements are f32, bf16, f16 or i8; (C3) beside
    i8, `head_dim` is a multiple of 4, which makes whole cache lines of a
    block's keys.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads,
                        "int64_t":$headDim, "::mlir::Type":$elementType);
  let assemblyFormat = [{
    `<` `layers` `=` $layers `,` `heads` `=` $heads `,`
        `head_dim` `=` $headDim `,` $elementType `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Tokens in one block.
    static constexpr int64_t blockTokens = SANDWICH_KV_BLOCK_TOKENS;

    /// The buffer of the whole cache:
    /// `[blocks, layers, heads, 2 (keys, values), head_dim * 16]`, and 16
    /// scales behind where there are any.
    ::mlir::MemRefType getBufferType() const;

    static constexpr int64_t scaleBytes = SANDWICH_KV_SCALE_BYTES;
    /// Whether the channels of a key, and of a value, share a scale.
    bool hasScales() const;

    /// The element of a block's keys, or values, of a head that its scales
    /// begin at, one for each token.
    int64_t getScalesOffset() const { return getHeadDim() * blockTokens; }

    /// How many channels of a token's key lie beside each other. That of
    /// channel c and token t is element `c / n * n * 16 + t * n + c % n`.
    int64_t getKeyChannelsTogether() const;
  }];
}

def LM_KernelAttr : AttrDef<LM_Dialect, "Kernel"> {
  let mnemonic = "kernel";
  let summary = "A kernel in the place of an operation";
  let description = [{
    `lm.kernel = #lm.kernel<@kernels::@rms_norm, {LANES = 16}>` on an operation:
    the kernel of dialect `block` in the module `@kernels` beside the phases computes
    it, with these parameters; others are as untuned.
  }];
  let parameters = (ins "::mlir::SymbolRefAttr":$name,
                        OptionalParameter<"::mlir::DictionaryAttr">:$parameters);
  let assemblyFormat = "`<` $name (`,` $parameters^)? `>`";
}

#endif // SANDWICH_DIALECT_LM_IR_LMATTRIBUTES_TD
