// RUN: printf 12345678 > %t
// RUN: not sandwich-interpret-kernel %s far -a file:%t -a 2 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: not sandwich-interpret-kernel %s far -a file:%t -a -1 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: sandwich-interpret-kernel %s far -a file:%t -a 1 | FileCheck %s --check-prefix=THERE
// RUN: not sandwich-interpret-kernel %s divided -a 5 -a 0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: sandwich-interpret-kernel %s divided -a -7 -a 2 | FileCheck %s --check-prefix=DIVIDED
// RUN: not sandwich-interpret-kernel %s shifted -a 1 -a 32 2>&1 | FileCheck %s --check-prefix=SHIFT
// RUN: not sandwich-interpret-kernel %s checked -a 0 2>&1 | FileCheck %s --check-prefix=TRAP
// RUN: not sandwich-interpret-kernel %s pointless 2>&1 | FileCheck %s --check-prefix=POINTLESS
// RUN: not sandwich-interpret-kernel %s huge 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not sandwich-interpret-kernel %s vector -a file:%t 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not sandwich-interpret-kernel %s none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not sandwich-interpret-kernel %s divided -a 5 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not sandwich-interpret-kernel %s divided -a 5 -a 5x 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not sandwich-interpret-kernel %s divided -a file:%t -a 5 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not sandwich-interpret-kernel %s far -a file:%t.none -a 5 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: rm %t
//
// What C does not define is an error with its place, and so is what a user gets
// wrong.

// NONE: error: {{.*}}errors.mlir: has no function 'none'
// FEW: error: 'divided' has 2 arguments, not 1
// NUMBER: error: '5x' is no number that an argument can be
// VALUE: error: argument 0 must be a value
// FILE: none: No such file or directory

// THERE: 0x1.6e6c6ap-15
kernel.func @far(%p: !kernel.pointer<f32>, %i: si32) -> f32 {
  %q = kernel.offset %p, %i : !kernel.pointer<f32>, si32
  // FAR: errors.mlir:[[#@LINE+2]]:8: error: reaches 4 bytes at byte 8 of 8
  // BEFORE: errors.mlir:[[#@LINE+1]]:8: error: reaches 4 bytes at byte -4 of 8
  %x = kernel.load %q : !kernel.pointer<f32>
  kernel.return %x : f32
}

// DIVIDED: -3
kernel.func @divided(%x: si32, %y: si32) -> si32 {
  // ZERO: errors.mlir:[[#@LINE+1]]:8: error: an integer is divided by 0
  %z = kernel.binary div %x, %y : si32
  kernel.return %z : si32
}

kernel.func @shifted(%x: ui32, %y: ui32) -> ui32 {
  // SHIFT: errors.mlir:[[#@LINE+1]]:8: error: shifts 32 bits by 32
  %z = kernel.binary shl %x, %y : ui32
  kernel.return %z : ui32
}

kernel.func @checked(%x: si32) {
  %zero = kernel.constant 0 : si32
  %isZero = kernel.compare eq %x, %zero : si32
  kernel.if %isZero {
    // TRAP: errors.mlir:[[#@LINE+1]]:5: error: is reached: the arguments are not allowed
    kernel.trap
  } else {
  }
}

kernel.func @pointless() -> f32 {
  %p = kernel.variable "p" : !kernel.pointer<!kernel.pointer<f32>>
  %q = kernel.load %p : !kernel.pointer<!kernel.pointer<f32>>
  // POINTLESS: errors.mlir:[[#@LINE+1]]:8: error: reaches memory by a pointer that has no value
  %x = kernel.load %q : !kernel.pointer<f32>
  kernel.return %x : f32
}

kernel.func @huge() {
  // HUGE: errors.mlir:[[#@LINE+1]]:8: error: has no room for a variable of '!kernel.array<1000000000 x f32>'
  %x = kernel.variable "x" : !kernel.pointer<!kernel.array<1000000000 x f32>>
}

kernel.func @vector(%p: !kernel.pointer<const f32>) {
  // VECTOR: errors.mlir:[[#@LINE+1]]:8: error: _mm256_loadu_ps: element 2 of p is not there
  %x = kernel.intrinsic "_mm256_loadu_ps"(%p) : (!kernel.pointer<const f32>) -> vector<8xf32>
}
