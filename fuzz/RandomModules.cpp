//===- RandomModules.cpp - Passes on modules nobody wrote -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads random modules, each of which follows from its number, and runs
/// Sandwich's passes and pipelines on them in this process. Whatever is wrong
/// with a module must be an error with a reason, soon; what a pass leaves must
/// be valid, and what is valid the same when it is printed and read again.
/// Ends with status 1, or by a signal, at the first module where that is not
/// so, and says which.
///
//===----------------------------------------------------------------------===//

#include "RandomModule.h"
#include "sandwich/Dialect/Gemm/IR/Gemm.h"
#include "sandwich/Pipelines/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

using namespace mlir;
using namespace sandwich;

namespace {

llvm::cl::opt<uint64_t> firstOption("first", llvm::cl::desc("First module"),
                                    llvm::cl::init(1));
llvm::cl::opt<uint64_t> countOption("count", llvm::cl::desc("How many modules"),
                                    llvm::cl::init(10000));
llvm::cl::opt<unsigned>
    secondsOption("seconds",
                  llvm::cl::desc("Most processor time for one module"),
                  llvm::cl::init(1));
llvm::cl::opt<bool>
    printOption("print",
                llvm::cl::desc("Print the first module and what is done with "
                               "it, and do it"));

/// The module that is being looked at, for the signal handlers.
volatile uint64_t current = 0;
char alternateStack[1 << 16];

/// Says which module it was; safe in a signal handler.
void report(const char *problem) {
  char digits[24];
  size_t length = 0;
  for (uint64_t rest = current; rest || length == 0; rest /= 10)
    digits[sizeof digits - ++length] = static_cast<char>('0' + rest % 10);
  auto write = [](const char *text, size_t size) {
    (void)!::write(STDERR_FILENO, text, size);
  };
  write("error: module ", 14);
  write(digits + sizeof digits - length, length);
  write(" ", 1);
  write(problem, strlen(problem));
  write("\n", 1);
}

void onFault(int number) {
  report("ends the process by a signal");
  signal(number, SIG_DFL);
  raise(number);
}

void onTimeout(int) {
  report("takes too long");
  _exit(1);
}

void installHandlers() {
  stack_t stack = {};
  stack.ss_sp = alternateStack;
  stack.ss_size = sizeof alternateStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = onFault;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    sigaction(number, &action, nullptr);
  action.sa_handler = onTimeout;
  sigaction(SIGPROF, &action, nullptr);
}

void startTimer() {
  itimerval timer = {};
  timer.it_value.tv_sec = secondsOption;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

[[noreturn]] void fail(const std::string &problem) {
  report(problem.c_str());
  exit(1);
}

/// Checks what every pass leaves.
class CheckAfterPass : public PassInstrumentation {
public:
  void runAfterPass(Pass *pass, Operation *op) override {
    if (failed(verify(op)))
      fail("is not valid after " + pass->getName().str());
  }
};

/// Runs passes and pipelines by their text, on modules of one context.
class Runner {
public:
  explicit Runner(const DialectRegistry &registry)
      : context(registry, MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return success();
      isExplained = true;
      if (printOption)
        llvm::errs() << diagnostic << "\n";
      return success();
    });
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    isExplained = false;
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module && !isExplained)
      fail("is refused without a reason");
    return module;
  }

  bool run(ModuleOp module, const std::string &pipeline) {
    if (printOption)
      llvm::errs() << "-- " << pipeline << "\n";
    isExplained = false;
    if (succeeded(managerOf(pipeline).run(module)))
      return true;
    if (!isExplained)
      fail("fails in " + pipeline + " without a reason");
    return false;
  }

  /// What is valid must be the same after it was printed and read.
  void roundTrip(ModuleOp module) {
    const std::string first = print(module);
    auto again = parse(first);
    if (!again)
      fail("cannot be read once it is printed");
    if (print(*again) != first)
      fail("changes when it is printed and read");
  }

private:
  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  PassManager &managerOf(const std::string &pipeline) {
    std::unique_ptr<PassManager> &manager = managers[pipeline];
    if (!manager) {
      manager = std::make_unique<PassManager>(&context);
      manager->enableVerifier(false);
      manager->addInstrumentation(std::make_unique<CheckAfterPass>());
      if (failed(parsePassPipeline(pipeline, *manager, llvm::errs())))
        fail("needs a pipeline that does not exist: " + pipeline);
    }
    return *manager;
  }

  MLIRContext context;
  bool isExplained = false;
  llvm::StringMap<std::unique_ptr<PassManager>> managers;
};

/// How many modules came how far.
using Progress = std::map<std::string, uint64_t>;

} // namespace

static std::string with(const std::string &pass, const std::string &options) {
  return pass + "{" + options + "}";
}

/// Whether no schedule is left to be chosen.
static bool hasSchedules(ModuleOp module) {
  bool hasAll = true;
  module.walk([&](Operation *op) {
    if (isa<lm::LinearOp>(op))
      hasAll = false;
    else if (auto matmul = dyn_cast<gemm::MatmulOp>(op))
      hasAll &= static_cast<bool>(matmul.getSchedules());
  });
  return hasAll;
}

