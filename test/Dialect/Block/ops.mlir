// RUN: sandwich-opt %s | sandwich-opt | FileCheck %s
// RUN: sandwich-opt %s --mlir-print-op-generic | sandwich-opt | FileCheck %s

// CHECK-LABEL: func.func @everything(
// CHECK-SAME: %[[X:.*]]: memref<?x?xf32> {block.sizes = #block.sizes<rows, 2 * HALF>}
// CHECK-SAME: %[[N:.*]]: memref<4x?xi8> {block.sizes = #block.sizes<4, columns>}
// CHECK-SAME: block.documentation = "All operations."
// CHECK-SAME: block.parameters = #block.parameters<HALF, LANES in [8, 16, 32] = 16>
func.func @everything(%x: memref<?x?xf32> {block.sizes = #block.sizes<rows, 2 * HALF>},
                      %n: memref<4x?xi8> {block.sizes = #block.sizes<4, columns>},
                      %i: index, %f: f32)
    attributes {block.parameters = #block.parameters<HALF, LANES in [8, 16, 32] = 16>,
                block.documentation = "All operations."} {
  // CHECK: block.size <rows>
  %rows = block.size <rows>
  // CHECK: block.size <2 * HALF * LANES>
  %many = block.size <2 * HALF * LANES>
  // CHECK: %[[R:.*]] = block.range %{{.*}} : <LANES>
  %r = block.range %i : !block.range<LANES>
  // CHECK: block.range %{{.*}} to %{{.*}} : <4>
  %s = block.range %i to %rows : !block.range<4>
  // CHECK: block.shift %[[R]] by %{{.*}} : <LANES>
  %t = block.shift %r by %i : !block.range<LANES>
  // CHECK: block.positions %{{.*}} : <LANES> -> tensor<?xindex, #block.sizes<LANES>>
  %positions = block.positions %t : !block.range<LANES> -> tensor<?xindex, #block.sizes<LANES>>
  // CHECK: block.inside %{{.*}} : <4> -> tensor<4xi1, #block.sizes<4>>
  %inside = block.inside %s : !block.range<4> -> tensor<4xi1, #block.sizes<4>>
  // CHECK: %[[A:.*]] = block.load %[[X]][%{{.*}}, %{{.*}}] : memref<?x?xf32>, !block.range<4>, !block.range<LANES> -> tensor<4x?xf32, #block.sizes<4, LANES>>
  %a = block.load %x[%s, %r] : memref<?x?xf32>, !block.range<4>, !block.range<LANES> -> tensor<4x?xf32, #block.sizes<4, LANES>>
  // CHECK: block.store %[[A]], %[[X]][%{{.*}}, %{{.*}}] : tensor<4x?xf32, #block.sizes<4, LANES>>, memref<?x?xf32>, !block.range<4>, !block.range<LANES>
  block.store %a, %x[%s, %r] : tensor<4x?xf32, #block.sizes<4, LANES>>, memref<?x?xf32>, !block.range<4>, !block.range<LANES>
  // CHECK: block.scratch <4, LANES> : memref<4x?xbf16>
  %m = block.scratch <4, LANES> : memref<4x?xbf16>
  // CHECK: block.splat %{{.*}} : f32 -> tensor<?xf32, #block.sizes<LANES>>
  %b = block.splat %f : f32 -> tensor<?xf32, #block.sizes<LANES>>
  // CHECK: block.reduce max %[[A]] along 1 : tensor<4x?xf32, #block.sizes<4, LANES>> -> tensor<4xf32, #block.sizes<4>>
  %c = block.reduce max %a along 1 : tensor<4x?xf32, #block.sizes<4, LANES>> -> tensor<4xf32, #block.sizes<4>>
  // CHECK: block.reduce add %[[A]] : tensor<4x?xf32, #block.sizes<4, LANES>> -> f32
  %d = block.reduce add %a : tensor<4x?xf32, #block.sizes<4, LANES>> -> f32
  // CHECK: block.expand %{{.*}} at 1 : tensor<4xf32, #block.sizes<4>> -> tensor<4x1xf32, #block.sizes<4, 1>>
  %e = block.expand %c at 1 : tensor<4xf32, #block.sizes<4>> -> tensor<4x1xf32, #block.sizes<4, 1>>
  // CHECK: block.broadcast %{{.*}} : tensor<4x1xf32, #block.sizes<4, 1>> -> tensor<4x?xf32, #block.sizes<4, LANES>>
  %g = block.broadcast %e : tensor<4x1xf32, #block.sizes<4, 1>> -> tensor<4x?xf32, #block.sizes<4, LANES>>
  // CHECK: arith.addf %[[A]], %{{.*}} : tensor<4x?xf32, #block.sizes<4, LANES>>
  %h = arith.addf %a, %g : tensor<4x?xf32, #block.sizes<4, LANES>>
  // CHECK: %[[GATHERED:.*]] = block.load %[[X]][%{{.*}}, %{{.*}}] : memref<?x?xf32>, index, tensor<?xindex, #block.sizes<LANES>> -> tensor<?xf32, #block.sizes<LANES>>
  %gathered = block.load %x[%i, %positions] : memref<?x?xf32>, index, tensor<?xindex, #block.sizes<LANES>> -> tensor<?xf32, #block.sizes<LANES>>
  // CHECK: block.store %[[GATHERED]], %[[X]][%{{.*}}, %{{.*}}] : tensor<?xf32, #block.sizes<LANES>>, memref<?x?xf32>, index, tensor<?xindex, #block.sizes<LANES>>
  block.store %gathered, %x[%i, %positions] : tensor<?xf32, #block.sizes<LANES>>, memref<?x?xf32>, index, tensor<?xindex, #block.sizes<LANES>>
  // CHECK: block.prefetch %[[X]][%{{.*}}, %{{.*}}] : memref<?x?xf32>, index, !block.range<LANES>
  block.prefetch %x[%i, %r] : memref<?x?xf32>, index, !block.range<LANES>
  // CHECK: block.interleave %[[GATHERED]], %[[GATHERED]] : tensor<?xf32, #block.sizes<LANES>> -> tensor<?xf32, #block.sizes<2 * LANES>>
  %pairs = block.interleave %gathered, %gathered : tensor<?xf32, #block.sizes<LANES>> -> tensor<?xf32, #block.sizes<2 * LANES>>
  // CHECK: %[[WEIGHTS:.*]] = block.scratch <LANES, 2, 32> pairs : memref<?x2x32xbf16>
  %weights = block.scratch <LANES, 2, 32> pairs : memref<?x2x32xbf16>
  %two = block.range %i : !block.range<2>
  %columns = block.range %i : !block.range<32>
  %w = block.load %weights[%r, %two, %columns] : memref<?x2x32xbf16>, !block.range<LANES>, !block.range<2>, !block.range<32> -> tensor<?x2x32xbf16, #block.sizes<LANES, 2, 32>>
  %inputs = block.scratch <4, 2 * LANES> : memref<4x?xbf16>
  %four = block.range %i : !block.range<4>
  %both = block.range %i : !block.range<2 * LANES>
  %in = block.load %inputs[%four, %both] : memref<4x?xbf16>, !block.range<4>, !block.range<2 * LANES> -> tensor<4x?xbf16, #block.sizes<4, 2 * LANES>>
  %none = arith.constant 0.0 : f32
  %sums = block.splat %none : f32 -> tensor<4x32xf32, #block.sizes<4, 32>>
  // CHECK: block.matmul %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x?xbf16, #block.sizes<4, 2 * LANES>>, tensor<?x2x32xbf16, #block.sizes<LANES, 2, 32>> -> tensor<4x32xf32, #block.sizes<4, 32>>
  %product = block.matmul %in, %w, %sums : tensor<4x?xbf16, #block.sizes<4, 2 * LANES>>, tensor<?x2x32xbf16, #block.sizes<LANES, 2, 32>> -> tensor<4x32xf32, #block.sizes<4, 32>>
  %truth = arith.constant true
  // CHECK: block.assert %{{.*}}, "must hold"
  block.assert %truth, "must hold"
  return
}
