// RUN: sandwich-opt %s --vector-to-block --canonicalize --cse | FileCheck %s

// Neighbors, one vector each turn, whose lanes are summed up by halves.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[X:.*]]: memref<?xf32> {block.sizes = #block.sizes<argument_size>}, %[[N:.*]]: index, %[[RESULT:.*]]: memref<1xf32> {block.sizes = #block.sizes<1>})
// CHECK-SAME: block.parameters = #block.parameters<LANES in [8, 16, 32, 64] = 8>
// CHECK: %[[END:.*]] = arith.andi %[[N]], %{{.*}}
// CHECK: %[[LANES:.*]] = block.size <LANES>
// CHECK: %[[SUMS:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[END]] step %[[LANES]] iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<?xf32, #block.sizes<LANES>>) {
// CHECK-NEXT: %[[RANGE:.*]] = block.range %[[I]] to %[[END]]
// CHECK-NEXT: %[[V:.*]] = block.load %[[X]][%[[RANGE]]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[V]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: %[[TOTAL:.*]] = block.reduce {{ *}}add %[[SUMS]]
// CHECK: memref.store %[[TOTAL]], %[[RESULT]]
func.func @sum(%x: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %whole = arith.constant -8 : index
  %end = arith.andi %n, %whole : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %all = scf.for %i = %c0 to %end step %c8 iter_args(%sum = %zero) -> (vector<8xf32>) {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    %next = arith.addf %sum, %v : vector<8xf32>
    scf.yield %next : vector<8xf32>
  }
  %low = vector.shuffle %all, %all [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
  %high = vector.shuffle %all, %all [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
  %half = arith.addf %low, %high : vector<4xf32>
  %moved = vector.shuffle %half, %half [2, 3, 0, 1] : vector<4xf32>, vector<4xf32>
  %pairs = arith.addf %half, %moved : vector<4xf32>
  %a = vector.extract %pairs[0] : f32 from vector<4xf32>
  %b = vector.extract %pairs[1] : f32 from vector<4xf32>
  %total = arith.addf %a, %b : f32
  return %total : f32
}

// Two vectors a turn of which the same is computed are one larger block, and what
// both sum up is one sum.
// CHECK-LABEL: func.func @copies(
// CHECK-SAME: LANES in [8, 16, 32, 64] = 8
// CHECK: arith.floordivsi
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[END:.*]] step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<?xf32, #block.sizes<2 * LANES>>) {
// CHECK-NEXT: %[[RANGE:.*]] = block.range %[[I]] to %[[END]] : <2 * LANES>
// CHECK-NEXT: %[[V:.*]] = block.load %{{.*}}[%[[RANGE]]]
// CHECK-NEXT: %[[FACTOR:.*]] = block.splat
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[V]], %[[FACTOR]]
// CHECK-NEXT: block.store %[[PRODUCT]], %{{.*}}[%[[RANGE]]]
// CHECK-NEXT: %[[NEXT:.*]] = math.fma %[[V]], %[[V]], %[[SUM]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: block.reduce {{ *}}add
// CHECK-NOT: arith.addf
func.func @copies(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %by: f32, %result: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %factor = vector.broadcast %by : f32 to vector<8xf32>
  %sums:2 = scf.for %i = %c0 to %n step %c16 iter_args(%s = %zero, %t = %zero) -> (vector<8xf32>, vector<8xf32>) {
    %j = arith.addi %i, %c8 : index
    %a = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    %b = vector.load %x[%j] : memref<?xf32>, vector<8xf32>
    %c = arith.mulf %a, %factor : vector<8xf32>
    %d = arith.mulf %b, %factor : vector<8xf32>
    vector.store %c, %y[%i] : memref<?xf32>, vector<8xf32>
    vector.store %d, %y[%j] : memref<?xf32>, vector<8xf32>
    %u = math.fma %a, %a, %s : vector<8xf32>
    %v = math.fma %b, %b, %t : vector<8xf32>
    scf.yield %u, %v : vector<8xf32>, vector<8xf32>
  }
  %both = arith.addf %sums#0, %sums#1 : vector<8xf32>
  %total = vector.reduction <add>, %both : vector<8xf32> into f32
  memref.store %total, %result[%c0] : memref<?xf32>
  return
}

