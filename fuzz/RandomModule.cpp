//===- RandomModule.cpp - Modules nobody would write ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomModule.h"

#include <optional>
#include <vector>

using namespace sandwich;

namespace {

/// An SSA value that is visible where the writer is.
struct Value {
  std::string name, type;
};

std::string text(int64_t value) { return std::to_string(value); }

/// Sizes of a model that fits together.
struct Model {
  int64_t hidden, heads, kvHeads, headDim, intermediate, vocabulary, layers,
      ranks;
  bool bf16, bias, norms;
  std::string cacheElement;

  int64_t query() const { return heads * headDim; }
  int64_t key() const { return kvHeads * headDim; }
  std::string cache() const {
    return "!lm.kv_cache<layers = " + text(layers) +
           ", heads = " + text(kvHeads) + ", head_dim = " + text(headDim) +
           ", " + cacheElement + ">";
  }
  std::string matrixElement() const { return bf16 ? "bf16" : "f32"; }
};

class ModuleWriter {
public:
  explicit ModuleWriter(Decisions &decisions) : d(decisions) {}

  std::string write();

private:
  // What is written.
  void line(const std::string &written) { out += written + "\n"; }
  std::string fresh() { return "%v" + text(nextValue++); }
  std::string define(const std::string &type, const std::string &operation);
  bool isFault() { return d.perMille(faults); }

  // What operations read.
  std::string operand(const Value &wanted);
  std::string symbol(const std::string &wanted);
  std::optional<Value> anyOf(const std::string &type);
  std::optional<Value> anyTensor();
  Value tensorOf(int64_t channels);
  std::string layer() { return operand({layerIndex, "index"}); }

  // Declarations.
  void writeWeight(const std::string &name, const std::string &type,
                   bool hasLayers, bool interleaved = false, int sources = 1);
  void writeWeights();
  void writeFusedWeights();
  void writeExtras();
  std::string weightSuffix(bool isMatrix);

  // Model IR and schedule IR.
  void writePhase(const std::string &name);
  void writeLayer();
  void writeScheduledLayer();
  void openLoop(const std::string &count);
  void closeLoop(const std::string &yielded);
  Value rmsNorm(const Value &input, const std::string &weight, bool hasLayer);
  Value linear(const Value &input, const std::string &weight, int64_t outputs,
               bool hasLayer);
  Value matmul(const Value &input, const std::string &weight, int64_t outputs,
               const std::string &epilogue, bool hasLayer);
  Value attention(const Value &query);
  std::string attentionTile(int64_t rows);
  std::string attentionSchedules();
  std::string schedules();
  std::string schedule();

  // Phase programs.
  void writeProgram(const std::string &name);
  void writeProgramOperation();
  void writeNest();
  Value view(int64_t channels, const std::string &element);

  // What nobody expects.
  void writeNoise();
  void writeForeign();
  void writeNested(int64_t depth);
  void writeCasts();
  void writeAnyOperation();

  Decisions &d;
  Model model;
  std::string out;
  std::vector<Value> values;
  int64_t nextValue = 0;
  /// In a thousand places where something can be wrong, or too much.
  int64_t faults = 0, noise = 0;
  bool isScheduled = false, inPrograms = false, hasSchedules = false;
  int64_t nesting = 0;
  std::string layerIndex, table, stream;
  std::string bodyArgument;
};

} // namespace

static std::string tensor(int64_t channels,
                          const std::string &element = "f32") {
  return "tensor<?x" + text(channels) + "x" + element + ">";
}

static std::string memref(int64_t channels, const std::string &element) {
  return "memref<?x" + text(channels) + "x" + element + ">";
}

std::string ModuleWriter::define(const std::string &type,
                                 const std::string &operation) {
  std::string name = fresh();
  line(name + " = " + operation);
  values.push_back({name, type});
  return name;
}

std::optional<Value> ModuleWriter::anyOf(const std::string &type) {
  std::vector<Value> fitting;
  for (const Value &value : values)
    if (value.type == type)
      fitting.push_back(value);
  if (fitting.empty())
    return std::nullopt;
  return d.pick(fitting);
}

/// The wanted value, or by fault another one, mostly of the same type.
std::string ModuleWriter::operand(const Value &wanted) {
  if (!isFault() || values.empty())
    return wanted.name;
  if (d.perMille(150))
    return d.pick(values).name;
  auto other = anyOf(wanted.type);
  return other ? other->name : wanted.name;
}

std::string ModuleWriter::symbol(const std::string &wanted) {
  if (!isFault())
    return "@" + wanted;
  return "@" + d.pick<std::string>({"embedding", "head", "final_norm", "o_proj",
                                    "q_proj", "down_proj", "input_norm",
                                    "absent", "prefill", "helper", "odd"});
}

/// A value with so many channels, made of token ids where there is none.
Value ModuleWriter::tensorOf(int64_t channels) {
  std::string type = tensor(channels);
  if (auto value = anyOf(type); value && !d.perMille(100))
    return *value;
  return {define(type, "lm.embed %ids, " + symbol("odd") +
                           " : tensor<?xi32> -> " + type),
          type};
}

