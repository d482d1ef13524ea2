// RUN: sandwich-opt %s --block-to-vector --canonicalize --cse | FileCheck %s
// RUN: sandwich-opt %s --block-to-vector=instructions=X86_AVX512_BF16 --canonicalize --cse | FileCheck %s --check-prefix=PAIRS
// RUN: sandwich-opt %s --block-to-vector=instructions=X86_AMX_BF16 --canonicalize --cse | FileCheck %s --check-prefix=TILES
// RUN: sandwich-opt %s --block-to-vector="check-bounds instructions=X86_AMX_BF16" --canonicalize --cse | FileCheck %s --check-prefix=CHECKED
// RUN: not sandwich-opt %s --block-to-vector=instructions=X86_AVX512_VNNI 2>&1 | FileCheck %s --check-prefix=ISA
// ISA: error: 'X86_AVX512_VNNI' multiplies no matrices of bf16 in kernels: X86_AVX512_BF16 and X86_AMX_BF16 do

#block4 = #block.sizes<4, 64>
#weights = #block.sizes<32, 2, 32>
#sums = #block.sizes<4, 32>

// Numbers of one are multiplied with rows of the other; of pairs every other number
// is widened by itself.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:.*]]: memref<4x64xbf16>, %[[W:.*]]: memref<32x2x32xbf16>, %[[Y:.*]]: memref<4x32xf32>)
// CHECK: %{{.*}} = memref.alloca() {{.*}} : memref<32x32x2xbf16>

// CHECK: vector.store %{{.*}} : memref<32x64xbf16, strided<[64, 1]>>, vector<64xbf16>
// CHECK: vector.load %{{.*}} : memref<32x64xbf16, strided<[64, 1]>>, vector<64xbf16>
// CHECK: arith.shli
// CHECK: %[[NUMBER:.*]] = memref.load %[[X]][%c0, %c0] : memref<4x64xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[NUMBER]] : bf16 to f32
// CHECK: vector.broadcast %[[WIDE]] : f32 to vector<32xf32>
// CHECK-COUNT-256: math.fma %{{.*}} : vector<32xf32>
// CHECK-NOT: math.fma
// CHECK: return

// Pairs of one are repeated, and multiplied with pairs as they lie: two registers
// of sums for each row.
// PAIRS-LABEL: func.func @product(
// PAIRS-SAME: %[[X:.*]]: memref<4x64xbf16>, %[[W:.*]]: memref<32x2x32xbf16>, %[[Y:.*]]: memref<4x32xf32>)
// PAIRS: %[[WEIGHTS:.*]] = vector.load %{{.*}} : memref<32x64xbf16, strided<[64, 1]>>, vector<64xbf16>
// PAIRS: %[[TWO:.*]] = vector.load %[[X]][%c0, %c0] : memref<4x64xbf16>, vector<2xbf16>
// PAIRS: vector.bitcast %[[TWO]] : vector<2xbf16> to vector<1xi32>
// PAIRS: vector.extract_strided_slice %[[WEIGHTS]] {offsets = [0], sizes = [32], strides = [1]}
// PAIRS: x86vector.avx512.dot
// PAIRS: vector.extract_strided_slice %[[WEIGHTS]] {offsets = [32], sizes = [32], strides = [1]}
// PAIRS-COUNT-255: x86vector.avx512.dot
// PAIRS-NOT: x86vector.avx512.dot
// PAIRS: return

