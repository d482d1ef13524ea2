//===- IndexForm.cpp - Places in memory as sums ---------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sandwich;
using namespace sandwich::widening;

std::optional<int64_t> widening::constantOf(Value value) {
  // Sums and products of a few fit as well.
  constexpr unsigned mostBits = 48;
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      constant.getSignificantBits() > mostBits)
    return std::nullopt;
  return constant.getSExtValue();
}

int64_t IndexForm::factorOf(Value value) const {
  auto found = terms.find(value);
  return found == terms.end() ? 0 : found->second;
}

IndexForm IndexForm::without(Value value) const {
  IndexForm rest = *this;
  rest.terms.erase(value);
  return rest;
}

void IndexForm::add(const IndexForm &other, int64_t times) {
  // Places wrap around as indices do.
  const auto accumulate = [&](int64_t &sum, int64_t number) {
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) +
                               static_cast<uint64_t>(number) *
                                   static_cast<uint64_t>(times));
  };
  accumulate(constant, other.constant);
  for (const auto &[value, factor] : other.terms)
    accumulate(terms[value], factor);
  terms.remove_if([](const auto &term) { return term.second == 0; });
}

std::optional<int64_t> IndexForm::distanceTo(const IndexForm &other) const {
  IndexForm difference = other;
  difference.add(*this, -1);
  if (!difference.terms.empty())
    return std::nullopt;
  return difference.constant;
}

/// Whether `op` computes what it would with any number of bits.
static bool neverWraps(Operation *op) {
  Type type = op->getResult(0).getType();
  if (type.isIndex() || type.isInteger(64))
    return true;
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  return flags && flags.hasNoSignedWrap();
}

static IndexForm formOf(Value value, unsigned &steps);

IndexForm widening::indexFormOf(Value value) {
  // Of what is shared again and again, not everything is seen through.
  unsigned steps = 256;
  return formOf(value, steps);
}

static IndexForm formOf(Value value, unsigned &steps) {
  IndexForm form;
  if (std::optional<int64_t> constant = constantOf(value)) {
    form.constant = *constant;
    return form;
  }
  Operation *op = steps == 0 ? nullptr : value.getDefiningOp();
  if (op)
    --steps;
  // Indices have as many bits as the integers that have most.
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op) ||
      (isa_and_nonnull<arith::IndexCastUIOp>(op) &&
       (op->getOperand(0).getType().isInteger(64) ||
        op->getResult(0).getType().isInteger(64))))
    return formOf(op->getOperand(0), steps);
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) && neverWraps(op)) {
    form = formOf(op->getOperand(0), steps);
    form.add(formOf(op->getOperand(1), steps), isa<arith::AddIOp>(op) ? 1 : -1);
    return form;
  }
  if (isa_and_nonnull<arith::MulIOp>(op) && neverWraps(op))
    for (unsigned side : {0, 1})
      if (std::optional<int64_t> times = constantOf(op->getOperand(side))) {
        form.add(formOf(op->getOperand(1 - side), steps), *times);
        return form;
      }
  if (isa_and_nonnull<arith::ShLIOp>(op) && neverWraps(op))
    if (std::optional<int64_t> bits = constantOf(op->getOperand(1));
        bits && *bits >= 0 && *bits < 62) {
      form.add(formOf(op->getOperand(0), steps), int64_t(1) << *bits);
      return form;
    }
  form.terms[value] = 1;
  return form;
}

bool widening::isMultipleOf(const IndexForm &form, int64_t number) {
  const auto isMultiple = [&](Value value, int64_t factor) {
    if (factor % number == 0)
      return true;
    // What is cut off, or multiplied.
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AndIOp, arith::MulIOp>(op))
      return false;
    std::optional<int64_t> by = constantOf(op->getOperand(1));
    if (!by)
      return false;
    if (isa<arith::AndIOp>(op))
      return llvm::isPowerOf2_64(-static_cast<uint64_t>(*by)) &&
             -*by % number == 0;
    return neverWraps(op) && *by % number == 0;
  };
  return form.constant % number == 0 &&
         llvm::all_of(form.terms, [&](const auto &term) {
           return isMultiple(term.first, term.second);
         });
}
