//===- Schedule.cpp - How a matmul runs -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/Schedule.h"
#include "sandwich/Support/CheckedMath.h"

#include <charconv>

using namespace sandwich;

namespace {

bool parsePositive(std::string_view text, int64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

} // namespace

std::string MicroKernel::name() const {
  return std::string(sandwich::name(isa)) + "_" + std::to_string(rows) + "x" +
         std::to_string(columns);
}

Result<MicroKernel> MicroKernel::parse(std::string_view text) {
  for (MatrixISA isa : allMatrixISAs()) {
    std::string_view prefix = sandwich::name(isa);
    if (!text.starts_with(prefix) || text.size() <= prefix.size() ||
        text[prefix.size()] != '_')
      continue;
    std::string_view shape = text.substr(prefix.size() + 1);
    size_t cross = shape.find('x');
    MicroKernel kernel{isa};
    if (cross != shape.npos &&
        parsePositive(shape.substr(0, cross), kernel.rows) &&
        parsePositive(shape.substr(cross + 1), kernel.columns))
      return kernel;
  }
  return makeError("'", text,
                   "' is no micro-kernel's name; they are "
                   "ISA_ROWSxCOLUMNS, for example X86_AVX512_F32_14x32");
}

Status sandwich::verify(const MicroKernel &kernel) {
  RegisterFile file = registerFileOf(kernel.isa);
  if (kernel.rows <= 0 || kernel.rows > 64 || kernel.columns <= 0 ||
      kernel.columns > 256 || kernel.columns % file.columns != 0)
    return makeError(kernel.name(), " needs 1 to 64 rows and a multiple of ",
                     file.columns, " columns, at most 256");
  int64_t rows = divideUp(kernel.rows, file.rows);
  int64_t columns = kernel.columns / file.columns;
  // Tiles hold one operand of each row and one of the column in turn; vectors
  // a row of the weight and one broadcast element of the input.
  int64_t operands = file.rows > 1 ? rows + 1 : columns + 1;
  int64_t needed = rows * columns + operands;
  if (needed > file.registers)
    return makeError(kernel.name(), " needs ", needed, " registers, ",
                     sandwich::name(kernel.isa), " has ", file.registers);
  return {};
}

Packing sandwich::packingOf(MatrixISA isa) {
  switch (isa) {
  case MatrixISA::X86_AVX2_F32:
  case MatrixISA::X86_AVX512_F32:
    return {.panel = 32, .tile = 32, .kStep = 1, .kPack = 1};
  case MatrixISA::X86_AVX512_BF16:
    return {.panel = 32, .tile = 32, .kStep = 2, .kPack = 2};
  case MatrixISA::X86_AMX_BF16:
    return {.panel = 32, .tile = 16, .kStep = 32, .kPack = 2};
  }
  __builtin_unreachable();
}

Status sandwich::verify(const Schedule &schedule, const MatmulShape &shape) {
  SANDWICH_RETURN_IF_ERROR(verify(schedule.microKernel));
  Packing packing = packingOf(schedule.microKernel.isa);
  bool readsBF16 = packing.kPack == 2;
  if (readsBF16 && !shape.bf16Weights)
    return makeError(schedule.microKernel.name(), " needs bf16 weights");
  if (shape.k % packing.kStep != 0)
    return makeError(schedule.microKernel.name(),
                     " needs K to be a multiple of ", packing.kStep, "; it is ",
                     shape.k);
  if (schedule.slice[1] % shape.columnUnit != 0)
    return makeError("slice columns ", schedule.slice[1],
                     " must be a multiple of ", shape.columnUnit,
                     ", which the epilogue needs together");
  return {};
}
