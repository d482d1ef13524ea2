//===- SvgDrawing.cpp - Machines as nested rectangles ---------------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summary.h"
#include "SvgLayout.h"
#include "sandwich/Support/ByteSize.h"
#include "sandwich/Support/Markup.h"
#include "sandwich/Topology/Drawing/MachineDrawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

using namespace sandwich;
using namespace sandwich::svg;

static constexpr double margin = 24;
static constexpr double lineHeight = 17;
static constexpr double minWidth = 560;

/// Machines of more have equal parts drawn once: no screen shows each CPU, and
/// files would have megabytes.
static constexpr uint64_t maxFullCpus = 512;
static constexpr size_t maxLegendProcesses = 24;
static constexpr size_t maxLeftOutLines = 16;
static constexpr size_t maxDistances = 16;

/// Light enough for dark text, far enough apart for neighbours.
static constexpr const char *processColours[] = {
    "#8ecae6", "#ffb703", "#b5e48c", "#ffadad", "#cdb4db", "#80ed99",
    "#f4a261", "#a0c4ff", "#e9c46a", "#f7aef8", "#72ddc7", "#d4a373"};

static constexpr char style[] = R"(
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  font-size: 12px; fill: #1f2933; }
.title { font-size: 18px; font-weight: 600; }
.soft { fill: #52606d; }
.box { stroke-width: 1; }
.name { font-size: 11px; font-weight: 600; }
.core-name { font-size: 10.5px; font-weight: 500; }
.small { font-size: 9.5px; }
.machine { fill: #f7f9fb; stroke: #9aa5b1; }
.package { fill: #e4e9f0; stroke: #7b8794; }
.die { fill: #eef1f6; stroke: #9aa5b1; }
.numa { fill: #dff3e4; stroke: #57ae7b; }
.cache { fill: #dcebfb; stroke: #5b9bd5; }
.group { fill: #fdf0dc; stroke: #e0a040; stroke-dasharray: 4 2; }
.other { fill: #f2f2f2; stroke: #9aa5b1; }
.core { fill: #ffffff; stroke: #829ab1; }
.slow { fill: #f3e8fb; stroke: #a678c8; }
.cpu { fill: #eef2f6; }
.asleep { fill: url(#hatch); }
)";

/// Breaks `text` between words into lines of at most `width`.
static std::vector<std::string> wrap(const std::string &text, double width) {
  auto limit = static_cast<size_t>(width / characterWidth);
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + word.size() >= limit)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

namespace {

/// Who runs on a CPU, by process number; -1 for nobody.
struct CpuState {
  int prefill = -1;
  int decode = -1;
};

class SvgDrawing {
public:
  SvgDrawing(const Machine &machine, const std::optional<PlanCores> &plan)
      : machine(machine), plan(plan) {
    if (!plan)
      return;
    for (size_t process = 0; process < plan->prefill.size(); ++process)
      for (unsigned cpu : plan->prefill[process])
        states[cpu].prefill = static_cast<int>(process);
    for (size_t process = 0; process < plan->decode.size(); ++process)
      for (unsigned cpu : plan->decode[process])
        states[cpu].decode = static_cast<int>(process);
  }

  std::string run() {
    merged = countParts(machine.root, "cpu") > maxFullCpus;
    const Bundles bundles(machine.root,
                          merged ? Bundles::Merge::Siblings
                                 : Bundles::Merge::Nothing,
                          [&](const MachineNode &cpu) {
                            const CpuState state = stateOf(cpu);
                            return std::to_string(state.prefill) + " " +
                                   std::to_string(state.decode);
                          });
    Box root = arrangeBoxes({{&machine.root}, 1}, bundles);
    width = std::max(root.width, minWidth);
    double y = margin + 16;
    for (const std::string &line : wrap(machine.name, width / 1.6)) {
      writeText(margin, y, "title", line, width);
      y += lineHeight + 5;
    }
    y -= 2;
    std::string summary = summaryOf(machine.root);
    if (!machine.cpuModel.empty())
      summary = machine.cpuModel + ": " + summary;
    for (const std::string &line : wrap(summary, width)) {
      writeText(margin, y, "soft", line, width);
      y += lineHeight;
    }
    y -= lineHeight - 10;
    draw(root, margin, y);
    y += root.height + gap;
    y = drawMemories(y);
    y = drawLegend(y + lineHeight);
    y = drawDistances(y);
    y = drawLeftOut(y);
    std::ostringstream svg;
    double fullWidth = width + 2 * margin;
    svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << fullWidth
        << "\" height=\"" << y + margin << "\" viewBox=\"0 0 " << fullWidth
        << " " << y + margin << "\">\n<title>" << escapeMarkup(machine.name)
        << "</title>\n<style>" << style << "</style>\n"
        << "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" "
           "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
           "<rect width=\"5\" height=\"5\" fill=\"#f3f4f6\"/><line x1=\"0\" "
           "y1=\"0\" x2=\"0\" y2=\"5\" stroke=\"#b8c0ca\" "
           "stroke-width=\"1.6\"/></pattern></defs>\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        << body.str() << "</svg>\n";
    return svg.str();
  }

private:
  static std::string classOf(const MachineNode &node) {
    static const std::set<std::string> own = {"machine", "package", "die",
                                              "numa", "group"};
    if (own.contains(node.kind))
      return node.kind;
    return node.kind[0] == 'l' ? "cache" : "other";
  }

  CpuState stateOf(const MachineNode &cpu) const {
    auto found = states.find(cpu.index);
    return found == states.end() ? CpuState() : found->second;
  }

  void draw(const Box &box, double left, double top) {
    if (!box.own.empty()) {
      drawCore(box, left, top);
      return;
    }
    const std::string title = titleOf(box.bundle);
    writeBoxes(box, classOf(box.bundle.node()), left, top, 5, title);
    writeText(left + padding, top + 13.5, "name", title, box.width - padding);
    for (const Box &child : box.children)
      draw(child, left + child.x, top + child.y);
  }

  void drawCore(const Box &box, double left, double top) {
    const MachineNode &core = box.own.back().node();
    std::string caches;
    for (const Bundle &part : box.own)
      if (&part != &box.own.back())
        caches += (caches.empty() ? "" : ", ") + titleOf({part.nodes, 1});
    const std::string label = coreLabelOf(box);
    ownParts[caches] += box.own.back().nodes.size();
    writeBoxes(box, core.speed < 1 ? "slow" : "core", left, top, 4,
               titleOf({box.own.back().nodes, box.bundle.eachParent}) +
                   (caches.empty() ? "" : ", " + caches));
    anySlow |= core.speed < 1;
    writeText(left + 5, top + 11.5, "core-name", label, box.width);
    double y = top + coreTitle;
    for (const Bundle &cpu : box.cpus) {
      drawCpu(cpu, left + 3, y, box.width - 6);
      y += cpuHeight;
    }
  }

  void drawCpu(const Bundle &cpu, double left, double top, double cpuWidth) {
    const std::string label = labelOf(cpu);
    double height = cpuHeight - 2;
    if (!plan) {
      writeBox("cpu", left, top, cpuWidth, height, 2, label);
    } else {
      const CpuState state = stateOf(cpu.node());
      drawHalf(left, top, cpuWidth / 2, height, state.prefill,
               label + " in prefill");
      drawHalf(left + cpuWidth / 2, top, cpuWidth / 2, height, state.decode,
               label + " in decode");
    }
    body << "<text class=\"small\" text-anchor=\"middle\" x=\""
         << left + cpuWidth / 2 << "\" y=\"" << top + 10.5 << "\">" << label
         << "</text>\n";
  }

  void drawHalf(double left, double top, double halfWidth, double height,
                int process, const std::string &label) {
    body << "<rect x=\"" << left << "\" y=\"" << top << "\" width=\""
         << halfWidth << "\" height=\"" << height << "\" ";
    if (process < 0)
      body << "class=\"asleep\"><title>" << label << ": asleep";
    else
      body << "fill=\"" << colourOf(process) << "\"><title>" << label
           << ": process " << process;
    body << "</title></rect>\n";
  }

  static const char *colourOf(int process) {
    return processColours[static_cast<size_t>(process) %
                          std::size(processColours)];
  }

  double drawMemories(double y) {
    double x = margin;
    for (const MachineNode &memory : machine.memories) {
      std::string title = titleOf({{&memory}, 1}) + ", outside the tree";
      double boxWidth =
          static_cast<double>(title.size()) * characterWidth + 2 * padding;
      if (x > margin && x + boxWidth > margin + width) {
        x = margin;
        y += boxTitle + 2 * gap;
      }
      writeBox("numa", x, y, boxWidth, boxTitle + gap, 5, title);
      writeText(x + padding, y + 16, "name", title, boxWidth);
      x += boxWidth + gap;
    }
    return machine.memories.empty() ? y : y + boxTitle + 2 * gap;
  }

  double drawLegend(double y) {
    for (const auto &[caches, cores] : ownParts)
      if (!caches.empty())
        y = writeLines(y, std::to_string(cores) +
                              (cores == 1 ? " core has" : " cores have") +
                              " their own: " + caches);
    if (merged)
      y = writeLines(y,
                     "Equal parts are drawn once: \"4 x\" stands for four of "
                     "them in the part around.");
    if (anySlow)
      y = writeLines(y, "Violet cores are efficiency cores.");
    if (!plan)
      return y;
    y = writeLines(y, "Left half of each CPU: prefill; right half: decode; "
                      "hatched: asleep.");
    size_t processes = std::max(plan->prefill.size(), plan->decode.size());
    double x = margin;
    for (size_t i = 0; i < std::min(processes, maxLegendProcesses); ++i) {
      auto cpusIn = [&](const std::vector<std::vector<unsigned>> &phase) {
        return std::to_string(i < phase.size() ? phase[i].size() : 0);
      };
      std::string label = "process " + std::to_string(i) + ": " +
                          cpusIn(plan->prefill) + " / " + cpusIn(plan->decode) +
                          " CPUs";
      constexpr double entryWidth = 178;
      if (x > margin && x + entryWidth > margin + width) {
        x = margin;
        y += lineHeight + 2;
      }
      body << "<rect x=\"" << x << "\" y=\"" << y - 10
           << "\" width=\"16\" height=\"12\" rx=\"2\" fill=\""
           << colourOf(static_cast<int>(i)) << "\"/>\n";
      writeText(x + 22, y, "", label, entryWidth);
      x += entryWidth;
    }
    y += lineHeight + 2;
    if (processes > maxLegendProcesses)
      y = writeLines(y, "and " +
                            std::to_string(processes - maxLegendProcesses) +
                            " more processes, in the same colours again");
    return y;
  }

  double drawDistances(double y) {
    size_t count = machine.distances.nodes.size();
    if (count < 2 || count > maxDistances)
      return y;
    y = writeLines(y + gap, "NUMA distances, 10 is a node's own memory:");
    y -= 8;
    uint64_t most = 11;
    for (const std::vector<uint64_t> &row : machine.distances.values)
      most = std::max(most, *std::max_element(row.begin(), row.end()));
    constexpr double side = 34;
    constexpr double height = 18;
    auto cell = [&](double column, double row, const std::string &fill,
                    const std::string &label) {
      double x = margin + column * side;
      body << "<rect x=\"" << x << "\" y=\"" << y + row * height
           << "\" width=\"" << side - 2 << "\" height=\"" << height - 2
           << "\" rx=\"2\" fill=\"" << fill << "\"/>\n<text class=\"small\" "
           << "text-anchor=\"middle\" x=\"" << x + side / 2 - 1 << "\" y=\""
           << y + row * height + 11.5 << "\">" << label << "</text>\n";
    };
    for (size_t i = 0; i < count; ++i) {
      std::string node = std::to_string(machine.distances.nodes[i]);
      auto place = static_cast<double>(i + 1);
      cell(place, 0, "#dff3e4", node);
      cell(0, place, "#dff3e4", node);
      for (size_t j = 0; j < count; ++j) {
        uint64_t value = machine.distances.values[i][j];
        double far = std::clamp((static_cast<double>(value) - 10) /
                                    (static_cast<double>(most) - 10),
                                0.0, 1.0);
        auto shade = static_cast<int>(std::lround(248 - 110 * far));
        std::ostringstream fill;
        fill << "rgb(248," << shade << "," << std::max(shade - 30, 0) << ")";
        cell(static_cast<double>(j + 1), place, fill.str(),
             std::to_string(value));
      }
    }
    return y + static_cast<double>(count + 1) * height + lineHeight;
  }

  double drawLeftOut(double y) {
    if (machine.leftOut.empty())
      return y - lineHeight;
    writeText(margin, y + gap, "name", "Left out", width);
    y += gap + lineHeight;
    size_t shown = std::min(machine.leftOut.size(), maxLeftOutLines);
    for (size_t i = 0; i < shown; ++i)
      y = writeLines(y, machine.leftOut[i]);
    if (shown < machine.leftOut.size())
      y = writeLines(
          y, "and " + std::to_string(machine.leftOut.size() - shown) + " more");
    return y - lineHeight;
  }

  /// Returns where the next line stands.
  double writeLines(double y, const std::string &text) {
    for (const std::string &line : wrap(text, width)) {
      writeText(margin, y, "soft", line, width);
      y += lineHeight;
    }
    return y;
  }

  /// What is too long for `room` is cut.
  void writeText(double x, double y, const char *kind, const std::string &text,
                 double room) {
    auto limit =
        static_cast<size_t>(std::max(1.0, room / (characterWidth - 1)));
    std::string shown = text;
    if (shown.size() > limit) {
      // Not inside a character.
      while (limit > 0 && (shown[limit] & 0xC0) == 0x80)
        --limit;
      shown.resize(limit);
      shown += "...";
    }
    body << "<text class=\"" << kind << "\" x=\"" << x << "\" y=\"" << y
         << "\">" << escapeMarkup(shown) << "</text>\n";
  }

  /// The box of one part, or a pile for many.
  void writeBoxes(const Box &box, const std::string &kind, double x, double y,
                  double radius, const std::string &tooltip) {
    constexpr double behind = 3;
    if (box.bundle.eachParent > 1)
      writeBox(kind, x + behind, y + behind, box.width, box.height, radius,
               tooltip);
    writeBox(kind, x, y, box.width, box.height, radius, tooltip);
  }

  void writeBox(const std::string &kind, double x, double y, double boxWidth,
                double height, double radius, const std::string &tooltip) {
    body << "<rect class=\"box " << kind << "\" x=\"" << x << "\" y=\"" << y
         << "\" width=\"" << boxWidth << "\" height=\"" << height << "\" rx=\""
         << radius << "\"><title>" << escapeMarkup(tooltip)
         << "</title></rect>\n";
  }

  const Machine &machine;
  const std::optional<PlanCores> &plan;
  /// By operating-system index.
  std::map<int64_t, CpuState> states;
  /// What cores have for themselves, and how many cores have it.
  std::map<std::string, size_t> ownParts;
  bool anySlow = false;
  bool merged = false;
  double width = 0;
  std::ostringstream body;
};

} // namespace

std::string sandwich::drawSvg(const Machine &machine,
                              const std::optional<PlanCores> &plan) {
  return SvgDrawing(machine, plan).run();
}
