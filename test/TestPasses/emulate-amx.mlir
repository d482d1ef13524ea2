// RUN: sandwich-opt %s -test-emulate-amx | FileCheck %s

// Tiles that a loop carries become vectors; their rows are loaded and stored
// one by one, and multiplied in a loop over rows and pairs of k.
// CHECK-LABEL: func @multiply
// CHECK-NOT: amx
// CHECK: arith.constant dense<0.000000e+00> : vector<4x16xf32>
// CHECK: scf.for {{.*}} -> (vector<4x16xf32>)
// CHECK-COUNT-4: vector.load %{{.*}} : memref<?x?xbf16>, vector<32xbf16>
// CHECK-COUNT-16: vector.load %{{.*}} : memref<?xbf16>, vector<32xbf16>
// CHECK: memref.load %{{.*}} : memref<4x16xi32>
// CHECK: arith.shli
// CHECK-COUNT-2: vector.fma
// CHECK: scf.yield %{{.*}} : vector<4x16xf32>
// CHECK-COUNT-4: vector.store %{{.*}} : memref<?x?xf32>, vector<16xf32>
// CHECK-NOT: amx
func.func @multiply(%a: memref<?x?xbf16>, %b: memref<?xbf16>, %c: memref<?x?xf32>, %k: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = amx.tile_zero : !amx.tile<4x16xf32>
  %sums = scf.for %i = %c0 to %k step %c32 iter_args(%carried = %zero) -> !amx.tile<4x16xf32> {
    %input = amx.tile_load %a[%c0, %i] : memref<?x?xbf16> into !amx.tile<4x32xbf16>
    %weight = amx.tile_load %b[%i], %c32 : memref<?xbf16> into !amx.tile<16x32xbf16>
    %next = amx.tile_mulf %input, %weight, %carried : !amx.tile<4x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<4x16xf32>
    scf.yield %next : !amx.tile<4x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %sums : memref<?x?xf32>, !amx.tile<4x16xf32>
  return
}

// Pairs of bf16 become themselves again where they are stored.
// CHECK-LABEL: func @copy
// CHECK-COUNT-2: vector.load %{{.*}} : memref<?x?xbf16>, vector<32xbf16>
// CHECK: %[[ROW:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK: vector.store %[[ROW]], %{{.*}} : memref<?x?xbf16>, vector<32xbf16>
func.func @copy(%a: memref<?x?xbf16>, %i: index) {
  %tile = amx.tile_load %a[%i, %i] : memref<?x?xbf16> into !amx.tile<2x32xbf16>
  amx.tile_store %a[%i, %i], %tile : memref<?x?xbf16>, !amx.tile<2x32xbf16>
  return
}

// Every function has a stack for the tiles it multiplies.
// CHECK-LABEL: llvm.func @other
// CHECK-COUNT-3: memref.alloca
// CHECK-NOT: amx
llvm.func @other() {
  %a = amx.tile_zero : !amx.tile<16x32xbf16>
  %sums = amx.tile_zero : !amx.tile<16x16xf32>
  %product = amx.tile_mulf %a, %a, %sums : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  llvm.return
}
