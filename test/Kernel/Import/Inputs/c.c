// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// C as it stands: macros, structures, what is counted in bytes, and comments.
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  uint16_t d;
  int8_t qs[4];
} block;
static const int8_t levels[4] = {0, 1, 4, 9};

// Functions that are called come before those that call them.
static inline int next(int i) { return i + 1; }

void sum(const block *restrict b, float *restrict out, size_t bytes) {
  // An argument that is written to is a variable.
  int i = 0;
  for (; bytes >= sizeof(block); bytes -= sizeof(block)) {
    *out++ = levels[b[i].qs[0] & 3];
    i = next(i);
    if (__builtin_expect(i > 100, 0))
      break;
  }
  // A loop that runs once is none.
  do {
    uint32_t bits;
    memcpy(&bits, out, sizeof(bits));
    *out = expf(*out);
  } while (0);
  _mm256_storeu_ps(out, _mm256_loadu_ps(out) + _mm256_set1_ps(1.0f));
  _mm_prefetch((const char *)b, _MM_HINT_T0);
}

// What stands before a statement goes with it.
float half(float x) {
  // Halves.
  return x / 2;
}

// Operands have the types that C converts them to; truths are integers there.
int truths(int8_t a, unsigned b, const float *p) {
  return a < b && p[0] > 1.0f;
}
