//===- NestLibrary.cpp - Micro-kernels for measuring ----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Tuning/NestLibrary.h"
#include "sandwich/CodeGen/ObjectCode.h"
#include "sandwich/Conversion/LoopBuilder.h"
#include "sandwich/Conversion/Passes.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Pipelines/Pipelines.h"
#include "sandwich/Scheduling/MicroKernelMenu.h"
#include "sandwich/Scheduling/ThreadGrid.h"
#include "sandwich/Target/CpuFeatures.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <numeric>
#include <sys/mman.h>
#include <tuple>
#include <unistd.h>

using namespace mlir;
using namespace sandwich;

namespace {

// MLIR's own prefix of functions that take pointers to descriptors.
constexpr llvm::StringLiteral entryPrefix = "_mlir_ciface_";

constexpr LoopOrder allOrders[] = {LoopOrder::RowsOuter,
                                   LoopOrder::ColumnsOuter};

/// Columns of the weights that nests are compiled for: more than any has. A
/// nest takes its columns from its arguments.
constexpr int64_t manyColumns = int64_t(1) << 30;

std::string entryName(LoopOrder order) {
  return "nest_" + std::string(sandwich::name(order));
}

class SharedObject {
public:
  explicit SharedObject(void *handle) : handle(handle) {}
  SharedObject(SharedObject &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  SharedObject &operator=(SharedObject &&) = delete;
  ~SharedObject() {
    if (handle)
      ::dlclose(handle);
  }

  /// Loads the bytes of a shared object, which never become a file.
  static Result<SharedObject> load(const std::string &bytes) {
    int file = ::memfd_create("sandwich-nest", MFD_CLOEXEC);
    if (file < 0)
      return makeError("cannot create memory for code: ", std::strerror(errno));
    size_t written = 0;
    while (written < bytes.size()) {
      ssize_t count =
          ::write(file, bytes.data() + written, bytes.size() - written);
      if (count <= 0) {
        ::close(file);
        return makeError("cannot write code to memory: ", std::strerror(errno));
      }
      written += static_cast<size_t>(count);
    }
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string problem = handle ? "" : ::dlerror();
    ::close(file);
    if (!handle)
      return makeError("cannot load code: ", problem);
    return SharedObject(handle);
  }

  void *find(const std::string &name) const {
    return ::dlsym(handle, name.c_str());
  }

private:
  void *handle;
};

} // namespace

/// What the code of a nest depends on beside its arguments.
struct NestLibrary::Key {
  MatrixISA isa;
  Packing packing;
  int64_t k;
  bool bf16Weights;
  int64_t columns;
  int64_t prefetchLines, prefetchStreams;
  /// Whether it prefetches at a distance, or the next slice.
  bool hasDistance;

  auto tie() const {
    return std::tuple(isa, packing.panel, packing.tile, packing.kStep,
                      packing.kPack, k, bf16Weights, columns, prefetchLines,
                      prefetchStreams, hasDistance);
  }
  bool operator<(const Key &other) const { return tie() < other.tie(); }
};

struct NestLibrary::Loaded {
  SharedObject object;
  NestFunction byOrder[std::size(allOrders)];
};

struct NestLibrary::Session {
  MLIRContext context;

