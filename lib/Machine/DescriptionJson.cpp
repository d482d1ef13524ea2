//===- DescriptionJson.cpp - Machine descriptions as files ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineDescription.h"

#include "KnownProcessors.h"

#include "sandwich/Support/File.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

using namespace sandwich;

static constexpr size_t maxDescriptionBytes = size_t{1} << 20;

/// JSON's units in ours.
static constexpr double milli = 1e-3;

static constexpr ValueOrigin allOrigins[] = {
    ValueOrigin::Assumed, ValueOrigin::Derived, ValueOrigin::Given,
    ValueOrigin::Measured};

std::string_view sandwich::name(ValueOrigin origin) {
  switch (origin) {
  case ValueOrigin::Assumed:
    return "assumed";
  case ValueOrigin::Derived:
    return "derived";
  case ValueOrigin::Given:
    return "given";
  case ValueOrigin::Measured:
    return "measured";
  }
  return "";
}

namespace {

/// Reads the members of one object, and complains of those nobody asked for.
class ObjectReader {
public:
  ObjectReader(const Json &json, std::string path)
      : json(json), path(std::move(path)) {}

  std::string nameOf(const std::string &member) const {
    const std::string shown = printable(member);
    return path.empty() ? shown : path + "." + shown;
  }

  /// Leaves `value` where the member is absent.
  Status number(const std::string &member, double unit, MachineValue &value,
                bool zero = false) {
    const Json *found = take(member);
    if (!found)
      return {};
    if (found->is_object())
      return withOrigin(*found, nameOf(member), unit, value, zero);
    value.origin = ValueOrigin::Given;
    value.source.clear();
    return plain(*found, nameOf(member), unit, value.value, zero);
  }

  Status count(const char *member, unsigned least, unsigned &value) {
    const Json *found = take(member);
    if (!found)
      return {};
    constexpr unsigned most = 1 << 20;
    if (!found->is_number_integer() || *found < least || *found > most)
      return makeError(nameOf(member), " is not an integer of ", least, " to ",
                       most);
    value = found->get<unsigned>();
    return {};
  }

  Status text(const char *member, std::string &value) {
    const Json *found = take(member);
    if (!found || !found->is_string() || found->get<std::string>().empty())
      return makeError(nameOf(member), " is absent or no text");
    value = found->get<std::string>();
    return {};
  }

  Status part(PartDescription &part) {
    SANDWICH_RETURN_IF_ERROR(
        number("gb_per_second", giga, part.bytesPerSecond));
    SANDWICH_RETURN_IF_ERROR(number("handoff_ns", nano, part.handoffSeconds));
    return number("link_gb_per_second", giga, part.linkBytesPerSecond);
  }

  const Json *find(const std::string &member) const {
    auto found = json.find(member);
    return found == json.end() ? nullptr : &*found;
  }

  const Json *take(const std::string &member) {
    taken.push_back(member);
    return find(member);
  }

  Status object() const {
    if (!json.is_object())
      return makeError(path.empty() ? "the file" : path, " is no object");
    return {};
  }

  Status end() const {
    for (const auto &[name, value] : json.items())
      if (std::ranges::find(taken, name) == taken.end())
        return makeError(nameOf(name), " is not known");
    return {};
  }

private:
  static Status plain(const Json &json, const std::string &name, double unit,
                      double &value, bool zero) {
    double read = json.is_number() ? json.get<double>() : NAN;
    // Far beyond any machine, and no sum or product of them overflows.
    constexpr double least = 1e-6;
    constexpr double most = 1e9;
    if (!(read >= least || (zero && read == 0)) || read > most)
      return makeError(name, " is not a number of ", zero ? 0 : least, " to ",
                       most);
    value = read * unit;
    return {};
  }

  static Status withOrigin(const Json &json, const std::string &name,
                           double unit, MachineValue &value, bool zero) {
    ObjectReader reader(json, name);
    const Json *number = reader.take("value");
    if (!number)
      return makeError(name, ".value is absent");
    SANDWICH_RETURN_IF_ERROR(
        plain(*number, name + ".value", unit, value.value, zero));
    std::string origin;
    SANDWICH_RETURN_IF_ERROR(reader.text("origin", origin));
    const auto *known =
        std::ranges::find(allOrigins, origin, [](ValueOrigin each) {
          return sandwich::name(each);
        });
    if (known == std::end(allOrigins))
      return makeError(name, ".origin is '", printable(origin),
                       "', not assumed, derived, given or measured");
    value.origin = *known;
    value.source.clear();
    if (json.contains("source"))
      SANDWICH_RETURN_IF_ERROR(reader.text("source", value.source));
    return reader.end();
  }

