//===- EffectsTest.cpp - What operations read and write -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/Gemm/IR/Gemm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

using namespace mlir;
using namespace sandwich;

namespace {

class Effects : public testing::Test {
protected:
  Effects() {
    context.loadDialect<func::FuncDialect, lm::LMDialect, gemm::GemmDialect>();
  }

  /// The effects of the first operation of the function in `source`, each as
  /// "read" or "write" with the number of its operand.
  std::set<std::string> of(const std::string &source) {
    module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module);
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    Operation &op = function.getBody().front().front();
    SmallVector<MemoryEffects::EffectInstance> effects;
    cast<MemoryEffectOpInterface>(op).getEffects(effects);
    std::set<std::string> result;
    for (const MemoryEffects::EffectInstance &effect : effects) {
      const char *kind =
          isa<MemoryEffects::Read>(effect.getEffect()) ? "read " : "write ";
      unsigned number =
          effect.getEffectValue<OpOperand *>()->getOperandNumber();
      result.insert(kind + std::to_string(number));
    }
    return result;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

const std::string matmul = R"(
  lm.weight @w : tensor<64x64xf32> from ["w"]
  func.func @f(%x: memref<?x64xf32>, %r: memref<?x64xf32>,
               %y: memref<?x64xf32>) {
    gemm.matmul %x, @w epilogue(<add_residual>)
      residual(%r : memref<?x64xf32>) into RESULT
      : memref<?x64xf32> into memref<?x64xf32>
    return
  }
)";

std::string matmulInto(const std::string &destination) {
  std::string source = matmul;
  return source.replace(source.find("RESULT"), 6, destination);
}

TEST_F(Effects, DestinationIsWrittenAndOtherOperandsAreRead) {
  EXPECT_EQ(of(matmulInto("%y")),
            (std::set<std::string>{"read 0", "read 1", "write 2"}));
}

TEST_F(Effects, ResidualThatIsOverwrittenIsReadBefore) {
  EXPECT_EQ(of(matmulInto("%r")),
            (std::set<std::string>{"read 0", "read 1", "write 2"}));
}

TEST_F(Effects, KeysAndValuesAreWrittenToTheCache) {
  EXPECT_EQ(of(R"(
    func.func @f(%k: tensor<?x32xf32>, %layer: index, %s: tensor<?xi32>,
        %c: !lm.kv_cache<layers = 1, heads = 1, head_dim = 32, f32>) {
      lm.append_kv %k, %k to %c[%layer] slots %s
        : tensor<?x32xf32>, !lm.kv_cache<layers = 1, heads = 1, head_dim = 32,
          f32>, tensor<?xi32>
      return
    }
  )"),
            (std::set<std::string>{"write 2"}));
}

TEST_F(Effects, KeysAndValuesAreReadFromBuffers) {
  EXPECT_EQ(of(R"(
    func.func @f(%k: memref<?x32xf32>, %layer: index, %s: memref<?xi32>,
        %c: memref<?x1x1x2x512xf32>) {
      lm.append_kv %k, %k to %c[%layer] slots %s
        : memref<?x32xf32>, memref<?x1x1x2x512xf32>, memref<?xi32>
      return
    }
  )"),
            (std::set<std::string>{"read 0", "read 1", "write 2", "read 4"}));
}

} // namespace
