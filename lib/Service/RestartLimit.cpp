//===- RestartLimit.cpp - How often ranks are started anew ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Service/RestartLimit.h"

using namespace sandwich;

Status RestartLimit::take(double now) {
  if (!most)
    return {};
  while (!taken.empty() && now - taken.front() >= window)
    taken.pop_front();
  if (taken.size() >= *most)
    return makeError("no restart is left of the ", *most, " in ", window,
                     " seconds");
  taken.push_back(now);
  return {};
}
