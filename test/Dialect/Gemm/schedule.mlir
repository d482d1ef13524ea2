// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx2 threads=2" | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512 threads=2" | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16 threads=2" | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-amx threads=3" | FileCheck %s --check-prefixes=CHECK,AMX
// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-amx" -gemm-schedule="target=x86-64-avx2" | FileCheck %s --check-prefix=TWICE

lm.weight @norm : tensor<64xf32> from ["norm"]
lm.weight @w : tensor<96x64xbf16> from ["w"]
lm.weight @w48 : tensor<96x48xbf16> from ["w48"]
lm.weight @narrow : tensor<48x64xbf16> from ["narrow"]
lm.weight @w31 : tensor<96x31xbf16> from ["w31"]
lm.weight @w_f32 : tensor<96x64xf32> from ["w"]
lm.weight @qkv : tensor<144x64xbf16> from ["q", "k", "v"]
lm.weight @gate_up : tensor<128x64xbf16> from ["gate", "up"] interleave 16

// The table ascends from one strip of rows to the whole step; the producer of
// an input that micro-kernels read as bf16 rounds it.

// CHECK-LABEL: func @matmul
func.func @matmul(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // AVX2: lm.rms_norm {{.*}} -> tensor<?x64xf32>
  // AVX2: schedules(<2 : <micro_kernel = X86_AVX2_F32_2x48, slice = [2, 96, 64], threads = [1, 2, 1], prefetch = [0, 8192]>,
  // AVX2-SAME: 6 : <micro_kernel = X86_AVX2_F32_6x16, slice = [6, 32, 64], threads = [1, 2, 1], prefetch = [2, 8192]>,
  // AVX2-SAME: ? : <micro_kernel = X86_AVX2_F32_6x16, slice = [192, 32, 64], threads = [1, 2, 1], prefetch = [1, 0]>>
  // AVX2-SAME: tensor<?x64xf32> -> tensor<?x96xf32>
  // Three panels are not even for two threads, so the rows are split once there
  // are many.
  // AVX512: lm.rms_norm {{.*}} -> tensor<?x64xf32>
  // AVX512: schedules(<12 : <micro_kernel = X86_AVX512_F32_12x32,
  // AVX512-SAME: <micro_kernel = X86_AVX512_F32_12x32,
  // AVX512-SAME: ? : <micro_kernel = X86_AVX512_F32_
  // AVX512-SAME: tensor<?x64xf32> -> tensor<?x96xf32>
  // BF16: lm.rms_norm {{.*}} -> tensor<?x64xbf16>
  // BF16: schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32,
  // BF16-SAME: tensor<?x64xbf16> -> tensor<?x96xf32>
  // AMX: lm.rms_norm {{.*}} -> tensor<?x64xbf16>
  // AMX: schedules(<32 : <micro_kernel = X86_AMX_BF16_32x32, slice = [32, 32, 64], threads = [1, 3, 1], prefetch = [8, 3072], hint = l2, streamed = both>
  // AMX-SAME: ? : <micro_kernel = X86_AMX_BF16_32x32, slice = [256, 32, 64], threads = [1, 3, 1], prefetch = [2, 0], streams = 8, hint = l2, streamed = input>
  // AMX-SAME: tensor<?x64xbf16> -> tensor<?x96xf32>
  // Schedules that are there stay.
  // TWICE-LABEL: func @matmul
  // TWICE: schedules(<16 : <micro_kernel = X86_AMX_BF16_16x64,
  %n = lm.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32> -> tensor<?x64xf32>
  %y = gemm.matmul %n, @w epilogue(<none>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// Where K is no multiple of an ISA's step, the next best one multiplies it: AMX
// needs 32, AVX512_BF16 needs 2.

// CHECK-LABEL: func @odd_k
func.func @odd_k(%x: tensor<?x64xf32>, %z: tensor<?x31xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  // BF16: schedules(<12 : <micro_kernel = X86_AVX512_F32_12x32, slice = [{{[0-9]+}}, 32, 31],
  // AMX: schedules(<12 : <micro_kernel = X86_AVX512_F32_12x32, slice = [{{[0-9]+}}, 32, 31],
  %y = gemm.matmul %z, @w31 epilogue(<none>) : tensor<?x31xf32> -> tensor<?x96xf32>
  // BF16: schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [{{[0-9]+}}, 32, 48],
  // AMX: schedules(<12 : <micro_kernel = X86_AVX512_BF16_12x32, slice = [{{[0-9]+}}, 32, 48],
  %h = gemm.matmul %x, @narrow epilogue(<none>) schedules(<? : <micro_kernel = X86_AVX512_F32_6x32, slice = [6, 32, 64], threads = [1, 1, 1], prefetch = [0, 0]>>)
    : tensor<?x64xf32> -> tensor<?x48xf32>
  %n = gemm.matmul %h, @w48 epilogue(<none>) : tensor<?x48xf32> -> tensor<?x96xf32>
  return %y, %n : tensor<?x96xf32>, tensor<?x96xf32>
}

// f32 weights are multiplied in f32 on every CPU.

// CHECK-LABEL: func @f32_weights
func.func @f32_weights(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  // AVX2: micro_kernel = X86_AVX2_F32_2x48
  // AVX2-SAME: micro_kernel = X86_AVX2_F32_6x16
  // AVX512: micro_kernel = X86_AVX512_F32_12x32
  // BF16: micro_kernel = X86_AVX512_F32_12x32
  // AMX: micro_kernel = X86_AVX512_F32_12x32
  %y = gemm.matmul %x, @w_f32 epilogue(<none>) : tensor<?x64xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// Columns that the epilogue needs together are in one slice: a head of 48
// channels needs three panels of 32 with another head, gate and up one panel.

// CHECK-LABEL: func @units
func.func @units(%x: tensor<?x64xf32>, %table: tensor<?x48xf32>, %slots: tensor<?xi32>,
    %cache: !lm.kv_cache<layers = 1, heads = 1, head_dim = 48, f16>) -> (tensor<?x48xf32>, tensor<?x64xf32>) {
  %n = lm.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32> -> tensor<?x64xf32>
  %m = lm.rms_norm %x, @norm epsilon 1.0e-05 : tensor<?x64xf32> -> tensor<?x64xf32>
  // BF16: epilogue(<rotate_append_kv>){{.*}} slice = [12, 96, 64]
  %q = gemm.matmul %n, @qkv epilogue(<rotate_append_kv>) rotary(%table : tensor<?x48xf32>)
    cache(%cache : !lm.kv_cache<layers = 1, heads = 1, head_dim = 48, f16>)
    slots(%slots : tensor<?xi32>)
    : tensor<?x64xf32> -> tensor<?x48xf32>
  // BF16: epilogue(<silu_mul>){{.*}} slice = [12, 32, 64]
  %h = gemm.matmul %m, @gate_up epilogue(<silu_mul>) : tensor<?x64xf32> -> tensor<?x64xf32>
  return %q, %h : tensor<?x48xf32>, tensor<?x64xf32>
}
