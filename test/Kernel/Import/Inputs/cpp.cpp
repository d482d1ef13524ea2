// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// C++: templates, classes, references, lambdas and what is known.
#include <algorithm>
#include <immintrin.h>

struct Wide {
  __m512 lanes;
  explicit Wide(float x) : lanes(_mm512_set1_ps(x)) {}
  Wide operator+(const Wide &other) const {
    Wide sum(0.0f);
    sum.lanes = _mm512_add_ps(lanes, other.lanes);
    return sum;
  }
};

void add(Wide &to, int) {}
// A structure that is returned is written to where the caller says.

template <int N> float scaled(float x) {
  float sum = 0;
  for (int i = 0; i < N; ++i)
    sum += x;
  return sum;
}

template <typename F> void twice(F &&f) {
  f(0);
  f(1);
}

float rows(const float *x, int n) {
  constexpr int BLOCK = 16;
  float most = x[0];
  // A function that takes a lambda is inlined, and so is that.
  twice([&](int i) { most = std::max(most, x[i * BLOCK]); });
  if constexpr (BLOCK > 32)
    most = 0;
  return scaled<4>(most);
}

void add(Wide &to, float x) { to = to + Wide(x); }

namespace nested {
float inner(float x) { return x; }
} // namespace nested
// Names of what is known are kept.
