//===- ChannelImportance.h - What rounding is to spare ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_QUANTIZATION_CHANNELIMPORTANCE_H
#define SANDWICH_QUANTIZATION_CHANNELIMPORTANCE_H

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sandwich {

/// For each matrix, [N, K], by the name of its tensor in the checkpoint: how
/// much an error of its elements weighs in each of the K columns, as finite
/// numbers from 0 on. Matrices that are not there have columns alike.
using ChannelImportance =
    std::map<std::string, std::vector<float>, std::less<>>;

} // namespace sandwich

#endif // SANDWICH_QUANTIZATION_CHANNELIMPORTANCE_H
