// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16" -split-input-file | FileCheck %s
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16 activations=int8" -split-input-file | FileCheck %s --check-prefix=INT8
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-vnni activations=int8" -split-input-file | FileCheck %s --check-prefix=VNNI

// What matmuls of bf16 alone read is rounded where it is made, also where they
// are several.
lm.weight @w : tensor<64x64xbf16> from ["w"]
lm.weight @norm : tensor<64xf32> from ["norm"]
// CHECK-LABEL: func @several
func.func @several(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: %[[N:.*]] = lm.layer_norm {{.*}} : tensor<?x64xf32> -> tensor<?x64xbf16>
  %n = lm.layer_norm %x, @norm bias @norm epsilon 1.0 : tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[N]], @w {{.*}} : tensor<?x64xbf16> -> tensor<?x64xf32>
  %y = gemm.matmul %n, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[N]], @w {{.*}} : tensor<?x64xbf16> -> tensor<?x64xf32>
  %z = gemm.matmul %n, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// A value that something else reads in f32 stays f32, and has one copy.
lm.weight @w : tensor<64x64xbf16> from ["w"]
lm.weight @norm : tensor<64xf32> from ["norm"]
// CHECK-LABEL: func @residual
func.func @residual(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: %[[N:.*]] = lm.layer_norm {{.*}} : tensor<?x64xf32>
  // CHECK-NEXT: %[[R:.*]] = lm.round %[[N]] : tensor<?x64xf32> -> tensor<?x64xbf16>
  %n = lm.layer_norm %x, @norm bias @norm epsilon 1.0 : tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[R]], @w {{.*}} residual(%[[N]] : tensor<?x64xf32>)
  %y = gemm.matmul %n, @w epilogue(<add_residual>) residual(%n : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[R]], @w
  %z = gemm.matmul %n, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NOT: lm.round
  // CHECK: return
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// Rows that are pooled by copying them are rounded where they are made, others
// where their mean is.
lm.weight @w : tensor<64x64xbf16> from ["w"]
// CHECK-LABEL: func @pooled
func.func @pooled(%q: tensor<?x64xf32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %cache: !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[A:.*]] = lm.attention {{.*}} -> tensor<?x64xbf16>
  %a = lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 2.5e-01 bidirectional
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: %[[P:.*]] = lm.pool %[[A]], %{{.*}} <cls> : tensor<?x64xbf16>, tensor<?x4xi32> -> tensor<?x64xbf16>
  %p = lm.pool %a, %segments <cls> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[P]], @w
  %y = gemm.matmul %p, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: %[[B:.*]] = lm.attention {{.*}} -> tensor<?x64xf32>
  %b = lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 2.5e-01 bidirectional
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: %[[M:.*]] = lm.pool %[[B]], %{{.*}} <mean> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xbf16>
  %m = lm.pool %b, %segments <mean> : tensor<?x64xf32>, tensor<?x4xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: gemm.matmul %[[M]], @w
  %z = gemm.matmul %m, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// So does an argument, which is made nowhere, and what a loop carries.
lm.weight @w : tensor<64x64xbf16> layers 2 from ["w{}"]
// CHECK-LABEL: func @carried
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>
func.func @carried(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK: scf.for {{.*}} iter_args(%[[C:.*]] = %[[X]]) -> (tensor<?x64xf32>)
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%carried = %x) -> tensor<?x64xf32> {
    // CHECK-NEXT: %[[R:.*]] = lm.round %[[C]]
    // CHECK-NEXT: gemm.matmul %[[R]], @w
    %z = gemm.matmul %carried, @w[%layer] epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  return %y : tensor<?x64xf32>
}

// -----

// What is rounded to int8 may be bf16 before, where attention has instructions for
// that and reads a cache that is rounded, too.
lm.weight @w : tensor<64x64xf32> from ["w"] storage <int4, group = 32, scale = f16>
// INT8-LABEL: func @rounded
// VNNI-LABEL: func @rounded
// VNNI-NOT: lm.attention {{.*}} -> tensor<?x64xbf16>
func.func @rounded(%q: tensor<?x64xf32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>, %exact: !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, f32>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  %c0 = arith.constant 0 : index
  // INT8: lm.attention {{.*}} -> tensor<?x64xbf16>
  // INT8-NEXT: gemm.matmul {{.*}}X86_AVX512_VNNI{{.*}} : tensor<?x64xbf16> -> tensor<?x64xf32>
  %a = lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 2.5e-01
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  %y = gemm.matmul %a, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // INT8-NEXT: lm.attention {{.*}} -> tensor<?x64xf32>
  %b = lm.attention %q, %exact[%c0] segments %segments blocks %blocks scale 2.5e-01
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, f32>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  %z = gemm.matmul %b, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xf32>
  // INT8: lm.attention {{.*}} -> tensor<?x64xf32>
  // INT8-NEXT: return
  %c = lm.attention %q, %cache[%c0] segments %segments blocks %blocks scale 2.5e-01
    : tensor<?x64xf32>, !lm.kv_cache<layers = 1, heads = 4, head_dim = 16, bf16>, tensor<?x4xi32>, tensor<?xi32> -> tensor<?x64xf32>
  return %y, %z, %c : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}
