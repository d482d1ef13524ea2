//===- PhaseBuilder.h - What builders of models share -----------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_FRONTEND_MODELBUILDER_PHASEBUILDER_H
#define SANDWICH_LIB_FRONTEND_MODELBUILDER_PHASEBUILDER_H

#include "sandwich/Frontend/Checkpoint.h"
#include "sandwich/Frontend/ModelBuilder.h"

#include "sandwich/Dialect/LM/IR/LM.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sandwich {

/// Builds the weights and phases of a model; families say what their layers are
/// made of.
class PhaseBuilder {
public:
  PhaseBuilder(mlir::MLIRContext *context, const ModelConfig &config,
               mlir::Type elementType, mlir::Type cacheElementType);
  virtual ~PhaseBuilder() = default;

  mlir::OwningOpRef<mlir::ModuleOp> build();

protected:
  /// What a phase is given.
  struct Inputs {
    mlir::Value tokenIds, positions, slots, segments, blocks, rows, cache;
    /// Null where the model has no types.
    mlir::Value tokenTypes;
  };

  virtual void addWeights() = 0;
  /// What comes before the layers: [tokens, hidden].
  virtual mlir::Value embed(const Inputs &inputs) = 0;
  /// A layer's attention, before its last projection: of the residual stream.
  virtual mlir::Value attendInLayer(mlir::Value x, mlir::Value layer,
                                    const Inputs &inputs) = 0;
  /// The rest of the layer, where each row is on its own: the residual stream
  /// behind it, of `x` before it and the attention.
  virtual mlir::Value finishLayer(mlir::Value x, mlir::Value attention,
                                  mlir::Value layer) = 0;
  /// What `phase` returns of the last layer's result, which has rows of all
  /// tokens, or of the pooled ones where each text's vector is one token's.
  virtual mlir::Value finish(mlir::Value x, lm::Phase phase,
                             const Inputs &inputs) = 0;
  virtual bool hasTokenTypes() const { return false; }

  /// Names the model's part that the following operations are of, for errors.
  void locate(llvm::StringRef part);
  mlir::RankedTensorType activation(int64_t channels);
  mlir::FlatSymbolRefAttr symbol(const llvm::Twine &name);
  mlir::FlatSymbolRefAttr layerWeight(const llvm::Twine &name) {
    return symbol("layers." + name);
  }
  void addWeight(llvm::StringRef symbol, llvm::ArrayRef<int64_t> shape,
                 llvm::StringRef source, bool inLayers);
  mlir::Value linear(mlir::Value input, mlir::FlatSymbolRefAttr weight,
                     int64_t outputs, mlir::FlatSymbolRefAttr bias,
                     mlir::Value layer);
  mlir::Value add(mlir::Value residual, mlir::Value value);
  mlir::Value rotaryTable(mlir::Value positions);
  mlir::Value rotate(mlir::Value value, mlir::Value table);
  /// Attention of `query` to what is written of `key` and `value`, and was
  /// before.
  mlir::Value attend(mlir::Value query, mlir::Value key, mlir::Value value,
                     mlir::Value layer, bool bidirectional,
                     const Inputs &inputs);
  /// The vector of each text, as the configuration says, of what finish() is
  /// given.
  mlir::Value pool(mlir::Value x, lm::Phase phase, const Inputs &inputs);
  mlir::Value gather(mlir::Value x, const Inputs &inputs);

  const ModelConfig &config;
  mlir::ImplicitLocOpBuilder builder;
  mlir::Type elementType;

private:
  void addPhase(lm::Phase phase);
  lm::PoolKind poolKind() const;
  /// Whether `phase` returns what the last layer made of one token of each
  /// text, and of no others.
  bool selectsTokens(lm::Phase phase) const;
  /// The rows of texts that poolKind() makes of rows of tokens.
  mlir::Value poolRows(mlir::Value x, const Inputs &inputs);

  /// Of a model that encodes, the keys and values of one layer of one step: the
  /// next layer writes over them.
  lm::KVCacheType cacheType;
  /// The cache's only layer, in a model that encodes.
  mlir::Value onlyLayer;
};

/// Llama and its descendants.
std::unique_ptr<PhaseBuilder> createDecoderBuilder(mlir::MLIRContext *context,
                                                   const ModelConfig &config,
                                                   mlir::Type elementType,
                                                   mlir::Type cacheType);
/// BERT and its descendants.
std::unique_ptr<PhaseBuilder> createEncoderBuilder(mlir::MLIRContext *context,
                                                   const ModelConfig &config,
                                                   mlir::Type elementType,
                                                   mlir::Type cacheType);

} // namespace sandwich

#endif // SANDWICH_LIB_FRONTEND_MODELBUILDER_PHASEBUILDER_H
