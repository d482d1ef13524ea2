# How a room becomes a target. Plain C++ rooms use sandwich_add_library, rooms
# that see MLIR use sandwich_add_mlir_library; the split is what keeps LLVM out
# of the runtime.

add_library(sandwich_options INTERFACE)
target_include_directories(sandwich_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_compile_options(sandwich_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter)
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
endfunction()

# sandwich_add_mlir_library(NAME source... [LINK target...] [DEPENDS target...])
# MLIR itself comes from the shared library, linked once by each tool.
function(sandwich_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC sandwich_options ${ARG_LINK} MLIR LLVM)
  target_include_directories(${name} SYSTEM PUBLIC
    ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_options(${name} PRIVATE -fno-exceptions)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# sandwich_add_unittest(NAME source... [LINK target...])
function(sandwich_add_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unittests)
  set_property(GLOBAL APPEND PROPERTY SANDWICH_TEST_TARGETS ${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# sandwich_add_fuzzer(NAME source... [LINK target...])
function(sandwich_add_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
