# Builds for 64-bit ARM on any machine, with clang, lld and a folder of Debian's
# arm64 packages that 'scripts/install-deps.sh --aarch64' makes. What is built
# runs under qemu-aarch64, tests too.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(SANDWICH_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot-aarch64
    CACHE PATH "The folder of Debian's arm64 packages")
get_filename_component(CMAKE_SYSROOT ${SANDWICH_SYSROOT} REALPATH)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
  message(FATAL_ERROR "${CMAKE_SYSROOT} has no libraries for aarch64; run "
                      "scripts/install-deps.sh --aarch64")
endif()
# So that the checks that CMake compiles see it, too.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SANDWICH_SYSROOT)

set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_AR /usr/lib/llvm-22/bin/llvm-ar)
set(CMAKE_RANLIB /usr/lib/llvm-22/bin/llvm-ranlib)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -fuse-ld=lld)
endforeach()

# Programs are the build machine's; everything else is the target's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

find_program(QEMU_AARCH64 qemu-aarch64)
if(QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64} -L ${CMAKE_SYSROOT})
endif()
