// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers of a weight are multiplied as they are, by rows that are rounded to
// integers when they are packed: once for all columns where a slice is all of K.
//
// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sed 's/, offset = minimum//; s/2x2x1152xi8/2x2x1088xi8/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/slice = .12, 32, 128./slice = [12, 32, 64]/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=SLICES
// RUN: sandwich-opt %s -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir | \
// RUN:   llc -O3 -mattr=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+f16c | \
// RUN:   FileCheck %s --check-prefix=ASSEMBLY
// RUN: sed 's/6x32, slice = .12, 32, 128./1x64, slice = [1, 64, 128]/; s/prefetch = .0, 0./prefetch = [8, 1152]/; s/unit 32/unit 64/; s/rows_between .12, 24./rows_between [1, 1]/' %s | \
// RUN:   sandwich-opt -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir | \
// RUN:   llc -O3 -mattr=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+f16c | \
// RUN:   FileCheck %s --check-prefix=AHEAD

// Sums of 12 x 32 and the 64 bytes behind them; 12 rows of two groups of 64 bytes
// and 8 more.
// CHECK-LABEL: func.func @nest
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<3328xi8>
// CHECK: memref.view %{{.*}} : memref<3328xi8> to memref<1x1728xi8>
// The largest magnitude of a group, and with it the rest.
// CHECK: scf.if
// CHECK: arith.maxsi
// CHECK: vector.reduction <maxsi>
// CHECK: arith.divf
// CHECK: vector.fma
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: vector.reduction <add>
// Of a weight with minima, the sum is scaled.
// CHECK: arith.sitofp
// CHECK: func.call @X86_AVX512_VNNI_6x32_int4_g64_f16_minimum_group64_packed
// CHECK: func.func private @X86_AVX512_VNNI_6x32_int4_g64_f16_minimum_group64_packed
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
//
// Of others, the sum of products begins with it.
// ZERO-LABEL: func.func @nest
// ZERO: vector.reduction <add>
// ZERO-NEXT: %[[ZERO:.*]] = arith.constant -8 : i32
// ZERO-NEXT: arith.muli %{{.*}}, %[[ZERO]] : i32
// ZERO: func.call @X86_AVX512_VNNI_6x32_int4_g64_f16_group64_packed
//
// SLICES-LABEL: func.func @nest
// SLICES: %[[FIRST:.*]] = arith.cmpi eq
// SLICES: arith.ori %[[FIRST]]
// SLICES: vector.reduction <maxsi>
//
// Of a group of 64 k each of two panels has 16 lines of numbers and two of scales
// and minima.
// AHEAD-LABEL: X86_AVX512_VNNI_1x64_int4_g64_f16_minimum_group64_prefetch4x2_packed:
// AHEAD-COUNT-36: prefetcht0
// AHEAD-NOT: prefetcht0
// AHEAD: vpdpbusd
//
// ASSEMBLY-LABEL: X86_AVX512_VNNI_6x32_int4_g64_f16_minimum_group64_packed:
// ASSEMBLY: vpdpbusd
// ASSEMBLY: vfmadd
func.func @nest(%x: memref<?x128xf32>, %w: memref<2x2x1152xi8>, %y: memref<?x64xf32>,
                %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], input = packed>)
      unit 32 rows_between [12, 24]
      stored <int4, group = 64, scale = f16, offset = minimum> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x128xf32>, memref<2x2x1152xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}
