//===- LMInterfaces.td - What passes ask, without a type --*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD
#define SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD

include "mlir/IR/Interfaces.td"

def LM_PackingAttrInterface : AttrInterface<"PackingAttrInterface"> {
  let cppNamespace = "::sandwich::lm";
  let description = "How the artifact stores a weight of two dimensions.";
  let methods = [
    InterfaceMethod<"What the weight's columns must be a multiple of.",
                    "int64_t", "getKStep">,
    InterfaceMethod<"The buffer of one slice of `rows` by `columns` whose "
                    "numbers are stored as `storage` says.",
                    "::mlir::MemRefType", "getBufferType",
                    (ins "int64_t":$rows, "int64_t":$columns,
                         "const ::sandwich::StorageFormat &":$storage)>,
  ];
}

def LM_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::sandwich::lm";
  let description = [{
    What passes must know of an operation that computes rows of a step: where
    its rows come from, what it takes of the phase, how threads share it, which
    weights it reads and what that costs. It exists in tensor form and in buffer
    form. Whoever adds an operation says this there and nowhere else.
  }];
  let methods = [
    InterfaceMethod<"Whether there is a buffer form; others are fused into "
                    "operations that have one.",
                    "bool", "hasBufferForm", (ins), "", "return true;">,
    InterfaceMethod<"The destination of the buffer form, or none.",
                    "::mlir::MutableOperandRange", "getDestinationMutable",
                    (ins), "",
                    "return ::mlir::MutableOperandRange($_op, 0, 0);">,
    InterfaceMethod<
        "The operands that must be what the phase was given: only there the "
        "runtime guarantees that the tokens, positions and rows in them exist.",
        "::llvm::SmallVector<::sandwich::lm::PhaseInputUse>", "getPhaseInputs",
        (ins), "", "return {};">,
    InterfaceMethod<
        "What bounds the rows of the result; nothing where they are those of "
        "the operands.",
        "::std::optional<::sandwich::lm::RowKind>", "getResultRows",
        (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<
        "Whether each thread reads and writes the same share of the rows of "
        "every buffer of activations or indices: operations that do so after "
        "one another need no barrier in between.",
        "bool", "splitsRows", (ins), "", "return false;">,
    InterfaceMethod<
        "The weights, the one that the operation is named after first.",
        "::llvm::SmallVector<::sandwich::lm::WeightUse>", "getWeightUses",
        (ins), "", "return {};">,
    InterfaceMethod<
        "The operand whose buffer the result may be written over, if nobody "
        "needs it any more; or null.",
        "::mlir::Value", "getOverwritten", (ins), "", "return {};">,
    InterfaceMethod<
        "Whether the result may be of bf16, rounded where it is made.",
        "bool", "canNarrowResult", (ins), "", "return false;">,
    InterfaceMethod<"The memory for partial sums, or none.",
                    "::mlir::MutableOperandRange", "getPartialSumsMutable",
                    (ins), "",
                    "return ::mlir::MutableOperandRange($_op, 0, 0);">,
    InterfaceMethod<
        "Bytes of memory that threads need for parts of sums in a step of at "
        "most `maxRows` rows.",
        "int64_t", "getPartialSumsBytes",
        (ins "int64_t":$maxRows, "::mlir::SymbolTableCollection &":$symbols),
        "", "return 0;">,
    InterfaceMethod<"What a call costs, beside what is read and written of "
                    "activations.",
                    "::sandwich::lm::StepCost", "getCost",
                    (ins "::mlir::SymbolTableCollection &":$symbols), "",
                    "return {};">,
  ];
}

def LM_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::sandwich::lm";
  let description = [{
    What a kernel must take to compute an operation in its place, as
    `lm.kernel` says. Whoever adds an operation that kernels can compute says
    this there and nowhere else.
  }];
  let methods = [
    InterfaceMethod<
        "What the kernel is given, in the order of its arguments.",
        "::llvm::SmallVector<::sandwich::lm::KernelArgument>",
        "getKernelArguments">,
    InterfaceMethod<
        "What it may have constants for.",
        "::llvm::SmallVector<::sandwich::lm::KernelConstant>",
        "getKernelConstants", (ins), "", "return {};">,
  ];
}

def LM_LoopLoweringOpInterface : OpInterface<"LoopLoweringOpInterface"> {
  let cppNamespace = "::sandwich::lm";
  let description = [{
    How an operation runs: as loops over vectors. Implemented beside
    `lm-to-loops`, by models that the pass attaches.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the loops of one thread in front of the operation, which is in
        buffer form, in a phase program, and erased afterwards. Buffers have
        static channels that are contiguous. Emits an error where the operation
        cannot run so.
      }],
      "::llvm::LogicalResult", "lowerToLoops",
      (ins "const ::sandwich::lm::ProgramContext &":$program)>
  ];
}

#endif // SANDWICH_DIALECT_LM_IR_LMINTERFACES_TD