  const Json &json;
  std::string path;
  std::vector<std::string> taken;
};

/// Numbers that stand by themselves in a file.
struct Field {
  const char *name;
  double unit;
  MachineValue MachineDescription::*value;
  bool zero = false;
};

} // namespace

static constexpr Field fields[] = {
    {"core_ghz", giga, &MachineDescription::coreCyclesPerSecond},
    {"core_gb_per_second", giga, &MachineDescription::coreBytesPerSecond},
    {"memory_latency_ns", nano, &MachineDescription::memoryLatencySeconds},
    {"core_l2_gb_per_second", giga, &MachineDescription::coreL2BytesPerSecond},
    {"core_l3_gb_per_second", giga, &MachineDescription::coreL3BytesPerSecond},
    {"remote_share", 1, &MachineDescription::remoteShare},
    {"wakeups_per_core_per_second", 1,
     &MachineDescription::wakeupsPerCorePerSecond, true},
    {"wakeup_ms", milli, &MachineDescription::wakeupSeconds, true}};

static Status readPart(const Json &json, const std::string &path,
                       PartDescription &part) {
  ObjectReader reader(json, path);
  SANDWICH_RETURN_IF_ERROR(reader.object());
  SANDWICH_RETURN_IF_ERROR(reader.part(part));
  return reader.end();
}

static Result<LatentGroup> readLatent(const Json &json,
                                      const std::string &path) {
  LatentGroup group;
  ObjectReader reader(json, path);
  SANDWICH_RETURN_IF_ERROR(reader.object());
  SANDWICH_RETURN_IF_ERROR(reader.text("name", group.name));
  SANDWICH_RETURN_IF_ERROR(reader.text("inside", group.inside));
  SANDWICH_RETURN_IF_ERROR(reader.count("cores", 2, group.cores));
  SANDWICH_RETURN_IF_ERROR(reader.count("stride", 1, group.stride));
  SANDWICH_RETURN_IF_ERROR(reader.part(group.parameters));
  SANDWICH_RETURN_IF_ERROR(reader.end());
  if (group.cores == 0)
    return makeError(path, ".cores is absent");
  return group;
}

static Status readLatentGroups(const Json &json,
                               std::vector<LatentGroup> &groups) {
  if (!json.is_array())
    return makeError("latent is no list");
  groups.clear();
  std::set<std::string> names;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string path = "latent[" + std::to_string(i) + "]";
    SANDWICH_ASSIGN_OR_RETURN(LatentGroup group, readLatent(json[i], path));
    if (!names.insert(group.name).second)
      return makeError(path, ".name: there are two groups '",
                       printable(group.name), "'");
    groups.push_back(std::move(group));
  }
  return {};
}

/// `core_gflops`: one number for all types, or one for each.
static Status readFlops(ObjectReader &reader, MatmulRates &rates) {
  const Json *found = reader.find("core_gflops");
  if (found && found->is_object() && !found->contains("value")) {
    ObjectReader types(*reader.take("core_gflops"), "core_gflops");
    SANDWICH_RETURN_IF_ERROR(types.number("f32", giga, rates.f32));
    SANDWICH_RETURN_IF_ERROR(types.number("bf16", giga, rates.bf16));
    SANDWICH_RETURN_IF_ERROR(types.number("int8", giga, rates.int8));
    return types.end();
  }
  if (found) {
    SANDWICH_RETURN_IF_ERROR(reader.number("core_gflops", giga, rates.f32));
    rates.bf16 = rates.int8 = rates.f32;
  }
  return {};
}

