//===- UseKernels.cpp - Kernels take the place of operations --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Dialect/LM/IR/LM.h"
#include "sandwich/Dialect/LM/Transforms/Passes.h"
#include "sandwich/Dialect/LM/Utils/KernelUse.h"
#include "sandwich/Kernel/Text.h"
#include "sandwich/Support/File.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sandwich::lm {
#define GEN_PASS_DEF_USEKERNELS
#include "sandwich/Dialect/LM/Transforms/Passes.h.inc"
} // namespace sandwich::lm

using namespace mlir;
using namespace sandwich;
using namespace sandwich::lm;

static constexpr size_t mostTextBytes = size_t(1) << 20;

namespace {

/// A file whose kernel takes the place of an operation.
struct KernelFile {
  std::string operation, path, text;
};

struct UseKernels : lm::impl::UseKernelsBase<UseKernels> {
  using UseKernelsBase::UseKernelsBase;

  FailureOr<KernelFile> readFile(StringRef option);
  FailureOr<FlatSymbolRefAttr> addKernel(const KernelFile &file,
                                         KernelOpInterface op);
  LogicalResult use(const KernelFile &file);
  void runOnOperation() override {
    for (const std::string &each : kernels) {
      FailureOr<KernelFile> file = readFile(each);
      if (failed(file) || failed(use(*file)))
        return signalPassFailure();
    }
  }

  /// Those of one file, for the types that operations have.
  SmallVector<std::pair<SmallVector<Type>, FlatSymbolRefAttr>> added;
};

} // namespace

FailureOr<KernelFile> UseKernels::readFile(StringRef option) {
  auto [operation, path] = option.split('=');
  if (operation.empty() || path.empty())
    return getOperation().emitError("kernel '")
           << option << "' is not OPERATION=FILE";
  const auto name =
      RegisteredOperationName::lookup(("lm." + operation).str(), &getContext());
  if (!name)
    return getOperation().emitError("kernel '")
           << option << "': there is no operation lm." << operation;
  if (!name->hasInterface<KernelOpInterface>())
    return getOperation().emitError("kernel '")
           << option << "': lm." << operation
           << " is nothing that a kernel can take the place of";
  Result<std::string> text = readTextFile(path.str(), mostTextBytes);
  if (!text)
    return getOperation().emitError(text.error().message);
  return KernelFile{operation.str(), path.str(), std::move(*text)};
}

/// The kernel of `file` for the types that `op` has, in the module of kernels.
FailureOr<FlatSymbolRefAttr> UseKernels::addKernel(const KernelFile &file,
                                                   KernelOpInterface op) {
  kernel::TextOptions options;
  SymbolTableCollection symbols;
  options.argumentTypes = kernelElementTypes(kernelArguments(op, symbols));
  for (const auto &[types, name] : added)
    if (types == options.argumentTypes)
      return name;
  OwningOpRef<ModuleOp> module =
      kernel::readText(file.text, file.path, options, getContext());
  if (!module)
    return failure();
  func::FuncOp kernel = findKernel(*module, file.operation);
  if (!kernel)
    return getOperation().emitError(file.path)
           << " has several kernels, and none that is called "
           << file.operation;
  ModuleOp own = getOperation().lookupSymbol<ModuleOp>(kernelsModuleName);
  if (!own) {
    OpBuilder builder(getOperation().getBodyRegion());
    own = ModuleOp::create(builder, getOperation().getLoc(), kernelsModuleName);
  }
  kernel->remove();
  SymbolTable table(own);
  table.insert(kernel);
  auto name = FlatSymbolRefAttr::get(kernel.getSymNameAttr());
  added.emplace_back(options.argumentTypes, name);
  return name;
}

LogicalResult UseKernels::use(const KernelFile &file) {
  added.clear();
  size_t found = 0;
  WalkResult result = getOperation().walk([&](KernelOpInterface op) {
    if (op->getName().stripDialect() != file.operation)
      return WalkResult::advance();
    ++found;
    if (op->hasAttr(kernelAttributeName))
      return WalkResult::advance();
    FailureOr<FlatSymbolRefAttr> name = addKernel(file, op);
    if (failed(name))
      return WalkResult::interrupt();
    op->setAttr(kernelAttributeName,
                KernelAttr::get(
                    &getContext(),
                    SymbolRefAttr::get(&getContext(), kernelsModuleName, *name),
                    DictionaryAttr()));
    // Modules are read anew, as one has been added.
    SymbolTableCollection current;
    return WalkResult(success(succeeded(findKernelUse(op, current))));
  });
  if (result.wasInterrupted())
    return failure();
  if (found == 0)
    return getOperation().emitError("no operation lm.")
           << file.operation << " is left that " << file.path
           << " could compute";
  return success();
}
