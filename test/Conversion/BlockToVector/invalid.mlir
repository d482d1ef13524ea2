// RUN: sandwich-opt %s --block-to-vector -split-input-file -verify-diagnostics

// expected-error @below {{needs its constant 'DIM'}}
func.func @constant() attributes {block.parameters = #block.parameters<DIM>} { return }

// -----

func.func @size(%x: memref<?xf32> {block.sizes = #block.sizes<n>}, %f: f32)
    attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{needs the size n, which is not known when code is made}}
  %v = block.splat %f : f32 -> tensor<?xf32, #block.sizes<n>>
  return
}

// -----

func.func @large(%f: f32) attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{has a block of size 131072, which is not between 1 and 65536}}
  %v = block.splat %f : f32 -> tensor<131072xf32, #block.sizes<131072>>
  return
}

// -----

func.func @rows(%f: f32) attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{has a block of more than 65536 numbers, or 1024 rows}}
  %v = block.splat %f : f32 -> tensor<2048x4xf32, #block.sizes<2048, 4>>
  return
}

// -----

func.func @stack() attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{takes, with what is before it, more than 1310720 bytes}}
  %m = block.scratch <65536, 8> : memref<65536x8xf32>
  return
}

// -----

func.func @turns(%n: index) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @below {{is to be unrolled, and how many turns it has is not known when code is made}}
  scf.for %i = %zero to %n step %one {
  } {block.unroll}
  return
}

// -----

func.func @many() attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5000 : index
  // expected-error @below {{is to be unrolled, and has more than 4096 turns}}
  scf.for %i = %zero to %n step %one {
  } {block.unroll}
  return
}

// -----

func.func @assertion() attributes {block.parameters = #block.parameters<A in [4] = 4>} {
  %a = block.size <A>
  %four = arith.constant 4 : index
  %differs = arith.cmpi ne, %a, %four : index
  // expected-error @below {{does not hold: A is not 4}}
  block.assert %differs, "A is not 4"
  return
}

// -----

func.func @unknown(%c: i1) attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{asserts what is not known when code is made: c}}
  block.assert %c, "c"
  return
}

// -----

func.func @call() attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{is nothing that a kernel may have}}
  func.call @call() : () -> ()
  return
}

// -----

func.func @result(%f: f32) -> f32 attributes {block.parameters = #block.parameters<>} {
  return %f : f32
}
// expected-error @-3 {{gives results, which kernels do not}}

// -----

func.func @ranges(%c: i1) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %r = block.range %zero : !block.range<4>
  // expected-error @below {{carries '!block.range<4>', which is neither a number nor a block}}
  %s = scf.if %c -> (!block.range<4>) {
    scf.yield %r : !block.range<4>
  } else {
    scf.yield %r : !block.range<4>
  }
  return
}

// -----

func.func @carried(%x: memref<?xf32> {block.sizes = #block.sizes<n>}) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error @below {{is nothing that a kernel may have}}
  %s = scf.for %i = %zero to %one step %one iter_args(%m = %x) -> (memref<?xf32>) {
    scf.yield %m : memref<?xf32>
  }
  return
}

// -----

func.func @cast() attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  // expected-error @below {{is nothing that a kernel may have}}
  %r = builtin.unrealized_conversion_cast %zero : index to !block.range<4>
  return
}

// -----

func.func @select(%c: i1) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %r = block.range %zero : !block.range<4>
  // expected-error @below {{is nothing that a kernel may have}}
  %s = arith.select %c, %r, %r : !block.range<4>
  return
}

// -----

func.func @dense() attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{is nothing that a kernel may have}}
  %v = arith.constant dense<1.0> : tensor<4xf32, #block.sizes<4>>
  return
}

// -----

func.func @reshape(%f: f32) attributes {block.parameters = #block.parameters<>} {
  %v = block.splat %f : f32 -> tensor<4xf32, #block.sizes<4>>
  // expected-error @below {{is nothing that a kernel may have}}
  %w = builtin.unrealized_conversion_cast %v : tensor<4xf32, #block.sizes<4>> to tensor<8x2xf32, #block.sizes<8, 2>>
  return
}

// -----

func.func @step(%n: index) attributes {block.parameters = #block.parameters<STEP in [0] = 0>} {
  %zero = arith.constant 0 : index
  %step = block.size <STEP>
  // expected-error @below {{has a step that is not known when code is made, or not 1 or more}}
  scf.for %i = %zero to %n step %step {
  }
  return
}

// -----

func.func @back(%n: index) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %back = arith.constant -1 : index
  // expected-error @below {{has a step that is not known when code is made, or not 1 or more}}
  scf.for %i = %zero to %n step %back {
  } {block.unroll}
  return
}

// -----

func.func @counts(%n: i32) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // expected-error @below {{counts in another type than index, or without a sign}}
  scf.for %i = %zero to %n step %one : i32 {
  }
  return
}

// -----

func.func @scratches() attributes {block.parameters = #block.parameters<>} {
  %m = block.scratch <640, 512> : memref<640x512xf32>
  // expected-error @below {{takes, with what is before it, more than 1310720 bytes}}
  %k = block.scratch <1> : memref<1xf32>
  return
}

// -----

func.func @turns_of_turns(%x: memref<4xf32> {block.sizes = #block.sizes<4>}, %f: f32) attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 4000 : index
  scf.for %i = %zero to %n step %one {
    scf.for %j = %zero to %n step %one {
      // expected-error @below {{is too much: the kernel takes more than 131072 operations with these parameters}}
      memref.store %f, %x[%zero] : memref<4xf32>
    } {block.unroll}
  } {block.unroll}
  return
}
