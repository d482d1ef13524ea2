//===- DeviceCostReport.h - Costs for people and programs -------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_DEVICECOSTREPORT_H
#define SANDWICH_DEVICES_DEVICECOSTREPORT_H

#include "sandwich/Devices/DeviceCost.h"
#include "sandwich/Support/Json.h"

#include <string>

namespace sandwich {

/// In lines of text: what an instance can do, and what is needed by the peak
/// and by the average, with and without overflow.
std::string describeCost(const CostDescription &description,
                         const DeviceCost &cost);

/// The same as an object; shares are of 1.
Json costToJson(const CostDescription &description, const DeviceCost &cost);

/// An SVG document that needs nothing else: the queries of the day, beside what
/// the devices of the average can do with and without overflow, and bars of the
/// four costs.
std::string drawCost(const CostDescription &description,
                     const DeviceCost &cost);

} // namespace sandwich

#endif // SANDWICH_DEVICES_DEVICECOSTREPORT_H
