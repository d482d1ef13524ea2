// RUN: sandwich-opt %s -split-input-file -verify-diagnostics

// There are eight tiles.
func.func @no_such_tile() {
  // expected-error @below {{'tile.zero' op attribute 'tile' failed to satisfy constraint}}
  tile.zero 8
  return
}

// -----

// tile.configure (C1): there are 16 rows in a tile.
func.func @too_many_rows() {
  %rows = arith.constant 17 : index
  // expected-error @below {{'tile.configure' op (C1) tiles have 1 to 16 rows, not 17}}
  tile.configure %rows
  return
}

// -----

// tile.configure (C1): and at least one.
func.func @no_rows() {
  %rows = arith.constant 0 : index
  // expected-error @below {{'tile.configure' op (C1) tiles have 1 to 16 rows, not 0}}
  tile.configure %rows
  return
}

// -----

// tile.load (C1): as many indices as dimensions.
func.func @too_few_indices(%x: memref<?x32xbf16>, %i: index) {
  // expected-error @below {{'tile.load' op (C1) needs an index for each dimension of 'memref<?x32xbf16>', not 1}}
  tile.load 4, %x[%i] : memref<?x32xbf16>
  return
}

// -----

// tile.load (C2): a row of a tile is 64 bytes in one piece.
func.func @scattered(%x: memref<?x32xbf16, strided<[64, 2]>>, %i: index) {
  // expected-error @below {{'tile.load' op (C2) needs a contiguous last dimension, not 'memref<?x32xbf16, strided<[64, 2]>>'}}
  tile.load 4, %x[%i, %i] : memref<?x32xbf16, strided<[64, 2]>>
  return
}

// -----

// tile.load (C3): somebody says how far apart rows are.
func.func @no_stride(%x: memref<?xbf16>, %i: index) {
  // expected-error @below {{'tile.load' op (C3) needs a stride beside one dimension}}
  tile.load 4, %x[%i] : memref<?xbf16>
  return
}

// -----

// tile.store (C1): as many indices as dimensions.
func.func @store_too_few_indices(%x: memref<?x16xf32>, %i: index) {
  // expected-error @below {{'tile.store' op (C1) needs an index for each dimension of 'memref<?x16xf32>', not 1}}
  tile.store 0, %x[%i] : memref<?x16xf32>
  return
}

// -----

// tile.store (C2): a row of a tile is 64 bytes in one piece.
func.func @store_scattered(%x: memref<?x16xf32, strided<[64, 2]>>, %i: index) {
  // expected-error @below {{'tile.store' op (C2) needs a contiguous last dimension, not 'memref<?x16xf32, strided<[64, 2]>>'}}
  tile.store 0, %x[%i, %i] : memref<?x16xf32, strided<[64, 2]>>
  return
}

// -----

// tile.store (C3): somebody says how far apart rows are.
func.func @store_no_stride(%x: memref<?xf32>, %i: index) {
  // expected-error @below {{'tile.store' op (C3) needs a stride beside one dimension}}
  tile.store 0, %x[%i] : memref<?xf32>
  return
}

// -----

// tile.multiply (C1): sums are not where weights are.
func.func @sums_in_weights() {
  // expected-error @below {{'tile.multiply' op (C1) sums and input must be different tiles of 0 to 5, not 6 and 4}}
  tile.multiply 6, 4, 7 products <bf16>
  return
}

// -----

// tile.multiply (C1): nor in the input.
func.func @sums_in_input() {
  // expected-error @below {{'tile.multiply' op (C1) sums and input must be different tiles of 0 to 5, not 4 and 4}}
  tile.multiply 4, 4, 7 products <bf16>
  return
}

// -----

// tile.multiply (C2): only the last two tiles have the rows of weights.
func.func @weight_in_input() {
  // expected-error @below {{'tile.multiply' op (C2) weight must be tile 6 or 7, not 5}}
  tile.multiply 0, 4, 5 products <bf16>
  return
}
