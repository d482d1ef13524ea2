//===- Checkpoint.cpp - A model as it is distributed ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/Checkpoint.h"

#include "Describe.h"
#include "EncoderTensors.h"
#include "QuantizedTensors.h"
#include "sandwich/Frontend/GgufModel.h"
#include "sandwich/Support/Json.h"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace sandwich;

/// Real configurations have a few kilobytes.
static constexpr size_t maxConfigBytes = size_t(1) << 20;
static constexpr size_t maxIndexBytes = maxSafetensorsHeaderBytes;

/// A name to be opened beside config.json must not lead out of the folder.
static bool isPlainFileName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

/// A link to nowhere is there: opening it tells what is wrong.
static std::optional<std::string> pathIfThere(std::string path) {
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() ==
      std::filesystem::file_type::not_found)
    return std::nullopt;
  return path;
}

std::string sandwich::numberLayer(std::string name, int64_t layer) {
  if (const size_t place = name.find("{}"); place != name.npos)
    name.replace(place, 2, std::to_string(layer));
  return name;
}

std::string sandwich::layerTensorName(int64_t layer, std::string_view suffix) {
  return "model.layers." + std::to_string(layer) + "." + std::string(suffix);
}

std::vector<ExpectedTensor>
sandwich::expectedTensors(const ModelConfig &config) {
  if (config.encoder)
    return expectedEncoderTensors(config);
  std::vector<ExpectedTensor> tensors;
  int64_t hidden = config.hiddenSize;
  int64_t inner = config.intermediateSize;
  int64_t query = config.queryWidth();
  int64_t keyValue = config.keyValueWidth();

  tensors.push_back(
      {std::string(embeddingTensorName), {config.vocabSize, hidden}});
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto add = [&](std::string_view suffix, std::vector<int64_t> shape) {
      tensors.push_back({layerTensorName(layer, suffix), std::move(shape)});
    };
    auto addProjection = [&](const std::string &name, int64_t outputs,
                             int64_t inputs, bool bias) {
      add(name + ".weight", {outputs, inputs});
      if (bias)
        add(name + ".bias", {outputs});
    };
    add("input_layernorm.weight", {hidden});
    addProjection("self_attn.q_proj", query, hidden, config.qkvBias);
    addProjection("self_attn.k_proj", keyValue, hidden, config.qkvBias);
    addProjection("self_attn.v_proj", keyValue, hidden, config.qkvBias);
    if (config.qkNorm) {
      add("self_attn.q_norm.weight", {config.headDim});
      add("self_attn.k_norm.weight", {config.headDim});
    }
    addProjection("self_attn.o_proj", hidden, query, config.outputBias);
    add("post_attention_layernorm.weight", {hidden});
    addProjection("mlp.gate_proj", inner, hidden, false);
    addProjection("mlp.up_proj", inner, hidden, false);
    addProjection("mlp.down_proj", hidden, inner, false);
  }
  tensors.push_back({std::string(finalNormTensorName), {hidden}});
  if (!config.tieWordEmbeddings && !config.encodes())
    tensors.push_back(
        {std::string(headTensorName), {config.vocabSize, hidden}});
  return tensors;
}

/// The `weight_map` of an index: file name of each tensor.
static Result<std::map<std::string, std::string>>
readWeightMap(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            readTextFile(path, maxIndexBytes));
  auto index = parseJson(text);
  if (!index)
    return index.error().inContext(path);
  if (!index->is_object())
    return makeError(path, ": is ", describe(*index),
                     "; an object is expected");
  auto weightMap = index->find("weight_map");
  if (weightMap == index->end())
    return makeError(path, ": weight_map is missing");
  if (!weightMap->is_object() || weightMap->empty())
    return makeError(path, ": weight_map is ", describe(*weightMap),
                     "; an object that names each tensor's file is expected");
  std::map<std::string, std::string> fileOfTensor;
  for (const auto &[tensor, file] : weightMap->items()) {
    if (!file.is_string() ||
        !isPlainFileName(file.get_ref<const std::string &>()))
      return makeError(path, ": weight_map: ", quote(tensor), " is in ",
                       describe(file),
                       "; the name of a file in the same folder is expected");
    fileOfTensor.emplace(tensor, file.get<std::string>());
  }
  return fileOfTensor;
}

