// RUN: sandwich-opt %s -allow-unregistered-dialect -test-emulate-amx -split-input-file -verify-diagnostics

// Tiles of bf16 and f32 are all that programs have.
func.func @i8(%buffer: memref<?x?xi8>, %i: index) {
  // expected-error @below {{failed to legalize operation 'amx.tile_load'}}
  %tile = amx.tile_load %buffer[%i, %i] : memref<?x?xi8> into !amx.tile<16x64xi8>
  amx.tile_store %buffer[%i, %i], %tile : memref<?x?xi8>, !amx.tile<16x64xi8>
  return
}

// -----

// Zeros of another type are no exception.
func.func @f16() {
  // expected-error @below {{failed to legalize operation 'amx.tile_zero'}}
  %tile = amx.tile_zero : !amx.tile<16x32xf16>
  "test.use"(%tile) : (!amx.tile<16x32xf16>) -> ()
  return
}

// -----

// Nor are products of them.
func.func @f16_product(%a: !amx.tile<16x32xf16>) {
  %sums = amx.tile_zero : !amx.tile<16x16xf32>
  // expected-error @below {{failed to legalize operation 'amx.tile_mulf'}}
  %product = amx.tile_mulf %a, %a, %sums : !amx.tile<16x32xf16>, !amx.tile<16x32xf16>, !amx.tile<16x16xf32>
  return
}

// -----

// A multiplication keeps its tiles on the stack of a function.
%a = amx.tile_zero : !amx.tile<16x32xbf16>
%sums = amx.tile_zero : !amx.tile<16x16xf32>
// expected-error @below {{failed to legalize operation 'amx.tile_mulf'}}
%product = amx.tile_mulf %a, %a, %sums : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
