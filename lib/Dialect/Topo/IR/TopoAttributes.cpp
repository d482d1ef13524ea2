//===- TopoAttributes.cpp - Attributes of topo ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Topo/IR/Topo.h"
#include "sandwich/Support/ModelLimits.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::topo;

#include "sandwich/Dialect/Topo/IR/TopoEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "sandwich/Dialect/Topo/IR/TopoAttributes.cpp.inc"

void TopoDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "sandwich/Dialect/Topo/IR/TopoAttributes.cpp.inc"
      >();
}

LogicalResult LevelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef kind, int64_t count, int64_t bytes) {
  constexpr size_t longestKind = 64;
  if (kind.empty() || kind.size() > longestKind || count < 1 ||
      count > TopoTree::maxLeaves || bytes < 0)
    return emitError() << "(C1) a level has a kind of 1 to " << longestKind
                       << " bytes, a count between 1 and "
                       << TopoTree::maxLeaves
                       << " and bytes that are not negative";
  return success();
}

LogicalResult WorkloadAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t layers, int64_t hiddenSize,
                                   int64_t intermediateSize, int64_t queryHeads,
                                   int64_t keyValueHeads, int64_t headDim,
                                   int64_t vocabulary, int64_t bytesPerWeight,
                                   int64_t bytesPerKeyValue) {
  const std::tuple<StringRef, int64_t, int64_t> sizes[] = {
      {"layers", layers, model_limits::layers},
      {"hidden_size", hiddenSize, model_limits::hiddenSize},
      {"intermediate_size", intermediateSize, model_limits::intermediateSize},
      {"query_heads", queryHeads, model_limits::heads},
      {"key_value_heads", keyValueHeads, model_limits::heads},
      {"head_dim", headDim, model_limits::headDim},
      {"vocabulary", vocabulary, model_limits::vocabSize}};
  for (auto [name, size, most] : sizes)
    if (size < 1 || size > most)
      return emitError() << "(C1) " << name << " must be between 1 and "
                         << most;
  for (int64_t bytes : {bytesPerWeight, bytesPerKeyValue})
    if (bytes < 1 || bytes > 8)
      return emitError() << "(C2) elements have 1 to 8 bytes";
  return success();
}

ModelWork topo::getWork(WorkloadAttr workload) {
  ModelWork work;
  work.layers = workload.getLayers();
  work.hiddenSize = workload.getHiddenSize();
  work.intermediateSize = workload.getIntermediateSize();
  work.queryHeads = workload.getQueryHeads();
  work.keyValueHeads = workload.getKeyValueHeads();
  work.headDim = workload.getHeadDim();
  work.vocabulary = workload.getVocabulary();
  work.bytesPerWeight = static_cast<double>(workload.getBytesPerWeight());
  work.bytesPerKeyValue = static_cast<double>(workload.getBytesPerKeyValue());
  return work;
}
