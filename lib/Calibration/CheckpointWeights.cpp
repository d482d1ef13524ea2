//===- CheckpointWeights.cpp - Weights for the interpreter ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Calibration/CheckpointWeights.h"

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/IntegerGroups.h"

#include <bit>

using namespace mlir;
using namespace sandwich;

Result<std::vector<float>> sandwich::readWeight(const Checkpoint &checkpoint,
                                                lm::WeightOp weight,
                                                int64_t layer) {
  if (weight.getInterleave())
    return makeError("interleaves its sources: that is no model IR");
  std::vector<float> elements;
  for (auto source : weight.getSources().getAsRange<StringAttr>()) {
    const std::string name = numberLayer(source.str(), layer);
    const TensorView *tensor = checkpoint.find(name);
    if (!tensor)
      return makeError("is made from ", name,
                       ", which is not in the checkpoint");
    if (!tensor->integers && !isUsableElementType(tensor->elementType))
      return makeError("is made from ", name,
                       ", whose elements are no F32, F16 or BF16");
    if (tensor->shape.size() !=
            static_cast<size_t>(weight.getTensorType().getRank()) ||
        (tensor->shape.size() == 2 &&
         tensor->shape[1] != weight.getTensorType().getDimSize(1)))
      return makeError("is made from ", name, ", which has another shape");
    const size_t first = elements.size();
    // One or two dimensions, as the weight.
    const auto rows = static_cast<size_t>(tensor->shape.front());
    elements.resize(first +
                    (tensor->shape.size() == 1 ? 1 : tensor->shape[1]) * rows);
    const auto part = std::span(elements).subspan(first);
    if (weight.getStorage())
      SANDWICH_RETURN_IF_ERROR(
          readRounded(name, *tensor, weight.getStorageFormat(), part));
    else
      readElements(*tensor, 0, part);
  }
  if (static_cast<int64_t>(elements.size()) !=
      weight.getTensorType().getNumElements())
    return makeError("has ", weight.getTensorType().getNumElements(),
                     " elements, its sources ", elements.size());
  if (weight.getTensorType().getElementType().isBF16()) {
    std::vector<uint16_t> rounded(elements.size());
    roundToBFloat16(elements, rounded);
    for (auto [element, bits] : llvm::zip_equal(elements, rounded))
      element = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  return elements;
}

InterpreterStep sandwich::makeSequenceStep(ArrayRef<int32_t> tokens,
                                           int32_t first) {
  InterpreterStep step;
  const auto count = static_cast<int32_t>(tokens.size());
  step.tokenIds.assign(tokens.begin(), tokens.end());
  for (int32_t token = 0; token < count; ++token) {
    step.positions.push_back(first + token);
    step.cacheSlots.push_back(first + token);
    step.logitRows.push_back(token);
  }
  step.segments = {0, count, first, 0};
  constexpr int32_t blockTokens = lm::KVCacheType::blockTokens;
  for (int32_t block = 0; block * blockTokens < first + count; ++block)
    step.blockTables.push_back(block);
  return step;
}
