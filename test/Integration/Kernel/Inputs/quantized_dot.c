// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A dot product of blocks of numbers of 4 and of 8 bits for AVX2: scales are
// floats of 16 bits, and integers are multiplied without signs.
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 32
typedef struct {
  uint16_t d;
  uint8_t qs[BLOCK / 2];
} block4;
typedef struct {
  uint16_t d;
  int8_t qs[BLOCK];
} block8;
_Static_assert(sizeof(block4) == 18, "blocks have no holes");

static inline float toFloat(uint16_t half) {
  // As a CPU without such floats does it.
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
  const uint32_t digits = (uint32_t)(half & 0x7fff) << 13;
  const uint32_t scaled = digits + ((half & 0x7c00) == 0x7c00 ? 0x70000000u : 0);
  float value;
  memcpy(&value, &scaled, sizeof(value));
  value *= 0x1.0p112f;
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  bits |= sign;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline __m256i unpack(const uint8_t *packed) {
  const __m128i both = _mm_loadu_si128((const __m128i *)packed);
  const __m256i bytes = _mm256_insertf128_si256(
      _mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
  return _mm256_and_si256(_mm256_set1_epi8(0xF), bytes);
}

static inline __m256 sums(const __m256i x, const __m256i y) {
  const __m256i ax = _mm256_sign_epi8(x, x);
  const __m256i sy = _mm256_sign_epi8(y, x);
  const __m256i pairs = _mm256_maddubs_epi16(ax, sy);
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(_mm256_set1_epi16(1), pairs));
}

void dot_4_8(int n, float *result, const void *vx, const void *vy) {
  const block4 *x = vx;
  const block8 *y = vy;
  const int blocks = n / BLOCK;
  __m256 acc = _mm256_setzero_ps();
  for (int i = 0; i < blocks; ++i) {
    const __m256 d = _mm256_set1_ps(toFloat(x[i].d) * toFloat(y[i].d));
    const __m256i qx =
        _mm256_sub_epi8(unpack(x[i].qs), _mm256_set1_epi8(8));
    const __m256i qy = _mm256_loadu_si256((const __m256i *)y[i].qs);
    acc = _mm256_fmadd_ps(d, sums(qx, qy), acc);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, acc);
  float total = 0;
  for (int i = 0; i < 8; ++i)
    total += lanes[i];
  *result = total;
}
