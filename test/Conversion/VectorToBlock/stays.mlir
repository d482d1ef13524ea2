// RUN: sandwich-opt %s --vector-to-block -split-input-file -verify-diagnostics | FileCheck %s

// What has no such form stays as it is, with a warning at its place.

// CHECK: vector.shuffle
func.func @shuffle(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<?xf32>, vector<8xf32>
  // expected-warning @below {{keeps its function from blocks: an operation vector.shuffle}}
  %w = vector.shuffle %v, %v [1, 0, 3, 2, 5, 4, 7, 6] : vector<8xf32>, vector<8xf32>
  vector.store %w, %x[%c0] : memref<?xf32>, vector<8xf32>
  return
}

// -----

// Lanes that become one twice are no sum.
func.func @twice(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<?xf32>, vector<2xf32>
  // expected-warning @below {{keeps its function from blocks: an operation vector.extract}}
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %s = arith.addf %a, %a : f32
  memref.store %s, %x[%c0] : memref<?xf32>
  return
}

// -----

func.func @mask(%x: memref<?xf32>, %m: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : vector<8xi32>
  %none = arith.constant dense<0.0> : vector<8xf32>
  %bits = vector.load %m[%c0] : memref<?xi32>, vector<8xi32>
  %mask = arith.cmpi ne, %bits, %zero : vector<8xi32>
  // expected-warning @below {{keeps its function from blocks: a mask that is not one of the first lanes}}
  %v = vector.maskedload %x[%c0], %mask, %none : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %v, %x[%c0] : memref<?xf32>, vector<8xf32>
  return
}

// -----

func.func @loop(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  // expected-warning @below {{keeps its function from blocks: an operation scf.while}}
  scf.while : () -> () {
    %v = memref.load %x[%c0] : memref<?xf32>
    %zero = arith.constant 0.0 : f32
    memref.store %v, %x[%c0] : memref<?xf32>
    %more = arith.cmpf ogt, %v, %zero : f32
    scf.condition(%more)
  } do {
    scf.yield
  }
  return
}

// -----

// expected-warning @below {{keeps its function from blocks: a vector as an argument}}
func.func @argument(%v: vector<8xf32>, %x: memref<?xf32>) {
  return
}

// -----

func.func @rank(%x: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-warning @below {{keeps its function from blocks: memory or vectors of another form}}
  %v = memref.load %x[%c0, %c0] : memref<4x4xf32>
  return
}

// -----

func.func @choice(%c: i1, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  // expected-warning @below {{keeps its function from blocks: memory in an operation arith.select}}
  %z = arith.select %c, %x, %y : memref<?xf32>
  memref.store %f, %z[%c0] : memref<?xf32>
  return
}

// -----

func.func @reduction(%x: memref<?xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<?xi32>, vector<8xi32>
  // expected-warning @below {{keeps its function from blocks: a reduction of this kind}}
  %m = vector.reduction <maxui>, %v : vector<8xi32> into i32
  return %m : i32
}
