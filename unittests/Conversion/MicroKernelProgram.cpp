//===- MicroKernelProgram.cpp - Micro-kernels alone -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernelProgram.h"
#include "JitCode.h"
#include "JitTest.h"
#include "TestPasses.h"
#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Dialect/Tile/IR/Tile.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Support/File.h"

#include "lld/Common/Driver.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/Utils/Cloning.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace sandwich;
using namespace sandwich::test;

namespace {

/// A call as the compiled code reads it: the micro-kernel, the strides of the
/// sums and the input, and the micro-kernel's arguments in order, buffers as
/// bytes into the memory.
constexpr size_t sumsStrideWord = 1, inputStrideWord = 2, firstArgumentWord = 3;
constexpr size_t tileRowsArgument = 14;
constexpr size_t callWords = firstArgumentWord + 16;
using CallWords = std::array<int64_t, callWords>;

CallWords getWords(const MicroKernelCall &call) {
  return {call.kernel,
          call.sumsStride,
          call.inputStride,
          call.input,
          call.firstRow,
          call.firstK,
          call.k,
          call.weight,
          call.weightOffset,
          call.panelStride,
          call.sums,
          call.sumsRow,
          call.sumsColumn,
          call.accumulate,
          call.prefetchOffset,
          call.prefetchStride,
          call.prefetchStreamStride,
          call.tileRows,
          call.lastTileRow};
}

/// `sandwich_call(words, memory)`, two memrefs in pieces.
using CallFunction = void (*)(const int64_t *, const int64_t *, int64_t,
                              int64_t, int64_t, unsigned char *,
                              unsigned char *, int64_t, int64_t, int64_t);
constexpr StringRef callFunctionName = "sandwich_call";

/// Writes the function that makes one call.
class CallWriter {
public:
  CallWriter(ModuleOp module) : module(module), library(module) {}

  void write(ArrayRef<MicroKernelSpecialization> kernels) {
    auto builder =
        ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
    constexpr int64_t dynamic = ShapedType::kDynamic;
    auto function = func::FuncOp::create(
        builder, callFunctionName,
        builder.getFunctionType(
            {MemRefType::get({dynamic}, builder.getIndexType()),
             MemRefType::get({dynamic}, builder.getI8Type())},
            {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    words = function.getArgument(0);
    memory = function.getArgument(1);
    SmallVector<int64_t> cases =
        llvm::to_vector(llvm::seq<int64_t>(kernels.size()));
    auto choice = scf::IndexSwitchOp::create(
        builder, TypeRange(), loadWord(builder, 0), cases, cases.size());
    func::ReturnOp::create(builder);
    for (auto [kernel, region] :
         llvm::zip_equal(kernels, choice.getCaseRegions())) {
      builder.createBlock(&region);
      writeCall(builder, kernel);
      scf::YieldOp::create(builder);
    }
    builder.createBlock(&choice.getDefaultRegion());
    scf::YieldOp::create(builder);
  }

private:
  Value index(ImplicitLocOpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }

  Value loadWord(ImplicitLocOpBuilder &builder, size_t number) {
    return memref::LoadOp::create(builder, words,
                                  index(builder, static_cast<int64_t>(number)));
  }

  void writeCall(ImplicitLocOpBuilder &builder,
                 const MicroKernelSpecialization &kernel) {
    func::FuncOp function = library.get(kernel);
    if (hasTiles(kernel.kernel.isa))
      tile::ConfigureOp::create(
          builder, loadWord(builder, firstArgumentWord + tileRowsArgument),
          halvesInputTiles(kernel.kernel.isa, kernel.group));
    SmallVector<Value> arguments;
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      Value word = loadWord(builder, firstArgumentWord + i);
      if (auto buffer = dyn_cast<MemRefType>(type))
        word = view(builder, buffer, word,
                    i == 0 ? inputStrideWord : sumsStrideWord);
      else if (type.isInteger(1))
        word = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, word,
                                     index(builder, 0));
      arguments.push_back(word);
    }
    func::CallOp::create(builder, function, arguments);
  }

  /// What no micro-kernel reads, sizes, is large enough for all of them.
  Value view(ImplicitLocOpBuilder &builder, MemRefType type, Value bytes,
             size_t strideWord) {
    Value size = index(builder, int64_t(1) << 30);
    Value flat = memref::ViewOp::create(
        builder, MemRefType::get({ShapedType::kDynamic}, type.getElementType()),
        memory, bytes, ValueRange{size});
    if (type.getRank() == 1)
      return flat;
    auto [strides, offset] = type.getStridesAndOffset();
    OpFoldResult stride = ShapedType::isDynamic(strides[0])
                              ? OpFoldResult(loadWord(builder, strideWord))
                              : OpFoldResult(builder.getIndexAttr(strides[0]));
    Value rows = memref::ReinterpretCastOp::create(
        builder,
        MemRefType::get(
            type.getShape(), type.getElementType(),
            StridedLayoutAttr::get(builder.getContext(), 0, strides)),
        flat, OpFoldResult(builder.getIndexAttr(0)),
        ArrayRef<OpFoldResult>{size, size},
        ArrayRef<OpFoldResult>{stride, builder.getIndexAttr(1)});
    return memref::CastOp::create(builder, type, rows);
  }

  ModuleOp module;
  MicroKernelLibrary library;
  Value words, memory;
};

/// Reads an image from standard input (the number of calls, their words, then
/// from `memoryOffset` on the memory), makes the calls, and writes the image to
/// standard output.
constexpr size_t maxImageBytes = size_t(1) << 25;
std::string getStartSource() {
  auto text = [](size_t value) { return std::to_string(value); };
  std::string image = "[" + text(maxImageBytes) + " x i8]";
  std::string call =
      R"(call i64 asm sideeffect "svc #0", "={x0},{x8},{x0},{x1},{x2},~{memory}")";
  return "@image = internal global " + image + R"( zeroinitializer, align 64
declare void @)" +
         callFunctionName.str() +
         R"((ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64)
define void @sandwich_start() noreturn {
entry:
  br label %read
read:
  %end = phi i64 [0, %entry], [%next, %read]
  %place = getelementptr i8, ptr @image, i64 %end
  %room = sub i64 )" +
         text(maxImageBytes) + R"(, %end
  %bytes = )" +
         call + R"((i64 63, i64 0, ptr %place, i64 %room)
  %next = add i64 %end, %bytes
  %more = icmp sgt i64 %bytes, 0
  br i1 %more, label %read, label %header
header:
  %calls = load i64, ptr @image
  %memoryOffset.place = getelementptr i8, ptr @image, i64 8
  %memoryOffset = load i64, ptr %memoryOffset.place
  %memory = getelementptr i8, ptr @image, i64 %memoryOffset
  br label %calling
calling:
  %number = phi i64 [0, %header], [%following, %called]
  %left = icmp ult i64 %number, %calls
  br i1 %left, label %called, label %write
called:
  %words.index = mul i64 %number, )" +
         text(8 * callWords) + R"(
  %words.offset = add i64 %words.index, 16
  %words = getelementptr i8, ptr @image, i64 %words.offset
  call void @)" +
         callFunctionName.str() + R"((ptr %words, ptr %words, i64 0, i64 )" +
         text(callWords) + R"(, i64 1,
      ptr %memory, ptr %memory, i64 0, i64 )" +
         text(maxImageBytes) + R"(, i64 1)
  %following = add i64 %number, 1
  br label %calling
