// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// #block.size (C1): the factor.
// expected-error @below {{(C1) a size has a factor of 0, which is not between 1 and 1048576}}
func.func @factor(%x: tensor<?xf32, #block.sizes<0 * N>>) { return }

// -----

// #block.size (C2): names.
// expected-error @below {{(C2) a size is a product of more than 6 names, or of such as are not in order}}
func.func @order(%x: tensor<?xf32, #block.sizes<N * M>>) { return }

// -----

// #block.sizes (C1): as many as dimensions.
// expected-error @below {{(C1) a block of 2 dimensions has 1 sizes, or more than 6}}
func.func @rank(%x: tensor<?x?xf32, #block.sizes<N>>) { return }

// -----

// #block.sizes (C2): numbers are static.
// expected-error @below {{(C2) a dimension of a block is not as its size says}}
func.func @static(%x: tensor<?xf32, #block.sizes<4>>) { return }

// -----

// #block.parameter (C1): the name.
// expected-error @below {{(C1) "N.M" is no name of a parameter}}
func.func @name() attributes {block.parameters = #block.parameters<N.M in [4] = 4>} { return }

// -----

// #block.parameter (C2): choices.
// expected-error @below {{(C2) parameter "N" has more than 64 choices, one of them twice, or one that is not between 0 and 1048576}}
func.func @twice() attributes {block.parameters = #block.parameters<N in [4, 4] = 4>} { return }

// -----

// #block.parameter (C3): what is taken untuned.
// expected-error @below {{(C3) parameter "N" is 3 untuned, which is none of its choices}}
func.func @none() attributes {block.parameters = #block.parameters<N in [4, 8] = 3>} { return }

// -----

// #block.parameters (C1): names.
// expected-error @below {{(C1) there are two parameters "N"}}
func.func @names() attributes {block.parameters = #block.parameters<N, N>} { return }

// -----

// expected-error @below {{(C1) is no function with a body, whose 'block.parameters' are parameters}}
func.func private @declared() attributes {block.parameters = #block.parameters<N>}

// -----

// expected-error @below {{(C1) has an unknown attribute 'block.other'}}
func.func @unknown() attributes {block.other} { return }

// -----

func.func @loop(%n: index) {
  // expected-error @below {{(C1) is no loop that is unrolled}}
  %c = arith.constant {block.unroll} 0 : index
  return
}

// -----

// expected-error @below {{(C1) has 'block.sizes' at argument 0, which is no memory of a kernel}}
func.func @number(%x: f32 {block.sizes = #block.sizes<n>})
    attributes {block.parameters = #block.parameters<>} { return }

// -----

// expected-error @below {{(C2) has argument 0 of type 'memref<?xf32>', whose sizes are #block.sizes<4>}}
func.func @sizes(%x: memref<?xf32> {block.sizes = #block.sizes<4>})
    attributes {block.parameters = #block.parameters<>} { return }

// -----

// expected-error @below {{(C2) has memory without 'block.sizes' as argument 0}}
func.func @without(%x: memref<?xf32>)
    attributes {block.parameters = #block.parameters<>} { return }

// -----

// expected-error @below {{(C3) has no parameter "n", and no argument of that size}}
func.func @nowhere(%x: memref<?xf32> {block.sizes = #block.sizes<2 * n>})
    attributes {block.parameters = #block.parameters<>} { return }

// -----

func.func @outside() {
  // expected-error @below {{'block.size' op (C1) is not in a kernel}}
  %n = block.size <N>
  return
}

// -----

func.func @unknown() attributes {block.parameters = #block.parameters<>} {
  // expected-error @below {{'block.size' op (C1) names "N", which is no parameter, and no size of an argument}}
  %n = block.size <N>
  return
}

// -----

func.func @positions(%r: !block.range<4>) {
  // expected-error @below {{'block.positions' op (C1) is not of index, or not of the range's size}}
  %p = block.positions %r : !block.range<4> -> tensor<4xi32, #block.sizes<4>>
  return
}

// -----

func.func @inside(%r: !block.range<4>) {
  // expected-error @below {{'block.inside' op (C1) is not of i1, or not of the range's size}}
  %p = block.inside %r : !block.range<4> -> tensor<8xi1, #block.sizes<8>>
  return
}

// -----

func.func @indices(%x: memref<?x?xf32>, %r: !block.range<4>) {
  // expected-error @below {{'block.load' op (C1) needs 2 indices, one a range or a block of indices or more, has 1 with 1 of those}}
  %v = block.load %x[%r] : memref<?x?xf32>, !block.range<4> -> tensor<4xf32, #block.sizes<4>>
  return
}

// -----

func.func @element(%x: memref<?xf32>, %r: !block.range<4>) {
  // expected-error @below {{'block.load' op (C2) has a block that is not 'tensor<4xf32, #block.sizes<4>>'}}
  %v = block.load %x[%r] : memref<?xf32>, !block.range<4> -> tensor<4xbf16, #block.sizes<4>>
  return
}

// -----

func.func @number(%x: memref<?xf32>, %i: index, %v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.store' op (C1) needs 1 indices, one a range or a block of indices or more, has 1 with 0 of those}}
  block.store %v, %x[%i] : tensor<4xf32, #block.sizes<4>>, memref<?xf32>, index
  return
}

// -----

func.func @size(%x: memref<?xf32>, %r: !block.range<8>, %v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.store' op (C2) has a block that is not 'tensor<8xf32, #block.sizes<8>>'}}
  block.store %v, %x[%r] : tensor<4xf32, #block.sizes<4>>, memref<?xf32>, !block.range<8>
  return
}

// -----

func.func @scratch() {
  // expected-error @below {{'block.scratch' op (C1) has a dimension that is not as its size says}}
  %m = block.scratch <4> : memref<8xf32>
  return
}

// -----

func.func @scratch() {
  // expected-error @below {{'block.scratch' op (C2) has elements that are no numbers, or a layout}}
  %m = block.scratch <4> : memref<4xvector<4xf32>>
  return
}

// -----

func.func @splat(%f: f64) {
  // expected-error @below {{'block.splat' op (C1) has a number of another type than the block's}}
  %v = block.splat %f : f64 -> tensor<4xf32, #block.sizes<4>>
  return
}

// -----

func.func @expand(%v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.expand' op (C1) has not the block's sizes with a 1 at axis 0, or not its numbers}}
  %w = block.expand %v at 0 : tensor<4xf32, #block.sizes<4>> -> tensor<4x1xf32, #block.sizes<4, 1>>
  return
}

// -----

func.func @broadcast(%v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.broadcast' op (C1) gives other numbers, or sizes that its block is not repeated to}}
  %w = block.broadcast %v : tensor<4xf32, #block.sizes<4>> -> tensor<4x2xf32, #block.sizes<4, 2>>
  return
}

// -----

func.func @axis(%v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.reduce' op (C1) has no dimension 1}}
  %w = block.reduce add %v along 1 : tensor<4xf32, #block.sizes<4>> -> f32
  return
}

// -----

func.func @all(%v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.reduce' op (C2) has not the block's other dimensions, or not its numbers}}
  %w = block.reduce add %v : tensor<4xf32, #block.sizes<4>> -> f64
  return
}

// -----

// expected-error @below {{(C2) has argument 0 of type '!block.range<4>', which is neither a number nor memory of numbers, of at most 6 dimensions}}
func.func @range_argument(%r: !block.range<4>) attributes {block.parameters = #block.parameters<>} { return }

// -----

// expected-error @below {{(C2) has argument 0 of type 'memref<4xvector<4xf32>>', which is neither a number nor memory of numbers, of at most 6 dimensions}}
func.func @vectors(%x: memref<4xvector<4xf32>> {block.sizes = #block.sizes<4>}) attributes {block.parameters = #block.parameters<>} { return }

// -----

func.func @truth(%v: tensor<4xi1, #block.sizes<4>>) {
  // expected-error @below {{'block.reduce' op (C3) is of truth, not of numbers}}
  %w = block.reduce max %v : tensor<4xi1, #block.sizes<4>> -> i1
  return
}

// -----

func.func @gather(%x: memref<?xf32>, %p: tensor<4x2xindex, #block.sizes<4, 2>>) {
  // expected-error @below {{'block.load' op operand #1 must be variadic of index or Neighbors in one dimension, as many as its size says or a block of indices in one dimension}}
  %v = block.load %x[%p] : memref<?xf32>, tensor<4x2xindex, #block.sizes<4, 2>> -> tensor<4x2xf32, #block.sizes<4, 2>>
  return
}

// -----

func.func @prefetch(%x: memref<?x?xf32>, %i: index) {
  // expected-error @below {{'block.prefetch' op (C1) needs 2 indices, has 1}}
  block.prefetch %x[%i] : memref<?x?xf32>, index
  return
}

// -----

func.func @interleave(%v: tensor<4xf32, #block.sizes<4>>) {
  // expected-error @below {{'block.interleave' op (C1) has not twice the last size, or not its numbers}}
  %w = block.interleave %v, %v : tensor<4xf32, #block.sizes<4>> -> tensor<4xf32, #block.sizes<4>>
  return
}

// -----

func.func @one_matrix(%a: tensor<4xf32, #block.sizes<4>>, %s: tensor<4x4xf32, #block.sizes<4, 4>>) {
  // expected-error @below {{'block.matmul' op (C1) has 1, 2 and 2 dimensions, needs 2, 2 or more, and 2}}
  %p = block.matmul %a, %s, %s : tensor<4xf32, #block.sizes<4>>, tensor<4x4xf32, #block.sizes<4, 4>> -> tensor<4x4xf32, #block.sizes<4, 4>>
  return
}

// -----

func.func @sizes(%a: tensor<4x?xf32, #block.sizes<4, K>>, %b: tensor<?x2x8xf32, #block.sizes<K, 2, 8>>, %s: tensor<4x8xf32, #block.sizes<4, 8>>) {
  // expected-error @below {{'block.matmul' op (C2) has matrices whose sizes do not go together}}
  %p = block.matmul %a, %b, %s : tensor<4x?xf32, #block.sizes<4, K>>, tensor<?x2x8xf32, #block.sizes<K, 2, 8>> -> tensor<4x8xf32, #block.sizes<4, 8>>
  return
}

// -----

func.func @columns(%a: tensor<4x8xf32, #block.sizes<4, 8>>, %b: tensor<8x8xf32, #block.sizes<8, 8>>, %s: tensor<4x4xf32, #block.sizes<4, 4>>) {
  // expected-error @below {{'block.matmul' op (C2) has matrices whose sizes do not go together}}
  %p = block.matmul %a, %b, %s : tensor<4x8xf32, #block.sizes<4, 8>>, tensor<8x8xf32, #block.sizes<8, 8>> -> tensor<4x4xf32, #block.sizes<4, 4>>
  return
}

// -----

func.func @elements(%a: tensor<4x4xf32, #block.sizes<4, 4>>, %b: tensor<4x4xbf16, #block.sizes<4, 4>>) {
  // expected-error @below {{'block.matmul' op (C3) multiplies what is not of the same floats of at most 32 bits, or adds up in another type than f32}}
  %p = block.matmul %a, %b, %a : tensor<4x4xf32, #block.sizes<4, 4>>, tensor<4x4xbf16, #block.sizes<4, 4>> -> tensor<4x4xf32, #block.sizes<4, 4>>
  return
}

// -----

func.func @wide(%a: tensor<4x4xf64, #block.sizes<4, 4>>, %s: tensor<4x4xf32, #block.sizes<4, 4>>) {
  // expected-error @below {{'block.matmul' op (C3) multiplies what is not of the same floats of at most 32 bits, or adds up in another type than f32}}
  %p = block.matmul %a, %a, %s : tensor<4x4xf64, #block.sizes<4, 4>>, tensor<4x4xf64, #block.sizes<4, 4>> -> tensor<4x4xf32, #block.sizes<4, 4>>
  return
}

// -----

func.func @sums(%a: tensor<4x4xbf16, #block.sizes<4, 4>>) {
  // expected-error @below {{'block.matmul' op (C3) multiplies what is not of the same floats of at most 32 bits, or adds up in another type than f32}}
  %p = block.matmul %a, %a, %a : tensor<4x4xbf16, #block.sizes<4, 4>>, tensor<4x4xbf16, #block.sizes<4, 4>> -> tensor<4x4xbf16, #block.sizes<4, 4>>
  return
}

// -----

func.func @pairs() {
  // expected-error @below {{'block.scratch' op (C3) is in pairs, and its dimension before the last is not of two}}
  %m = block.scratch <4, 4> pairs : memref<4x4xbf16>
  return
}

// -----

func.func @assertion(%c: i1) {
  scf.if %c {
    // expected-error @below {{'block.assert' op (C1) is in a loop or a branch}}
    block.assert %c, "c"
  }
  return
}
