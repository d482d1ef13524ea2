// RUN: sandwich-opt %s -lm-to-gemm -split-input-file | FileCheck %s

// Gate and up projections and their product are one matmul over a weight that
// interleaves the rows of both, so that a panel of 32 columns holds a vector of
// each; the down projection adds the residual.

// CHECK: lm.weight @layers.mlp.gate_up_proj : tensor<320x64xbf16> layers 2 from ["gate{}", "up{}"] interleave 16{{$}}
lm.weight @layers.mlp.gate_proj : tensor<160x64xbf16> layers 2 from ["gate{}"]
lm.weight @layers.mlp.up_proj : tensor<160x64xbf16> layers 2 from ["up{}"]
// CHECK: lm.weight @layers.mlp.down_proj : tensor<64x160xbf16> layers 2 from ["down{}"]{{$}}
lm.weight @layers.mlp.down_proj : tensor<64x160xbf16> layers 2 from ["down{}"]
// CHECK-NOT: lm.weight

// CHECK-LABEL: func @layer(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>, %[[N:[a-z0-9]+]]: tensor<?x64xf32>, %[[L:[a-z0-9]+]]: index)
func.func @layer(%x: tensor<?x64xf32>, %n: tensor<?x64xf32>, %layer: index) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[H:.*]] = gemm.matmul %[[N]], @layers.mlp.gate_up_proj[%[[L]]] epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x160xf32>
  // CHECK-NEXT: %[[Y:.*]] = gemm.matmul %[[H]], @layers.mlp.down_proj[%[[L]]] epilogue(<add_residual>) residual(%[[X]] : tensor<?x64xf32>) : tensor<?x160xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: return %[[Y]]
  %gate = lm.linear %n, @layers.mlp.gate_proj[%layer] : tensor<?x64xf32> -> tensor<?x160xf32>
  %up = lm.linear %n, @layers.mlp.up_proj[%layer] : tensor<?x64xf32> -> tensor<?x160xf32>
  %h = lm.silu_mul %gate, %up : tensor<?x160xf32>
  %down = lm.linear %h, @layers.mlp.down_proj[%layer] : tensor<?x160xf32> -> tensor<?x64xf32>
  %y = lm.add %x, %down : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// A residual may stand on either side; a bias comes along.

lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @b : tensor<64xf32> from ["b"]
// CHECK-LABEL: func @residual(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>)
func.func @residual(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: gemm.matmul %[[X]], @w bias @b epilogue(<add_residual>) residual(%[[X]] : tensor<?x64xf32>)
  // CHECK-NEXT: return
  %0 = lm.linear %x, @w bias @b : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lm.add %0, %x : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// Of two projections only one can be the matmul that adds.

lm.weight @w : tensor<64x64xf32> from ["w"]
lm.weight @u : tensor<64x64xf32> from ["u"]
// CHECK-LABEL: func @two(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>)
func.func @two(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[U:.*]] = gemm.matmul %[[X]], @u epilogue(<none>)
  // CHECK: gemm.matmul %[[X]], @w epilogue(<add_residual>) residual(%[[U]] : tensor<?x64xf32>)
  %0 = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lm.linear %x, @u : tensor<?x64xf32> -> tensor<?x64xf32>
  %2 = lm.add %0, %1 : tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// -----

// A residual of which each rank adds its rows.

lm.weight @w : tensor<64x32xf32> from ["w"] shard <columns, ranks = 2>
// CHECK-LABEL: func @dealt
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[R:[a-z0-9]+]]: tensor<?x64xf32>
func.func @dealt(%x: tensor<?x32xf32>, %r: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[P:.*]] = gemm.matmul %[[X]], @w epilogue(<add_residual>) residual(%[[R]] : tensor<?x64xf32> among 2) : tensor<?x32xf32> -> tensor<?x64xf32>
  // CHECK-NEXT: lm.all_reduce %[[P]]
  %own = lm.deal_rows %r among 2 : tensor<?x64xf32>
  %0 = lm.linear %x, @w : tensor<?x32xf32> -> tensor<?x64xf32>
  %1 = lm.add %own, %0 : tensor<?x64xf32>
  %2 = lm.all_reduce %1 : tensor<?x64xf32> -> tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// -----

// A projection that something else reads as well stays a matmul of its own.

lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @used_twice
func.func @used_twice(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: gemm.matmul %{{.*}}, @w epilogue(<none>)
  // CHECK: lm.add
  %0 = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lm.add %x, %0 : tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// A plain dense layer, with layers and bias and without.

lm.weight @w : tensor<32x64xf32> layers 2 from ["w{}"]
lm.weight @b : tensor<32xf32> layers 2 from ["b{}"]
lm.weight @head : tensor<320x32xf32> from ["head"]
// CHECK-LABEL: func @plain
func.func @plain(%x: tensor<?x64xf32>, %layer: index) -> tensor<?x320xf32> {
  // CHECK: gemm.matmul %{{.*}}, @w bias @b[%{{.*}}] epilogue(<none>) : tensor<?x64xf32> -> tensor<?x32xf32>
  // CHECK: gemm.matmul %{{.*}}, @head epilogue(<none>) : tensor<?x32xf32> -> tensor<?x320xf32>
  %0 = lm.linear %x, @w bias @b[%layer] : tensor<?x64xf32> -> tensor<?x32xf32>
  %1 = lm.linear %0, @head : tensor<?x32xf32> -> tensor<?x320xf32>
  return %1 : tensor<?x320xf32>
}

// -----

// An embedding that is the head as well (tied) stays, with its own name.

// CHECK: lm.weight @embedding : tensor<320x64xf32> from ["e"]
lm.weight @embedding : tensor<320x64xf32> from ["e"]
// CHECK-LABEL: func @tied
func.func @tied(%ids: tensor<?xi32>) -> tensor<?x320xf32> {
  // CHECK: lm.embed %{{.*}}, @embedding
  // CHECK: gemm.matmul %{{.*}}, @embedding epilogue(<none>)
  %0 = lm.embed %ids, @embedding : tensor<?xi32> -> tensor<?x64xf32>
  %1 = lm.linear %0, @embedding : tensor<?x64xf32> -> tensor<?x320xf32>
  return %1 : tensor<?x320xf32>
}

// -----

// A projection gated by itself is erased once.

// CHECK: lm.weight @w.gate_up_proj : tensor<128x64xf32> from ["w", "w"] interleave 16
lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @same
func.func @same(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: gemm.matmul %{{.*}}, @w.gate_up_proj epilogue(<silu_mul>)
  // CHECK-NEXT: return
  %0 = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lm.silu_mul %0, %0 : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// A linear layer that is computed once, before a loop, does not move into it.

lm.weight @w : tensor<64x64xf32> from ["w"]
// CHECK-LABEL: func @invariant
func.func @invariant(%x: tensor<?x64xf32>, %r: tensor<?x64xf32>, %a: index, %b: index, %s: index) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[G:.*]] = gemm.matmul %{{.*}}, @w epilogue(<none>)
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: lm.add %{{.*}}, %[[G]]
  %g = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
  %l = scf.for %i = %a to %b step %s iter_args(%h = %r) -> tensor<?x64xf32> {
    %n = lm.add %h, %g : tensor<?x64xf32>
    scf.yield %n : tensor<?x64xf32>
  }
  return %l : tensor<?x64xf32>
}

// -----

// Weights that nothing uses are no fused parts; a module inside has its own.

// CHECK: lm.weight @unused
lm.weight @unused : tensor<64x64xf32> from ["u"]
// CHECK: module
module {
  // CHECK-NEXT: lm.weight @w
  lm.weight @w : tensor<64x64xf32> from ["w"]
  func.func @inner(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    // CHECK: lm.silu_mul
    %0 = lm.linear %x, @w : tensor<?x64xf32> -> tensor<?x64xf32>
    %1 = lm.silu_mul %0, %0 : tensor<?x64xf32>
    return %1 : tensor<?x64xf32>
  }
}

// -----

// Without a gate, the first projection applies the activation, of either kind.

lm.weight @up : tensor<96x64xf32> from ["up"]
lm.weight @bias : tensor<96xf32> from ["bias"]
// CHECK-LABEL: func @gelu(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>)
func.func @gelu(%x: tensor<?x64xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  // CHECK-NEXT: gemm.matmul %[[X]], @up bias @bias epilogue(<gelu_exact>) : tensor<?x64xf32> -> tensor<?x96xf32>
  // CHECK-NEXT: gemm.matmul %[[X]], @up epilogue(<gelu_tanh>) : tensor<?x64xf32> -> tensor<?x96xf32>
  // CHECK-NEXT: return
  %0 = lm.linear %x, @up bias @bias : tensor<?x64xf32> -> tensor<?x96xf32>
  %1 = lm.gelu %0 <exact> : tensor<?x96xf32>
  %2 = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x96xf32>
  %3 = lm.gelu %2 <tanh> : tensor<?x96xf32>
  return %1, %3 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// What something else reads as well stays.

lm.weight @up : tensor<64x64xf32> from ["up"]
// CHECK-LABEL: func @shared_gelu(
func.func @shared_gelu(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = gemm.matmul %{{.*}}, @up epilogue(<none>)
  // CHECK-NEXT: lm.gelu %[[Y]] <exact>
  %0 = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = lm.gelu %0 <exact> : tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// What is rounded in between stays two operations: an epilogue does not round.

lm.weight @up : tensor<64x64xf32> from ["up"]
// CHECK-LABEL: func @rounded(
func.func @rounded(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = gemm.matmul %{{.*}}, @up epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xbf16>
  // CHECK-NEXT: lm.gelu %[[Y]] <exact> : tensor<?x64xbf16> -> tensor<?x64xf32>
  // CHECK-NEXT: %[[Z:.*]] = gemm.matmul %{{.*}}, @up epilogue(<none>) : tensor<?x64xf32> -> tensor<?x64xbf16>
  // CHECK-NEXT: lm.add %{{.*}}, %[[Z]]
  %0 = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x64xbf16>
  %1 = lm.gelu %0 <exact> : tensor<?x64xbf16> -> tensor<?x64xf32>
  %2 = lm.linear %x, @up : tensor<?x64xf32> -> tensor<?x64xbf16>
  %3 = lm.add %x, %2 : tensor<?x64xf32>, tensor<?x64xbf16> -> tensor<?x64xf32>
  return %1, %3 : tensor<?x64xf32>, tensor<?x64xf32>
}
