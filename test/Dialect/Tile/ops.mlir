// RUN: sandwich-opt %s | sandwich-opt | FileCheck %s
// RUN: sandwich-opt %s --mlir-print-op-generic | sandwich-opt | FileCheck %s
// RUN: sandwich-opt %s -canonicalize -cse | FileCheck %s

// Operations keep their order, also those that look useless: what they read and
// write is no value.
// CHECK-LABEL: func @all
// CHECK: tile.configure %{{.*}}{{$}}
// CHECK-NEXT: tile.configure %{{.*}} half_inputs
// CHECK-NEXT: tile.zero 0
// CHECK-NEXT: tile.zero 0
// CHECK-NEXT: tile.load 4, %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x2080xbf16>
// CHECK-NEXT: tile.load 5, %{{.*}}[%{{.*}}, %{{.*}}] streaming : memref<?x2080xbf16>
// CHECK-NEXT: tile.load 6, %{{.*}}[%{{.*}}] stride %{{.*}} : memref<?xi8>
// CHECK-NEXT: tile.load 7, %{{.*}}[%{{.*}}] stride %{{.*}} streaming : memref<?xi8>
// CHECK-NEXT: tile.multiply 0, 4, 6 products <bf16>
// CHECK-NEXT: tile.multiply 1, 5, 7 products <i8_u8>
// CHECK-NEXT: tile.store 0, %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x16xf32>
// CHECK-NEXT: tile.store 1, %{{.*}}[%{{.*}}] stride %{{.*}} : memref<?xi8>
func.func @all(%rows: index, %x: memref<?x2080xbf16>, %w: memref<?xi8>, %y: memref<?x16xf32>, %i: index) {
  tile.configure %rows
  tile.configure %rows half_inputs
  tile.zero 0
  tile.zero 0
  tile.load 4, %x[%i, %i] : memref<?x2080xbf16>
  tile.load 5, %x[%i, %i] streaming : memref<?x2080xbf16>
  tile.load 6, %w[%i] stride %i : memref<?xi8>
  tile.load 7, %w[%i] stride %i streaming : memref<?xi8>
  tile.multiply 0, 4, 6 products <bf16>
  tile.multiply 1, 5, 7 products <i8_u8>
  tile.store 0, %y[%i, %i] : memref<?x16xf32>
  tile.store 1, %w[%i] stride %i : memref<?xi8>
  return
}
