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

// The error function is one quotient of polynomials, bounded by what it is at
// the edges; nothing is picked from among several. Of what is no number both
// comparisons are false, and it stays.
// CHECK-LABEL: func @erf
// CHECK-SAME: %[[X:.*]]: vector<16xf32>
// CHECK: %[[BELOW:.*]] = arith.cmpf ogt, %[[LOW:.*]], %[[X]]
// CHECK: %[[BOUNDED:.*]] = arith.select %[[BELOW]], %[[LOW]], %[[X]]
// CHECK: %[[ABOVE:.*]] = arith.cmpf olt, %[[HIGH:.*]], %[[BOUNDED]]
// CHECK: arith.select %[[ABOVE]], %[[HIGH]], %[[BOUNDED]]
// CHECK-NOT: arith.select
// CHECK-COUNT-10: math.fma
// CHECK-NOT: {{math|select}}
// CHECK: arith.divf
// CHECK-NOT: {{math|select}}
// CHECK: return
func.func @erf(%x: vector<16xf32>) -> vector<16xf32> {
  %error = math.erf %x : vector<16xf32>
  return %error : vector<16xf32>
}

// CHECK-LABEL: func @erf_of_scalar
// CHECK-COUNT-2: arith.select
// CHECK-COUNT-10: math.fma
// CHECK-NOT: {{math|select}}
// CHECK: return
func.func @erf_of_scalar(%x: f32) -> f32 {
  %error = math.erf %x : f32
  return %error : f32
}
