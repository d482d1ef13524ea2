// RUN: sandwich-opt %s -tile-to-llvm -split-input-file | FileCheck %s
// RUN: sandwich-opt %s -split-input-file -loops-to-llvm | mlir-translate --mlir-to-llvmir -split-input-file -o %t.ll
// RUN: not grep unrealized %t.ll

// Who only uses tiles neither configures nor gives them back. Addresses are
// those of the first element, distances of rows are bytes.
// CHECK-LABEL: func @micro_kernel(
// CHECK-SAME: %[[X:.*]]: memref<?x2080xbf16>, %[[W:.*]]: memref<?xi8>
// CHECK-NOT: ldtilecfg
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr
// CHECK: llvm.call_intrinsic "llvm.x86.tileloaddt164"(%{{.*}}, %[[POINTER]], %{{.*}}) : (i8, !llvm.ptr, i64) -> ()
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %{{.*}}) : (i8, !llvm.ptr, i64) -> ()
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"(%{{.*}}, %{{.*}}, %{{.*}}) : (i8, i8, i8) -> ()
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK-NOT: tilerelease
// CHECK: return
func.func @micro_kernel(%x: memref<?x2080xbf16>, %w: memref<?xi8>, %y: memref<?x16xf32>, %i: index, %j: index) {
  tile.load 4, %x[%i, %j] streaming : memref<?x2080xbf16>
  tile.load 6, %w[%i] stride %j : memref<?xi8>
  tile.zero 0
  tile.multiply 0, 4, 6 products <bf16>
  tile.multiply 1, 4, 6 products <i8_u8>
  tile.store 0, %y[%i, %j] : memref<?x16xf32>
  return
}

// -----

// One block of memory for the function; loaded where the rows differ from those
// before, given back at the end.
// CHECK-LABEL: func @program(
// CHECK-SAME: %[[A:.*]]: index, %[[B:.*]]: index
// CHECK: %[[MEMORY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xi64>
// CHECK-COUNT-8: memref.store %{{.*}}, %[[MEMORY]]
// CHECK-NOT: memref.alloca
// CHECK: %[[HAD:.*]] = memref.load %[[MEMORY]]
// CHECK: %[[DIFFERS:.*]] = arith.cmpi ne, %[[HAD]], %[[WANTED:.*]] : i64
// CHECK: scf.if %[[DIFFERS]] {
// CHECK: memref.store %[[WANTED]], %[[MEMORY]]
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: }
// CHECK: scf.for
// CHECK: scf.if
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK-NEXT: return
func.func @program(%a: index, %b: index, %c0: index, %c1: index) {
  tile.configure %a
  scf.for %i = %c0 to %a step %c1 {
    tile.configure %b
  }
  return
}

// -----

// Inputs of half a row differ in the bytes of their rows and in the rows of
// weights, which tell whether anything is to be done.
// CHECK-LABEL: func @half_inputs(
// CHECK: %[[MEMORY:.*]] = memref.alloca()
// CHECK: %[[ROWS:.*]] = arith.constant 578712552117108736 : i64
// CHECK: %[[WANTED:.*]] = arith.ori %[[ROWS]], %{{.*}} : i64
// CHECK: scf.if
// CHECK: memref.store %[[WANTED]], %[[MEMORY]]
// CHECK: %[[BYTES:.*]] = arith.constant 18014673389486112 : i64
// CHECK: memref.store %[[BYTES]], %[[MEMORY]][%c3{{.*}}]
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
func.func @half_inputs(%a: index) {
  tile.configure %a half_inputs
  return
}

// -----

// Whoever calls a function that configures tiles, if through another one, has none
// afterwards.
// CHECK-LABEL: func @caller(
// CHECK: %[[MEMORY:.*]] = memref.alloca()
// CHECK: scf.if
// CHECK: call @outer
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[ROWS:.*]] = arith.constant 6 : index
// CHECK-NEXT: memref.store %[[NONE]], %[[MEMORY]][%[[ROWS]]]
// CHECK: scf.if
// CHECK: call @uses
// CHECK-NEXT: llvm.call_intrinsic "llvm.x86.tilerelease"
func.func @caller(%a: index) {
  tile.configure %a
  func.call @outer(%a) : (index) -> ()
  tile.configure %a
  func.call @uses() : () -> ()
  return
}
// CHECK-LABEL: func @outer(
// CHECK-NEXT: call @inner
// CHECK-NEXT: return
func.func @outer(%a: index) {
  func.call @inner(%a) : (index) -> ()
  return
}
func.func @inner(%a: index) {
  tile.configure %a
  return
}
func.func @uses() {
  tile.zero 0
  return
}
