// RUN: sandwich-opt %s --block-to-vector="parameters=LANES=8" --canonicalize --cse | FileCheck %s
// RUN: sandwich-opt %s --block-to-vector="parameters=LANES=16,n=40" --canonicalize --cse | FileCheck %s --check-prefix=KNOWN

// Whole blocks in a loop, and what is left behind it, with a mask.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<1xf32>)
// CHECK-NOT: block.
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[WHOLE:.*]] = arith.muli
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[WHOLE]] step %c8 iter_args(%[[T:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK-NEXT: %[[V:.*]] = vector.load %[[X]][%[[I]]] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[T]], %[[V]] : vector<8xf32>
// CHECK-NEXT: scf.yield %[[S]]
// CHECK: %[[LEFT:.*]] = arith.cmpi slt, %[[WHOLE]], %[[N]]
// CHECK: scf.if %[[LEFT]] -> (vector<8xf32>)
// CHECK: %[[COUNT:.*]] = arith.subi %[[N]], %[[WHOLE]]
// CHECK: %[[MASK:.*]] = vector.create_mask %[[COUNT]] : vector<8xi1>
// CHECK: vector.maskedload %[[X]][%[[WHOLE]]], %[[MASK]], %{{.*}}
// CHECK: vector.reduction <add>
// CHECK: memref.store

// Two whole blocks of 16 and 8 numbers: no branch, and a mask that is known.
// KNOWN-LABEL: func.func @sum(
// KNOWN-SAME: %[[X:.*]]: memref<40xf32>
// KNOWN-NOT: scf.if
// KNOWN: scf.for %{{.*}} = %c0 to %c32 step %c16
// KNOWN: vector.constant_mask [8] : vector<16xi1>
// KNOWN: vector.maskedload %[[X]][%c32]
// KNOWN-NOT: scf.if
func.func @sum(%x: memref<?xf32> {block.sizes = #block.sizes<n>},
               %y: memref<1xf32> {block.sizes = #block.sizes<1>})
    attributes {block.parameters = #block.parameters<LANES in [8, 16] = 16>} {
  %zero = arith.constant 0 : index
  %n = block.size <n>
  %lanes = block.size <LANES>
  %none = arith.constant 0.0 : f32
  %begin = block.splat %none : f32 -> tensor<?xf32, #block.sizes<LANES>>
  %sums = scf.for %first = %zero to %n step %lanes
      iter_args(%sum = %begin) -> (tensor<?xf32, #block.sizes<LANES>>) {
    %i = block.range %first to %n : !block.range<LANES>
    %v = block.load %x[%i] : memref<?xf32>, !block.range<LANES> -> tensor<?xf32, #block.sizes<LANES>>
    %next = arith.addf %sum, %v : tensor<?xf32, #block.sizes<LANES>>
    scf.yield %next : tensor<?xf32, #block.sizes<LANES>>
  }
  %total = block.reduce add %sums : tensor<?xf32, #block.sizes<LANES>> -> f32
  memref.store %total, %y[%zero] : memref<1xf32>
  return
}
