// RUN: sandwich-opt %s --verify-roundtrip | FileCheck %s

// A sum by eight lanes with what is left one by one, as it stands in C++.
// CHECK-LABEL: kernel.func @sum(
// CHECK-SAME: %[[X:.*]]: !kernel.pointer<const f32>, %[[N:.*]]: si32) -> f32
kernel.func @sum(%x: !kernel.pointer<const f32>, %n: si32) -> f32 {
  // CHECK: %[[LANES:.*]] = kernel.variable "lanes" : <vector<8xf32>>
  %lanes = kernel.variable "lanes" : !kernel.pointer<vector<8xf32>>
  // CHECK: kernel.intrinsic "_mm256_setzero_ps"() : () -> vector<8xf32>
  %none = kernel.intrinsic "_mm256_setzero_ps"() : () -> vector<8xf32>
  kernel.store %none, %lanes : !kernel.pointer<vector<8xf32>>
  %i = kernel.variable "i" : !kernel.pointer<si32>
  %first = kernel.constant 0 : si32
  kernel.store %first, %i : !kernel.pointer<si32>
  // CHECK: kernel.for {
  // CHECK: kernel.compare le %{{.*}}, %{{.*}} : si32
  // CHECK: kernel.yield %{{.*}} : i1
  // CHECK: } step {
  // CHECK: kernel.binary add %{{.*}}, %{{.*}} : si32
  // CHECK: } do {
  kernel.for {
    %at = kernel.load %i : !kernel.pointer<si32>
    %eight = kernel.constant 8 : si32
    %end = kernel.binary add %at, %eight : si32
    %more = kernel.compare le %end, %n : si32
    kernel.yield %more : i1
  } step {
    %at = kernel.load %i : !kernel.pointer<si32>
    %eight = kernel.constant 8 : si32
    %next = kernel.binary add %at, %eight : si32
    kernel.store %next, %i : !kernel.pointer<si32>
  } do {
    %at = kernel.load %i : !kernel.pointer<si32>
    // CHECK: %[[PLACE:.*]] = kernel.offset %[[X]], %{{.*}} : <const f32>, si32
    %place = kernel.offset %x, %at : !kernel.pointer<const f32>, si32
    // CHECK: kernel.intrinsic "_mm256_loadu_ps"(%[[PLACE]]) : (!kernel.pointer<const f32>) -> vector<8xf32>
    %eight = kernel.intrinsic "_mm256_loadu_ps"(%place) : (!kernel.pointer<const f32>) -> vector<8xf32>
    %before = kernel.load %lanes : !kernel.pointer<vector<8xf32>>
    %after = kernel.intrinsic "_mm256_add_ps"(%before, %eight) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
    kernel.store %after, %lanes : !kernel.pointer<vector<8xf32>>
  }
  %total = kernel.variable "total" : !kernel.pointer<f32>
  %zero = kernel.constant 0.0 : f32
  kernel.store %zero, %total : !kernel.pointer<f32>
  // CHECK: kernel.for {
  // CHECK: } step {
  // CHECK-NEXT: } do {
  kernel.for {
    %at = kernel.load %i : !kernel.pointer<si32>
    %more = kernel.compare lt %at, %n : si32
    kernel.yield %more : i1
  } step {
  } do {
    %at = kernel.load %i : !kernel.pointer<si32>
    %place = kernel.offset %x, %at : !kernel.pointer<const f32>, si32
    %one = kernel.load %place : !kernel.pointer<const f32>
    // CHECK: kernel.if %{{.*}} {
    // CHECK-NEXT: kernel.break
    // CHECK-NEXT: } else {
    // CHECK-NEXT: }
    %isNone = kernel.compare ne %one, %one : f32
    kernel.if %isNone {
      kernel.break
    } else {
    }
    %before = kernel.load %total : !kernel.pointer<f32>
    %after = kernel.binary add %before, %one : f32
    kernel.store %after, %total : !kernel.pointer<f32>
  }
  %result = kernel.load %total : !kernel.pointer<f32>
  // CHECK: kernel.return %{{.*}} : f32
  kernel.return %result : f32
}

