//===- MeasuredNestsTest.cpp - What is measured is what ships -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares the nests of each matmul of a model, their epilogues and the sums
/// of split-k, with those of the program that measures it. Needs no CPU of the
/// target.
///
//===----------------------------------------------------------------------===//

#include "sandwich/Compiler/Lowering.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Tuning/MatmulProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace sandwich;

namespace {

constexpr int64_t threads = 2, maxTokens = 64;

/// A type as it matters to the code: where a buffer begins does not.
void print(raw_ostream &stream, Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!buffer || failed(buffer.getStridesAndOffset(strides, offset))) {
    stream << type;
    return;
  }
  stream << buffer.getElementType();
  for (auto [size, stride] : llvm::zip_equal(buffer.getShape(), strides))
    stream << " " << size << " by " << stride;
}

/// All operations of matmuls in `function` as they matter to the code: of
/// weights, what they are, not their names.
std::vector<std::string> describe(func::FuncOp function) {
  std::vector<std::string> all;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    // Partial sums are added by vectors.
    if (!isa<gemm::GemmDialect, vector::VectorDialect>(op->getDialect()))
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << op->getName();
    for (NamedAttribute attribute : op->getAttrs())
      // A residual that ranks deal counts as one that is added in all rows.
      if (attribute.getName() != "residual_ranks")
        stream << " " << attribute.getName().strref() << " = "
               << (isa<SymbolRefAttr>(attribute.getValue())
                       ? Attribute(UnitAttr::get(op->getContext()))
                       : attribute.getValue());
    for (Type type : op->getOperandTypes()) {
      stream << ", ";
      print(stream, type);
    }
    all.push_back(text);
  });
  return all;
}

struct Case {
  const char *name, *target;
  bool bf16;
  ModelConfig config;
  bool splitsK = false;
  int64_t ranks = 1;
};

ModelConfig decoder(bool biasAndNorms) {
  ModelConfig config;
  config.hiddenSize = 128;
  config.intermediateSize = 352;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.headDim = 32;
  config.vocabSize = 500;
  config.rmsNormEps = 1e-5;
  config.ropeTheta = 1e4;
  config.qkvBias = config.outputBias = config.qkNorm = biasAndNorms;
  return config;
}

ModelConfig encoder(bool geluTanh) {
  ModelConfig config = decoder(/*biasAndNorms=*/false);
  config.architecture = Architecture::Bert;
  config.qkvBias = config.outputBias = true;
  config.kvHeads = config.heads;
  config.maxPositionEmbeddings = 512;
  config.encoder = {
      .layerNormEps = 1e-12, .geluTanh = geluTanh, .positionRows = 512};
  config.embedding = EmbeddingConfig();
  return config;
}

void PrintTo(const Case &given, std::ostream *stream) { *stream << given.name; }

class MeasuredNests : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    registerSandwichDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  void toNests(ModuleOp module) {
    ScheduleToLoopsOptions options;
    options.target = GetParam().target;
    options.threads = threads;
    options.maxTokens = maxTokens;
    Status status = runPasses(module, [&](OpPassManager &manager) {
      buildScheduleToNestsPipeline(manager, options);
    });
    ASSERT_TRUE(status) << status.error().message;
  }

  /// Of the program that measures a matmul of `shape` with the schedules of
  /// `table`.
  std::vector<std::string> measured(const MatmulShape &shape,
                                    const ScheduleTable &table) {
    MatmulProgram program{.shape = shape,
                          .isa = table.front().schedule.microKernel.isa,
                          .threads = threads,
                          .maxRows = maxTokens,
                          .layers = GetParam().config.layers};
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    addMatmulProgram(*module, program, table, ScheduleNumbers::Constants,
                     {0, maxTokens});
    SymbolTableCollection symbols;
    module->walk([&](gemm::MatmulOp matmul) {
      EXPECT_GE(MatmulWorkspace::of(program, table).partialSumsBytes,
                matmul.getPartialSumsBytes(maxTokens, symbols));
    });
    toNests(*module);
    auto weight = module->lookupSymbol<lm::WeightOp>("weight");
    EXPECT_EQ(program.weightPlace(),
              (std::array{static_cast<int64_t>(*weight.getOffset()),
                          static_cast<int64_t>(*weight.getLayerStride())}));
    EXPECT_EQ(program.storedColumns(), weight.getStoredRows());
    return describe(*module->getOps<func::FuncOp>().begin());
  }

  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

} // namespace

