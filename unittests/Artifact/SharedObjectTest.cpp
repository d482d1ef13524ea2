//===- SharedObjectTest.cpp - Machine code that may be loaded -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/SharedObject.h"
#include "sandwich/Target/CpuFeatures.h"

#include "sandwich/Support/File.h"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace sandwich;

namespace {

std::string objectNamed(const std::string &name) {
  auto text = readTextFile(std::string(TEST_OBJECTS) + "/" + name + ".so",
                           size_t{1} << 24);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

Result<SharedObject> read(const std::string &file) {
  return SharedObject::read(std::as_bytes(std::span(file)));
}

/// What is said of `file`; empty when it may be loaded.
std::string refusal(const std::string &file) {
  auto object = read(file);
  return object ? "" : object.error().message;
}

/// Whether the loader takes `file`, and gives it up again.
bool loads(const std::string &file) {
  const int copy = ::memfd_create("object", MFD_CLOEXEC);
  EXPECT_EQ(::write(copy, file.data(), file.size()),
            static_cast<ssize_t>(file.size()));
  void *handle = ::dlopen(("/proc/self/fd/" + std::to_string(copy)).c_str(),
                          RTLD_NOW | RTLD_LOCAL);
  if (handle)
    ::dlclose(handle);
  ::close(copy);
  return handle != nullptr;
}

/// The structure of an object in `file`, to be changed in place.
struct Headers {
  explicit Headers(std::string &file) : file(file) {}

  template <typename T> T &at(uint64_t offset) {
    return *reinterpret_cast<T *>(file.data() + offset);
  }
  Elf64_Ehdr &header() { return at<Elf64_Ehdr>(0); }
  /// The `index`-th program header of this type.
  Elf64_Phdr &program(uint32_t type, int index = 0) {
    for (int i = 0; i < header().e_phnum; ++i) {
      auto &each = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr));
      if (each.p_type == type && index-- == 0)
        return each;
    }
    throw std::runtime_error("no program header " + std::to_string(type));
  }
  Elf64_Dyn &dynamic(int64_t tag) {
    const Elf64_Phdr &section = program(PT_DYNAMIC);
    for (uint64_t i = 0; i < section.p_memsz; i += sizeof(Elf64_Dyn))
      if (at<Elf64_Dyn>(section.p_offset + i).d_tag == tag)
        return at<Elf64_Dyn>(section.p_offset + i);
    throw std::runtime_error("no dynamic entry " + std::to_string(tag));
  }
  /// Tables are in the first segment, where addresses are offsets.
  Elf64_Sym &symbol(int index) {
    return at<Elf64_Sym>(dynamic(DT_SYMTAB).d_un.d_ptr +
                         index * sizeof(Elf64_Sym));
  }
  uint32_t &hash(int word) {
    return at<uint32_t>(dynamic(DT_GNU_HASH).d_un.d_ptr +
                        word * sizeof(uint32_t));
  }
  Elf64_Rela &relocation() {
    return at<Elf64_Rela>(dynamic(DT_RELA).d_un.d_ptr);
  }

  std::string &file;
};

TEST(SharedObject, TellsWhatItExports) {
  const std::string file = objectNamed("PLAIN");
  auto object = read(file);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_TRUE(object->hasFunction("function"));
  EXPECT_FALSE(object->hasFunction("constant"));
  EXPECT_FALSE(object->hasFunction("absent"));
  EXPECT_FALSE(object->findConstant("function"));
  auto constant = object->findConstant("constant");
  ASSERT_TRUE(constant);
  long value = 0;
  ASSERT_EQ(constant->size(), sizeof(value));
  std::memcpy(&value, constant->data(), sizeof(value));
  EXPECT_EQ(value, 7);
}

TEST(SharedObject, TakesRelativeRelocations) {
  const std::string file = objectNamed("POINTERS");
  EXPECT_EQ(refusal(file), "");
  EXPECT_TRUE(loads(file));
}

