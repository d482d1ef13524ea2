//===- PhaseOps.cpp - Operations of phase ---------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Phase/IR/Phase.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::phase;

#define GET_OP_CLASSES
#include "sandwich/Dialect/Phase/IR/PhaseOps.cpp.inc"

bool phase::areDenseRows(Type type) {
  auto buffer = cast<MemRefType>(type);
  return buffer.getLayout().isIdentity() && !buffer.isDynamicDim(1) &&
         buffer.getDimSize(1) > 0;
}

LogicalResult AllGatherOp::verify() {
  int64_t part = cast<MemRefType>(getPart().getType()).getDimSize(1);
  if (cast<MemRefType>(getWhole().getType()).getDimSize(1) % part != 0)
    return emitOpError("(C1) the whole must have a multiple of the part's ")
           << part << " channels";
  return success();
}

LogicalResult MarkOp::verify() {
  constexpr size_t longestName = 1024;
  if (getName().empty() || getName().size() > longestName)
    return emitOpError("(C1) the name must be 1 to ")
           << longestName << " bytes long";
  for (uint64_t cost : {getBytes(), getBytesPerPosition(), getFlopsPerToken(),
                        getFlopsPerLogitRow(), getFlopsPerAttended()})
    if (cost > static_cast<uint64_t>(INT64_MAX))
      return emitOpError("(C2) costs must not be negative");
  return success();
}

SmallVector<MarkOp> phase::getMarkedOperations(func::FuncOp function) {
  llvm::SmallDenseSet<DictionaryAttr> known;
  SmallVector<MarkOp> operations;
  function.walk([&](MarkOp mark) {
    if (known.insert(mark->getAttrDictionary()).second)
      operations.push_back(mark);
  });
  return operations;
}
