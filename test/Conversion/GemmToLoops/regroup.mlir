// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With `k_group`, each slice of a weight of 4 bits is copied to 8 bits with a scale
// for as many k, and the input is rounded in groups as long. Calls share the lines of
// the slice that is copied next.
//
// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sed 's/prefetch = .1, 0./prefetch = [0, 0]/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=QUIET
// RUN: sandwich-opt %s -gemm-to-loops -loops-to-llvm | mlir-translate --mlir-to-llvmir | \
// RUN:   llc -O3 -mattr=+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+f16c | \
// RUN:   FileCheck %s --check-prefix=ASSEMBLY

// Sums of 12 x 32 and the 64 bytes behind them; 12 rows of two groups of 128 bytes
// and 8 more; two groups of 32 columns of 128 bytes and scales of 4.
// CHECK-LABEL: func.func @nest
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<13312xi8>
// CHECK: %[[COPY:.*]] = memref.cast %{{.*}} : memref<8448xi8> to memref<?xi8>
// CHECK: memref.view %{{.*}} : memref<13312xi8> to memref<1x3264xi8>
// CHECK: vector.reduction <maxsi>
// Whole groups of 32 k.
// CHECK: %[[GROUPS:.*]] = arith.divui %{{.*}}, %c32{{.*}} : index
// CHECK: call @unpack_int4_g32_f16_group32_panel32_to_int8x4_group128(%{{.*}}, %{{.*}}, %[[GROUPS]], %{{.*}}, %{{.*}}, %[[COPY]], %{{.*}})
// CHECK: memref.prefetch %{{.*}}, read, locality<2>, data : memref<?xi8>
// CHECK: func.call @X86_AVX512_VNNI_6x32_int8_g128_f32_group128_packed({{.*}}%[[COPY]]
//
// QUIET-NOT: memref.prefetch
//
// A number times the quotient of both scales, and what is behind the point taken off;
// of every other number the byte that is above it.
// ASSEMBLY-LABEL: unpack_int4_g32_f16_group32_panel32_to_int8x4_group128:
// ASSEMBLY: vdivps
// ASSEMBLY: vpmullw
// ASSEMBLY-NEXT: vpaddw
// ASSEMBLY: vpsrlw $8
// ASSEMBLY: vpternlog
// ASSEMBLY: ret
func.func @nest(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %y: memref<?x64xf32>,
                %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 32, 256], threads = [1, 1, 1], prefetch = [1, 0], hint = l2, k_chunk = 128, input = packed, k_group = 128>)
      unit 32 rows_between [12, 24]
      stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x256xf32>, memref<2x8x576xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}