std::optional<Value> ModuleWriter::anyTensor() {
  std::vector<Value> fitting;
  for (const Value &value : values)
    if (value.type.starts_with("tensor<?x"))
      fitting.push_back(value);
  if (fitting.empty())
    return std::nullopt;
  return d.pick(fitting);
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Packings and places, which only some levels have.
std::string ModuleWriter::weightSuffix(bool isMatrix) {
  std::string suffix;
  if (isFault())
    suffix += " shard <" + d.pick<std::string>({"rows", "columns", "first"}) +
              ", ranks = " + text(d.pick<int64_t>({2, 2, 3, 4})) + ">";
  if (isMatrix && (inPrograms || isFault())) {
    std::string pack = model.bf16 ? "2" : "1";
    std::string panel = d.pick<std::string>({"16", "32", "32", "64"});
    suffix += " packing #gemm.packing<panel = " + panel + ", tile = " + panel +
              ", k_step = " + pack + ", k_pack = " + pack + ">";
  }
  return suffix;
}

void ModuleWriter::writeWeight(const std::string &name, const std::string &type,
                               bool hasLayers, bool interleaved, int sources) {
  if (isFault())
    return;
  bool isMatrix = type.find('x') != type.rfind('x');
  std::string written = "lm.weight @" + name + " : " + type;
  if (hasLayers)
    written += " layers " + text(isFault() ? d.between(0, 4) : model.layers);
  written += " from [";
  for (int i = 0; i < sources; ++i)
    written += std::string(i ? ", " : "") + "\"" + name + text(i) +
               (hasLayers ? "{}" : "") + "\"";
  written += "]";
  if (interleaved)
    written += " interleave 16";
  written += weightSuffix(isMatrix);
  if (inPrograms && !isFault()) {
    written += " at " + text(4096 * d.below(64));
    if (hasLayers)
      written += " stride 65536";
  }
  line(written);
  if (isFault() && d.perMille(200))
    line(written);
}

static std::string matrix(int64_t rows, int64_t columns,
                          const std::string &element) {
  return "tensor<" + text(rows) + "x" + text(columns) + "x" + element + ">";
}

static std::string vector(int64_t size) {
  return "tensor<" + text(size) + "xf32>";
}

void ModuleWriter::writeWeights() {
  const std::string element = model.matrixElement();
  const int64_t hidden = model.hidden;
  writeWeight("embedding", matrix(model.vocabulary, hidden, element), false);
  writeWeight("input_norm", vector(hidden), true);
  writeWeight("post_norm", vector(hidden), true);
  writeWeight("final_norm", vector(hidden), false);
  writeWeight("o_proj", matrix(hidden, model.query(), element), true);
  writeWeight("down_proj", matrix(hidden, model.intermediate, element), true);
  writeWeight("head", matrix(model.vocabulary, hidden, element), false);
  if (model.norms) {
    writeWeight("q_norm", vector(model.headDim), true);
    writeWeight("k_norm", vector(model.headDim), true);
  }
  if (isScheduled || inPrograms)
    return writeFusedWeights();
  writeWeight("q_proj", matrix(model.query(), hidden, element), true);
  writeWeight("k_proj", matrix(model.key(), hidden, element), true);
  writeWeight("v_proj", matrix(model.key(), hidden, element), true);
  writeWeight("gate_proj", matrix(model.intermediate, hidden, element), true);
  writeWeight("up_proj", matrix(model.intermediate, hidden, element), true);
  if (model.bias) {
    writeWeight("q_bias", vector(model.query()), true);
    writeWeight("k_bias", vector(model.key()), true);
    writeWeight("v_bias", vector(model.key()), true);
  }
}

void ModuleWriter::writeFusedWeights() {
  const std::string element = model.matrixElement();
  int64_t rows = model.query() + 2 * model.key();
  writeWeight("qkv_proj", matrix(rows, model.hidden, element), true, false, 3);
  writeWeight("gate_up_proj",
              matrix(2 * model.intermediate, model.hidden, element), true, true,
              2);
  if (model.bias)
    writeWeight("qkv_bias", vector(rows), true, false, 3);
}

/// Symbols that are, or may become, those of the compiler; other functions.
void ModuleWriter::writeExtras() {
  const std::string name = d.pick<std::string>(
      {"X86_AVX2_F32_6x16_ld48", "X86_AVX2_F32_1x16_ld80",
       "X86_AVX2_F32_4x16_ld48", "sandwich_prefill", "sandwich_decode",
       "sandwich_prefill_plan", "sandwich_decode_plan", "qkv_proj",
       "gate_up_proj", "helper", "malloc", "prefill", "head.shard", "o_proj_0",
       "embedding", "q_proj.shard"});
  switch (d.below(10)) {
  case 0:
    return line("func.func private @" + name + "()");
  case 1:
    return line("func.func private @" + name +
                "(%a: index) -> index { return %a : index }");
  case 2:
    return line("llvm.func @" + name + "(!llvm.ptr) -> i64");
  case 3:
    return line("memref.global \"private\" @" + name + " : memref<4xi64>");
  case 4:
    return line("llvm.mlir.global external @" + name + "(1 : i64) : i64");
  case 5:
    return line("lm.weight @" + name + " : tensor<" +
                text(d.pick<int64_t>({1, 16, 32, 1024, 2147483647})) +
                "x64xf32> from [\"extra\"]");
  case 6:
    return line("builtin.module @" + name +
                " { lm.weight @e : tensor<8x8xf32> from [\"e\"] func.func "
                "@f(%i: tensor<?xi32>) { %x = lm.embed %i, @e : tensor<?xi32> "
                "-> tensor<?x8xf32> return } }");
  case 7:
    return line("func.func @" + name +
                "(%c: i1) { cf.cond_br %c, ^bb1, ^bb2 ^bb1: return ^bb2: "
                "cf.br ^bb2 ^bb3(%t: tensor<?x32xf32>): %u = lm.add %w, %w : "
                "tensor<?x32xf32> %w = lm.add %u, %t : tensor<?x32xf32> cf.br "
                "^bb3(%w : tensor<?x32xf32>) }");
  case 8:
    return line("func.func private @" + name +
                "() attributes {lm.phase = #lm.phase<decode>}");
  default:
    return line("topo.machine @" + name + " {}");
  }
}

//===----------------------------------------------------------------------===//
// Model IR and schedule IR
//===----------------------------------------------------------------------===//

Value ModuleWriter::rmsNorm(const Value &input, const std::string &weight,
                            bool hasLayer) {
  std::string index = hasLayer ? "[" + layer() + "]" : "";
  return {define(input.type, "lm.rms_norm " + operand(input) + ", " +
                                 symbol(weight) + index +
                                 " epsilon 1.0e-05 : " + input.type + " -> " +
                                 input.type),
          input.type};
}

Value ModuleWriter::linear(const Value &input, const std::string &weight,
                           int64_t outputs, bool hasLayer) {
  std::string type = tensor(outputs);
  std::string index = hasLayer ? "[" + layer() + "]" : "";
  std::string bias;
  if (model.bias && weight.ends_with("_proj") && weight.size() == 6 &&
      weight != "o_proj")
    bias = " bias " + symbol(weight.substr(0, 1) + "_bias");
  return {define(type, "lm.linear " + operand(input) + ", " + symbol(weight) +
                           bias + index + " : " + input.type + " -> " + type),
          type};
}

std::string ModuleWriter::schedule() {
  const std::string isa =
      isFault() ? d.pick<std::string>({"X86_AVX2_F32", "X86_AVX512_F32",
                                       "X86_AVX512_BF16", "X86_AMX_BF16",
                                       "X86_AMX_INT8", "X86_AVX512_VNNI",
                                       "ARM_NEON_F32", "VAX_F32"})
                : "X86_AVX2_F32";
  int64_t rows = isFault() ? d.between(0, 40) : d.pick<int64_t>({1, 2, 6});
  int64_t columns = isFault() ? d.pick<int64_t>({0, 8, 24, 32, 64}) : 16;
  int64_t panels = d.between(1, 4);
  std::string text_ =
      "<micro_kernel = " + isa + "_" + text(rows) + "x" + text(columns) +
      ", slice = [" + text(rows * d.between(1, 3)) + ", " + text(32 * panels) +
      ", " + text(d.pick<int64_t>({16, 32, 64, 4096, isFault() ? 0 : 8})) +
      "], threads = [1, " + text(d.between(1, 2)) + ", " +
      text(d.perMille(200) ? 2 : 1) + "], prefetch = [" +
      text(d.pick<int64_t>({0, 0, 1, 4})) + ", " +
      text(d.pick<int64_t>({0, 4096})) + "]";
  if (d.perMille(100))
    text_ += ", order = columns_outer";
  if (d.perMille(100))
    text_ += ", stores = non_temporal";
  if (d.perMille(100))
    text_ +=
        ", k_chunk = " + text(d.pick<int64_t>({16, 64, isFault() ? -1 : 8}));
  // NEON reads packed input, vectors of x86-64 do not; only tiles stream.
  if (isa == "ARM_NEON_F32" ? d.perMille(500) : isFault() && d.perMille(100))
    text_ += ", input = packed";
  if (isFault() && d.perMille(100))
    text_ += ", streamed = both";
  if (isFault() && d.perMille(100))
    text_ += ", k_group = " + text(d.pick<int64_t>({-1, 0, 24, 128, 256}));
  if (isFault() && d.perMille(100))
    text_ += ", copy = ahead";
  return text_ + ">";
}

std::string ModuleWriter::schedules() {
  std::string table_;
  int64_t rows = 0;
  while (d.perMille(300)) {
    rows = isFault() ? d.between(-1, 4) : rows + d.between(1, 8);
    table_ += text(rows) + " : " + schedule() + ", ";
  }
  return " schedules(<" + table_ + "? : " + schedule() + ">)";
}

Value ModuleWriter::matmul(const Value &input, const std::string &weight,
                           int64_t outputs, const std::string &epilogue,
                           bool hasLayer) {
  std::string type = tensor(outputs);
  std::string written = "gemm.matmul " + operand(input) + ", " + symbol(weight);
  if (model.bias && epilogue == "rotate_append_kv")
    written += " bias " + symbol("qkv_bias");
  if (hasLayer)
    written += "[" + layer() + "]";
  written += " epilogue(<" +
             (isFault() ? d.pick<std::string>({"none", "add_residual",
                                               "silu_mul", "rotate_append_kv"})
                        : epilogue) +
             ">)";
  if (epilogue == "add_residual") {
    written += " residual(" + operand({stream, type}) + " : " + type +
               (isFault() ? " among 2" : "") + ")";
  } else if (epilogue == "rotate_append_kv") {
    written += " rotary(" + operand({table, tensor(model.headDim)}) + " : " +
               tensor(model.headDim) + ") cache(%cache : " + model.cache() +
               ") slots(" + operand({"%slots", "tensor<?xi32>"}) +
               " : tensor<?xi32>)";
    if (model.norms)
      written += " query_norm " + symbol("q_norm") + " key_norm " +
                 symbol("k_norm") + " epsilon 1.0e-05";
  }
  if (hasSchedules)
    written += schedules();
  return {define(type, written + " : " + input.type + " -> " + type), type};
}

std::string ModuleWriter::attentionTile(int64_t rows) {
  if (isFault())
    rows = d.between(-1, 17);
  int64_t blocks = isFault() ? d.between(-1, 3) : d.pick<int64_t>({1, 1, 2});
  int64_t chunk = isFault() ? d.pick<int64_t>({0, 3, 64, 65, INT64_MIN})
                            : blocks * d.between(1, 3);
  return "[" + text(rows) + ", " + text(blocks) + ", " + text(chunk) + "]";
}

/// A table of attention's schedules, often of one.
std::string ModuleWriter::attentionSchedules() {
  std::string table_;
  auto limit = [&](int64_t most) {
    if (isFault())
      return text(d.pick<int64_t>({0, -1, INT64_MAX}));
    return d.perMille(300) ? "?" : text(d.between(1, most));
  };
  auto entry = [&](const std::string &segments, const std::string &positions) {
    int64_t split = isFault() ? d.pick<int64_t>({0, -1, 1024, 1025, INT64_MAX})
                              : d.pick<int64_t>({1, 1, 2, 3});
    table_ += "[" + segments + ", " + positions + "] : <decode = " +
              attentionTile(d.perMille(500) ? 1 : model.heads / model.kvHeads) +
              ", split = " + text(split) +
              ", prefill = " + attentionTile(d.between(1, 3)) + ">";
  };
  // Most second entries would serve nothing.
  while (d.perMille(table_.empty() ? 300 : 100)) {
    entry(limit(4), limit(64));
    table_ += ", ";
  }
  entry(isFault() ? "1" : "?", "?");
  return " schedules(<" + table_ + ">)";
}

Value ModuleWriter::attention(const Value &query) {
  const std::string ids = "tensor<?xi32>", segments = "tensor<?x4xi32>";
  std::string how = d.perMille(400) ? attentionSchedules() : "";
  if (isFault())
    how += " partial_sums(" +
           define("memref<64xi8>", "memref.alloc() : memref<64xi8>") +
           " : memref<64xi8>)";
  return {define(query.type,
                 "lm.attention " + operand(query) + ", %cache[" + layer() +
                     "] segments " + operand({"%segments", segments}) +
                     " blocks " + operand({"%blocks", ids}) + " scale 0.25" +
                     how + " : " + query.type + ", " + model.cache() + ", " +
                     segments + ", " + ids + " -> " + query.type),
          query.type};
}

void ModuleWriter::openLoop(const std::string &count) {
  std::string type = tensor(model.hidden);
  layerIndex = "%i" + text(nextValue++);
  std::string carried = fresh();
  bodyArgument = fresh();
  line(carried + " = scf.for " + layerIndex + " = " +
       operand({"%c0", "index"}) + " to " + operand({count, "index"}) +
       " step " + operand({"%c1", "index"}) + " iter_args(" + bodyArgument +
       " = " + operand({stream, type}) + ") -> (" + type + ") {");
  values.push_back({bodyArgument, type});
  stream = carried;
}

void ModuleWriter::closeLoop(const std::string &yielded) {
  std::string type = tensor(model.hidden);
  line("scf.yield " + operand({yielded, type}) + " : " + type);
  line("}");
}

void ModuleWriter::writeLayer() {
  const std::string hidden = tensor(model.hidden), index = "index";
  const std::string ids = "tensor<?xi32>";
  Value x{stream, hidden};
  Value normed = rmsNorm(x, "input_norm", true);
  Value q = linear(normed, "q_proj", model.query(), true);
  Value k = linear(normed, "k_proj", model.key(), true);
  Value v = linear(normed, "v_proj", model.key(), true);
  writeNoise();
  if (model.norms) {
    q = rmsNorm(q, "q_norm", true);
    k = rmsNorm(k, "k_norm", true);
  }
  const std::string tableType = tensor(model.headDim);
  auto rotate = [&](const Value &value) {
    return Value{define(value.type, "lm.rotate " + operand(value) + ", " +
                                        operand({table, tableType}) + " : " +
                                        value.type + ", " + tableType),
                 value.type};
  };
  q = rotate(q);
  k = rotate(k);
  if (!isFault())
    line("lm.append_kv " + operand(k) + ", " + operand(v) + " to %cache[" +
         layer() + "] slots " + operand({"%slots", ids}) + " : " + k.type +
         ", " + model.cache() + ", " + ids);
  Value attended = attention(q);
  writeNoise();
  auto add = [&](const Value &a, const Value &b) {
    return Value{define(hidden, "lm.add " + operand(a) + ", " + operand(b) +
                                    " : " + hidden),
                 hidden};
  };
  Value o = linear(attended, "o_proj", model.hidden, true);
  x = add(x, o);
  normed = rmsNorm(x, "post_norm", true);
  Value gate = linear(normed, "gate_proj", model.intermediate, true);
  Value up = linear(normed, "up_proj", model.intermediate, true);
  Value product{define(gate.type, "lm.silu_mul " + operand(gate) + ", " +
                                      operand(up) + " : " + gate.type),
                gate.type};
  writeNoise();
  Value down = linear(product, "down_proj", model.hidden, true);
  stream = add(x, down).name;
}

void ModuleWriter::writeScheduledLayer() {
  const std::string hidden = tensor(model.hidden);
  Value x{stream, hidden};
  Value normed = rmsNorm(x, "input_norm", true);
  Value q = matmul(normed, "qkv_proj", model.query(), "rotate_append_kv", true);
  writeNoise();
  Value attended = attention(q);
  x = matmul(attended, "o_proj", model.hidden, "add_residual", true);
  writeNoise();
  stream = x.name;
  normed = rmsNorm(x, "post_norm", true);
  Value product =
      matmul(normed, "gate_up_proj", model.intermediate, "silu_mul", true);
  stream =
      matmul(product, "down_proj", model.hidden, "add_residual", true).name;
}

void ModuleWriter::writePhase(const std::string &name) {
  values.clear();
  const std::string ids = "tensor<?xi32>", hidden = tensor(model.hidden);
  const std::string logits = tensor(model.vocabulary);
  std::string attributes =
      isFault() ? ""
                : "lm.phase = #lm.phase<" +
                      (isFault() ? std::string("decode") : name) + ">";
  if (d.perMille(100))
    attributes += std::string(attributes.empty() ? "" : ", ") +
                  d.pick<std::string>(
                      {"lm.threads = 1 : i64", "lm.threads = 0 : i64",
                       "passthrough = [\"naked\"]", "llvm.emit_c_interface"});
  line("func.func @" + name + "(%ids: " + ids + ", %positions: " + ids +
       ", %slots: " + ids + ", %segments: tensor<?x4xi32>, %blocks: " + ids +
       ", %rows: " + ids + ", %cache: " + model.cache() +
       (isFault() ? " {llvm.noalias}" : "") + ") -> " + logits +
       " attributes {" + attributes + "} {");
  for (const char *argument :
       {"%ids", "%positions", "%slots", "%blocks", "%rows"})
    values.push_back({argument, ids});
  values.push_back({"%segments", "tensor<?x4xi32>"});
  values.push_back({"%cache", model.cache()});
  for (int64_t i : {int64_t(0), int64_t(1), model.layers}) {
    if (i == 1 && model.layers == 1)
      continue;
    line("%c" + text(i) + " = arith.constant " +
         text(isFault() ? d.pick<int64_t>({-1, 3, 1 << 20, INT64_MAX}) : i) +
         " : index");
    values.push_back({"%c" + text(i), "index"});
  }
  layerIndex = "%c0";
  std::string frequencies = "1.0";
  for (int64_t i = 1; i < model.headDim / 2; ++i)
    frequencies += ", 0.5";
  const std::string tableType = tensor(model.headDim);
  table = define(tableType, "lm.rotary_table " + operand({"%positions", ids}) +
                                " frequencies [" + frequencies + "] : " + ids +
                                " -> " + tableType);
  stream =
      define(hidden, "lm.embed " + operand({"%ids", ids}) + ", " +
                         symbol("embedding") + " : " + ids + " -> " + hidden);
  writeNoise();

  int64_t loops = d.perMille(30) ? d.between(0, 3) : 1;
  for (int64_t i = 0; i < loops; ++i) {
    size_t visible = values.size();
    openLoop("%c" + text(model.layers));
    std::string result = stream;
    stream = bodyArgument;
    int64_t inner = d.perMille(20) ? d.between(1, 3) : 0;
    std::vector<std::string> results;
    for (int64_t j = 0; j < inner; ++j) {
      openLoop("%c" + text(model.layers));
      results.push_back(stream);
      stream = bodyArgument;
    }
    if (isScheduled)
      writeScheduledLayer();
    else
      writeLayer();
    closeLoop(stream);
    for (; !results.empty(); results.pop_back())
      closeLoop(results.back());
    values.resize(visible);
    stream = result;
    values.push_back({stream, hidden});
  }
  layerIndex = "%c0";
  writeNoise();
  Value gathered{define(hidden, "lm.gather_rows " + operand({stream, hidden}) +
                                    ", " + operand({"%rows", ids}) + " : " +
                                    hidden + ", " + ids + " -> " + hidden),
                 hidden};
  gathered = rmsNorm(gathered, "final_norm", false);
  Value result = isScheduled
                     ? matmul(gathered, "head", model.vocabulary, "none", false)
                     : linear(gathered, "head", model.vocabulary, false);
  writeNoise();
  line("return " + operand(result) + " : " + logits + " }");
}

//===----------------------------------------------------------------------===//
// Phase programs
//===----------------------------------------------------------------------===//

Value ModuleWriter::view(int64_t channels, const std::string &element) {
  std::string type = memref(channels, element);
  if (auto value = anyOf(type); value && d.perMille(700))
    return *value;
  std::string offset = define(
      "index", "arith.constant " + text(1024 * d.below(16)) + " : index");
  return {define(type, "memref.view %workspace[" + operand({offset, "index"}) +
                           "][%tokens] : memref<?xi8> to " + type),
          type};
}

void ModuleWriter::writeNest() {
  if (model.bf16 && !isFault())
    return;
  int64_t k = model.hidden, columns = 32 * d.between(1, 2);
  Value x = view(k, "f32");
  std::string weightType =
      "memref<" + text(columns / 32) + "x" + text(k) + "x1x1x32x1xf32>";
  std::string offset =
      define("index", "arith.constant " + text(4096 * d.below(8)) + " : index");
  std::string weight =
      define(weightType, "memref.view %weights[" + offset +
                             "][] : memref<?xi8> to " + weightType);
  std::string end =
      define("index", "arith.constant " + text(columns) + " : index");
  std::string depth = define("index", "arith.constant " + text(k) + " : index");
  Value y = view(columns, "f32");
  auto index = [&](const std::string &name) {
    return operand({name, "index"});
  };
  const std::string sums = "memref<?x?xf32, strided<[?, 1], offset: ?>>";
  line("gemm.nest " + operand(x) + ", " + operand({weight, weightType}) +
       " rows(" + index("%c0") + " to " + index("%tokens") + ") columns(" +
       index("%c0") + " to " + index(end) + ") k(" + index("%c0") + " to " +
       index(depth) + ") schedule(" + schedule() + ") unit 32 rows_between [" +
       text(d.below(3)) + ", " + text(d.between(1, 16)) + "] : " + x.type +
       ", " + weightType + " {");
  std::string n = text(nextValue++);
  line("^bb0(%s" + n + ": " + sums + ", %r" + n + ": index, %q" + n +
       ": index, %f" + n + ": index, %g" + n + ": index):");
  if (!isFault())
    line("gemm.epilogue %s" + n + " at(%r" + n + ", %f" + n + ") size(%q" + n +
         ", %g" + n + ") epilogue(<none>) into " + operand(y) + " : " + sums +
         " into " + y.type);
  line("}");
}

void ModuleWriter::writeProgramOperation() {
  const int64_t hidden = model.hidden;
  const std::string ids = "memref<?xi32>";
  switch (d.below(14)) {
  case 0: {
    Value x = view(hidden, "f32");
    return line("lm.embed " + operand({"%ids", ids}) + ", " +
                symbol("embedding") + " into " + operand(x) + " : " + ids +
                " into " + x.type);
  }
  case 1: {
    Value x = view(hidden, "f32"), y = view(hidden, "f32");
    return line("lm.rms_norm " + operand(x) + ", " + symbol("final_norm") +
                " epsilon 1.0 into " + operand(y) + " : " + x.type + " into " +
                y.type);
  }
  case 2: {
    Value x = view(hidden, "f32"), y = view(hidden, "f32");
    return line("lm.gather_rows " + operand(x) + ", " +
                operand({"%rows", ids}) + " into " + operand(y) + " : " +
                x.type + ", " + ids + " into " + y.type);
  }
  case 3:
  case 4: {
    Value x = view(hidden, "f32");
    Value y = d.perMille(300)
                  ? Value{"%logits", memref(model.vocabulary, "f32")}
                  : view(model.vocabulary, "f32");
    return line("gemm.matmul " + operand(x) + ", " + symbol("head") +
                " epilogue(<none>)" + schedules() + " into " + operand(y) +
                " : " + x.type + " into " + y.type);
  }
  case 5: {
    Value x = view(model.intermediate, "f32"), y = view(hidden, "f32");
    return line("gemm.matmul " + operand(x) + ", " + symbol("down_proj") + "[" +
                layer() + "] epilogue(<add_residual>) residual(" + operand(y) +
                " : " + y.type + ")" + schedules() + " into " + operand(y) +
                " : " + x.type + " into " + y.type);
  }
  case 6:
    return line("phase.barrier %team");
  case 7:
    return line("phase.mark %team, \"" + text(d.below(3)) +
                "\" {bytes = 1 : i64}");
  case 8: {
    Value x = view(hidden, "f32");
    return line("phase.all_reduce %team, " + operand(x) + " : " + x.type);
  }
  case 9: {
    Value x = view(hidden, "f32"), y = view(2 * hidden, "f32");
    return line("phase.all_gather %team, " + operand(x) + " into " +
                operand(y) + " : " + x.type + " into " + y.type);
  }
  case 10: {
    std::string frequencies = "1.0";
    for (int64_t i = 1; i < model.headDim / 2; ++i)
      frequencies += ", 0.5";
    Value x = view(model.headDim, "f32");
    return line("lm.rotary_table " + operand({"%positions", ids}) +
                " frequencies [" + frequencies + "] into " + operand(x) +
                " : " + ids + " into " + x.type);
  }
  case 11: {
    Value x = view(model.query(), "f32"), y = view(model.query(), "f32");
    std::string cache = "memref<?x" + text(model.layers) + "x" +
                        text(model.kvHeads) + "x2x" + text(16 * model.headDim) +
                        "x" + model.cacheElement + ">";
    std::string how = d.perMille(500) ? attentionSchedules() : "";
    if (!isFault()) {
      // Mostly enough for 16 tokens in 3 parts.
      std::string bytes =
          text(isFault() ? d.pick<int64_t>({0, 1, 64, 4096})
                         : 16 * 3 * (model.query() + 2 * model.heads) * 4);
      if (isFault())
        bytes = "?";
      const std::string type =
          "memref<" + bytes + "x" + (isFault() ? "f32" : "i8") + ">";
      std::string sums =
          define(type, "memref.view %workspace[" + operand({"%c0", "index"}) +
                           "][" + (bytes == "?" ? "%tokens" : "") +
                           "] : memref<?xi8> to " + type);
      how += " partial_sums(" + sums + " : " + type + ")";
    }
    return line("lm.attention " + operand(x) + ", %cache[" + layer() +
                "] segments %segments blocks " + operand({"%blocks", ids}) +
                " scale 0.25" + how + " into " + operand(y) + " : " + x.type +
                ", " + cache + ", memref<?x4xi32>, " + ids + " into " + y.type);
  }
  case 12:
    return writeNest();
  default:
    return writeNested(d.perMille(30) ? d.between(1, 40) : d.between(1, 3));
  }
}

void ModuleWriter::writeProgram(const std::string &name) {
  values.clear();
  const std::string cache =
      "memref<?x" + text(model.layers) + "x" + text(model.kvHeads) + "x2x" +
      text(16 * model.headDim) + "x" + model.cacheElement + ">";
  const std::string logits = memref(model.vocabulary, "f32");
  const std::string ids = "memref<?xi32>";
  line("func.func @" + name + "(%ids: " + ids + ", %positions: " + ids +
       ", %slots: " + ids + ", %segments: memref<?x4xi32>, %blocks: " + ids +
       ", %rows: " + ids + ", %cache: " + cache + ", %logits: " + logits +
       ", %weights: memref<?xi8>, %workspace: memref<?xi8>, %thread: index, "
       "%team: !phase.team) attributes {" +
       (isFault() ? "" : "lm.phase = #lm.phase<" + name + ">, ") +
       "phase.program = #phase.program<threads = " + text(d.between(1, 2)) +
       ", max_tokens = " + text(d.pick<int64_t>({1, 4, 16})) +
       ", max_logit_rows = " + text(d.pick<int64_t>({1, 16})) +
       ", workspace_bytes = 65536>} {");
  for (const char *argument :
       {"%ids", "%positions", "%slots", "%blocks", "%rows"})
    values.push_back({argument, ids});
  values.push_back({"%segments", "memref<?x4xi32>"});
  values.push_back({"%cache", cache});
  values.push_back({"%logits", logits});
  values.push_back({"%thread", "index"});
  values.push_back({"%workspace", "memref<?xi8>"});
  line("%c0 = arith.constant 0 : index");
  line("%c1 = arith.constant 1 : index");
  line("%c4 = arith.constant 4 : index");
  line("%tokens = memref.dim %ids, %c0 : memref<?xi32>");
  for (const char *index : {"%c0", "%c1", "%c4", "%tokens"})
    values.push_back({index, "index"});
  layerIndex = "%c0";
  int64_t count = d.between(1, 12);
  for (int64_t i = 0; i < count; ++i) {
    writeProgramOperation();
    writeNoise();
  }
  line("return }");
}

//===----------------------------------------------------------------------===//
// What nobody expects
//===----------------------------------------------------------------------===//

void ModuleWriter::writeNoise() {
  if (!d.perMille(noise) || nesting > 3)
    return;
  switch (d.below(5)) {
  case 0:
    return writeForeign();
  case 1:
    return writeNested(d.perMille(100) ? d.between(1, 40) : d.between(1, 3));
  case 2:
    return writeCasts();
  default:
    return writeAnyOperation();
  }
}

void ModuleWriter::writeNested(int64_t depth) {
  size_t visible = values.size();
  ++nesting;
  int64_t opened = 0;
  for (; opened < depth; ++opened) {
    switch (d.perMille(800) ? 0 : d.between(1, 3)) {
    case 1: {
      std::string condition = define("i1", "arith.constant true");
      line("scf.if " + condition + " {");
      break;
    }
    case 2:
      line("scf.execute_region {");
      line("cf.br ^next" + text(nextValue));
      line("^next" + text(nextValue++) + ":");
      break;
    default:
      line("scf.for %n" + text(nextValue++) + " = " +
           operand({"%c0", "index"}) + " to " + operand({"%c1", "index"}) +
           " step " + operand({"%c1", "index"}) + " {");
      values.push_back({"%n" + text(nextValue - 1), "index"});
    }
    if (inPrograms && d.perMille(200) && nesting < 3)
      writeProgramOperation();
  }
  if (inPrograms && nesting < 4 && d.perMille(800))
    writeProgramOperation();
  else
    writeNoise();
  // Regions of the second kind end with a terminator of their own; without, the
  // module is refused.
  for (; opened > 0; --opened)
    line("}");
  --nesting;
  values.resize(visible);
}

void ModuleWriter::writeCasts() {
  if (values.empty())
    return;
  Value value = d.pick(values);
  int64_t count = d.perMille(50) ? d.between(1, 100) : d.between(1, 4);
  const bool isMemRef = value.type.starts_with("memref");
  const bool isTensor = value.type.starts_with("tensor");
  for (int64_t i = 0; i < count; ++i) {
    std::string operation = isMemRef   ? "memref.cast "
                            : isTensor ? "tensor.cast "
                                       : "builtin.unrealized_conversion_cast ";
    value.name = define(value.type, operation + value.name + " : " +
                                        value.type + " to " + value.type);
  }
}

void ModuleWriter::writeForeign() {
  switch (d.below(12)) {
  case 0: {
    std::string pointer = define("!llvm.ptr", "llvm.mlir.zero : !llvm.ptr");
    define("i64", "llvm.load " + pointer + " : !llvm.ptr -> i64");
    return;
  }
  case 1:
    return line("llvm.inline_asm has_side_effects \"ud2\", \"\" : () -> ()");
  case 2:
    return line("func.call @" +
                d.pick<std::string>({"helper", "prefill", "sandwich_prefill"}) +
                "() : () -> ()");
  case 3:
    return line("\"vax.polynomial\"() : () -> ()");
  case 4: {
    std::string buffer =
        define("memref<4xf32>", "memref.alloc() : memref<4xf32>");
    return line("memref.dealloc " + buffer + " : memref<4xf32>");
  }
  case 5:
    define("vector<4xf32>", "arith.constant dense<1.0> : vector<4xf32>");
    return;
  case 6:
    return line("tile.zero 0");
  case 7: {
    std::string one = define("f32", "arith.constant 1.0 : f32");
    define("f32", "math." + d.pick<std::string>({"exp", "tanh", "sin", "erf"}) +
                      " " + one + " : f32");
    return;
  }
  case 8:
    return line("lm.weight @inner : tensor<8x8xf32> from [\"i\"]");
  case 9: {
    std::string index = define(
        "index", "arith.constant " +
                     text(d.pick<int64_t>({0, 2, -1, INT64_MAX})) + " : index");
    define("index", "arith.addi " + index + ", " + operand({index, "index"}) +
                        " : index");
    return;
  }
  case 10: {
    const std::string view_ =
        "memref<?x" +
        d.pick<std::string>({"4xi1", "4xi64", "0xf32", "2147483647xi64",
                             "9223372036854775807xf32"}) +
        ">";
    std::string buffer =
        define("memref<?xi8>", "memref.alloc(" + layer() + ") : memref<?xi8>");
    define(view_, "memref.view " + buffer + "[" + layer() + "][" + layer() +
                      "] : memref<?xi8> to " + view_);
    return;
  }
  default:
    return line("llvm.call @helper() : () -> ()");
  }
}

/// An operation of a model whose operands are there and fit.
void ModuleWriter::writeAnyOperation() {
  if (inPrograms)
    return writeProgramOperation();
  Value x = tensorOf(model.hidden);
  switch (d.below(14)) {
  case 0:
    rmsNorm(x, "final_norm", false);
    return;
  case 1:
    linear(x, "head", model.vocabulary, false);
    return;
  case 2:
    define(x.type,
           "lm.all_reduce " + operand(x) + " : " + x.type + " -> " + x.type);
    return;
  case 3:
    define(tensor(2 * model.hidden), "lm.all_gather " + operand(x) + " : " +
                                         x.type + " -> " +
                                         tensor(2 * model.hidden));
    return;
  case 4:
    define(x.type, "lm.deal_rows " + operand(x) + " among 2 : " + x.type);
    return;
  case 5:
    define(x.type, "lm.silu_mul " + operand(x) + ", " +
                       operand(tensorOf(model.hidden)) + " : " + x.type);
    return;
  case 6:
    matmul(x, "head", model.vocabulary, "none", false);
    return;
  case 7:
    stream = x.name;
    matmul(tensorOf(model.intermediate), "down_proj", model.hidden,
           "add_residual", true);
    return;
  case 8:
    define(x.type, "lm.gather_rows " + operand(x) + ", %rows : " + x.type +
                       ", tensor<?xi32> -> " + x.type);
    return;
  case 9:
    if (!isScheduled)
      matmul(x, "o_proj", model.hidden, "rotate_append_kv", true);
    return;
  case 10:
    if (auto other = anyTensor())
      define(other->type, "lm.add " + operand(*other) + ", " + operand(*other) +
                              " : " + other->type);
    return;
  case 12:
    define(x.type, "lm.gelu " + operand(x) +
                       d.pick<std::string>({" <exact>", " <tanh>"}) + " : " +
                       x.type);
    return;
  case 13:
    define(x.type, "lm.layer_norm " + operand(x) + ", " + symbol("final_norm") +
                       " bias " + symbol("final_norm") +
                       " epsilon 1.0e-5 : " + x.type);
    return;
  default:
    define(x.type, "lm.add " + operand(x) + ", " +
                       operand(tensorOf(model.hidden)) + " : " + x.type);
  }
}

std::string ModuleWriter::write() {
  model.headDim = d.pick<int64_t>({8, 16, 16});
  model.kvHeads = d.pick<int64_t>({1, 2});
  model.heads = model.kvHeads * d.pick<int64_t>({1, 2});
  model.hidden = d.pick<int64_t>({16, 32, 32, 48});
  model.intermediate = d.pick<int64_t>({32, 48, 64});
  model.vocabulary = d.pick<int64_t>({32, 48, 64});
  model.layers = d.pick<int64_t>({1, 2, 2, 3});
  model.bf16 = d.perMille(200);
  model.bias = d.perMille(200);
  model.norms = d.perMille(300);
  model.cacheElement = d.pick<std::string>({"f32", "f16", "bf16"});
  // Half of the modules are what could be; their structure differs.
  if (d.perMille(600))
    faults = d.pick<int64_t>({2, 5, 10, 30});
  if (d.perMille(600))
    noise = d.pick<int64_t>({20, 100, 400});
  int64_t kind = d.below(10);
  isScheduled = kind >= 4 && kind < 7;
  inPrograms = kind >= 7;
  // Choosing them takes long.
  hasSchedules = isScheduled && !d.perMille(50);
  line("module {");
  writeWeights();
  if (d.perMille(200))
    writeExtras();
  const bool hasBoth = d.perMille(300);
  for (const char *name : {"prefill", "decode"}) {
    if (!hasBoth && d.perMille(500) == (name[0] == 'p'))
      continue;
    if (inPrograms)
      writeProgram(name);
    else
      writePhase(name);
  }
  while (d.perMille(150))
    writeExtras();
  line("}");
  return std::move(out);
}

std::string sandwich::makeRandomModule(Decisions &decisions) {
  return ModuleWriter(decisions).write();
}