TEST(SharedObject, RefusesWhatPhasesDoNotHave) {
  struct {
    const char *object;
    const char *expected;
  } const cases[] = {
      {"CONSTRUCTOR", "has DT_INIT_ARRAY: its own code would run as it is "
                      "loaded or unloaded, which compiled phases never ask "
                      "for"},
      {"DESTRUCTOR", "has DT_FINI_ARRAY: its own code would run"},
      {"INIT", "has DT_INIT: its own code would run"},
      {"FINI", "has DT_FINI: its own code would run"},
      {"INDIRECT", "has the indirect function \"chosen\": its own code would"},
      {"HIDDEN_INDIRECT", "has an indirect function: its own code would run"},
      {"LIBRARY", "has DT_NEEDED: it would bring in other libraries"},
      {"RUNPATH", "has DT_RUNPATH: it would bring in other libraries"},
      {"RPATH", "has DT_RPATH: it would bring in other libraries"},
#ifdef TEST_LINKER_AUDITS
      {"AUDIT", "has DT_AUDIT: it would bring in other libraries"},
#endif
      {"AUXILIARY", "has DT_AUXILIARY: it would bring in other libraries"},
      {"FILTER", "has DT_FILTER: it would bring in other libraries"},
      {"UNDEFINED_FUNCTION", "needs the symbol \"puts\" from elsewhere; "
                             "compiled phases need none"},
      {"UNDEFINED_OBJECT", "needs the symbol \"environ\" from elsewhere"},
      {"EXECUTABLE_STACK", "asks for stacks that are executed"},
      {"TEXT_RELOCATION", "has DT_TEXTREL: its code would be changed as it is "
                          "loaded"},
      {"THREAD_LOCAL", "has a program header of type 7, which"},
      {"VARIABLE", "exports \"variable\", which is neither a function nor a "
                   "constant"},
  };
  for (const auto &each : cases)
    EXPECT_TRUE(refusal(objectNamed(each.object)).starts_with(each.expected))
        << each.object << ": " << refusal(objectNamed(each.object));
}

TEST(SharedObject, RefusesOtherFiles) {
  EXPECT_EQ(refusal(""), "is no shared object");
  EXPECT_EQ(refusal("no machine code, but longer than the header of a file "
                    "that holds some would be"),
            "is no shared object");
  for (auto change : {
           +[](Elf64_Ehdr &header) { header.e_ident[EI_CLASS] = ELFCLASS32; },
           +[](Elf64_Ehdr &header) { header.e_ident[EI_DATA] = ELFDATA2MSB; },
           +[](Elf64_Ehdr &header) { header.e_type = ET_EXEC; },
       }) {
    std::string file = objectNamed("PLAIN");
    change(Headers(file).header());
    EXPECT_EQ(refusal(file), "is no shared object of a machine of 64 bits");
  }
}

TEST(SharedObject, NamesTheMachineOfAnother) {
  const bool onX86 = hostArchitecture == CpuArchitecture::X86_64;
  const std::pair<Elf64_Half, std::string> others[] = {
      {onX86 ? EM_AARCH64 : EM_X86_64, onX86 ? "aarch64" : "x86-64"},
      {EM_RISCV, "ELF machine 243"}};
  for (const auto &[machine, name] : others) {
    std::string file = objectNamed("PLAIN");
    Headers(file).header().e_machine = machine;
    EXPECT_EQ(refusal(file),
              "is a shared object for " + name + ", and this machine is " +
                  std::string(sandwich::name(hostArchitecture)) +
                  "; compile the model again with --target=host");
  }
}

