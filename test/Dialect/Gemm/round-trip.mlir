// RUN: sandwich-opt %s --verify-roundtrip | FileCheck %s

lm.weight @down : tensor<64x96xbf16> layers 2 from ["layers.{}.down"]
lm.weight @gate_up : tensor<192x64xbf16> layers 2 from ["layers.{}.gate", "layers.{}.up"] interleave 32
lm.weight @qkv : tensor<128x64xbf16> layers 2 from ["layers.{}.q", "layers.{}.k", "layers.{}.v"]

// CHECK-LABEL: func @matmuls
func.func @matmuls(%x: tensor<?x64xbf16>, %residual: tensor<?x64xf32>, %table: tensor<?x32xf32>,
    %slots: tensor<?xi32>, %cache: !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>, %layer: index) -> tensor<?x64xf32> {
  // CHECK: gemm.matmul %{{.*}}, @qkv[%{{.*}}] epilogue(<rotate_append_kv>) rotary(%{{.*}} : tensor<?x32xf32>) cache({{.*}}) slots(%{{.*}} : tensor<?xi32>) :
  %q = gemm.matmul %x, @qkv[%layer] epilogue(<rotate_append_kv>) rotary(%table : tensor<?x32xf32>)
    cache(%cache : !lm.kv_cache<layers = 2, heads = 1, head_dim = 32, f16>)
    slots(%slots : tensor<?xi32>)
    : tensor<?x64xbf16> -> tensor<?x64xf32>
  // CHECK: gemm.matmul %{{.*}}, @gate_up[%{{.*}}] epilogue(<silu_mul>) : tensor<?x64xbf16> -> tensor<?x96xbf16>
  %h = gemm.matmul %x, @gate_up[%layer] epilogue(<silu_mul>) : tensor<?x64xbf16> -> tensor<?x96xbf16>
  // CHECK: gemm.matmul {{.*}} epilogue(<add_residual>) residual({{.*}}) schedules(<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 2, 1], prefetch = [8, 4096]>, ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 96], threads = [1, 2, 1], prefetch = [1, 0]>>)
  %y = gemm.matmul %h, @down[%layer] epilogue(<add_residual>) residual(%residual : tensor<?x64xf32>)
    schedules(<16 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 2, 1], prefetch = [8, 4096]>,
               ? : <micro_kernel = X86_AVX512_BF16_6x64, slice = [512, 64, 96], threads = [1, 2, 1], prefetch = [1, 0]>>)
    : tensor<?x96xbf16> -> tensor<?x64xf32>
  // CHECK: gemm.matmul {{.*}} epilogue(<add_residual>) residual({{.*}} : tensor<?x64xf32> among 4) :
  %z = gemm.matmul %h, @down[%layer] epilogue(<add_residual>) residual(%y : tensor<?x64xf32> among 4) : tensor<?x96xbf16> -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// CHECK-LABEL: func @walks
func.func @walks(%x: tensor<?x96xbf16>, %layer: index, %residual: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // What differs from the default follows; what does not is not printed.
  // CHECK: <4 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [2, 1, 2], prefetch = [8, 0], streams = 4>, 8 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0], hint = l2, order = columns_outer, stores = non_temporal>, ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0]>>)
  %y = gemm.matmul %x, @down[%layer] epilogue(<add_residual>) residual(%residual : tensor<?x64xf32>)
    schedules(<4 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [2, 1, 2], prefetch = [8, 0], streams = 4>,
               8 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0], hint = l2, order = columns_outer, stores = non_temporal>,
               ? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0], streams = 1, order = rows_outer>>)
    : tensor<?x96xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func @parts
