// RUN: sandwich-opt %s -lm-schedule-attention="target=x86-64-avx512-bf16 threads=2" | FileCheck %s
// RUN: sandwich-opt %s -lm-schedule-attention="target=x86-64-avx512-bf16 threads=1" | FileCheck %s --check-prefix=ONE
// RUN: sandwich-opt %s -lm-schedule-attention="target=x86-64-avx2 threads=6" | FileCheck %s --check-prefix=AVX2
// RUN: sandwich-opt %s -lm-schedule-attention="target=x86-64-avx512-bf16 threads=2" | sandwich-opt -lm-schedule-attention="target=x86-64-avx2 threads=64" | FileCheck %s
// RUN: not sandwich-opt %s -lm-schedule-attention="target=x86-64-avx2 threads=0" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not sandwich-opt %s -lm-schedule-attention="target=x86-64-avx2 threads=1025" 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not sandwich-opt %s -lm-schedule-attention="target=vax" 2>&1 | FileCheck %s --check-prefix=TARGET

// THREADS: error: threads must be between 1 and 1024
// TARGET: error: {{.*}}vax

// One head does for one thread; two share the contexts of a single segment, but
// not those that are short, nor where there are as many segments as threads.

// CHECK-LABEL: func @one_head
// CHECK: schedules(<[1, 128] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>,
// CHECK-SAME: [1, ?] : <decode = [1, 2, 2], split = 2, prefill = [12, 2, 8]>,
// CHECK-SAME: [?, ?] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>>) :
// ONE-LABEL: func @one_head
// ONE: schedules(<[?, ?] : <decode = [1, 2, 2], split = 1, prefill = [12, 2, 8]>>) :
// With fewer registers there is one block of keys at a time for many rows. With
// six threads, there are parts of up to four segments.
// AVX2-LABEL: func @one_head
// AVX2: schedules(<[1, 128] : <decode = [1, 2, 2], split = 1, prefill = [6, 1, 8]>,
// AVX2-SAME: [1, ?] : <decode = [1, 2, 2], split = 6, prefill = [6, 1, 8]>,
// AVX2-SAME: [2, 128] : <decode = [1, 2, 2], split = 1, prefill = [6, 1, 8]>,
// AVX2-SAME: [2, ?] : <decode = [1, 2, 2], split = 3, prefill = [6, 1, 8]>,
// AVX2-SAME: [4, 128] : <decode = [1, 2, 2], split = 1, prefill = [6, 1, 8]>,
// AVX2-SAME: [4, ?] : <decode = [1, 2, 2], split = {{[0-9]+}}, prefill = [6, 1, 8]>,
// AVX2-SAME: [?, ?] : <decode = [1, 2, 2], split = 1, prefill = [6, 1, 8]>>) :
func.func @one_head(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Where the cache's heads suffice for the team, nothing is split. The query heads
// that share one of them are one tile, or as few as registers hold.

// CHECK-LABEL: func @heads
// CHECK: schedules(<[?, ?] : <decode = [4, 2, 2], split = 1, prefill = [12, 2, 8]>>) :
// CHECK: schedules(<[?, ?] : <decode = [7, 2, 2], split = 1, prefill = [12, 2, 8]>>) :
// AVX2-LABEL: func @heads
// AVX2: <[1, 128] : <decode = [4, 1, 2], split = 1, prefill = [6, 1, 8]>
// AVX2: <[1, 128] : <decode = [2, 2, 2], split = 1, prefill = [6, 1, 8]>
func.func @heads(%q: tensor<?x256xf32>, %r: tensor<?x896xf32>, %cache: !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> (tensor<?x256xf32>, tensor<?x896xf32>) {
  %x = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x256xf32>, !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x256xf32>
  %y = lm.attention %r, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x896xf32>, !lm.kv_cache<layers = 1, heads = 2, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x896xf32>
  return %x, %y : tensor<?x256xf32>, tensor<?x896xf32>
}

// The team of a function that names its threads.

// CHECK-LABEL: func @threads
// CHECK: [1, ?] : <decode = [1, 2, 2], split = 3, prefill = [12, 2, 8]>
// ONE-LABEL: func @threads
// ONE: [1, ?] : <decode = [1, 2, 2], split = 3, prefill = [12, 2, 8]>
func.func @threads(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32>
    attributes {lm.threads = 3 : i64} {
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// What somebody has chosen stays.

// CHECK-LABEL: func @given
// CHECK: schedules(<[?, ?] : <decode = [1, 1, 3], split = 5, prefill = [2, 1, 1]>>) :
// ONE-LABEL: func @given
// ONE: schedules(<[?, ?] : <decode = [1, 1, 3], split = 5, prefill = [2, 1, 1]>>) :
func.func @given(%q: tensor<?x32xf32>, %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, %layer: index, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>) -> tensor<?x32xf32> {
  %y = lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0
    schedules(<[?, ?] : <decode = [1, 1, 3], split = 5, prefill = [2, 1, 1]>>)
    : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Buffers have been assigned without partial sums, which splitting would need.

// CHECK-LABEL: func @buffers
// CHECK-NOT: schedules
// CHECK: return
func.func @buffers(%q: memref<?x32xf32>, %cache: memref<?x1x1x2x512xf32>, %layer: index, %segments: memref<?x4xi32>, %blocks: memref<?xi32>) {
  lm.attention %q, %cache[%layer] segments %segments blocks %blocks scale 1.0 into %q
    : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?x4xi32>, memref<?xi32> into memref<?x32xf32>
  return
}
