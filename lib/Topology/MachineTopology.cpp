//===- MachineTopology.cpp - This machine as a tree -----------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Topology/MachineTopology.h"

#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/File.h"

#include <hwloc.h>

#include <cctype>
#include <memory>

using namespace sandwich;

static constexpr char syntheticPrefix[] = "synthetic:";

/// Machines of thousands of cores take a few megabytes.
static constexpr size_t maxXmlBytes = size_t{64} << 20;

static std::string kindOf(hwloc_obj_t object) {
  switch (object->type) {
  case HWLOC_OBJ_MACHINE:
    return "machine";
  case HWLOC_OBJ_PACKAGE:
    return "package";
  case HWLOC_OBJ_DIE:
    return "die";
  case HWLOC_OBJ_NUMANODE:
    return "numa";
  case HWLOC_OBJ_CORE:
    return "core";
  case HWLOC_OBJ_PU:
    return "cpu";
  case HWLOC_OBJ_L1CACHE:
    return "l1d";
  default:
    break;
  }
  std::string kind = hwloc_obj_type_string(object->type);
  if (hwloc_obj_type_is_cache(object->type))
    kind = kind.substr(0, kind.find("Cache"));
  for (char &c : kind)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kind;
}

static MachineNode convert(hwloc_obj_t object) {
  MachineNode node;
  node.kind = kindOf(object);
  if (hwloc_obj_type_is_cache(object->type))
    node.bytes = object->attr->cache.size;
  else if (object->type == HWLOC_OBJ_NUMANODE)
    node.bytes = object->attr->numanode.local_memory;
  if (object->os_index != HWLOC_UNKNOWN_INDEX &&
      object->type != HWLOC_OBJ_MACHINE &&
      !hwloc_obj_type_is_cache(object->type))
    node.index = object->os_index;
  for (unsigned i = 0; i < object->arity; ++i)
    node.children.push_back(convert(object->children[i]));
  // hwloc hangs memory beside the cores it serves; in the tree it holds them.
  // A second memory of the same cores stands beside the first.
  for (hwloc_obj_t memory = object->memory_first_child; memory;
       memory = memory->next_sibling) {
    hwloc_obj_t numa = memory;
    while (numa && numa->type != HWLOC_OBJ_NUMANODE)
      numa = numa->memory_first_child;
    if (!numa)
      continue;
    MachineNode numaNode = convert(numa);
    if (memory == object->memory_first_child)
      numaNode.children = std::exchange(node.children, {});
    node.children.push_back(std::move(numaNode));
  }
  return node;
}

Result<MachineNode> sandwich::readMachineTopology(const std::string &source) {
  struct Destroy {
    void operator()(hwloc_topology_t topology) const {
      hwloc_topology_destroy(topology);
    }
  };
  hwloc_topology_t raw;
  if (hwloc_topology_init(&raw) != 0)
    return makeError("hwloc cannot start reading a topology");
  std::unique_ptr<hwloc_topology, Destroy> topology(raw);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC,
                                 HWLOC_TYPE_FILTER_KEEP_NONE);
  std::string xml;
  if (source.rfind(syntheticPrefix, 0) == 0) {
    std::string description = source.substr(sizeof(syntheticPrefix) - 1);
    if (hwloc_topology_set_synthetic(raw, description.c_str()) != 0)
      return makeError("'", description,
                       "' is not a synthetic topology that hwloc knows");
  } else if (!source.empty()) {
    // Not by its name: hwloc would wait for a pipe, and read on without end.
    SANDWICH_ASSIGN_OR_RETURN(xml, readTextFile(source, maxXmlBytes));
    // The size counts the zero behind the text.
    if (hwloc_topology_set_xmlbuffer(raw, xml.c_str(),
                                     static_cast<int>(xml.size() + 1)) != 0)
      return makeError(source, ": is not a topology that hwloc can read");
  }
  if (hwloc_topology_load(raw) != 0)
    return source.empty()
               ? makeError("hwloc cannot read this machine's topology")
               : makeError(source, ": is not a topology that hwloc can read");
  return convert(hwloc_get_root_obj(raw));
}

static std::string describe(const MachineNode &node) {
  std::string text = node.kind;
  if (node.index >= 0) {
    text += ' ';
    text += std::to_string(node.index);
  }
  if (node.bytes > 0)
    text += " (" + formatBytes(node.bytes) + ")";
  return text;
}

static void draw(const MachineNode &node, const std::string &indent,
                 std::string &text) {
  const MachineNode *current = &node;
  text += describe(*current);
  while (current->children.size() == 1) {
    current = &current->children.front();
    text += ", " + describe(*current);
  }
  text += "\n";
  for (size_t i = 0; i < current->children.size(); ++i) {
    bool last = i + 1 == current->children.size();
    text += indent + (last ? "`- " : "|- ");
    draw(current->children[i], indent + (last ? "   " : "|  "), text);
  }
}

static uint64_t count(const MachineNode &node, const std::string &kind) {
  uint64_t total = node.kind == kind;
  for (const MachineNode &child : node.children)
    total += count(child, kind);
  return total;
}

std::string sandwich::drawMachine(const MachineNode &machine) {
  std::string text;
  for (const char *kind : {"package", "numa", "core", "cpu"})
    if (uint64_t parts = count(machine, kind)) {
      if (!text.empty())
        text += ", ";
      text += kind;
      text += " x ";
      text += std::to_string(parts);
    }
  text += "\n";
  draw(machine, "", text);
  return text;
}

Json sandwich::toJson(const MachineNode &machine) {
  Json json = {{"kind", machine.kind}};
  if (machine.index >= 0)
    json["index"] = machine.index;
  if (machine.bytes > 0)
    json["bytes"] = machine.bytes;
  if (!machine.children.empty()) {
    json["children"] = Json::array();
    for (const MachineNode &child : machine.children)
      json["children"].push_back(toJson(child));
  }
  return json;
}
