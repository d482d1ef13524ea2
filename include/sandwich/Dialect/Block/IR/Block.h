//===- Block.h - The dialect of kernels over blocks -------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_BLOCK_IR_BLOCK_H
#define SANDWICH_DIALECT_BLOCK_IR_BLOCK_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

#include "sandwich/Dialect/Block/IR/BlockDialect.h.inc"
#include "sandwich/Dialect/Block/IR/BlockEnums.h.inc"

namespace sandwich::block {

/// The most dimensions of a block.
inline constexpr size_t mostDimensions = 6;

/// What a kernel's parameters are, and sizes of its arguments that are known.
using Bindings = llvm::StringMap<int64_t>;

/// The largest size that an argument may have.
inline constexpr int64_t largestSize = int64_t(1) << 32;
/// Reads `NAME=NUMBER`, with a number between 0 and `largestSize`; nothing if
/// it is something else.
std::optional<std::pair<llvm::StringRef, int64_t>>
readBinding(llvm::StringRef text);

/// Whether `type` is that of an element of blocks: `index`, `i1` to `i64`,
/// `bf16`, `f16`, `f32` or `f64`.
bool isNumber(mlir::Type type);
/// Whether it is that of a block: a tensor of numbers with sizes.
bool isBlock(mlir::Type type);
/// Whether it is that of a block of indices in one dimension.
bool isBlockOfIndices(mlir::Type type);
/// Whether `name` is one that sizes and parameters may have.
bool isName(llvm::StringRef name);

} // namespace sandwich::block

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Block/IR/BlockAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "sandwich/Dialect/Block/IR/BlockTypes.h.inc"

#define GET_OP_CLASSES
#include "sandwich/Dialect/Block/IR/BlockOps.h.inc"

namespace sandwich::block {

/// The sizes of a block.
llvm::ArrayRef<SizeAttr> sizesOf(mlir::Type block);
/// The type of a block; `element` itself if there are no sizes.
mlir::Type blockOf(llvm::ArrayRef<SizeAttr> sizes, mlir::Type element);
/// The type of memory with these sizes.
mlir::MemRefType memoryOf(llvm::ArrayRef<SizeAttr> sizes, mlir::Type element);
/// What blocks of both sizes have together as numpy does; nothing if they do
/// not go together.
std::optional<llvm::SmallVector<SizeAttr>>
broadcastSizes(llvm::ArrayRef<SizeAttr> lhs, llvm::ArrayRef<SizeAttr> rhs);

/// Those that an access of memory at `places` has: of each that is no index.
llvm::SmallVector<SizeAttr> sizesOfPlaces(mlir::TypeRange places);
/// Of a block that is interleaved with another one; none if it is too large.
llvm::SmallVector<SizeAttr> interleavedSizes(llvm::ArrayRef<SizeAttr> sizes);
/// How many numbers a block of `sizes` has, of which there is one at least;
/// null if that is too large for a size.
SizeAttr productOf(llvm::ArrayRef<SizeAttr> sizes);

/// Whether it is a kernel: it has parameters, be they none.
bool isKernel(mlir::func::FuncOp function);
/// Those of a kernel.
ParametersAttr parametersOf(mlir::func::FuncOp kernel);
/// The sizes of argument `number`; null if it is not memory.
SizesAttr sizesOfArgument(mlir::func::FuncOp kernel, unsigned number);
/// Completes `bindings` with parameters that are as untuned. Errors, of a
/// constant that is not given or of what is no choice, are emitted.
mlir::LogicalResult bindParameters(mlir::func::FuncOp kernel,
                                   Bindings &bindings);
/// The size, if `bindings` has all of its names; nothing, too, if it is too
/// large.
std::optional<int64_t> knownSize(SizeAttr size, const Bindings &bindings);
/// The argument's number and dimension that the name alone is the size of;
/// nothing if there is none.
std::optional<std::pair<unsigned, unsigned>>
findDimension(mlir::func::FuncOp kernel, llvm::StringRef name);

} // namespace sandwich::block

#endif // SANDWICH_DIALECT_BLOCK_IR_BLOCK_H
