// RUN: sandwich-opt %s --block-to-vector --canonicalize --cse | FileCheck %s

// Places that are computed are numbers of their own, not vectors; what lies at each
// is a row.
// CHECK-LABEL: func.func @table(
// CHECK-SAME: %[[X:.*]]: memref<?x16xf32>, %[[TABLE:.*]]: memref<?xi32>, %[[Y:.*]]: memref<2x16xf32>)
// CHECK-NOT: vector<2x
// CHECK: %[[A:.*]] = memref.load %[[TABLE]][%c0]
// CHECK: %[[B:.*]] = memref.load %[[TABLE]][%c1]
// CHECK: %[[I:.*]] = arith.index_cast %[[A]] : i32 to index
// CHECK: %[[J:.*]] = arith.index_cast %[[B]] : i32 to index
// CHECK: vector.load %[[X]][%[[I]], %c0] : memref<?x16xf32>, vector<16xf32>
// CHECK: vector.load %[[X]][%[[J]], %c0] : memref<?x16xf32>, vector<16xf32>
func.func @table(%x: memref<?x16xf32> {block.sizes = #block.sizes<rows, 16>},
                 %table: memref<?xi32> {block.sizes = #block.sizes<n>},
                 %y: memref<2x16xf32> {block.sizes = #block.sizes<2, 16>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %r = block.range %zero : !block.range<2>
  %c = block.range %zero : !block.range<16>
  %words = block.load %table[%r] : memref<?xi32>, !block.range<2> -> tensor<2xi32, #block.sizes<2>>
  %places = arith.index_cast %words : tensor<2xi32, #block.sizes<2>> to tensor<2xindex, #block.sizes<2>>
  %v = block.load %x[%places, %c] : memref<?x16xf32>, tensor<2xindex, #block.sizes<2>>, !block.range<16> -> tensor<2x16xf32, #block.sizes<2, 16>>
  block.store %v, %y[%r, %c] : tensor<2x16xf32, #block.sizes<2, 16>>, memref<2x16xf32>, !block.range<2>, !block.range<16>
  return
}

// One from here, one from there.
// CHECK-LABEL: func.func @interleave(
// CHECK-SAME: %[[X:.*]]: memref<2x16xf32>, %[[Y:.*]]: memref<32xf32>)
// CHECK: %[[A:.*]] = vector.load %[[X]][%c0, %c0]
// CHECK: %[[B:.*]] = vector.load %[[X]][%c1, %c0]
// CHECK: %[[BOTH:.*]] = vector.interleave %[[A]], %[[B]] : vector<16xf32> -> vector<32xf32>
// CHECK: vector.store %[[BOTH]], %[[Y]][%c0] : memref<32xf32>, vector<32xf32>
func.func @interleave(%x: memref<2x16xf32> {block.sizes = #block.sizes<2, 16>},
                      %y: memref<32xf32> {block.sizes = #block.sizes<32>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = block.range %zero : !block.range<16>
  %all = block.range %zero : !block.range<32>
  %a = block.load %x[%zero, %c] : memref<2x16xf32>, index, !block.range<16> -> tensor<16xf32, #block.sizes<16>>
  %b = block.load %x[%one, %c] : memref<2x16xf32>, index, !block.range<16> -> tensor<16xf32, #block.sizes<16>>
  %both = block.interleave %a, %b : tensor<16xf32, #block.sizes<16>> -> tensor<32xf32, #block.sizes<32>>
  block.store %both, %y[%all] : tensor<32xf32, #block.sizes<32>>, memref<32xf32>, !block.range<32>
  return
}

// Lines that are neighbors through several dimensions are asked for once each.
// CHECK-LABEL: func.func @lines(
// CHECK-SAME: %[[X:.*]]: memref<?x4x16x2xi8>, %[[I:.*]]: index)
// CHECK: memref.prefetch %[[X]][%[[I]], %c0, %c0, %c0], read, locality<3>, data
// CHECK: memref.prefetch %[[X]][%[[I]], %c2, %c0, %c0], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @lines(%x: memref<?x4x16x2xi8> {block.sizes = #block.sizes<n, 4, 16, 2>}, %i: index)
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %c = block.range %zero : !block.range<4>
  %t = block.range %zero : !block.range<16>
  %p = block.range %zero : !block.range<2>
  block.prefetch %x[%i, %c, %t, %p] : memref<?x4x16x2xi8>, index, !block.range<4>, !block.range<16>, !block.range<2>
  return
}

// What is repeated in rows is loaded as a single number.
// CHECK-LABEL: func.func @numbers(
// CHECK-NOT: vector.load %{{.*}} vector<2xf32>
// CHECK-COUNT-2: vector.broadcast %{{.*}} : f32 to vector<16xf32>
func.func @numbers(%x: memref<2xf32> {block.sizes = #block.sizes<2>},
                   %y: memref<2x16xf32> {block.sizes = #block.sizes<2, 16>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %r = block.range %zero : !block.range<2>
  %c = block.range %zero : !block.range<16>
  %v = block.load %x[%r] : memref<2xf32>, !block.range<2> -> tensor<2xf32, #block.sizes<2>>
  %column = block.expand %v at 1 : tensor<2xf32, #block.sizes<2>> -> tensor<2x1xf32, #block.sizes<2, 1>>
  %rows = block.broadcast %column : tensor<2x1xf32, #block.sizes<2, 1>> -> tensor<2x16xf32, #block.sizes<2, 16>>
  block.store %rows, %y[%r, %c] : tensor<2x16xf32, #block.sizes<2, 16>>, memref<2x16xf32>, !block.range<2>, !block.range<16>
  return
}
