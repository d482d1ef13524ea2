//===- KernelAttributes.td - Types and attributes of kernel -*- tablegen -*-==//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_KERNEL_IR_KERNELATTRIBUTES_TD
#define SANDWICH_DIALECT_KERNEL_IR_KERNELATTRIBUTES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "sandwich/Dialect/Kernel/IR/KernelDialect.td"

class Kernel_Type<string name, string typeMnemonic>
    : TypeDef<Kernel_Dialect, name> {
  let mnemonic = typeMnemonic;
  let genVerifyDecl = 1;
}

def Kernel_PointerType : Kernel_Type<"Pointer", "pointer"> {
  let summary = "Where an object is, or an array of them";
  let description = [{
    `!kernel.pointer<f32>`, and `!kernel.pointer<const f32>` to what is only read.
    Objects are numbers, vectors, pointers, arrays and structures.
  }];
  let parameters = (ins "::mlir::Type":$object, "bool":$isConst);
  let hasCustomAssemblyFormat = 1;
}

def Kernel_ArrayType : Kernel_Type<"Array", "array"> {
  let summary = "Objects behind each other, as many as are known";
  let description = "`!kernel.array<32 x si8>`.";
  let parameters = (ins "int64_t":$size, "::mlir::Type":$element);
  let assemblyFormat = "`<` $size `x` $element `>`";
}

def Kernel_StructureType : Kernel_Type<"Structure", "structure"> {
  let summary = "Objects with names";
  let description = [{
    `!kernel.structure<"block_q8_0", d: f16, qs: !kernel.array<32 x si8>>`, laid
    out as C does: behind each other, or all in one place in a
    `!kernel.structure<union "bits", f: f32, i: ui32>`.
  }];
  let parameters = (ins "bool":$isUnion, "::mlir::StringAttr":$name,
    ArrayRefParameter<"::mlir::StringAttr">:$members,
    ArrayRefParameter<"::mlir::Type">:$types);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The type of the member `name`; null if there is none.
    ::mlir::Type getMember(::llvm::StringRef name) const;
  }];
}

class Kernel_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::sandwich::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_BinaryOperator : Kernel_Enum<"BinaryOperator",
    "what two numbers are combined by", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Subtract", 1, "sub">,
  I32EnumAttrCase<"Multiply", 2, "mul">, I32EnumAttrCase<"Divide", 3, "div">,
  I32EnumAttrCase<"Remainder", 4, "rem">, I32EnumAttrCase<"And", 5, "and">,
  I32EnumAttrCase<"Or", 6, "or">, I32EnumAttrCase<"Xor", 7, "xor">,
  I32EnumAttrCase<"ShiftLeft", 8, "shl">,
  I32EnumAttrCase<"ShiftRight", 9, "shr">]>;

def Kernel_UnaryOperator : Kernel_Enum<"UnaryOperator",
    "what is done to a number", [
  I32EnumAttrCase<"Negate", 0, "neg">, I32EnumAttrCase<"Complement", 1, "not">]>;

def Kernel_Comparison : Kernel_Enum<"Comparison", "how numbers compare", [
  I32EnumAttrCase<"Equal", 0, "eq">, I32EnumAttrCase<"NotEqual", 1, "ne">,
  I32EnumAttrCase<"Less", 2, "lt">, I32EnumAttrCase<"LessEqual", 3, "le">,
  I32EnumAttrCase<"Greater", 4, "gt">, I32EnumAttrCase<"GreaterEqual", 5, "ge">]>;

def Kernel_Function : Kernel_Enum<"Function", "functions of C's library", [
  I32EnumAttrCase<"Absolute", 0, "fabs">, I32EnumAttrCase<"SquareRoot", 1, "sqrt">,
  I32EnumAttrCase<"Exponential", 2, "exp">, I32EnumAttrCase<"PowerOfTwo", 3, "exp2">,
  I32EnumAttrCase<"Logarithm", 4, "log">, I32EnumAttrCase<"Sine", 5, "sin">,
  I32EnumAttrCase<"Cosine", 6, "cos">, I32EnumAttrCase<"HyperbolicTangent", 7, "tanh">,
  I32EnumAttrCase<"ErrorFunction", 8, "erf">, I32EnumAttrCase<"Power", 9, "pow">,
  I32EnumAttrCase<"Floor", 10, "floor">, I32EnumAttrCase<"Ceil", 11, "ceil">,
  I32EnumAttrCase<"Truncate", 12, "trunc">, I32EnumAttrCase<"Round", 13, "round">,
  I32EnumAttrCase<"RoundToEven", 14, "nearbyint">,
  I32EnumAttrCase<"Minimum", 15, "fmin">, I32EnumAttrCase<"Maximum", 16, "fmax">,
  I32EnumAttrCase<"Fma", 17, "fma">, I32EnumAttrCase<"BinaryLogarithm", 18, "log2">]>;

class Kernel_EnumAttr<EnumAttrInfo info, string mnemonic>
    : EnumAttr<Kernel_Dialect, info, mnemonic>;
def Kernel_BinaryOperatorAttr
    : Kernel_EnumAttr<Kernel_BinaryOperator, "binary_operator">;
def Kernel_UnaryOperatorAttr
    : Kernel_EnumAttr<Kernel_UnaryOperator, "unary_operator">;
def Kernel_FunctionAttr : Kernel_EnumAttr<Kernel_Function, "function">;
def Kernel_ComparisonAttr : Kernel_EnumAttr<Kernel_Comparison, "comparison">;

#endif // SANDWICH_DIALECT_KERNEL_IR_KERNELATTRIBUTES_TD
