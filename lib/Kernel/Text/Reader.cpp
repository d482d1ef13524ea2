//===- Reader.cpp - From text to dialect block ----------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;
using namespace sandwich::block;

LogicalResult KernelReader::run() {
  OpBuilder::InsertionGuard guard(builder);
  if (failed(readArguments()) || failed(readBody(kernel.body)))
    return failure();
  func::ReturnOp::create(builder, location(kernel.place));
  return success();
}

OwningOpRef<ModuleOp> kernel::readText(StringRef text, StringRef name,
                                       const TextOptions &options,
                                       MLIRContext &context) {
  context
      .loadDialect<arith::ArithDialect, block::BlockDialect, func::FuncDialect,
                   math::MathDialect, memref::MemRefDialect, scf::SCFDialect>();
  syntax::SyntaxError wrong;
  std::optional<std::vector<syntax::Kernel>> kernels =
      syntax::parse(std::string_view(text.data(), text.size()), wrong);
  const auto locate = [&](Place place) {
    return FileLineColLoc::get(&context, name, place.line, place.column);
  };
  if (!kernels) {
    emitError(locate(wrong.place)) << wrong.message;
    return nullptr;
  }
  if (kernels->empty()) {
    emitError(locate({1, 1})) << "the text has no kernel: 'def' begins one";
    return nullptr;
  }
  for (const auto &chosen : options.types)
    if (llvm::none_of(*kernels, [&](const syntax::Kernel &kernel) {
          return llvm::any_of(
              kernel.arguments, [&](const syntax::Argument &argument) {
                return argument.name == chosen.first() &&
                       argument.type->kind == Expression::Kind::Call &&
                       argument.type->text == "type";
              });
        })) {
      emitError(locate({1, 1}))
          << "no kernel has a type '" << chosen.first() << "' to choose";
      return nullptr;
    }
  OwningOpRef<ModuleOp> module = ModuleOp::create(locate({1, 1}));
  OpBuilder builder(module->getBodyRegion());
  builder.setInsertionPointToEnd(module->getBody());
  llvm::StringSet<> names;
  for (const syntax::Kernel &kernel : *kernels) {
    if (isReserved(kernel.name) || !names.insert(kernel.name).second) {
      emitError(locate(kernel.place))
          << "'" << kernel.name
          << "' has a meaning already, and is no name of a kernel";
      return nullptr;
    }
    if (failed(KernelReader(kernel, name, options, builder).run()))
      return nullptr;
  }
  if (failed(verify(*module)))
    return nullptr;
  return module;
}
