/*===- Phases.c - Machine code of the tests' artifact ---------------------===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#include "sandwich/Runtime/PhaseABI.h"

#define EXPORTED __attribute__((visibility("default")))

/* That of makeManifest. */
#define PLAN                                                                   \
  {SANDWICH_PHASE_ABI_VERSION, 2,   32,           32, 4096, 4096,              \
   SANDWICH_ELEMENT_BF16,      100, 4096 + 12800, 1,  1,    100}

EXPORTED const SandwichPlan test_prefill_plan = PLAN;
EXPORTED const SandwichPlan test_decode_plan = PLAN;

/* A function without a plan. */
EXPORTED void test_planless(const SandwichStep *step, int32_t thread) {
  (void)step;
  (void)thread;
}

EXPORTED const SandwichSamplingPlan test_sampling_plan = {
    SANDWICH_PHASE_ABI_VERSION, 100};

EXPORTED void test_sampling(const SandwichSampling *sampling) {
  *sampling->token = 3;
}

/* For another vocabulary. */
EXPORTED const SandwichSamplingPlan test_other_sampling_plan = {
    SANDWICH_PHASE_ABI_VERSION, 101};

EXPORTED void test_other_sampling(const SandwichSampling *sampling) {
  *sampling->token = 100;
}

EXPORTED void test_prefill(const SandwichStep *step, int32_t thread) {
  step->logits[thread] = 1.0f;
}

EXPORTED void test_decode(const SandwichStep *step, int32_t thread) {
  step->logits[thread] = 2.0f;
}
