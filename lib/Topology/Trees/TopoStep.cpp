//===- TopoStep.cpp - One group or remove of a TopoTree -------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/Trees/TopoStep.h"

#include <charconv>

using namespace sandwich;

/// The numbers in "(1,2)", or nothing if it is no such list.
static std::vector<unsigned> parseArguments(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    return {};
  std::vector<unsigned> numbers;
  const char *at = text.data() + 1;
  const char *end = text.data() + text.size() - 1;
  while (true) {
    unsigned number = 0;
    auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc())
      return {};
    numbers.push_back(number);
    if (rest == end)
      return numbers;
    if (*rest != ',')
      return {};
    at = rest + 1;
  }
}

Result<std::vector<TopoStep>> sandwich::parseSteps(std::string_view text) {
  std::vector<TopoStep> steps;
  for (size_t at = text.find_first_not_of(' '); at != text.npos;
       at = text.find_first_not_of(' ', at)) {
    std::string_view step = text.substr(at, text.find(' ', at) - at);
    at += step.size();
    size_t arguments = std::min(step.find('('), step.size());
    std::string_view name = step.substr(0, arguments);
    std::vector<unsigned> numbers = parseArguments(step.substr(arguments));
    if (name == "group" && numbers.size() == 3)
      steps.push_back(
          {TopoStep::Kind::Group, numbers[0], numbers[1], numbers[2]});
    else if (name == "remove" && numbers.size() == 2)
      steps.push_back({TopoStep::Kind::Remove, numbers[0], 1, numbers[1]});
    else
      return makeError("'", step,
                       "' is neither group(size,stride,depth) nor "
                       "remove(count,depth)");
  }
  return steps;
}

std::vector<TopoStep> sandwich::stepsOf(const TopoTree &tree) {
  return *parseSteps(tree.derivation());
}

Result<TopoTree> sandwich::apply(const TopoStep &step, const TopoTree &tree) {
  if (step.kind == TopoStep::Kind::Group)
    return tree.group(step.count, step.stride, step.depth);
  return tree.remove(step.count, step.depth);
}
