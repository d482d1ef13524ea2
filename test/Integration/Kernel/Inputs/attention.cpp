// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Attention of one query to the tokens before it for AVX-512: blocks of keys, the
// softmax online, and sums that are scaled when a larger score turns up (Dao and
// others, FlashAttention; Milakov and Gimelshein for the softmax).
#include <cmath>
#include <cstdint>
#include <immintrin.h>
#include <limits>

template <int HEAD_DIM, int BLOCK_N>
static void attention_head(const float *__restrict__ q,
                           const float *__restrict__ keys,
                           const float *__restrict__ values,
                           float *__restrict__ out, int tokens, float scale) {
  static_assert(HEAD_DIM % 16 == 0, "whole vectors");
  constexpr int VECTORS = HEAD_DIM / 16;
  float scores[BLOCK_N];
  __m512 acc[VECTORS];
  for (int v = 0; v < VECTORS; ++v)
    acc[v] = _mm512_setzero_ps();
  float running_max = -std::numeric_limits<float>::infinity();
  float running_sum = 0.f;

  for (int n = 0; n < tokens; n += BLOCK_N) {
    const int size = tokens - n < BLOCK_N ? tokens - n : BLOCK_N;
    float block_max = running_max;
    for (int j = 0; j < size; ++j) {
      const float *key = keys + (n + j) * HEAD_DIM;
      __m512 dot = _mm512_setzero_ps();
      for (int v = 0; v < VECTORS; ++v)
        dot = _mm512_fmadd_ps(_mm512_loadu_ps(q + 16 * v),
                              _mm512_loadu_ps(key + 16 * v), dot);
      const float score = _mm512_reduce_add_ps(dot) * scale;
      scores[j] = score;
      block_max = score > block_max ? score : block_max;
    }
    // What was summed so far, less the larger number.
    const float factor = std::exp(running_max - block_max);
    running_sum *= factor;
    const __m512 vfactor = _mm512_set1_ps(factor);
    for (int v = 0; v < VECTORS; ++v)
      acc[v] = _mm512_mul_ps(acc[v], vfactor);
    for (int j = 0; j < size; ++j) {
      const float weight = std::exp(scores[j] - block_max);
      running_sum += weight;
      const float *value = values + (n + j) * HEAD_DIM;
      const __m512 vweight = _mm512_set1_ps(weight);
      for (int v = 0; v < VECTORS; ++v)
        acc[v] = _mm512_fmadd_ps(vweight, _mm512_loadu_ps(value + 16 * v),
                                 acc[v]);
    }
    running_max = block_max;
  }
  const __m512 inverse = _mm512_set1_ps(1.f / running_sum);
  for (int v = 0; v < VECTORS; ++v)
    _mm512_storeu_ps(out + 16 * v, _mm512_mul_ps(acc[v], inverse));
}

void attention(const float *q, const float *keys, const float *values,
               float *out, int tokens, float scale) {
  attention_head<64, 32>(q, keys, values, out, tokens, scale);
}
