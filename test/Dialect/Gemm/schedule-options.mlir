// RUN: not sandwich-opt %s -gemm-schedule="target=m68k" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not sandwich-opt %s -gemm-schedule="target=x86-64-avx2 threads=0" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not sandwich-opt %s -gemm-schedule="target=x86-64-avx2 threads=1025" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not sandwich-opt %s -gemm-schedule="target=x86-64-avx2 activations=int7" 2>&1 | FileCheck %s --check-prefix=ACTIVATIONS

// Options are checked before anything is scheduled.

// TARGET: error: unknown target 'm68k'; known are x86-64-avx2, x86-64-avx-vnni, x86-64-avx512, x86-64-avx512-vnni, x86-64-avx512-bf16, x86-64-amx, aarch64-neon, aarch64-neon-dotprod, aarch64-neon-i8mm, aarch64-sve, aarch64-sve-bf16, aarch64-neon-bf16, host
// FEW: error: threads must be between 1 and 1024
// MANY: error: threads must be between 1 and 1024
// ACTIVATIONS: error: activations must be float or int8, not 'int7'
module {}
