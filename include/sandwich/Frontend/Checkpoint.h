//===- Checkpoint.h - A model as it is distributed --------------*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opens a folder with `config.json` and its weights (`model.safetensors`, or
/// shards and `model.safetensors.index.json`), or a GGUF file, which has all of
/// this, checks that the weights are those the configuration implies, and
/// streams their elements.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_FRONTEND_CHECKPOINT_H
#define SANDWICH_FRONTEND_CHECKPOINT_H

#include "sandwich/Frontend/ModelConfig.h"
#include "sandwich/Frontend/Safetensors.h"
#include "sandwich/Support/Result.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandwich {

/// Names of decoders' tensors outside the layers.
inline constexpr std::string_view embeddingTensorName =
    "model.embed_tokens.weight";
inline constexpr std::string_view finalNormTensorName = "model.norm.weight";
inline constexpr std::string_view headTensorName = "lm_head.weight";

/// Names of encoders' tensors outside the layers, or what they begin with.
inline constexpr std::string_view wordTableName =
    "embeddings.word_embeddings.weight";
inline constexpr std::string_view positionTableName =
    "embeddings.position_embeddings.weight";
inline constexpr std::string_view typeTableName =
    "embeddings.token_type_embeddings.weight";
inline constexpr std::string_view embeddingNormName = "embeddings.LayerNorm";
/// What an encoder's layers are called, "{}" in the place of the number.
inline constexpr std::string_view encoderLayerName = "encoder.layer.{}.";

/// The dense layer of a classifier's head, and what gives its scores.
struct HeadNames {
  std::string_view dense;
  std::string_view scores;
};
HeadNames classifierNames(Architecture architecture);

/// The name of a decoder layer's tensor: `layerTensorName(3,
/// "mlp.up_proj.weight")` is "model.layers.3.mlp.up_proj.weight".
std::string layerTensorName(int64_t layer, std::string_view suffix);

/// The name of layer `layer`'s tensor, from what stands for those of all
/// layers, with "{}" in the number's place; a name without that place is
/// itself.
std::string numberLayer(std::string name, int64_t layer);

/// A tensor that a configuration implies. A projection's shape is
/// [output elements, input elements].
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

/// Every tensor a checkpoint of `config` must hold, in the order a forward pass
/// meets them. A tied head is not among them. Those of encoders have the names
/// that a bare BERT's have, those of decoders what a whole model's have.
std::vector<ExpectedTensor> expectedTensors(const ModelConfig &config);

/// A text beside the weights: a file, or what takes its place in the file of
/// the weights.
struct CompanionText {
  std::string path;
  /// Nothing: what the file at `path` holds.
  std::optional<std::string> text = {};
  bool operator==(const CompanionText &) const = default;
};

/// An opened checkpoint: checked configuration, mapped weights. Tensors have
/// the names of `expectedTensors`, whatever the files call them: with or
/// without the name of the model they are a part of, with the names that layer
/// norms had in 2019, as Jina's XLM-RoBERTa, whose queries, keys and values are
/// one, or in several tensors of numbers and scales (GPTQ, AWQ, FP8 and
/// `compressed-tensors`). Moves, never copies; tensors keep their addresses
/// when it moves.
class Checkpoint {
public:
  /// Opens the checkpoint at `path`, a folder or a GGUF file, for `task` if it
  /// has an adapter for that, which is added to its matrices as they are read.
  /// Without a task they are what all adapters are made for. Errors: a task
  /// that it does not know; what `parseModelConfig`, `addGenerationConfig`,
  /// `addSentenceTransformers`, `TensorFile::openSafetensors` and `readGguf`
  /// refuse, weights that are absent, and an index that names files outside the
  /// folder, absent files, or tensors that the named file lacks.
  static Result<Checkpoint> open(const std::string &path,
                                 const std::optional<std::string> &task = {});

  const ModelConfig &config() const { return modelConfig; }
  /// The folder or the GGUF file.
  const std::string &path() const { return checkpointPath; }

  /// `tokenizer.json`, if there is one.
  const std::optional<CompanionText> &tokenizer() const {
    return tokenizerText;
  }
  /// `tokenizer_config.json`, if there is one.
  const std::optional<CompanionText> &tokenizerConfig() const {
    return tokenizerConfigText;
  }
  /// Path of `chat_template.jinja`, if there is one.
  const std::optional<std::string> &chatTemplatePath() const {
    return chatTemplate;
  }
  /// Path of `added_tokens.json`, if there is one.
  const std::optional<std::string> &addedTokensPath() const {
    return addedTokens;
  }

