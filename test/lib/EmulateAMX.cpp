//===- EmulateAMX.cpp - AMX without AMX -----------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;

namespace {

/// The state of a thread, as 32-bit words: the rows of eight tiles, how many of
/// them the configured tiles have, and the words of an input's row, which are
/// the rows of a weight's.
constexpr int64_t rowWords = tile::rowBytes / 4;
constexpr int64_t tileWords = tile::maxRows * rowWords;
constexpr int64_t rowsWord = tile::numTiles * tileWords;
constexpr int64_t inputWordsWord = rowsWord + 1;
constexpr int64_t stateWords = inputWordsWord + 1;

/// Rewrites the operations of one function, whose thread's state is `state`.
class Emulator {
public:
  Emulator(func::FuncOp function, Value state)
      : function(function), state(state),
        b(function.getLoc(), function.getContext()),
        rowType(VectorType::get({rowWords}, b.getI32Type())),
        sumsType(VectorType::get({rowWords}, b.getF32Type())) {}

  void run();

private:
  void emulate(tile::ConfigureOp op);
  void emulate(tile::ZeroOp op);
  void emulate(tile::LoadOp op);
  void emulate(tile::StoreOp op);
  void emulate(tile::MultiplyOp op);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value splat(uint32_t bits) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(rowType, APInt(32, bits)));
  }
  void forRows(Value rows, llvm::function_ref<void(Value row)> body);
  /// The state's word `word`.
  Value loadState(int64_t word);
  /// How many rows the tile has.
  Value rowsOf(uint32_t tile) {
    return loadState(tile < tile::firstWeightTile ? rowsWord : inputWordsWord);
  }
  /// The word of the state with column `column` of the tile's row.
  Value place(uint32_t tile, Value row, Value column = Value());
  Value loadRow(uint32_t tile, Value row) {
    return vector::LoadOp::create(b, rowType, state, place(tile, row));
  }
  void storeRow(Value value, uint32_t tile, Value row) {
    vector::StoreOp::create(b, value, state, place(tile, row));
  }
  /// Where row `row` of a tile at the operation's indices begins.
  template <typename Op> SmallVector<Value> rowPosition(Op op, Value row);
  /// `sums` and the products of one word's elements.
  Value multiplyBF16(Value sums, Value input, Value weight);
  Value multiplyI8U8(Value sums, Value input, Value weight);

  func::FuncOp function;
  Value state;
  ImplicitLocOpBuilder b;
  VectorType rowType, sumsType;
};

} // namespace

void Emulator::forRows(Value rows, llvm::function_ref<void(Value row)> body) {
  auto loop = scf::ForOp::create(b, index(0), rows, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value Emulator::loadState(int64_t word) {
  Value value = memref::LoadOp::create(b, state, index(word));
  return arith::IndexCastOp::create(b, b.getIndexType(), value);
}

Value Emulator::place(uint32_t tile, Value row, Value column) {
  Value word =
      arith::AddIOp::create(b, index(tile * tileWords),
                            arith::MulIOp::create(b, row, index(rowWords)));
  return column ? arith::AddIOp::create(b, word, column) : word;
}

void Emulator::emulate(tile::ConfigureOp op) {
  Value rows = arith::IndexCastOp::create(b, b.getI32Type(), op.getRows());
  memref::StoreOp::create(b, rows, state, index(rowsWord));
  const int64_t inputWords = op.getHalfInputs() ? rowWords / 2 : rowWords;
  memref::StoreOp::create(b, arith::ConstantIntOp::create(b, inputWords, 32),
                          state, index(inputWordsWord));
  // No number: nobody may rely on what tiles held.
  Value nothing = splat(0xffffffff);
  forRows(index(tile::numTiles * tile::maxRows),
          [&](Value row) { storeRow(nothing, 0, row); });
}

void Emulator::emulate(tile::ZeroOp op) {
  Value zero = splat(0);
  forRows(rowsOf(op.getTile()),
          [&](Value row) { storeRow(zero, op.getTile(), row); });
}

template <typename Op>
SmallVector<Value> Emulator::rowPosition(Op op, Value row) {
  SmallVector<Value> position(op.getIndices());
  Value stride = op.getStride();
  Value &moved = stride ? position.back() : position[position.size() - 2];
  if (stride)
    row = arith::MulIOp::create(b, row, stride);
  moved = arith::AddIOp::create(b, moved, row);
  return position;
}

/// A row as elements of a buffer.
static VectorType getElementsType(Value buffer) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return VectorType::get({tile::rowBytes * 8 / element.getIntOrFloatBitWidth()},
                         element);
}

void Emulator::emulate(tile::LoadOp op) {
  VectorType type = getElementsType(op.getBase());
  forRows(rowsOf(op.getTile()), [&](Value row) {
    SmallVector<Value> position = rowPosition(op, row);
    // Integers as soon as they are there: what moves vectors of bf16, or masks
    // them, calls a library on CPUs that have none.
    const auto load = [&](int64_t words) -> Value {
      const int64_t elements = type.getNumElements() * words / rowWords;
      Value loaded = vector::LoadOp::create(
          b, VectorType::get({elements}, type.getElementType()), op.getBase(),
          position);
      return b.createOrFold<vector::BitCastOp>(
          VectorType::get({words}, rowType.getElementType()), loaded);
    };
    if (op.getTile() != tile::firstInputTile &&
        op.getTile() != tile::firstInputTile + 1) {
      storeRow(load(rowWords), op.getTile(), row);
      return;
    }
    // A row of inputs is whole or half.
    Value isWhole =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                              loadState(inputWordsWord), index(rowWords));
    auto branch =
        scf::IfOp::create(b, rowType, isWhole, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, load(rowWords));
      b.setInsertionPointToStart(branch.elseBlock());
      Value row = vector::InsertStridedSliceOp::create(
          b, load(rowWords / 2), splat(0), ArrayRef<int64_t>{0},
          ArrayRef<int64_t>{1});
      scf::YieldOp::create(b, row);
    }
    storeRow(branch.getResult(0), op.getTile(), row);
  });
}

