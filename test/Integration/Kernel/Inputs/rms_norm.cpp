// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A norm of rows as C++ programmers write it: vectors are a class with operators
// and loops over them a template that takes a lambda.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <immintrin.h>
#include <type_traits>
#include <utility>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition))                                                          \
      std::abort();                                                            \
  } while (0)

namespace vectors {
template <typename T, T... indices, typename F>
inline void unrollItems(std::integer_sequence<T, indices...>, F &&f) {
  (f(std::integral_constant<T, indices>{}), ...);
}
template <typename T, T count, typename F> inline void unroll(F &&f) {
  unrollItems(std::make_integer_sequence<T, count>{}, std::forward<F>(f));
}

template <typename T> struct Base {
  static constexpr int size() { return T::lanes; }
};

struct Floats16 : public Base<Floats16> {
  constexpr static int lanes = 16;
  union Parts {
    __m256 parts[2];
    float values[lanes];
  };
  __m256 low, high;

  explicit Floats16(float v) : low(_mm256_set1_ps(v)), high(_mm256_set1_ps(v)) {}
  explicit Floats16(const float *p)
      : low(_mm256_loadu_ps(p)), high(_mm256_loadu_ps(p + 8)) {}
  explicit Floats16(__m256 a, __m256 b) : low(a), high(b) {}

  Floats16 operator*(const Floats16 &b) const {
    return Floats16(_mm256_mul_ps(low, b.low), _mm256_mul_ps(high, b.high));
  }
  Floats16 operator+(const Floats16 &b) const {
    return Floats16(_mm256_add_ps(low, b.low), _mm256_add_ps(high, b.high));
  }
  float sum() const {
    Parts all;
    all.parts[0] = low;
    all.parts[1] = high;
    float result = 0;
    unroll<int, lanes>([&result, &all](int i) { result += all.values[i]; });
    return result;
  }
  void save(float *p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
};
} // namespace vectors

template <typename scalar_t>
void rms_norm_impl(scalar_t *__restrict__ out, const scalar_t *__restrict__ input,
                   const scalar_t *__restrict__ weight, const float epsilon,
                   const int tokens, const int hidden) {
  using Vector = vectors::Floats16;
  constexpr int lanes = Vector::size();
  CHECK(hidden % lanes == 0);
  for (int i = 0; i < tokens; ++i) {
    Vector variance(0.0f);
    auto inputRow = input + i * hidden;
    auto outputRow = out + i * hidden;
    for (int j = 0; j < hidden; j += lanes) {
      Vector x(inputRow + j);
      variance = variance + x * x;
    }
    float scale = 1.0f / sqrtf(variance.sum() / (float)hidden + epsilon);
    Vector scales(scale);
    for (int j = 0; j < hidden; j += lanes) {
      Vector x(inputRow + j);
      Vector w(weight + j);
      Vector y = x * scales * w;
      y.save(outputRow + j);
    }
  }
}

void rms_norm(float *out, const float *input, const float *weight, float epsilon,
              int tokens, int hidden) {
  rms_norm_impl<float>(out, input, weight, epsilon, tokens, hidden);
}
