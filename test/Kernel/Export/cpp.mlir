// RUN: sandwich-import %s --emit=cpp | FileCheck %s
// RUN: sandwich-import %s --emit=cpp -o %t.cpp
// RUN: clang++-22 -std=c++17 -Wall -Werror -Wno-unused -mavx2 -fsyntax-only %t.cpp
// RUN: rm %t.cpp

// CHECK: struct pair {
// CHECK-NEXT: float first;
// CHECK-NEXT: int32_t second[2];
// CHECK-NEXT: };
// CHECK: static const int16_t levels[2][2] = {{[{][{]}}(int16_t)0, (int16_t)1}, {(int16_t)4, (int16_t)9{{[}][}]}};
kernel.global @levels : !kernel.array<2 x !kernel.array<2 x si16>> = dense<[0, 1, 4, 9]> : tensor<4xsi16>

// CHECK: static float first(const pair *argument);
// CHECK: extern "C" void loops(float *argument, int32_t argument_2);
// CHECK: static float first(const pair *argument) {
// CHECK-NEXT: return argument->first;
kernel.func private @first(%p: !kernel.pointer<const !kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>>) -> f32 {
  %q = kernel.member %p, "first" : !kernel.pointer<const !kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>> to !kernel.pointer<const f32>
  %x = kernel.load %q : !kernel.pointer<const f32>
  kernel.return %x : f32
}

// CHECK-LABEL: extern "C" void loops(float *argument, int32_t argument_2) {
kernel.func @loops(%x: !kernel.pointer<f32>, %n: si32) {
  // A variable is declared where it gets its first value; names stay apart.
  // CHECK-NEXT: #pragma unroll 4
  // CHECK-NEXT: for (int32_t i = 0; i < argument_2; i = i + 1) {
  %i = kernel.variable "i" : !kernel.pointer<si32>
  %zero = kernel.constant 0 : si32
  kernel.store %zero, %i : !kernel.pointer<si32>
  kernel.for unroll 4 {
    %at = kernel.load %i : !kernel.pointer<si32>
    %more = kernel.compare lt %at, %n : si32
    kernel.yield %more : i1
  } step {
    %at = kernel.load %i : !kernel.pointer<si32>
    %one = kernel.constant 1 : si32
    %next = kernel.binary add %at, %one : si32
    kernel.store %next, %i : !kernel.pointer<si32>
  } do {
    // What was read is named before it is written to.
    // CHECK-NEXT: float value = argument[i];
    // CHECK-NEXT: argument[i] = 0.5f;
    // CHECK-NEXT: argument[i + 1] = value;
    %at = kernel.load %i : !kernel.pointer<si32>
    %p = kernel.offset %x, %at : !kernel.pointer<f32>, si32
    %before = kernel.load %p : !kernel.pointer<f32>
    %half = kernel.constant 0.5 : f32
    kernel.store %half, %p : !kernel.pointer<f32>
    %one = kernel.constant 1 : si32
    %next = kernel.binary add %at, %one : si32
    %q = kernel.offset %x, %next : !kernel.pointer<f32>, si32
    kernel.store %before, %q : !kernel.pointer<f32>
  }
  // CHECK: for (int32_t i = 7; [&] { pair class_;
  // CHECK-NEXT: float value = first((const pair *)&class_);
  // CHECK-NEXT: return value < value; }();) {
  %other = kernel.variable "i" : !kernel.pointer<si32>
  %seven = kernel.constant 7 : si32
  kernel.store %seven, %other : !kernel.pointer<si32>
  kernel.for {
    %pair = kernel.variable "class" : !kernel.pointer<!kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>>
    %read = kernel.cast %pair : !kernel.pointer<!kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>> to !kernel.pointer<const !kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>>
    %f = kernel.call @first(%read) : (!kernel.pointer<const !kernel.structure<"pair", first: f32, second: !kernel.array<2 x si32>>>) -> f32
    %more = kernel.compare lt %f, %f : f32
    kernel.yield %more : i1
  } step {
  } do {
    %at = kernel.load %other : !kernel.pointer<si32>
    %less = kernel.unary not %at : si32
    // CHECK-NEXT: i = ~i;
    kernel.store %less, %other : !kernel.pointer<si32>
    // CHECK-NEXT: continue;
    kernel.continue
  }
  // CHECK: __m256 lanes = (__m256){-0.25f, -0.25f, -0.25f, -0.25f, -0.25f, -0.25f, -0.25f, -0.25f};
  %lanes = kernel.variable "lanes" : !kernel.pointer<vector<8xf32>>
  %quarter = kernel.constant dense<-0.25> : vector<8xf32>
  kernel.store %quarter, %lanes : !kernel.pointer<vector<8xf32>>
  kernel.return
}