Status Checkpoint::openShards(const std::string &indexPath) {
  SANDWICH_ASSIGN_OR_RETURN(auto fileOfTensor, readWeightMap(indexPath));
  std::map<std::string, size_t> opened;
  for (const auto &[tensor, fileName] : fileOfTensor) {
    auto [entry, isNew] = opened.try_emplace(fileName, files.size());
    if (isNew) {
      auto file = TensorFile::openSafetensors(checkpointPath + "/" + fileName);
      if (!file)
        return makeError(indexPath, ": weight_map: ", quote(tensor), ": ",
                         file.error().message);
      files.push_back(*std::move(file));
    }
    const TensorView *view = files[entry->second].find(tensor);
    if (!view)
      return makeError(indexPath, ": weight_map: ", quote(tensor),
                       " is not in ", quote(fileName));
    locations.emplace(tensor, Location{view, entry->second});
  }
  return {};
}

Result<Checkpoint> Checkpoint::open(const std::string &path,
                                    const std::optional<std::string> &task) {
  Checkpoint checkpoint;
  checkpoint.checkpointPath = path;
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    SANDWICH_RETURN_IF_ERROR(checkpoint.openFolder(task));
  else if (failure)
    return makeError(path, ": ", failure.message());
  else
    SANDWICH_RETURN_IF_ERROR(checkpoint.openGguf(task));
  return checkpoint;
}

static std::optional<CompanionText> companionIfThere(std::string path) {
  if (auto there = pathIfThere(std::move(path)))
    return CompanionText{*std::move(there)};
  return std::nullopt;
}

Status Checkpoint::openFolder(const std::optional<std::string> &task) {
  const std::string &folder = checkpointPath;
  std::string configPath = folder + "/config.json";
  SANDWICH_ASSIGN_OR_RETURN(std::string configText,
                            readTextFile(configPath, maxConfigBytes));
  auto config = parseModelConfig(configText);
  if (!config)
    return config.error().inContext(configPath);
  modelConfig = *std::move(config);

  if (auto path = pathIfThere(folder + "/generation_config.json")) {
    SANDWICH_ASSIGN_OR_RETURN(std::string text,
                              readTextFile(*path, maxConfigBytes));
    auto added = addGenerationConfig(modelConfig, text);
    if (!added)
      return added.error().inContext(*path);
  }
  tokenizerText = companionIfThere(folder + "/tokenizer.json");
  tokenizerConfigText = companionIfThere(folder + "/tokenizer_config.json");
  chatTemplate = pathIfThere(folder + "/chat_template.jinja");
  addedTokens = pathIfThere(folder + "/added_tokens.json");

  Status added = addSentenceTransformers(
      modelConfig,
      [&](const std::string &file) -> Result<std::optional<std::string>> {
        auto path = pathIfThere(folder + "/" + file);
        if (!path)
          return std::optional<std::string>();
        auto text = readTextFile(*path, maxConfigBytes);
        // The folder is named below, as in all that is wrong with these files.
        if (!text)
          return makeError(text.error().message.substr(folder.size() + 1));
        return std::optional(*std::move(text));
      });
  if (!added)
    return makeError(folder, "/", added.error().message);
  SANDWICH_RETURN_IF_ERROR(openFiles());
  SANDWICH_RETURN_IF_ERROR(applyAdapters(task));
  SANDWICH_RETURN_IF_ERROR(renameTensors());
  return joinQuantizedTensors();
}

Status Checkpoint::openGguf(const std::optional<std::string> &task) {
  isGgufFile = true;
  SANDWICH_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(checkpointPath));
  if (!isGguf(file.bytes()))
    return makeError(checkpointPath, ": is neither a folder nor a GGUF file");
  auto read = [&]() -> Status {
    SANDWICH_ASSIGN_OR_RETURN(GgufContents contents, readGguf(file.bytes()));
    SANDWICH_ASSIGN_OR_RETURN(modelConfig, readGgufConfig(contents));
    SANDWICH_ASSIGN_OR_RETURN(std::optional<GgufTokenizer> tokenizer,
                              readGgufTokenizer(contents));
    if (tokenizer) {
      tokenizerText =
          CompanionText{checkpointPath, std::move(tokenizer->tokenizer)};
      tokenizerConfigText =
          CompanionText{checkpointPath, std::move(tokenizer->configuration)};
    }
    SANDWICH_ASSIGN_OR_RETURN(
        TensorTable tensors,
        renameGgufTensors(std::move(contents.tensors), modelConfig));
    files.emplace_back(std::move(file), std::move(tensors));
    return {};
  };
  if (Status status = read(); !status)
    return status.error().inContext(checkpointPath);
  for (const auto &[name, tensor] : files.front().tensors())
    locations.emplace(name, Location{&tensor, 0});
  return applyAdapters(task);
}

