//===- Matrices.cpp - Memory that has rows --------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// `form` in rows of `length`.
static Place divide(const IndexForm &form, int64_t length) {
  Place place;
  for (const auto &[value, factor] : form.terms) {
    if (factor % length == 0)
      place.row.terms[value] = factor / length;
    else
      place.column.terms[value] = factor;
  }
  place.row.constant = llvm::divideFloorSigned(form.constant, length);
  place.column.constant = form.constant - place.row.constant * length;
  return place;
}

/// The first and the last place of what `form` is while loops go on; nothing
/// where that is not known.
static std::optional<std::pair<int64_t, int64_t>>
boundsOf(const IndexForm &form, int64_t numbers) {
  int64_t first = form.constant, last = form.constant + numbers - 1;
  for (const auto &[value, factor] : form.terms) {
    auto index = dyn_cast<BlockArgument>(value);
    auto loop = index ? dyn_cast<scf::ForOp>(index.getOwner()->getParentOp())
                      : scf::ForOp();
    if (!loop || index != loop.getInductionVar() || factor < 0)
      return std::nullopt;
    std::optional<int64_t> lower = constantOf(loop.getLowerBound()),
                           upper = constantOf(loop.getUpperBound()),
                           step = constantOf(loop.getStep());
    if (!lower || !upper || !step || *step < 1 || *upper <= *lower)
      return std::nullopt;
    const int64_t turns = llvm::divideCeil(*upper - *lower, *step);
    int64_t atFirst = 0, atLast = 0;
    if (llvm::MulOverflow(factor, *lower, atFirst) ||
        llvm::MulOverflow(factor, *lower + (turns - 1) * *step, atLast) ||
        llvm::AddOverflow(first, atFirst, first) ||
        llvm::AddOverflow(last, atLast, last))
      return std::nullopt;
  }
  return std::pair(first, last);
}

/// The factor of `form` that the index of a loop around `op` has, which its
/// vector does not go along with.
static int64_t strideOf(const IndexForm &form, Operation *op,
                        const BlockLoops &blocks) {
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && !blocks.find(loop))
      if (const int64_t factor = form.factorOf(loop.getInductionVar());
          factor > 1)
        return factor;
  return 0;
}

Matrices::Matrices(func::FuncOp function, const BlockLoops &blocks) {
  llvm::MapVector<Value, SmallVector<Operation *>> accesses;
  function.walk([&](Operation *op) {
    Value memory = accessedMemory(op);
    if (memory && isa<BlockArgument>(memoryOf(memory)))
      accesses[memoryOf(memory)].push_back(op);
  });
  for (const auto &[memory, operations] : accesses) {
    int64_t length = 0;
    for (Operation *op : operations)
      length = std::max(length,
                        strideOf(indexFormOf(accessedIndex(op)), op, blocks));
    if (length < 2)
      continue;
    const bool hasRows = llvm::all_of(operations, [&](Operation *op) {
      Type type = writtenValue(op) ? writtenValue(op).getType()
                                   : op->getResult(0).getType();
      auto vector = dyn_cast<VectorType>(type);
      const Place place = divide(indexFormOf(accessedIndex(op)), length);
      // A vector goes along a row, and not from one to the next.
      for (const auto &[value, factor] : place.row.terms)
        if (auto index = dyn_cast<BlockArgument>(value))
          if (auto loop = dyn_cast<scf::ForOp>(index.getOwner()->getParentOp());
              loop && index == loop.getInductionVar() && blocks.find(loop))
            return false;
      auto bounds =
          boundsOf(place.column, vector ? vector.getNumElements() : 1);
      return bounds && bounds->first >= 0 && bounds->second < length;
    });
    if (hasRows)
      lengths[memory] = length;
  }
}

std::optional<int64_t> Matrices::lengthOf(Value memory) const {
  auto found = lengths.find(memoryOf(memory));
  return found == lengths.end() ? std::nullopt : std::optional(found->second);
}

Place Matrices::placeOf(Value memory, Value index) const {
  IndexForm form = indexFormOf(index);
  if (std::optional<int64_t> length = lengthOf(memory))
    return divide(form, *length);
  return {{}, std::move(form)};
}
