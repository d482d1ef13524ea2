//===- AssemblyLoops.cpp - Inner loops of assembly ------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AssemblyLoops.h"

#include <algorithm>
#include <optional>
#include <set>

using namespace sandwich;
using namespace sandwich::test;

namespace {

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string_view mnemonicOf(std::string_view instruction) {
  return instruction.substr(0, instruction.find_first_of(" \t"));
}

/// A function while it is read.
struct Function {
  std::string name;
  std::vector<std::string> instructions;
  /// The number of the instruction after each label.
  std::map<std::string, size_t, std::less<>> labels;
};

class LoopFinder {
public:
  LoopFinder(const Function &function, CpuArchitecture architecture)
      : function(function), arm(architecture == CpuArchitecture::AArch64),
        hasFrame(std::ranges::any_of(function.instructions,
                                     [&](const std::string &instruction) {
                                       return setsFramePointer(instruction);
                                     })) {}

  std::vector<InnerLoop> find() const {
    std::set<std::vector<size_t>> loops;
    for (size_t last = 0; last < function.instructions.size(); ++last)
      if (std::optional<size_t> first = getTarget(function.instructions[last]))
        if (std::vector<size_t> loop = getLoop(*first, last); !loop.empty())
          loops.insert(loop);
    std::vector<InnerLoop> result;
    for (const std::vector<size_t> &loop : loops)
      if (std::ranges::none_of(loops, [&](const std::vector<size_t> &other) {
            return other.size() < loop.size() &&
                   std::ranges::includes(loop, other);
          }))
        result.push_back(makeLoop(loop));
    return result;
  }

private:
  bool setsFramePointer(std::string_view instruction) const {
    if (arm)
      return instruction.starts_with("mov\tx29, sp") ||
             instruction.starts_with("add\tx29, sp");
    return instruction.starts_with("movq\t%rsp, %rbp");
  }

  /// Where a branch goes to.
  std::optional<size_t> getTarget(std::string_view instruction) const {
    std::string_view mnemonic = mnemonicOf(instruction);
    bool branches = arm ? mnemonic == "b" || mnemonic.starts_with("b.") ||
                              mnemonic.starts_with("cb") ||
                              mnemonic.starts_with("tb")
                        : mnemonic.starts_with("j");
    if (!branches)
      return std::nullopt;
    std::string_view target =
        instruction.substr(instruction.find_last_of(" \t") + 1);
    auto label = function.labels.find(target);
    if (label == function.labels.end())
      return std::nullopt;
    return label->second;
  }

  /// The instructions that may follow instruction `number`.
  std::vector<size_t> getSuccessors(size_t number) const {
    const std::string &instruction = function.instructions[number];
    std::string_view mnemonic = mnemonicOf(instruction);
    std::vector<size_t> result;
    if (std::optional<size_t> target = getTarget(instruction))
      result.push_back(*target);
    bool goesOn =
        mnemonic != "jmp" && mnemonic != "b" && !mnemonic.starts_with("ret");
    if (goesOn && number + 1 < function.instructions.size())
      result.push_back(number + 1);
    return result;
  }

  /// The instructions on the ways from `first` to `last`, a branch to it, in
  /// order; none if there is no way.
  std::vector<size_t> getLoop(size_t first, size_t last) const {
    if (first > last)
      return {};
    size_t size = function.instructions.size();
    std::vector<std::vector<size_t>> predecessors(size);
    std::vector<bool> follows(size), precedes(size);
    std::vector<size_t> work = {first};
    follows[first] = true;
    while (!work.empty()) {
      size_t number = work.back();
      work.pop_back();
      for (size_t next : getSuccessors(number)) {
        predecessors[next].push_back(number);
        if (!follows[next] && next >= first && next <= last) {
          follows[next] = true;
          work.push_back(next);
        }
      }
    }
    if (!follows[last])
      return {};
    precedes[last] = true;
    work = {last};
    while (!work.empty()) {
      size_t number = work.back();
      work.pop_back();
      for (size_t previous : predecessors[number])
        if (!precedes[previous]) {
          precedes[previous] = true;
          work.push_back(previous);
        }
    }
    std::vector<size_t> result;
    for (size_t number = first; number <= last; ++number)
      if (follows[number] && precedes[number])
        result.push_back(number);
    return result;
  }

  bool touchesStack(std::string_view instruction) const {
    auto contains = [&](std::string_view text) {
      return instruction.find(text) != instruction.npos;
    };
    std::string_view mnemonic = mnemonicOf(instruction);
    if (arm)
      return mnemonic == "bl" || mnemonic == "blr" || contains("[sp") ||
             (hasFrame && contains("[x29"));
    return mnemonic.starts_with("call") || mnemonic.starts_with("push") ||
           mnemonic.starts_with("pop") || contains("(%rsp") ||
           (hasFrame && contains("(%rbp"));
  }

  InnerLoop makeLoop(const std::vector<size_t> &numbers) const {
    InnerLoop loop;
    for (size_t number : numbers)
      loop.instructions.push_back(function.instructions[number]);
    std::ranges::copy_if(loop.instructions,
                         std::back_inserter(loop.stackTraffic),
                         [&](const std::string &instruction) {
                           return touchesStack(instruction);
                         });
    return loop;
  }

  const Function &function;
  bool arm, hasFrame;
};

} // namespace

int64_t InnerLoop::count(std::string_view mnemonic) const {
  return std::ranges::count_if(instructions, [&](std::string_view line) {
    // How it is encoded stands in front of some.
    if (line.starts_with("{"))
      line = trim(line.substr(line.find('}') + 1));
    return line.starts_with(mnemonic);
  });
}

std::map<std::string, std::vector<InnerLoop>>
test::findInnerLoops(std::string_view assembly, CpuArchitecture architecture) {
  std::map<std::string, std::vector<InnerLoop>> result;
  Function function;
  auto finish = [&] {
    if (!function.name.empty())
      result[function.name] = LoopFinder(function, architecture).find();
    function = {};
  };
  while (!assembly.empty()) {
    size_t end = std::min(assembly.find('\n'), assembly.size() - 1);
    std::string_view line = assembly.substr(0, end);
    assembly.remove_prefix(end + 1);
    // Comments begin with # on x86 (where no operand does) and // on AArch64.
    line = line.substr(0, line.find("//"));
    if (architecture == CpuArchitecture::X86_64)
      line = line.substr(0, line.find('#'));
    line = trim(line);
    if (line.empty())
      continue;
    if (line.ends_with(':')) {
      line.remove_suffix(1);
      if (line.starts_with(".L")) {
        function.labels.emplace(line, function.instructions.size());
      } else {
        finish();
        function.name = line;
      }
    } else if (!line.starts_with('.')) {
      function.instructions.emplace_back(line);
    }
  }
  finish();
  return result;
}
