//===- WriteSumModel.h - The artifact of the tests' encoder -----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_ENCODING_WRITESUMMODEL_H
#define SANDWICH_UNITTESTS_ENCODING_WRITESUMMODEL_H

#include "SumModel.h"
#include "sandwich/Artifact/Format.h"
#include "sandwich/Support/Result.h"

#include <functional>
#include <string>

namespace sandwich::test {

/// Writes the artifact `path`, whose manifest `change` may change before. Its
/// tokenizer knows the words "a" to "z", 10 and up, between [CLS], 1, and
/// [SEP], 2.
Status writeSumModel(const std::string &path,
                     const std::function<void(proto::Manifest &)> &change = {});

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_ENCODING_WRITESUMMODEL_H
