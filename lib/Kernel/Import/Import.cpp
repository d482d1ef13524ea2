//===- Import.cpp - From C and C++ to dialect kernel ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Import.h"

#include "ModuleImporter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Frontend/ASTUnit.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

namespace {
/// What clang finds wrong. Most of a file does not matter: only what is wrong
/// in what is imported, or where no function is.
class Findings : public clang::DiagnosticConsumer {
public:
  struct Finding {
    clang::SourceLocation place;
    std::string text;
    bool isFatal;
  };

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic &diagnostic) override {
    if (level < clang::DiagnosticsEngine::Error)
      return;
    SmallString<128> text;
    diagnostic.FormatDiagnostic(text);
    findings.push_back({diagnostic.getLocation(), text.str().str(),
                        level == clang::DiagnosticsEngine::Fatal});
  }

  std::vector<Finding> findings;
};

/// The functions with bodies, in the order of the file.
class FunctionFinder : public clang::RecursiveASTVisitor<FunctionFinder> {
public:
  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitFunctionDecl(clang::FunctionDecl *function) {
    if (!function->doesThisDeclarationHaveABody() || function->isDeleted())
      return true;
    all.push_back(function);
    if (!function->isDependentContext())
      functions.push_back(function);
    return true;
  }

  /// Those that can be imported, also instances of templates, and all.
  std::vector<clang::FunctionDecl *> functions, all;
};
} // namespace

/// Headers that the declarations of intrinsics stand for.
static constexpr const char *intrinsicHeaders[] = {
    "immintrin.h", "x86intrin.h", "emmintrin.h", "xmmintrin.h", "pmmintrin.h",
    "smmintrin.h", "tmmintrin.h", "nmmintrin.h", "avxintrin.h"};
/// Where they are, for clang alone.
static constexpr const char *intrinsicFolder = "/sandwich-intrinsics/";

static std::vector<std::string> argumentsFor(const ImportOptions &options,
                                             bool isC) {
  std::vector<std::string> arguments = {
      isC ? "-xc" : "-xc++",
      "-fsyntax-only",
      "-fparse-all-comments",
      "-ferror-limit=0",
      "-DNDEBUG",
      "-fno-delayed-template-parsing",
      "-ffp-contract=off",

      std::string("-resource-dir=") + SANDWICH_CLANG_RESOURCES,
      std::string("-isystem") + intrinsicFolder};
  if (llvm::none_of(options.compilerOptions, [](StringRef option) {
        return option.starts_with("-std=");
      }))
    arguments.push_back(isC ? "-std=gnu11" : "-std=gnu++17");
  arguments.insert(arguments.end(), options.compilerOptions.begin(),
                   options.compilerOptions.end());
  return arguments;
}

static std::string withoutSpaces(StringRef text) {
  std::string dense;
  llvm::copy_if(text, std::back_inserter(dense),
                [](char each) { return each != ' '; });
  return dense;
}

/// Whether `name`, as somebody may write it, names `function`.
static bool isNamed(const clang::FunctionDecl *function, StringRef name) {
  std::string full;
  llvm::raw_string_ostream stream(full);
  function->getNameForDiagnostic(
      stream, function->getASTContext().getPrintingPolicy(), true);
  // One of several of that name is told by what it takes.
  if (name.contains('(')) {
    std::string types;
    for (const clang::ParmVarDecl *each : function->parameters())
      types += (types.empty() ? "" : ",") + each->getType().getAsString();
    full += "(" + types + ")";
  }
  const std::string found = withoutSpaces(full);
  std::string wanted = withoutSpaces(name);
  // `::f` is that of no namespace.
  if (name.starts_with("::"))
    return found == StringRef(wanted).drop_front(2);
  return found == wanted || StringRef(found).ends_with("::" + wanted);
}

/// What instances that are asked for are told apart by.
static std::string instanceName(size_t number) {
  return "sandwichInstance" + std::to_string(number);
}

/// The instance number `number` of those that are asked for; null if there is
/// no such.
static const clang::FunctionDecl *findInstance(const clang::ASTContext &ast,
                                               size_t number) {
  for (const clang::Decl *each : ast.getTranslationUnitDecl()->decls()) {
    const auto *variable = dyn_cast<clang::VarDecl>(each);
    if (!variable || variable->getName() != instanceName(number) ||
        !variable->getInit())
      continue;
    const clang::Expr *init = variable->getInit()->IgnoreParenImpCasts();
    if (const auto *address = dyn_cast<clang::UnaryOperator>(init))
      init = address->getSubExpr()->IgnoreParenImpCasts();
    if (const auto *name = dyn_cast<clang::DeclRefExpr>(init))
      if (const auto *function = dyn_cast<clang::FunctionDecl>(name->getDecl()))
        return function->getDefinition();
  }
  return nullptr;
}