void Emulator::emulate(tile::StoreOp op) {
  forRows(rowsOf(op.getTile()), [&](Value row) {
    Value elements = b.createOrFold<vector::BitCastOp>(
        getElementsType(op.getBase()), loadRow(op.getTile(), row));
    vector::StoreOp::create(b, elements, op.getBase(), rowPosition(op, row));
  });
}

Value Emulator::multiplyBF16(Value sums, Value input, Value weight) {
  // The bits of a bf16 are the upper half of an f32's.
  auto widen = [&](Value pairs, bool upper) -> Value {
    Value bits = upper
                     ? Value(arith::AndIOp::create(b, pairs, splat(0xffff0000)))
                     : Value(arith::ShLIOp::create(b, pairs, splat(16)));
    return arith::BitcastOp::create(b, sumsType, bits);
  };
  sums = arith::BitcastOp::create(b, sumsType, sums);
  for (bool upper : {false, true})
    sums = vector::FMAOp::create(b, widen(input, upper), widen(weight, upper),
                                 sums);
  return arith::BitcastOp::create(b, rowType, sums);
}

Value Emulator::multiplyI8U8(Value sums, Value input, Value weight) {
  for (uint32_t byte = 0; byte < 4; ++byte) {
    auto atTop = [&](Value bytes) -> Value {
      return arith::ShLIOp::create(b, bytes, splat(24 - 8 * byte));
    };
    Value signedByte = arith::ShRSIOp::create(b, atTop(input), splat(24));
    Value unsignedByte = arith::ShRUIOp::create(b, atTop(weight), splat(24));
    sums = arith::AddIOp::create(
        b, sums, arith::MulIOp::create(b, signedByte, unsignedByte));
  }
  return sums;
}

void Emulator::emulate(tile::MultiplyOp op) {
  forRows(rowsOf(op.getSums()), [&](Value row) {
    auto loop = scf::ForOp::create(b, index(0), loadState(inputWordsWord),
                                   index(1), loadRow(op.getSums(), row));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value word = loop.getInductionVar();
      Value input =
          memref::LoadOp::create(b, state, place(op.getInput(), row, word));
      input = vector::BroadcastOp::create(b, rowType, input);
      Value weight = loadRow(op.getWeight(), word);
      Value sums = loop.getRegionIterArg(0);
      sums = op.getProducts() == tile::Products::BF16
                 ? multiplyBF16(sums, input, weight)
                 : multiplyI8U8(sums, input, weight);
      scf::YieldOp::create(b, sums);
    }
    storeRow(loop.getResult(0), op.getSums(), row);
  });
}

void Emulator::run() {
  SmallVector<Operation *> operations;
  function.walk([&](Operation *op) {
    if (isa_and_present<tile::TileDialect>(op->getDialect()))
      operations.push_back(op);
  });
  for (Operation *op : operations) {
    b.setLoc(op->getLoc());
    b.setInsertionPoint(op);
    llvm::TypeSwitch<Operation *>(op)
        .Case<tile::ConfigureOp, tile::ZeroOp, tile::LoadOp, tile::StoreOp,
              tile::MultiplyOp>([&](auto known) { emulate(known); });
    op->erase();
  }
}

