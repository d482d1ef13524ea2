//===- TileAttributes.td - Attributes of tile --------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_TILE_IR_TILEATTRIBUTES_TD
#define SANDWICH_DIALECT_TILE_IR_TILEATTRIBUTES_TD

include "mlir/IR/EnumAttr.td"
include "sandwich/Dialect/Tile/IR/TileDialect.td"

def Tile_Products : I32EnumAttr<"Products", "what is multiplied and added up", [
    I32EnumAttrCase<"BF16", 0, "bf16">,
    I32EnumAttrCase<"I8U8", 1, "i8_u8">]> {
  let cppNamespace = "::sandwich::tile";
  let genSpecializedAttr = 0;
}

def Tile_ProductsAttr : EnumAttr<Tile_Dialect, Tile_Products, "products"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif // SANDWICH_DIALECT_TILE_IR_TILEATTRIBUTES_TD