TEST(SharedObject, RefusesWhatTheLoaderWouldFollowAstray) {
  struct {
    const char *expected;
    void (*spoil)(Headers &);
  } const cases[] = {
      {"is damaged: its program headers are outside of it; compile the model "
       "again",
       [](Headers &h) { h.header().e_phoff = h.file.size() - 8; }},
      {"is damaged: its program headers are none",
       [](Headers &h) { h.header().e_phentsize = 8; }},
      {"is damaged: its program headers are none",
       [](Headers &h) { h.header().e_phnum = 65535; }},
      {"is damaged: a segment is outside of it",
       [](Headers &h) { h.program(PT_LOAD).p_filesz = uint64_t{1} << 40; }},
      {"is damaged: a segment is outside of it",
       [](Headers &h) { h.program(PT_LOAD, 1).p_offset = ~uint64_t{0}; }},
      {"is damaged: a segment is outside of it",
       [](Headers &h) { h.program(PT_LOAD, 3).p_memsz = ~uint64_t{0}; }},
      {"is damaged: a segment is not aligned",
       [](Headers &h) { h.program(PT_LOAD, 1).p_align = 0; }},
      {"is damaged: a segment is not aligned",
       [](Headers &h) { h.program(PT_LOAD, 1).p_vaddr += 8; }},
      {"is damaged: its segments overlap",
       [](Headers &h) {
         // Where lld puts it, the file has it within a page.
         Elf64_Phdr &other = h.program(PT_LOAD, 1);
         other.p_vaddr =
             h.program(PT_LOAD).p_vaddr + other.p_offset % other.p_align;
       }},
      {"has memory that is both written and executed",
       [](Headers &h) { h.program(PT_LOAD, 1).p_flags |= PF_W; }},
      {"asks for stacks that are executed, as it has no PT_GNU_STACK",
       [](Headers &h) { h.program(PT_GNU_STACK).p_type = PT_GNU_EH_FRAME; }},
      {"is damaged: PT_GNU_RELRO is no writable memory",
       [](Headers &h) { h.program(PT_GNU_RELRO).p_vaddr = 0; }},
      {"is damaged: it has two dynamic sections",
       [](Headers &h) { h.program(PT_GNU_RELRO) = h.program(PT_DYNAMIC); }},
      {"is damaged: it has no dynamic section",
       [](Headers &h) { h.program(PT_DYNAMIC).p_vaddr = 1 << 20; }},
      {"is damaged: it has no dynamic section that is read and written",
       [](Headers &h) { h.program(PT_DYNAMIC).p_vaddr = 0; }},
      {"is damaged: PT_DYNAMIC is not for reading and writing",
       [](Headers &h) { h.program(PT_DYNAMIC).p_flags = PF_R; }},
      {"is damaged: PT_PHDR is not where the program headers are",
       [](Headers &h) {
         // The first are in the first segment, the others behind it.
         h.program(PT_LOAD).p_filesz = h.program(PT_LOAD).p_memsz = 256;
         h.program(PT_GNU_STACK).p_type = PT_PHDR;
         Elf64_Phdr &own = h.program(PT_PHDR);
         own.p_vaddr = h.header().e_phoff;
         own.p_memsz = 8;
       }},
      {"is damaged: its dynamic section has no end",
       [](Headers &h) {
         h.program(PT_DYNAMIC).p_memsz = 2 * sizeof(Elf64_Dyn);
       }},
      {"is damaged: its dynamic section has an entry twice",
       [](Headers &h) { h.dynamic(DT_STRSZ).d_tag = DT_STRTAB; }},
      {"is damaged: it has no DT_GNU_HASH",
       [](Headers &h) { h.dynamic(DT_GNU_HASH).d_un.d_ptr = 1 << 29; }},
      {"is damaged: DT_GNU_HASH is no hash table",
       [](Headers &h) { h.hash(0) = 0; }},
      {"is damaged: DT_GNU_HASH is no hash table",
       [](Headers &h) { h.hash(2) = 3; }},
      {"is damaged: DT_GNU_HASH is outside of its constants",
       [](Headers &h) { h.hash(0) = ~uint32_t{0}; }},
      // Buckets could be found behind them, in another segment.
      {"is damaged: DT_GNU_HASH is outside of its constants",
       [](Headers &h) { h.hash(2) = 1 << 26; }},
      {"is damaged: DT_GNU_HASH is outside of its constants",
       [](Headers &h) {
         const Elf64_Phdr &first = h.program(PT_LOAD);
         Elf64_Phdr &other = h.program(PT_LOAD, 1);
         other = first;
         other.p_vaddr = other.p_paddr = first.p_align;
         h.hash(2) = static_cast<uint32_t>(first.p_align / sizeof(uint64_t));
       }},
      {"is damaged: DT_GNU_HASH has a symbol that is not hashed",
       [](Headers &h) { h.hash(1) = 1000; }},
      {"is damaged: DT_GNU_HASH has a chain without an end",
       [](Headers &h) {
         for (uint32_t i = 0; i < h.hash(0); ++i)
           h.hash(4 + 2 * static_cast<int>(h.hash(2)) + static_cast<int>(i)) =
               1 << 30;
       }},
      {"is damaged: its symbols are outside of its constants",
       [](Headers &h) { h.dynamic(DT_SYMTAB).d_un.d_ptr = 1 << 29; }},
      {"is damaged: the names of its symbols are outside",
       [](Headers &h) { h.dynamic(DT_STRSZ).d_un.d_val -= 1; }},
      {"is damaged: a symbol has no name",
       [](Headers &h) { h.symbol(1).st_name = 1 << 20; }},
      {"has the symbol \"", [](Headers &h) { h.symbol(1) = h.symbol(2); }},
      {"exports \"", [](Headers &h) { h.symbol(1).st_value = 1 << 29; }},
      {"exports \"", [](Headers &h) { h.symbol(1).st_shndx = SHN_ABS; }},
      {"is damaged: its relocations are outside",
       [](Headers &h) { h.dynamic(DT_RELA).d_un.d_ptr = 1 << 29; }},
      {"is damaged: its relocations are outside",
       [](Headers &h) { h.dynamic(DT_RELACOUNT).d_un.d_val = 3; }},
      {"has a relocation at 4096: its code would be changed",
       [](Headers &h) { h.relocation().r_offset = 4096; }},
      {"is damaged: a relocation changes its dynamic section",
       [](Headers &h) {
         h.relocation().r_offset = h.program(PT_DYNAMIC).p_vaddr + 8;
       }},
      {"has a relocation of type 1, which",
       [](Headers &h) { h.relocation().r_info = 1; }},
      {"has a dynamic entry of type 23, which compiled phases do not have",
       [](Headers &h) { h.dynamic(DT_RELACOUNT).d_tag = DT_JMPREL; }},
      {"has a dynamic entry of type 30 and value 16, which",
       [](Headers &h) {
         h.dynamic(DT_RELACOUNT) = {DT_FLAGS, {DF_STATIC_TLS}};
       }},
  };
  for (const auto &each : cases) {
    std::string file = objectNamed("POINTERS");
    Headers headers(file);
    each.spoil(headers);
    EXPECT_TRUE(refusal(file).starts_with(each.expected))
        << "expected " << each.expected << ", got " << refusal(file);
  }
}

