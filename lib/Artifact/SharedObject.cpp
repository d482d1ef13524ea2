//===- SharedObject.cpp - Machine code that may be loaded -----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/SharedObject.h"

#include "sandwich/Artifact/Format.h"
#include "sandwich/Support/CheckedMath.h"
#include "sandwich/Target/CpuFeatures.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>

using namespace sandwich;

static_assert(std::endian::native == std::endian::little,
              "the files are little-endian as the memory is");

#if defined(__x86_64__)
static constexpr Elf64_Half nativeMachine = EM_X86_64;
static constexpr uint32_t relativeRelocation = R_X86_64_RELATIVE;
static constexpr uint32_t indirectRelocation = R_X86_64_IRELATIVE;
#elif defined(__aarch64__)
static constexpr Elf64_Half nativeMachine = EM_AARCH64;
static constexpr uint32_t relativeRelocation = R_AARCH64_RELATIVE;
static constexpr uint32_t indirectRelocation = R_AARCH64_IRELATIVE;
#else
#error "which relocations the loader may be given is not known here"
#endif

/// Far above what linkers write.
static constexpr uint64_t maxProgramHeaders = 64;
/// From the first address to the last.
static constexpr uint64_t maxMappedBytes = uint64_t{1} << 30;
/// Linkers align to the largest page of the architecture.
static constexpr uint64_t maxAlignment = uint64_t{1} << 21;

namespace {

/// A part of the file that the loader maps.
struct Segment {
  uint64_t address, memoryBytes, offset, fileBytes;
  uint32_t flags;

  bool isWritable() const { return (flags & (PF_R | PF_W)) == (PF_R | PF_W); }
  bool holds(uint64_t begin, uint64_t bytes, uint64_t extent) const {
    return begin >= address && bytes <= extent &&
           begin - address <= extent - bytes;
  }
};

/// Dynamic entries that compiled phases have no use for, and what they ask the
/// loader for.
struct Refusal {
  int64_t tag;
  const char *name;
  const char *reason;
};
constexpr char runsCode[] =
    "its own code would run as it is loaded or unloaded";
constexpr char needsLibrary[] = "it would bring in other libraries";
constexpr char changesCode[] = "its code would be changed as it is loaded";
constexpr Refusal refusals[] = {
    {DT_INIT, "DT_INIT", runsCode},
    {DT_INIT_ARRAY, "DT_INIT_ARRAY", runsCode},
    {DT_PREINIT_ARRAY, "DT_PREINIT_ARRAY", runsCode},
    {DT_FINI, "DT_FINI", runsCode},
    {DT_FINI_ARRAY, "DT_FINI_ARRAY", runsCode},
    {DT_NEEDED, "DT_NEEDED", needsLibrary},
    {DT_RPATH, "DT_RPATH", needsLibrary},
    {DT_RUNPATH, "DT_RUNPATH", needsLibrary},
    {DT_AUDIT, "DT_AUDIT", needsLibrary},
    {DT_DEPAUDIT, "DT_DEPAUDIT", needsLibrary},
    {DT_AUXILIARY, "DT_AUXILIARY", needsLibrary},
    {DT_FILTER, "DT_FILTER", needsLibrary},
    {DT_TEXTREL, "DT_TEXTREL", changesCode},
};

} // namespace

/// `name` as it may stand in a message, whatever the file has there.
static std::string printable(std::string_view name) {
  constexpr size_t longest = 100;
  std::string text(name.substr(0, longest));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return "\"" + text + "\"";
}

/// The architecture of a header's `e_machine`.
static std::string nameOfMachine(Elf64_Half machine) {
  switch (machine) {
  case EM_X86_64:
    return std::string(name(CpuArchitecture::X86_64));
  case EM_AARCH64:
    return std::string(name(CpuArchitecture::AArch64));
  }
  return "ELF machine " + std::to_string(machine);
}

static Error damaged(const char *what) {
  return makeError("is damaged: ", what, "; compile the model again");
}