  /// The tensor called `name`, or null.
  const TensorView *find(std::string_view name) const;

  /// The path of the file that holds the tensor called `name`, which is there.
  const std::string &pathOf(std::string_view name) const;

  /// What that file calls it, for errors.
  std::string nameInFile(const std::string &name) const;

  /// Takes what was read of the files out of the process's memory, so that no
  /// more than a part of a large checkpoint is there at a time.
  void dropPages() const;

  /// Checks that every tensor of `expectedTensors(config())` is there, has
  /// exactly that shape and a usable element type, and that the one-dimensional
  /// ones (norm scales, biases) hold only finite numbers; larger ones are
  /// checked as they are read, with `checkFinite`. A tied head that is there
  /// nevertheless must hold the embedding table. Returns the names of tensors
  /// that the model does not use, sorted, for a warning; `rotary_emb.inv_freq`
  /// tables and position ids, which old checkpoints carry, the pooler of an
  /// encoder that does not classify and the head of its training are not among
  /// them.
  Result<std::vector<std::string>> checkTensors() const;

private:
  struct Location {
    const TensorView *tensor;
    /// Index into `files`.
    size_t file;
  };
  using Locations = std::map<std::string, Location, std::less<>>;

  Checkpoint() = default;
  Status openFolder(const std::optional<std::string> &task);
  Status openGguf(const std::optional<std::string> &task);
  Status openFiles();
  std::string_view configName() const;
  Status openShards(const std::string &indexPath);
  Status addRenamed(Locations &renamed, const std::string &name,
                    const std::string &original,
                    const Location &location) const;
  Status renameTensors();
  Status joinQuantizedTensors();
  Status dropZeros(const std::string &name,
                   const std::vector<ExpectedTensor> &expected);
  Status applyAdapters(const std::optional<std::string> &task);
  Result<TensorView> findFactor(const std::string &name, size_t task,
                                int64_t rows, int64_t columns) const;
  Status checkTensor(const ExpectedTensor &expected) const;
  Status checkTiedHead() const;

  std::string checkpointPath;
  bool isGgufFile = false;
  ModelConfig modelConfig;
  std::optional<CompanionText> tokenizerText;
  std::optional<CompanionText> tokenizerConfigText;
  std::optional<std::string> chatTemplate;
  std::optional<std::string> addedTokens;
  std::vector<TensorFile> files;
  /// Parts of tensors that have names of their own, and tensors with adapters.
  std::deque<TensorView> parts;
  Locations locations;
};

/// Elements of `tensor`.
int64_t elementCount(const TensorView &tensor);

/// Elements in one row of `tensor`: its last dimension, 1 for a scalar.
int64_t rowLength(const TensorView &tensor);

/// Converts the elements of `tensor` from number `firstElement` in row-major
/// order on to float32, as many as `destination` holds. The elements must exist
/// and be of a usable type, or quantized, which `Checkpoint::checkTensors`
/// shows.
void readElements(const TensorView &tensor, int64_t firstElement,
                  std::span<float> destination);

/// `readElements` for row `row`; `destination` has `rowLength(tensor)`
/// elements.
void readRow(const TensorView &tensor, int64_t row,
             std::span<float> destination);

/// Rounds to bfloat16, to nearest with ties to even; a NaN stays one, and what
/// lies beyond the largest bfloat16 becomes infinite. Both spans have the same
/// length.
void roundToBFloat16(std::span<const float> source,
                     std::span<uint16_t> destination);

/// Fails if `values`, which are the elements of the tensor `name` from number
/// `firstElement` on, include a NaN or an infinity. The error gives the index
/// of the first. One pass over the values, cheap beside reading them.
Status checkFinite(std::string_view name, const TensorView &tensor,
                   int64_t firstElement, std::span<const float> values);

/// Fails if one of `values`, as in `checkFinite` and finite, is so large that
/// `roundToBFloat16` makes it infinite.
Status checkFitsBFloat16(std::string_view name, const TensorView &tensor,
                         int64_t firstElement, std::span<const float> values);

/// Fails if two tensors of one shape and of usable types differ in a number.
/// The error gives the index of the first.
Status checkSameElements(std::string_view name, const TensorView &tensor,
                         std::string_view otherName, const TensorView &other);

} // namespace sandwich

#endif // SANDWICH_FRONTEND_CHECKPOINT_H
