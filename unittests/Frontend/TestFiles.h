//===- TestFiles.h - Checkpoint files for tests ----------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_FRONTEND_TESTFILES_H
#define SANDWICH_UNITTESTS_FRONTEND_TESTFILES_H

#include "TemporaryFolder.h"

#include "sandwich/Frontend/Safetensors.h"
#include "sandwich/Support/Json.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich::test {

/// A safetensors file: length, header, data.
inline std::string safetensors(const std::string &header,
                               const std::string &data) {
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char *>(&length), sizeof(length));
  return file + header + data;
}

inline Result<TensorTable> readTable(const std::string &file) {
  return readTensorTable(std::as_bytes(std::span(file)));
}

/// Writes tensors one after the other and keeps the header that says so.
class SafetensorsBuilder {
public:
  void add(const std::string &name, const std::string &elementType,
           const std::vector<int64_t> &shape, std::string_view elements) {
    header[name] = {
        {"dtype", elementType},
        {"shape", shape},
        {"data_offsets", {data.size(), data.size() + elements.size()}}};
    data += elements;
  }
  std::string finish() const { return safetensors(header.dump(), data); }

private:
  Json header = Json::object();
  std::string data;
};

template <typename T> std::string bytesOf(const std::vector<T> &elements) {
  return {reinterpret_cast<const char *>(elements.data()),
          elements.size() * sizeof(T)};
}

/// The message of a result that must have failed.
template <typename T> std::string messageOf(const Result<T> &result) {
  if (!result)
    return result.error().message;
  ADD_FAILURE() << "was accepted";
  return "";
}

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_FRONTEND_TESTFILES_H
