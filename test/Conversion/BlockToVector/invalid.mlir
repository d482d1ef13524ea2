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
  // expected-error @below {{takes more than 1048576 bytes}}
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

func.func @call() attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{is nothing that a kernel may have}}
  func.call @call() : () -> ()
  return
}
