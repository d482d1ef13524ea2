// RUN: sandwich-opt %s --kernel-to-vector --canonicalize --cse | FileCheck %s

// Tables are constants, of numbers or of bytes.
// CHECK: memref.global "private" constant @levels_numbers : memref<4xi8> = dense<[0, 1, 4, 9]>

// A counted loop whose variables are values.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[N:.*]]: i32) -> f32 {
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f32) : i32 {
// CHECK: %[[AT:.*]] = arith.index_cast %[[I]] : i32 to index
// CHECK: %[[ONE:.*]] = memref.load %[[X]][%[[AT]]]
// CHECK: %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[ONE]]
// CHECK: scf.yield %[[AFTER]]
// CHECK: return %[[SUM]]
// CHECK-NOT: memref.alloca
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
    %one = kernel.load %place : !kernel.pointer<const f32>
    %before = kernel.load %total : !kernel.pointer<f32>
    %after = kernel.binary add %before, %one : f32
    kernel.store %after, %total : !kernel.pointer<f32>
  }
  %result = kernel.load %total : !kernel.pointer<f32>
  kernel.return %result : f32
}

// A pointer that goes on is an offset that a loop carries, which counts how
// often it goes on, be it down; a branch that ends a turn early takes the rest
// of the body into its other side.
// CHECK-LABEL: func.func @positive(
// CHECK-SAME: %[[P:.*]]: memref<?xf32>, %[[BYTES:.*]]: i64)
// CHECK-DAG: %[[MORE:.*]] = arith.addi %[[BYTES]], %c3_i64
// CHECK-DAG: %[[SOME:.*]] = arith.maxsi %[[MORE]], %c0_i64
// CHECK-DAG: %[[TURNS:.*]] = arith.divsi %[[SOME]], %c4_i64
// CHECK: scf.for %{{.*}} = %c0_i64 to %[[TURNS]] step %c1_i64 iter_args(%[[AT:.*]] = %{{.*}}, %[[COUNT:.*]] = %{{.*}}) -> (index, i32) : i64 {
// CHECK: %[[X:.*]] = memref.load %[[P]][%[[AT]]]
// CHECK: %[[LESS:.*]] = arith.cmpf olt, %[[X]]
// CHECK: scf.if %[[LESS]] -> (i32) {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK: arith.addi
// CHECK: scf.yield
// CHECK: arith.addi %{{.*}}, %{{.*}} : index
// CHECK: scf.yield
kernel.func @positive(%x: !kernel.pointer<const f32>, %bytes: ui64) -> si32 {
  %left = kernel.variable "left" : !kernel.pointer<ui64>
  kernel.store %bytes, %left : !kernel.pointer<ui64>
  %at = kernel.variable "at" : !kernel.pointer<!kernel.pointer<const f32>>
  kernel.store %x, %at : !kernel.pointer<!kernel.pointer<const f32>>
  %count = kernel.variable "count" : !kernel.pointer<si32>
  %none = kernel.constant 0 : si32
  kernel.store %none, %count : !kernel.pointer<si32>
  kernel.for {
    %now = kernel.load %left : !kernel.pointer<ui64>
    %zero = kernel.constant 0 : ui64
    %more = kernel.compare gt %now, %zero : ui64
    kernel.yield %more : i1
  } step {
    %now = kernel.load %left : !kernel.pointer<ui64>
    %four = kernel.constant 4 : ui64
    %less = kernel.binary sub %now, %four : ui64
    kernel.store %less, %left : !kernel.pointer<ui64>
    %p = kernel.load %at : !kernel.pointer<!kernel.pointer<const f32>>
    %one = kernel.constant 1 : si32
    %q = kernel.offset %p, %one : !kernel.pointer<const f32>, si32
    kernel.store %q, %at : !kernel.pointer<!kernel.pointer<const f32>>
  } do {
    %p = kernel.load %at : !kernel.pointer<!kernel.pointer<const f32>>
    %value = kernel.load %p : !kernel.pointer<const f32>
    %zero = kernel.constant 0.0 : f32
    %isLess = kernel.compare lt %value, %zero : f32
    kernel.if %isLess {
      kernel.continue
    } else {
    }
    %before = kernel.load %count : !kernel.pointer<si32>
    %one = kernel.constant 1 : si32
    %after = kernel.binary add %before, %one : si32
    kernel.store %after, %count : !kernel.pointer<si32>
  }
  %result = kernel.load %count : !kernel.pointer<si32>
  kernel.return %result : si32
}

