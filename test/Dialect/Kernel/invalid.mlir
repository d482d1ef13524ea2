// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// Objects are known to C.
// expected-error @below {{what a pointer points to is a number, a vector, a pointer, an array or a structure, not 'i32'}}
kernel.func @pointer(%p: !kernel.pointer<i32>) {}

// -----

// expected-error @below {{an array has one element or more, not 0}}
kernel.func @array(%p: !kernel.pointer<!kernel.array<0 x f32>>) {}

// -----

// expected-error @below {{a structure has one member d}}
kernel.func @structure(%p: !kernel.pointer<!kernel.structure<"s", d: f32, d: f32>>) {}

// -----

// expected-error @below {{a structure has members, and a type for each}}
kernel.func @structure(%p: !kernel.pointer<!kernel.structure<"s">>) {}

// -----

// kernel.func (C1): arrays are passed as pointers.
// expected-error @below {{'kernel.func' op (C1) argument 0 must be a number, a vector or a pointer, not '!kernel.array<2 x f32>'}}
kernel.func @argument(%a: !kernel.array<2 x f32>) {}

// -----

// kernel.func (C2): one result.
// expected-error @below {{'kernel.func' op (C2) has one result, a value, or none}}
kernel.func @results() -> (f32, f32) {
  kernel.return
}

// -----

// kernel.return (C1).
kernel.func @nothing() -> f32 {
  // expected-error @below {{'kernel.return' op (C1) must return 'f32'}}
  kernel.return
}

// -----

// kernel.return (C1).
kernel.func @something(%x: f32) {
  // expected-error @below {{'kernel.return' op (C1) must return nothing}}
  kernel.return %x : f32
}

// -----

// kernel.call (C1).
kernel.func @caller() {
  // expected-error @below {{'kernel.call' op (C1) there is no function none}}
  kernel.call @none() : () -> ()
}

// -----

// kernel.call (C2).
kernel.func @callee(%x: f32) {}
kernel.func @caller() {
  // expected-error @below {{'kernel.call' op (C2) does not fit '(f32) -> ()'}}
  kernel.call @callee() : () -> ()
}

// -----

// kernel.variable (C1).
kernel.func @variable() {
  // expected-error @below {{'kernel.variable' op (C1) must not be const}}
  %x = kernel.variable "x" : !kernel.pointer<const f32>
}

// -----

// kernel.store (C1).
kernel.func @store(%p: !kernel.pointer<const f32>, %x: f32) {
  // expected-error @below {{'kernel.store' op (C1) must not write to what is const}}
  kernel.store %x, %p : !kernel.pointer<const f32>
}

// -----

// kernel.offset (C1).
kernel.func @offset(%p: !kernel.pointer<f32>, %x: f32) {
  // expected-error @below {{'kernel.offset' op (C1) the index must be an integer, not 'f32'}}
  %q = kernel.offset %p, %x : !kernel.pointer<f32>, f32
}

// -----

// kernel.elements (C1).
kernel.func @elements(%p: !kernel.pointer<f32>) {
  // expected-error @below {{'kernel.elements' op (C1) must be of an array, not 'f32'}}
  %q = kernel.elements %p : !kernel.pointer<f32> to !kernel.pointer<f32>
}

// -----

// kernel.elements (C1): const stays.
kernel.func @elements(%p: !kernel.pointer<const !kernel.array<2 x f32>>) {
  // expected-error @below {{'kernel.elements' op (C1) the result must be '!kernel.pointer<const f32>'}}
  %q = kernel.elements %p : !kernel.pointer<const !kernel.array<2 x f32>> to !kernel.pointer<f32>
}

// -----

// kernel.member (C1).
kernel.func @member(%p: !kernel.pointer<f32>) {
  // expected-error @below {{'kernel.member' op (C1) must be of a structure, not 'f32'}}
  %q = kernel.member %p, "d" : !kernel.pointer<f32> to !kernel.pointer<f32>
}

// -----

// kernel.member (C1).
kernel.func @member(%p: !kernel.pointer<!kernel.structure<"s", d: f32>>) {
  // expected-error @below {{'kernel.member' op (C1) there is no member "e"}}
  %q = kernel.member %p, "e" : !kernel.pointer<!kernel.structure<"s", d: f32>> to !kernel.pointer<f32>
}

// -----

// kernel.member (C2).
kernel.func @member(%p: !kernel.pointer<!kernel.structure<"s", d: f32>>) {
  // expected-error @below {{'kernel.member' op (C2) the result must be '!kernel.pointer<f32>'}}
  %q = kernel.member %p, "d" : !kernel.pointer<!kernel.structure<"s", d: f32>> to !kernel.pointer<f16>
}

// -----

// kernel.binary (C1).
kernel.func @binary(%x: f32) {
  // expected-error @below {{'kernel.binary' op (C1) is not for 'f32'}}
  %y = kernel.binary shl %x, %x : f32
}

// -----

// kernel.unary (C1).
kernel.func @unary(%x: f32) {
  // expected-error @below {{'kernel.unary' op (C1) is not for 'f32'}}
  %y = kernel.unary not %x : f32
}

