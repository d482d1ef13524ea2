//===- MachineParameters.cpp - What a machine's parts can do --------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Machine/MachineParameters.h"

#include "sandwich/Support/File.h"
#include "sandwich/Support/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace sandwich;

static constexpr size_t maxParameterBytes = size_t{1} << 20;

/// JSON's units in ours.
static constexpr double giga = 1e9;
static constexpr double nano = 1e-9;
static constexpr double milli = 1e-3;

MachineParameters sandwich::assumedParameters() {
  MachineParameters parameters;
  parameters.parts["core"].handoffSeconds = 10 * nano;
  parameters.parts["l3"].handoffSeconds = 40 * nano;
  parameters.parts["numa"] = {100 * giga, 80 * nano};
  parameters.parts["package"].handoffSeconds = 100 * nano;
  parameters.parts["machine"].handoffSeconds = 160 * nano;
  return parameters;
}

namespace {

/// Reads the members of one object, and complains of those nobody asked for.
class ObjectReader {
public:
  ObjectReader(const Json &json, std::string path)
      : json(json), path(std::move(path)) {}

  std::string nameOf(const std::string &member) const {
    return path.empty() ? member : path + "." + member;
  }

  /// Leaves `value` where the member is absent.
  Status number(const char *member, double unit, double &value,
                bool zero = false) {
    const Json *found = take(member);
    if (!found)
      return {};
    double read = found->is_number() ? found->get<double>() : NAN;
    // Far beyond any machine, and no sum or product of them overflows.
    constexpr double least = 1e-6;
    constexpr double most = 1e9;
    if (!(read >= least || (zero && read == 0)) || read > most)
      return makeError(nameOf(member), " is not a number of ", zero ? 0 : least,
                       " to ", most);
    value = read * unit;
    return {};
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

  Status part(PartParameters &parameters) {
    SANDWICH_RETURN_IF_ERROR(
        number("gb_per_second", giga, parameters.bytesPerSecond));
    return number("handoff_ns", nano, parameters.handoffSeconds);
  }

  const Json *take(const std::string &member) {
    auto found = json.find(member);
    if (found == json.end())
      return nullptr;
    taken.push_back(member);
    return &*found;
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
  const Json &json;
  std::string path;
  std::vector<std::string> taken;
};

} // namespace

static Status readPart(const Json &json, const std::string &path,
                       PartParameters &part) {
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

Result<MachineParameters>
sandwich::machineParametersFromJson(const Json &json) {
  MachineParameters parameters = assumedParameters();
  ObjectReader reader(json, "");
  SANDWICH_RETURN_IF_ERROR(reader.object());
  SANDWICH_RETURN_IF_ERROR(
      reader.number("core_gflops", giga, parameters.coreFlopsPerSecond));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("core_gb_per_second", giga, parameters.coreBytesPerSecond));
  SANDWICH_RETURN_IF_ERROR(
      reader.number("remote_share", 1, parameters.remoteShare));
  if (parameters.remoteShare > 1)
    return makeError("remote_share is more than 1");
  SANDWICH_RETURN_IF_ERROR(reader.number("wakeups_per_core_per_second", 1,
                                         parameters.wakeupsPerCorePerSecond,
                                         /*zero=*/true));
  SANDWICH_RETURN_IF_ERROR(reader.number(
      "wakeup_ms", milli, parameters.wakeupSeconds, /*zero=*/true));
  if (const Json *parts = reader.take("parts")) {
    if (!parts->is_object())
      return makeError("parts is no object");
    for (const auto &[kind, value] : parts->items())
      SANDWICH_RETURN_IF_ERROR(
          readPart(value, "parts." + kind, parameters.parts[kind]));
  }
  if (const Json *memories = reader.take("memory_gb_per_second")) {
    if (!memories->is_object())
      return makeError("memory_gb_per_second is no object");
    ObjectReader each(*memories, "memory_gb_per_second");
    for (const auto &[name, value] : memories->items()) {
      unsigned node = 0;
      auto [end, error] =
          std::from_chars(name.data(), name.data() + name.size(), node);
      if (error != std::errc() || end != name.data() + name.size())
        return makeError(each.nameOf(name), " names no NUMA node");
      SANDWICH_RETURN_IF_ERROR(
          each.number(name.c_str(), giga, parameters.memories[node]));
    }
  }
  if (const Json *latent = reader.take("latent")) {
    if (!latent->is_array())
      return makeError("latent is no list");
    for (size_t i = 0; i < latent->size(); ++i) {
      SANDWICH_ASSIGN_OR_RETURN(
          LatentGroup group,
          readLatent((*latent)[i], "latent[" + std::to_string(i) + "]"));
      parameters.latent.push_back(std::move(group));
    }
  }
  SANDWICH_RETURN_IF_ERROR(reader.end());
  return parameters;
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
    for (size_t i = 0; i < latent->size(); ++i)
      SANDWICH_RETURN_IF_ERROR(check("latent[" + std::to_string(i) + "].inside",
                                     (*latent)[i]["inside"].get<std::string>(),
                                     "part", kinds));
  return {};
}

Result<MachineParameters>
sandwich::readMachineParameters(const std::string &path,
                                const Machine &machine) {
  SANDWICH_ASSIGN_OR_RETURN(std::string text,
                            readTextFile(path, maxParameterBytes));
  Result<Json> json = parseJson(text);
  if (!json)
    return json.error().inContext(path);
  Result<MachineParameters> parameters = machineParametersFromJson(*json);
  if (!parameters)
    return parameters.error().inContext(path);
  if (Status status = checkNames(*json, machine); !status)
    return status.error().inContext(path);
  return parameters;
}

static void addPart(Json &json, const PartParameters &part) {
  if (std::isfinite(part.bytesPerSecond))
    json["gb_per_second"] = part.bytesPerSecond / giga;
  if (part.handoffSeconds > 0)
    json["handoff_ns"] = part.handoffSeconds / nano;
}

Json sandwich::toJson(const MachineParameters &parameters) {
  Json json = {{"core_gflops", parameters.coreFlopsPerSecond / giga},
               {"core_gb_per_second", parameters.coreBytesPerSecond / giga},
               {"remote_share", parameters.remoteShare},
               {"parts", Json::object()}};
  for (const auto &[kind, part] : parameters.parts) {
    json["parts"][kind] = Json::object();
    addPart(json["parts"][kind], part);
  }
  if (!parameters.memories.empty())
    json["memory_gb_per_second"] = Json::object();
  for (const auto &[node, bytesPerSecond] : parameters.memories)
    json["memory_gb_per_second"][std::to_string(node)] = bytesPerSecond / giga;
  if (!parameters.latent.empty())
    json["latent"] = Json::array();
  for (const LatentGroup &group : parameters.latent) {
    Json each = {{"name", group.name},
                 {"inside", group.inside},
                 {"cores", group.cores},
                 {"stride", group.stride}};
    addPart(each, group.parameters);
    json["latent"].push_back(std::move(each));
  }
  json["wakeups_per_core_per_second"] = parameters.wakeupsPerCorePerSecond;
  json["wakeup_ms"] = parameters.wakeupSeconds / milli;
  return json;
}
