//===- ArtifactAssembly.cpp - Weights and code into an artifact -----------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArtifactAssembly.h"

#include "PrintAttribute.h"
#include "sandwich/Artifact/Format.h"
#include "sandwich/Compiler/WeightPacker.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Utils/WeightAccess.h"

#include <algorithm>

using namespace mlir;
using namespace sandwich;

static uint64_t endOf(const PackedWeight &weight) {
  return weight.offset + weight.layerStride * weight.layers.value_or(1);
}

static uint64_t alignmentOf(const PackedWeight &weight) {
  return getWeightAlignment(weight.shape.size());
}

static WeightShard shardOf(lm::ShardKind kind) {
  switch (kind) {
  case lm::ShardKind::Rows:
    return WeightShard::Rows;
  case lm::ShardKind::Columns:
    return WeightShard::Columns;
  case lm::ShardKind::First:
    return WeightShard::First;
  }
  llvm_unreachable("every kind is above");
}

/// In the order of their offsets, so that those that all ranks read come first.
static std::vector<PackedWeight> listWeights(ModuleOp module) {
  std::vector<PackedWeight> weights;
  for (auto weight : module.getOps<lm::WeightOp>()) {
    PackedWeight packed;
    packed.name = weight.getSymName();
    RankedTensorType type = weight.getTensorType();
    packed.storage = weight.getStorageFormat();
    packed.shape.assign(type.getShape().begin(), type.getShape().end());
    packed.layers = weight.getLayers();
    for (auto source : weight.getSources().getAsRange<StringAttr>())
      packed.sources.push_back(source.str());
    packed.interleave = weight.getInterleave();
    if (lm::ShardAttr shard = weight.getShardAttr()) {
      packed.shard = shardOf(shard.getKind());
      packed.ranks = shard.getRanks();
    }
    if (auto packing =
            dyn_cast_or_null<gemm::PackingAttr>(weight.getPackingAttr()))
      packed.packing = packing.getPacking();
    packed.offset = *weight.getOffset();
    packed.sliceBytes = weight.getSliceBytes();
    packed.layerStride =
        weight.getLayers()
            ? *weight.getLayerStride()
            : llvm::alignTo(packed.sliceBytes, alignmentOf(packed));
    weights.push_back(std::move(packed));
  }
  std::ranges::stable_sort(weights, {}, &PackedWeight::offset);
  return weights;
}

/// What `sums`, of all ranks, say of a weight.
static proto::Rounding describe(std::span<const RoundingSums> sums) {
  proto::Rounding rounding;
  for (const RoundingSums &layer : sums)
    rounding.add_errors(layer.relativeError());
  rounding.set_kept(std::ranges::none_of(sums, &RoundingSums::rounded));
  return rounding;
}

Status sandwich::assembleArtifact(ArtifactWriter writer,
                                  proto::Manifest manifest, ModuleOp module,
                                  const Checkpoint &checkpoint,
                                  const ChannelImportance &importance,
                                  const std::string &sharedObject,
                                  const CompileProgress &progress) {
  SANDWICH_RETURN_IF_ERROR(artifact::validateConfiguration(manifest));
  const std::vector<PackedWeight> weights = listWeights(module);
  const int64_t ranks = std::max<int64_t>(manifest.ranks(), 1);
  uint64_t common = 0, end = 0;
  for (const PackedWeight &weight : weights) {
    end = std::max(end, endOf(weight));
    if (weight.shard == WeightShard::Whole)
      common = std::max(common, endOf(weight));
  }
  uint64_t shard = 0;
  if (ranks > 1) {
    common = llvm::alignTo(common, weightRegionAlignment);
    shard = llvm::alignTo(end, weightRegionAlignment) - common;
    manifest.set_common_weight_bytes(common);
    manifest.set_shard_bytes(shard);
  }
  const uint64_t total = ranks > 1 ? common + ranks * shard : end;
  SANDWICH_RETURN_IF_ERROR(writer.reserveWeights(total));
  // By weight and layer.
  std::vector<std::vector<RoundingSums>> roundings;
  for (const PackedWeight &weight : weights)
    roundings.emplace_back(weight.layers.value_or(1));
  auto pack = [&](size_t index, int64_t rank) {
    return packWeight(
        weights[index], rank, checkpoint, importance,
        [&](std::span<const std::byte> bytes) -> Status {
          SANDWICH_RETURN_IF_ERROR(
              progress("packing weights",
                       static_cast<double>(writer.weightsBytes()) / total));
          return writer.appendWeights(bytes);
        },
        roundings[index]);
  };
  for (auto [index, weight] : llvm::enumerate(weights)) {
    proto::Tensor tensor;
    tensor.set_name(weight.name);
    tensor.set_dtype(weight.storage.name());
    if (weight.layers)
      tensor.add_shape(*weight.layers);
    for (int64_t size : weight.shape)
      tensor.add_shape(size);
    tensor.set_layout("row-major");
    if (weight.packing)
      tensor.set_layout(
          print(gemm::PackingAttr::get(module.getContext(), *weight.packing)));
    for (const std::string &source : weight.sources)
      tensor.add_sources(source);
    if (weight.shard != WeightShard::Whole) {
      tensor.set_ranks(static_cast<uint32_t>(ranks));
      if (writer.weightsBytes() < common)
        SANDWICH_RETURN_IF_ERROR(writer.skipTo(common));
    }
    SANDWICH_ASSIGN_OR_RETURN(uint64_t offset,
                              writer.beginTensor(tensor, alignmentOf(weight)));
    if (offset != weight.offset)
      return makeError("weight ", weight.name, " would lie at ", offset,
                       " instead of ", weight.offset,
                       "; the IR's offsets are not those of lm-place-weights");
    SANDWICH_RETURN_IF_ERROR(pack(index, 0));
  }
  for (int64_t rank = 1; rank < ranks; ++rank)
    for (auto [index, weight] : llvm::enumerate(weights))
      if (weight.shard != WeightShard::Whole) {
        SANDWICH_RETURN_IF_ERROR(writer.skipTo(weight.offset + rank * shard));
        SANDWICH_RETURN_IF_ERROR(pack(index, rank));
      }
  SANDWICH_RETURN_IF_ERROR(writer.skipTo(total));
  for (auto [index, weight] : llvm::enumerate(weights))
    if (weight.storage.isQuantized())
      writer.describeRounding(index, describe(roundings[index]));
  SANDWICH_RETURN_IF_ERROR(progress("packing weights", 1));
  SANDWICH_RETURN_IF_ERROR(writer.addFile(artifact::phasesFile, sharedObject));
  const std::pair<const char *, std::optional<CompanionText>> companions[] = {
      {artifact::tokenizerFile, checkpoint.tokenizer()},
      {artifact::tokenizerConfigFile, checkpoint.tokenizerConfig()}};
  for (const auto &[name, companion] : companions) {
    if (!companion)
      continue;
    SANDWICH_RETURN_IF_ERROR(companion->text
                                 ? writer.addFile(name, *companion->text)
                                 : writer.copyFile(name, companion->path));
  }
  if (checkpoint.chatTemplatePath())
    SANDWICH_RETURN_IF_ERROR(writer.copyFile(artifact::chatTemplateFile,
                                             *checkpoint.chatTemplatePath()));
  return writer.commit(std::move(manifest),
                       [&] { (void)progress(stageDone, 1); });
}
