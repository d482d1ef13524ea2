//===- Statements.cpp - The statements of a function ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionImporter.h"

#include "mlir/IR/Diagnostics.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RawCommentList.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

using clang::dyn_cast_or_null;

namespace {
/// Finds the variables that are used other than by reading them.
class WrittenVariables : public clang::RecursiveASTVisitor<WrittenVariables> {
public:
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr *cast) {
    if (cast->getCastKind() == clang::CK_LValueToRValue)
      if (const auto *read =
              dyn_cast<clang::DeclRefExpr>(cast->getSubExpr()->IgnoreParens()))
        reads.insert(read);
    return true;
  }
  bool VisitDeclRefExpr(clang::DeclRefExpr *use) {
    uses.push_back(use);
    return true;
  }
  llvm::DenseSet<const clang::ValueDecl *> find(const clang::Stmt *body) {
    TraverseStmt(const_cast<clang::Stmt *>(body));
    llvm::DenseSet<const clang::ValueDecl *> written;
    for (const clang::DeclRefExpr *use : uses)
      if (!reads.contains(use))
        written.insert(use->getDecl());
    return written;
  }

private:
  llvm::DenseSet<const clang::DeclRefExpr *> reads;
  std::vector<const clang::DeclRefExpr *> uses;
};
} // namespace

FunctionImporter::FunctionImporter(ModuleImporter &module,
                                   const clang::FunctionDecl *function,
                                   FuncOp op)
    : module(module), function(function), op(op), builder(op.getContext()) {
  builder.setInsertionPointToStart(&op.getBody().front());
}

Location FunctionImporter::location(clang::SourceLocation place) {
  Location plain = module.location(place);
  if (comment.empty())
    return plain;
  Location commented = FusedLoc::get(builder.getContext(), {plain},
                                     builder.getStringAttr(comment));
  comment.clear();
  return commented;
}

LogicalResult FunctionImporter::refuse(clang::SourceLocation place,
                                       const llvm::Twine &what) {
  module.emitError(place) << "kernels must not have " << what;
  return failure();
}

LogicalResult FunctionImporter::import() {
  const llvm::DenseSet<const clang::ValueDecl *> written =
      WrittenVariables().find(function->getBody());
  Block &entry = op.getBody().front();
  unsigned next = 0;
  if (function->getReturnType()->isRecordType())
    returned = entry.getArgument(next++);
  if (const auto *method = dyn_cast<clang::CXXMethodDecl>(function);
      method && method->isInstance() && !method->getParent()->isEmpty())
    self = entry.getArgument(next++);
  for (const clang::ParmVarDecl *each : function->parameters()) {
    if (isWithoutObject(each->getType()))
      continue;
    Value argument = entry.getArgument(next++);
    if (each->getType()->isReferenceType() || each->getType()->isRecordType()) {
      places[each] = argument;
    } else if (!written.contains(each) &&
               !isa<clang::CXXConstructorDecl>(function)) {
      values[each] = argument;
    } else {
      Value variable = makeVariable(each->getLocation(), each->getName(),
                                    argument.getType());
      store(each->getLocation(), argument, variable);
      places[each] = variable;
    }
  }
  if (failed(importConstructor()) ||
      failed(importStatement(function->getBody())))
    return failure();
  if (op.getResultTypes().empty() &&
      (entry.empty() || !entry.back().hasTrait<OpTrait::IsTerminator>()))
    ReturnOp::create(builder, location(function->getEndLoc()), Value());
  return success();
}

LogicalResult FunctionImporter::importConstructor() {
  const auto *constructor = dyn_cast<clang::CXXConstructorDecl>(function);
  if (!constructor)
    return success();
  for (const clang::CXXCtorInitializer *each : constructor->inits()) {
    if (each->isBaseInitializer() &&
        each->getBaseClass()->getAsCXXRecordDecl()->isEmpty())
      continue;
    if (!each->isMemberInitializer())
      return refuse(function->getLocation(), "constructors of base classes");
    const clang::FieldDecl *member = each->getMember();
    Result to = memberPlace(self, member, each->getSourceLocation());
    if (failed(to) || failed(initialize(*to, each->getInit())))
      return failure();
  }
  return success();
}

