//===- TileToLLVM.cpp - Tile registers as instructions --------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace sandwich {
#define GEN_PASS_DEF_TILETOLLVM
#include "sandwich/Conversion/Passes.h.inc"
} // namespace sandwich

using namespace mlir;
using namespace sandwich;

namespace {

/// What `ldtilecfg` reads, as 64-bit words: a byte for the palette, from byte
/// 16 on two bytes for each tile's bytes in a row, from byte 48 on one for its
/// rows. The second word of rows' bytes is of the inputs' and weights' tiles.
constexpr int64_t configurationWords = 8;
constexpr int64_t rowBytesWords[] = {2, 3};
constexpr int64_t rowsWord = 6;
constexpr uint64_t wholeRows = 0x0040004000400040;
constexpr uint64_t halfInputRows = 0x0040004000200020;

/// Rewrites the operations of one function.
class FunctionLowering {
public:
  /// `configuring` are the functions that configure tiles, or call one.
  FunctionLowering(func::FuncOp function,
                   const llvm::DenseSet<StringAttr> &configuring)
      : function(function), configuring(configuring),
        b(function.getLoc(), function.getContext()) {}

  void run();

private:
  void lower(tile::ConfigureOp op);
  /// What was configured is gone behind a call of what configures tiles.
  void forgetBehind(func::CallOp call);
  void lower(tile::ZeroOp op) {
    call("llvm.x86.tilezero", tileNumber(op.getTile()));
  }
  void lower(tile::LoadOp op) {
    auto [address, stride] = getPlace(op);
    call(op.getStreaming() ? "llvm.x86.tileloaddt164" : "llvm.x86.tileloadd64",
         {tileNumber(op.getTile()), address, stride});
  }
  void lower(tile::StoreOp op) {
    auto [address, stride] = getPlace(op);
    call("llvm.x86.tilestored64", {tileNumber(op.getTile()), address, stride});
  }
  void lower(tile::MultiplyOp op) {
    call(op.getProducts() == tile::Products::BF16 ? "llvm.x86.tdpbf16ps"
                                                  : "llvm.x86.tdpbsud",
         {tileNumber(op.getSums()), tileNumber(op.getInput()),
          tileNumber(op.getWeight())});
  }

  /// The function's configuration, all zeros but what never changes; made where
  /// the function begins. A copy of what the thread's registers have.
  Value getConfiguration();
  Value word(uint64_t value) {
    return arith::ConstantOp::create(
        b, b.getI64IntegerAttr(static_cast<int64_t>(value)));
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value tileNumber(uint32_t number) {
    return LLVM::ConstantOp::create(b, b.getI8Type(),
                                    b.getI8IntegerAttr(number));
  }
  void call(StringRef intrinsic, ValueRange arguments) {
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr(intrinsic), arguments);
  }
  /// A pointer to the first row, and bytes from one to the next as i64.
  template <typename Op> std::pair<Value, Value> getPlace(Op op);
  Value toPointer(Value buffer, Value element);

  func::FuncOp function;
  const llvm::DenseSet<StringAttr> &configuring;
  ImplicitLocOpBuilder b;
  Value configuration;
};

} // namespace

/// The address of `element` of `buffer`, which it counts from the beginning.
Value FunctionLowering::toPointer(Value buffer, Value element) {
  int64_t bytes =
      cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() / 8;
  Value address = arith::AddIOp::create(
      b, memref::ExtractAlignedPointerAsIndexOp::create(b, buffer),
      arith::MulIOp::create(b, element, index(bytes)));
  Value bits = arith::IndexCastOp::create(b, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                                  bits);
}

template <typename Op>
std::pair<Value, Value> FunctionLowering::getPlace(Op op) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, op.getBase());
  auto type = cast<MemRefType>(op.getBase().getType());
  Value element = metadata.getOffset();
  for (auto [position, stride] :
       llvm::zip_equal(op.getIndices(), metadata.getStrides()))
    element = arith::AddIOp::create(b, element,
                                    arith::MulIOp::create(b, position, stride));
  Value stride = op.getStride();
  if (!stride)
    stride = metadata.getStrides()[type.getRank() - 2];
  Value strideBytes = arith::MulIOp::create(
      b, stride, index(type.getElementTypeBitWidth() / 8));
  return {toPointer(op.getBase(), element),
          arith::IndexCastOp::create(b, b.getI64Type(), strideBytes)};
}