/// What attention by tiles asks of AVX-512 by name, in f32 on all lanes: of the
/// first operand the distance to the largest integer that is not larger, or the
/// first times two to the power of that integer of the second.
static void emulateAVX512(LLVM::CallIntrinsicOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value x = op.getArgs()[0];
  auto floor = [&](Value value) -> Value {
    return math::FloorOp::create(b, value);
  };
  Value result;
  if (op.getIntrin() == "llvm.x86.avx512.mask.reduce.ps.512") {
    result = arith::SubFOp::create(b, x, floor(x));
  } else if (op.getIntrin() == "llvm.x86.avx512.mask.scalef.ps.512") {
    auto constant = [&](float value) -> Value {
      auto type = cast<VectorType>(x.getType());
      return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
    };
    // Normal powers in two steps, so that small ones become zero.
    Value exponent =
        arith::MaxNumFOp::create(b, floor(op.getArgs()[1]), constant(-250));
    Value half = floor(arith::MulFOp::create(b, exponent, constant(0.5f)));
    auto power = [&](Value integer) -> Value {
      auto bits = VectorType::get(cast<VectorType>(x.getType()).getShape(),
                                  b.getI32Type());
      auto splat = [&](int32_t value) -> Value {
        return arith::ConstantOp::create(
            b, DenseElementsAttr::get(bits, APInt(32, value)));
      };
      Value biased = arith::AddIOp::create(
          b, arith::FPToSIOp::create(b, bits, integer), splat(127));
      return arith::BitcastOp::create(
          b, x.getType(), arith::ShLIOp::create(b, biased, splat(23)));
    };
    Value rest = arith::SubFOp::create(b, exponent, half);
    result = arith::MulFOp::create(b, arith::MulFOp::create(b, x, power(half)),
                                   power(rest));
  } else {
    return;
  }
  op.getResult(0).replaceAllUsesWith(result);
  op.erase();
}

namespace {

/// Turns operations on tiles into loops over rows of memory, so that a program
/// for AMX can be executed, slowly, where there is no AMX. A function that
/// nobody in the module calls has the state of its thread on its stack; others
/// get it from their callers. Intrinsics of AVX-512 go as well.
struct EmulateAMX : PassWrapper<EmulateAMX, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmulateAMX)

  StringRef getArgument() const override { return "test-emulate-amx"; }
  StringRef getDescription() const override {
    return "Replace AMX by vectors, to run it on any CPU";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, math::MathDialect, memref::MemRefDialect,
                scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk([](LLVM::CallIntrinsicOp op) { emulateAVX512(op); });
    llvm::SetVector<func::FuncOp> users;
    WalkResult found = module.walk([&](Operation *op) -> WalkResult {
      if (!isa_and_present<tile::TileDialect>(op->getDialect()))
        return WalkResult::advance();
      auto function = op->getParentOfType<func::FuncOp>();
      if (!function)
        return op->emitOpError("is in no function, whose thread has tiles");
      users.insert(function);
      return WalkResult::advance();
    });
    if (found.wasInterrupted())
      return signalPassFailure();
    llvm::DenseMap<func::FuncOp, SmallVector<func::CallOp>> calls;
    SymbolTable symbols(module);
    module.walk([&](func::CallOp call) {
      if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()))
        calls[callee].push_back(call);
    });
    for (size_t i = 0; i < users.size(); ++i)
      for (func::CallOp call : calls.lookup(users[i]))
        users.insert(call->getParentOfType<func::FuncOp>());

    auto type = MemRefType::get({stateWords},
                                IntegerType::get(module.getContext(), 32));
    llvm::DenseMap<func::FuncOp, Value> states;
    for (func::FuncOp function : users) {
      Block &entry = function.getBody().front();
      if (calls.contains(function)) {
        unsigned last = function.getNumArguments();
        if (failed(function.insertArgument(last, type, {}, function.getLoc())))
          return signalPassFailure();
        states[function] = function.getArgument(last);
      } else {
        OpBuilder builder(&entry, entry.begin());
        Location loc = function.getLoc();
        Value state = memref::AllocaOp::create(builder, loc, type,
                                               builder.getI64IntegerAttr(64));
        // Without rows, whoever forgets to configure computes nothing.
        Value none = arith::ConstantIntOp::create(builder, loc, 0, 32);
        Value place = arith::ConstantIndexOp::create(builder, loc, rowsWord);
        memref::StoreOp::create(builder, loc, none, state, place);
        states[function] = state;
      }
    }
    for (func::FuncOp function : users) {
      for (func::CallOp call : calls.lookup(function))
        call.getOperandsMutable().append(
            states[call->getParentOfType<func::FuncOp>()]);
      Emulator(function, states[function]).run();
    }
  }
};

} // namespace

std::unique_ptr<Pass> sandwich::test::createEmulateAMX() {
  return std::make_unique<EmulateAMX>();
}

void sandwich::test::registerTestPasses() { PassRegistration<EmulateAMX>(); }
