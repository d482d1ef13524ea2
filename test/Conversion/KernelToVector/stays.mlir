// RUN: sandwich-opt %s --kernel-to-vector -split-input-file -verify-diagnostics | FileCheck %s

// What has no such form stays as it is, with a warning at its place, and what it
// calls stays with it.

// CHECK: kernel.func @left
// CHECK: func.func @fine
kernel.func @left(%n: si32) {
  %i = kernel.variable "i" : !kernel.pointer<si32>
  kernel.store %n, %i : !kernel.pointer<si32>
  kernel.for {
    %at = kernel.load %i : !kernel.pointer<si32>
    %zero = kernel.constant 0 : si32
    %more = kernel.compare gt %at, %zero : si32
    kernel.yield %more : i1
  } step {
  } do {
    %at = kernel.load %i : !kernel.pointer<si32>
    %zero = kernel.constant 0 : si32
    %isSmall = kernel.compare gt %at, %zero : si32
    kernel.if %isSmall {
      // expected-warning @below {{is not raised: a loop that is left early}}
      kernel.break
    } else {
    }
  }
}
kernel.func @fine(%x: f32) -> f32 {
  kernel.return %x : f32
}

// -----

// CHECK: kernel.func private @callee
// CHECK: kernel.func @caller
kernel.func private @callee(%p: !kernel.pointer<!kernel.pointer<f32>>) {
  // expected-warning @below {{is not raised: a pointer, or a truth, in memory}}
  %q = kernel.load %p : !kernel.pointer<!kernel.pointer<f32>>
}
kernel.func @caller(%p: !kernel.pointer<!kernel.pointer<f32>>) {
  kernel.call @callee(%p) : (!kernel.pointer<!kernel.pointer<f32>>) -> ()
}

// -----

// CHECK: kernel.func @chosen
kernel.func @chosen(%c: i1, %p: !kernel.pointer<f32>, %q: !kernel.pointer<f32>) -> f32 {
  // expected-warning @below {{is not raised: a choice between places}}
  %r = kernel.conditional %c {
    kernel.yield %p : !kernel.pointer<f32>
  } else {
    kernel.yield %q : !kernel.pointer<f32>
  } : !kernel.pointer<f32>
  %x = kernel.load %r : !kernel.pointer<f32>
  kernel.return %x : f32
}

// -----

// CHECK: kernel.func @merged
kernel.func @merged(%c: i1, %p: !kernel.pointer<f32>, %q: !kernel.pointer<f32>) -> f32 {
  %r = kernel.variable "r" : !kernel.pointer<!kernel.pointer<f32>>
  kernel.store %p, %r : !kernel.pointer<!kernel.pointer<f32>>
  // expected-warning @below {{is not raised: a pointer that is one of several arrays' here}}
  kernel.if %c {
    kernel.store %q, %r : !kernel.pointer<!kernel.pointer<f32>>
  } else {
  }
  %s = kernel.load %r : !kernel.pointer<!kernel.pointer<f32>>
  %x = kernel.load %s : !kernel.pointer<f32>
  kernel.return %x : f32
}

// -----

// CHECK: kernel.func @self
kernel.func @self(%n: si32) {
  // expected-warning @below {{is not raised: a function that calls itself}}
  kernel.call @self(%n) : (si32) -> ()
}

// -----

// What stays goes on calling what it called, under another name.
// CHECK: func.func @increased
// CHECK: kernel.func private @increased_kernel
// CHECK: kernel.func @reader
// CHECK: kernel.call @increased_kernel
kernel.func @increased(%p: !kernel.pointer<si32>) {
  %x = kernel.load %p : !kernel.pointer<si32>
  kernel.store %x, %p : !kernel.pointer<si32>
  kernel.return
}
kernel.func @reader(%p: !kernel.pointer<!kernel.pointer<si32>>) {
  // expected-warning @below {{is not raised: a pointer, or a truth, in memory}}
  %q = kernel.load %p : !kernel.pointer<!kernel.pointer<si32>>
  kernel.call @increased(%q) : (!kernel.pointer<si32>) -> ()
  kernel.return
}
