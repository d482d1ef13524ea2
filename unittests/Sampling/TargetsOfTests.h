//===- TargetsOfTests.h - Each kind of vectors in turn ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_SAMPLING_TARGETSOFTESTS_H
#define SANDWICH_UNITTESTS_SAMPLING_TARGETSOFTESTS_H

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace sandwich {

/// Calls `test` once for each kind of vectors that this CPU has.
template <typename Test> void forEachTarget(const Test &test) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    test();
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

} // namespace sandwich

#endif // SANDWICH_UNITTESTS_SAMPLING_TARGETSOFTESTS_H
