//===- KernelOps.td - Operations of kernel -----------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_KERNEL_IR_KERNELOPS_TD
#define SANDWICH_DIALECT_KERNEL_IR_KERNELOPS_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "sandwich/Dialect/Kernel/IR/KernelAttributes.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, traits>;

/// Numbers: truth, integers with a sign or without, and floats.
def Kernel_Number : Type<CPred<"::sandwich::kernel::isNumber($_self)">,
  "a truth, an integer of C or a float">;
/// What is combined lane by lane, as extensions of C do with vectors.
def Kernel_NumberOrVector : Type<
  CPred<"::sandwich::kernel::isNumberOrVector($_self)">, "a number or a vector">;
/// What an expression of C may have as its value.
def Kernel_Value : Type<CPred<"::sandwich::kernel::isValue($_self)">,
  "a number, a vector or a pointer">;
//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def Kernel_FuncOp : Kernel_Op<"func", [
    FunctionOpInterface, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "A function";
  let description = [{
    Its arguments and result are numbers, vectors and pointers; the locations of
    arguments have their names. It ends by `kernel.return`, or, without a result,
    where its operations end.

    Constraints: (C1) arguments are values; (C2) there is at most one result, a
    value; (C3) there is a body.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    llvm::ArrayRef<mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    llvm::ArrayRef<mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Kernel_ReturnOp : Kernel_Op<"return", [Terminator]> {
  let summary = "Ends the function";
  let description = [{
    Constraints: (C1) the operand has the type of the function's result, and is
    there if that is; (C2) it is in no condition, step or choice.
  }];
  let arguments = (ins Optional<Kernel_Value>:$value);
  let assemblyFormat = "($value^ `:` type($value))? attr-dict";
  let hasVerifier = 1;
}

def Kernel_CallOp : Kernel_Op<"call",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Calls another function of the module";
  let description = [{
    Constraints: (C1) there is such a function; (C2) operands and result have the
    types of its own.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<Kernel_Value>:$operands);
  let results = (outs Optional<Kernel_Value>:$result);
  let assemblyFormat = [{
    $callee `(` $operands `)` attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_GlobalOp : Kernel_Op<"global", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A table of numbers that are known";
  let description = [{
    `kernel.global @levels : !kernel.array<4 x si8> = dense<[0, 1, 4, 9]> :
    tensor<4xsi8>`.

    Constraints: (C1) it is an array, of arrays or of numbers; (C2) there are as many
    numbers as it holds, of their type; (C3) these are at most 2^20, and told.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
                       ElementsAttr:$value);
  let assemblyFormat = "$sym_name `:` $type `=` $value attr-dict";
  let hasVerifier = 1;
}

def Kernel_AddressOp : Kernel_Op<"address", [
    Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Where a table is";
  let description = [{
    Constraints: (C1) there is such a table; (C2) the result points to it, and is const.
  }];
  let arguments = (ins FlatSymbolRefAttr:$table);
  let results = (outs Kernel_PointerType:$result);
  let assemblyFormat = "$table attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Kernel_VariableOp : Kernel_Op<"variable"> {
  let summary = "A variable of a block";
  let description = [{
    It holds anything until something is stored, and is gone where the block ends.
    `align` is what it is aligned by, in bytes, if that is more than its type is.

    Constraints: (C1) it can be written to; (C2) it is aligned by a power of two,
    at most 4096.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$alignment);
  let results = (outs Kernel_PointerType:$pointer);
  let assemblyFormat = [{
    $name (`align` $alignment^)? attr-dict `:` type($pointer)
  }];
  let hasVerifier = 1;
}

def Kernel_LoadOp : Kernel_Op<"load", [
    TypesMatchWith<"the value is the object", "pointer", "value",
      "::llvm::cast<PointerType>($_self).getObject()">]> {
  let summary = "Reads an object";
  let arguments = (ins Kernel_PointerType:$pointer);
  let results = (outs Kernel_Value:$value);
  let assemblyFormat = "$pointer attr-dict `:` type($pointer)";
}

def Kernel_StoreOp : Kernel_Op<"store", [
    TypesMatchWith<"the value is the object", "pointer", "value",
      "::llvm::cast<PointerType>($_self).getObject()">]> {
  let summary = "Writes an object";
  let description = "Constraints: (C1) the object is not only read.";
  let arguments = (ins Kernel_Value:$value, Kernel_PointerType:$pointer);
  let assemblyFormat = "$value `,` $pointer attr-dict `:` type($pointer)";
  let hasVerifier = 1;
}

def Kernel_CopyOp : Kernel_Op<"copy"> {
  let summary = "Writes an object with what another one holds";
  let description = [{
    As C assigns structures.

    Constraints: (C1) both are of one type, and the second is not only read.
  }];
  let arguments = (ins Kernel_PointerType:$from, Kernel_PointerType:$to);
  let assemblyFormat = "$from `,` $to attr-dict `:` type($from) `to` type($to)";
  let hasVerifier = 1;
}

def Kernel_OffsetOp : Kernel_Op<"offset", [Pure, AllTypesMatch<["pointer", "result"]>]> {
  let summary = "The object so many behind another";
  let description = "Constraints: (C1) the index is an integer.";
  let arguments = (ins Kernel_PointerType:$pointer, Kernel_Number:$index);
  let results = (outs Kernel_PointerType:$result);
  let assemblyFormat = [{
    $pointer `,` $index attr-dict `:` type($pointer) `,` type($index)
  }];
  let hasVerifier = 1;
}

def Kernel_ElementsOp : Kernel_Op<"elements", [Pure]> {
  let summary = "The first element of an array";
  let description = [{
    Constraints: (C1) the operand points to an array, and the result to its element,
    const if the array is.
  }];
  let arguments = (ins Kernel_PointerType:$array);
  let results = (outs Kernel_PointerType:$result);
  let assemblyFormat = [{
    $array attr-dict `:` type($array) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Kernel_MemberOp : Kernel_Op<"member", [Pure]> {
  let summary = "A member of a structure";
  let description = [{
    Constraints: (C1) the operand points to a structure that has the member; (C2) the
    result points to that, const if the structure is.
  }];
  let arguments = (ins Kernel_PointerType:$structure, StrAttr:$name);
  let results = (outs Kernel_PointerType:$result);
  let assemblyFormat = [{
    $structure `,` $name attr-dict `:` type($structure) `to` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

def Kernel_ConstantOp : Kernel_Op<"constant", [
    Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A number, or a vector of known numbers";
  let description = "Constraints: (C1) vectors are dense.";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs Kernel_NumberOrVector:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Kernel_BinaryOp : Kernel_Op<"binary", [Pure, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "Combines two numbers, or the lanes of two vectors";
  let description = [{
    As C does, of operands of one type: integers without a sign wrap.

    Constraints: (C1) floats have no remainders, shifts and bits; (C2) truths have
    bits alone.
  }];
  let arguments = (ins Kernel_BinaryOperatorAttr:$kind,
                       Kernel_NumberOrVector:$lhs, Kernel_NumberOrVector:$rhs);
  let results = (outs Kernel_NumberOrVector:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_UnaryOp : Kernel_Op<"unary", [
    Pure, AllTypesMatch<["operand", "result"]>]> {
  let summary = "Negates a number, or all of its bits";
  let description = [{
    Constraints: (C1) floats are negated only; (C2) truths are not.
  }];
  let arguments = (ins Kernel_UnaryOperatorAttr:$kind,
                       Kernel_NumberOrVector:$operand);
  let results = (outs Kernel_NumberOrVector:$result);
  let assemblyFormat = "$kind $operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_CompareOp : Kernel_Op<"compare", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "Compares two numbers, or two pointers";
  let description = "Constraints: (C1) vectors are not compared.";
  let arguments = (ins Kernel_ComparisonAttr:$comparison, Kernel_Value:$lhs,
                       Kernel_Value:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$comparison $lhs `,` $rhs attr-dict `:` type($lhs)";
  let hasVerifier = 1;
}

def Kernel_CastOp : Kernel_Op<"cast", [Pure]> {
  let summary = "Converts a number, or a pointer, as C does";
  let description = [{
    A mask becomes an integer of as many bits, and the other way round.

    Constraints: (C1) both are numbers or both pointers, or one is a mask and the
    other an integer of as many bits.
  }];
  let arguments = (ins Kernel_Value:$operand);
  let results = (outs Kernel_Value:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` type($operand) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Kernel_BitcastOp : Kernel_Op<"bitcast", [Pure]> {
  let summary = "The same bits as another type";
  let description = "Constraints: (C1) both are numbers or vectors of as many bits.";
  let arguments = (ins Kernel_Value:$operand);
  let results = (outs Kernel_Value:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` type($operand) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Kernel_MathOp : Kernel_Op<"math", [Pure, SameOperandsAndResultType]> {
  let summary = "A function of C's library of mathematics";
  let description = [{
    `expf` and `exp` are both `kernel.math exp`, of an `f32` and of an `f64`.

    Constraints: (C1) it has one operand, two (`pow`, `fmin`, `fmax`) or three (`fma`).
  }];
  let arguments = (ins Kernel_FunctionAttr:$function,
                       Variadic<AnyTypeOf<[F32, F64]>>:$operands);
  let results = (outs AnyTypeOf<[F32, F64]>:$result);
  let assemblyFormat = "$function $operands attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Kernel_IntrinsicOp : Kernel_Op<"intrinsic"> {
  let summary = "Calls an intrinsic";
  let description = [{
    One of those in the table of intrinsics, which says what it computes. Vectors
    of integers of as many bits stand for each other, as C's types of them do.

    Constraints: (C1) the table has it; (C2) there is an operand for each parameter,
    of its type; an immediate one is a constant between the smallest and the
    largest; (C3) the result has the type of its own.
  }];
  let arguments = (ins StrAttr:$name, Variadic<Kernel_Value>:$operands);
  let results = (outs Optional<Kernel_Value>:$result);
  let assemblyFormat = [{
    $name `(` $operands `)` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

class Kernel_RegionOp<string mnemonic>
    : Kernel_Op<mnemonic, [NoTerminator, SingleBlock, NoRegionArguments]>;

def Kernel_YieldOp : Kernel_Op<"yield", [
    Terminator, ParentOneOf<["ForOp", "DoOp", "ConditionalOp"]>]> {
  let summary = "The value of a condition, or of one side of a choice";
  let arguments = (ins Kernel_Value:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Kernel_IfOp : Kernel_RegionOp<"if"> {
  let summary = "Does one thing or another";
  let arguments = (ins I1:$condition);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = "$condition $then `else` $otherwise attr-dict";
}

def Kernel_ConditionalOp : Kernel_RegionOp<"conditional"> {
  let summary = "The value of one thing or of another, which alone is computed";
  let description = [{
    C's `?:`, and with truths `&&` and `||`.

    Constraints: (C1) both sides yield a value of the result's type.
  }];
  let arguments = (ins I1:$condition);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let results = (outs Kernel_Value:$result);
  let assemblyFormat = [{
    $condition $then `else` $otherwise attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Kernel_ForOp : Kernel_RegionOp<"for"> {
  let summary = "Repeats while a condition holds";
  let description = [{
    The condition is computed before each time, and the step behind it, also after
    `kernel.continue`. Without a step it is C's `while`. `unroll` is how often
    the source asks compilers to unroll it, 0 for as often as it runs.

    Constraints: (C1) the condition yields a truth; (C2) `unroll` is not negative.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$unroll);
  let regions = (region SizedRegion<1>:$condition, SizedRegion<1>:$step,
                        SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`unroll` $unroll^)? $condition `step` $step `do` $body attr-dict
  }];
  let hasVerifier = 1;
}

def Kernel_DoOp : Kernel_RegionOp<"do"> {
  let summary = "Repeats until a condition holds no more, at least once";
  let description = "Constraints: (C1) the condition yields a truth.";
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$condition);
  let assemblyFormat = "$body `while` $condition attr-dict";
  let hasVerifier = 1;
}

class Kernel_JumpOp<string mnemonic> : Kernel_Op<mnemonic, [Terminator]> {
  let description = "Constraints: (C1) it is in a loop's body.";
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Kernel_BreakOp : Kernel_JumpOp<"break"> {
  let summary = "Ends the innermost loop";
}

def Kernel_ContinueOp : Kernel_JumpOp<"continue"> {
  let summary = "Goes on with the next time of the innermost loop";
}

def Kernel_TrapOp : Kernel_Op<"trap"> {
  let summary = "Ends the program: what was called for is not allowed";
  let description = [{
    What `abort()` and all that checks arguments by it become. A kernel may be
    compiled as if it were never reached.
  }];
  let assemblyFormat = "attr-dict";
}

#endif // SANDWICH_DIALECT_KERNEL_IR_KERNELOPS_TD
