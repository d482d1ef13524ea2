// RUN: sandwich-opt %s -split-input-file -lm-to-loops=target=x86-64-avx2 | FileCheck %s

// A kernel that draws tokens is a function beside the programs.

// CHECK-NOT: lm.sampling
// CHECK-LABEL: func.func @sampling(
// CHECK-SAME: %[[LOGITS:.*]]: memref<32xf32>, %[[T:.*]]: f32, %[[K:.*]]: i32, %[[P:.*]]: f32, %[[M:.*]]: f32, %[[PLACE:.*]]: f64, %[[W:.*]]: memref<32xf32>, %[[TOKEN:.*]]: memref<1xi32>) attributes {phase.sampling}
// CHECK: call @[[KERNEL:kernel.*sampling]](%[[LOGITS]], %[[T]], %[[K]], %[[P]], %[[M]], %[[PLACE]], %[[W]], %[[TOKEN]])
// CHECK-NEXT: return
// CHECK: func.func private @[[KERNEL]]
module {
  module @kernels {
    func.func @sampling(%x: memref<?xf32> {block.sizes = #block.sizes<V>}, %t: f32, %k: i32, %p: f32, %m: f32, %place: f64, %w: memref<?xf32> {block.sizes = #block.sizes<V>}, %y: memref<1xi32> {block.sizes = #block.sizes<1>})
        attributes {block.parameters = #block.parameters<>} {
      %c0 = arith.constant 0 : index
      memref.store %k, %y[%c0] : memref<1xi32>
      return
    }
  }
  lm.sampling 32 {lm.kernel = #lm.kernel<@kernels::@sampling>}
}

// -----

// Without one there is nothing to do: the runtime draws.

// CHECK: module {
// CHECK-NEXT: }
module {
  lm.sampling 32
}