func.func @parts(%x: memref<?x96xbf16>, %w: memref<2x48x1x1x32x2xbf16>, %y: memref<?x64xf32>, %sums: memref<4096xi8>, %p: memref<?xindex>, %layer: index, %i: index) {
  // CHECK: gemm.matmul %{{.*}}, @down[%{{.*}}] epilogue(<none>) tokens_between [1, 12] partial_sums(%{{.*}} : memref<4096xi8>) into
  gemm.matmul %x, @down[%layer] epilogue(<none>) tokens_between [1, 12] partial_sums(%sums : memref<4096xi8>) into %y : memref<?x96xbf16> into memref<?x64xf32>
  // CHECK: gemm.nest %{{.*}}, %{{.*}} rows(%{{.*}} to %{{.*}}) columns(%{{.*}} to %{{.*}}) k(%{{.*}} to %{{.*}}) schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0]>) unit 32 rows_between [0, 12] : memref<?x96xbf16>, memref<2x48x1x1x32x2xbf16> {
  // CHECK-NEXT: ^bb0(
  // CHECK-NEXT: gemm.epilogue %{{.*}} at(%{{.*}}, %{{.*}}) size(%{{.*}}, %{{.*}}) epilogue(<silu_mul>) interleave 16 non_temporal into
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0]>) unit 32 rows_between [0, 12]
      : memref<?x96xbf16>, memref<2x48x1x1x32x2xbf16> {
  ^bb0(%block: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
    gemm.epilogue %block at(%row, %column) size(%rows, %columns) epilogue(<silu_mul>) interleave 16 non_temporal into %y
      : memref<?x?xf32, strided<[?, 1], offset: ?>> into memref<?x64xf32>
  }
  // CHECK: gemm.matmul {{.*}} schedules(<? : {{.*}}>) partial_sums(%{{.*}} : memref<4096xi8>) parameters(%{{.*}} : memref<?xindex>) into
  gemm.matmul %x, @down[%layer] epilogue(<none>)
    schedules(<? : <micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 2], prefetch = [8, 0]>>)
    partial_sums(%sums : memref<4096xi8>) parameters(%p : memref<?xindex>) into %y : memref<?x96xbf16> into memref<?x64xf32>
  // CHECK: gemm.nest {{.*}} parameters(%{{.*}} : memref<?xindex>) schedule(
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i) parameters(%p : memref<?xindex>)
      schedule(<micro_kernel = X86_AVX512_BF16_12x32, slice = [12, 32, 96], threads = [1, 1, 1], prefetch = [8, 0]>) unit 32 rows_between [0, 12]
      : memref<?x96xbf16>, memref<2x48x1x1x32x2xbf16> {
  ^bb0(%block: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
  }
  return
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // CHECK: gemm.nest {{.*}} schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [1, 0], hint = l2, k_chunk = 128, input = packed, k_group = 128>) unit 32 {{.*}} stored <int4, group = 32, scale = f16>
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AVX512_VNNI_6x32, slice = [12, 64, 256], threads = [1, 1, 1], prefetch = [1, 0], hint = l2, k_chunk = 128, input = packed, k_group = 128>) unit 32 rows_between [1, 12]
      stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x256xf32>, memref<2x8x576xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
  }
  return
}

// CHECK-LABEL: func.func @copies_ahead
func.func @copies_ahead(%x: memref<?x256xbf16>, %w: memref<2x8x1088xi8>, %i: index) {
  %zero = arith.constant 0 : index
  %all = arith.constant 256 : index
  // CHECK: gemm.nest {{.*}} schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], k_chunk = 128, copy = ahead>) unit 32 {{.*}} stored <int8, group = 32, scale = f16>
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%zero to %all)
      schedule(<micro_kernel = X86_AMX_BF16_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], k_chunk = 128, copy = ahead>) unit 32 rows_between [1, 64]
      stored <int8, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x256xbf16>, memref<2x8x1088xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
  }
  return
}

// CHECK-LABEL: func.func @integer_tiles
func.func @integer_tiles(%x: memref<?x256xf32>, %w: memref<2x8x576xi8>, %i: index) {
  // CHECK: gemm.nest {{.*}} schedule(<micro_kernel = X86_AMX_INT8_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 256>)
  gemm.nest %x, %w rows(%i to %i) columns(%i to %i) k(%i to %i)
      schedule(<micro_kernel = X86_AMX_INT8_32x32, slice = [64, 32, 256], threads = [1, 1, 1], prefetch = [0, 0], input = packed, k_group = 256>) unit 32 rows_between [1, 64]
      stored <int4, group = 32, scale = f16> packing <panel = 32, tile = 32, k_step = 4, k_pack = 4>
      : memref<?x256xf32>, memref<2x8x576xi8> {
  ^finished(%sums: memref<?x?xf32, strided<[?, 1], offset: ?>>, %row: index, %rows: index, %column: index, %columns: index):
  }
  return
}