TEST_P(MeasuredNests, AreThoseOfTheModel) {
  const Case &given = GetParam();
  Type element = given.bf16 ? Type(BFloat16Type::get(&context))
                            : Type(Float32Type::get(&context));
  OwningOpRef<ModuleOp> module =
      buildModel(&context, given.config, element, element);
  ModelToScheduleOptions options;
  options.target = given.target;
  options.threads = threads;
  lm::PartitionOptions partition;
  partition.ranks = given.ranks;
  Status status = runPasses(*module, [&](OpPassManager &manager) {
    manager.addPass(lm::createPartition(partition));
    buildModelToSchedulePipeline(manager, options);
  });
  ASSERT_TRUE(status) << status.error().message;

  llvm::StringMap<std::vector<std::string>> expected;
  std::set<Epilogue> epilogues;
  SymbolTableCollection symbols;
  module->walk([&](gemm::MatmulOp matmul) {
    const MatmulShape shape = gemm::getShape(matmul, symbols);
    epilogues.insert(shape.epilogue.kind);
    ScheduleTable table;
    for (auto [rows, schedule] :
         llvm::zip_equal(matmul.getSchedules()->getMaxRows(),
                         matmul.getSchedules()->getSchedules()))
      table.push_back({rows, schedule.getSchedule()});
    if (given.splitsK) {
      for (ScheduleTableEntry &entry : table)
        entry.schedule.threads = {1, 1, threads};
      matmul.setSchedulesAttr(gemm::getTableAttr(&context, table));
    }
    llvm::append_range(
        expected[matmul->getParentOfType<func::FuncOp>().getName()],
        measured(shape, table));
  });
  EXPECT_EQ(
      epilogues,
      given.config.encodes()
          ? (std::set{Epilogue::None, Epilogue::AddResidual,
                      given.config.encoder->geluTanh ? Epilogue::GeluTanh
                                                     : Epilogue::GeluExact})
          : (std::set{Epilogue::None, Epilogue::AddResidual, Epilogue::SiluMul,
                      Epilogue::RotateAppendKV}));

  toNests(*module);
  size_t functions = 0;
  for (auto function : module->getOps<func::FuncOp>()) {
    SCOPED_TRACE(function.getName().str());
    const std::vector<std::string> shipped = describe(function),
                                   &timed = expected[function.getName()];
    ASSERT_EQ(shipped.size(), timed.size());
    for (auto [ships, isTimed] : llvm::zip_equal(shipped, timed))
      EXPECT_EQ(ships, isTimed);
    EXPECT_FALSE(shipped.empty());
    EXPECT_EQ(llvm::any_of(shipped,
                           [](const std::string &operation) {
                             return StringRef(operation).starts_with("vector.");
                           }),
              given.splitsK);
    ++functions;
  }
  EXPECT_EQ(functions, expected.size());
}

INSTANTIATE_TEST_SUITE_P(
    Models, MeasuredNests,
    testing::Values(
        Case{"DecoderAVX2", "x86-64-avx2", false, decoder(false)},
        Case{"DecoderWidensBF16", "x86-64-avx2", true, decoder(true)},
        Case{"DecoderAVX512BF16", "x86-64-avx512-bf16", true, decoder(true)},
        Case{"DecoderAMX", "x86-64-amx", true, decoder(false)},
        Case{"DecoderSplitsK", "x86-64-avx2", false, decoder(false), true},
        Case{"DecoderAMXSplitsK", "x86-64-amx", true, decoder(true), true},
        Case{"DecoderRanks", "x86-64-avx512-bf16", true, decoder(true), false,
             2},
        Case{"EncoderAVX2", "x86-64-avx2", false, encoder(false)},
        Case{"EncoderAVX512", "x86-64-avx512", false, encoder(true)},
        Case{"EncoderAMX", "x86-64-amx", true, encoder(true)}),
    [](const testing::TestParamInfo<Case> &info) {
      return std::string(info.param.name);
    });
