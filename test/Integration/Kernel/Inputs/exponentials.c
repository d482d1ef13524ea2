// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The powers of e of a row less its largest number, and their sum, for AVX-512:
// bytes are counted down, a polynomial, and a mask for what is left.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

static inline __m512 exponential(__m512 x) {
  const __m512 log2e = _mm512_set1_ps(0x1.715476p+0f);
  const __m512 minus_ln2 = _mm512_set1_ps(-0x1.62E43p-1f);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, log2e), 0);
  const __m512 t = _mm512_fmadd_ps(n, minus_ln2, x);
  __m512 p = _mm512_set1_ps(0x1.0F9F9Cp-7f);
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0x1.573A1Ap-5f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0x1.555A80p-3f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0x1.FFFDC6p-2f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0x1.FFFFF6p-1f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

void exponentials(size_t bytes, const float *input, const float *max,
                  float *output, float *sum) {
  const __m512 vmax = _mm512_set1_ps(*max);
  __m512 acc0 = _mm512_setzero_ps();
  __m512 acc1 = _mm512_setzero_ps();
  for (; bytes >= 32 * sizeof(float); bytes -= 32 * sizeof(float)) {
    const __m512 f0 = exponential(_mm512_sub_ps(_mm512_loadu_ps(input), vmax));
    const __m512 f1 =
        exponential(_mm512_sub_ps(_mm512_loadu_ps(input + 16), vmax));
    input += 32;
    _mm512_storeu_ps(output, f0);
    _mm512_storeu_ps(output + 16, f1);
    output += 32;
    acc0 = _mm512_add_ps(acc0, f0);
    acc1 = _mm512_add_ps(acc1, f1);
  }
  acc0 = _mm512_add_ps(acc0, acc1);
  for (; bytes >= 16 * sizeof(float); bytes -= 16 * sizeof(float)) {
    const __m512 f = exponential(_mm512_sub_ps(_mm512_loadu_ps(input), vmax));
    input = (const float *)((uintptr_t)input + 16 * sizeof(float));
    _mm512_storeu_ps(output, f);
    output += 16;
    acc0 = _mm512_add_ps(acc0, f);
  }
  if (__builtin_expect(!!(bytes != 0), 0)) {
    bytes >>= 2;
    const __mmask16 rest =
        _cvtu32_mask16((uint32_t)((UINT32_C(1) << bytes) - UINT32_C(1)));
    const __m512 f = exponential(
        _mm512_sub_ps(_mm512_maskz_loadu_ps(rest, input), vmax));
    _mm512_mask_storeu_ps(output, rest, f);
    acc0 = _mm512_mask_add_ps(acc0, rest, acc0, f);
  }
  *sum = _mm512_reduce_add_ps(acc0);
}