/// The way of the compiler, to a depth that makes rare what takes long.
static void runCompiler(Runner &runner, ModuleOp module, Decisions &decisions,
                        Progress &progress) {
  const std::string target = "target=x86-64-avx2";
  const std::string threads =
      "threads=" + std::to_string(decisions.between(1, 2));
  auto run = [&](const std::string &pipeline, const std::string &stage) {
    if (!runner.run(module, pipeline))
      return false;
    ++progress[stage];
    return true;
  };
  if (decisions.perMille(200) &&
      !run(with("lm-partition", "ranks=2"), "1 partitioned"))
    return;
  // Without schedules there is nothing more to see of a model's matmuls, but
  // choosing them takes long.
  const bool isChosen = hasSchedules(module) || decisions.perMille(30);
  // Then nothing is left to fuse.
  if (decisions.perMille(200) &&
      !run(with("lm-to-gemm", "fuse=false"), "2 unfused"))
    return;
  if (!run(isChosen ? with("model-to-schedule", target + " " + threads)
                    : "lm-to-gemm",
           isChosen ? "2 scheduled" : "2 matmuls"))
    return;
  if (decisions.perMille(100))
    runner.roundTrip(module);
  const std::string buffers =
      with("phase-assign-buffers", threads + " max-tokens=4 max-logit-rows=4");
  if (!run("lm-place-weights," + buffers +
               ",phase-insert-barriers,phase-insert-marks",
           "3 in buffers"))
    return;
  if (decisions.perMille(100))
    runner.roundTrip(module);
  if (!isChosen ||
      !run("gemm-dispatch,gemm-split-k,gemm-polymerize", "4 nests") ||
      !decisions.perMille(100))
    return;
  if (!run("gemm-to-loops," + with("lm-to-loops", target), "5 loops") ||
      !decisions.perMille(150))
    return;
  if (run("canonicalize,cse,loops-to-llvm", "6 LLVM"))
    runner.roundTrip(module);
}

/// Passes in any order.
static void runPasses(Runner &runner, ModuleOp module, Decisions &decisions,
                      Progress &progress) {
  while (!decisions.perMille(300)) {
    const std::string threads =
        "threads=" + std::to_string(decisions.between(0, 3));
    const std::string target =
        "target=" +
        decisions.pick<std::string>({"x86-64-avx2", "x86-64-avx512",
                                     "x86-64-avx512-bf16", "x86-64-amx"});
    const std::string pipeline = decisions.pick<std::string>({
        "approximate-math",
        "gemm-dispatch",
        "gemm-split-k",
        "gemm-polymerize",
        "gemm-to-loops",
        "gemm-dispatch,gemm-split-k,gemm-polymerize",
        "gemm-pack-weights",
        with("gemm-schedule", target + " " + threads),
        with("lm-schedule-attention", target + " " + threads),
        with("lm-partition",
             "ranks=" + std::to_string(decisions.between(0, 4))),
        "lm-place-weights",
        "lm-to-gemm",
        with("lm-to-gemm", "fuse=false"),
        "lm-verify-phases",
        with("lm-to-loops", target),
        with("phase-assign-buffers", threads + " max-tokens=4"),
        "phase-insert-barriers",
        "phase-insert-marks",
        "phase-to-llvm",
        "strip-model",
        "topo-enumerate{limit=100}",
        "topo-cross-section",
        with("model-to-schedule", target + " " + threads),
        with("schedule-to-loops", target + " " + threads + " max-tokens=4"),
    });
    // These make much code of little.
    const bool isLarge =
        pipeline.find("to-loops") != std::string::npos ||
        pipeline.find("gemm-schedule{") != std::string::npos ||
        pipeline.find("model-to-schedule{") != std::string::npos;
    if (isLarge && !decisions.perMille(200))
      continue;
    if (!runner.run(module, pipeline))
      return;
    ++progress["0 " + pipeline.substr(0, pipeline.find('{'))];
  }
  if (decisions.perMille(50))
    runner.roundTrip(module);
}

static void tryModule(Runner &runner, uint64_t number, Progress &progress) {
  current = number;
  startTimer();
  Decisions decisions(number);
  const std::string text = makeRandomModule(decisions);
  if (printOption)
    llvm::outs() << text;
  auto module = runner.parse(text);
  if (!module)
    return;
  ++progress["0 valid"];
  if (decisions.perMille(50))
    runner.roundTrip(*module);
  if (decisions.perMille(500))
    runCompiler(runner, *module, decisions, progress);
  else
    runPasses(runner, *module, decisions, progress);
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "Sandwich's passes on random modules\n");
  DialectRegistry registry;
  registerSandwichDialects(registry);
  registerSandwichPasses();
  registerPass([] { return createCanonicalizerPass(); });
  registerPass([] { return createCSEPass(); });
  installHandlers();

  Progress progress;
  std::unique_ptr<Runner> runner;
  const uint64_t count = printOption ? 1 : countOption;
  // A context keeps every type and attribute there ever was.
  constexpr uint64_t modulesOfContext = 2000;
  constexpr uint64_t modulesOfReport = 100000;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % modulesOfContext == 0)
      runner = std::make_unique<Runner>(registry);
    if (i > 0 && i % modulesOfReport == 0)
      llvm::errs() << i << " modules\n";
    tryModule(*runner, firstOption + i, progress);
  }
  llvm::outs() << count << " modules\n";
  for (const auto &[stage, modules] : progress)
    llvm::outs() << "  " << stage.substr(2) << ": " << modules << "\n";
  // About half of them are, unless the writer no longer writes what is read.
  constexpr uint64_t enough = 1000;
  if (count >= enough && progress["0 valid"] < count / 4) {
    llvm::errs() << "error: fewer than a quarter of the modules are valid\n";
    return 1;
  }
  return 0;
}
