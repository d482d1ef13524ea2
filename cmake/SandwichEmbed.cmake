# Files that become a part of the programs.
#
# sandwich_embed_file(OUTPUT file FUNCTION name HEADER header FILE file)
# Writes at build time a C++ source, OUTPUT, that defines the function
# `std::string_view NAME()` of namespace sandwich, which HEADER declares, as the
# bytes of FILE. An array of numbers is a constant to every compiler, sanitizer
# and -flto; assemblers' .incbin and linkers' binary inputs are not.
#
# The same file is the script that writes it: cmake -P reads it with the
# variables INPUT, OUTPUT, FUNCTION and HEADER.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(SANDWICH_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(sandwich_embed_file)
    cmake_parse_arguments(ARG "" "OUTPUT;FUNCTION;HEADER;FILE" "" ${ARGN})
    get_filename_component(name ${ARG_FILE} NAME)
    add_custom_command(
      OUTPUT ${ARG_OUTPUT}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${ARG_FILE} -D OUTPUT=${ARG_OUTPUT}
              -D FUNCTION=${ARG_FUNCTION} -D HEADER=${ARG_HEADER}
              -P ${SANDWICH_EMBED_SCRIPT}
      DEPENDS ${ARG_FILE} ${SANDWICH_EMBED_SCRIPT}
      VERBATIM COMMENT "Embedding ${name}")
  endfunction()
  return()
endif()

file(READ ${INPUT} bytes HEX)
if(bytes STREQUAL "")
  message(FATAL_ERROR "${INPUT} is empty")
endif()
# 16 bytes a line.
string(REPEAT "[0-9a-f]" 32 line)
string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT}
"// Generated from the file of that name; see cmake/SandwichEmbed.cmake.
#include \"${HEADER}\"

static constexpr unsigned char contents[] = {
    ${bytes}};

std::string_view sandwich::${FUNCTION}() {
  return {reinterpret_cast<const char *>(contents), sizeof(contents)};
}
")