// -----

// kernel.cast (C1): no numbers of pointers.
kernel.func @cast(%p: !kernel.pointer<f32>) {
  // expected-error @below {{'kernel.cast' op (C1) must be of numbers, of pointers, or of a mask and an integer of as many bits, not of '!kernel.pointer<f32>' and 'ui64'}}
  %y = kernel.cast %p : !kernel.pointer<f32> to ui64
}

// -----

// kernel.cast (C1): nor parts of masks.
kernel.func @cast(%m: vector<16xi1>) {
  // expected-error @below {{'kernel.cast' op (C1) must be of numbers, of pointers, or of a mask and an integer of as many bits, not of 'vector<16xi1>' and 'ui8'}}
  %y = kernel.cast %m : vector<16xi1> to ui8
}

// -----

// kernel.bitcast (C1).
kernel.func @bitcast(%x: f32) {
  // expected-error @below {{'kernel.bitcast' op (C1) must be of numbers or vectors of as many bits, not 'f32' and 'f16'}}
  %y = kernel.bitcast %x : f32 to f16
}

// -----

// kernel.intrinsic (C1).
kernel.func @intrinsic() {
  // expected-error @below {{'kernel.intrinsic' op (C1) there is no intrinsic "_mm512_guess_ps"}}
  kernel.intrinsic "_mm512_guess_ps"() : () -> ()
}

// -----

// kernel.intrinsic (C2).
kernel.func @intrinsic(%x: vector<8xf32>) {
  // expected-error @below {{'kernel.intrinsic' op (C2) _mm256_add_ps has 2 operands, not 1}}
  %y = kernel.intrinsic "_mm256_add_ps"(%x) : (vector<8xf32>) -> vector<8xf32>
}

// -----

// kernel.intrinsic (C2): floats are not integers.
kernel.func @intrinsic(%x: vector<8xsi32>) {
  // expected-error @below {{'kernel.intrinsic' op (C2) _mm256_add_ps: a must be 'vector<8xf32>', not 'vector<8xsi32>'}}
  %y = kernel.intrinsic "_mm256_add_ps"(%x, %x) : (vector<8xsi32>, vector<8xsi32>) -> vector<8xf32>
}

// -----

// kernel.intrinsic (C2): what is not known is no immediate number.
kernel.func @intrinsic(%x: vector<8xsi32>, %n: si32) {
  // expected-error @below {{'kernel.intrinsic' op (C2) _mm256_slli_epi32: m must be a constant between 0 and 32}}
  %y = kernel.intrinsic "_mm256_slli_epi32"(%x, %n) : (vector<8xsi32>, si32) -> vector<8xsi32>
}

// -----

// kernel.intrinsic (C2): nor what there is no instruction for.
kernel.func @intrinsic(%x: vector<8xsi32>) {
  %n = kernel.constant 33 : si32
  // expected-error @below {{'kernel.intrinsic' op (C2) _mm256_slli_epi32: m must be a constant between 0 and 32}}
  %y = kernel.intrinsic "_mm256_slli_epi32"(%x, %n) : (vector<8xsi32>, si32) -> vector<8xsi32>
}

// -----

// kernel.intrinsic (C3).
kernel.func @intrinsic(%x: vector<8xf32>) {
  // expected-error @below {{'kernel.intrinsic' op (C3) _mm256_add_ps gives 'vector<8xf32>'}}
  kernel.intrinsic "_mm256_add_ps"(%x, %x) : (vector<8xf32>, vector<8xf32>) -> ()
}

// -----

// kernel.intrinsic (C3).
kernel.func @intrinsic(%p: !kernel.pointer<f32>, %x: vector<8xf32>) {
  // expected-error @below {{'kernel.intrinsic' op (C3) _mm256_storeu_ps has no result}}
  %y = kernel.intrinsic "_mm256_storeu_ps"(%p, %x) : (!kernel.pointer<f32>, vector<8xf32>) -> f32
}

// -----

// kernel.for (C1).
kernel.func @for(%x: f32) {
  // expected-error @below {{'kernel.for' op (C1) the condition must yield 'i1'}}
  kernel.for {
    kernel.yield %x : f32
  } step {
  } do {
  }
}

// -----

// kernel.do (C1).
kernel.func @do() {
  // expected-error @below {{'kernel.do' op (C1) the condition must yield 'i1'}}
  kernel.do {
  } while {
  }
}

// -----

// kernel.conditional (C1).
kernel.func @conditional(%c: i1, %x: f32) {
  // expected-error @below {{'kernel.conditional' op (C1) the second side must yield 'f32'}}
  %y = kernel.conditional %c {
    kernel.yield %x : f32
  } else {
  } : f32
}

// -----

// kernel.break (C1).
kernel.func @break() {
  // expected-error @below {{'kernel.break' op (C1) must be in the body of a loop}}
  kernel.break
}

// -----

// kernel.continue (C1): a step is no body.
kernel.func @continue(%c: i1) {
  kernel.for {
    kernel.yield %c : i1
  } step {
    // expected-error @below {{'kernel.continue' op (C1) must be in the body of a loop}}
    kernel.continue
  } do {
  }
}