static Status readMemories(const Json &json,
                           std::map<unsigned, MachineValue> &memories) {
  if (!json.is_object())
    return makeError("memory_gb_per_second is no object");
  ObjectReader each(json, "memory_gb_per_second");
  for (const auto &[name, value] : json.items()) {
    unsigned node = 0;
    auto [end, error] =
        std::from_chars(name.data(), name.data() + name.size(), node);
    if (error != std::errc() || end != name.data() + name.size())
      return makeError(each.nameOf(name), " names no NUMA node");
    SANDWICH_RETURN_IF_ERROR(each.number(name, giga, memories[node]));
  }
  return {};
}

Result<MachineDescription>
sandwich::machineDescriptionFromJson(const Json &json,
                                     const MachineDescription &described) {
  MachineDescription description = described;
  ObjectReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.object());
  // That of `readMachineDescription`.
  reader.take("processor");
  for (const Field &field : fields)
    SANDWICH_RETURN_IF_ERROR(reader.number(
        field.name, field.unit, description.*field.value, field.zero));
  if (description.remoteShare > 1)
    return makeError("remote_share is more than 1");
  if (description.wakeupsPerCorePerSecond * description.wakeupSeconds >= 1)
    return makeError("wakeup_ms: with wakeups_per_core_per_second, the "
                     "system's own work would keep a CPU all the time");
  SANDWICH_RETURN_IF_ERROR(readFlops(reader, description.coreFlopsPerSecond));
  if (const Json *parts = reader.take("parts")) {
    if (!parts->is_object())
      return makeError("parts is no object");
    for (const auto &[kind, value] : parts->items())
      SANDWICH_RETURN_IF_ERROR(
          readPart(value, "parts." + printable(kind), description.parts[kind]));
    // What a file says of all nodes counts before what the firmware says.
    if (parts->contains("numa") && (*parts)["numa"].contains("gb_per_second"))
      description.memories.clear();
  }
  if (const Json *memories = reader.take("memory_gb_per_second"))
    SANDWICH_RETURN_IF_ERROR(readMemories(*memories, description.memories));
  if (const Json *latent = reader.take("latent"))
    SANDWICH_RETURN_IF_ERROR(readLatentGroups(*latent, description.latent));
  SANDWICH_RETURN_IF_ERROR(reader.end());
  return description;
}

/// The kinds of parts and the indexes of memories below `node`, each once.
static void collectNames(const MachineNode &node,
                         std::vector<std::string> &kinds,
                         std::vector<std::string> &memories) {
  auto add = [](std::vector<std::string> &names, const std::string &name) {
    if (std::ranges::find(names, name) == names.end())
      names.push_back(name);
  };
  add(kinds, node.kind);
  if (node.kind == "numa" && node.index >= 0)
    add(memories, std::to_string(node.index));
  for (const MachineNode &child : node.children)
    collectNames(child, kinds, memories);
}

/// Refuses names in `json` that mean nothing on `machine`.
static Status checkNames(const Json &json, const Machine &machine) {
  std::vector<std::string> kinds, memories, outside;
  collectNames(machine.root, kinds, memories);
  for (const MachineNode &memory : machine.memories)
    collectNames(memory, outside, memories);
  auto check = [](const std::string &field, const std::string &name,
                  const char *what,
                  const std::vector<std::string> &known) -> Status {
    if (std::ranges::find(known, name) != known.end())
      return {};
    std::string list;
    for (const std::string &each : known)
      list += (list.empty() ? "" : ", ") + each;
    return makeError(field, ": the machine has no ", what, " '",
                     printable(name), "', but ",
                     list.empty() ? "none at all" : list);
  };
  if (auto parts = json.find("parts"); parts != json.end())
    for (const auto &[kind, value] : parts->items())
      SANDWICH_RETURN_IF_ERROR(
          check("parts." + printable(kind), kind, "part", kinds));
  if (auto each = json.find("memory_gb_per_second"); each != json.end())
    for (const auto &[node, value] : each->items())
      SANDWICH_RETURN_IF_ERROR(
          check("memory_gb_per_second." + node, node, "NUMA node", memories));
  if (auto latent = json.find("latent"); latent != json.end())
    for (size_t i = 0; i < latent->size(); ++i) {
      const std::string path = "latent[" + std::to_string(i) + "]";
      const Json &group = (*latent)[i];
      SANDWICH_RETURN_IF_ERROR(check(
          path + ".inside", group["inside"].get<std::string>(), "part", kinds));
      const auto name = group["name"].get<std::string>();
      if (std::ranges::find(kinds, name) != kinds.end())
        return makeError(path, ".name: '", printable(name),
                         "' is a part that the machine shows");
    }
  return {};
}