// What is in memory, and numbers of all kinds.
// CHECK-LABEL: kernel.func @all(
// CHECK-SAME: !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>>
kernel.func @all(%b: !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>>,
                 %r: ui32, %p: !kernel.pointer<f32>) {
  // CHECK: kernel.member %{{.*}}, "d" : <const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>> to <const f16>
  %d = kernel.member %b, "d" : !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>> to !kernel.pointer<const f16>
  %qs = kernel.member %b, "qs" : !kernel.pointer<const !kernel.structure<"block", d: f16, qs: !kernel.array<32 x si8>>> to !kernel.pointer<const !kernel.array<32 x si8>>
  // CHECK: kernel.elements %{{.*}} : <const !kernel.array<32 x si8>> to <const si8>
  %q = kernel.elements %qs : !kernel.pointer<const !kernel.array<32 x si8>> to !kernel.pointer<const si8>
  // CHECK: kernel.cast %{{.*}} : !kernel.pointer<const si8> to !kernel.pointer<const vector<4xui64>>
  %v = kernel.cast %q : !kernel.pointer<const si8> to !kernel.pointer<const vector<4xui64>>
  // Bytes, words and halves have one type in C.
  // CHECK: kernel.intrinsic "_mm256_loadu_si256"(%{{.*}}) : (!kernel.pointer<const vector<4xui64>>) -> vector<32xsi8>
  %bytes = kernel.intrinsic "_mm256_loadu_si256"(%v) : (!kernel.pointer<const vector<4xui64>>) -> vector<32xsi8>
  %words = kernel.intrinsic "_mm256_madd_epi16"(%bytes, %bytes) : (vector<32xsi8>, vector<32xsi8>) -> vector<8xsi32>
  // CHECK: kernel.intrinsic "_mm256_srli_epi32"(%{{.*}}, %{{.*}}) : (vector<8xsi32>, si32) -> vector<8xui32>
  %four = kernel.constant 4 : si32
  %shifted = kernel.intrinsic "_mm256_srli_epi32"(%words, %four) : (vector<8xsi32>, si32) -> vector<8xui32>
  // A mask of the first r lanes.
  // CHECK: kernel.binary shl %{{.*}}, %{{.*}} : ui32
  // CHECK: kernel.cast %{{.*}} : ui16 to vector<16xi1>
  %one = kernel.constant 1 : ui32
  %bit = kernel.binary shl %one, %r : ui32
  %bits = kernel.binary sub %bit, %one : ui32
  %short = kernel.cast %bits : ui32 to ui16
  %mask = kernel.cast %short : ui16 to vector<16xi1>
  %x = kernel.intrinsic "_mm512_setzero_ps"() : () -> vector<16xf32>
  // CHECK: kernel.intrinsic "_mm512_mask_storeu_ps"(%{{.*}}, %{{.*}}, %{{.*}}) : (!kernel.pointer<f32>, vector<16xi1>, vector<16xf32>) -> ()
  kernel.intrinsic "_mm512_mask_storeu_ps"(%p, %mask, %x) : (!kernel.pointer<f32>, vector<16xi1>, vector<16xf32>) -> ()
  // CHECK: kernel.unary not %{{.*}} : ui32
  %all = kernel.unary not %bits : ui32
  // CHECK: kernel.bitcast %{{.*}} : ui32 to f32
  %float = kernel.bitcast %all : ui32 to f32
  // CHECK: kernel.conditional %{{.*}} {
  // CHECK-NEXT: kernel.yield %{{.*}} : f32
  // CHECK-NEXT: } else {
  // CHECK: } : f32
  %isLarge = kernel.compare gt %float, %float : f32
  %chosen = kernel.conditional %isLarge {
    kernel.yield %float : f32
  } else {
    %negative = kernel.unary neg %float : f32
    kernel.yield %negative : f32
  } : f32
  // CHECK: kernel.do {
  // CHECK-NEXT: kernel.continue
  // CHECK-NEXT: } while {
  kernel.do {
    kernel.continue
  } while {
    kernel.yield %isLarge : i1
  }
  // CHECK: kernel.call @sum(%{{.*}}, %{{.*}}) : (!kernel.pointer<const f32>, si32) -> f32
  %read = kernel.cast %p : !kernel.pointer<f32> to !kernel.pointer<const f32>
  %sum = kernel.call @sum(%read, %four) : (!kernel.pointer<const f32>, si32) -> f32
  kernel.return
}

// Tables, unions, copies, and vectors' own operators.
// CHECK: kernel.global @levels : !kernel.array<2 x !kernel.array<2 x si8>> = dense<[0, 1, 4, 9]> : tensor<4xsi8>
kernel.global @levels : !kernel.array<2 x !kernel.array<2 x si8>> = dense<[0, 1, 4, 9]> : tensor<4xsi8>
// CHECK-LABEL: kernel.func @more(
// CHECK-SAME: !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>>
kernel.func @more(%u: !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>>, %v: vector<8xf32>, %n: si32) -> vector<8xf32> {
  // CHECK: kernel.address @levels : <const !kernel.array<2 x !kernel.array<2 x si8>>>
  %levels = kernel.address @levels : !kernel.pointer<const !kernel.array<2 x !kernel.array<2 x si8>>>
  %copy = kernel.variable "copy" : !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>>
  // CHECK: kernel.copy %{{.*}}, %{{.*}} : <!kernel.structure<union "bits", f: f32, i: ui32>> to <!kernel.structure<union "bits", f: f32, i: ui32>>
  kernel.copy %u, %copy : !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>> to !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>>
  %f = kernel.member %copy, "f" : !kernel.pointer<!kernel.structure<union "bits", f: f32, i: ui32>> to !kernel.pointer<f32>
  %x = kernel.load %f : !kernel.pointer<f32>
  // CHECK: kernel.math exp %{{.*}} : f32
  %e = kernel.math exp %x : f32
  // CHECK: kernel.math fma %{{.*}}, %{{.*}}, %{{.*}} : f32
  %m = kernel.math fma %x, %e, %x : f32
  kernel.store %m, %f : !kernel.pointer<f32>
  %i = kernel.variable "i" : !kernel.pointer<si32>
  kernel.store %n, %i : !kernel.pointer<si32>
  // CHECK: kernel.for unroll 4 {
  kernel.for unroll 4 {
    %at = kernel.load %i : !kernel.pointer<si32>
    %zero = kernel.constant 0 : si32
    %more = kernel.compare gt %at, %zero : si32
    kernel.yield %more : i1
  } step {
  } do {
    // CHECK: kernel.trap
    kernel.trap
  }
  // CHECK: kernel.constant dense<5.000000e-01> : vector<8xf32>
  %half = kernel.constant dense<0.5> : vector<8xf32>
  // CHECK: kernel.binary mul %{{.*}}, %{{.*}} : vector<8xf32>
  %product = kernel.binary mul %v, %half : vector<8xf32>
  // CHECK: kernel.unary neg %{{.*}} : vector<8xf32>
  %result = kernel.unary neg %product : vector<8xf32>
  kernel.return %result : vector<8xf32>
}