Status Checkpoint::openFiles() {
  // Where both stand, transformers takes the single file.
  if (auto path = pathIfThere(checkpointPath + "/model.safetensors")) {
    SANDWICH_ASSIGN_OR_RETURN(TensorFile file,
                              TensorFile::openSafetensors(*path));
    for (const auto &[name, tensor] : file.tensors())
      locations.emplace(name, Location{&tensor, 0});
    files.push_back(std::move(file));
    return {};
  }
  if (auto path = pathIfThere(checkpointPath + "/model.safetensors.index.json"))
    return openShards(*path);
  return makeError(checkpointPath,
                   ": holds no weights: neither model.safetensors nor "
                   "model.safetensors.index.json is there");
}

/// Adds to `renamed` what a file calls `original`, unless something there has
/// the name `name` already.
Status Checkpoint::addRenamed(Locations &renamed, const std::string &name,
                              const std::string &original,
                              const Location &location) const {
  if (renamed.emplace(name, location).second)
    return {};
  return makeError(files[location.file].path(), ": tensor ", quote(original),
                   ": there is another one for ", quote(name));
}

/// What task number `task` has of the factor `name`, [tasks, rows, columns].
Result<TensorView> Checkpoint::findFactor(const std::string &name, size_t task,
                                          int64_t rows, int64_t columns) const {
  const TensorView *all = find(name);
  if (!all)
    return makeError(checkpointPath, ": tensor ", quote(name), " is missing");
  const auto tasks = static_cast<int64_t>(modelConfig.adapters->tasks.size());
  const std::vector<int64_t> expected = {tasks, rows, columns};
  if (all->shape != expected)
    return makeError(pathOf(name), ": tensor ", quote(name), ": shape is ",
                     describeShape(all->shape), ", but ",
                     describeShape(expected), " is expected");
  if (!isUsableElementType(all->elementType))
    return makeError(pathOf(name), ": tensor ", quote(name), ": dtype is ",
                     elementTypeName(all->elementType),
                     ", which is not supported (F32, F16 and BF16 are)");
  const size_t bytes = all->bytes.size() / modelConfig.adapters->tasks.size();
  return TensorView{all->elementType,
                    {rows, columns},
                    all->bytes.subspan(task * bytes, bytes)};
}

/// Gives each matrix with adapters its plain name, and its adapter for `task`.
Status Checkpoint::applyAdapters(const std::optional<std::string> &task) {
  const std::optional<AdapterConfig> &adapters = modelConfig.adapters;
  if (task && (!adapters || !std::ranges::count(adapters->tasks, *task))) {
    return makeError(checkpointPath, ": has no adapter for the task ",
                     quote(*task), "; it has ",
                     adapters ? "those for " + describe(adapters->tasks)
                              : "no adapters");
  }
  if (!adapters)
    return {};
  constexpr std::string_view marker = ".parametrizations.weight.";
  Locations applied;
  for (const auto &[name, location] : locations) {
    const size_t place = name.find(marker);
    if (place == name.npos) {
      SANDWICH_RETURN_IF_ERROR(addRenamed(applied, name, name, location));
      continue;
    }
    // The factors are a part of it.
    if (!name.ends_with(std::string(marker) + "original"))
      continue;
    const std::string stem = name.substr(0, place);
    Location plain = location;
    if (task) {
      const TensorView &tensor = *location.tensor;
      if (tensor.shape.size() != 2)
        return makeError(files[location.file].path(), ": tensor ", quote(name),
                         ": shape is ", describeShape(tensor.shape),
                         "; two dimensions are expected");
      const auto index = static_cast<size_t>(
          std::ranges::find(adapters->tasks, *task) - adapters->tasks.begin());
      // An embedding's factors are the other way around.
      const bool isTable = stem.ends_with("_embeddings");
      const std::string prefix = stem + std::string(marker) + "0.lora_";
      SANDWICH_ASSIGN_OR_RETURN(
          TensorView left, findFactor(prefix + (isTable ? "A" : "B"), index,
                                      tensor.shape[0], adapters->rank));
      SANDWICH_ASSIGN_OR_RETURN(
          TensorView right, findFactor(prefix + (isTable ? "B" : "A"), index,
                                       adapters->rank, tensor.shape[1]));
      TensorView updated = tensor;
      updated.update = std::make_shared<LowRankUpdate>(
          LowRankUpdate{std::move(left), std::move(right),
                        static_cast<float>(adapters->scale)});
      parts.push_back(std::move(updated));
      plain.tensor = &parts.back();
    }
    SANDWICH_RETURN_IF_ERROR(
        addRenamed(applied, stem + ".weight", name, plain));
  }
  if (task && parts.empty())
    return makeError(checkpointPath,
                     ": config.json tells of adapters, but no tensor "
                     "has any; without a task it is compiled as it "
                     "is");
  locations = std::move(applied);
  return {};
}

