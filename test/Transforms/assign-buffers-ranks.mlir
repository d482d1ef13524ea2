// RUN: sandwich-opt %s -phase-assign-buffers="threads=2 max-tokens=16 max-logit-rows=4" -phase-insert-barriers | FileCheck %s

// What ranks exchange lies without gaps and is summed in place: where a loop's
// residual is added by the matmul, and where the logits are.

lm.weight @embedding : tensor<320x64xf32> from ["e"]
lm.weight @norm : tensor<64xf32> layers 2 from ["n{}"]
lm.weight @w : tensor<64x64xf32> layers 2 from ["w{}"] shard <columns, ranks = 2>
lm.weight @head : tensor<160x64xf32> from ["h"] shard <rows, ranks = 2>

// CHECK-LABEL: func @decode(
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: memref<?x320xf32>
// CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x64xf32>
// CHECK: %[[LOGITS_PART:.*]] = memref.view {{.*}} to memref<?x160xf32>
// CHECK: lm.embed %{{.*}}, @embedding into %[[X]] :
func.func @decode(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<decode>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: scf.for
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    // CHECK-NEXT: phase.barrier
    // CHECK-NEXT: lm.rms_norm %[[X]], @norm[%{{.*}}] epsilon 1.000000e+00 into %[[NORM:[a-z0-9_]+]]
    %n = lm.rms_norm %h, @norm[%layer] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: phase.barrier
    // CHECK-NEXT: gemm.matmul %[[NORM]], @w[%{{.*}}] epilogue(<add_residual>) residual(%[[X]] : memref<?x64xf32> among 2) into %[[X]]
    %p = gemm.matmul %n, @w[%layer] epilogue(<add_residual>) residual(%h : tensor<?x64xf32> among 2) : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK-NEXT: phase.barrier
    // CHECK-NEXT: lm.all_reduce %[[X]] into %[[X]]
    %z = lm.all_reduce %p : tensor<?x64xf32> -> tensor<?x64xf32>
    // The next iteration's norm reads what other threads summed.
    // CHECK-NEXT: }
    scf.yield %z : tensor<?x64xf32>
  }
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.gather_rows
  %g = lm.gather_rows %y, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: gemm.matmul %{{.*}}, @head epilogue(<none>) into %[[LOGITS_PART]]
  %l = gemm.matmul %g, @head epilogue(<none>) : tensor<?x64xf32> -> tensor<?x160xf32>
  // CHECK-NEXT: phase.barrier
  // CHECK-NEXT: lm.all_gather %[[LOGITS_PART]] into %[[LOGITS]]
  // CHECK-NEXT: return
  %logits = lm.all_gather %l : tensor<?x160xf32> -> tensor<?x320xf32>
  return %logits : tensor<?x320xf32>
}

// Also where the residual is what a loop makes that itself exchanges nothing.

lm.weight @down : tensor<64x32xf32> from ["d"] shard <columns, ranks = 2>
lm.weight @up : tensor<32x64xf32> from ["u"] shard <rows, ranks = 2>
lm.weight @own : tensor<64x64xf32> layers 2 from ["o{}"]
// CHECK-LABEL: func @prefill(
// CHECK: %[[X:.*]] = memref.view {{.*}} to memref<?x64xf32>
// CHECK: lm.embed %{{.*}}, @embedding into %[[X]] :
func.func @prefill(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %slots: tensor<?xi32>, %segments: tensor<?x4xi32>, %blocks: tensor<?xi32>, %rows: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f32>) -> tensor<?x320xf32> attributes {lm.phase = #lm.phase<prefill>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %y = scf.for %layer = %c0 to %c2 step %c1 iter_args(%h = %x) -> tensor<?x64xf32> {
    %n = lm.rms_norm %h, @norm[%layer] epsilon 1.0 : tensor<?x64xf32> -> tensor<?x64xf32>
    // CHECK: gemm.matmul %{{.*}}, @own[%{{.*}}] epilogue(<add_residual>) residual(%[[X]] : memref<?x64xf32>) into %[[X]]
    %z = gemm.matmul %n, @own[%layer] epilogue(<add_residual>) residual(%h : tensor<?x64xf32>) : tensor<?x64xf32> -> tensor<?x64xf32>
    scf.yield %z : tensor<?x64xf32>
  }
  %u = gemm.matmul %y, @up epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: gemm.matmul %{{.*}}, @down epilogue(<add_residual>) residual(%[[X]] : memref<?x64xf32> among 2) into %[[X]]
  %d = gemm.matmul %u, @down epilogue(<add_residual>) residual(%y : tensor<?x64xf32> among 2) : tensor<?x32xf32> -> tensor<?x64xf32>
  // CHECK: lm.all_reduce %[[X]] into %[[X]]
  %s = lm.all_reduce %d : tensor<?x64xf32> -> tensor<?x64xf32>
  %g = lm.gather_rows %s, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
  %l = gemm.matmul %g, @head epilogue(<none>) : tensor<?x64xf32> -> tensor<?x160xf32>
  %logits = lm.all_gather %l : tensor<?x160xf32> -> tensor<?x320xf32>
  return %logits : tensor<?x320xf32>
}
