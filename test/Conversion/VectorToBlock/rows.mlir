// RUN: sandwich-opt %s --vector-to-block --canonicalize --cse | FileCheck %s

// Turns whose numbers are apart, of memory with rows: several at once, if anybody
// wants that.
// CHECK-LABEL: func.func @scores(
// CHECK-SAME: %[[KEYS:.*]]: memref<?x32xf32> {block.sizes = #block.sizes<argument_2_rows, 32>}
// CHECK-SAME: LANES in [8, 16, 32, 64] = 8, ROWS in [1, 4, 8, 16, 32] = 1
// CHECK: %[[STEP:.*]] = block.size <ROWS>
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %[[COUNT:.*]] step %[[STEP]] iter_args(%[[MOST:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[ROWS:.*]] = block.range %[[J]] to %[[COUNT]] : <ROWS>
// CHECK: %[[DOTS:.*]] = scf.for {{.*}} -> (tensor<?x?xf32, #block.sizes<ROWS, LANES>>) {
// CHECK-NEXT: %[[RANGE:.*]] = block.range
// CHECK-NEXT: %[[Q:.*]] = block.load %{{.*}}[%[[RANGE]]]
// CHECK-NEXT: %[[K:.*]] = block.load %{{.*}}[%[[ROWS]], %[[RANGE]]] : memref<?x32xf32>
// CHECK-NEXT: %[[WIDE:.*]] = block.broadcast %[[Q]]
// CHECK-NEXT: math.fma %[[WIDE]], %[[K]], %{{.*}}
// CHECK: %[[SCORES:.*]] = block.reduce {{ *}}add %[[DOTS]] along 1
// CHECK: block.store %[[SCORES]], %{{.*}}[%[[ROWS]]]
// CHECK: %[[THERE:.*]] = block.inside %[[ROWS]]
// CHECK: %[[VALID:.*]] = arith.select %[[THERE]], %[[SCORES]]
// CHECK: %[[LARGEST:.*]] = block.reduce {{ *}}max %[[VALID]]
// CHECK: arith.cmpf ogt, %[[MOST]], %[[LARGEST]]
func.func @scores(%q: memref<?xf32>, %keys: memref<?xf32>, %count: index, %scores: memref<?xf32>, %largest: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %low = arith.constant 0xFF800000 : f32
  %most = scf.for %j = %c0 to %count step %c1 iter_args(%m = %low) -> (f32) {
    %first = arith.muli %j, %c32 : index
    %dot = scf.for %d = %c0 to %c32 step %c8 iter_args(%sum = %zero) -> (vector<8xf32>) {
      %at = arith.addi %first, %d : index
      %a = vector.load %q[%d] : memref<?xf32>, vector<8xf32>
      %b = vector.load %keys[%at] : memref<?xf32>, vector<8xf32>
      %next = math.fma %a, %b, %sum : vector<8xf32>
      scf.yield %next : vector<8xf32>
    }
    %score = vector.reduction <add>, %dot : vector<8xf32> into f32
    memref.store %score, %scores[%j] : memref<?xf32>
    %isMore = arith.cmpf ogt, %score, %m : f32
    %next = arith.select %isMore, %score, %m : f32
    scf.yield %next : f32
  }
  memref.store %most, %largest[%c0] : memref<?xf32>
  return
}

// A sum in memory, to which each turn adds.
// CHECK-LABEL: func.func @values(
// CHECK: %[[ROWS:.*]] = block.range %{{.*}} : <ROWS>
// CHECK: %[[WEIGHTS:.*]] = block.load %{{.*}}[%[[ROWS]]]
// CHECK: %[[V:.*]] = block.load %{{.*}}[%[[ROWS]], %{{.*}}] : memref<?x32xf32>
// CHECK: %[[SUM:.*]] = block.load
// CHECK: %[[FACTORS:.*]] = arith.select %{{.*}}, %[[WEIGHTS]], %{{.*}}
// CHECK: %[[COLUMN:.*]] = block.expand %[[FACTORS]] at 1
// CHECK: %[[WIDE:.*]] = block.broadcast %[[COLUMN]]
// CHECK: %[[PRODUCTS:.*]] = arith.mulf %[[WIDE]], %[[V]]
// CHECK: %[[ADDED:.*]] = block.reduce {{ *}}add %[[PRODUCTS]] along 0
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[ADDED]]
// CHECK: block.store %[[NEXT]]
func.func @values(%weights: memref<?xf32>, %values: memref<?xf32>, %count: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %count step %c1 {
    %weight = memref.load %weights[%j] : memref<?xf32>
    %factor = vector.broadcast %weight : f32 to vector<8xf32>
    %first = arith.muli %j, %c32 : index
    scf.for %d = %c0 to %c32 step %c8 {
      %at = arith.addi %first, %d : index
      %b = vector.load %values[%at] : memref<?xf32>, vector<8xf32>
      %sum = vector.load %out[%d] : memref<?xf32>, vector<8xf32>
      %next = math.fma %factor, %b, %sum : vector<8xf32>
      vector.store %next, %out[%d] : memref<?xf32>, vector<8xf32>
    }
  }
  return
}

// Tiles, and memory with a number for each step of one.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: ROWS in [1, 4, 8, 16, 32] = 1, STEPS in [16, 24, 64, 256, 1024] = 24
// CHECK: block.scratch <STEPS>
// CHECK: %[[SIZE:.*]] = block.size <STEPS>
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %[[N:.*]] step %[[SIZE]] {
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[FIRST]]
// CHECK: arith.minsi %[[LEFT]], %[[SIZE]]
func.func @tiles(%x: memref<?xf32>, %n: index, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %squares = memref.alloca() : memref<24xf32>
  scf.for %first = %c0 to %n step %c24 {
    %left = arith.subi %n, %first : index
    %size = arith.minsi %left, %c24 : index
    scf.for %j = %c0 to %size step %c1 {
      %at = arith.addi %first, %j : index
      %v = memref.load %x[%at] : memref<?xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %squares[%j] : memref<24xf32>
    }
    scf.for %j = %c0 to %size step %c1 {
      %at = arith.addi %first, %j : index
      %w = memref.load %squares[%j] : memref<24xf32>
      memref.store %w, %y[%at] : memref<?xf32>
    }
  } {kernel.step = "STEPS"}
  return
}
