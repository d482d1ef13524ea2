//===- OneDNN.cpp - oneDNN's matmul ---------------------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

#include "sandwich/Support/AnonymousMemory.h"

#include <dnnl.hpp>
#include <omp.h>
#include <sched.h>

#include <optional>
#include <stdexcept>

using namespace sandwich;
using namespace sandwich::benchmark;

namespace {

using Type = dnnl::memory::data_type;
using Format = dnnl::memory::format_tag;
using Memory = dnnl::memory;

/// Keeps the calling thread on a CPU, until it gets its old mask back.
class OnCPU {
public:
  explicit OnCPU(unsigned cpu) {
    sched_getaffinity(0, sizeof(before), &before);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    sched_setaffinity(0, sizeof(only), &only);
  }
  ~OnCPU() { sched_setaffinity(0, sizeof(before), &before); }
  OnCPU(const OnCPU &) = delete;
  OnCPU &operator=(const OnCPU &) = delete;

private:
  cpu_set_t before;
};

class OneDNN final : public Peer {
public:
  OneDNN(const Operands &operands, int64_t n, int64_t k, bool bf16,
         int64_t layers, int64_t maxRows, const std::vector<unsigned> &cpus)
      : operands(operands), n(n), k(k), layers(layers), cpus(cpus),
        type(bf16 ? Type::bf16 : Type::f32),
        input({{maxRows, k}, type, Format::ab}, engine),
        output({{maxRows, n}, Type::f32, Format::ab}, engine) {
    for (int64_t row = 0; row < maxRows; ++row)
      operands.fillInput(row, bf16,
                         static_cast<char *>(input.get_data_handle()) +
                             row * k * (bf16 ? 2 : 4));
  }

  std::string name() const override {
    const dnnl_version_t *version = dnnl_version();
    return "oneDNN " + std::to_string(version->major) + "." +
           std::to_string(version->minor) + "." +
           std::to_string(version->patch);
  }

  void prepare(int64_t rows) override {
    Memory::desc x({rows, k}, type, Format::ab);
    Memory::desc any({k, n}, type, Format::any);
    Memory::desc y({rows, n}, Type::f32, Format::ab);
    // Where it may choose where intermediate data lies, nothing is allocated
    // while it runs.
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
    dnnl::matmul::primitive_desc chosen(engine, x, any, y, attributes);
#else
    dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(x, any, y),
                                        attributes, engine);
#endif
    matmul = dnnl::matmul(chosen);
    scratch.emplace(chosen.scratchpad_desc(), engine);
    currentInput.emplace(x, engine, input.get_data_handle());
    currentOutput.emplace(y, engine, output.get_data_handle());
    if (weights.empty() || weights.front().get_desc() != chosen.weights_desc())
      pack(chosen.weights_desc());
  }

  void run(int64_t first, int64_t count) override {
    std::optional<OnCPU> pinned;
    if (!cpus.empty())
      pinned.emplace(cpus.front());
    for (int64_t layer = first; layer < first + count; ++layer)
      matmul.execute(stream, {{DNNL_ARG_SRC, *currentInput},
                              {DNNL_ARG_WEIGHTS, weights[layer]},
                              {DNNL_ARG_DST, *currentOutput},
                              {DNNL_ARG_SCRATCHPAD, *scratch}});
    stream.wait();
  }

  const float *result(int64_t row) const override {
    return static_cast<const float *>(output.get_data_handle()) + row * n;
  }

private:
  void pack(const Memory::desc &layout) {
    weights.clear();
    // Huge pages for both.
    constexpr uint64_t pageBytes = 4096;
    uint64_t bytes =
        (layout.get_size() + pageBytes - 1) / pageBytes * pageBytes;
    weightMemory = {};
    Result<AnonymousMemory> memory =
        AnonymousMemory::allocate(layers * bytes, "the weights of oneDNN");
    if (!memory)
      throw std::runtime_error(memory.error().message);
    weightMemory = *std::move(memory);
    // A row of W is a column of what is multiplied with.
    Memory plain({{k, n}, type, Format::ba}, engine);
    for (int64_t layer = 0; layer < layers; ++layer) {
      operands.fillWeight(layer, n, plain.get_data_handle());
      weights.emplace_back(layout, engine, weightMemory.data() + layer * bytes);
      dnnl::reorder(plain, weights.back())
          .execute(stream, plain, weights.back());
      stream.wait();
    }
  }

  const Operands &operands;
  const int64_t n, k, layers;
  const std::vector<unsigned> cpus;
  const Type type;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Memory input, output;
  std::optional<Memory> currentInput, currentOutput, scratch;
  AnonymousMemory weightMemory;
  std::vector<Memory> weights;
  dnnl::matmul matmul;
};

} // namespace

std::unique_ptr<Peer> sandwich::benchmark::createPeer(
    const Operands &operands, int64_t n, int64_t k, bool bf16, int64_t layers,
    int64_t maxRows, int64_t threads, const std::vector<unsigned> &cpus) {
  omp_set_num_threads(static_cast<int>(threads));
#pragma omp parallel
  {
    // OpenMP keeps its threads, so each stays where it is put now; this thread
    // is put there for each run.
    auto thread = static_cast<size_t>(omp_get_thread_num());
    if (thread > 0 && thread < cpus.size()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpus[thread], &set);
      sched_setaffinity(0, sizeof(set), &set);
    }
  }
  return std::make_unique<OneDNN>(operands, n, k, bf16, layers, maxRows, cpus);
}