// -----

// expected-error @below {{what a pointer points to has more than 2^40 bytes}}
kernel.func @pointer(%p: !kernel.pointer<!kernel.array<1000000000000 x f32>>) {}

// -----

// kernel.global (C1).
// expected-error @below {{'kernel.global' op (C1) must be an array of numbers, not 'si8'}}
kernel.global @number : si8 = dense<0> : tensor<1xsi8>

// -----

// kernel.global (C2).
// expected-error @below {{'kernel.global' op (C2) must have 3 numbers of 'si8'}}
kernel.global @few : !kernel.array<3 x si8> = dense<0> : tensor<2xsi8>

// -----

// kernel.global (C2).
// expected-error @below {{'kernel.global' op (C2) must have 2 numbers of 'si8'}}
kernel.global @others : !kernel.array<2 x si8> = dense<0> : tensor<2xui8>

// -----

// kernel.address (C1).
kernel.func @address() {
  // expected-error @below {{'kernel.address' op (C1) there is no table none}}
  %x = kernel.address @none : !kernel.pointer<const !kernel.array<2 x si8>>
}

// -----

// kernel.address (C2).
kernel.global @table : !kernel.array<2 x si8> = dense<0> : tensor<2xsi8>
kernel.func @address() {
  // expected-error @below {{'kernel.address' op (C2) the result must be '!kernel.pointer<const !kernel.array<2 x si8>>'}}
  %x = kernel.address @table : !kernel.pointer<!kernel.array<2 x si8>>
}

// -----

// kernel.copy (C1).
kernel.func @copy(%p: !kernel.pointer<f32>, %q: !kernel.pointer<si32>) {
  // expected-error @below {{'kernel.copy' op (C1) must be of objects of one type}}
  kernel.copy %p, %q : !kernel.pointer<f32> to !kernel.pointer<si32>
}

// -----

// kernel.copy (C1).
kernel.func @copy(%p: !kernel.pointer<f32>, %q: !kernel.pointer<const f32>) {
  // expected-error @below {{'kernel.copy' op (C1) must not write to what is const}}
  kernel.copy %p, %q : !kernel.pointer<f32> to !kernel.pointer<const f32>
}

// -----

// kernel.math (C1).
kernel.func @math(%x: f32) {
  // expected-error @below {{'kernel.math' op (C1) pow has 2 operands}}
  %y = kernel.math pow %x : f32
}

// -----

// kernel.for (C2).
kernel.func @loop(%more: i1) {
  // expected-error @below {{'kernel.for' op (C2) unroll must not be negative}}
  kernel.for unroll -1 {
    kernel.yield %more : i1
  } step {
  } do {
  }
}

// -----

// kernel.binary (C1): of vectors, too.
kernel.func @binary(%x: vector<8xf32>) {
  // expected-error @below {{'kernel.binary' op (C1) is not for 'vector<8xf32>'}}
  %y = kernel.binary and %x, %x : vector<8xf32>
}

// -----

// kernel.func (C3): what is called is there.
// expected-error @below {{'kernel.func' op (C3) has a body}}
kernel.func private @declared(%x: f32)

// -----

// kernel.return (C2): a choice has a value.
kernel.func @choice(%c: i1, %x: f32) -> f32 {
  %y = kernel.conditional %c {
    kernel.if %c {
      // expected-error @below {{'kernel.return' op (C2) must not be in a condition, a step or a choice}}
      kernel.return %x : f32
    } else {
    }
    kernel.yield %x : f32
  } else {
    kernel.yield %x : f32
  } : f32
  kernel.return %y : f32
}

// -----

// kernel.variable (C2).
kernel.func @variable() {
  // expected-error @below {{'kernel.variable' op (C2) must be aligned by a power of two up to 4096}}
  %x = kernel.variable "x" align 48 : !kernel.pointer<f32>
}

// -----

// kernel.global (C3).
// expected-error @below {{'kernel.global' op (C3) must have at most 2^20 numbers, all of them told}}
kernel.global @large : !kernel.array<1048577 x si8> = dense<0> : tensor<1048577xsi8>

// -----

// kernel.constant (C1).
kernel.func @constant() {
  // expected-error @below {{'kernel.constant' op (C1) must be a number or a dense vector}}
  %x = kernel.constant dense_resource<elsewhere> : vector<4xf32>
}

// -----

// kernel.compare (C1).
kernel.func @compare(%x: vector<4xf32>) {
  // expected-error @below {{'kernel.compare' op (C1) is not for vectors}}
  %y = kernel.compare lt %x, %x : vector<4xf32>
}

// -----

// kernel.binary (C2).
kernel.func @truths(%x: i1) {
  // expected-error @below {{'kernel.binary' op (C2) is not for truths}}
  %y = kernel.binary add %x, %x : i1
}

// -----

// kernel.unary (C2).
kernel.func @truth(%x: i1) {
  // expected-error @below {{'kernel.unary' op (C2) is not for truths}}
  %y = kernel.unary not %x : i1
}
