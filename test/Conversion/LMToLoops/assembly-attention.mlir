// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); if (gsub(/vfmadd/, "&", loop[1]) == 24) print loop[1] }' %t.s > %t.loops
// RUN: FileCheck %s < %t.loops
// RUN: not grep 'vmov.*[re][sb]p' %t.loops

// RUN: sed 's/x1024xf16/x1024xbf16/' %s \
// RUN:   | sandwich-opt -lm-to-loops=target=x86-64-avx512 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.bf16.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); fma = gsub(/vfmadd/, "&", loop[1]); if (fma == 24 || fma == 48) print loop[1] }' %t.bf16.s > %t.bf16.loops
// RUN: FileCheck %s --check-prefix=BF16 < %t.bf16.loops
// RUN: not grep 'vmov.*[re][sb]p' %t.bf16.loops

// RUN: sed 's/x1024xf16/x1088xi8/' %s \
// RUN:   | sandwich-opt -lm-to-loops=target=x86-64-avx512 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.i8.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); if (gsub(/vfmadd/, "&", loop[1]) == 24) print loop[1] }' %t.i8.s > %t.i8.loops
// RUN: FileCheck %s --check-prefix=INT8 < %t.i8.loops
// RUN: not grep 'vmov.*[re][sb]p' %t.i8.loops

// Decode, for one, four or eight query heads that share a head of the cache, in
// tiles of the rule's sizes: no inner loop that multiplies spills, or loads again
// what does not change. Queries and weights are on the stack, and indexed.
// DEFINE: %{group} =
// DEFINE: %{channels} =
// DEFINE: %{decode} = sed 's/x1024xf16/x1024xbf16/; s/?x256xbf16/?x%{channels}xbf16/g' %s \
// DEFINE:   | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// DEFINE:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// DEFINE:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.%{group}.s \
// DEFINE:   && awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); fma = gsub(/vfmadd/, "&", loop[1]); prefetches = gsub(/prefetch/, "&", loop[1]); if (fma) print loop[1]; if (prefetches) print "decode " fma " " prefetches }' %t.%{group}.s > %t.%{group}.loops \
// DEFINE:   && FileCheck %s --check-prefix=GROUP%{group} < %t.%{group}.loops \
// DEFINE:   && not grep '%r[sb]p)' %t.%{group}.loops
// REDEFINE: %{group} = 1
// REDEFINE: %{channels} = 128
// RUN: %{decode}
// REDEFINE: %{group} = 4
// REDEFINE: %{channels} = 512
// RUN: %{decode}
// REDEFINE: %{group} = 8
// REDEFINE: %{channels} = 1024
// RUN: %{decode}

// Multiplications and prefetches of the loop over channels of two blocks of keys,
// and over tokens of values, with each line of values
// loaded for all of the group that registers hold.
// GROUP1: decode 32 16
// GROUP1: decode 4 2
// GROUP4: decode 32 4
// GROUP4: decode 16 2
// GROUP8: decode 32 2
// GROUP8: decode 16 1
// GROUP8: decode 16 1

// A prefill tile's sums live in registers: the loops over channels of keys, and
// over tokens of half of the values, spill nothing.
// CHECK-COUNT-2: vcvtph2ps
// CHECK-COUNT-24: vfmadd231ps
// CHECK-COUNT-2: vcvtph2ps
// CHECK-COUNT-24: vfmadd231ps

// bf16 is widened two channels at once, whose keys lie beside each other: by a
// shift, and by a mask.
// BF16-COUNT-2: vmovdqu64
// BF16-NOT: vmov
// BF16-COUNT-2: vpslld
// BF16-COUNT-24: vfmadd231ps
// BF16-COUNT-2: vpandq
// BF16-COUNT-24: vfmadd231ps
// BF16-DAG: vpslld
// BF16-DAG: vpandq
// BF16-COUNT-24: vfmadd231ps

// Integers are widened from a quarter of a cache line, and no loop over channels or
// tokens scales them.
// INT8-COUNT-2: vpmovsxbd {{[^,]*}}(
// INT8-NOT: vmulps
// INT8-COUNT-24: vfmadd231ps
// INT8-NOT: vmulps
// INT8-COUNT-2: vpmovsxbd {{[^,]*}}(
// INT8-NOT: vmulps
// INT8-COUNT-24: vfmadd231ps
// INT8-NOT: vmulps

func.func @prefill(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>,
    %block_tables: memref<?xi32>, %logit_rows: memref<?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] segments %segments blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?x4xi32>, memref<?xi32> into memref<?x256xbf16>
  return
}
