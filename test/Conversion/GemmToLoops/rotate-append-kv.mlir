// RUN: sandwich-opt %s -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops | FileCheck %s --check-prefix=BF16
// RUN: sed 's/x1x2x512xbf16/x1x2x512xf16/g' %s | sandwich-opt -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops \
// RUN:   | FileCheck %s --check-prefix=F16
// RUN: sed 's/x1x2x512xbf16/x1x2x512xf32/g' %s | sandwich-opt -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops \
// RUN:   | FileCheck %s --check-prefix=F32
// RUN: sed 's/x1x2x512xbf16/x1x2x576xi8/g' %s | sandwich-opt -gemm-dispatch -gemm-split-k -gemm-polymerize -gemm-to-loops \
// RUN:   | FileCheck %s --check-prefix=INT8

// Keys are scattered, in bf16 by pairs of channels 32 elements apart, else one by
// one 16 elements apart, and values stored in rows. Both are
// rounded to elements of the cache: to bf16 in integers, as the CPUs'
// instruction takes subnormal numbers for zero.

// BF16-DAG: arith.constant dense<16> : vector<16xi32>
// BF16-DAG: arith.constant dense<32767> : vector<16xi32>
// BF16-DAG: arith.constant dense<32704> : vector<16xi32>
// BF16-NOT: arith.truncf
// BF16: %[[BITS:.*]] = arith.bitcast %[[KEY:.*]] : vector<16xf32> to vector<16xi32>
// BF16: %[[UPPER:.*]] = arith.shrui %[[BITS]]
// BF16: %[[LAST:.*]] = arith.andi %[[UPPER]]
// BF16: %[[HALF:.*]] = arith.addi %[[LAST]]
// BF16: %[[SUM:.*]] = arith.addi %[[BITS]], %[[HALF]]
// BF16: %[[SHIFTED:.*]] = arith.shrui %[[SUM]]
// BF16: %[[NAN:.*]] = arith.cmpf uno, %[[KEY]], %[[KEY]]
// BF16: %[[CHOSEN:.*]] = arith.select %[[NAN]], %{{.*}}, %[[SHIFTED]]
// BF16: %[[NARROW:.*]] = arith.trunci %[[CHOSEN]] : vector<16xi32> to vector<16xi16>
// BF16: %[[KEYS:.*]] = arith.bitcast %[[NARROW]] : vector<16xi16> to vector<16xbf16>
// BF16: %[[PAIR:.*]] = vector.extract_strided_slice %[[KEYS]] {offsets = [0], sizes = [2], strides = [1]}
// BF16: vector.store %[[PAIR]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PLACE:.*]]] : memref<?x2x1x2x512xbf16>, vector<2xbf16>
// BF16: vector.extract_strided_slice %[[KEYS]] {offsets = [2], sizes = [2], strides = [1]}
// BF16: %[[NEXT:.*]] = arith.addi %[[PLACE]], %c32{{(_[0-9]+)?}}
// BF16: vector.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]]] : memref<?x2x1x2x512xbf16>, vector<2xbf16>
// BF16: vector.store %{{.*}} : memref<?x2x1x2x512xbf16>, vector<16xbf16>
// BF16-NOT: arith.truncf

// F16: %[[KEYS:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// F16: %[[KEY:.*]] = vector.extract_strided_slice %[[KEYS]] {offsets = [0], sizes = [1], strides = [1]}
// F16: vector.store %[[KEY]], %{{.*}} : memref<?x2x1x2x512xf16>, vector<1xf16>
// F16: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// F16: %[[VALUES:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// F16: vector.store %[[VALUES]], %{{.*}} : memref<?x2x1x2x512xf16>, vector<16xf16>

// F32-NOT: arith.truncf
// F32: vector.store %{{.*}} : memref<?x2x1x2x512xf32>, vector<1xf32>
// F32: vector.store %{{.*}} : memref<?x2x1x2x512xf32>, vector<16xf32>

// Of i8, a key is rotated in the place of its sums first; the largest magnitude of
// its channels, which is NaN or infinite where one is, gives the scale, which is
// stored behind the channels of all tokens.
// INT8: vector.store %{{.*}} : memref<?x32xf32, strided<[32, 1]>>, vector<16xf32>
// INT8: vector.store %{{.*}} : memref<?x32xf32, strided<[32, 1]>>, vector<16xf32>
// INT8: %[[LARGEST:.*]] = vector.reduction <maxsi>, %{{.*}} : vector<16xi32> into i32
// INT8: %[[FLOAT:.*]] = arith.bitcast %[[LARGEST]] : i32 to f32
// INT8: %[[SCALE:.*]] = arith.mulf %[[FLOAT]]
// INT8: arith.cmpf ogt, %[[FLOAT]]
// INT8: arith.divf %{{.*}}, %[[FLOAT]]
// INT8: %[[FINITE:.*]] = arith.cmpf olt, %[[FLOAT]]
// INT8: %[[STORED:.*]] = arith.select %[[FINITE]], %[[SCALE]], %{{.*}} : f32
// INT8: vector.fma
// INT8: %[[KEYS:.*]] = arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// INT8: %[[KEY:.*]] = vector.extract_strided_slice %[[KEYS]] {offsets = [0], sizes = [1], strides = [1]}
// INT8: vector.store %[[KEY]], %{{.*}} : memref<?x2x1x2x576xi8>, vector<1xi8>
// INT8: %[[ONE:.*]] = vector.broadcast %[[STORED]] : f32 to vector<1xf32>
// INT8: %[[BYTES:.*]] = vector.bitcast %[[ONE]] : vector<1xf32> to vector<4xi8>
// INT8: %[[OFFSET:.*]] = arith.muli %{{.*}}, %c4
// INT8: %[[PLACE:.*]] = arith.addi %[[OFFSET]], %c512
// INT8: vector.store %[[BYTES]], %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PLACE]]] : memref<?x2x1x2x576xi8>, vector<4xi8>
// INT8: %[[VALUES:.*]] = arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// INT8: vector.store %[[VALUES]], %{{.*}} : memref<?x2x1x2x576xi8>, vector<16xi8>
// INT8: vector.store %{{.*}} : memref<?x2x1x2x576xi8>, vector<4xi8>

lm.weight @w : tensor<128x64xf32> from ["w"] packing #gemm.packing<panel = 32, tile = 32, k_step = 1, k_pack = 1> at 0
func.func @f(%ids: memref<?xi32>, %positions: memref<?xi32>, %slots: memref<?xi32>, %segments: memref<?x4xi32>, %blocks: memref<?xi32>, %rows: memref<?xi32>,
    %cache: memref<?x2x1x2x512xbf16>, %logits: memref<?x64xf32>, %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, %team: !phase.team)
    attributes {phase.program = #phase.program<threads = 1, max_tokens = 16, max_logit_rows = 16, workspace_bytes = 8192>} {
  %c0 = arith.constant 0 : index
  %tokens = memref.dim %ids, %c0 : memref<?xi32>
  %x = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x64xf32>
  %t = memref.view %workspace[%c0][%tokens] : memref<?xi8> to memref<?x32xf32>
  gemm.matmul %x, @w epilogue(<rotate_append_kv>) rotary(%t : memref<?x32xf32>) cache(%cache : memref<?x2x1x2x512xbf16>) slots(%slots : memref<?xi32>) schedules(<? : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>) into %logits : memref<?x64xf32> into memref<?x64xf32>
  return
}
