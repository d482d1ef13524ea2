// RUN: sandwich-opt %s --move-bf16 | FileCheck %s

// What moves bf16 moves integers; what computes stays as it is, and so do other
// numbers.
// CHECK-LABEL: llvm.func @moved(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[MASK:.*]]: vector<8xi1>, %[[V:.*]]: vector<8xbf16>, %{{.*}}: i1)
// CHECK: %[[PASS:.*]] = llvm.bitcast %[[V]] : vector<8xbf16> to vector<8xi16>
// CHECK: %[[LOADED:.*]] = llvm.intr.masked.load %[[P]], %[[MASK]], %[[PASS]] {{.*}} -> vector<8xi16>
// CHECK: %[[BACK:.*]] = llvm.bitcast %[[LOADED]] : vector<8xi16> to vector<8xbf16>
// CHECK: llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, vector<8xi16>
// CHECK: llvm.shufflevector {{.*}} : vector<8xi16>
// CHECK: llvm.fadd {{.*}} : vector<8xbf16>
// CHECK: llvm.intr.masked.store {{.*}} : vector<8xi16>, vector<8xi1> into !llvm.ptr
// CHECK: llvm.intr.masked.load {{.*}} -> vector<8xf32>
llvm.func @moved(%p: !llvm.ptr, %mask: vector<8xi1>, %v: vector<8xbf16>, %c: i1) -> vector<8xf32> {
  %loaded = llvm.intr.masked.load %p, %mask, %v {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xbf16>) -> vector<8xbf16>
  %chosen = llvm.select %c, %loaded, %v : i1, vector<8xbf16>
  %turned = llvm.shufflevector %chosen, %v [0, 8, 1, 9, 2, 10, 3, 11] : vector<8xbf16>
  %sum = llvm.fadd %turned, %v : vector<8xbf16>
  llvm.intr.masked.store %sum, %p, %mask {alignment = 2 : i32} : vector<8xbf16>, vector<8xi1> into !llvm.ptr
  %zero = llvm.mlir.constant(dense<0.0> : vector<8xf32>) : vector<8xf32>
  %other = llvm.intr.masked.load %p, %mask, %zero {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.return %other : vector<8xf32>
}
