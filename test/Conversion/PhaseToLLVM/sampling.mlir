// RUN: sandwich-opt %s -phase-to-llvm -canonicalize | FileCheck %s

// What draws tokens gets a plan, version and vocabulary, and an entry point of
// the C type SandwichSamplingFunction, which reads the fields of
// SandwichSampling at their offsets (PhaseABI.h).

// CHECK: llvm.mlir.global external constant @sandwich_sampling_plan(dense<[7, 320]> : tensor<2xi64>)
// CHECK-LABEL: func @sandwich_sampling(
// CHECK-SAME: %[[SAMPLING:[a-z0-9]+]]: !llvm.ptr)
// CHECK: %[[P:.*]] = llvm.load %[[SAMPLING]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.insertvalue %[[P]]
// CHECK: %[[LOGITS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<320xf32>
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SAMPLING]][32]
// CHECK-NEXT: %[[TEMPERATURE:.*]] = llvm.load %[[P]] : !llvm.ptr -> f32
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SAMPLING]][44]
// CHECK-NEXT: %[[TOP_K:.*]] = llvm.load %[[P]] : !llvm.ptr -> i32
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SAMPLING]][36]
// CHECK-NEXT: %[[TOP_P:.*]] = llvm.load %[[P]] : !llvm.ptr -> f32
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SAMPLING]][40]
// CHECK-NEXT: %[[MIN_P:.*]] = llvm.load %[[P]] : !llvm.ptr -> f32
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SAMPLING]][24]
// CHECK-NEXT: %[[PLACE:.*]] = llvm.load %[[P]] : !llvm.ptr -> f64
// CHECK: llvm.getelementptr %[[SAMPLING]][8]
// CHECK: %[[WEIGHTS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<320xf32>
// CHECK: llvm.getelementptr %[[SAMPLING]][16]
// CHECK: %[[TOKEN:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<1xi32>
// CHECK: call @sampling(%[[LOGITS]], %[[TEMPERATURE]], %[[TOP_K]], %[[TOP_P]], %[[MIN_P]], %[[PLACE]], %[[WEIGHTS]], %[[TOKEN]])
// CHECK-NEXT: return
// CHECK: func private @sampling({{.*}}) {
func.func @sampling(%logits: memref<320xf32>, %temperature: f32, %top_k: i32, %top_p: f32, %min_p: f32, %place: f64,
                    %weights: memref<320xf32>, %token: memref<1xi32>) attributes {phase.sampling} {
  %c0 = arith.constant 0 : index
  memref.store %top_k, %token[%c0] : memref<1xi32>
  return
}
