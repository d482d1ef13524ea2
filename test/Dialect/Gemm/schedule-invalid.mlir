// RUN: sandwich-opt %s -gemm-schedule="target=x86-64-avx512-bf16" -split-input-file -verify-diagnostics
