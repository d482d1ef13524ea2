//===- BlockOps.td - Operations of block -------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_BLOCK_IR_BLOCKOPS_TD
#define SANDWICH_DIALECT_BLOCK_IR_BLOCKOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "sandwich/Dialect/Block/IR/BlockAttributes.td"

class Block_Op<string mnemonic, list<Trait> traits = []>
    : Op<Block_Dialect, mnemonic, traits>;

def Block_Block : Type<CPred<"::sandwich::block::isBlock($_self)">,
  "a block of numbers">;
def Block_Number : Type<CPred<"::sandwich::block::isNumber($_self)">,
  "a float, an integer without a sign, or an index">;
def Block_BlockOfIndices : Type<CPred<"::sandwich::block::isBlockOfIndices($_self)">,
  "a block of indices in one dimension">;
/// Where memory is accessed in one dimension.
def Block_Place : AnyTypeOf<[Index, Block_RangeType, Block_BlockOfIndices]>;

def Block_SizeOp : Block_Op<"size", [Pure]> {
  let summary = "A size as a number";
  let description = [{
    `%n = block.size <2 * LANES>`.

    Constraints: (C1) it is in a function, whose parameters and arguments have the
    names.
  }];
  let arguments = (ins Block_SizeAttr:$size);
  let results = (outs Index:$result);
  let assemblyFormat = "$size attr-dict";
  let hasVerifier = 1;
}

def Block_RangeOp : Block_Op<"range", [Pure]> {
  let summary = "Neighbors from a place on";
  let description = [{
    Those of them that are not before `end`, if there is one, are not there.
  }];
  let arguments = (ins Index:$start, Optional<Index>:$end);
  let results = (outs Block_RangeType:$result);
  let assemblyFormat = "$start (`to` $end^)? attr-dict `:` type($result)";
}

def Block_ShiftOp : Block_Op<"shift", [Pure, AllTypesMatch<["range", "result"]>]> {
  let summary = "The same neighbors, elsewhere";
  let description = "Those that are not there are the same.";
  let arguments = (ins Block_RangeType:$range, Index:$by);
  let results = (outs Block_RangeType:$result);
  let assemblyFormat = "$range `by` $by attr-dict `:` type($range)";
}

def Block_PositionsOp : Block_Op<"positions", [Pure]> {
  let summary = "Where a range's numbers are, as a block";
  let description = [{
    Constraints: (C1) the result is of `index`, in one dimension of the range's
    size.
  }];
  let arguments = (ins Block_RangeType:$range);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$range attr-dict `:` type($range) `->` type($result)";
  let hasVerifier = 1;
}

def Block_InsideOp : Block_Op<"inside", [Pure]> {
  let summary = "Which of a range's numbers are there";
  let description = [{
    Constraints: (C1) the result is of `i1`, in one dimension of the range's size.
  }];
  let arguments = (ins Block_RangeType:$range);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$range attr-dict `:` type($range) `->` type($result)";
  let hasVerifier = 1;
}

