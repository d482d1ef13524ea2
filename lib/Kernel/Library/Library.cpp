//===- Library.cpp - Kernels that come with the compiler ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Library.h"

using namespace sandwich;

std::optional<std::string_view>
kernel::libraryKernel(std::string_view operation) {
  if (operation == "add")
    return addKernelText();
  if (operation == "l2_normalize")
    return l2NormalizeKernelText();
  if (operation == "layer_norm")
    return layerNormKernelText();
  if (operation == "rms_norm")
    return rmsNormKernelText();
  if (operation == "silu_mul")
    return siluMulKernelText();
  return std::nullopt;
}
