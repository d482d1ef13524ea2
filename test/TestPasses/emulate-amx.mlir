// RUN: sandwich-opt %s -test-emulate-amx | FileCheck %s --implicit-check-not=tile.

// A function that others call gets the state of the thread from them: rows are
// loaded, stored and multiplied one by one, as many as were configured; those of
// the input are as long.
// CHECK-LABEL: func @multiply
// CHECK-SAME: %[[STATE:[^:]*]]: memref<2050xi32>)
// CHECK: scf.for
// CHECK: vector.store %{{.*}}, %[[STATE]]
// CHECK: memref.load %[[STATE]]
// CHECK: scf.for
// CHECK: memref.load %[[STATE]]
// CHECK: scf.if %{{.*}} -> (vector<16xi32>)
// CHECK: vector.load %{{.*}} : memref<?x?xbf16>, vector<32xbf16>
// CHECK: vector.bitcast %{{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK: } else {
// CHECK: vector.load %{{.*}} : memref<?x?xbf16>, vector<16xbf16>
// CHECK: vector.bitcast %{{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK: vector.insert_strided_slice
// CHECK: scf.for
// CHECK: vector.load %{{.*}} : memref<?xbf16>, vector<32xbf16>
// CHECK: arith.shli
// CHECK-COUNT-2: vector.fma
// CHECK: arith.shrsi
// CHECK: arith.muli {{.*}} : vector<16xi32>
// CHECK: vector.store %{{.*}} : memref<?x?xf32>, vector<16xf32>
func.func @multiply(%a: memref<?x?xbf16>, %b: memref<?xbf16>, %c: memref<?x?xf32>, %i: index) {
  tile.zero 0
  tile.load 4, %a[%i, %i] : memref<?x?xbf16>
  tile.load 6, %b[%i] stride %i streaming : memref<?xbf16>
  tile.multiply 0, 4, 6 products <bf16>
  tile.multiply 1, 4, 6 products <i8_u8>
  tile.store 0, %c[%i, %i] : memref<?x?xf32>
  return
}

// It is on the stack of one that nobody calls, and passes through others.
// CHECK-LABEL: func @between
// CHECK-SAME: %[[PASSED:[^:]*]]: memref<2050xi32>)
// CHECK: call @multiply({{.*}}, %[[PASSED]])
func.func @between(%a: memref<?x?xbf16>, %b: memref<?xbf16>, %c: memref<?x?xf32>, %i: index) {
  func.call @multiply(%a, %b, %c, %i) : (memref<?x?xbf16>, memref<?xbf16>, memref<?x?xf32>, index) -> ()
  return
}
// CHECK-LABEL: func @program
// CHECK: %[[OWN:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2050xi32>
// CHECK: memref.store %{{.*}}, %[[OWN]]
// CHECK: call @between({{.*}}, %[[OWN]])
func.func @program(%a: memref<?x?xbf16>, %b: memref<?xbf16>, %c: memref<?x?xf32>, %i: index) {
  tile.configure %i
  func.call @between(%a, %b, %c, %i) : (memref<?x?xbf16>, memref<?xbf16>, memref<?x?xf32>, index) -> ()
  return
}
