// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers that one strip of few rows reads are not unpacked to memory: the
// micro-kernel widens them in registers. More rows than it has, a part of a group
// or results that must not depend on the rows are unpacked.
//
// RUN: sandwich-opt %s -gemm-to-loops | FileCheck %s
// RUN: sed 's/int4/int8/; s/2x2x1088/2x2x2112/g' %s | sandwich-opt -gemm-to-loops | \
// RUN:   FileCheck %s --check-prefix=INT8
// RUN: sed 's/X86_AVX512_F32/X86_AVX512_BF16/; s/128xf32/128xbf16/g' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=PAIRS
// RUN: sed 's/slice = .4, /slice = [5, /' %s | sandwich-opt -gemm-to-loops | \
// RUN:   FileCheck %s --check-prefix=UNPACKS
// RUN: sed 's/slice = .4, 32, 128./slice = [4, 32, 32]/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=UNPACKS
// RUN: sed 's/4x32/9x32/; s/slice = .4, /slice = [9, /' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=UNPACKS
// RUN: sed 's/4x32/4x16/' %s | sandwich-opt -gemm-to-loops | \
// RUN:   FileCheck %s --check-prefix=UNPACKS
// RUN: sed 's/module {/module attributes {lm.deterministic} {/' %s | \
// RUN:   sandwich-opt -gemm-to-loops | FileCheck %s --check-prefix=UNPACKS

// CHECK-LABEL: func.func @nest
// CHECK-NOT: @unpack_
// CHECK: call @X86_AVX512_F32_4x32_ld128_panel32_int4_g64_f16_group64(%{{.*}}) : (memref<?x?xf32, {{.*}}>, index, index, index, memref<?xi8>,
// CHECK-NOT: @unpack_
// CHECK: func.func private @X86_AVX512_F32_4x32_ld128_panel32_int4_g64_f16_group64
// Sums wait in memory while those of a group come and go.
// CHECK: vector.store
// CHECK: scf.for
// A line has four numbers of 16 columns low and of 16 high.
// CHECK: llvm.load %{{.*}} {{.*}} -> vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// CHECK: arith.shrui
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// CHECK: vector.fma
// CHECK: llvm.load %{{.*}} {{.*}} -> vector<16xf16>
// CHECK: vector.load
// CHECK: vector.fma
// CHECK: vector.store
//
// INT8-LABEL: func.func @nest
// INT8: func.func private @X86_AVX512_F32_4x32_ld128_panel32_int8_g64_f16_group64
// The number in the highest bits of a word, so that its sign is there.
// INT8: arith.xori
// INT8: vector.shuffle {{.*}} : vector<64xi8>, vector<64xi8>
// INT8: arith.sitofp
// INT8: vector.fma
//
// PAIRS-LABEL: func.func @nest
// PAIRS-NOT: @unpack_
// PAIRS: func.func private @X86_AVX512_BF16_4x32_ld128_panel32_int4_g64_f16_group64
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512.permvar.hi.512"
// PAIRS: x86vector.avx512.dot
//
// UNPACKS-LABEL: func.func @nest
// UNPACKS: call @unpack_
module {
func.func @nest(%x: memref<?x128xf32>, %w: memref<2x2x1088xi8>, %y: memref<?x64xf32>,
                %r0: index, %r1: index, %c0: index, %c1: index, %k0: index, %k1: index) {
  gemm.nest %x, %w rows(%r0 to %r1) columns(%c0 to %c1) k(%k0 to %k1)
      schedule(<micro_kernel = X86_AVX512_F32_4x32, slice = [4, 32, 128], threads = [1, 1, 1], prefetch = [0, 0], order = columns_outer>)
      unit 32 rows_between [4, 4]
      stored <int4, group = 64, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x128xf32>, memref<2x2x1088xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %sums at(%row, %column) size(%rows, %columns) epilogue(<none>) into %y
        : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  return
}
}
