// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With matrix multiplication of integers rows are packed in pairs. A single row
// has dot products.
//
// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sandwich-opt %s -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir | \
// RUN:   llc -O3 -mtriple=aarch64-linux-gnu -mattr=+dotprod,+i8mm -o %t.s
// RUN: FileCheck %s --check-prefix=ASSEMBLY < %t.s
// RUN: sed 's/group = 64, scale = f16>/group = 64, scale = f16, offset = minimum>/; s/int4/int8/; s/x544xi8/x1088xi8/g' %s | \
// RUN:   sandwich-opt -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir | \
// RUN:   llc -O3 -mtriple=aarch64-linux-gnu -mattr=+dotprod,+i8mm -o %t.signs.s
// RUN: FileCheck %s --check-prefix=SIGNS < %t.signs.s

// Sums of 16 x 16 and the 64 bytes behind them; 16 rows, and one more for each
// strip, of two groups of 64 bytes and 8 more.
// CHECK-LABEL: func.func @nest
// CHECK: memref.view %{{.*}} : memref<{{[0-9]+}}xi8> to memref<1x2592xi8>
// The numbers of a row are in two places, quads 0 and 2 and quads 1 and 3.
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK: vector.shuffle %{{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK: func.call @ARM_NEON_I8MM_8x16_int4_g64_f16_group64_packed
// CHECK: func.func private @ARM_NEON_I8MM_8x16_int4_g64_f16_group64_packed
// CHECK: llvm.call_intrinsic "llvm.aarch64.neon.usmmla.v4i32.v16i8"
// CHECK: func.func private @ARM_NEON_DOTPROD_1x32_int4_g64_f16_group64_packed
//
// Two lines are zipped once for both halves of their bytes.
// ASSEMBLY: {{^}}ARM_NEON_I8MM_8x16_int4_g64_f16_group64_packed:
// ASSEMBLY: zip{{[12]}} v{{[0-9]+}}.4s
// ASSEMBLY-NOT: eor
// ASSEMBLY: usmmla v{{[0-9]+}}.4s, v{{[0-9]+}}.16b, v{{[0-9]+}}.16b
// ASSEMBLY: {{^}}ARM_NEON_DOTPROD_1x32_int4_g64_f16_group64_packed:
// ASSEMBLY-NOT: mmla
// ASSEMBLY: sdot v{{[0-9]+}}.4s, v{{[0-9]+}}.16b, v{{[0-9]+}}.16b
// ASSEMBLY-NOT: mmla
//
// Numbers of 8 bits that have minima are multiplied as sdot multiplies them.
// SIGNS: {{^}}ARM_NEON_I8MM_8x16_int8_g64_f16_minimum_group64_packed:
// SIGNS: eor
// SIGNS: {{[[:space:]]}}smmla v{{[0-9]+}}.4s, v{{[0-9]+}}.16b, v{{[0-9]+}}.16b
func.func @nest(%x: memref<?x128xf32>, %w: memref<4x2x544xi8>, %y: memref<?x64xf32>,
                %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = ARM_NEON_I8MM_8x16, slice = [16, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], input = packed>)
      unit 32 rows_between [16, 32]
      stored <int4, group = 64, scale = f16> packing <panel = 16, tile = 16, k_step = 4, k_pack = 4>
      : memref<?x128xf32>, memref<4x2x544xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}

func.func @single(%x: memref<?x128xf32>, %w: memref<4x2x544xi8>, %y: memref<?x64xf32>,
                  %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = ARM_NEON_DOTPROD_1x32, slice = [1, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], input = packed>)
      unit 32 rows_between [1, 1]
      stored <int4, group = 64, scale = f16> packing <panel = 16, tile = 16, k_step = 4, k_pack = 4>
      : memref<?x128xf32>, memref<4x2x544xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}