/// `machine` with the processors that the file names, if it does.
static Result<Machine> withProcessor(const Json &json, Machine machine) {
  if (!json.is_object() || !json.contains("processor"))
    return machine;
  ObjectReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.text("processor", machine.cpuModel));
  if (!findKnownProcessor(machine.cpuModel))
    return makeError("processor: no figures of '", printable(machine.cpuModel),
                     "' are known, but of ", knownProcessorNames());
  return machine;
}

static Result<MachineDescription> readText(const std::string &text,
                                           const Machine &machine,
                                           const Target &target,
                                           bool checksNames) {
  SANDWICH_ASSIGN_OR_RETURN(const Json json, parseJson(text));
  SANDWICH_ASSIGN_OR_RETURN(Machine named, withProcessor(json, machine));
  SANDWICH_ASSIGN_OR_RETURN(
      MachineDescription description,
      machineDescriptionFromJson(json, describeMachine(named, target)));
  if (checksNames)
    SANDWICH_RETURN_IF_ERROR(checkNames(json, machine));
  return description;
}

static Result<MachineDescription> readFile(const std::string &path,
                                           const Machine &machine,
                                           const Target &target,
                                           bool checksNames) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            readTextFile(path, maxDescriptionBytes));
  Result<MachineDescription> description =
      readText(text, machine, target, checksNames);
  if (!description)
    return description.error().inContext(path);
  return description;
}

Result<MachineDescription>
sandwich::readMachineDescription(const std::string &path,
                                 const Machine &machine, const Target &target) {
  return readFile(path, machine, target, /*checksNames=*/true);
}

Result<MachineDescription>
sandwich::readNodeDescription(const std::string &path, uint64_t cores,
                              const Target &target) {
  return readFile(path, machineOfNode(cores), target, /*checksNames=*/false);
}

static void add(Json &json, const std::string &name, const MachineValue &value,
                double unit) {
  Json &number = json[name];
  number = {{"value", value.value / unit},
            {"origin", sandwich::name(value.origin)}};
  if (!value.source.empty())
    number["source"] = value.source;
}

static void addPart(Json &json, const PartDescription &part) {
  if (std::isfinite(part.bytesPerSecond))
    add(json, "gb_per_second", part.bytesPerSecond, giga);
  if (part.handoffSeconds > 0)
    add(json, "handoff_ns", part.handoffSeconds, nano);
  if (std::isfinite(part.linkBytesPerSecond))
    add(json, "link_gb_per_second", part.linkBytesPerSecond, giga);
}

Json sandwich::toJson(const MachineDescription &description) {
  Json json = Json::object();
  for (const Field &field : fields)
    add(json, field.name, description.*field.value, field.unit);
  json["core_gflops"] = Json::object();
  add(json["core_gflops"], "f32", description.coreFlopsPerSecond.f32, giga);
  add(json["core_gflops"], "bf16", description.coreFlopsPerSecond.bf16, giga);
  if (const MachineValue &int8 = description.coreFlopsPerSecond.int8; int8 > 0)
    add(json["core_gflops"], "int8", int8, giga);
  json["parts"] = Json::object();
  for (const auto &[kind, part] : description.parts) {
    json["parts"][kind] = Json::object();
    addPart(json["parts"][kind], part);
  }
  // Whoever named a memory beside others in a file counts before the firmware.
  std::map<unsigned, MachineValue> memories = description.memories;
  memories.insert(description.besideMemories.begin(),
                  description.besideMemories.end());
  if (!memories.empty())
    json["memory_gb_per_second"] = Json::object();
  for (const auto &[node, bytesPerSecond] : memories)
    add(json["memory_gb_per_second"], std::to_string(node), bytesPerSecond,
        giga);
  if (!description.latent.empty())
    json["latent"] = Json::array();
  for (const LatentGroup &group : description.latent) {
    Json each = {{"name", group.name},
                 {"inside", group.inside},
                 {"cores", group.cores},
                 {"stride", group.stride}};
    addPart(each, group.parameters);
    json["latent"].push_back(std::move(each));
  }
  return json;
}
