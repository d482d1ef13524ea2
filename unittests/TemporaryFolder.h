//===- TemporaryFolder.h - A folder of its own for each test ----*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_UNITTESTS_TEMPORARYFOLDER_H
#define SANDWICH_UNITTESTS_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace sandwich::test {

/// A folder that is removed with its contents when this ends.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "sandwich-test-XXXXXX")
            .string();
    if (!::mkdtemp(pattern.data()))
      std::abort();
    folder = pattern;
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  const std::string &path() const { return folder; }
  std::string file(const std::string &name) const {
    return folder + "/" + name;
  }
  /// Writes `contents` into the file `name` and returns its path.
  std::string write(const std::string &name, std::string_view contents) const {
    std::ofstream(file(name), std::ios::binary) << contents;
    return file(name);
  }

private:
  std::string folder;
};

} // namespace sandwich::test

#endif // SANDWICH_UNITTESTS_TEMPORARYFOLDER_H
