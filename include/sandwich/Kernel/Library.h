//===- Library.h - Kernels that come with the compiler ----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_KERNEL_LIBRARY_H
#define SANDWICH_KERNEL_LIBRARY_H

#include <optional>
#include <string_view>

namespace sandwich::kernel {

/// The text of kernels/NAME.kernel, of what models use: an operation `lm.NAME`,
/// or a part of one; nothing if there is no such file.
std::optional<std::string_view> libraryKernel(std::string_view name);

// The files themselves.
std::string_view addKernelText();
std::string_view attentionKernelText();
std::string_view geluKernelText();
std::string_view l2NormalizeKernelText();
std::string_view layerNormKernelText();
std::string_view matrixAttentionKernelText();
std::string_view mergeAttentionKernelText();
std::string_view rmsNormKernelText();
std::string_view rotateKernelText();
std::string_view roundKernelText();
std::string_view siluMulKernelText();
std::string_view tanhKernelText();

} // namespace sandwich::kernel

#endif // SANDWICH_KERNEL_LIBRARY_H
