//===- Automaton.cpp - Deterministic automata over bytes ------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Automaton.h"

#include "TokenTrie.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

using namespace sandwich::grammar;

namespace {

/// An automaton as derivatives give it, with transitions by ranges of bytes.
struct RawAutomaton {
  struct Transition {
    uint32_t from;
    uint8_t first, last;
    uint32_t to;
  };

  std::vector<Transition> transitions;
  std::vector<uint8_t> accepting;
  ByteSet boundaries;

  /// False if there are too many states, or the budget is exhausted.
  bool build(ExpressionPool &pool, Expression expression,
             const ByteSet &available);
  /// Makes states dead from which no text can be completed.
  void prune();
};

} // namespace

bool RawAutomaton::build(ExpressionPool &pool, Expression expression,
                         const ByteSet &available) {
  std::vector<Expression> expressions = {ExpressionPool::nothing};
  std::unordered_map<uint32_t, uint32_t> stateOf;
  auto stateFor = [&](Expression of) {
    if (of == ExpressionPool::nothing)
      return Automaton::dead;
    const auto [position, isNew] = stateOf.try_emplace(
        static_cast<uint32_t>(of), static_cast<uint32_t>(expressions.size()));
    if (isNew)
      expressions.push_back(of);
    return position->second;
  };
  stateFor(expression);
  ByteSet edges = available ^ (available << 1);
  boundaries = edges.reset(0);
  for (uint32_t state = 1; state < expressions.size(); ++state) {
    if (expressions.size() > Automaton::mostStates)
      return false;
    const ByteSet own = pool.boundaries(expressions[state]) | edges;
    boundaries |= own;
    for (unsigned first = 0; first < 256;) {
      unsigned next = first + 1;
      while (next < 256 && !own.test(next))
        ++next;
      if (available.test(first)) {
        const uint32_t to = stateFor(
            pool.derivative(expressions[state], static_cast<uint8_t>(first)));
        if (to != Automaton::dead)
          transitions.push_back({state, static_cast<uint8_t>(first),
                                 static_cast<uint8_t>(next - 1), to});
      }
      if (!pool.compileBudget().spend(1))
        return false;
      first = next;
    }
  }
  for (Expression each : expressions)
    accepting.push_back(pool.isNullable(each));
  return !pool.compileBudget().exhausted();
}

void RawAutomaton::prune() {
  std::vector<std::vector<uint32_t>> before(accepting.size());
  for (const Transition &transition : transitions)
    before[transition.to].push_back(transition.from);
  std::vector<uint8_t> alive = accepting;
  std::vector<uint32_t> work;
  for (uint32_t state = 0; state < alive.size(); ++state)
    if (alive[state])
      work.push_back(state);
  while (!work.empty()) {
    const uint32_t state = work.back();
    work.pop_back();
    for (uint32_t previous : before[state])
      if (!std::exchange(alive[previous], 1))
        work.push_back(previous);
  }
  std::erase_if(transitions, [&](const Transition &transition) {
    return !alive[transition.from] || !alive[transition.to];
  });
}

std::shared_ptr<const Automaton> Automaton::build(ExpressionPool &pool,
                                                  Expression expression,
                                                  const ByteSet &available) {
  RawAutomaton raw;
  if (!raw.build(pool, expression, available))
    return nullptr;
  raw.prune();
  std::shared_ptr<Automaton> automaton(new Automaton);
  for (unsigned byte = 1; byte < 256; ++byte)
    automaton->classOf[byte] = static_cast<uint8_t>(
        automaton->classOf[byte - 1] + raw.boundaries.test(byte));
  automaton->classCount = automaton->classOf[255] + 1u;
  const size_t states = raw.accepting.size();
  if (states * automaton->classCount > mostEntries ||
      !pool.compileBudget().spend(states * automaton->classCount / 8))
    return nullptr;
  automaton->accepting = std::move(raw.accepting);
  automaton->table.resize(states * automaton->classCount);
  for (const RawAutomaton::Transition &transition : raw.transitions)
    for (unsigned byte = transition.first; byte <= transition.last; ++byte)
      automaton->table[transition.from * automaton->classCount +
                       automaton->classOf[byte]] =
          static_cast<uint16_t>(transition.to);
  automaton->startState = states > 1 ? 1 : dead;
  automaton->mergeClasses();
  automaton->minimize();
  automaton->describeStates();
  static std::atomic<uint64_t> nextIdentity{1};
  automaton->identity = nextIdentity++;
  return automaton;
}

/// Bytes that lead to the same states from everywhere become one class.
void Automaton::mergeClasses() {
  const size_t states = accepting.size();
  std::map<std::vector<uint16_t>, uint8_t> columns;
  std::array<uint8_t, 256> newClass{};
  for (uint32_t old = 0; old < classCount; ++old) {
    std::vector<uint16_t> column(states);
    for (size_t state = 0; state < states; ++state)
      column[state] = table[state * classCount + old];
    newClass[old] = columns
                        .try_emplace(std::move(column),
                                     static_cast<uint8_t>(columns.size()))
                        .first->second;
  }
  const auto count = static_cast<uint32_t>(columns.size());
  std::vector<uint16_t> merged(states * count);
  for (const auto &[column, number] : columns)
    for (size_t state = 0; state < states; ++state)
      merged[state * count + number] = column[state];
  for (uint8_t &each : classOf)
    each = newClass[each];
  table = std::move(merged);
  classCount = count;
}