write:
  %written = phi i64 [0, %calling], [%written.next, %write]
  %from = getelementptr i8, ptr @image, i64 %written
  %rest = sub i64 %end, %written
  %count = )" +
         call + R"((i64 64, i64 1, ptr %from, i64 %rest)
  %written.next = add i64 %written, %count
  %unwritten = icmp sgt i64 %count, 0
  %incomplete = icmp ult i64 %written.next, %end
  %again = and i1 %unwritten, %incomplete
  br i1 %again, label %write, label %exit
exit:
  %none = )" +
         call + R"((i64 93, i64 0, ptr null, i64 0)
  unreachable
}
)";
}

class Program final : public MicroKernelProgram {
public:
  Result<std::string> assembly() override {
    return emitCode(*llvm::CloneModule(*module), target, CodeKind::Assembly);
  }
  Status run(const std::vector<MicroKernelCall> &calls, unsigned char *memory,
             size_t size, int64_t vectorBytes) override {
    if (target.architecture == CpuArchitecture::AArch64)
      return runEmulated(calls, memory, size, vectorBytes);
    if (!jit) {
      SANDWICH_ASSIGN_OR_RETURN(
          jit, JitCode::load(std::move(module), std::move(context)));
    }
    SANDWICH_ASSIGN_OR_RETURN(
        CallFunction function,
        jit->lookup<CallFunction>(callFunctionName.str()));
    for (const MicroKernelCall &call : calls) {
      CallWords words = getWords(call);
      function(words.data(), words.data(), 0, callWords, 1, memory, memory, 0,
               static_cast<int64_t>(size), 1);
    }
    return {};
  }

  Target target;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;

private:
  Status runEmulated(const std::vector<MicroKernelCall> &calls,
                     unsigned char *memory, size_t size, int64_t vectorBytes);
  /// Links the freestanding program into `path`.
  Status linkProgram(const std::string &object, const std::string &path);

  std::unique_ptr<JitCode> jit;
  /// The freestanding program, once linked.
  std::string program;
};

} // namespace

std::string test::whyNotRun(const Target &target) {
  if (target.architecture == CpuArchitecture::AArch64)
    return findAArch64Emulator().empty() ? "qemu-aarch64 is not installed" : "";
  return hostRuns(target.name)
             ? ""
             : "this CPU does not run code for " + target.name;
}

std::string test::findAArch64Emulator() {
  auto path = llvm::sys::findProgramByName("qemu-aarch64");
  return path ? *path : "";
}

