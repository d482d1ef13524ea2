// RUN: sandwich-opt %s --kernel-to-vector --canonicalize --cse | FileCheck %s

// Each intrinsic is what its expression of one lane says of all lanes.

// Lane by lane.
// CHECK-LABEL: func.func @add(
// CHECK-SAME: %[[X:.*]]: vector<16xf32>, %[[Y:.*]]: vector<16xf32>) -> vector<16xf32> {
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]] : vector<16xf32>
// CHECK-NEXT: return %[[SUM]]
kernel.func @add(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %z = kernel.intrinsic "_mm512_add_ps"(%x, %y) : (vector<16xf32>, vector<16xf32>) -> vector<16xf32>
  kernel.return %z : vector<16xf32>
}

// Masks choose, and keep what is not there from being read.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME: %[[P:.*]]: memref<?xf32>, %[[K:.*]]: vector<16xi1>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[X:.*]] = vector.maskedload %[[P]][%[[C0]]], %[[K]], %[[ZERO]]
// CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK: %[[Z:.*]] = arith.select %[[K]], %[[Y]], %[[X]]
// CHECK: vector.maskedstore %[[P]][%[[C0]]], %[[K]], %[[Z]]
kernel.func @masked(%p: !kernel.pointer<f32>, %k: vector<16xi1>) {
  %read = kernel.cast %p : !kernel.pointer<f32> to !kernel.pointer<const f32>
  %x = kernel.intrinsic "_mm512_maskz_loadu_ps"(%k, %read) : (vector<16xi1>, !kernel.pointer<const f32>) -> vector<16xf32>
  %y = kernel.intrinsic "_mm512_mask_add_ps"(%x, %k, %x, %x) : (vector<16xf32>, vector<16xi1>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
  kernel.intrinsic "_mm512_mask_storeu_ps"(%p, %k, %y) : (!kernel.pointer<f32>, vector<16xi1>, vector<16xf32>) -> ()
  kernel.return
}

// Known indices are shuffles.
// CHECK-LABEL: func.func @shuffled(
// CHECK-SAME: %[[X:.*]]: vector<8xf32>, %[[Y:.*]]: vector<8xf32>
// CHECK-DAG: %[[LOW:.*]] = vector.shuffle %[[X]], %[[X]] [4, 5, 6, 7, 0, 0, 0, 0]
// CHECK-DAG: %[[HIGH:.*]] = vector.shuffle %[[Y]], %[[Y]] [0, 0, 0, 0, 0, 1, 2, 3]
// CHECK: vector.shuffle %[[HIGH]], %[[LOW]] [8, 9, 10, 11, 4, 5, 6, 7]
kernel.func @shuffled(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  // The second half of x, then the first of y.
  %m = kernel.constant 33 : si32
  %z = kernel.intrinsic "_mm256_permute2f128_ps"(%x, %y, %m) : (vector<8xf32>, vector<8xf32>, si32) -> vector<8xf32>
  kernel.return %z : vector<8xf32>
}

// Sums are those of halves, in the order that compilers have.
// CHECK-LABEL: func.func @reduced(
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
kernel.func @reduced(%x: vector<16xf32>) -> f32 {
  %y = kernel.intrinsic "_mm512_reduce_add_ps"(%x) : (vector<16xf32>) -> f32
  kernel.return %y : f32
}

// Pairs of products: even lanes, odd ones, and their sum; vectors of integers
// have the lanes that an intrinsic takes.
// CHECK-LABEL: func.func @pairs(
// CHECK-SAME: vector<4xi64>
// CHECK: vector.bitcast %{{.*}} : vector<4xi64> to vector<16xi16>
// CHECK: vector.shuffle %{{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK: arith.extsi %{{.*}} : vector<8xi16> to vector<8xi32>
// CHECK: arith.muli
// CHECK: vector.shuffle %{{.*}} [1, 3, 5, 7, 9, 11, 13, 15]
// CHECK: arith.addi
// CHECK: vector.bitcast %{{.*}} : vector<8xi32> to vector<4xi64>
kernel.func @pairs(%x: vector<4xsi64>) -> vector<4xsi64> {
  %z = kernel.intrinsic "_mm256_madd_epi16"(%x, %x) : (vector<4xsi64>, vector<4xsi64>) -> vector<4xsi64>
  kernel.return %z : vector<4xsi64>
}

// Memory that is read as several kinds of numbers is bytes.
// CHECK-LABEL: func.func @bytes(
// CHECK-SAME: %[[P:.*]]: memref<?xi8>
// CHECK: memref.view %[[P]]
// CHECK-SAME: to memref<?xf16>
// CHECK: memref.load
// CHECK: memref.view %[[P]]
// CHECK-SAME: to memref<?xi64>
// CHECK: vector.load %{{.*}} : memref<?xi64>, vector<4xi64>
kernel.func @bytes(%p: !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>>) -> vector<4xsi64> {
  %d = kernel.member %p, "d" : !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>> to !kernel.pointer<const f16>
  %scale = kernel.load %d : !kernel.pointer<const f16>
  %wide = kernel.cast %scale : f16 to f32
  %qs = kernel.member %p, "qs" : !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>> to !kernel.pointer<const !kernel.array<32 x si8>>
  %q = kernel.elements %qs : !kernel.pointer<const !kernel.array<32 x si8>> to !kernel.pointer<const si8>
  %v = kernel.cast %q : !kernel.pointer<const si8> to !kernel.pointer<const vector<4xui64>>
  %x = kernel.intrinsic "_mm256_loadu_si256"(%v) : (!kernel.pointer<const vector<4xui64>>) -> vector<4xsi64>
  %y = kernel.intrinsic "_mm256_set1_ps"(%wide) : (f32) -> vector<8xf32>
  %b = kernel.bitcast %y : vector<8xf32> to vector<4xsi64>
  %z = kernel.binary xor %x, %b : vector<4xsi64>
  kernel.return %z : vector<4xsi64>
}