/// Whatever byte is wrong, reading it ends, and what is let pass does not harm
/// the loader.
TEST(SharedObject, SurvivesEveryChangedByte) {
  const std::string good = objectNamed("POINTERS");
  std::string file = good;
  Headers headers(file);
  const Elf64_Phdr tables = headers.program(PT_LOAD);
  const Elf64_Phdr dynamic = headers.program(PT_DYNAMIC);
  for (const Elf64_Phdr &part : {tables, dynamic})
    for (uint64_t i = part.p_offset; i < part.p_offset + part.p_filesz; ++i)
      for (int change : {1, 0x80, 0xff}) {
        file[i] = static_cast<char>(file[i] ^ change);
        if (read(file))
          (void)loads(file);
        file[i] = good[i];
      }
}

/// Where each number is that the loader reads of how an object is made.
struct Field {
  uint64_t offset, bytes;
};

std::vector<Field> fieldsOf(std::string &file) {
  Headers headers(file);
  std::vector<Field> fields;
  const uint64_t programs = headers.header().e_phoff;
  for (uint64_t i = 0; i < headers.header().e_phnum; ++i) {
    const uint64_t header = programs + i * sizeof(Elf64_Phdr);
    fields.push_back({header + offsetof(Elf64_Phdr, p_type), 4});
    fields.push_back({header + offsetof(Elf64_Phdr, p_flags), 4});
    for (size_t number :
         {offsetof(Elf64_Phdr, p_offset), offsetof(Elf64_Phdr, p_vaddr),
          offsetof(Elf64_Phdr, p_filesz), offsetof(Elf64_Phdr, p_memsz),
          offsetof(Elf64_Phdr, p_align)})
      fields.push_back({header + number, 8});
  }
  const Elf64_Phdr dynamic = headers.program(PT_DYNAMIC);
  for (uint64_t entry = dynamic.p_offset;; entry += sizeof(Elf64_Dyn)) {
    if (headers.at<Elf64_Dyn>(entry).d_tag == DT_NULL)
      break;
    fields.push_back({entry, 8});
    fields.push_back({entry + sizeof(int64_t), 8});
  }
  const uint64_t hash = headers.dynamic(DT_GNU_HASH).d_un.d_ptr;
  for (uint64_t word = 0; word < 4; ++word)
    fields.push_back({hash + word * sizeof(uint32_t), 4});
  return fields;
}

