//===- TileDialect.td - Tile registers ---------------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TILE_IR_TILEDIALECT_TD
#define SANDWICH_DIALECT_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::sandwich::tile";
  let summary = "The tile registers of AMX, by their numbers";
  let description = [{
    Upstream's `amx` has tiles as values. LLVM then chooses registers and
    configures them anew in each function, spills them through the stack where
    two shapes meet, and fixes the number of rows when it compiles. Here a tile
    is a register that operations name, and how many rows tiles have is
    configured while the program runs, once for all functions that it calls: one
    micro-kernel serves every number of rows.

    A thread has eight tiles, of up to 16 rows of 64 bytes. Tiles 0 to 5 hold
    sums and rows of the input, and have as many rows as `tile.configure` said
    last on this thread. Tiles 6 and 7 hold weights and have all 16, or 8 beside
    inputs whose rows are half as long.

    Operations have unknown memory effects and stay in their order. Whoever calls
    a function that uses tiles configures them, and takes them to hold anything
    afterwards.

    ```mlir
    tile.configure %rows
    tile.zero 0
    scf.for %k = %c0 to %c512 step %c32 {
      tile.load 4, %input[%row, %k] streaming : memref<?x?xbf16, strided<[?, 1], offset: ?>>
      tile.load 6, %weight[%k, %c0] : memref<512x32xbf16>
      tile.multiply 0, 4, 6 products <bf16>
    }
    tile.store 0, %sums[%row, %c0] : memref<?x16xf32>
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
}

#endif // SANDWICH_DIALECT_TILE_IR_TILEDIALECT_TD
