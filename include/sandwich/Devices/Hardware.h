//===- Hardware.h - Accelerators that are there -----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_DEVICES_HARDWARE_H
#define SANDWICH_DEVICES_HARDWARE_H

#include <string>
#include <vector>

namespace sandwich {

/// An accelerator that the system has a driver for.
struct FoundAccelerator {
  /// "NVIDIA GPU", "Ascend NPU", "accelerator".
  std::string kind;
  /// Its file of the system.
  std::string path;

  bool operator==(const FoundAccelerator &) const = default;
};

/// Those that have a file in `root`/dev, by kind and name (WindVE, IV.C);
/// `root` is "" but in tests. Whether a server runs on one, nobody can tell
/// from here.
std::vector<FoundAccelerator> findAccelerators(const std::string &root = "");

} // namespace sandwich

#endif // SANDWICH_DEVICES_HARDWARE_H