// A call is inlined, and returns early; members of a structure are values of
// their own; what is checked is taken for true.
// CHECK-NOT: kernel.func
// CHECK-LABEL: func.func @called(
// CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i32) -> i32 {
// CHECK-NEXT: %[[LESS:.*]] = arith.cmpi slt, %[[A]], %[[B]] : i32
// CHECK-NEXT: %[[LARGER:.*]] = arith.select %[[LESS]], %[[B]], %[[A]] : i32
// CHECK-NEXT: return %[[LARGER]]
kernel.func private @larger(%a: !kernel.pointer<const si32>, %b: !kernel.pointer<const si32>) -> si32 {
  %x = kernel.load %a : !kernel.pointer<const si32>
  %y = kernel.load %b : !kernel.pointer<const si32>
  %less = kernel.compare lt %x, %y : si32
  kernel.if %less {
    kernel.return %y : si32
  } else {
  }
  kernel.return %x : si32
}
kernel.func @called(%a: si32, %b: si32) -> si32 {
  %zero = kernel.constant 0 : si32
  %isZero = kernel.compare eq %a, %zero : si32
  kernel.if %isZero {
    kernel.trap
  } else {
  }
  %pair = kernel.variable "pair" : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>>
  %first = kernel.member %pair, "first" : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>> to !kernel.pointer<si32>
  kernel.store %a, %first : !kernel.pointer<si32>
  %other = kernel.variable "other" : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>>
  kernel.copy %pair, %other : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>> to !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>>
  %second = kernel.member %other, "second" : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>> to !kernel.pointer<si32>
  kernel.store %b, %second : !kernel.pointer<si32>
  %copied = kernel.member %other, "first" : !kernel.pointer<!kernel.structure<"pair", first: si32, second: si32>> to !kernel.pointer<si32>
  %p = kernel.cast %copied : !kernel.pointer<si32> to !kernel.pointer<const si32>
  %q = kernel.cast %second : !kernel.pointer<si32> to !kernel.pointer<const si32>
  %result = kernel.call @larger(%p, %q) : (!kernel.pointer<const si32>, !kernel.pointer<const si32>) -> si32
  kernel.return %result : si32
}

// Arrays are memory, made once.
kernel.global @levels : !kernel.array<4 x si8> = dense<[0, 1, 4, 9]> : tensor<4xsi8>
// CHECK-LABEL: func.func @table(
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<2xi32>
// CHECK: memref.get_global @levels_numbers
// CHECK: memref.load
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: memref.store
kernel.func @table(%i: ui32, %j: si32) -> si32 {
  %array = kernel.variable "array" : !kernel.pointer<!kernel.array<2 x si32>>
  %table = kernel.address @levels : !kernel.pointer<const !kernel.array<4 x si8>>
  %numbers = kernel.elements %table : !kernel.pointer<const !kernel.array<4 x si8>> to !kernel.pointer<const si8>
  %place = kernel.offset %numbers, %i : !kernel.pointer<const si8>, ui32
  %level = kernel.load %place : !kernel.pointer<const si8>
  %wide = kernel.cast %level : si8 to si32
  %elements = kernel.elements %array : !kernel.pointer<!kernel.array<2 x si32>> to !kernel.pointer<si32>
  %to = kernel.offset %elements, %j : !kernel.pointer<si32>, si32
  kernel.store %wide, %to : !kernel.pointer<si32>
  %back = kernel.load %elements : !kernel.pointer<si32>
  kernel.return %back : si32
}
