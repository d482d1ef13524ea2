//===- KernelDialect.td - Hand-written kernels -------------*- tablegen -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DIALECT_KERNEL_IR_KERNELDIALECT_TD
#define SANDWICH_DIALECT_KERNEL_IR_KERNELDIALECT_TD

include "mlir/IR/OpBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::sandwich::kernel";
  let summary = "Kernels as they are written in C++";
  let description = [{
    The low level of the dual-level kernel IR (the Sandwich paper, section 6.1):
    a numerical kernel that somebody wrote in C++ with intrinsics for one CPU,
    with its variables, loops and branches as they stand in the source. Names
    are kept, and so are places, as locations.

    Numbers have C's signs (`si32`, `ui8`), truth is an `i1`, and intrinsics take
    and give vectors and masks (`vector<16xf32>`, `vector<16xi1>`). What is
    in memory has a pointer, be it a variable, an element or a member:
    `kernel.load` and `kernel.store` are the only operations that reach it, but
    for intrinsics that do.

    ```mlir
    kernel.func @sum(%x: !kernel.pointer<const f32>, %n: si32) -> f32 {
      %total = kernel.variable "total" : !kernel.pointer<f32>
      %zero = kernel.constant 0.0 : f32
      kernel.store %zero, %total : !kernel.pointer<f32>
      %i = kernel.variable "i" : !kernel.pointer<si32>
      %first = kernel.constant 0 : si32
      kernel.store %first, %i : !kernel.pointer<si32>
      kernel.for {
        %at = kernel.load %i : !kernel.pointer<si32>
        %more = kernel.compare lt %at, %n : si32
        kernel.yield %more : i1
      } step {
        %at = kernel.load %i : !kernel.pointer<si32>
        %one = kernel.constant 1 : si32
        %next = kernel.binary add %at, %one : si32
        kernel.store %next, %i : !kernel.pointer<si32>
      } do {
        %at = kernel.load %i : !kernel.pointer<si32>
        %place = kernel.offset %x, %at : !kernel.pointer<const f32>, si32
        %element = kernel.load %place : !kernel.pointer<const f32>
        %before = kernel.load %total : !kernel.pointer<f32>
        %after = kernel.binary add %before, %element : f32
        kernel.store %after, %total : !kernel.pointer<f32>
      }
      %result = kernel.load %total : !kernel.pointer<f32>
      kernel.return %result : f32
    }
    ```
  }];
  let extraClassDeclaration = [{
    void registerTypes();
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif // SANDWICH_DIALECT_KERNEL_IR_KERNELDIALECT_TD
