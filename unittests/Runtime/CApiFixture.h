//===- CApiFixture.h - A loaded model for tests of C ------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_RUNTIME_CAPIFIXTURE_H
#define SANDWICH_UNITTESTS_RUNTIME_CAPIFIXTURE_H

#include "sandwich/Runtime/sandwich.h"

#include "HashModel.h"
#include "Inputs/hash_model.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sandwich::test {

class CApiTest : public ::testing::Test {
protected:
  void TearDown() override {
    sandwich_model_free(model);
    sandwich_free(error);
  }

  std::string write(const HashModelOptions &options = {}) {
    const std::string path = folder.file("model.sandwich");
    Status written = writeHashModel(path, options);
    EXPECT_TRUE(written) << written.error().message;
    return path;
  }

  void load(const HashModelOptions &options = {},
            const sandwich_load_options *loadOptions = nullptr,
            const sandwich_serving_options *servingOptions = nullptr) {
    ASSERT_EQ(sandwich_model_load(write(options).c_str(), loadOptions,
                                  servingOptions, &model, &error),
              SANDWICH_OK)
        << error;
    description = sandwich_model_describe(model);
  }

  /// The error message, which is then forgotten.
  std::string message() {
    std::string text = error ? error : "";
    sandwich_free(error);
    error = nullptr;
    return text;
  }

  TemporaryFolder folder;
  sandwich_model *model = nullptr;
  const sandwich_description *description = nullptr;
  char *error = nullptr;
};

/// An options structure with its size and the defaults.
template <typename Options> Options defaults() {
  Options options = {};
  options.struct_size = sizeof(options);
  return options;
}

/// The most probable continuation of `prompt`, of `count` tokens.
inline std::vector<int32_t> greedy(std::vector<int32_t> prompt, size_t count) {
  std::vector<int32_t> made;
  while (made.size() < count) {
    made.push_back(hashModelNext(prompt));
    prompt.push_back(made.back());
  }
  return made;
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_RUNTIME_CAPIFIXTURE_H
