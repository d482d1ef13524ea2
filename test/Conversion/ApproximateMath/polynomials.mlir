// RUN: sandwich-opt %s -approximate-math | FileCheck %s

// Functions that only a mathematics library has become arithmetic; what CPUs
// have an instruction for stays.
// CHECK-LABEL: func @functions
// CHECK-NOT: math.{{exp|cos|sin}}
// CHECK: math.fma
// CHECK-NOT: math.{{exp|cos|sin}}
// CHECK: math.sqrt
// CHECK-NOT: math.{{exp|cos|sin}}
// CHECK: return
func.func @functions(%x: vector<16xf32>, %y: f32) -> (vector<16xf32>, vector<16xf32>, f32, vector<16xf32>) {
  %exponential = math.exp %x : vector<16xf32>
  %cosine = math.cos %x : vector<16xf32>
  %sine = math.sin %y : f32
  %root = math.sqrt %x : vector<16xf32>
  return %exponential, %cosine, %sine, %root : vector<16xf32>, vector<16xf32>, f32, vector<16xf32>
}
