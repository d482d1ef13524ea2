// RUN: sandwich-opt %s --block-to-vector='check-bounds parameters=LANES=8' --canonicalize --cse | FileCheck %s

// A loop over all that there is reaches nothing else.
// CHECK-LABEL: func.func @all(
// CHECK-SAME: -> i64
// CHECK: scf.for
// CHECK-NEXT: vector.load
// CHECK-NEXT: vector.store
// CHECK-NOT: memref.store
// CHECK: return
func.func @all(%x: memref<?xf32> {block.sizes = #block.sizes<n>})
    attributes {block.parameters = #block.parameters<LANES in [8, 16] = 8>} {
  %c0 = arith.constant 0 : index
  %n = block.size <n>
  %lanes = block.size <LANES>
  scf.for %first = %c0 to %n step %lanes {
    %i = block.range %first to %n : !block.range<LANES>
    %v = block.load %x[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
    block.store %v, %x[%i] : tensor<?xf32, #block.sizes<LANES>>, memref<?xf32>, !block.range<LANES>
  }
  return
}

// One that goes as far as a number says is checked, and its line kept.
// CHECK-LABEL: func.func @given(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[N:.*]]: index) -> i64
// CHECK: %[[LINE:.*]] = memref.alloca() {{.*}}: memref<1xi64>
// CHECK: scf.for %[[I:[a-z0-9]+]] = %c0
// CHECK: %[[EXTENT:.*]] = memref.dim %[[X]]
// CHECK: %[[LAST:.*]] = arith.subi %[[EXTENT]], %c8
// CHECK-DAG: arith.cmpi sle, %[[I]], %[[LAST]]
// CHECK: scf.if
// CHECK: arith.select %{{.*}}, %c[[#@LINE+13]]_i64
// CHECK: memref.store %{{.*}}, %[[LINE]]
// CHECK: vector.maskedload %[[X]]
// CHECK: memref.load %[[LINE]]
// CHECK: return
func.func @given(%x: memref<?xf32> {block.sizes = #block.sizes<n>}, %count: index)
    attributes {block.parameters = #block.parameters<LANES in [8, 16] = 8>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lanes = block.size <LANES>
  %zeros = block.splat %zero : f32 -> tensor<?xf32, #block.sizes<LANES>>
  %all = scf.for %first = %c0 to %count step %lanes iter_args(%sum = %zeros) -> (tensor<?xf32, #block.sizes<LANES>>) {
    %i = block.range %first to %count : !block.range<LANES>
    %v = block.load %x[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
    %next = arith.addf %sum, %v : tensor<?xf32, #block.sizes<LANES>>
    scf.yield %next : tensor<?xf32, #block.sizes<LANES>>
  }
  %total = block.reduce add %all : tensor<?xf32, #block.sizes<LANES>> -> f32
  memref.store %total, %x[%c0] : memref<?xf32>
  return
}

// Arguments that have one size must be as large.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>)
// CHECK-DAG: %[[OWN:.*]] = memref.dim %[[Y]]
// CHECK-DAG: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[OWN]], %[[N]]
// CHECK: scf.if %[[SAME]]
func.func @both(%x: memref<?xf32> {block.sizes = #block.sizes<n>}, %y: memref<?xf32> {block.sizes = #block.sizes<n>})
    attributes {block.parameters = #block.parameters<LANES in [8, 16] = 8>} {
  %c0 = arith.constant 0 : index
  %n = block.size <n>
  %lanes = block.size <LANES>
  scf.for %first = %c0 to %n step %lanes {
    %i = block.range %first to %n : !block.range<LANES>
    %v = block.load %x[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
    block.store %v, %y[%i] : tensor<?xf32, #block.sizes<LANES>>, memref<?xf32>, !block.range<LANES>
  }
  return
}