/// `rows` rows of `matrix` from `first` on.
static TensorView takeRows(const TensorView &matrix, int64_t first,
                           int64_t rows) {
  TensorView part = matrix;
  const size_t rowBytes =
      matrix.bytes.size() / static_cast<size_t>(matrix.shape.front());
  part.shape.front() = rows;
  part.bytes = matrix.bytes.subspan(static_cast<size_t>(first) * rowBytes,
                                    static_cast<size_t>(rows) * rowBytes);
  return part;
}

/// Gives tensors the names of `expectedTensors`.
Status Checkpoint::renameTensors() {
  if (!modelConfig.encodes())
    return {};
  Locations renamed;
  for (const auto &[name, location] : locations) {
    if (!modelConfig.encoder) {
      SANDWICH_RETURN_IF_ERROR(
          addRenamed(renamed, decoderTensorName(name), name, location));
      continue;
    }
    const std::vector<std::string> names = encoderTensorNames(name);
    if (names.size() == 1) {
      SANDWICH_RETURN_IF_ERROR(
          addRenamed(renamed, names.front(), name, location));
      continue;
    }
    // One above the other.
    const TensorView &whole = *location.tensor;
    const auto count = static_cast<int64_t>(names.size());
    if (whole.shape.empty() || whole.shape.front() == 0 ||
        whole.shape.front() % count != 0)
      return makeError(files[location.file].path(), ": tensor ", quote(name),
                       ": shape is ", describeShape(whole.shape), "; ", count,
                       " equal parts are expected");
    const int64_t rows = whole.shape.front() / count;
    for (int64_t i = 0; i < count; ++i) {
      TensorView part = takeRows(whole, i * rows, rows);
      if (whole.update) {
        LowRankUpdate update = *whole.update;
        update.left = takeRows(update.left, i * rows, rows);
        part.update = std::make_shared<LowRankUpdate>(std::move(update));
      }
      parts.push_back(std::move(part));
      SANDWICH_RETURN_IF_ERROR(
          addRenamed(renamed, names[i], name, {&parts.back(), location.file}));
    }
  }
  locations = std::move(renamed);
  return {};
}

/// Forgets `name`, a bias that the model has not, if it is one of zeros, which
/// some programs add. Error: it is not.
Status Checkpoint::dropZeros(const std::string &name,
                             const std::vector<ExpectedTensor> &expected) {
  const TensorView *tensor = find(name);
  if (!tensor || !isUsableElementType(tensor->elementType) ||
      std::ranges::find(expected, name, &ExpectedTensor::name) !=
          expected.end())
    return {};
  std::vector<float> values(elementCount(*tensor));
  readElements(*tensor, 0, values);
  if (std::ranges::any_of(values, [](float value) { return value != 0; }))
    return makeError(pathOf(name), ": tensor ", quote(name),
                     " is a bias that config.json does not tell of");
  locations.erase(name);
  return {};
}

/// Makes one matrix of what `quantization_config` says is in several tensors.
Status Checkpoint::joinQuantizedTensors() {
  if (!modelConfig.quantization)
    return {};
  const auto suffixes = quantizedSuffixes(*modelConfig.quantization);
  const std::vector<ExpectedTensor> allExpected = expectedTensors(modelConfig);
  for (const ExpectedTensor &expected : allExpected) {
    constexpr std::string_view ending = ".weight";
    if (!expected.name.ends_with(ending) || expected.shape.size() != 2)
      continue;
    const std::string module =
        expected.name.substr(0, expected.name.size() - ending.size());
    const auto first = locations.find(module + std::string(suffixes.front()));
    // Some modules are left as they were.
    if (first == locations.end())
      continue;
    const size_t file = first->second.file;
    auto joined = joinQuantized(*modelConfig.quantization, expected.shape,
                                [&](std::string_view suffix) {
                                  return find(module + std::string(suffix));
                                });
    if (!joined)
      return makeError(files[file].path(), ": ", quote(module), ": ",
                       joined.error().message);
    // Integers in words of their own have other numbers beside them by mistake.
    const bool isPacked = find(module + ".weight_packed");
    for (std::string_view suffix : suffixes)
      if (suffix != ending || !isPacked)
        locations.erase(module + std::string(suffix));
    SANDWICH_RETURN_IF_ERROR(dropZeros(module + ".bias", allExpected));
    parts.push_back(*std::move(joined));
    if (!locations.emplace(expected.name, Location{&parts.back(), file}).second)
      return makeError(files[file].path(), ": tensor ", quote(expected.name),
                       " is there, and as integers, too");
  }
  return {};
}

