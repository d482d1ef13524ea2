//===- Detection.h - What each architecture's CPUs tell -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `CpuFeatures.h` tells of the host; each architecture's file has its
/// own.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_TARGET_DETECTION_H
#define SANDWICH_LIB_TARGET_DETECTION_H

#include "sandwich/Target/CpuFeatures.h"

#include <cstdint>
#include <string>

namespace sandwich::detection {

/// As `CpuFeatures::host`.
CpuFeatures features();

/// As `hostScalableVectorBytes`.
int64_t scalableVectorBytes();

/// What the CPU itself tells of its caches.
CacheSizes caches();

/// As `hostCpuModel`.
std::string cpuModel();

/// As `requestTileState`, which asks once.
Status askForTileState();

/// What the words AT_HWCAP and AT_HWCAP2 of Linux on aarch64 tell.
CpuFeatures featuresOfAArch64(uint64_t hwcap, uint64_t hwcap2);

/// The core that the register MIDR_EL1 names; empty for others.
std::string coreOfAArch64(uint64_t mainId);

} // namespace sandwich::detection

#endif // SANDWICH_LIB_TARGET_DETECTION_H