Status Program::linkProgram(const std::string &object,
                            const std::string &path) {
  std::string input = path + ".o";
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(input));
  SANDWICH_RETURN_IF_ERROR(file.write(object));
  SANDWICH_RETURN_IF_ERROR(file.commit());
  const char *arguments[] = {"ld.lld",         "-static",    "-e",
                             "sandwich_start", "-o",         path.c_str(),
                             input.c_str(),    "--threads=1"};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result linked =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (linked.retCode != 0)
    return makeError("linking failed: ", messages);
  return {};
}

Status Program::runEmulated(const std::vector<MicroKernelCall> &calls,
                            unsigned char *memory, size_t size,
                            int64_t vectorBytes) {
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("sandwich-emulated", folder))
    return makeError("cannot create a temporary folder: ", code.message());
  auto cleanup =
      llvm::scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  std::string path = (folder + "/program").str();
  if (program.empty()) {
    SANDWICH_ASSIGN_OR_RETURN(std::string object,
                              emitCode(*module, target, CodeKind::Object));
    SANDWICH_RETURN_IF_ERROR(linkProgram(object, path));
    SANDWICH_ASSIGN_OR_RETURN(program, readTextFile(path, size_t(1) << 30));
  } else {
    SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
    SANDWICH_RETURN_IF_ERROR(file.write(program));
    SANDWICH_RETURN_IF_ERROR(file.commit());
  }
  llvm::sys::fs::setPermissions(path, llvm::sys::fs::all_all);

  size_t memoryOffset = (16 + calls.size() * sizeof(CallWords) + 63) / 64 * 64;
  if (memoryOffset + size > maxImageBytes)
    return makeError("the program has ", maxImageBytes, " bytes of memory, ",
                     memoryOffset + size, " are needed");
  std::string image(memoryOffset + size, '\0');
  auto put = [&](size_t place, const void *data, size_t bytes) {
    std::memcpy(image.data() + place, data, bytes);
  };
  int64_t header[] = {static_cast<int64_t>(calls.size()),
                      static_cast<int64_t>(memoryOffset)};
  put(0, header, sizeof(header));
  for (auto [i, call] : llvm::enumerate(calls)) {
    CallWords words = getWords(call);
    put(16 + i * sizeof(words), words.data(), sizeof(words));
  }
  put(memoryOffset, memory, size);
  std::string inputPath = path + ".in", outputPath = path + ".out";
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(inputPath));
  SANDWICH_RETURN_IF_ERROR(file.write(image));
  SANDWICH_RETURN_IF_ERROR(file.commit());

  std::string emulator = findAArch64Emulator(), message;
  const std::string cpu =
      "max,sve-default-vector-length=" + std::to_string(vectorBytes);
  StringRef arguments[] = {emulator, "-cpu", cpu, path};
  std::optional<StringRef> redirects[] = {StringRef(inputPath),
                                          StringRef(outputPath), std::nullopt};
  int status = llvm::sys::ExecuteAndWait(emulator, arguments, std::nullopt,
                                         redirects, 0, 0, &message);
  if (status != 0)
    return makeError("qemu-aarch64 ended with ", status, ": ", message);
  SANDWICH_ASSIGN_OR_RETURN(std::string output,
                            readTextFile(outputPath, maxImageBytes));
  if (output.size() != image.size())
    return makeError("the program wrote ", output.size(), " of ", image.size(),
                     " bytes");
  std::memcpy(memory, output.data() + memoryOffset, size);
  return {};
}

Result<std::unique_ptr<MicroKernelProgram>> MicroKernelProgram::compile(
    const std::vector<MicroKernelSpecialization> &kernels, const Target &target,
    bool emulateAMX) {
  DialectRegistry registry;
  registerSandwichDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  CallWriter(*module).write(kernels);
  PassManager manager(&context);
  LoopsToLLVMOptions lowering;
  if (emulateAMX)
    manager.addPass(test::createEmulateAMX());
  buildLoopsToLLVMPipeline(manager, lowering);
  if (failed(manager.run(*module)))
    return makeError(diagnostics);

  auto program = std::make_unique<Program>();
  program->target = target;
  program->context = std::make_unique<llvm::LLVMContext>();
  program->module = translateModuleToLLVMIR(*module, *program->context);
  if (!program->module)
    return makeError(diagnostics);
  if (target.architecture == CpuArchitecture::AArch64) {
    llvm::SMDiagnostic diagnostic;
    std::unique_ptr<llvm::Module> start = llvm::parseAssemblyString(
        getStartSource(), diagnostic, *program->context);
    if (!start)
      return makeError(diagnostic.getMessage().str());
    start->setDataLayout(program->module->getDataLayout());
    if (llvm::Linker::linkModules(*program->module, std::move(start)))
      return makeError("the program's start cannot be linked");
  }
  SANDWICH_RETURN_IF_ERROR(optimize(*program->module, target));
  return std::unique_ptr<MicroKernelProgram>(std::move(program));
}
