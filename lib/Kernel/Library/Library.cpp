//===- Library.cpp - Kernels that come with the compiler ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Library.h"

using namespace sandwich;

std::optional<std::string_view> kernel::libraryKernel(std::string_view name) {
  if (name == "add")
    return addKernelText();
  if (name == "attention")
    return attentionKernelText();
  if (name == "gelu")
    return geluKernelText();
  if (name == "l2_normalize")
    return l2NormalizeKernelText();
  if (name == "layer_norm")
    return layerNormKernelText();
  if (name == "matrix_attention")
    return matrixAttentionKernelText();
  if (name == "merge_attention")
    return mergeAttentionKernelText();
  if (name == "rms_norm")
    return rmsNormKernelText();
  if (name == "rotate")
    return rotateKernelText();
  if (name == "round")
    return roundKernelText();
  if (name == "silu_mul")
    return siluMulKernelText();
  if (name == "tanh")
    return tanhKernelText();
  return std::nullopt;
}
