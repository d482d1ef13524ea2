// RUN: sandwich-opt %s -lm-to-loops=target=x86-64-avx512-bf16 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); if (gsub(/vfmadd/, "&", loop[1]) == 24) print loop[1] }' %t.s > %t.loops
// RUN: FileCheck %s < %t.loops
// RUN: not grep 'vmov.*[re][sb]p' %t.loops

// RUN: sed 's/x1024xf16/x1024xbf16/' %s \
// RUN:   | sandwich-opt -lm-to-loops=target=x86-64-avx512-bf16 -loops-to-llvm | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16 -relocation-model=pic -o %t.bf16.s
// RUN: awk -v RS='\n[.]LBB' '/Inner Loop/ { split($0, loop, "\n\tj"); if (gsub(/vfmadd/, "&", loop[1]) == 24) print loop[1] }' %t.bf16.s > %t.bf16.loops
// RUN: FileCheck %s --check-prefix=BF16 < %t.bf16.loops
// RUN: not grep 'vmov.*[re][sb]p' %t.bf16.loops

// A prefill tile's sums live in registers: the loops over channels of keys, and
// over tokens of the two halves of values, spill nothing.
// CHECK-COUNT-2: vcvtph2ps
// CHECK-COUNT-24: vfmadd231ps
// CHECK-COUNT-2: vcvtph2ps
// CHECK-COUNT-24: vfmadd231ps
// CHECK-COUNT-2: vcvtph2ps
// CHECK-COUNT-24: vfmadd231ps

// bf16 is widened by a shift, one for each vector that is loaded.
// BF16: vpmovzxwd
// BF16: vpslld $16
// BF16: vpmovzxwd
// BF16: vpslld $16
// BF16-NOT: vpslld
// BF16-COUNT-24: vfmadd231ps
// BF16-COUNT-2: vpslld $16
// BF16-COUNT-24: vfmadd231ps
// BF16-COUNT-2: vpslld $16
// BF16-COUNT-24: vfmadd231ps

func.func @prefill(%token_ids: memref<?xi32>, %positions: memref<?xi32>, %sequences: memref<?xi32>, %logit_rows: memref<?xi32>,
    %block_tables: memref<?x?xi32>, %cache: memref<?x2x2x2x1024xf16>, %logits: memref<?x32xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>,
    %thread: index, %team: !phase.team)
    attributes {lm.phase = #lm.phase<prefill>, phase.program = #phase.program<threads = 4, max_tokens = 64, max_logit_rows = 1, workspace_bytes = 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tokens = memref.dim %positions, %c0 : memref<?xi32>
  %q = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x256xbf16>
  lm.attention %q, %cache[%c1] positions %positions sequences %sequences blocks %block_tables scale 0.125 into %q
    : memref<?x256xbf16>, memref<?x2x2x2x1024xf16>, memref<?xi32>, memref<?xi32>, blocks memref<?x?xi32> into memref<?x256xbf16>
  return
}