// All in memory, from where tiles are loaded, and to which sums go back.
// TILES-LABEL: func.func @product(
// TILES-SAME: %[[X:.*]]: memref<4x64xbf16>, %[[W:.*]]: memref<32x2x32xbf16>, %[[Y:.*]]: memref<4x32xf32>)
// TILES: vector.store %{{.*}} : memref<32x64xbf16, strided<[64, 1]>>, vector<64xbf16>
// TILES: tile.configure %c4
// TILES-NEXT: tile.load 0, %[[Y]][%c0, %c0] stride %c32
// TILES-NEXT: tile.load 1, %[[Y]][%c0, %c16] stride %c32
// TILES-NEXT: tile.load 4, %[[X]][%c0, %c0] stride %c64
// TILES-NEXT: tile.load 6, %{{.*}}[%c0, %c0] stride %c64 : memref<32x64xbf16, strided<[64, 1]>>
// TILES-NEXT: tile.multiply 0, 4, 6 products <bf16>
// TILES-NEXT: tile.load 7, %{{.*}}[%c0, %c32] stride %c64 : memref<32x64xbf16, strided<[64, 1]>>
// TILES-NEXT: tile.multiply 1, 4, 7 products <bf16>
// TILES-NEXT: tile.load 4, %[[X]][%c0, %c32] stride %c64
// TILES: tile.multiply 1, 4, 7 products <bf16>
// TILES-NEXT: tile.store 0, %[[Y]][%c0, %c0] stride %c32
// TILES-NEXT: tile.store 1, %[[Y]][%c0, %c16] stride %c32
// TILES-NEXT: return

