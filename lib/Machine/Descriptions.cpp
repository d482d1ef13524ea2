//===- Descriptions.cpp - Descriptions nobody vouches for -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Descriptions.h"

#include "sandwich/Machine/MachineTopology.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Support/Utf8.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <vector>

using namespace sandwich;

/// Elements nested deeper are refused; hwloc writes one for each level.
static constexpr size_t maxXmlDepth = 64;

/// A child that computes for longer to load a description is ended.
static constexpr rlim_t maxLoadSeconds = 60;

/// The end of the tag that begins at `start`, after its '>', or npos. Quoted
/// values may hold any character.
static size_t endOfTag(std::string_view xml, size_t start) {
  char quote = 0;
  for (size_t i = start; i < xml.size(); ++i) {
    char c = xml[i];
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '>')
      return i + 1;
  }
  return std::string_view::npos;
}

static size_t after(std::string_view xml, size_t start, std::string_view mark) {
  size_t found = xml.find(mark, start);
  return found == std::string_view::npos ? found : found + mark.size();
}

Status sandwich::checkTopologyXml(std::string_view xml) {
  auto failure = [&](size_t position, const auto &...reason) {
    auto line = 1 + std::count(xml.begin(), xml.begin() + position, '\n');
    return makeError("line ", line, ": ", reason...);
  };
  if (size_t zero = xml.find('\0'); zero != std::string_view::npos)
    return failure(zero, "a zero byte is not XML");
  std::vector<std::string_view> open;
  bool seenRoot = false;
  for (size_t at = xml.find('<'); at != std::string_view::npos;
       at = xml.find('<', at)) {
    std::string_view rest = xml.substr(at);
    size_t end;
    if (rest.starts_with("<?"))
      end = after(xml, at, "?>");
    else if (rest.starts_with("<!--"))
      end = after(xml, at, "-->");
    else
      end = endOfTag(xml, at);
    if (end == std::string_view::npos)
      return failure(at, "the text ends inside a tag");
    std::string_view tag = xml.substr(at, end - at);
    std::string_view name =
        tag.substr(1, tag.find_first_of(" \t\r\n/>", 2) - 1);
    if (tag.starts_with("<!") && tag.find('[') != std::string_view::npos &&
        !tag.starts_with("<!--"))
      return failure(at, "declarations of entities are not read");
    if (tag.starts_with("</")) {
      name = tag.substr(2, tag.find_last_not_of(" \t\r\n>") - 1);
      if (open.empty() || open.back() != name)
        return failure(at, "</", printable(name), "> closes nothing that is ",
                       "open");
      open.pop_back();
    } else if (!tag.starts_with("<!") && !tag.starts_with("<?")) {
      if (open.empty() && (seenRoot || name != "topology"))
        return failure(at, "<", printable(name), "> stands where one ",
                       "<topology> is expected");
      seenRoot = true;
      if (open.size() == maxXmlDepth)
        return failure(at, "more than ", maxXmlDepth,
                       " elements inside each other");
      if (!tag.ends_with("/>"))
        open.push_back(name);
    }
    at = end;
  }
  if (!open.empty())
    return failure(xml.size(), "<", printable(open.back()),
                   "> is never closed");
  if (!seenRoot)
    return makeError("holds no <topology>, as hwloc's XML files do");
  return {};
}

Status sandwich::checkSyntheticDescription(std::string_view description) {
  uint64_t cpus = 1;
  bool any = false;
  int depth = 0;
  for (size_t i = 0; i < description.size(); ++i) {
    char c = description[i];
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    // Counts stand alone or behind a colon: "package:2", "2".
    bool begins =
        i == 0 || description[i - 1] == ':' || description[i - 1] == ' ';
    if (depth != 0 || !begins || c < '0' || c > '9')
      continue;
    uint64_t parts = 0;
    auto [end, error] = std::from_chars(
        description.data() + i, description.data() + description.size(), parts);
    any = true;
    std::optional<uint64_t> product = checkedMultiply(cpus, parts);
    if (error != std::errc() || !product || *product > maxTopologyCpus)
      return makeError("has more than ", maxTopologyCpus, " CPUs");
    cpus = *product;
  }
  if (!any)
    return makeError("is empty: no level has a number of parts");
  return {};
}