/// The definition that `name` asks for; null, with an error, if there is not
/// one.
static const clang::FunctionDecl *
findFunction(StringRef name, ArrayRef<clang::FunctionDecl *> functions,
             Location place) {
  llvm::SmallSetVector<const clang::FunctionDecl *, 2> found;
  for (const clang::FunctionDecl *each : functions)
    if (isNamed(each, name))
      found.insert(each->getDefinition());
  if (found.size() == 1)
    return found.front();
  if (found.empty()) {
    emitError(place) << "there is no function '" << name << "' with a body";
    return nullptr;
  }
  InFlightDiagnostic error = emitError(place);
  error << "there are several functions '" << name
        << "'; name one with its namespace and what it takes";
  for (const clang::FunctionDecl *each : found) {
    std::string types;
    for (const clang::ParmVarDecl *parameter : each->parameters())
      types += (types.empty() ? "" : ", ") + parameter->getType().getAsString();
    error << ", '" << each->getQualifiedNameAsString() << "(" << types << ")'";
  }
  return nullptr;
}

OwningOpRef<ModuleOp> kernel::importKernels(const std::string &path,
                                            const ImportOptions &options,
                                            MLIRContext &context) {
  context.loadDialect<KernelDialect>();
  Location file = FileLineColLoc::get(&context, path, 0, 0);
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    emitError(file) << "cannot be read: " << buffer.getError().message();
    return {};
  }
  std::string code = (*buffer)->getBuffer().str();
  // Instances that are asked for are made at the end of the file.
  for (auto [number, name] : llvm::enumerate(options.functions))
    if (StringRef(name).contains('<'))
      code +=
          "\nstatic const auto " + instanceName(number) + " = &" + name + ";";
  clang::tooling::FileContentMappings headers;
  const std::string declarations = declareX86Intrinsics();
  for (const char *each : intrinsicHeaders)
    headers.emplace_back(std::string(intrinsicFolder) + each, declarations);
  Findings findings;
  const std::unique_ptr<clang::ASTUnit> unit =
      clang::tooling::buildASTFromCodeWithArgs(
          code, argumentsFor(options, StringRef(path).ends_with(".c")), path,
          // Where clang looks for the system's headers from.
          SANDWICH_CLANG_RESOURCES "/../../../bin/clang",
          std::make_shared<clang::PCHContainerOperations>(),
          [](const clang::tooling::CommandLineArguments &arguments, StringRef) {
            return arguments;
          },
          headers, &findings);
  if (!unit) {
    emitError(file) << "cannot be read by clang"
                    << (findings.findings.empty()
                            ? std::string()
                            : ": " + findings.findings.front().text);
    return {};
  }
  clang::ASTContext &ast = unit->getASTContext();
  clang::SourceManager &sources = ast.getSourceManager();
  OwningOpRef<ModuleOp> module = ModuleOp::create(file);

  FunctionFinder finder;
  finder.TraverseDecl(ast.getTranslationUnitDecl());
  const auto isInside = [&](clang::SourceLocation place,
                            const clang::FunctionDecl *function) {
    // In the order of the whole text, whatever file a part of it is in.
    const clang::SourceRange range = function->getSourceRange();
    const auto isBefore = [&](clang::SourceLocation one,
                              clang::SourceLocation other) {
      return sources.isBeforeInTranslationUnit(sources.getExpansionLoc(one),
                                               sources.getExpansionLoc(other));
    };
    return place.isValid() && range.isValid() &&
           !isBefore(place, range.getBegin()) &&
           !isBefore(range.getEnd(), place);
  };
  ModuleImporter importer(
      ast, *module, [&](const clang::FunctionDecl *function) {
        for (const Findings::Finding &each : findings.findings)
          if (each.place.isValid() && isInside(each.place, function)) {
            importer.emitError(each.place) << each.text;
            return failure();
          }
        return success();
      });
  // What is wrong outside of functions, as a header that is not there, may
  // matter to any of them.
  for (const Findings::Finding &each : findings.findings)
    if (each.isFatal ||
        llvm::none_of(finder.all, [&](clang::FunctionDecl *function) {
          return isInside(each.place, function);
        })) {
      importer.emitError(each.place) << each.text;
      return {};
    }

  SmallVector<const clang::FunctionDecl *> wanted;
  for (auto [number, name] : llvm::enumerate(options.functions)) {
    const clang::FunctionDecl *found = findInstance(ast, number);
    if (!found)
      found = findFunction(name, finder.functions, file);
    if (!found)
      return {};
    wanted.push_back(found);
  }
  if (options.functions.empty())
    for (const clang::FunctionDecl *each : finder.functions)
      if (sources.isInMainFile(sources.getFileLoc(each->getLocation())) &&
          !each->isTemplateInstantiation() && !isa<clang::CXXMethodDecl>(each))
        wanted.push_back(each);
  if (wanted.empty()) {
    if (!findings.findings.empty())
      importer.emitError(findings.findings.front().place)
          << findings.findings.front().text;
    else
      emitError(file) << "has no functions with bodies";
    return {};
  }
  // They keep their names; what they call may have to take others.
  for (const clang::FunctionDecl *each : wanted)
    importer.nameFunction(each->getDefinition());
  bool allImported = true;
  for (const clang::FunctionDecl *each : wanted) {
    FailureOr<FuncOp> function = importer.importFunction(each);
    if (failed(function))
      allImported = false;
    else if (!options.functions.empty() ||
             each->getFormalLinkage() == clang::Linkage::External)
      SymbolTable::setSymbolVisibility(*function,
                                       SymbolTable::Visibility::Public);
  }
  if (!allImported || failed(verify(*module)))
    return {};
  return module;
}
