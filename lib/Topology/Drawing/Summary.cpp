//===- Summary.cpp - What both drawings say -------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summary.h"

#include "sandwich/Support/ByteSize.h"

#include <cstdio>

using namespace sandwich;

std::string sandwich::summaryOf(const MachineNode &root) {
  std::string text;
  for (const char *kind :
       {"package", "die", "numa", "l3", "group", "core", "cpu"})
    if (uint64_t parts = countParts(root, kind)) {
      text += text.empty() ? "" : ", ";
      text += kind;
      text += " x " + std::to_string(parts);
    }
  return text;
}

std::string sandwich::detailsOf(const MachineNode &node) {
  std::string text;
  auto add = [&](const std::string &part) {
    text += (text.empty() ? "" : ", ") + part;
  };
  char number[32];
  if (node.bytes > 0)
    add(formatBytes(node.bytes));
  if (node.bandwidth > 0) {
    std::snprintf(number, sizeof(number), "%.4g GB/s",
                  static_cast<double>(node.bandwidth) / 1e9);
    add(number);
  }
  if (node.latency > 0)
    add(std::to_string(node.latency) + " ns");
  if (node.speed < 1) {
    std::snprintf(number, sizeof(number), "speed %.2f", node.speed);
    add(number);
  }
  return text;
}