/// More siblings are divided among groups, of which few stand side by side.
static constexpr unsigned maxSiblings = 128;
static constexpr unsigned maxMadeUpGroups = 32;

/// How many groups `parts` siblings are divided among: 1 if they are prime.
static unsigned groupsFor(unsigned parts) {
  for (unsigned groups = maxMadeUpGroups; groups > 1; --groups)
    if (parts % groups == 0)
      return groups;
  for (unsigned groups = maxMadeUpGroups + 1; groups <= parts / groups;
       ++groups)
    if (parts % groups == 0)
      return groups;
  return 1;
}

LoadableDescription sandwich::divideSiblings(std::string_view description) {
  LoadableDescription result;
  // Outermost first, as they stand.
  std::vector<bool> groups;
  int depth = 0;
  for (size_t at = 0; at < description.size();) {
    size_t colon = at;
    while (colon < description.size() &&
           std::isalnum(static_cast<unsigned char>(description[colon])))
      ++colon;
    const std::string_view kind = description.substr(at, colon - at);
    if (kind.empty() || depth != 0) {
      const char c = description[at++];
      depth += (c == '(' || c == '[') - (c == ')' || c == ']');
      result.text += c;
      continue;
    }
    at = colon;
    // Memory that is a level by itself has groups that hwloc makes up, so that
    // these could not be told apart.
    // So do groups that are numbered.
    const bool isGroup = kind.starts_with('g') || kind.starts_with('G');
    if (kind.starts_with('n') || kind.starts_with('N') ||
        (isGroup && std::isdigit(static_cast<unsigned char>(kind.back()))))
      return {std::string(description), {}};
    unsigned parts = 0;
    if (std::isalpha(static_cast<unsigned char>(kind.front())) &&
        description.substr(colon).starts_with(':')) {
      const char *end = description.data() + description.size();
      at = std::from_chars(description.data() + colon + 1, end, parts).ptr -
           description.data();
    }
    if (parts == 0) {
      result.text +=
          description.substr(colon - kind.size(), at - (colon - kind.size()));
      continue;
    }
    for (unsigned made; parts > maxSiblings && (made = groupsFor(parts)) > 1;
         parts /= made) {
      result.text += "group:" + std::to_string(made) + ' ';
      groups.push_back(true);
    }
    result.text += std::string(kind) + ':' + std::to_string(parts);
    if (isGroup)
      groups.push_back(false);
  }
  result.madeUpGroups.assign(groups.rbegin(), groups.rend());
  return result;
}

/// Waits until `end` can be read, at most for `limit`.
static bool waitToRead(int end, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{end, POLLIN, 0};
    const int ready =
        ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR)
      return ready > 0;
  }
}

Result<LoadOutcome> sandwich::tryToLoad(const std::function<bool()> &load,
                                        std::chrono::milliseconds limit) {
  constexpr char action[] = "start the process that it is tried in";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return systemError(action);
  pid_t child = ::fork();
  if (child < 0) {
    Error error = systemError(action);
    ::close(ends[0]);
    ::close(ends[1]);
    return error;
  }
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU})
      ::signal(signal, SIG_DFL);
    rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    // At the lower limit it is told why, at the upper one killed.
    rlimit seconds{maxLoadSeconds, maxLoadSeconds + 1};
    ::setrlimit(RLIMIT_CPU, &seconds);
    if (int quiet = ::open("/dev/null", O_WRONLY); quiet >= 0)
      ::dup2(quiet, STDERR_FILENO);
    char loaded = load() ? 1 : 0;
    // Without the parent's destructors and buffers.
    ::_exit(::write(ends[1], &loaded, 1) == 1 ? 0 : 1);
  }
  ::close(ends[1]);
  char loaded = 0;
  ssize_t got = -1;
  bool tooSlow = false;
  if (waitToRead(ends[0], limit)) {
    while ((got = ::read(ends[0], &loaded, 1)) < 0 && errno == EINTR)
      ;
  } else {
    // It waits for something: another thread may have held a lock at the fork.
    ::kill(child, SIGKILL);
    tooSlow = true;
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (tooSlow || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    return LoadOutcome::TooSlow;
  return got == 1 && loaded == 1 ? LoadOutcome::Loaded : LoadOutcome::Refused;
}
