//===- StatusReport.h - What a server tells of itself -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_SERVER_STATUSREPORT_H
#define SANDWICH_LIB_SERVER_STATUSREPORT_H

#include "ModelRegistry.h"

namespace sandwich {

/// The object of `/status`: each model with its state, its plan, what runs and
/// waits, and totals since the beginning, for the page and for people.
Json describeStatus(const ModelRegistry &models, double uptimeSeconds,
                    bool draining);

} // namespace sandwich

#endif // SANDWICH_LIB_SERVER_STATUSREPORT_H
