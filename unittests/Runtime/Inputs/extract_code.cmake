# Writes the first block of a language from a Markdown file:
#   cmake -DPAGE=x.md -DLANGUAGE=c -DOUTPUT=x.c -P extract_code.cmake
file(READ ${PAGE} text)
if(NOT text MATCHES "\n```${LANGUAGE}\n([^`]*)\n```\n")
  message(FATAL_ERROR "${PAGE} has no block of ${LANGUAGE}")
endif()
file(WRITE ${OUTPUT} "${CMAKE_MATCH_1}\n")
