//===- Raiser.h - One function raised to vectors -------------- -*- C++ -*-===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes functions of dialect kernel, in which everything is memory, to
/// structured control flow over values. Variables whose places are known become
/// values that loops carry; calls are inlined; pointers become a memref and an
/// offset; a branch that ends early takes the rest of its block into the other
/// one.
///
//===----------------------------------------------------------------------===//

#ifndef SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_RAISER_H
#define SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_RAISER_H

#include "IntrinsicLowering.h"

#include "sandwich/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <set>
#include <variant>

namespace sandwich::raising {

struct Slot;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// `type`, of a number or a vector, without signs.
mlir::Type lowered(mlir::Type type);
/// Whether numbers of `type`, or its lanes, have no sign.
bool isUnsigned(mlir::Type type);
/// The numbers that memory of `type` is made of; null if there are several
/// kinds, or pointers.
mlir::Type elementOf(mlir::Type type);
/// What `pointer` points to.
mlir::Type objectOf(mlir::Value pointer);
/// `location` of a value with the name of the variable that it is one of.
mlir::Location named(const Slot &slot, mlir::Location location);
/// By how many objects `offset` goes on, if that is a constant.
std::optional<int64_t> knownIndex(kernel::OffsetOp offset);
/// Whether a variable of `type` can be values, one for each number in it.
bool canBeSlots(mlir::Type type);
/// Calls `visit` with the path and the type of each number in `type`.
void visitLeaves(
    mlir::Type type, const std::string &path,
    llvm::function_ref<void(const std::string &, mlir::Type)> visit);
/// `value` with as many bits as `type`, as which they are read.
mlir::Value bitcast(mlir::OpBuilder &builder, mlir::Location location,
                    mlir::Value value, mlir::Type type);

//===----------------------------------------------------------------------===//
// What a value of dialect kernel becomes
//===----------------------------------------------------------------------===//

/// A variable that is a value, or a member of one that is a structure: no
/// place.
struct Slot {
  mlir::Operation *variable = nullptr;
  std::string path;

  bool operator<(const Slot &other) const {
    return std::tie(variable, path) < std::tie(other.variable, other.path);
  }
};

/// A number or a vector, a place in memory, or a slot.
using Datum = std::variant<mlir::Value, MemoryPlace, Slot>;

/// Of arguments of a function, while it is raised: integers without a sign.
inline constexpr llvm::StringLiteral unsignedName = "kernel.unsigned";

/// What slots hold.
using Environment = std::map<Slot, Datum>;

/// Those of the module: while it is raised, others have the same names.
using Functions = llvm::StringMap<kernel::FuncOp>;

/// Raises one function.
class Raiser {
public:
  Raiser(kernel::FuncOp function, const Functions &functions,
         mlir::OpBuilder &builder)
      : function(function), functions(functions), builder(builder) {}

  /// The function that it becomes, before `function`; an error names what it
  /// stops at.
  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  using Mapping = llvm::DenseMap<mlir::Value, Datum>;

  /// How a sequence of operations ended: by a result, if it is that of a
  /// function.
  struct Ending {
    std::optional<Datum> result;
  };
  /// Where a sequence stands, which says what may end it.
  enum class Within { Function, Loop, Branch };