// The largest one. What is not there is 0 less 1, and must not count.
// CHECK-LABEL: func.func @largest(
// CHECK-SAME: LANES in [4, 8, 16, 32, 64] = 4
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: scf.for {{.*}} iter_args(%[[MOST:.*]] = %{{.*}}) -> (tensor<?xf32, #block.sizes<LANES>>) {
// CHECK: %[[LESS:.*]] = arith.subf
// CHECK: %[[IS_MORE:.*]] = arith.cmpf ogt, %[[LESS]], %[[MOST]]
// CHECK: %[[LARGER:.*]] = arith.select %[[IS_MORE]], %[[LESS]], %[[MOST]]
// CHECK: %[[INSIDE:.*]] = block.inside
// CHECK: %[[NEXT:.*]] = arith.select %[[INSIDE]], %[[LARGER]], %[[MOST]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: block.reduce {{ *}}max
func.func @largest(%x: memref<?xf32>, %n: index, %result: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant dense<1.0> : vector<4xf32>
  %low = arith.constant dense<0xFF800000> : vector<4xf32>
  %all = scf.for %i = %c0 to %n step %c4 iter_args(%m = %low) -> (vector<4xf32>) {
    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    %w = arith.subf %v, %one : vector<4xf32>
    %isMore = arith.cmpf ogt, %w, %m : vector<4xf32>
    %next = arith.select %isMore, %w, %m : vector<4xi1>, vector<4xf32>
    scf.yield %next : vector<4xf32>
  }
  %most = vector.reduction <maxnumf>, %all : vector<4xf32> into f32
  memref.store %most, %result[%c0] : memref<?xf32>
  return
}

// What is left over, with a mask of bits: a part of the sum, wherever the loop
// ended.
// CHECK-LABEL: func.func @rest(
// CHECK-SAME: LANES in [8, 16, 32, 64] = 16
// CHECK: %[[END:.*]] = arith.andi
// CHECK: %[[SUM:.*]] = block.reduce {{ *}}add
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[END]]
// CHECK: %[[LANES:.*]] = block.range %{{.*}} to %[[LEFT]] : <16>
// CHECK: %[[MASK:.*]] = block.inside %[[LANES]]
// CHECK: %[[RANGE:.*]] = block.range %[[END]] to %{{.*}} : <16>
// CHECK: %[[LAST:.*]] = block.load %{{.*}}[%[[RANGE]]]
// CHECK: %[[ADDED:.*]] = arith.select %[[MASK]], %[[LAST]]
// CHECK: %[[MORE:.*]] = block.reduce {{ *}}add %[[ADDED]]
// CHECK: arith.addf %[[SUM]], %[[MORE]] : f32
func.func @rest(%x: memref<?xf32>, %n: index, %result: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1 : i32
  %whole = arith.constant -16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %end = arith.andi %n, %whole : index
  %sum = scf.for %i = %c0 to %end step %c16 iter_args(%s = %zero) -> (vector<16xf32>) {
    %v = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %next = arith.addf %s, %v : vector<16xf32>
    scf.yield %next : vector<16xf32>
  }
  %left = arith.subi %n, %end : index
  %count = arith.index_cast %left : index to i32
  %power = arith.shli %one, %count : i32
  %bits = arith.subi %power, %one : i32
  %short = arith.trunci %bits : i32 to i16
  %vector = vector.broadcast %short : i16 to vector<1xi16>
  %mask = vector.bitcast %vector : vector<1xi16> to vector<16xi1>
  %last = vector.maskedload %x[%end], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %more = arith.addf %sum, %last : vector<16xf32>
  %all = arith.select %mask, %more, %sum : vector<16xi1>, vector<16xf32>
  %total = vector.reduction <add>, %all : vector<16xf32> into f32
  memref.store %total, %result[%c0] : memref<?xf32>
  return
}

// A vector that moves beyond what another turn reads stays as wide as it is.
// CHECK-LABEL: func.func @before(
// CHECK-SAME: block.parameters = #block.parameters<>
// CHECK: block.range %{{.*}} : <8>
func.func @before(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    %j = arith.addi %i, %c1 : index
    vector.store %v, %x[%j] : memref<?xf32>, vector<8xf32>
  }
  return
}
