// RUN: sandwich-opt %s --block-to-vector --canonicalize --cse | FileCheck %s

// A block of two dimensions is a vector for each row; numbers of a column are
// single ones, which meet whole rows; rows that are not there are neither read
// nor written.
// CHECK-LABEL: func.func @outer(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32>, %[[N:.*]]: index)
// CHECK: %[[A:.*]] = memref.load %[[X]][%c0, %c0]
// CHECK: %[[B:.*]] = memref.load %[[X]][%c1, %c0]
// CHECK: %[[ROW:.*]] = vector.load %[[X]][%c0, %c4] : memref<?x?xf32>, vector<8xf32>
// CHECK: %[[VA:.*]] = vector.broadcast %[[A]] : f32 to vector<8xf32>
// CHECK: %[[VB:.*]] = vector.broadcast %[[B]] : f32 to vector<8xf32>
// CHECK: %[[PA:.*]] = arith.mulf %[[VA]], %[[ROW]] : vector<8xf32>
// CHECK: %[[PB:.*]] = arith.mulf %[[VB]], %[[ROW]] : vector<8xf32>
// CHECK: vector.maskedstore %[[X]][%{{.*}}, %c0], %{{.*}}, %[[PA]]
// CHECK: vector.maskedstore %[[X]][%{{.*}}, %c0], %{{.*}}, %[[PB]]
func.func @outer(%x: memref<?x?xf32> {block.sizes = #block.sizes<rows, columns>}, %n: index)
    attributes {block.parameters = #block.parameters<ROWS in [2] = 2, LANES in [8] = 8>} {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %r = block.range %zero : !block.range<ROWS>
  %c = block.range %four : !block.range<LANES>
  %a = block.load %x[%r, %zero] : memref<?x?xf32>, !block.range<ROWS>, index -> tensor<?xf32, #block.sizes<ROWS>>
  %column = block.expand %a at 1 : tensor<?xf32, #block.sizes<ROWS>> -> tensor<?x1xf32, #block.sizes<ROWS, 1>>
  %row = block.load %x[%zero, %c] : memref<?x?xf32>, index, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
  %left = block.broadcast %column : tensor<?x1xf32, #block.sizes<ROWS, 1>> -> tensor<?x?xf32, #block.sizes<ROWS, LANES>>
  %right = block.broadcast %row : tensor<?xf32, #block.sizes<LANES>> -> tensor<?x?xf32, #block.sizes<ROWS, LANES>>
  %product = arith.mulf %left, %right : tensor<?x?xf32, #block.sizes<ROWS, LANES>>
  %rows = block.size <rows>
  %s = block.range %n to %rows : !block.range<ROWS>
  %d = block.range %zero : !block.range<LANES>
  block.store %product, %x[%s, %d] : tensor<?x?xf32, #block.sizes<ROWS, LANES>>, memref<?x?xf32>, !block.range<ROWS>, !block.range<LANES>
  return
}

// Along rows numbers are combined in vectors, those of two rows in one, across
// them row by row.
// CHECK-LABEL: func.func @reduce(
// CHECK: %[[A:.*]] = vector.load
// CHECK: %[[B:.*]] = vector.load
// CHECK: %[[L:.*]] = arith.cmpf ogt, %[[A]], %[[B]] : vector<4xf32>
// CHECK: %[[M:.*]] = arith.select %[[L]], %[[A]], %[[B]]
// CHECK: vector.store %[[M]]
// CHECK: vector.shuffle %[[A]], %[[B]] [0, 1, 4, 5]
// CHECK: vector.shuffle %[[A]], %[[B]] [2, 3, 6, 7]
// CHECK: vector.store %{{.*}} : memref<2xf32>, vector<2xf32>
func.func @reduce(%x: memref<2x4xf32> {block.sizes = #block.sizes<2, 4>},
                  %y: memref<4xf32> {block.sizes = #block.sizes<4>},
                  %z: memref<2xf32> {block.sizes = #block.sizes<2>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %r = block.range %zero : !block.range<2>
  %c = block.range %zero : !block.range<4>
  %a = block.load %x[%r, %c] : memref<2x4xf32>, !block.range<2>, !block.range<4> -> tensor<2x4xf32, #block.sizes<2, 4>>
  %down = block.reduce max %a along 0 : tensor<2x4xf32, #block.sizes<2, 4>> -> tensor<4xf32, #block.sizes<4>>
  block.store %down, %y[%c] : tensor<4xf32, #block.sizes<4>>, memref<4xf32>, !block.range<4>
  %along = block.reduce max %a along 1 : tensor<2x4xf32, #block.sizes<2, 4>> -> tensor<2xf32, #block.sizes<2>>
  block.store %along, %z[%r] : tensor<2xf32, #block.sizes<2>>, memref<2xf32>, !block.range<2>
  return
}

// A loop that is unrolled is its turns; what a parameter decides is decided.
// CHECK-LABEL: func.func @unroll(
// CHECK-NOT: scf.
// CHECK-COUNT-3: memref.store
// CHECK-NOT: memref.store
func.func @unroll(%x: memref<8xf32> {block.sizes = #block.sizes<8>}, %f: f32)
    attributes {block.parameters = #block.parameters<TURNS in [3] = 3>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %turns = block.size <TURNS>
  scf.for %i = %zero to %turns step %one {
    memref.store %f, %x[%i] : memref<8xf32>
  } {block.unroll}
  %many = arith.cmpi sgt, %turns, %turns : index
  scf.if %many {
    memref.store %f, %x[%zero] : memref<8xf32>
  }
  return
}