/// Reads one file. Every offset and address in it may be anything.
class SharedObject::Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : file(bytes) {}

  Result<SharedObject> read() {
    SANDWICH_RETURN_IF_ERROR(readHeader());
    SANDWICH_RETURN_IF_ERROR(readSegments());
    SANDWICH_RETURN_IF_ERROR(checkSegmentOrder());
    SANDWICH_RETURN_IF_ERROR(checkOtherHeaders());
    SANDWICH_RETURN_IF_ERROR(readDynamic());
    SANDWICH_RETURN_IF_ERROR(readSymbols());
    SANDWICH_RETURN_IF_ERROR(checkRelocations());
    SANDWICH_RETURN_IF_ERROR(checkFlags());
    return std::move(result);
  }

private:
  template <typename T>
  static T take(std::span<const std::byte> bytes, uint64_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }

  /// `count` elements of `T` in the file from `offset` on, or nothing.
  template <typename T>
  std::optional<std::span<const std::byte>> fileTable(uint64_t offset,
                                                      uint64_t count) const {
    auto bytes = checkedMultiply<uint64_t>(count, sizeof(T));
    if (!bytes || offset > file.size() || *bytes > file.size() - offset)
      return std::nullopt;
    return file.subspan(offset, *bytes);
  }

  /// `bytes` bytes that lie at `address` once the file is mapped, in a segment
  /// with all of `flags` that nothing writes to; or nothing. What is written to
  /// may have changed until it is used.
  std::optional<std::span<const std::byte>>
  constants(uint64_t address, uint64_t bytes, uint32_t flags = PF_R) const {
    for (const Segment &segment : segments)
      if (!(segment.flags & PF_W) && (segment.flags & flags) == flags &&
          segment.holds(address, bytes, segment.fileBytes))
        return file.subspan(segment.offset + (address - segment.address),
                            bytes);
    return std::nullopt;
  }
  template <typename T>
  std::optional<std::span<const std::byte>> table(uint64_t address,
                                                  uint64_t count) const {
    auto bytes = checkedMultiply<uint64_t>(count, sizeof(T));
    if (!bytes || address % alignof(T) != 0)
      return std::nullopt;
    return constants(address, *bytes);
  }

  /// What lies from `address` on, in a segment that is read and not written to,
  /// to the end of its part of the file; nothing where there is no such
  /// segment.
  std::span<const std::byte> constantsFrom(uint64_t address) const {
    for (const Segment &segment : segments)
      if ((segment.flags & (PF_R | PF_W)) == PF_R &&
          segment.holds(address, 0, segment.fileBytes))
        return file.subspan(segment.offset + (address - segment.address),
                            segment.fileBytes - (address - segment.address));
    return {};
  }

  /// Whether all of this is the memory of a segment that is read and written.
  bool isWritable(uint64_t address, uint64_t bytes) const {
    return std::ranges::any_of(segments, [&](const Segment &segment) {
      return segment.isWritable() &&
             segment.holds(address, bytes, segment.memoryBytes);
    });
  }

  Status readHeader() {
    if (file.size() < sizeof(Elf64_Ehdr) ||
        std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
      return makeError("is no shared object");
    header = take<Elf64_Ehdr>(file, 0);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_ident[EI_VERSION] != EV_CURRENT || header.e_type != ET_DYN)
      return makeError("is no shared object of a machine of 64 bits");
    if (header.e_machine != nativeMachine)
      return makeError("is a shared object for ",
                       nameOfMachine(header.e_machine),
                       ", and this machine is ", name(hostArchitecture),
                       "; compile the model again with "
                       "--target=host");
    if (header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phnum > maxProgramHeaders)
      return damaged("its program headers are none");
    auto headers = fileTable<Elf64_Phdr>(header.e_phoff, header.e_phnum);
    if (!headers)
      return damaged("its program headers are outside of it");
    for (uint64_t i = 0; i < header.e_phnum; ++i)
      programHeaders.push_back(take<Elf64_Phdr>(*headers, i));
    return {};
  }

  Status readSegments() {
    for (const Elf64_Phdr &each : programHeaders) {
      if (each.p_type != PT_LOAD)
        continue;
      if ((each.p_flags & PF_W) && (each.p_flags & PF_X))
        return makeError("has memory that is both written and executed");
      auto end = checkedAdd<uint64_t>(each.p_vaddr, each.p_memsz);
      if (!fileTable<std::byte>(each.p_offset, each.p_filesz) ||
          each.p_filesz > each.p_memsz || !end || *end > maxMappedBytes)
        return damaged("a segment is outside of it, or too large");
      if (!std::has_single_bit(each.p_align) || each.p_align > maxAlignment ||
          each.p_vaddr % each.p_align != each.p_offset % each.p_align)
        return damaged("a segment is not aligned");
      segments.push_back({each.p_vaddr, each.p_memsz, each.p_offset,
                          each.p_filesz, each.p_flags});
    }
    return {};
  }

  /// Whole pages are mapped: where two segments share one, the file has what
  /// the memory will not.
  Status checkSegmentOrder() const {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < segments.size(); ++i) {
      const Segment &segment = segments[i];
      if (segment.address % page != segment.offset % page)
        return damaged("a segment is not aligned to pages");
      if (i > 0 &&
          segment.address / page < (segments[i - 1].address +
                                    segments[i - 1].memoryBytes + page - 1) /
                                       page)
        return damaged("its segments overlap");
    }
    return {};
  }

  Status checkOtherHeaders() {
    bool hasStack = false;
    for (const Elf64_Phdr &each : programHeaders) {
      switch (each.p_type) {
      case PT_LOAD:
        break;
      case PT_DYNAMIC:
        if (dynamicBytes > 0)
          return damaged("it has two dynamic sections");
        // By these flags, and not by those of the segment, the loader decides
        // whether to write to it.
        if ((each.p_flags & (PF_R | PF_W)) != (PF_R | PF_W))
          return damaged("PT_DYNAMIC is not for reading and writing");
        dynamicAddress = each.p_vaddr;
        dynamicBytes = each.p_memsz;
        break;
      case PT_GNU_STACK:
        if (each.p_flags & PF_X)
          return makeError("asks for stacks that are executed");
        hasStack = true;
        break;
      case PT_GNU_RELRO:
        if (!isWritable(each.p_vaddr, each.p_memsz))
          return damaged("PT_GNU_RELRO is no writable memory");
        break;
      case PT_PHDR: {
        // All of them are read there, whatever the size said here.
        auto seen =
            constants(each.p_vaddr, programHeaders.size() * sizeof(Elf64_Phdr));
        if (!seen || seen->data() != file.data() + header.e_phoff)
          return damaged("PT_PHDR is not where the program headers are");
        break;
      }
      case PT_GNU_EH_FRAME:
        if (!constants(each.p_vaddr, each.p_memsz))
          return damaged("PT_GNU_EH_FRAME is outside of its segments");
        break;
      default:
        return makeError("has a program header of type ", each.p_type,
                         ", which compiled phases do not have");
      }
    }
    // Nothing said means an executable one.
    if (!hasStack)
      return makeError("asks for stacks that are executed, as it has no "
                       "PT_GNU_STACK");
    return {};
  }

  Status readDynamic() {
    // It is the one table that the loader itself writes to.
    const Segment *segment = nullptr;
    for (const Segment &each : segments)
      if (each.isWritable() &&
          each.holds(dynamicAddress, dynamicBytes, each.fileBytes))
        segment = &each;
    if (!segment || dynamicBytes == 0 ||
        dynamicAddress % alignof(Elf64_Dyn) != 0)
      return damaged("it has no dynamic section that is read and written");
    const auto entries = file.subspan(
        segment->offset + (dynamicAddress - segment->address), dynamicBytes);
    for (uint64_t i = 0; i < dynamicBytes / sizeof(Elf64_Dyn); ++i) {
      const auto entry = take<Elf64_Dyn>(entries, i);
      if (entry.d_tag == DT_NULL)
        return {};
      SANDWICH_RETURN_IF_ERROR(checkTag(entry.d_tag));
      if (!dynamic.emplace(entry.d_tag, entry.d_un.d_val).second)
        return damaged("its dynamic section has an entry twice");
    }
    return damaged("its dynamic section has no end");
  }

  static Status checkTag(int64_t tag) {
    for (const Refusal &refusal : refusals)
      if (tag == refusal.tag)
        return makeError("has ", refusal.name, ": ", refusal.reason,
                         ", which compiled phases never ask for");
    return {};
  }

  /// The dynamic entry `tag`, or nothing.
  std::optional<uint64_t> entry(int64_t tag) const {
    auto found = dynamic.find(tag);
    if (found == dynamic.end())
      return std::nullopt;
    return found->second;
  }

  Status checkRelocations() const {
    const std::optional<uint64_t> address = entry(DT_RELA);
    const std::optional<uint64_t> bytes = entry(DT_RELASZ);
    if (!address && !bytes && !entry(DT_RELACOUNT))
      return {};
    const uint64_t count = bytes.value_or(0) / sizeof(Elf64_Rela);
    auto relocations = table<Elf64_Rela>(address.value_or(0), count);
    if (!address || !bytes || *bytes % sizeof(Elf64_Rela) != 0 ||
        entry(DT_RELAENT) != sizeof(Elf64_Rela) || !relocations ||
        entry(DT_RELACOUNT).value_or(0) > count)
      return damaged("its relocations are outside of its constants");
    for (uint64_t i = 0; i < count; ++i)
      SANDWICH_RETURN_IF_ERROR(
          checkRelocation(take<Elf64_Rela>(*relocations, i)));
    return {};
  }

  Status checkRelocation(const Elf64_Rela &relocation) const {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type == indirectRelocation)
      return makeError("has an indirect function: ", runsCode,
                       ", which compiled phases never ask for");
    if (type != relativeRelocation || ELF64_R_SYM(relocation.r_info) != 0)
      return makeError("has a relocation of type ", type,
                       ", which compiled phases do not have");
    const uint64_t place = relocation.r_offset;
    if (!isWritable(place, sizeof(uint64_t)))
      return makeError("has a relocation at ", place, ": ", changesCode,
                       ", which compiled phases never ask for");
    // No overflow, as `place` is in a segment.
    if (place + sizeof(uint64_t) > dynamicAddress &&
        place < dynamicAddress + dynamicBytes)
      return damaged("a relocation changes its dynamic section");
    return {};
  }

  /// The number of symbols, which only the hash table tells. Its layout is in
  /// no standard: four words, the words of a Bloom filter (of 64 bits), buckets
  /// that hold the first symbol of a chain each, and for every symbol from
  /// `firstHashed` on a word whose lowest bit ends the chain. The loader reads
  /// any of them, so all lie in one segment.
  Result<uint64_t> countSymbols() const {
    constexpr uint64_t headWords = 4;
    const uint64_t address = entry(DT_GNU_HASH).value_or(0);
    const std::span<const std::byte> words = constantsFrom(address);
    const uint64_t wordCount = words.size() / sizeof(uint32_t);
    if (address % alignof(uint64_t) != 0 || wordCount < headWords)
      return damaged("it has no DT_GNU_HASH");
    const auto bucketCount = take<uint32_t>(words, 0);
    const auto firstHashed = take<uint32_t>(words, 1);
    const auto filterWords = take<uint32_t>(words, 2);
    // The loader takes remainders by both.
    if (bucketCount == 0 || !std::has_single_bit(filterWords))
      return damaged("DT_GNU_HASH is no hash table");
    const uint64_t buckets = headWords + uint64_t{2} * filterWords;
    const uint64_t chains = buckets + bucketCount;
    if (chains > wordCount)
      return damaged("DT_GNU_HASH is outside of its constants");
    uint64_t last = 0;
    for (uint64_t i = buckets; i < chains; ++i) {
      const auto first = take<uint32_t>(words, i);
      if (first != 0 && first < firstHashed)
        return damaged("DT_GNU_HASH has a symbol that is not hashed");
      last = std::max<uint64_t>(last, first);
    }
    if (last == 0)
      return damaged("it exports nothing");
    // The last chain; those before end no later.
    while (chains + (last - firstHashed) < wordCount) {
      const auto word = take<uint32_t>(words, chains + (last - firstHashed));
      ++last;
      if (word & 1)
        return last;
    }
    return damaged("DT_GNU_HASH has a chain without an end");
  }

  Status readSymbols() {
    SANDWICH_ASSIGN_OR_RETURN(const uint64_t count, countSymbols());
    auto symbols = table<Elf64_Sym>(entry(DT_SYMTAB).value_or(0), count);
    auto names =
        constants(entry(DT_STRTAB).value_or(0), entry(DT_STRSZ).value_or(0));
    if (!symbols || entry(DT_SYMENT) != sizeof(Elf64_Sym))
      return damaged("its symbols are outside of its constants");
    if (!names || names->empty() || names->back() != std::byte{0})
      return damaged("the names of its symbols are outside of its constants");
    std::set<std::string_view> taken;
    // Symbol 0 is none.
    for (uint64_t i = 1; i < count; ++i) {
      const auto symbol = take<Elf64_Sym>(*symbols, i);
      if (symbol.st_name >= names->size())
        return damaged("a symbol has no name");
      // Ends at the last zero at the latest.
      const std::string_view name =
          reinterpret_cast<const char *>(names->data()) + symbol.st_name;
      SANDWICH_RETURN_IF_ERROR(addSymbol(name, symbol));
      if (!taken.insert(name).second)
        return makeError("has the symbol ", printable(name), " twice");
    }
    return {};
  }

  Status addSymbol(std::string_view name, const Elf64_Sym &symbol) {
    const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
    const unsigned char binding = ELF64_ST_BIND(symbol.st_info);
    if (type == STT_GNU_IFUNC)
      return makeError("has the indirect function ", printable(name), ": ",
                       runsCode, ", which compiled phases never ask for");
    if (symbol.st_shndx == SHN_UNDEF)
      return makeError("needs the symbol ", printable(name),
                       " from elsewhere; compiled phases need none");
    auto contents = constants(symbol.st_value, symbol.st_size,
                              type == STT_FUNC ? PF_R | PF_X : PF_R);
    if ((type != STT_FUNC && type != STT_OBJECT) ||
        (binding != STB_GLOBAL && binding != STB_WEAK) ||
        symbol.st_shndx >= SHN_LORESERVE || !contents)
      return makeError("exports ", printable(name),
                       ", which is neither a function nor a constant");
    result.symbols.push_back({name, type == STT_FUNC, *contents});
    return {};
  }

  /// Looks at the dynamic entries that nobody has read, last, as it can say the
  /// least about them.
  Status checkFlags() const {
    for (const auto &[tag, value] : dynamic) {
      uint64_t allowed = 0;
      switch (tag) {
      case DT_STRTAB:
      case DT_STRSZ:
      case DT_SYMTAB:
      case DT_SYMENT:
      case DT_GNU_HASH:
      // The loader does not look at this one where there is the other.
      case DT_HASH:
      case DT_RELA:
      case DT_RELASZ:
      case DT_RELAENT:
      case DT_RELACOUNT:
        continue;
      case DT_FLAGS:
        allowed = DF_BIND_NOW | DF_SYMBOLIC;
        break;
      case DT_FLAGS_1:
        allowed = DF_1_NOW;
        break;
      default:
        return makeError("has a dynamic entry of type ", tag,
                         ", which compiled phases do not have");
      }
      if (value & ~allowed)
        return makeError("has a dynamic entry of type ", tag, " and value ",
                         value, ", which compiled phases do not have");
    }
    return {};
  }

  std::span<const std::byte> file;
  Elf64_Ehdr header = {};
  std::vector<Elf64_Phdr> programHeaders;
  std::vector<Segment> segments;
  uint64_t dynamicAddress = 0, dynamicBytes = 0;
  std::map<int64_t, uint64_t> dynamic;
  SharedObject result;
};

Result<SharedObject> SharedObject::read(std::span<const std::byte> bytes) {
  return Reader(bytes).read();
}

const SharedObject::Symbol *SharedObject::find(std::string_view name) const {
  auto found = std::ranges::find(symbols, name, &Symbol::name);
  return found == symbols.end() ? nullptr : &*found;
}

bool SharedObject::hasFunction(std::string_view name) const {
  const Symbol *symbol = find(name);
  return symbol && symbol->isFunction;
}

std::optional<std::span<const std::byte>>
SharedObject::findConstant(std::string_view name) const {
  const Symbol *symbol = find(name);
  if (!symbol || symbol->isFunction)
    return std::nullopt;
  return symbol->contents;
}