/// One field with another number in it.
struct Change {
  Field field;
  uint64_t number;
};

std::vector<Change> changesOf(std::string &file) {
  std::vector<Change> changes;
  for (const Field &field : fieldsOf(file)) {
    uint64_t number = 0;
    std::memcpy(&number, file.data() + field.offset, field.bytes);
    // Flags, types and alignments are small; the others are addresses.
    for (uint64_t other : {uint64_t{0}, uint64_t{PF_R}, uint64_t{PF_R | PF_W},
                           uint64_t{4096}, number + 4096, number ^ 8})
      if (other != number)
        changes.push_back({field, other});
  }
  return changes;
}

void apply(const Change &change, std::string &file) {
  std::memcpy(file.data() + change.field.offset, &change.number,
              change.field.bytes);
}

/// Of two wrong fields the second may hide the first.
TEST(SharedObject, SurvivesEveryTwoChangedFields) {
  for (const char *name : {"POINTERS", "NO_RELRO"}) {
    const std::string good = objectNamed(name);
    std::string file = good;
    const std::vector<Change> changes = changesOf(file);
    for (size_t i = 0; i < changes.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        apply(changes[i], file);
        apply(changes[j], file);
        if (read(file))
          (void)loads(file);
        for (const Change &change : {changes[i], changes[j]})
          good.copy(file.data() + change.field.offset, change.field.bytes,
                    change.field.offset);
      }
  }
}

/// Without PT_GNU_RELRO and relocations nothing else says that the dynamic
/// section is written to.
TEST(SharedObject, RefusesADynamicSectionThatCannotBeWritten) {
  std::string file = objectNamed("NO_RELRO");
  ASSERT_EQ(refusal(file), "");
  Headers headers(file);
  for (int i = 0;; ++i) {
    Elf64_Phdr &segment = headers.program(PT_LOAD, i);
    if (!(segment.p_flags & PF_W))
      continue;
    segment.p_flags = PF_R;
    break;
  }
  EXPECT_EQ(refusal(file), "is damaged: it has no dynamic section that is read "
                           "and written; compile the model again");
}

TEST(SharedObject, SurvivesEveryLength) {
  const std::string good = objectNamed("POINTERS");
  for (size_t length = 0; length < good.size(); ++length)
    (void)read(good.substr(0, length));
}

} // namespace
