//===- LoopsToLLVM.cpp - From loops to the LLVM dialect -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sandwich;

void sandwich::buildLoopsToLLVMPipeline(OpPassManager &manager,
                                        const LoopsToLLVMOptions &options) {
  manager.addPass(createPhaseToLLVM());
  manager.addPass(createTileToLLVM());
  manager.addPass(createStripModel());
  manager.addPass(createApproximateMath());
  if (options.expandBF16) {
    arith::ArithEmulateUnsupportedFloatsOptions emulate;
    emulate.sourceTypeStrs = {"bf16"};
    manager.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
    arith::ArithExpandOpsPassOptions expand;
    expand.includeBf16 = true;
    manager.addPass(arith::createArithExpandOpsPass(expand));
  }
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());

  VectorTransferToSCFOptions transfers;
  transfers.enableFullUnroll();
  manager.addPass(createConvertVectorToSCFPass(transfers));
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  ConvertVectorToLLVMPassOptions toLLVM;
  toLLVM.x86Vector = true;
  manager.addPass(createConvertVectorToLLVMPass(toLLVM));
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  if (options.expandBF16)
    manager.addPass(createMoveBF16());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}