class Block_MemoryOp<string mnemonic, list<Trait> traits = []>
    : Block_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Block_LoadOp : Block_MemoryOp<"load"> {
  let summary = "Reads a block";
  let description = [{
    Its dimensions are those of `memory` that a range, or a block of indices, is
    given of, in their order. What is not there is zero, and not read.

    Constraints: (C1) there is an index, a range or a block of indices of every
    dimension of `memory`, at least one of them no index; (C2) the block has the
    sizes of those, and the memory's elements.
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$memory,
                       Variadic<Block_Place>:$indices);
  let results = (outs Block_Block:$result);
  let assemblyFormat = [{
    $memory `[` $indices `]` attr-dict `:` type($memory) `,` type($indices) `->` type($result)
  }];
}

def Block_StoreOp : Block_MemoryOp<"store"> {
  let summary = "Writes a block";
  let description = [{
    As `block.load` reads it. What is not there is not written; of what has the same
    place it is unknown which is.

    Constraints: (C1) there is an index, a range or a block of indices of every
    dimension of `memory`, at least one of them no index; (C2) the block has the
    sizes of those, and the memory's elements.
  }];
  let arguments = (ins Block_Block:$value,
                       Arg<AnyMemRef, "", [MemWrite]>:$memory,
                       Variadic<Block_Place>:$indices);
  let assemblyFormat = [{
    $value `,` $memory `[` $indices `]` attr-dict `:` type($value) `,` type($memory) `,` type($indices)
  }];
}

def Block_PrefetchOp : Block_MemoryOp<"prefetch"> {
  let summary = "Asks for what will be read";
  let description = [{
    Each cache line of what `block.load` would read, be it there or not: nothing
    is reached by it, so that places outside of `memory` do no harm.

    Constraints: (C1) there is an index, a range or a block of indices of every
    dimension of `memory`.
  }];
  // As upstream's: what only reads and gives nothing would be no use to anybody.
  let arguments = (ins Arg<AnyMemRef, "", [MemRead, MemWrite]>:$memory,
                       Variadic<Block_Place>:$indices);
  let assemblyFormat = [{
    $memory `[` $indices `]` attr-dict `:` type($memory) `,` type($indices)
  }];
}

def Block_ScratchOp : Block_Op<"scratch"> {
  let summary = "Memory of the kernel's own";
  let description = [{
    On the thread's stack, at the begin of a cache line. What it holds at first is
    unknown. Of `pairs`, those of the dimension before the last lie beside each
    other, as `block.matmul` is fastest with.

    Constraints: (C1) there are as many sizes as dimensions, and a dimension is
    static where its size has no name, and only there; (C2) elements are numbers,
    the layout is the identity, and there are at most six dimensions; (C3) the
    dimension before the last of `pairs` is of two.
  }];
  let arguments = (ins Block_SizesAttr:$sizes, UnitAttr:$pairs);
  let results = (outs Res<AnyMemRef, "", [MemAlloc]>:$memory);
  let assemblyFormat = "$sizes (`pairs` $pairs^)? attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Block_SplatOp : Block_Op<"splat", [Pure]> {
  let summary = "One number everywhere";
  let description = [{
    Constraints: (C1) it has the type of the block's numbers.
  }];
  let arguments = (ins Block_Number:$number);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$number attr-dict `:` type($number) `->` type($result)";
  let hasVerifier = 1;
}

def Block_ExpandOp : Block_Op<"expand", [Pure]> {
  let summary = "One more dimension, of size 1";
  let description = [{
    Before the dimension `axis` of the block, or at the end.

    Constraints: (C1) the result has the block's sizes with a 1 at `axis`, and its
    numbers.
  }];
  let arguments = (ins Block_Block:$block, I64Attr:$axis);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$block `at` $axis attr-dict `:` type($block) `->` type($result)";
  let hasVerifier = 1;
}

def Block_BroadcastOp : Block_Op<"broadcast", [Pure]> {
  let summary = "The same again, along dimensions";
  let description = [{
    As numpy does: the last dimensions of the result are the block's or, where the
    block's is 1, any.

    Constraints: (C1) sizes are such, and numbers the same.
  }];
  let arguments = (ins Block_Block:$block);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$block attr-dict `:` type($block) `->` type($result)";
  let hasVerifier = 1;
}

def Block_InterleaveOp : Block_Op<"interleave", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "One from here, one from there";
  let description = [{
    Along the last dimension, which has twice as many numbers then.

    Constraints: (C1) the result has twice the last size, and the same numbers.
  }];
  let arguments = (ins Block_Block:$lhs, Block_Block:$rhs);
  let results = (outs Block_Block:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Block_MatmulOp : Block_Op<"matmul", [Pure, AllTypesMatch<["sums", "result"]>]> {
  let summary = "Adds the product of two matrices";
  let description = [{
    `result[i, j] = sums[i, j] + sum over k of lhs[i, k] * rhs[k, j]`. Where `rhs`
    has more than two dimensions, all but the last one are its rows, in their order:
    of memory in pairs it has three. Products are added in f32, in any order, each
    rounded or not; instructions for bf16 may take numbers for zero that are too
    small to be normal.

    Constraints: (C1) `lhs` and `sums` have two dimensions, `rhs` has two or more;
    (C2) `sums` have the rows of `lhs` and the columns of `rhs`, which has as many
    rows as `lhs` columns; (C3) `lhs` and `rhs` are of bf16, f16 or f32, both of
    the same, and `sums` of f32.
  }];
  let arguments = (ins Block_Block:$lhs, Block_Block:$rhs, Block_Block:$sums);
  let results = (outs Block_Block:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $sums attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Block_AssertOp : Block_Op<"assert"> {
  let summary = "What must hold of parameters";
  let description = [{
    No code is made for parameters of which `condition` does not hold, or is not
    known.

    Constraints: (C1) it is in no loop and no branch.
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
  let hasVerifier = 1;
}

def Block_ReduceOp : Block_Op<"reduce", [Pure]> {
  let summary = "Many numbers become one";
  let description = [{
    Along dimension `axis`, or along all of them. They are combined in any order;
    a sum of products may round each one together with the sum.
    Numbers are floats or integers with a sign; which is the largest is unknown if
    there is one among them that is none.

    Constraints: (C1) there is such a dimension; (C2) the result has the others, or
    is a number where none is left, of the same type; (C3) that is not i1.
  }];
  let arguments = (ins Block_ReductionKindAttr:$kind, Block_Block:$block,
                       OptionalAttr<I64Attr>:$axis);
  let results = (outs AnyTypeOf<[Block_Block, Block_Number]>:$result);
  let assemblyFormat = [{
    $kind $block (`along` $axis^)? attr-dict `:` type($block) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_BLOCK_IR_BLOCKOPS_TD