LogicalResult FunctionImporter::importStatement(const clang::Stmt *statement) {
  if (!statement)
    return success();
  const clang::SourceLocation place = statement->getBeginLoc();
  switch (statement->getStmtClass()) {
  case clang::Stmt::NullStmtClass:
    return success();
  case clang::Stmt::CompoundStmtClass:
    return importCompound(cast<clang::CompoundStmt>(statement));
  case clang::Stmt::DeclStmtClass:
    return importDeclarations(cast<clang::DeclStmt>(statement));
  case clang::Stmt::IfStmtClass:
    return importIf(cast<clang::IfStmt>(statement));
  case clang::Stmt::ForStmtClass:
    return importFor(cast<clang::ForStmt>(statement));
  case clang::Stmt::WhileStmtClass:
    return importWhile(cast<clang::WhileStmt>(statement));
  case clang::Stmt::DoStmtClass:
    return importDo(cast<clang::DoStmt>(statement));
  case clang::Stmt::ReturnStmtClass:
    return importReturn(cast<clang::ReturnStmt>(statement));
  case clang::Stmt::BreakStmtClass:
    BreakOp::create(builder, location(place));
    return success();
  case clang::Stmt::ContinueStmtClass:
    ContinueOp::create(builder, location(place));
    return success();
  case clang::Stmt::GCCAsmStmtClass:
    return importAssembly(cast<clang::AsmStmt>(statement));
  case clang::Stmt::AttributedStmtClass: {
    const auto *attributed = cast<clang::AttributedStmt>(statement);
    for (const clang::Attr *each : attributed->getAttrs())
      if (const auto *hint = dyn_cast<clang::LoopHintAttr>(each);
          hint && (hint->getOption() == clang::LoopHintAttr::UnrollCount ||
                   hint->getOption() == clang::LoopHintAttr::Unroll)) {
        if (hint->getState() == clang::LoopHintAttr::Disable)
          continue;
        unroll = 0;
        if (hint->getValue())
          if (auto count = hint->getValue()->getIntegerConstantExpr(module.ast))
            unroll = count->getSExtValue();
      }
    return importStatement(attributed->getSubStmt());
  }
  default:
    break;
  }
  if (const auto *expression = dyn_cast<clang::Expr>(statement))
    return importEffect(expression);
  std::string what = statement->getStmtClassName();
  for (auto [name, described] :
       {std::pair("SwitchStmt", "'switch'"), std::pair("GotoStmt", "'goto'"),
        std::pair("LabelStmt", "labels"), std::pair("CXXTryStmt", "'try'"),
        std::pair("CXXForRangeStmt", "loops over containers"),
        std::pair("IndirectGotoStmt", "'goto'"),
        std::pair("OMPParallelForDirective", "OpenMP")})
    if (what == name)
      what = described;
  return refuse(place, what);
}

