# How a room becomes a target. Plain C++ rooms use sandwich_add_library, rooms
# that see MLIR use sandwich_add_mlir_library; the split is what keeps LLVM out
# of the runtime.

add_library(sandwich_options INTERFACE)
target_include_directories(sandwich_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_compile_options(sandwich_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter
  # GCC 12 is wrong about operator+ of strings (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(SANDWICH_BUILD_FUZZERS)
  # Coverage feedback from every library, not only the fuzzers' own files.
  target_compile_options(sandwich_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SANDWICH_SANITIZE)
  target_compile_options(sandwich_options INTERFACE
    -fsanitize=${SANDWICH_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(sandwich_options INTERFACE
    -fsanitize=${SANDWICH_SANITIZE})
endif()

# sandwich_add_library(NAME source... [LINK target...])
function(sandwich_add_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC sandwich_options ${ARG_LINK})
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# What most files that see MLIR include: reading it takes three quarters of the
# time that a file compiles in. Files include what they use in any case; a build
# with -DSANDWICH_PRECOMPILE_HEADERS=OFF tells whether they do.
set(SANDWICH_MLIR_HEADERS
  mlir/Dialect/Arith/IR/Arith.h
  mlir/Dialect/Func/IR/FuncOps.h
  mlir/Dialect/Math/IR/Math.h
  mlir/Dialect/MemRef/IR/MemRef.h
  mlir/Dialect/SCF/IR/SCF.h
  mlir/Dialect/Vector/IR/VectorOps.h
  mlir/IR/Builders.h
  mlir/IR/BuiltinOps.h
  mlir/IR/ImplicitLocOpBuilder.h
  mlir/IR/PatternMatch.h
  mlir/Pass/PassManager.h)

# sandwich_set_mlir_options(TARGET)
# What all files that see MLIR are compiled with, and so are its headers.
function(sandwich_set_mlir_options target)
  target_include_directories(${target} SYSTEM PUBLIC
    ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -fno-exceptions)
endfunction()

if(SANDWICH_BUILD_COMPILER AND SANDWICH_PRECOMPILE_HEADERS)
  set(source ${PROJECT_BINARY_DIR}/precompiled-headers.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Headers alone.\n")
  add_library(SandwichMLIRHeaders OBJECT ${source})
  target_link_libraries(SandwichMLIRHeaders PRIVATE sandwich_options)
  sandwich_set_mlir_options(SandwichMLIRHeaders)
  list(TRANSFORM SANDWICH_MLIR_HEADERS REPLACE "(.+)" "<\\1>"
       OUTPUT_VARIABLE headers)
  target_precompile_headers(SandwichMLIRHeaders PRIVATE ${headers})
endif()

# sandwich_add_mlir_library(NAME source... [LINK target...] [DEPENDS target...])
# MLIR itself comes from the shared library, linked once by each tool. Symbols
# stay visible here: MLIR's type ids are merged with the shared library's by
# name, and with hidden ones no trait of an upstream operation is recognized.
function(sandwich_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC sandwich_options ${ARG_LINK} MLIR LLVM)
  sandwich_set_mlir_options(${name})
  if(TARGET SandwichMLIRHeaders)
    target_precompile_headers(${name} REUSE_FROM SandwichMLIRHeaders)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# sandwich_add_test_passes(TOOL)
# Lets a tool know the passes of test/lib, where tests are built.
function(sandwich_add_test_passes tool)
  if(SANDWICH_BUILD_TESTS)
    target_link_libraries(${tool} PRIVATE SandwichTestPasses)
    target_compile_definitions(${tool} PRIVATE SANDWICH_INCLUDE_TESTS)
  endif()
endfunction()

# sandwich_add_unittest(NAME source... [LINK target...] [SHARDS count])
# With SHARDS, the test cases are dealt out to as many tests, NAME.0 and on,
# which run in parallel.
function(sandwich_add_unittest name)
  cmake_parse_arguments(ARG "" "SHARDS" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unittests)
  set_property(GLOBAL APPEND PROPERTY SANDWICH_TEST_TARGETS ${name})
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    return()
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}.${shard} COMMAND ${name})
    set_tests_properties(${name}.${shard} PROPERTIES ENVIRONMENT
      "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# sandwich_add_fuzzer(NAME source... [LINK target...])
function(sandwich_add_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()

# sandwich_add_dialect(NAME OPS file ATTRIBUTES file [INTERFACES file] [TYPES])
# Generates the dialect's headers beside where its own are included from.
function(sandwich_add_dialect name)
  cmake_parse_arguments(ARG "TYPES" "OPS;ATTRIBUTES;INTERFACES" "" ${ARGN})
  string(TOLOWER ${name} mnemonic)
  set(folder include/sandwich/Dialect/${name}/IR)
  set(output ${PROJECT_BINARY_DIR}/${folder})
  file(MAKE_DIRECTORY ${output})
  set(generated)
  macro(generate source result)
    add_custom_command(
      OUTPUT ${output}/${result}
      COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${PROJECT_SOURCE_DIR}/include
              -I ${MLIR_INCLUDE_DIRS} -d ${output}/${result}.d
              ${PROJECT_SOURCE_DIR}/${folder}/${source}.td
              -o ${output}/${result}
      DEPFILE ${output}/${result}.d
      DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/${source}.td
      COMMENT "Generating ${result}")
    list(APPEND generated ${output}/${result})
  endmacro()
  foreach(kind decls defs)
    if(kind STREQUAL decls)
      set(suffix h.inc)
    else()
      set(suffix cpp.inc)
    endif()
    generate(${ARG_OPS} ${name}Ops.${suffix} -gen-op-${kind} -dialect=${mnemonic})
    generate(${ARG_OPS} ${name}Dialect.${suffix} -gen-dialect-${kind} -dialect=${mnemonic})
    generate(${ARG_ATTRIBUTES} ${name}Enums.${suffix} -gen-enum-${kind})
    generate(${ARG_ATTRIBUTES} ${name}Attributes.${suffix}
      -gen-attrdef-${kind} -attrdefs-dialect=${mnemonic})
    if(ARG_INTERFACES)
      generate(${ARG_INTERFACES} ${name}Interfaces.${suffix}
        -gen-attr-interface-${kind})
      generate(${ARG_INTERFACES} ${name}OpInterfaces.${suffix}
        -gen-op-interface-${kind})
    endif()
    if(ARG_TYPES)
      generate(${ARG_ATTRIBUTES} ${name}Types.${suffix}
        -gen-typedef-${kind} -typedefs-dialect=${mnemonic})
    endif()
  endforeach()
  add_custom_target(Sandwich${name}IncGen DEPENDS ${generated})
endfunction()

# sandwich_add_passes(NAME [FOLDER folder])
# Generates the declarations of FOLDER/Passes.td (FOLDER is NAME by default)
# beside where it is included from, as target SandwichNAMEPassesIncGen.
function(sandwich_add_passes name)
  cmake_parse_arguments(ARG "" "FOLDER" "" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  set(folder include/sandwich/${ARG_FOLDER})
  set(output ${PROJECT_BINARY_DIR}/${folder}/Passes.h.inc)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${MLIR_TABLEGEN_EXE} -gen-pass-decls -name=${name}
            -I ${PROJECT_SOURCE_DIR}/include -I ${MLIR_INCLUDE_DIRS}
            -d ${output}.d ${PROJECT_SOURCE_DIR}/${folder}/Passes.td
            -o ${output}
    DEPFILE ${output}.d
    DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/Passes.td
    COMMENT "Generating ${name}/Passes.h.inc")
  add_custom_target(Sandwich${name}PassesIncGen DEPENDS ${output})
endfunction()