// What may be outside is read by itself, and goes to tiles through memory.
// CHECKED-LABEL: func.func @product(
// CHECKED: tile.configure
// CHECKED: tile.load 4, %[[OWN:.*]][%c0, %c0] stride %c64 : memref<4x64xbf16>
// CHECKED: tile.store 0, %{{.*}} : memref<4x32xf32>
func.func @product(%x: memref<4x64xbf16> {block.sizes = #block4}, %w: memref<32x2x32xbf16> {block.sizes = #weights},
                   %y: memref<4x32xf32> {block.sizes = #sums})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %i = block.range %zero : !block.range<4>
  %k = block.range %zero : !block.range<64>
  %p = block.range %zero : !block.range<32>
  %two = block.range %zero : !block.range<2>
  %n = block.range %zero : !block.range<32>
  %packed = block.scratch <32, 2, 32> pairs : memref<32x2x32xbf16>
  %given = block.load %w[%p, %two, %n] : memref<32x2x32xbf16>, !block.range<32>, !block.range<2>, !block.range<32> -> tensor<32x2x32xbf16, #weights>
  block.store %given, %packed[%p, %two, %n] : tensor<32x2x32xbf16, #weights>, memref<32x2x32xbf16>, !block.range<32>, !block.range<2>, !block.range<32>
  %before = block.load %y[%i, %n] : memref<4x32xf32>, !block.range<4>, !block.range<32> -> tensor<4x32xf32, #sums>
  %inputs = block.load %x[%i, %k] : memref<4x64xbf16>, !block.range<4>, !block.range<64> -> tensor<4x64xbf16, #block4>
  %weights = block.load %packed[%p, %two, %n] : memref<32x2x32xbf16>, !block.range<32>, !block.range<2>, !block.range<32> -> tensor<32x2x32xbf16, #weights>
  %sums = block.matmul %inputs, %weights, %before : tensor<4x64xbf16, #block4>, tensor<32x2x32xbf16, #weights> -> tensor<4x32xf32, #sums>
  block.store %sums, %y[%i, %n] : tensor<4x32xf32, #sums>, memref<4x32xf32>, !block.range<4>, !block.range<32>
  return
}

// What is written in between is not read where it was.
// PAIRS-LABEL: func.func @written(
// PAIRS: vector.load %{{.*}} : memref<4x64xbf16>, vector<64xbf16>
// PAIRS: vector.store %{{.*}} : memref<4x64xbf16>, vector<64xbf16>
// PAIRS: x86vector.avx512.dot
// Sums that a loop carries stay in tiles; what is done with them behind it takes
// vectors.
// TILES-LABEL: func.func @written(
// TILES: tile.configure %c4
// TILES-NEXT: tile.zero 0
// TILES-NEXT: tile.zero 1
// TILES-NEXT: scf.for
// TILES-NOT: tile.zero
// TILES: tile.multiply 1, 4, 7
// TILES-NOT: tile.store
// TILES: }
// TILES-NEXT: tile.store 0, %[[SUMS:.*]][%c0, %c0]
// TILES-NEXT: tile.store 1, %[[SUMS]][%c0, %c16]
// TILES-NEXT: vector.load %[[SUMS]][%c0, %c0]
// TILES: arith.mulf
func.func @written(%x: memref<4x64xbf16> {block.sizes = #block4}, %w: memref<64x32xbf16> {block.sizes = #block.sizes<64, 32>},
                   %y: memref<4x32xf32> {block.sizes = #sums}, %turns: index)
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %nothing = arith.constant 0.0 : bf16
  %i = block.range %zero : !block.range<4>
  %k = block.range %zero : !block.range<64>
  %n = block.range %zero : !block.range<32>
  %start = block.splat %none : f32 -> tensor<4x32xf32, #sums>
  %zeros = block.splat %nothing : bf16 -> tensor<4x64xbf16, #block4>
  %sums = scf.for %turn = %zero to %turns step %one iter_args(%carried = %start) -> (tensor<4x32xf32, #sums>) {
    %inputs = block.load %x[%i, %k] : memref<4x64xbf16>, !block.range<4>, !block.range<64> -> tensor<4x64xbf16, #block4>
    block.store %zeros, %x[%i, %k] : tensor<4x64xbf16, #block4>, memref<4x64xbf16>, !block.range<4>, !block.range<64>
    %weights = block.load %w[%k, %n] : memref<64x32xbf16>, !block.range<64>, !block.range<32> -> tensor<64x32xbf16, #block.sizes<64, 32>>
    %next = block.matmul %inputs, %weights, %carried : tensor<4x64xbf16, #block4>, tensor<64x32xbf16, #block.sizes<64, 32>> -> tensor<4x32xf32, #sums>
    scf.yield %next : tensor<4x32xf32, #sums>
  }
  %twice = arith.mulf %sums, %sums : tensor<4x32xf32, #sums>
  block.store %twice, %y[%i, %n] : tensor<4x32xf32, #sums>, memref<4x32xf32>, !block.range<4>, !block.range<32>
  return
}

// Sizes that no instruction has.
// PAIRS-LABEL: func.func @odd(
// PAIRS-COUNT-6: math.fma %{{.*}} : vector<5xf32>
// PAIRS: return
// TILES-LABEL: func.func @odd(
// TILES-COUNT-6: math.fma %{{.*}} : vector<5xf32>
// TILES: return
func.func @odd(%x: memref<2x3xbf16> {block.sizes = #block.sizes<2, 3>}, %w: memref<3x5xbf16> {block.sizes = #block.sizes<3, 5>},
               %y: memref<2x5xf32> {block.sizes = #block.sizes<2, 5>})
    attributes {block.parameters = #block.parameters<>} {
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %i = block.range %zero : !block.range<2>
  %k = block.range %zero : !block.range<3>
  %n = block.range %zero : !block.range<5>
  %start = block.splat %none : f32 -> tensor<2x5xf32, #block.sizes<2, 5>>
  %inputs = block.load %x[%i, %k] : memref<2x3xbf16>, !block.range<2>, !block.range<3> -> tensor<2x3xbf16, #block.sizes<2, 3>>
  %weights = block.load %w[%k, %n] : memref<3x5xbf16>, !block.range<3>, !block.range<5> -> tensor<3x5xbf16, #block.sizes<3, 5>>
  %sums = block.matmul %inputs, %weights, %start : tensor<2x3xbf16, #block.sizes<2, 3>>, tensor<3x5xbf16, #block.sizes<3, 5>> -> tensor<2x5xf32, #block.sizes<2, 5>>
  block.store %sums, %y[%i, %n] : tensor<2x5xf32, #block.sizes<2, 5>>, memref<2x5xf32>, !block.range<2>, !block.range<5>
  return
}
