// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A quantized weight becomes floats, slice by slice, before micro-kernels multiply
// it: once for all rows where these are the inner loop and a slice is all of K, else
// for each block.
//
// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sed 's/columns_outer/rows_outer/' %s | sandwich-opt -gemm-to-loops | \
// RUN:   FileCheck %s --check-prefix=ROWS
// RUN: sed 's/slice = .12, 32, 128./slice = [12, 32, 64]/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=SLICES

// Sums of 12 x 32 and the 64 bytes behind them, then 32 x 128 floats.
// CHECK-LABEL: func.func @nest
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<17984xi8>
// CHECK: %[[COPY:.*]] = memref.cast %{{.*}} : memref<4096xf32> to memref<?xf32>
// CHECK: %[[BLOCK:.*]] = {{.*}}
// CHECK: scf.if
// CHECK: call @unpack_int4_g64_f16_group64_panel32_to_f32x1(%{{.*}}, %{{.*}}, %{{.*}}, %[[COPY]], %{{.*}})
// CHECK: func.call @X86_AVX512_F32_{{.*}}%[[COPY]]
// CHECK: func.func private @unpack_int4_g64_f16_group64_panel32_to_f32x1(%[[WEIGHT:.*]]: memref<?xi8>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<?xf32>, %{{.*}}: index)
// The scales of 32 columns, behind 1024 bytes of numbers.
// CHECK: vector.load %[[WEIGHT]]{{.*}} : memref<?xi8>, vector<32xi8>
// CHECK: arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: vector.load %[[WEIGHT]]{{.*}} : memref<?xi8>, vector<64xi8>
// CHECK: vector.bitcast %{{.*}} : vector<64xi8> to vector<16xi32>
// CHECK: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// CHECK: vector.fma
// CHECK: vector.store %{{.*}} : memref<?xf32>, vector<16xf32>
//
// ROWS-LABEL: func.func @nest
// ROWS-NOT: scf.if
// ROWS: call @unpack_
//
// SLICES-LABEL: func.func @nest
// SLICES: %[[FIRST:.*]] = arith.cmpi eq
// SLICES: arith.ori %[[FIRST]]
// SLICES: scf.if
// SLICES: call @unpack_
func.func @nest(%x: memref<?x128xf32>, %w: memref<2x2x1088xi8>, %y: memref<?x64xf32>,
                %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = X86_AVX512_F32_12x32, slice = [12, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], order = columns_outer>)
      unit 32 rows_between [12, 24]
      stored <int4, group = 64, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x128xf32>, memref<2x2x1088xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}