  mlir::FailureOr<Ending> raise(mlir::Block::iterator at,
                                mlir::Block::iterator end, Within within);
  mlir::LogicalResult raiseOperation(mlir::Operation *op);
  mlir::FailureOr<Ending> raiseEarlyEnd(kernel::IfOp branch,
                                        mlir::Block::iterator rest,
                                        mlir::Block::iterator end,
                                        Within within);
  /// An scf.if whose sides are built by `fill`, which gives a result if there
  /// is `result`; slots of `written` are carried out of it.
  mlir::FailureOr<mlir::Value>
  buildIf(mlir::Location location, mlir::Value condition, mlir::Type result,
          llvm::ArrayRef<Slot> written,
          llvm::function_ref<mlir::FailureOr<std::optional<Datum>>(bool)> fill);
  mlir::LogicalResult raiseIf(kernel::IfOp branch);
  /// An scf.while: `fillBefore`, then `condition`, and as long as it holds
  /// `fillAfter`. What regions of `written` write is carried around it.
  mlir::LogicalResult
  buildWhile(mlir::Location location, llvm::ArrayRef<mlir::Region *> written,
             llvm::function_ref<mlir::LogicalResult()> fillBefore,
             mlir::Block &condition,
             llvm::function_ref<mlir::LogicalResult()> fillAfter);
  mlir::LogicalResult raiseFor(kernel::ForOp loop);
  mlir::LogicalResult raiseDo(kernel::DoOp loop);
  mlir::LogicalResult raiseConditional(kernel::ConditionalOp choice);
  mlir::LogicalResult raiseCall(kernel::CallOp call);
  mlir::LogicalResult raiseIntrinsic(kernel::IntrinsicOp op);
  mlir::LogicalResult raiseCast(kernel::CastOp cast);
  mlir::LogicalResult raiseVariable(kernel::VariableOp variable);
  mlir::LogicalResult raiseAddress(kernel::AddressOp address);
  mlir::LogicalResult raiseLoad(kernel::LoadOp load);
  mlir::LogicalResult raiseStore(kernel::StoreOp store);
  mlir::LogicalResult raiseCopy(kernel::CopyOp copy);
  mlir::FailureOr<mlir::Value> raiseBinary(kernel::BinaryOp op);
  mlir::Value raiseMath(kernel::MathOp op);

  /// The argument of the callee that `use`, of a call, is given for.
  mlir::Value calleeArgument(mlir::OpOperand &use);
  /// Whether a variable has to be in memory: its address goes elsewhere.
  bool needsMemory(mlir::Value pointer);
  /// What memory that `pointer` points to is best made of: the numbers of
  /// `object`, or bytes.
  mlir::Type memoryElement(mlir::Value pointer, mlir::Type object);
  bool isReachedAs(mlir::Value pointer, mlir::Type element,
                   llvm::DenseSet<mlir::Value> &visited);
  /// The slots that operations write to and that are there now.
  llvm::SmallVector<Slot> slotsWritten(llvm::ArrayRef<mlir::Region *> regions);
  /// Those of `written` that have a value now.
  llvm::SmallVector<Slot> carried(const std::set<Slot> &written);
  void collectWritten(mlir::Operation *op, Mapping &aliases,
                      std::set<Slot> &found);
  std::optional<Slot> resolve(mlir::Value pointer, const Mapping &aliases);

  /// What slots hold as values: of places, the offset.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  valuesOf(llvm::ArrayRef<Slot> slots, const Environment &before,
           mlir::Location location);
  void assign(llvm::ArrayRef<Slot> slots, mlir::ValueRange values,
              const Environment &before);

  Datum get(mlir::Value value) { return mapping.find(value)->second; }
  mlir::Value number(mlir::Value value) {
    return std::get<mlir::Value>(get(value));
  }
  void set(mlir::Value value, Datum datum) {
    mapping[value] = std::move(datum);
  }
  mlir::FailureOr<MemoryPlace> place(mlir::Operation *op, mlir::Value pointer);
  MemoryPlace advance(mlir::Location location, MemoryPlace place,
                      mlir::Value index, int64_t bytes);
  mlir::FailureOr<mlir::Value> loadFrom(mlir::Operation *op, MemoryPlace place,
                                        mlir::Type type);
  mlir::LogicalResult storeTo(mlir::Operation *op, mlir::Value value,
                              MemoryPlace place);
  mlir::Value asIndex(mlir::Location location, mlir::Value number,
                      mlir::Type type);
  mlir::LogicalResult refuse(mlir::Operation *op, const llvm::Twine &what) {
    return op->emitWarning("is not raised: ") << what;
  }

  kernel::FuncOp function;
  const Functions &functions;
  mlir::OpBuilder &builder;
  mlir::func::FuncOp made;
  Mapping mapping;
  Environment slots;
  /// Of the function that is raised, or inlined, now; null if there is none.
  mlir::Type resultType;
};

} // namespace sandwich::raising

#endif // SANDWICH_LIB_CONVERSION_KERNELTOVECTOR_RAISER_H
