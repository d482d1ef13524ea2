# Every library Sandwich is built from, named once. Versions are those of
# Debian 12; scripts/install-deps.sh installs the packages.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
# Beast and Asio, which are headers.
find_package(Boost 1.81 REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc>=2.9)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.42)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium>=1.0.18)
# Debian: prometheus-cpp-dev.
pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET prometheus-cpp-core>=1.0)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc>=2.6)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash>=0.8)
pkg_check_modules(highway REQUIRED IMPORTED_TARGET libhwy>=1.0)
if(SANDWICH_ENABLE_MPI)
  # Debian: libopenmpi-dev and openmpi-bin.
  find_package(MPI 3.1 REQUIRED COMPONENTS C)
endif()
if(SANDWICH_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()

if(SANDWICH_BUILD_COMPILER)
  list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
  find_package(MLIR CONFIG)
  if(NOT MLIR_FOUND OR NOT LLVM_PACKAGE_VERSION MATCHES "^22\\.")
    message(FATAL_ERROR
      "LLVM and MLIR 22 are needed (found '${LLVM_PACKAGE_VERSION}'). Run "
      "scripts/install-deps.sh, or configure with "
      "-DSANDWICH_BUILD_COMPILER=OFF to build the runtime alone.")
  endif()
  # MLIRConfig.cmake does not export these; without them the static components
  # would be linked beside the shared library and register everything twice.
  set(MLIR_LINK_MLIR_DYLIB ON)
  set(LLVM_LINK_LLVM_DYLIB ON)
  list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)
  find_package(TBB 2021.8 REQUIRED)
  find_package(LLD CONFIG REQUIRED HINTS ${LLVM_DIR}/../lld)
  # Debian: libclang-22-dev. Its shared library, and the headers that clang
  # brings for what it reads (stddef.h).
  find_package(Clang CONFIG REQUIRED HINTS ${LLVM_DIR}/../clang)
  set(SANDWICH_CLANG_RESOURCES
    ${LLVM_LIBRARY_DIR}/clang/${LLVM_VERSION_MAJOR})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the base are cached as relative ones: another checkout, as that
  # of a continuous build, finds what this one has compiled. What precompiled
  # headers define is in them, by ccache's own account of how to use both.
  set(CMAKE_C_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