void Checkpoint::dropPages() const {
  for (const TensorFile &file : files)
    file.dropPages();
}

const TensorView *Checkpoint::find(std::string_view name) const {
  auto location = locations.find(name);
  return location == locations.end() ? nullptr : location->second.tensor;
}

const std::string &Checkpoint::pathOf(std::string_view name) const {
  return files[locations.find(name)->second.file].path();
}

std::string Checkpoint::nameInFile(const std::string &name) const {
  return isGgufFile ? ggufTensorName(name) : name;
}

/// What implies the tensors, for errors.
std::string_view Checkpoint::configName() const {
  return isGgufFile ? "the metadata" : "config.json";
}

Status Checkpoint::checkTensor(const ExpectedTensor &expected) const {
  auto found = locations.find(expected.name);
  const std::string name = nameInFile(expected.name);
  if (found == locations.end())
    return makeError(checkpointPath, ": tensor ", quote(name), " is missing; ",
                     configName(), " implies one of shape ",
                     describeShape(expected.shape));
  const TensorView &tensor = *found->second.tensor;
  const std::string &path = files[found->second.file].path();
  if (tensor.shape != expected.shape)
    return makeError(path, ": tensor ", quote(name), ": shape is ",
                     describeShape(tensor.shape), ", but ", configName(),
                     " implies ", describeShape(expected.shape));
  if (!tensor.integers && tensor.elementType == ElementType::F8_E4M3)
    return makeError(path, ": tensor ", quote(name),
                     ": dtype is F8_E4M3, but there is no scale beside it of "
                     "which quantization_config tells");
  if (!tensor.integers && !isUsableElementType(tensor.elementType))
    return makeError(path, ": tensor ", quote(name), ": dtype is ",
                     elementTypeName(tensor.elementType),
                     ", which is not supported (F32, F16 and BF16 are)");
  if (tensor.shape.size() != 1)
    return {};
  std::vector<float> values(tensor.shape[0]);
  readElements(tensor, 0, values);
  auto finite = checkFinite(name, tensor, 0, values);
  return finite ? finite : finite.error().inContext(path);
}

/// Which of two different tables is meant nothing tells.
Status Checkpoint::checkTiedHead() const {
  SANDWICH_RETURN_IF_ERROR(
      checkTensor({std::string(headTensorName),
                   {modelConfig.vocabSize, modelConfig.hiddenSize}}));
  Status same =
      checkSameElements(headTensorName, *find(headTensorName),
                        embeddingTensorName, *find(embeddingTensorName));
  if (same)
    return {};
  return makeError(pathOf(headTensorName), ": ", same.error().message,
                   ", and tie_word_embeddings of config.json says that they "
                   "are one");
}

Result<std::vector<std::string>> Checkpoint::checkTensors() const {
  std::set<std::string_view> used;
  auto expected = expectedTensors(modelConfig);
  for (const ExpectedTensor &tensor : expected) {
    SANDWICH_RETURN_IF_ERROR(checkTensor(tensor));
    used.insert(tensor.name);
  }
  if (modelConfig.tieWordEmbeddings && find(headTensorName)) {
    SANDWICH_RETURN_IF_ERROR(checkTiedHead());
    used.insert(headTensorName);
  }
  std::vector<std::string> unused;
  // llama.cpp would not load a file whose layers have a tensor that it does not
  // multiply or add.
  if (isGgufFile)
    for (const auto &[name, location] : locations)
      if (!used.contains(name) && nameInFile(name).starts_with("blk."))
        return makeError(checkpointPath, ": tensor ", quote(nameInFile(name)),
                         " is nothing that a ",
                         architectureName(modelConfig.architecture),
                         " of these metadata has");
  for (const auto &[name, location] : locations)
    if (!used.contains(name) && !name.ends_with("rotary_emb.inv_freq") &&
        !(modelConfig.encodes() && isTrainingTensor(name)))
      unused.push_back(nameInFile(name));
  std::ranges::sort(unused);
  auto repeated = std::ranges::unique(unused);
  unused.erase(repeated.begin(), repeated.end());
  return unused;
}
