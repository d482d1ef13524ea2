/*===- Phases.c - Machine code of the tests' artifact ---------------------===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#include "sandwich/Runtime/PhaseABI.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void test_prefill(const SandwichStep *step, int32_t thread) {
  step->logits[thread] = 1.0f;
}

EXPORTED void test_decode(const SandwichStep *step, int32_t thread) {
  step->logits[thread] = 2.0f;
}