  Session() : context(registry(), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerSandwichDialects(registry);
    return registry;
  }
};

NestLibrary::NestLibrary(const Target &target)
    : target(target), session(std::make_unique<Session>()) {}
NestLibrary::~NestLibrary() = default;

Result<std::unique_ptr<NestLibrary>> NestLibrary::create(const Target &target) {
  CpuFeatures host = CpuFeatures::host();
  if (!host.hasAll(target.features))
    return makeError("this CPU cannot run code for ", target.name,
                     ", so that schedules for it cannot be measured here");
  return std::unique_ptr<NestLibrary>(new NestLibrary(target));
}

/// The largest micro-kernel of `isa` with `columns` columns.
static MicroKernel tallest(MatrixISA isa, int64_t columns) {
  MicroKernel result{isa, 1, columns};
  for (const MicroKernel &kernel : microKernelMenu(isa))
    if (kernel.columns == columns)
      result.rows = std::max(result.rows, kernel.rows);
  return result;
}

/// Adds the function for `order`: a nest whose sums are stored.
static void addNest(ModuleOp module, const Schedule &schedule,
                    const MatmulShape &shape) {
  LoopBuilder b(module.getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  MLIRContext *context = module.getContext();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto bytes = MemRefType::get({dynamic}, b.getI8Type());
  SmallVector<Type> arguments(4, bytes);
  arguments.append(12, b.getIndexType());
  auto function = func::FuncOp::create(b, entryName(schedule.order),
                                       b.getFunctionType(arguments, {}));
  function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                    b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  auto argument = [&](unsigned i) -> Value { return function.getArgument(i); };

  bool bf16Input = multipliesBF16(schedule.microKernel.isa);
  auto element = [&](bool bf16) -> Type {
    return bf16 ? Type(b.getBF16Type()) : Type(b.getF32Type());
  };
  int64_t stride = rowStride(shape.k, bf16Input ? 2 : 4);
  Value rowEnd = argument(6);
  Value rows = memref::ViewOp::create(
      b, MemRefType::get({dynamic, stride}, element(bf16Input)), argument(0),
      b.index(0), rowEnd);
  auto attribute = [&](int64_t value) { return b.getIndexAttr(value); };
  Value input = memref::SubViewOp::create(
      b, rows, ArrayRef<OpFoldResult>{attribute(0), attribute(0)},
      {rowEnd, attribute(shape.k)}, {attribute(1), attribute(1)});
  auto packing = gemm::PackingAttr::get(context, *shape.packing);
  Value weight = memref::ViewOp::create(
      b, packing.getBufferType(shape.n, shape.k, element(shape.bf16Weights)),
      argument(1), b.index(0), ValueRange());
  Value result = memref::ViewOp::create(
      b, MemRefType::get({dynamic, dynamic}, b.getF32Type()), argument(2),
      b.index(0), ValueRange{rowEnd, argument(4)});

  Value part[] = {argument(5), argument(6), argument(7),
                  argument(8), argument(9), argument(10)};
  SmallVector<Value> sizes;
  for (unsigned i = 11; i < 16; ++i)
    sizes.push_back(argument(i));
  auto nest = gemm::NestOp::create(
      b, input, weight, part, sizes, argument(3), schedule,
      columnUnitOf(shape, *shape.packing), {0, lm::maxDimension});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(nest.getBody());
    ValueRange place = nest.getPlace();
    int64_t width = std::gcd(vectorWidth, shape.packing->panel);
    Value end = b.mul(b.div(b.add(place[3], width - 1), width), width);
    b.forLoop(b.index(0), place[1], 1, [&](Value row) {
      b.forLoop(b.index(0), end, width, [&](Value column) {
        Value vector = b.loadVector(nest.getSums(), {row, column}, width);
        b.storeVector(vector, result,
                      {b.add(place[0], row), b.add(place[2], column)});
      });
    });
  }
  func::ReturnOp::create(b);
}

Result<NestLibrary::Loaded> NestLibrary::compile(const Key &key) {
  MLIRContext &context = session->context;
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (problem.empty())
      problem = diagnostic.str();
    return success();
  });
  MatmulShape shape{
      .k = key.k, .bf16Weights = key.bf16Weights, .packing = key.packing};
  shape.n = manyColumns / key.packing.panel * key.packing.panel;
  Schedule schedule{.microKernel = tallest(key.isa, key.columns)};
  schedule.slice = {lm::maxDimension, manyColumns / key.columns * key.columns,
                    lm::maxDimension / key.packing.kStep * key.packing.kStep};
  schedule.prefetchLines = key.prefetchLines;
  schedule.prefetchDistance = key.hasDistance ? 1 : 0;
  schedule.prefetchStreams = key.prefetchStreams;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (LoopOrder order : allOrders) {
    schedule.order = order;
    addNest(*module, schedule, shape);
  }

  PassManager manager(&context);
  manager.addPass(createGemmToLoops());
  LoopsToLLVMOptions toLLVM;
  toLLVM.expandBF16 = !target.features.has(CpuFeature::AVX512BF16);
  buildLoopsToLLVMPipeline(manager, toLLVM);
  if (failed(manager.run(*module)))
    return makeError("a nest does not compile: ", problem);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*module, llvmContext, "nest");
  if (!code)
    return makeError("a nest has no LLVM IR: ", problem);
  SANDWICH_RETURN_IF_ERROR(optimize(*code, target, entryPrefix.str()));
  SANDWICH_ASSIGN_OR_RETURN(std::string object,
                            emitCode(*code, target, CodeKind::Object));
  SANDWICH_ASSIGN_OR_RETURN(std::string bytes, linkSharedObject(object));
  SANDWICH_ASSIGN_OR_RETURN(SharedObject shared, SharedObject::load(bytes));
  Loaded result{std::move(shared), {}};
  for (size_t i = 0; i < std::size(allOrders); ++i) {
    std::string name = entryPrefix.str() + entryName(allOrders[i]);
    void *symbol = result.object.find(name);
    if (!symbol)
      return makeError("a nest has no function ", name);
    result.byOrder[i] =
        NestFunction(reinterpret_cast<NestFunction::Function>(symbol));
  }
  return result;
}

Result<NestFunction> NestLibrary::get(const MatmulShape &shape,
                                      const Schedule &schedule) {
  Key key{.isa = schedule.microKernel.isa,
          .packing = packingFor(shape, schedule.microKernel.isa),
          .k = shape.k,
          .bf16Weights = shape.bf16Weights,
          .columns = schedule.microKernel.columns,
          .prefetchLines = schedule.prefetchLines,
          .prefetchStreams = schedule.prefetchStreams,
          .hasDistance = schedule.prefetchDistance > 0};
  auto entry = loaded.find(key);
  if (entry == loaded.end()) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point begin = Clock::now();
    SANDWICH_ASSIGN_OR_RETURN(Loaded code, compile(key));
    entry = loaded.emplace(key, std::move(code)).first;
    ++compiled;
    seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return entry->second.byOrder[static_cast<size_t>(schedule.order)];
}
