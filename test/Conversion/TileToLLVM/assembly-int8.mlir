// RUN: sandwich-opt %s -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+amx-tile,+amx-int8 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+amx-tile,+amx-int8 -relocation-model=pic | FileCheck %s

// Tiles of bytes are loaded and stored as those of bf16 are, and added up in
// integers.
// CHECK-LABEL: multiply:
// CHECK-NOT: ldtilecfg
// CHECK: tilezero %tmm0
// CHECK: tileloadd (%{{.*}},%{{.*}}), %tmm4
// CHECK-NEXT: tileloaddt1 (%{{.*}},%{{.*}}), %tmm6
// CHECK-NEXT: tdpbsud %tmm6, %tmm4, %tmm0
// CHECK: tilestored %tmm0, (%{{.*}},%{{.*}})
// CHECK-NOT: tilerelease
func.func @multiply(%x: memref<?x64xi8>, %w: memref<?x64xi8>, %y: memref<?x16xi32>, %k: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  tile.zero 0
  scf.for %i = %c0 to %k step %c16 {
    tile.load 4, %x[%i, %c0] : memref<?x64xi8>
    tile.load 6, %w[%i, %c0] streaming : memref<?x64xi8>
    tile.multiply 0, 4, 6 products <i8_u8>
  }
  tile.store 0, %y[%c0, %c0] : memref<?x16xi32>
  return
}