LogicalResult
FunctionImporter::importCompound(const clang::CompoundStmt *compound) {
  clang::SourceManager &sources = module.ast.getSourceManager();
  const auto decompose = [&](clang::SourceLocation place) {
    return sources.getDecomposedLoc(sources.getFileLoc(place));
  };
  unsigned from = decompose(compound->getLBracLoc()).second;
  for (const clang::Stmt *statement : compound->body()) {
    const auto [file, begin] = decompose(statement->getBeginLoc());
    if (const auto *comments = module.ast.Comments.getCommentsInFile(file))
      for (auto each = comments->lower_bound(from);
           each != comments->end() && each->first < begin; ++each) {
        const std::string text = plainText(each->second->getRawText(sources));
        if (!text.empty())
          comment += (comment.empty() ? "" : "\n") + text;
      }
    if (failed(importStatement(statement)))
      return failure();
    comment.clear();
    from = decompose(statement->getEndLoc()).second;
    if (!builder.getInsertionBlock()->empty() &&
        builder.getInsertionBlock()->back().hasTrait<OpTrait::IsTerminator>())
      return success(); // What follows is never reached.
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

LogicalResult
FunctionImporter::importDeclarations(const clang::DeclStmt *statement) {
  for (const clang::Decl *each : statement->decls()) {
    if (const auto *variable = dyn_cast<clang::VarDecl>(each)) {
      if (failed(importVariable(variable)))
        return failure();
      continue;
    }
    if (!isa<clang::TypeDecl, clang::StaticAssertDecl, clang::UsingDecl,
             clang::UsingShadowDecl, clang::UsingDirectiveDecl,
             clang::EmptyDecl, clang::NamespaceAliasDecl>(each))
      return refuse(each->getLocation(),
                    llvm::Twine("a declaration of this kind: ") +
                        each->getDeclKindName());
  }
  return success();
}

LogicalResult FunctionImporter::importVariable(const clang::VarDecl *variable) {
  const clang::SourceLocation place = variable->getLocation();
  const clang::Expr *init = variable->getInit();
  if (variable->isStaticLocal() || variable->hasExternalStorage())
    return success(); // A table, if it is used.
  const clang::QualType type = variable->getType();
  if (const auto *record = type->getAsCXXRecordDecl();
      record && record->isLambda()) {
    return init ? makeLambda(init) : success();
  }
  if (type->isReferenceType()) {
    Result referred = this->place(init);
    if (failed(referred))
      return failure();
    FailureOr<Type> wanted = module.importType(type, place);
    if (failed(wanted))
      return failure();
    places[variable] = convert(place, *referred, *wanted);
    return success();
  }
  if (isWithoutObject(type))
    return init && init->HasSideEffects(module.ast)
               ? refuse(place, "objects without members that do something")
               : success();
  // Those that are known are named constants where they are used.
  if (type->isIntegralOrEnumerationType() && type.isConstQualified() &&
      variable->isUsableInConstantExpressions(module.ast) &&
      variable->evaluateValue())
    return success();
  if (type.isConstQualified() && type->isArrayType() && variable->isConstexpr())
    return success();
  FailureOr<Type> object = module.importType(type, place);
  if (failed(object) || !*object)
    return failure();
  IntegerAttr alignment;
  if (variable->hasAttr<clang::AlignedAttr>())
    alignment = builder.getI64IntegerAttr(
        module.ast.getDeclAlign(variable).getQuantity());
  Value pointer =
      VariableOp::create(builder, location(place),
                         PointerType::get(builder.getContext(), *object, false),
                         builder.getStringAttr(variable->getName()), alignment);
  places[variable] = pointer;
  return init ? initialize(pointer, init) : success();
}

Value FunctionImporter::makeVariable(clang::SourceLocation place,
                                     StringRef name, Type type) {
  return VariableOp::create(builder, location(place),
                            PointerType::get(builder.getContext(), type, false),
                            builder.getStringAttr(name), IntegerAttr());
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

LogicalResult
FunctionImporter::importInto(Region &region,
                             llvm::function_ref<LogicalResult()> fill) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&region.emplaceBlock());
  return fill();
}

LogicalResult FunctionImporter::importIf(const clang::IfStmt *statement) {
  if (failed(importStatement(statement->getInit())))
    return failure();
  if (statement->getConditionVariable())
    return refuse(statement->getBeginLoc(),
                  "variables that are declared in a condition");
  if (statement->isConsteval())
    return refuse(statement->getBeginLoc(), "'if consteval'");
  if (statement->isConstexpr()) {
    const auto taken = statement->getNondiscardedCase(module.ast);
    return !taken || !*taken ? success() : importStatement(*taken);
  }
  Result condition = truth(statement->getCond());
  if (failed(condition))
    return failure();
  auto branch =
      IfOp::create(builder, location(statement->getBeginLoc()), *condition);
  if (failed(
          importInto(branch.getThen(),
                     [&] { return importStatement(statement->getThen()); })) ||
      failed(importInto(branch.getOtherwise(),
                        [&] { return importStatement(statement->getElse()); })))
    return failure();
  return success();
}

LogicalResult FunctionImporter::importCondition(Region &region,
                                                const clang::Expr *condition) {
  return importInto(region, [&]() -> LogicalResult {
    Result holds = truth(condition);
    if (failed(holds))
      return failure();
    YieldOp::create(builder, location(condition->getBeginLoc()), *holds);
    return success();
  });
}

/// The variable, or whatever else it is, that `pointer` points into.
static Value rootOf(Value pointer) {
  while (Operation *op = pointer.getDefiningOp()) {
    if (!isa<MemberOp, ElementsOp, OffsetOp, CastOp>(op))
      break;
    pointer = op->getOperand(0);
  }
  return pointer;
}

/// Whether `loop` can end: it is left, or changes what its condition reads, as
/// far as that shows.
static bool mayEnd(Operation *loop, Region &condition) {
  llvm::SmallPtrSet<Value, 4> read;
  condition.walk([&](LoadOp load) { read.insert(rootOf(load.getPointer())); });
  return loop
      ->walk([&](Operation *op) {
        const bool leaves = isa<BreakOp, ReturnOp, TrapOp>(op);
        const bool changes =
            !isa<LoadOp>(op) &&
            llvm::any_of(op->getOperands(), [&](Value each) {
              return isa<PointerType>(each.getType()) &&
                     !isa<MemberOp, ElementsOp, OffsetOp, CastOp>(op) &&
                     (read.contains(rootOf(each)) ||
                      (!isa_and_nonnull<VariableOp>(
                           rootOf(each).getDefiningOp()) &&
                       llvm::any_of(read, [](Value root) {
                         return !isa_and_nonnull<VariableOp>(
                             root.getDefiningOp());
                       })));
            });
        return leaves || changes ? WalkResult::interrupt()
                                 : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult FunctionImporter::importLoop(clang::SourceLocation place,
                                           const clang::Expr *condition,
                                           const clang::Expr *step,
                                           const clang::Stmt *body) {
  IntegerAttr often =
      unroll ? builder.getI64IntegerAttr(*unroll) : IntegerAttr();
  unroll.reset();
  auto loop = ForOp::create(builder, location(place), often);
  // Without a condition, or with one that always holds, it has to be left.
  const auto fillCondition = [&]() -> LogicalResult {
    if (condition)
      return importCondition(loop.getCondition(), condition);
    return importInto(loop.getCondition(), [&]() -> LogicalResult {
      Result always = constant(place, builder.getI1Type(), 1);
      YieldOp::create(builder, location(place), *always);
      return success();
    });
  };
  if (failed(fillCondition()) ||
      failed(
          importInto(loop.getStep(),
                     [&] { return step ? importEffect(step) : success(); })) ||
      failed(importInto(loop.getBody(), [&] { return importStatement(body); })))
    return failure();
  if (mayEnd(loop, loop.getCondition()))
    return success();
  return refuse(place, "loops that nothing in them ends");
}

LogicalResult FunctionImporter::importFor(const clang::ForStmt *statement) {
  const std::optional<int64_t> asked = std::exchange(unroll, std::nullopt);
  if (statement->getConditionVariable())
    return refuse(statement->getBeginLoc(),
                  "variables that are declared in a condition");
  if (failed(importStatement(statement->getInit())))
    return failure();
  unroll = asked;
  return importLoop(statement->getForLoc(), statement->getCond(),
                    statement->getInc(), statement->getBody());
}

LogicalResult FunctionImporter::importWhile(const clang::WhileStmt *statement) {
  if (statement->getConditionVariable())
    return refuse(statement->getBeginLoc(),
                  "variables that are declared in a condition");
  return importLoop(statement->getWhileLoc(), statement->getCond(), nullptr,
                    statement->getBody());
}

/// Whether `statement` has a `break` or `continue` of a loop around it.
static bool leavesLoop(const clang::Stmt *statement) {
  if (!statement ||
      isa<clang::ForStmt, clang::WhileStmt, clang::DoStmt>(statement))
    return false;
  return isa<clang::BreakStmt, clang::ContinueStmt>(statement) ||
         llvm::any_of(statement->children(), leavesLoop);
}

LogicalResult FunctionImporter::importDo(const clang::DoStmt *statement) {
  const clang::Expr *condition = statement->getCond();
  // Loops are unrolled only if their end is told first.
  unroll.reset();
  if (knownTruth(condition) == false) {
    // As macros have it: once, and no loop.
    if (leavesLoop(statement->getBody()))
      return refuse(statement->getBeginLoc(),
                    "'do' with 'while (0)' that is left early");
    return importStatement(statement->getBody());
  }
  auto loop = DoOp::create(builder, location(statement->getBeginLoc()));
  if (failed(
          importInto(loop.getBody(),
                     [&] { return importStatement(statement->getBody()); })) ||
      failed(importCondition(loop.getCondition(), condition)))
    return failure();
  if (mayEnd(loop, loop.getCondition()))
    return success();
  return refuse(statement->getBeginLoc(), "loops that nothing in them ends");
}

LogicalResult
FunctionImporter::importReturn(const clang::ReturnStmt *statement) {
  const clang::SourceLocation place = statement->getBeginLoc();
  const clang::Expr *expression = statement->getRetValue();
  if (inlined) {
    if (statement != inlined->last)
      return refuse(place,
                    "lambdas, and functions that take some, that return before "
                    "their end");
    if (!expression || expression->getType()->isVoidType())
      return expression ? importEffect(expression) : success();
    if (expression->getType()->isRecordType())
      return initialize(inlined->result, expression);
    Result given = value(expression);
    if (failed(given))
      return failure();
    inlined->value = *given;
    return success();
  }
  if (!expression || expression->getType()->isVoidType()) {
    if (expression && failed(importEffect(expression)))
      return failure();
    ReturnOp::create(builder, location(place), Value());
    return success();
  }
  if (returned) {
    if (failed(initialize(returned, expression)))
      return failure();
    ReturnOp::create(builder, location(place), Value());
    return success();
  }
  Result given = function->getReturnType()->isReferenceType()
                     ? this->place(expression)
                     : value(expression);
  if (failed(given))
    return failure();
  ReturnOp::create(builder, location(place),
                   convert(place, *given, op.getResultTypes().front()));
  return success();
}

LogicalResult
FunctionImporter::importAssembly(const clang::AsmStmt *statement) {
  const auto *assembly = cast<clang::GCCAsmStmt>(statement);
  // Without instructions it only keeps compilers from being clever, unless it
  // makes one value another.
  bool assigns = false;
  for (unsigned i = 0; i < assembly->getNumOutputs(); ++i)
    assigns |= !assembly->isOutputPlusConstraint(i);
  if (StringRef(assembly->getAsmString()).trim().empty() && !assigns)
    return success();
  return refuse(statement->getAsmLoc(), "assembly");
}
