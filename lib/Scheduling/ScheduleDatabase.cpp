//===- ScheduleDatabase.cpp - What tuning found --------------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Scheduling/ScheduleDatabase.h"
#include "sandwich/Scheduling/schedules.pb.h"
#include "sandwich/Support/File.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
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
constexpr uint32_t formatVersion = 1;
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
  return std::tie(key.compilerVersion, key.cpuFeatures, key.l1DataBytes,
                  key.l2Bytes, key.threads, key.bf16Weights, key.n, key.k,
                  key.columnUnit, key.packing.panel, key.packing.tile,
                  key.packing.kStep, key.packing.kPack);
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

Result<ScheduleKey> readKey(const schedules::Key &message) {
  ScheduleKey key;
  key.compilerVersion = message.compiler_version();
  key.cpuFeatures = message.cpu_features();
  if (key.compilerVersion.empty())
    return makeError("compiler_version is missing");
  const std::tuple<const char *, int64_t, int64_t *> numbers[] = {
      {"l1_data_bytes", message.l1_data_bytes(), &key.l1DataBytes},
      {"l2_bytes", message.l2_bytes(), &key.l2Bytes},
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
  if (message.weight_type() != "bf16" && message.weight_type() != "f32")
    return makeError("weight_type is '", message.weight_type(),
                     "', not bf16 or f32");
  key.bf16Weights = message.weight_type() == "bf16";
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
  SANDWICH_RETURN_IF_ERROR(verify(schedule, key.shape()));
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
  tuned.requestedRows = message.requested_rows();
  tuned.largestRows = message.largest_rows();
  if (tuned.requestedRows < 0 || tuned.requestedRows > maxSize ||
      tuned.largestRows < 0 || tuned.largestRows > maxSize)
    return makeError("requested_rows and largest_rows are ",
                     tuned.requestedRows, " and ", tuned.largestRows,
                     ", not between 0 and ", maxSize);
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
    tuned.table.push_back({last ? INT64_MAX : before, *schedule});
  }
  before = 0;
  for (const schedules::Measurement &measurement : message.measurements()) {
    if (measurement.rows() <= before || measurement.rows() > maxSize ||
        !(measurement.seconds() > 0) || !std::isfinite(measurement.seconds()))
      return makeError("measurements ascend in rows and have positive seconds; "
                       "one is of ",
                       measurement.rows(), " rows and ", measurement.seconds(),
                       " s");
    before = measurement.rows();
    tuned.measurements.emplace_back(before, measurement.seconds());
  }
  return tuned;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void write(const ScheduleKey &key, schedules::Key &message) {
  message.set_compiler_version(key.compilerVersion);
  message.set_cpu_features(key.cpuFeatures);
  message.set_l1_data_bytes(key.l1DataBytes);
  message.set_l2_bytes(key.l2Bytes);
  message.set_threads(key.threads);
  message.set_weight_type(key.bf16Weights ? "bf16" : "f32");
  message.set_n(key.n);
  message.set_k(key.k);
  message.set_column_unit(key.columnUnit);
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
}

/// Removes what processes that are no more left beside `path`.
void removeAbandoned(const std::filesystem::path &path) {
  std::error_code error;
  std::string prefix = path.filename().string() + ".partial-";
  std::filesystem::path folder = path.parent_path();
  std::filesystem::directory_iterator files(folder.empty() ? "." : folder,
                                            error);
  for (; !error && files != std::filesystem::directory_iterator();
       files.increment(error)) {
    std::string file = files->path().filename().string();
    if (!file.starts_with(prefix))
      continue;
    pid_t process = 0;
    const char *end = file.data() + file.size();
    auto [rest, failure] =
        std::from_chars(file.data() + prefix.size(), end, process);
    if (failure == std::errc() && rest == end && process > 0 &&
        ::kill(process, 0) != 0 && errno == ESRCH)
      ::unlink(files->path().c_str());
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Keys and tables
//===----------------------------------------------------------------------===//

ScheduleKey ScheduleKey::of(const TuningGroup &group, const Target &target,
                            MatrixISA isa) {
  return {.compilerVersion = SANDWICH_VERSION,
          .cpuFeatures = target.featureString(),
          .l1DataBytes = target.l1DataBytes,
          .l2Bytes = target.l2Bytes,
          .threads = group.threads,
          .bf16Weights = group.shape.bf16Weights,
          .n = group.shape.n,
          .k = group.shape.k,
          .columnUnit = group.shape.columnUnit,
          .packing = packingFor(group.shape, isa)};
}

MatmulShape ScheduleKey::shape() const {
  return {.n = n,
          .k = k,
          .columnUnit = columnUnit,
          .bf16Weights = bf16Weights,
          .packing = packing};
}

bool ScheduleKey::operator<(const ScheduleKey &other) const {
  return tie(*this) < tie(other);
}

TunedSchedules TunedSchedules::of(const TunedGroup &group) {
  TunedSchedules tuned{
      .table = group.table,
      .complete = group.complete,
      .measurements = {},
      .requestedRows = static_cast<int64_t>(group.choices.size()),
      .largestRows = group.choices.empty() ? 0 : group.choices.back().rows};
  for (const Choice &choice : group.choices)
    if (choice.measured)
      tuned.measurements.emplace_back(choice.rows, choice.seconds);
  return tuned;
}

std::vector<Choice> TunedSchedules::choices() const {
  std::vector<Choice> choices;
  size_t entry = 0;
  for (auto [rows, seconds] : measurements) {
    while (table[entry].maxRows < rows)
      ++entry;
    choices.push_back({rows, table[entry].schedule, seconds});
  }
  return choices;
}

bool TunedSchedules::covers(const std::vector<int64_t> &rows) const {
  return complete &&
         (rows.empty() || (requestedRows >= static_cast<int64_t>(rows.size()) &&
                           largestRows >= rows.back()));
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
  if (message.format_version() != formatVersion)
    return makeError(path, ": format_version is ", message.format_version(),
                     "; this version of Sandwich reads ", formatVersion);
  if (message.checksum() != checksumOf(message))
    return makeError(path, ": checksum does not match: the file is damaged, or "
                           "was edited");
  ScheduleDatabase database;
  const pb::FieldDescriptor *groups =
      message.GetDescriptor()->FindFieldByName("groups");
  for (int i = 0; i < message.groups_size(); ++i) {
    std::string place = path + ": line " +
                        std::to_string(places.GetLocation(groups, i).line + 1) +
                        ": groups[" + std::to_string(i) + "]";
    Result<ScheduleKey> key = readKey(message.groups(i).key());
    if (!key)
      return key.error().inContext(place + ".key");
    Result<TunedSchedules> tuned = readGroup(message.groups(i), *key);
    if (!tuned)
      return tuned.error().inContext(place);
    if (database.find(*key))
      return makeError(place, ": has the key of an earlier group");
    database.insert(*key, *std::move(tuned));
  }
  return database;
}

Status ScheduleDatabase::save(const std::string &path) const {
  schedules::Database message;
  message.set_format(formatName);
  message.set_format_version(formatVersion);
  for (const auto &[key, tuned] : groups) {
    schedules::Group &group = *message.add_groups();
    write(key, *group.mutable_key());
    group.set_complete(tuned.complete);
    group.set_requested_rows(tuned.requestedRows);
    group.set_largest_rows(tuned.largestRows);
    for (const ScheduleTableEntry &entry : tuned.table) {
      schedules::Range &range = *group.add_ranges();
      range.set_max_rows(entry.maxRows == INT64_MAX ? 0 : entry.maxRows);
      write(entry.schedule, *range.mutable_schedule());
    }
    for (auto [rows, seconds] : tuned.measurements) {
      schedules::Measurement &measurement = *group.add_measurements();
      measurement.set_rows(rows);
      measurement.set_seconds(seconds);
    }
  }
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

const TunedSchedules *ScheduleDatabase::find(const ScheduleKey &key) const {
  auto entry = groups.find(key);
  return entry == groups.end() ? nullptr : &entry->second;
}

std::optional<std::pair<ScheduleKey, TunedSchedules>>
ScheduleDatabase::findTuned(const TuningGroup &group, const Target &target,
                            MatrixISA isa) const {
  std::vector<Packing> packings = packingsOf(isa);
  if (group.shape.packing)
    packings = {*group.shape.packing};
  std::optional<std::pair<ScheduleKey, TunedSchedules>> best;
  for (const Packing &packing : packings) {
    TuningGroup packed = group;
    packed.shape.packing = packing;
    ScheduleKey key = ScheduleKey::of(packed, target, isa);
    const TunedSchedules *found = find(key);
    auto worth = [](const TunedSchedules &tuned) {
      return std::pair(tuned.complete, tuned.measurements.size());
    };
    if (found && (!best || worth(*found) > worth(best->second)))
      best = {key, *found};
  }
  return best;
}

void ScheduleDatabase::insert(const ScheduleKey &key,
                              TunedSchedules schedules) {
  groups.insert_or_assign(key, std::move(schedules));
}

void ScheduleDatabase::merge(const ScheduleDatabase &other) {
  for (const auto &[key, theirs] : other.groups) {
    const TunedSchedules *ours = find(key);
    if (!ours || std::pair(theirs.complete, theirs.measurements.size()) >=
                     std::pair(ours->complete, ours->measurements.size()))
      insert(key, theirs);
  }
}