Value FunctionLowering::getConfiguration() {
  if (configuration)
    return configuration;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  configuration = memref::AllocaOp::create(
      b, MemRefType::get({configurationWords}, b.getI64Type()),
      b.getI64IntegerAttr(cacheLineBytes));
  static_assert(tile::rowBytes == 64 && tile::numTiles == 8);
  for (int64_t i = 0; i < configurationWords; ++i) {
    uint64_t value = i == 0 ? 1 : 0;
    if (llvm::is_contained(rowBytesWords, i))
      value = wholeRows;
    memref::StoreOp::create(b, word(value), configuration, index(i));
  }
  // Behind the last use; a program has one block.
  for (Block &block : function.getBody())
    if (auto end = dyn_cast<func::ReturnOp>(block.back())) {
      b.setInsertionPoint(end);
      call("llvm.x86.tilerelease", {});
    }
  return configuration;
}

void FunctionLowering::lower(tile::ConfigureOp op) {
  static_assert(tile::firstWeightTile == 6 && tile::firstInputTile == 4 &&
                tile::maxRows == 16);
  Value buffer = getConfiguration();
  Value rows = arith::IndexCastOp::create(b, b.getI64Type(), op.getRows());
  // Differs by the rows of weights also where only the bytes of rows do.
  Value wanted = arith::OrIOp::create(
      b, word(op.getHalfInputs() ? 0x0808000000000000 : 0x1010000000000000),
      arith::MulIOp::create(b, rows, word(0x010101010101)));
  Value had = memref::LoadOp::create(b, buffer, index(rowsWord));
  Value differs =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, had, wanted);
  auto conditional = scf::IfOp::create(b, differs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(conditional.thenBlock());
  memref::StoreOp::create(b, wanted, buffer, index(rowsWord));
  memref::StoreOp::create(b,
                          word(op.getHalfInputs() ? halfInputRows : wholeRows),
                          buffer, index(rowBytesWords[1]));
  call("llvm.x86.ldtilecfg", toPointer(buffer, index(0)));
}

void FunctionLowering::forgetBehind(func::CallOp call) {
  b.setInsertionPointAfter(call);
  Value none = word(0);
  memref::StoreOp::create(b, none, configuration, index(rowsWord));
}

void FunctionLowering::run() {
  SmallVector<Operation *> operations;
  SmallVector<func::CallOp> calls;
  function.walk([&](Operation *op) {
    if (isa_and_present<tile::TileDialect>(op->getDialect()))
      operations.push_back(op);
    if (auto call = dyn_cast<func::CallOp>(op);
        call && configuring.contains(call.getCalleeAttr().getAttr()))
      calls.push_back(call);
  });
  for (Operation *op : operations) {
    b.setLoc(op->getLoc());
    b.setInsertionPoint(op);
    llvm::TypeSwitch<Operation *>(op)
        .Case<tile::ConfigureOp, tile::ZeroOp, tile::LoadOp, tile::StoreOp,
              tile::MultiplyOp>([&](auto known) { lower(known); });
    op->erase();
  }
  if (configuration)
    llvm::for_each(calls, [&](func::CallOp call) { forgetBehind(call); });
}

/// The functions of `module` that configure tiles, and give them back, or call
/// one that does.
static llvm::DenseSet<StringAttr> findConfiguring(ModuleOp module) {
  llvm::DenseSet<StringAttr> configuring;
  const auto isConfiguring = [&](func::FuncOp function) {
    return function
        .walk([&](Operation *op) {
          auto call = dyn_cast<func::CallOp>(op);
          return isa<tile::ConfigureOp>(op) ||
                         (call &&
                          configuring.contains(call.getCalleeAttr().getAttr()))
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  for (bool isNew = true; isNew;) {
    const size_t before = configuring.size();
    for (auto function : module.getOps<func::FuncOp>())
      if (!configuring.contains(function.getSymNameAttr()) &&
          isConfiguring(function))
        configuring.insert(function.getSymNameAttr());
    isNew = configuring.size() > before;
  }
  return configuring;
}

namespace {

struct TileToLLVM : public sandwich::impl::TileToLLVMBase<TileToLLVM> {
  void runOnOperation() override {
    const llvm::DenseSet<StringAttr> configuring =
        findConfiguring(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        FunctionLowering(function, configuring).run();
    WalkResult left = getOperation().walk([](Operation *op) -> WalkResult {
      if (isa_and_present<tile::TileDialect>(op->getDialect()))
        return op->emitOpError("is in no function, whose thread has tiles");
      return WalkResult::advance();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
