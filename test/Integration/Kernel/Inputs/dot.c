// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A dot product as C programmers write it for AVX2: a macro, four sums, what is
// left one by one, and a total in double.
#include <assert.h>
#include <immintrin.h>
#include <stddef.h>

#define STEP 32
#define SUM(total, v)                                                          \
  do {                                                                         \
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v),                        \
                             _mm256_extractf128_ps(v, 1));                     \
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));                        \
    half = _mm_add_ss(half, _mm_movehdup_ps(half));                            \
    total += (double)_mm_cvtss_f32(half);                                      \
  } while (0)

void dot(int n, float *restrict s, const float *restrict x,
         const float *restrict y) {
  assert(n >= 0);
  double total = 0.0;
  const int np = n & ~(STEP - 1);
  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int i = 0; i < np; i += STEP) {
    // Each sum has its own chain.
    for (int j = 0; j < 4; j++) {
      const __m256 ax = _mm256_loadu_ps(x + i + j * 8);
      const __m256 ay = _mm256_loadu_ps(y + i + j * 8);
      sum[j] = _mm256_fmadd_ps(ax, ay, sum[j]);
    }
  }
  sum[0] = _mm256_add_ps(sum[0], sum[2]);
  sum[1] = _mm256_add_ps(sum[1], sum[3]);
  sum[0] = _mm256_add_ps(sum[0], sum[1]);
  SUM(total, sum[0]);
  for (int i = np; i < n; ++i) {
    total += (double)(x[i] * y[i]);
  }
  *s = (float)total;
}
