//===- MicroKernelMenu.cpp - Which micro-kernels there are ---------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/MicroKernelMenu.h"

#include <algorithm>
#include <iterator>

using namespace sandwich;

std::vector<MicroKernel> sandwich::microKernelMenu(MatrixISA isa) {
  RegisterFile file = registerFileOf(isa);
  std::vector<Packing> packings = packingsOf(isa);
  std::vector<MicroKernel> menu;
  constexpr int64_t mostColumns = 256;
  for (int64_t columns = file.columns; columns <= mostColumns;
       columns += file.columns)
    for (int64_t rows = file.rows; rows <= mostMicroKernelRows;
         rows += file.rows) {
      MicroKernel kernel{isa, rows, columns};
      if (verify(kernel) &&
          std::ranges::any_of(packings, [&](const Packing &packing) {
            return reads(kernel, packing);
          }))
        menu.push_back(kernel);
    }
  return menu;
}

std::vector<MicroKernel> sandwich::microKernelMenu(const MatmulShape &shape,
                                                   const Target &target) {
  std::vector<MicroKernel> menu;
  for (MatrixISA isa : allInstructionsFor(shape, target)) {
    // They read what the rule or a walk has copied to longer groups only.
    if (hasIntegerTiles(isa) && shape.storage.number == NumberFormat::Int4)
      continue;
    std::ranges::copy_if(microKernelMenu(isa), std::back_inserter(menu),
                         [&](const MicroKernel &kernel) {
                           return hasTilesForSums(
                               kernel, shape.storage.groupOf(shape.k));
                         });
  }
  return menu;
}
