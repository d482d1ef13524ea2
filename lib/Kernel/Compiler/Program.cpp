//===- Program.cpp - Kernels of the high level as machine code ------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Kernel/Compiler/Program.h"

#include "sandwich/Dialect/Block/IR/Block.h"
#include "sandwich/Support/Json.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::kernel;

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

KernelDescription kernel::describeKernel(func::FuncOp kernel) {
  KernelDescription description;
  description.name = kernel.getSymName().str();
  if (auto text = kernel->getAttrOfType<StringAttr>(
          block::BlockDialect::documentationName))
    description.documentation = text.str();
  for (BlockArgument argument : kernel.getArguments()) {
    ArgumentDescription each;
    auto named = argument.getLoc()->findInstanceOf<NameLoc>();
    each.name = named ? named.getName().str()
                      : "argument" + std::to_string(argument.getArgNumber());
    each.type = textOf(getElementTypeOrSelf(argument));
    if (block::SizesAttr sizes =
            block::sizesOfArgument(kernel, argument.getArgNumber())) {
      each.isMemory = true;
      for (block::SizeAttr size : sizes.getSizes())
        each.sizes.push_back(size.str());
    }
    each.isWritten = llvm::any_of(argument.getUsers(), [](Operation *user) {
      return isa<block::StoreOp, memref::StoreOp>(user);
    });
    description.arguments.push_back(std::move(each));
  }
  for (block::ParameterAttr parameter :
       block::parametersOf(kernel).getParameters())
    description.parameters.push_back(
        {parameter.getName().str(),
         std::vector<int64_t>(parameter.getChoices().begin(),
                              parameter.getChoices().end()),
         parameter.getUntuned()});
  return description;
}

std::string KernelDescription::toJson() const {
  Json json;
  json["name"] = name;
  json["documentation"] = documentation;
  json["arguments"] = Json::array();
  for (const ArgumentDescription &argument : arguments) {
    Json each;
    each["name"] = argument.name;
    each["type"] = argument.type;
    if (argument.isMemory) {
      each["sizes"] = argument.sizes;
      each["written"] = argument.isWritten;
    }
    json["arguments"].push_back(std::move(each));
  }
  json["parameters"] = Json::array();
  for (const ParameterDescription &parameter : parameters) {
    Json each;
    each["name"] = parameter.name;
    if (!parameter.choices.empty()) {
      each["choices"] = parameter.choices;
      each["untuned"] = parameter.untuned;
    }
    json["parameters"].push_back(std::move(each));
  }
  // What is no UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<func::FuncOp> kernel::findKernel(ModuleOp module,
                                        const std::string &name) {
  func::FuncOp found;
  size_t kernels = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!block::isKernel(function))
      continue;
    ++kernels;
    if (name.empty() || function.getSymName() == name)
      found = function;
  }
  if (!name.empty() && !found)
    return makeError("there is no kernel ", name);
  if (name.empty() && kernels != 1)
    return makeError("there are ", kernels, " kernels: say which");
  return found;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

std::string kernel::describe(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    stream << place.getFilename().getValue() << ":" << place.getLine() << ":"
           << place.getColumn() << ": ";
  stream << diagnostic;
  return text;
}

/// A function that takes pointers to the arguments of `function` from memory,
/// and calls it.
static void addEntryPoint(func::FuncOp function, StringRef name) {
  ImplicitLocOpBuilder builder(function.getLoc(), function->getContext());
  builder.setInsertionPointAfter(function);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto word = builder.getI64Type();
  auto entry =
      func::FuncOp::create(builder, std::string(entryPrefix) + name.str(),
                           builder.getFunctionType({pointer}, {word}));
  builder.setInsertionPointToStart(entry.addEntryBlock());
  SmallVector<Value> arguments;
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes())) {
    Value place = LLVM::GEPOp::create(
        builder, pointer, pointer, entry.getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    Value argument = LLVM::LoadOp::create(builder, pointer, place);
    Type loaded = type;
    if (auto memory = dyn_cast<MemRefType>(type)) {
      auto extents = LLVM::LLVMArrayType::get(word, memory.getRank());
      loaded = LLVM::LLVMStructType::getLiteral(
          builder.getContext(), {pointer, pointer, word, extents, extents});
    } else if (type.isIndex()) {
      loaded = word;
    }
    Value value = LLVM::LoadOp::create(builder, loaded, argument);
    if (loaded != type)
      value =
          UnrealizedConversionCastOp::create(builder, type, value).getResult(0);
    arguments.push_back(value);
  }
  auto call = func::CallOp::create(builder, function, arguments);
  Value line =
      call.getNumResults() == 1
          ? call.getResult(0)
          : arith::ConstantOp::create(builder, builder.getI64IntegerAttr(0))
                .getResult();
  func::ReturnOp::create(builder, line);
}

/// Who has tiles asks the system for them, which no kernel does.
static std::optional<MatrixISA> instructionsOf(const Target &target) {
  if (llvm::is_contained(target.matrixISAs, MatrixISA::X86_AVX512_BF16))
    return MatrixISA::X86_AVX512_BF16;
  return std::nullopt;
}

Result<std::string>
kernel::compileKernel(measuring::CompileSession &session, func::FuncOp kernel,
                      const block::Bindings &bindings, const Target &target,
                      KernelOutput output, block::BoundsChecks *checks) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder builder(module->getBodyRegion());
  builder.setInsertionPointToEnd(module->getBody());
  auto copy = cast<func::FuncOp>(builder.clone(*kernel));
  std::string problem;
  {
    ScopedDiagnosticHandler handler(&session.context,
                                    [&](Diagnostic &diagnostic) {
                                      if (problem.empty())
                                        problem = describe(diagnostic);
                                      return success();
                                    });
    FailureOr<func::FuncOp> made = block::makeFunction(
        copy, "kernel", bindings,
        {.instructions = instructionsOf(target), .checks = checks});
    if (failed(made))
      return Error{problem};
    made->setPrivate();
    addEntryPoint(*made, kernel.getSymName());
  }
  copy.erase();
  const std::string entry =
      std::string(entryPrefix) + kernel.getSymName().str();
  const auto addPasses = [](OpPassManager &manager) {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  };
  if (output == KernelOutput::Loops) {
    PassManager manager(&session.context);
    addPasses(manager);
    if (failed(manager.run(*module)))
      return makeError(kernel.getSymName().str(), " does not compile");
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text + "\n";
  }
  return measuring::compileCode(
      session, *module, target, entry, "kernel for " + target.name, addPasses,
      output == KernelOutput::Assembly ? CodeKind::Assembly : CodeKind::Object);
}
