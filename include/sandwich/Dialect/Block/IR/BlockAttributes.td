//===- BlockAttributes.td - Types and attributes of block --*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_BLOCK_IR_BLOCKATTRIBUTES_TD
#define SANDWICH_DIALECT_BLOCK_IR_BLOCKATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "sandwich/Dialect/Block/IR/BlockDialect.td"

def Block_SizeAttr : AttrDef<Block_Dialect, "Size"> {
  let mnemonic = "size";
  let summary = "A number, a name, or a product of them";
  let description = [{
    `#block.size<2 * LANES>`: a factor, which is left out where it is 1, and names
    in alphabetical order.

    Constraints: (C1) the factor is between 1 and 2^20; (C2) there are at most six
    names, each of letters, digits and `_`, in alphabetical order.
  }];
  let parameters = (ins "int64_t":$factor,
                        ArrayRefParameter<"::mlir::StringAttr">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether it has no names.
    bool isStatic() const { return getNames().empty(); }
    /// `2 * LANES`.
    std::string str() const;
    /// The largest factor.
    static constexpr int64_t largestFactor = int64_t(1) << 20;
    /// Of names in any order.
    static SizeAttr getSorted(::mlir::MLIRContext *context, int64_t factor,
                              ::llvm::ArrayRef<::llvm::StringRef> names);
  }];
}

def Block_SizesAttr : AttrDef<Block_Dialect, "Sizes",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "sizes";
  let summary = "The sizes of a block, or of an argument in memory";
  let description = [{
    `#block.sizes<ROWS, 2 * LANES, 4>`; of a tensor, one of every dimension.

    Constraints: (C1) there are as many as dimensions, at most six; (C2) a
    dimension is static where its size has no name, and only there.
  }];
  let parameters = (ins ArrayRefParameter<"::sandwich::block::SizeAttr">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

def Block_ParameterAttr : AttrDef<Block_Dialect, "Parameter"> {
  let mnemonic = "parameter";
  let summary = "What a kernel leaves open";
  let description = [{
    `#block.parameter<LANES in [8, 16, 32] = 16>`: one that is tuned has choices,
    and the one that is taken untuned; a constant, `#block.parameter<CAUSAL>`, is
    given by whoever uses the kernel.

    Constraints: (C1) the name is of letters, digits and `_`; (C2) choices are
    between 0 and 2^20, at most 64, no two are the same; (C3) what is taken untuned
    is one of them.
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
                        ArrayRefParameter<"int64_t">:$choices,
                        "int64_t":$untuned);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isTuned() const { return !getChoices().empty(); }
    /// The most choices, and the largest of them.
    static constexpr size_t mostChoices = 64;
    static constexpr int64_t largestChoice = int64_t(1) << 20;
  }];
}

def Block_ParametersAttr : AttrDef<Block_Dialect, "Parameters"> {
  let mnemonic = "parameters";
  let summary = "All that a kernel leaves open";
  let description = [{
    `#block.parameters<LANES in [8, 16, 32] = 16, CAUSAL>`.

    Constraints: (C1) no two have the same name.
  }];
  let parameters = (ins
    ArrayRefParameter<"::sandwich::block::ParameterAttr">:$parameters);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The one with this name; null if there is none.
    ParameterAttr find(::llvm::StringRef name) const;
  }];
}

def Block_RangeType : TypeDef<Block_Dialect, "Range"> {
  let mnemonic = "range";
  let summary = "Neighbors in one dimension, as many as its size says";
  let description = [{
    `!block.range<LANES>`. Not all of them may be there: memory is read as zero
    where one is not, and not written.
  }];
  let parameters = (ins "::sandwich::block::SizeAttr":$size);
  let hasCustomAssemblyFormat = 1;
}

def Block_ReductionKind : I32EnumAttr<"ReductionKind", "how numbers become one", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Multiply", 1, "mul">,
  I32EnumAttrCase<"Maximum", 2, "max">, I32EnumAttrCase<"Minimum", 3, "min">]> {
  let cppNamespace = "::sandwich::block";
  let genSpecializedAttr = 0;
}
def Block_ReductionKindAttr
    : EnumAttr<Block_Dialect, Block_ReductionKind, "reduction">;

#endif // SANDWICH_DIALECT_BLOCK_IR_BLOCKATTRIBUTES_TD
