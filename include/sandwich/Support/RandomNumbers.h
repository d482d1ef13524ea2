//===- RandomNumbers.h - The same on every machine --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_SUPPORT_RANDOMNUMBERS_H
#define SANDWICH_SUPPORT_RANDOMNUMBERS_H

#include <cmath>
#include <numbers>
#include <random>

namespace sandwich {

// The distributions of the standard library differ between libraries.

/// In (0, 1].
inline double drawUniform(std::mt19937_64 &generator) {
  return (static_cast<double>(generator() >> 11) + 1) * 0x1p-53;
}

/// Normal, of mean 0 and deviation 1 (Box and Muller 1958).
inline double drawNormal(std::mt19937_64 &generator) {
  const double radius = std::sqrt(-2 * std::log(drawUniform(generator)));
  return radius * std::cos(2 * std::numbers::pi * drawUniform(generator));
}

/// Exponential, of mean 1.
inline double drawExponential(std::mt19937_64 &generator) {
  return -std::log(drawUniform(generator));
}

/// Gamma, of this shape, above 0, and scale 1, so that its mean is the shape
/// (Marsaglia and Tsang 2000).
inline double drawGamma(std::mt19937_64 &generator, double shape) {
  if (shape < 1)
    return drawGamma(generator, shape + 1) *
           std::pow(drawUniform(generator), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = drawNormal(generator);
    const double root = 1 + c * normal;
    if (root <= 0)
      continue;
    const double cube = root * root * root;
    if (std::log(drawUniform(generator)) <
        normal * normal / 2 + d - d * cube + d * std::log(cube))
      return d * cube;
  }
}

} // namespace sandwich

#endif // SANDWICH_SUPPORT_RANDOMNUMBERS_H
