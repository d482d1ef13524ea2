//===- TileOps.td - Operations of tile ---------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TILE_IR_TILEOPS_TD
#define SANDWICH_DIALECT_TILE_IR_TILEOPS_TD

include "sandwich/Dialect/Tile/IR/TileAttributes.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Number : ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<7>]>;

/// A buffer that rows of a tile lie in.
def Tile_Buffer : MemRefOf<[F32, I32, BF16, I8]>;

def Tile_ConfigureOp : Tile_Op<"configure"> {
  let summary = "Says how many rows the tiles of sums and input have";
  let description = [{
    `rows` is between 1 and 16. Those of tiles have 64 bytes, but for
    `half_inputs`: then tiles 4 and 5, which inputs are in, have rows of 32 and
    tiles 6 and 7, of weights, 8 rows instead of 16, and sums are in tiles 0 to
    3. The tiles hold anything afterwards. Nothing is done where this function
    configured them so before, and called none since that configures them itself;
    the function gives them back when it returns. So who uses tiles configures
    them in an outer function, as often as it likes.

    Constraints: (C1) where it is constant, `rows` is between 1 and 16.
  }];
  let arguments = (ins Index:$rows, UnitAttr:$half_inputs);
  let assemblyFormat = "$rows (`half_inputs` $half_inputs^)? attr-dict";
  let hasVerifier = 1;
}

def Tile_ZeroOp : Tile_Op<"zero"> {
  let summary = "Sets a tile to zero";
  let arguments = (ins Tile_Number:$tile);
  let assemblyFormat = "$tile attr-dict";
}

class Tile_MemoryOp<string mnemonic>
    : Tile_Op<mnemonic, [AttrSizedOperandSegments]> {
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_MemoryOp<"load"> {
  let summary = "Loads a tile, row by row";
  let description = [{
    The first row begins at the indices, the others `stride` elements further
    each, or where it is not given, one further in the dimension before the last.
    `streaming` asks not to keep what is read in the nearest cache.

    Constraints: (C1) there is an index for each dimension; (C2) the last
    dimension is contiguous; (C3) there are two dimensions or a stride.
  }];
  let arguments = (ins Tile_Number:$tile, Tile_Buffer:$base,
                       Variadic<Index>:$indices, Optional<Index>:$stride,
                       UnitAttr:$streaming);
  let assemblyFormat = [{
    $tile `,` $base `[` $indices `]` (`stride` $stride^)?
    (`streaming` $streaming^)? attr-dict `:` type($base)
  }];
}

def Tile_StoreOp : Tile_MemoryOp<"store"> {
  let summary = "Stores a tile, row by row";
  let description = [{
    To where `tile.load` would load it from.

    Constraints, as of `tile.load`: (C1) there is an index for each dimension;
    (C2) the last dimension is contiguous; (C3) there are two dimensions or a
    stride.
  }];
  let arguments = (ins Tile_Number:$tile, Tile_Buffer:$base,
                       Variadic<Index>:$indices, Optional<Index>:$stride);
  let assemblyFormat = [{
    $tile `,` $base `[` $indices `]` (`stride` $stride^)?
    attr-dict `:` type($base)
  }];
}

def Tile_MultiplyOp : Tile_Op<"multiply"> {
  let summary = "Multiplies two tiles and adds to a third";
  let description = [{
    `sums[i, j] += sum over k of input[i, k] * weight[k, j]`, for 16 columns j. A
    row of the weight's tile has neighbouring k of each column beside each other,
    as many as fit four bytes. `bf16` are added up in f32, products of signed bytes
    of the input and unsigned ones of the weight, `i8_u8`, in i32.

    Constraints: (C1) sums and input are different tiles of 0 to 5; (C2) the
    weight is tile 6 or 7.
  }];
  let arguments = (ins Tile_Number:$sums, Tile_Number:$input,
                       Tile_Number:$weight, Tile_ProductsAttr:$products);
  let assemblyFormat = [{
    $sums `,` $input `,` $weight `products` $products attr-dict
  }];
  let hasVerifier = 1;
}

#endif // SANDWICH_DIALECT_TILE_IR_TILEOPS_TD
