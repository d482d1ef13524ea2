//===- SharedObjectTest.cpp - Machine code that may be loaded -------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sandwich/Artifact/SharedObject.h"

#include "sandwich/Support/File.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

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
      {"AUDIT", "has DT_AUDIT: it would bring in other libraries"},
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
           +[](Elf64_Ehdr &header) { header.e_machine = EM_RISCV; },
       }) {
    std::string file = objectNamed("PLAIN");
    change(Headers(file).header());
    EXPECT_EQ(refusal(file),
              "is no shared object of this machine's architecture");
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
         h.program(PT_LOAD, 1).p_vaddr = h.program(PT_LOAD).p_vaddr;
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

TEST(SharedObject, SurvivesEveryLength) {
  const std::string good = objectNamed("POINTERS");
  for (size_t length = 0; length < good.size(); ++length)
    (void)read(good.substr(0, length));
}

} // namespace
