//===- BlockDialect.td - Kernels over blocks of numbers ----*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_BLOCK_IR_BLOCKDIALECT_TD
#define SANDWICH_DIALECT_BLOCK_IR_BLOCKDIALECT_TD

include "mlir/IR/OpBase.td"

def Block_Dialect : Dialect {
  let name = "block";
  let cppNamespace = "::sandwich::block";
  let summary = "Kernels over blocks of numbers, of sizes that have names";
  let description = [{
    The high level of the dual-level kernel IR (the Sandwich paper, section 6.1),
    which `sandwich-import` reads and writes as text that looks like Python
    ([Kernels.md](../Kernels.md)). Values are scalars and blocks, which are tensors
    whose sizes may have names: `tensor<?x?xf32, #block.sizes<ROWS, 2 * LANES>>`.
    Upstream's `arith`, `math` and `scf` compute with them; the operations of this
    dialect are what those have not: the sizes themselves, ranges, memory, and
    going from one shape to another.

    A kernel is a `func.func` whose attribute `block.parameters` has the
    parameters that are tuned, each with its choices and its default, and the
    constants that whoever uses it gives. An argument that is a `memref` has an
    attribute `block.sizes` with its sizes. A name in it is that of a parameter, or
    is the size of the first argument that has it alone as a size; all that have it
    are as large. `block-to-vector` makes a kernel for one choice of parameters:
    only then it is known how many numbers a block has.

    ```mlir
    func.func @scale(%x: memref<?xf32> {block.sizes = #block.sizes<n>}, %by: f32,
                     %y: memref<?xf32> {block.sizes = #block.sizes<n>})
        attributes {block.parameters = #block.parameters<LANES in [8, 16, 32] = 16>} {
      %zero = arith.constant 0 : index
      %n = block.size <n>
      %lanes = block.size <LANES>
      scf.for %first = %zero to %n step %lanes {
        %i = block.range %first to %n : !block.range<LANES>
        %factor = block.splat %by : f32 -> tensor<?xf32, #block.sizes<LANES>>
        %element = block.load %x[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
        %result = arith.mulf %element, %factor : tensor<?xf32, #block.sizes<LANES>>
        block.store %result, %y[%i] : tensor<?xf32, #block.sizes<LANES>>, memref<?xf32>, !block.range<LANES>
      }
      return
    }
    ```

    Constraints: (C1) parameters are an attribute of a function with a body, and
    sizes of one of its arguments that is a memref with identity layout; (C2) arguments
    are numbers, or memory of them of at most six dimensions, with as many sizes, and
    a dimension is static where its size has no name, and only there; (C3) a name is that of a parameter, or alone the size of
    an argument's dimension.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    /// Of functions.
    static constexpr llvm::StringLiteral parametersName = "block.parameters";
    /// What it says of itself, a text.
    static constexpr llvm::StringLiteral documentationName = "block.documentation";
    /// Of their arguments.
    static constexpr llvm::StringLiteral sizesName = "block.sizes";
    /// Of `scf.for`: a loop whose turns become code of their own, a unit
    /// attribute.
    static constexpr llvm::StringLiteral unrollName = "block.unroll";
  }];
}

#endif // SANDWICH_DIALECT_BLOCK_IR_BLOCKDIALECT_TD