namespace {

/// Sets of states that are divided, as in Hopcroft's algorithm (1971).
class Partition {
public:
  explicit Partition(size_t states)
      : order(states), place(states), setOf(states, 0) {
    std::iota(order.begin(), order.end(), 0u);
    std::iota(place.begin(), place.end(), 0u);
    sets.push_back({0, static_cast<uint32_t>(states), 0});
  }

  size_t size() const { return sets.size(); }
  uint32_t of(uint32_t state) const { return setOf[state]; }
  size_t sizeOf(uint32_t set) const { return sets[set].end - sets[set].begin; }
  std::span<const uint32_t> members(uint32_t set) const {
    return std::span(order).subspan(sets[set].begin, sizeOf(set));
  }

  /// Marks `state`, which is not marked, for the next `split`.
  void mark(uint32_t state) {
    Set &set = sets[setOf[state]];
    if (set.marked == 0)
      touched.push_back(setOf[state]);
    const uint32_t to = set.begin + set.marked++;
    const uint32_t from = place[state];
    std::swap(order[from], order[to]);
    place[order[from]] = from;
    place[order[to]] = to;
  }

  /// Divides each set into marked and other states, and calls
  /// `divided(old, added)`.
  template <typename Divided> void split(Divided divided) {
    for (uint32_t old : std::exchange(touched, {})) {
      const uint32_t middle =
          sets[old].begin + std::exchange(sets[old].marked, 0);
      if (middle == sets[old].end)
        continue;
      const auto added = static_cast<uint32_t>(sets.size());
      sets.push_back({sets[old].begin, middle, 0});
      sets[old].begin = middle;
      for (uint32_t state : members(added))
        setOf[state] = added;
      divided(old, added);
    }
  }

private:
  struct Set {
    uint32_t begin, end, marked;
  };
  std::vector<uint32_t> order, place, setOf, touched;
  std::vector<Set> sets;
};

} // namespace

void Automaton::minimize() {
  const size_t states = accepting.size();
  // States before each state, by class.
  std::vector<uint32_t> begins(states * classCount + 1);
  for (size_t i = 0; i < table.size(); ++i)
    ++begins[size_t(table[i]) * classCount + i % classCount + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> before(table.size()), next = begins;
  for (size_t i = 0; i < table.size(); ++i)
    before[next[size_t(table[i]) * classCount + i % classCount]++] =
        static_cast<uint32_t>(i / classCount);

  Partition partition(states);
  std::vector<std::pair<uint32_t, uint32_t>> work;
  std::vector<std::vector<uint8_t>> waits(classCount);
  auto add = [&](uint32_t set, uint32_t byteClass) {
    waits[byteClass].resize(partition.size());
    waits[byteClass][set] = 1;
    work.emplace_back(set, byteClass);
  };
  auto divided = [&](uint32_t old, uint32_t added) {
    for (uint32_t byteClass = 0; byteClass < classCount; ++byteClass) {
      waits[byteClass].resize(partition.size());
      const bool addsNew = waits[byteClass][old] ||
                           partition.sizeOf(added) < partition.sizeOf(old);
      add(addsNew ? added : old, byteClass);
    }
  };
  for (uint32_t state = 0; state < states; ++state)
    if (accepting[state])
      partition.mark(state);
  for (uint32_t byteClass = 0; byteClass < classCount; ++byteClass)
    add(0, byteClass);
  partition.split(divided);
  std::vector<uint32_t> sources;
  while (!work.empty()) {
    const auto [set, byteClass] = work.back();
    work.pop_back();
    waits[byteClass][set] = 0;
    sources.clear();
    for (uint32_t state : partition.members(set)) {
      const size_t column = state * classCount + byteClass;
      sources.insert(sources.end(), before.begin() + begins[column],
                     before.begin() + begins[column + 1]);
    }
    for (uint32_t state : sources)
      partition.mark(state);
    partition.split(divided);
  }

  // The set of the dead state, which is alone with states like it, becomes 0.
  std::vector<uint32_t> numbers(partition.size(), 0);
  uint32_t count = 1;
  for (uint32_t set = 0; set < partition.size(); ++set)
    if (set != partition.of(dead))
      numbers[set] = count++;
  std::vector<uint16_t> smaller(count * size_t(classCount));
  std::vector<uint8_t> ends(count);
  for (uint32_t set = 0; set < partition.size(); ++set) {
    const uint32_t state = partition.members(set).front();
    ends[numbers[set]] = accepting[state];
    for (uint32_t byteClass = 0; byteClass < classCount; ++byteClass)
      smaller[numbers[set] * classCount + byteClass] = static_cast<uint16_t>(
          numbers[partition.of(table[state * classCount + byteClass])]);
  }
  startState = numbers[partition.of(startState)];
  table = std::move(smaller);
  accepting = std::move(ends);
}

void Automaton::describeStates() {
  open.assign(accepting.size(), 0);
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] != dead)
      open[i / classCount] = 1;
  plain.assign(accepting.size(), 1);
  for (unsigned byte = 0; byte < 256; ++byte)
    if (TokenTrie::isPlain(static_cast<uint8_t>(byte)))
      for (uint32_t state = 0; state < plain.size(); ++state)
        plain[state] &= step(state, static_cast<uint8_t>(byte)) == state;
}
