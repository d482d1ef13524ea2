//===- ModelBuilderTest.cpp - Tests of model construction -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Frontend/ModelBuilder.h"
#include "sandwich/Dialect/LM/IR/LM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace sandwich;

namespace {

/// The part of the model that `op` says it is of.
std::string part(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return name ? name.getName().str() : "";
}

TEST(ModelBuilder, OperationsNameTheirPartOfTheModel) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, lm::LMDialect,
                      scf::SCFDialect>();
  ModelConfig config;
  config.hiddenSize = config.intermediateSize = 32;
  config.layers = config.heads = config.kvHeads = 2;
  config.headDim = 16;
  config.vocabSize = 48;
  config.rmsNormEps = 1e-5;
  config.ropeTheta = 1e4;
  OwningOpRef<ModuleOp> module =
      buildModel(&context, config, Float32Type::get(&context),
                 BFloat16Type::get(&context));
  ASSERT_TRUE(succeeded(verify(*module)));

  auto weight = module->lookupSymbol<lm::WeightOp>("layers.mlp.down_proj");
  ASSERT_TRUE(weight);
  EXPECT_EQ(part(weight), "model.layers.{}.mlp.down_proj.weight");
  EXPECT_EQ(part(module->lookupSymbol("decode")), "decode");
  for (auto function : module->getOps<func::FuncOp>()) {
    auto cache = dyn_cast<lm::KVCacheType>(function.getArgumentTypes().back());
    ASSERT_TRUE(cache);
    EXPECT_TRUE(cache.getElementType().isBF16());
  }
  int linears = 0;
  module->walk([&](Operation *op) {
    EXPECT_NE(part(op), "") << op->getName().getStringRef().str();
    if (auto linear = dyn_cast<lm::LinearOp>(op)) {
      EXPECT_EQ(part(op), linear.getWeight());
      ++linears;
    }
    if (isa<lm::AppendKVOp>(op)) {
      EXPECT_EQ(part(op), "layers.self_attn");
    }
    if (isa<lm::GatherRowsOp>(op)) {
      EXPECT_EQ(part(op), op->getParentOfType<func::FuncOp>().getName());
    }
  });
  // Query, key, value, output, gate, up, down and the head of two phases.
  EXPECT_EQ(linears, 16);
}

} // namespace
