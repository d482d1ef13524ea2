//===- ScheduleDatabase.cpp - What tuning found --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleDatabase.h"
#include "sandwich/Scheduling/ScheduleVersion.h"
#include "sandwich/Scheduling/schedules.pb.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <tuple>
#include <unistd.h>
#include <xxhash.h>

using namespace sandwich;
namespace pb = google::protobuf;

namespace {

constexpr const char *formatName = "sandwich schedules";
constexpr uint32_t formatVersion = 5;
/// Without attention.
constexpr uint32_t oldestFormatVersion = 2;
constexpr size_t maxFileBytes = 256 << 20;

/// Keeps the first error of the text parser.
class FirstError : public pb::io::ErrorCollector {
public:
  void AddError(int line, pb::io::ColumnNumber,
                const std::string &message) override {
    if (text.empty())
      text = "line " + std::to_string(line + 1) + ": " + message;
  }
  std::string text;
};

std::string printText(const schedules::Database &database) {
  std::string text;
  pb::TextFormat::PrintToString(database, &text);
  return text;
}

uint64_t checksumOf(schedules::Database database) {
  database.clear_checksum();
  std::string text = printText(database);
  return XXH3_64bits(text.data(), text.size());
}

auto tie(const ScheduleKey &key) {
  return std::tie(key.compilerVersion, key.strategy, key.machine,
                  key.targetFeatures, key.threads, key.storage, key.n, key.k,
                  key.columnUnit, key.packing.panel, key.packing.tile,
                  key.packing.kStep, key.packing.kPack, key.deterministic,
                  key.epilogue, key.roundsInput);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

constexpr int64_t maxSize = int64_t(1) << 40;

Status checkPositive(const char *field, int64_t value) {
  if (value <= 0 || value > maxSize)
    return makeError(field, " is ", value, ", not between 1 and ", maxSize);
  return {};
}

Result<MeasuringMachine> readMachine(const schedules::Machine &message) {
  MeasuringMachine machine;
  machine.cpuFeatures = message.cpu_features();
  const std::tuple<const char *, int64_t, int64_t *> caches[] = {
      {"machine.l1_data_bytes", message.l1_data_bytes(), &machine.l1DataBytes},
      {"machine.l2_bytes", message.l2_bytes(), &machine.l2Bytes},
      {"machine.l3_bytes", message.l3_bytes(), &machine.l3Bytes}};
  for (auto [field, value, place] : caches) {
    if (value != 0)
      SANDWICH_RETURN_IF_ERROR(checkPositive(field, value));
    *place = value;
  }
  return machine;
}

Result<AttentionElement> readElement(const char *field,
                                     const std::string &value) {
  const std::optional<AttentionElement> element = attentionElementNamed(value);
  if (!element)
    return makeError(field, " is '", value, "', not f32, bf16, f16 or int8");
  return *element;
}

Result<MatmulEpilogue> readEpilogue(const schedules::Epilogue &message,
                                    const ScheduleKey &key) {
  MatmulEpilogue epilogue;
  std::optional<Epilogue> kind = epilogueNamed(message.kind());
  if (!kind)
    return makeError("epilogue.kind is '", message.kind(), "', which is none");
  epilogue.kind = *kind;
  epilogue.bias = message.bias();
  epilogue.feedsMatmuls = message.feeds_matmuls();
  epilogue.contiguousResult = message.contiguous_result();
  if (*kind != Epilogue::RotateAppendKV)
    return epilogue;
  epilogue.cacheHeads = message.cache_heads();
  SANDWICH_RETURN_IF_ERROR(
      checkPositive("epilogue.cache_heads", epilogue.cacheHeads));
  // At most 2^40 each.
  if (key.n % key.columnUnit != 0 ||
      key.n / key.columnUnit <= 2 * epilogue.cacheHeads)
    return makeError("epilogue.cache_heads is ", epilogue.cacheHeads,
                     ", which leaves no queries of ", key.n,
                     " channels in heads of ", key.columnUnit);
  SANDWICH_ASSIGN_OR_RETURN(
      epilogue.cache, readElement("epilogue.cache_type", message.cache_type()));
  epilogue.headNorms = message.head_norms();
  return epilogue;
}

Result<ScheduleKey> readKey(const schedules::Key &message) {
  ScheduleKey key;
  key.compilerVersion = message.compiler_version();
  SANDWICH_ASSIGN_OR_RETURN(key.strategy, strategyNamed(message.strategy()));
  key.targetFeatures = message.target_features();
  SANDWICH_ASSIGN_OR_RETURN(key.machine, readMachine(message.machine()));
  const std::tuple<const char *, int64_t, int64_t *> numbers[] = {
      {"threads", message.threads(), &key.threads},
      {"n", message.n(), &key.n},
      {"k", message.k(), &key.k},
      {"column_unit", message.column_unit(), &key.columnUnit},
      {"packing.panel", message.packing().panel(), &key.packing.panel},
      {"packing.tile", message.packing().tile(), &key.packing.tile},
      {"packing.k_step", message.packing().k_step(), &key.packing.kStep},
      {"packing.k_pack", message.packing().k_pack(), &key.packing.kPack}};
  for (auto [field, value, place] : numbers) {
    SANDWICH_RETURN_IF_ERROR(checkPositive(field, value));
    *place = value;
  }
  Result<StorageFormat> storage = StorageFormat::parse(message.weight_type());
  if (!storage)
    return storage.error().inContext("weight_type");
  key.storage = *storage;
  key.roundsInput = message.rounds_input();
  if (key.roundsInput && !key.storage.hasIntegers())
    return makeError("rounds_input is true, but weights of ",
                     key.storage.name(), " are no integers");
  key.deterministic = message.deterministic();
  SANDWICH_ASSIGN_OR_RETURN(key.epilogue,
                            readEpilogue(message.epilogue(), key));
  return key;
}

Result<Schedule> readSchedule(const schedules::Schedule &message,
                              const ScheduleKey &key) {
  Schedule schedule;
  SANDWICH_ASSIGN_OR_RETURN(schedule.microKernel,
                            MicroKernel::parse(message.micro_kernel()));
  if (message.slice_size() != 3 || message.threads_size() != 3)
    return makeError("slice and threads have three numbers each, not ",
                     message.slice_size(), " and ", message.threads_size());
  std::ranges::copy(message.slice(), schedule.slice.begin());
  std::ranges::copy(message.threads(), schedule.threads.begin());
  std::optional<LoopOrder> order = loopOrderNamed(message.order());
  if (!order)
    return makeError("order is '", message.order(),
                     "', not rows_outer or columns_outer");
  schedule.order = *order;
  schedule.prefetchLines = message.prefetch_lines();
  schedule.prefetchDistance = message.prefetch_distance();
  schedule.prefetchStreams = message.prefetch_streams();
  std::optional<PrefetchHint> hint = prefetchHintNamed(message.prefetch_hint());
  if (!hint)
    return makeError("prefetch_hint is '", message.prefetch_hint(),
                     "', not l1, l2 or non_temporal");
  schedule.prefetchHint = *hint;
  std::optional<StoreKind> stores = storeKindNamed(message.stores());
  if (!stores)
    return makeError("stores is '", message.stores(),
                     "', not cached or non_temporal");
  schedule.stores = *stores;
  schedule.chunkK = message.k_chunk();
  schedule.packsInput = message.packs_input();
  std::optional<StreamedOperands> streamed =
      streamedOperandsNamed(message.streamed());
  if (!streamed)
    return makeError("streamed is '", message.streamed(),
                     "', not none, input, weight or both");
  schedule.streamed = *streamed;
  schedule.groupK = message.k_group();
  schedule.copiesAhead = message.copies_ahead();
  SANDWICH_RETURN_IF_ERROR(verify(schedule, key.shape()));
  if (multipliesIntegers(schedule.microKernel.isa) && !key.roundsInput)
    return makeError(schedule.microKernel.name(),
                     " rounds its input, which the group does not");
  auto [tM, tN, tK] = schedule.threads;
  if (tM * tN * tK > key.threads)
    return makeError("its thread grid needs ", tM * tN * tK,
                     " threads, the group has ", key.threads);
  return schedule;
}

Result<TunedSchedules> readGroup(const schedules::Group &message,
                                 const ScheduleKey &key) {
  TunedSchedules tuned;
  tuned.complete = message.complete();
  tuned.cpuModel = message.cpu_model();
  tuned.traces.insert(message.traces().begin(), message.traces().end());
  ScheduleTable table;
  if (message.ranges_size() == 0)
    return makeError("has no ranges");
  int64_t before = 0;
  for (int i = 0; i < message.ranges_size(); ++i) {
    const schedules::Range &range = message.ranges(i);
    auto context = [&](const Error &error) {
      return error.inContext("ranges[" + std::to_string(i) + "]");
    };
    bool last = i + 1 == message.ranges_size();
    if (last != (range.max_rows() == 0) ||
        (!last && range.max_rows() <= before))
      return context(makeError("max_rows is ", range.max_rows(),
                               "; they ascend, and only the last is 0"));
    Result<Schedule> schedule = readSchedule(range.schedule(), key);
    if (!schedule)
      return context(schedule.error());
    before = range.max_rows();
    table.push_back({last ? INT64_MAX : before, *schedule});
  }
  if (message.rows_size() == 0)
    return makeError("has no rows");
  before = 0;
  for (const schedules::Row &row : message.rows()) {
    if (row.rows() <= before || row.rows() > maxSize || !(row.seconds() > 0) ||
        !std::isfinite(row.seconds()))
      return makeError("rows ascend and have positive seconds; one is of ",
                       row.rows(), " rows and ", row.seconds(), " s");
    before = row.rows();
    tuned.choices.push_back(
        {before, scheduleFor(table, before), row.seconds(), !row.derived()});
  }
  return tuned;
}

Result<AttentionKey> readKey(const schedules::AttentionKey &message) {
  AttentionKey key;
  key.compilerVersion = message.compiler_version();
  key.targetFeatures = message.target_features();
  SANDWICH_ASSIGN_OR_RETURN(key.machine, readMachine(message.machine()));
  const std::tuple<const char *, int64_t, int64_t *> numbers[] = {
      {"threads", message.threads(), &key.threads},
      {"cache_heads", message.cache_heads(), &key.shape.cacheHeads},
      {"group", message.group(), &key.shape.group},
      {"head_dim", message.head_dim(), &key.shape.headDim}};
  for (auto [field, value, place] : numbers) {
    SANDWICH_RETURN_IF_ERROR(checkPositive(field, value));
    *place = value;
  }
  const std::tuple<const char *, const std::string &, AttentionElement *>
      elements[] = {{"cache_type", message.cache_type(), &key.shape.cache},
                    {"query_type", message.query_type(), &key.shape.query},
                    {"result_type", message.result_type(), &key.shape.result}};
  for (const auto &[field, value, place] : elements) {
    SANDWICH_ASSIGN_OR_RETURN(*place, readElement(field, value));
    if (*place == AttentionElement::Int8 && place != &key.shape.cache)
      return makeError(field, " is '", value, "', which only a cache is");
  }
  return key;
}

AttentionTile readTile(const schedules::AttentionTile &message) {
  return {.rows = message.rows(),
          .keyBlocks = message.key_blocks(),
          .chunk = message.chunk()};
}

Result<AttentionTable> readAttention(const schedules::Attention &message,
                                     const AttentionKey &key) {
  AttentionTable table;
  auto limit = [](int64_t value) {
    return value == 0 ? AttentionTableEntry::unlimited : value;
  };
  for (const schedules::AttentionEntry &entry : message.entries()) {
    AttentionSchedule schedule{.decode = readTile(entry.decode()),
                               .split = entry.split(),
                               .prefill = readTile(entry.prefill()),
                               .tiles = entry.tiles()};
    if (!entry.instructions().empty()) {
      const std::span<const MatrixISA> all = allMatrixISAs();
      const auto isa = std::ranges::find_if(all, [&](MatrixISA each) {
        return name(each) == entry.instructions();
      });
      if (isa == all.end())
        return makeError("instructions are '", entry.instructions(),
                         "', which are unknown");
      schedule.instructions = *isa;
    }
    SANDWICH_RETURN_IF_ERROR(verify(schedule));
    SANDWICH_RETURN_IF_ERROR(verify(schedule, key.shape));
    table.push_back({.maxSegments = limit(entry.max_segments()),
                     .maxPositions = limit(entry.max_positions()),
                     .schedule = schedule});
  }
  SANDWICH_RETURN_IF_ERROR(verify(table));
  return table;
}

Result<KernelTuningKey> readKey(const schedules::KernelKey &message) {
  KernelTuningKey key;
  key.compilerVersion = message.compiler_version();
  key.targetFeatures = message.target_features();
  key.kernel = message.kernel();
  if (key.kernel.empty())
    return makeError("kernel is missing");
  SANDWICH_ASSIGN_OR_RETURN(key.machine, readMachine(message.machine()));
  for (const auto &[name, size] : message.sizes()) {
    if (size < 0 || size > maxSize)
      return makeError("sizes: ", name, " is ", size, ", not between 0 and ",
                       maxSize);
    key.sizes[name] = size;
  }
  return key;
}

Result<KernelParameters> readKernel(const schedules::Kernel &message) {
  KernelParameters parameters;
  for (const auto &[name, value] : message.parameters()) {
    if (value < 0 || value > maxSize)
      return makeError("parameters: ", name, " is ", value,
                       ", not between 0 and ", maxSize);
    parameters[name] = value;
  }
  if (parameters.empty())
    return makeError("has no parameters");
  return parameters;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void write(const MeasuringMachine &machine, schedules::Machine &message) {
  message.set_cpu_features(machine.cpuFeatures);
  message.set_l1_data_bytes(machine.l1DataBytes);
  message.set_l2_bytes(machine.l2Bytes);
  message.set_l3_bytes(machine.l3Bytes);
}

void write(const KernelTuningKey &key, const KernelParameters &parameters,
           schedules::Kernel &message) {
  schedules::KernelKey &own = *message.mutable_key();
  own.set_compiler_version(key.compilerVersion);
  write(key.machine, *own.mutable_machine());
  own.set_target_features(key.targetFeatures);
  own.set_kernel(key.kernel);
  own.mutable_sizes()->insert(key.sizes.begin(), key.sizes.end());
  message.mutable_parameters()->insert(parameters.begin(), parameters.end());
}

void write(const AttentionTile &tile, schedules::AttentionTile &message) {
  message.set_rows(tile.rows);
  message.set_key_blocks(tile.keyBlocks);
  message.set_chunk(tile.chunk);
}

void write(const AttentionKey &key, const AttentionTable &table,
           schedules::Attention &message) {
  schedules::AttentionKey &own = *message.mutable_key();
  own.set_compiler_version(key.compilerVersion);
  write(key.machine, *own.mutable_machine());
  own.set_target_features(key.targetFeatures);
  own.set_threads(key.threads);
  own.set_cache_heads(key.shape.cacheHeads);
  own.set_group(key.shape.group);
  own.set_head_dim(key.shape.headDim);
  own.set_cache_type(std::string(name(key.shape.cache)));
  own.set_query_type(std::string(name(key.shape.query)));
  own.set_result_type(std::string(name(key.shape.result)));
  auto limit = [](int64_t value) {
    return value == AttentionTableEntry::unlimited ? 0 : value;
  };
  for (const auto &[maxSegments, maxPositions, schedule] : table) {
    schedules::AttentionEntry &entry = *message.add_entries();
    entry.set_max_segments(limit(maxSegments));
    entry.set_max_positions(limit(maxPositions));
    write(schedule.decode, *entry.mutable_decode());
    entry.set_split(schedule.split);
    write(schedule.prefill, *entry.mutable_prefill());
    entry.set_tiles(schedule.tiles);
    if (schedule.instructions)
      entry.set_instructions(std::string(name(*schedule.instructions)));
  }
  message.set_cpu_model(std::string(hostCpuModel()));
}

void write(const ScheduleKey &key, schedules::Key &message) {
  message.set_compiler_version(key.compilerVersion);
  message.set_strategy(std::string(name(key.strategy)));
  write(key.machine, *message.mutable_machine());
  message.set_target_features(key.targetFeatures);
  message.set_threads(key.threads);
  message.set_weight_type(key.storage.name());
  message.set_n(key.n);
  message.set_k(key.k);
  message.set_column_unit(key.columnUnit);
  message.set_deterministic(key.deterministic);
  message.set_rounds_input(key.roundsInput);
  schedules::Epilogue &epilogue = *message.mutable_epilogue();
  epilogue.set_kind(std::string(name(key.epilogue.kind)));
  epilogue.set_bias(key.epilogue.bias);
  epilogue.set_feeds_matmuls(key.epilogue.feedsMatmuls);
  epilogue.set_contiguous_result(key.epilogue.contiguousResult);
  if (key.epilogue.kind == Epilogue::RotateAppendKV) {
    epilogue.set_cache_heads(key.epilogue.cacheHeads);
    epilogue.set_cache_type(std::string(name(key.epilogue.cache)));
    epilogue.set_head_norms(key.epilogue.headNorms);
  }
  message.mutable_packing()->set_panel(key.packing.panel);
  message.mutable_packing()->set_tile(key.packing.tile);
  message.mutable_packing()->set_k_step(key.packing.kStep);
  message.mutable_packing()->set_k_pack(key.packing.kPack);
}

void write(const Schedule &schedule, schedules::Schedule &message) {
  message.set_micro_kernel(schedule.microKernel.name());
  for (int64_t size : schedule.slice)
    message.add_slice(size);
  for (int64_t threads : schedule.threads)
    message.add_threads(threads);
  message.set_order(std::string(name(schedule.order)));
  message.set_prefetch_lines(schedule.prefetchLines);
  message.set_prefetch_distance(schedule.prefetchDistance);
  message.set_prefetch_streams(schedule.prefetchStreams);
  message.set_prefetch_hint(std::string(name(schedule.prefetchHint)));
  message.set_stores(std::string(name(schedule.stores)));
  message.set_k_chunk(schedule.chunkK);
  message.set_packs_input(schedule.packsInput);
  message.set_streamed(std::string(name(schedule.streamed)));
  message.set_k_group(schedule.groupK);
  message.set_copies_ahead(schedule.copiesAhead);
}

void write(const ScheduleKey &key, const TunedSchedules &tuned,
           schedules::Group &message) {
  write(key, *message.mutable_key());
  message.set_complete(tuned.complete);
  for (const ScheduleTableEntry &entry :
       makeTable(key.shape(), key.threads, tuned.choices)) {
    schedules::Range &range = *message.add_ranges();
    range.set_max_rows(entry.maxRows == INT64_MAX ? 0 : entry.maxRows);
    write(entry.schedule, *range.mutable_schedule());
  }
  for (const Choice &choice : tuned.choices) {
    schedules::Row &row = *message.add_rows();
    row.set_rows(choice.rows);
    row.set_seconds(choice.seconds);
    row.set_derived(!choice.measured);
  }
  for (const std::string &trace : tuned.traces)
    message.add_traces(trace);
  message.set_cpu_model(tuned.cpuModel);
}

/// The process that called a file `...partial-` and `suffix`, or 0 if that is
/// no name for one: its number, and perhaps "-1" or another number.
pid_t findWriter(std::string_view suffix) {
  pid_t process = 0;
  const char *end = suffix.data() + suffix.size();
  auto [rest, failure] = std::from_chars(suffix.data(), end, process);
  if (failure == std::errc() && rest != end && *rest == '-') {
    unsigned attempt = 0;
    auto [last, wrong] = std::from_chars(rest + 1, end, attempt);
    rest = last;
    failure = wrong;
  }
  return failure == std::errc() && rest == end && process > 0 ? process : 0;
}

/// Removes what processes that are no more left beside `path`.
void removeAbandoned(const std::filesystem::path &path) {
  std::error_code error;
  std::string prefix = path.filename().string() + partialSuffix;
  std::filesystem::path folder = path.parent_path();
  std::filesystem::directory_iterator files(folder.empty() ? "." : folder,
                                            error);
  for (; !error && files != std::filesystem::directory_iterator();
       files.increment(error)) {
    std::string file = files->path().filename().string();
    if (!file.starts_with(prefix))
      continue;
    const pid_t process =
        findWriter(std::string_view(file).substr(prefix.size()));
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      ::unlink(files->path().c_str());
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Keys and tables
//===----------------------------------------------------------------------===//

const MeasuringMachine &MeasuringMachine::host() {
  static const MeasuringMachine machine = [] {
    const CacheSizes &caches = CacheSizes::host();
    MeasuringMachine host{.cpuFeatures = {},
                          .l1DataBytes =
                              static_cast<int64_t>(caches.level1Data),
                          .l2Bytes = static_cast<int64_t>(caches.level2),
                          .l3Bytes = static_cast<int64_t>(caches.level3)};
    for (std::string_view feature : CpuFeatures::host().names())
      host.cpuFeatures +=
          (host.cpuFeatures.empty() ? "+" : ",+") + std::string(feature);
    return host;
  }();
  return machine;
}

std::string_view sandwich::scheduleVersion() {
  return SANDWICH_SCHEDULE_VERSION;
}

std::string sandwich::traceName(const RowTrace &trace) {
  double total = 0;
  for (auto [rows, runs] : trace)
    total += runs;
  std::string shares;
  char text[64];
  for (auto [rows, runs] : trace) {
    std::snprintf(text, sizeof(text), "%" PRId64 ":%.9g ", rows, runs / total);
    shares += text;
  }
  std::snprintf(text, sizeof(text), "%016" PRIx64,
                uint64_t(XXH3_64bits(shares.data(), shares.size())));
  return text;
}

ScheduleKey ScheduleKey::of(const TuningGroup &group, const Target &target,
                            MatrixISA isa, Strategy strategy) {
  return {.compilerVersion = std::string(scheduleVersion()),
          .strategy = strategy,
          .machine = MeasuringMachine::host(),
          .targetFeatures = target.featureString(),
          .threads = group.threads,
          .storage = group.shape.storage,
          .n = group.shape.n,
          .k = group.shape.k,
          .columnUnit = group.shape.columnUnit,
          .packing = packingFor(group.shape, isa),
          .deterministic = group.shape.deterministic,
          .epilogue = group.shape.epilogue,
          .roundsInput =
              group.shape.roundsInput && group.shape.storage.hasIntegers()};
}

AttentionKey AttentionKey::of(const AttentionShape &shape, const Target &target,
                              int64_t threads) {
  return {.compilerVersion = std::string(scheduleVersion()),
          .machine = MeasuringMachine::host(),
          .targetFeatures = target.featureString(),
          .threads = threads,
          .shape = shape};
}

KernelTuningKey KernelTuningKey::of(std::string_view text,
                                    std::map<std::string, int64_t> sizes,
                                    const Target &target) {
  std::array<char, 17> hash;
  std::snprintf(hash.data(), hash.size(), "%016" PRIx64,
                uint64_t(XXH3_64bits(text.data(), text.size())));
  return {.compilerVersion = std::string(scheduleVersion()),
          .machine = MeasuringMachine::host(),
          .targetFeatures = target.featureString(),
          .kernel = hash.data(),
          .sizes = std::move(sizes)};
}

MatmulShape ScheduleKey::shape() const {
  return {.n = n,
          .k = k,
          .columnUnit = columnUnit,
          .storage = storage,
          .packing = packing,
          .roundsInput = roundsInput,
          .deterministic = deterministic,
          .epilogue = epilogue};
}

bool ScheduleKey::operator<(const ScheduleKey &other) const {
  return tie(*this) < tie(other);
}

TunedSchedules TunedSchedules::of(const TunedGroup &group) {
  return {.choices = group.choices,
          .complete = group.complete,
          .traces = {},
          .cpuModel = std::string(hostCpuModel())};
}

bool TunedSchedules::covers(const std::vector<int64_t> &rows) const {
  return std::ranges::all_of(rows, [&](int64_t row) {
    return std::ranges::binary_search(choices, row, {}, &Choice::rows);
  });
}

int64_t TunedSchedules::measuredRows() const {
  return std::ranges::count(choices, true, &Choice::measured);
}

void TunedSchedules::add(const TunedSchedules &other) {
  auto lastOf = [](const TunedSchedules &tuned) {
    return tuned.choices.empty() ? 0 : tuned.choices.back().rows;
  };
  if (lastOf(other) > lastOf(*this))
    complete = other.complete;
  else if (lastOf(other) == lastOf(*this))
    complete |= other.complete;
  std::map<int64_t, Choice> all;
  for (const Choice &choice : choices)
    all.emplace(choice.rows, choice);
  for (const Choice &choice : other.choices) {
    Choice &ours = all.try_emplace(choice.rows, choice).first->second;
    if (choice.measured && !ours.measured)
      ours = choice;
  }
  choices.clear();
  for (const auto &[rows, choice] : all)
    choices.push_back(choice);
  traces.insert(other.traces.begin(), other.traces.end());
  if (cpuModel.empty())
    cpuModel = other.cpuModel;
}

Result<ScheduleTable>
sandwich::servedTable(const ScheduleKey &key, const TunedSchedules &tuned,
                      const Target &target,
                      const std::optional<MachineDescription> &machine) {
  SANDWICH_ASSIGN_OR_RETURN(
      ScheduleTable untuned,
      chooseUntuned(key.shape(), target, key.threads,
                    {.splitK = usesSplitK(key.strategy), .machine = machine}));
  if (tuned.choices.empty())
    return untuned;
  int64_t reach = tuned.choices.back().rows * (tuned.complete ? 2 : 1);
  ScheduleTable table = makeTable(key.shape(), key.threads, tuned.choices);
  table.back().maxRows = reach;
  for (const ScheduleTableEntry &entry : untuned) {
    if (entry.maxRows <= reach)
      continue;
    if (entry.schedule == table.back().schedule)
      table.back().maxRows = entry.maxRows;
    else
      table.push_back(entry);
  }
  return table;
}

//===----------------------------------------------------------------------===//
// The database
//===----------------------------------------------------------------------===//

Result<ScheduleDatabase> ScheduleDatabase::load(const std::string &path) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text, readTextFile(path, maxFileBytes));
  schedules::Database message;
  FirstError errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  pb::TextFormat::ParseInfoTree places;
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, &message))
    return makeError(path, ": is no schedule database: ", errors.text);
  if (message.format() != formatName)
    return makeError(path, ": is no schedule database: format is '",
                     message.format(), "', not '", formatName, "'");
  if (message.format_version() < oldestFormatVersion ||
      message.format_version() > formatVersion)
    return makeError(path, ": format_version is ", message.format_version(),
                     "; this version of Sandwich reads ", oldestFormatVersion,
                     " to ", formatVersion);
  if (message.checksum() != checksumOf(message))
    return makeError(path, ": checksum does not match: the file is damaged, or "
                           "was edited");
  ScheduleDatabase database;
  auto placeOf = [&](const std::string &field, int i) {
    const int line =
        places.GetLocation(message.GetDescriptor()->FindFieldByName(field), i)
            .line;
    return path + ": line " + std::to_string(line + 1) + ": " + field + "[" +
           std::to_string(i) + "]";
  };
  for (int i = 0; i < message.groups_size(); ++i) {
    const std::string place = placeOf("groups", i);
    const std::string &version = message.groups(i).key().compiler_version();
    if (version.empty())
      return makeError(place, ".key: compiler_version is missing");
    if (version != scheduleVersion()) {
      database.foreign.insert(message.groups(i).SerializeAsString());
      continue;
    }
    Result<ScheduleKey> key = readKey(message.groups(i).key());
    if (!key)
      return key.error().inContext(place + ".key");
    Result<TunedSchedules> tuned = readGroup(message.groups(i), *key);
    if (!tuned)
      return tuned.error().inContext(place);
    database.add(*key, *tuned);
  }
  for (int i = 0; i < message.attention_size(); ++i) {
    const schedules::Attention &attention = message.attention(i);
    const std::string place = placeOf("attention", i);
    if (attention.key().compiler_version().empty())
      return makeError(place, ".key: compiler_version is missing");
    if (attention.key().compiler_version() != scheduleVersion()) {
      database.foreignAttention.insert(attention.SerializeAsString());
      continue;
    }
    Result<AttentionKey> key = readKey(attention.key());
    if (!key)
      return key.error().inContext(place + ".key");
    Result<AttentionTable> table = readAttention(attention, *key);
    if (!table)
      return table.error().inContext(place);
    database.insert(*key, *std::move(table));
  }
  for (int i = 0; i < message.kernels_size(); ++i) {
    const schedules::Kernel &kernel = message.kernels(i);
    const std::string place = placeOf("kernels", i);
    if (kernel.key().compiler_version().empty())
      return makeError(place, ".key: compiler_version is missing");
    if (kernel.key().compiler_version() != scheduleVersion()) {
      database.foreignKernels.insert(kernel.SerializeAsString());
      continue;
    }
    Result<KernelTuningKey> key = readKey(kernel.key());
    if (!key)
      return key.error().inContext(place + ".key");
    Result<KernelParameters> parameters = readKernel(kernel);
    if (!parameters)
      return parameters.error().inContext(place);
    database.insert(*key, *std::move(parameters));
  }
  return database;
}

Status ScheduleDatabase::save(const std::string &path) const {
  schedules::Database message;
  message.set_format(formatName);
  message.set_format_version(formatVersion);
  for (const auto &[key, tuned] : groups)
    write(key, tuned, *message.add_groups());
  for (const std::string &group : foreign)
    message.add_groups()->ParseFromString(group);
  for (const auto &[key, table] : attention)
    write(key, table, *message.add_attention());
  for (const std::string &other : foreignAttention)
    message.add_attention()->ParseFromString(other);
  for (const auto &[key, parameters] : kernels)
    write(key, parameters, *message.add_kernels());
  for (const std::string &other : foreignKernels)
    message.add_kernels()->ParseFromString(other);
  message.set_checksum(checksumOf(message));
  removeAbandoned(path);
  SANDWICH_ASSIGN_OR_RETURN(PendingFile file, PendingFile::create(path));
  SANDWICH_RETURN_IF_ERROR(file.write(
      "# Written by Sandwich's tuning; see proto/schedules.proto.\n" +
      printText(message)));
  SANDWICH_RETURN_IF_ERROR(file.commit());
  // The name, too, must survive a power cut.
  std::string folder = std::filesystem::path(path).parent_path().string();
  int descriptor = ::open(folder.empty() ? "." : folder.c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
  return {};
}

Status ScheduleDatabase::synchronize(const std::string &path) {
  std::error_code code;
  // All names of a file share the lock.
  std::filesystem::path file = path;
  if (std::filesystem::is_symlink(file, code)) {
    file = std::filesystem::weakly_canonical(file, code);
    if (code)
      return makeError(path, ": cannot follow the link: ", code.message());
  }
  // Others hold it for the time of a save; a stopped one must not stop all.
  constexpr double patience = 60;
  SANDWICH_ASSIGN_OR_RETURN(
      FileLock lock, FileLock::acquire(file.string() + ".lock", patience));
  if (std::filesystem::exists(file, code)) {
    SANDWICH_ASSIGN_OR_RETURN(ScheduleDatabase theirs, load(path));
    // What other versions had here may have grown there.
    foreign.clear();
    foreignAttention.clear();
    foreignKernels.clear();
    merge(theirs);
  }
  return save(path);
}

const TunedSchedules *ScheduleDatabase::find(const ScheduleKey &key) const {
  auto entry = groups.find(key);
  return entry == groups.end() ? nullptr : &entry->second;
}

/// The packings that a weight of `group` may have.
static std::vector<Packing> packingsFor(const TuningGroup &group,
                                        MatrixISA isa) {
  if (group.shape.packing)
    return {*group.shape.packing};
  return packingsOf(isa, group.shape.storage);
}

std::optional<std::pair<ScheduleKey, TunedSchedules>>
ScheduleDatabase::findTuned(const TuningGroup &group, const Target &target,
                            MatrixISA isa) const {
  auto worth = [](const ScheduleKey &key, const TunedSchedules &tuned) {
    return std::tuple(key.strategy == Strategy::Sandwich,
                      tuned.measuredRows() > 0, tuned.complete,
                      tuned.choices.back().rows, tuned.choices.size());
  };
  std::optional<std::pair<ScheduleKey, TunedSchedules>> best;
  for (Strategy strategy : allStrategies())
    for (const Packing &packing : packingsFor(group, isa)) {
      TuningGroup packed = group;
      packed.shape.packing = packing;
      ScheduleKey key = ScheduleKey::of(packed, target, isa, strategy);
      const TunedSchedules *found = find(key);
      if (found &&
          (!best || worth(key, *found) > worth(best->first, best->second)))
        best = {key, *found};
    }
  return best;
}

std::optional<Packing>
ScheduleDatabase::findPacking(const TuningGroup &group, const Target &target,
                              MatrixISA isa, Strategy strategy,
                              const std::string &trace) const {
  // Two runs at a time may have chosen two packings.
  auto worth = [](const TunedSchedules &tuned) {
    return std::tuple(tuned.complete, tuned.choices.back().rows,
                      tuned.choices.size());
  };
  const TunedSchedules *best = nullptr;
  std::optional<Packing> packing;
  for (const Packing &possible : packingsFor(group, isa)) {
    TuningGroup packed = group;
    packed.shape.packing = possible;
    const TunedSchedules *found =
        find(ScheduleKey::of(packed, target, isa, strategy));
    if (!found || !found->traces.contains(trace) ||
        (best && worth(*found) <= worth(*best)))
      continue;
    best = found;
    packing = possible;
  }
  return packing;
}

void ScheduleDatabase::insert(const ScheduleKey &key,
                              TunedSchedules schedules) {
  groups.insert_or_assign(key, std::move(schedules));
}

void ScheduleDatabase::add(const ScheduleKey &key,
                           const TunedSchedules &schedules) {
  auto [group, isNew] = groups.try_emplace(key, schedules);
  if (!isNew)
    group->second.add(schedules);
}

void ScheduleDatabase::merge(const ScheduleDatabase &other) {
  for (const auto &[key, theirs] : other.groups)
    add(key, theirs);
  foreign.insert(other.foreign.begin(), other.foreign.end());
  // Ours is the newer one.
  attention.insert(other.attention.begin(), other.attention.end());
  foreignAttention.insert(other.foreignAttention.begin(),
                          other.foreignAttention.end());
  kernels.insert(other.kernels.begin(), other.kernels.end());
  foreignKernels.insert(other.foreignKernels.begin(),
                        other.foreignKernels.end());
}

const AttentionTable *ScheduleDatabase::find(const AttentionKey &key) const {
  auto entry = attention.find(key);
  return entry == attention.end() ? nullptr : &entry->second;
}

void ScheduleDatabase::insert(const AttentionKey &key, AttentionTable table) {
  attention.insert_or_assign(key, std::move(table));
}

const KernelParameters *
ScheduleDatabase::find(const KernelTuningKey &key) const {
  auto entry = kernels.find(key);
  return entry == kernels.end() ? nullptr : &entry->second;
}

void ScheduleDatabase::insert(const KernelTuningKey &key,
                              KernelParameters parameters) {
  kernels.insert_or_assign(key, std::move(parameters));
}
