# ANTLR: tool 4.7.2 and runtime 4.9 of Debian 12 work together; the distribution's own CMake module does not run.
find_program(ANTLR4_EXECUTABLE antlr4)                   # the script: it sets its own class path
find_package(antlr4-runtime CONFIG)
if(NOT ANTLR4_EXECUTABLE OR NOT TARGET antlr4_shared)
  message(FATAL_ERROR "ANTLR not found: install antlr4, libantlr4-runtime-dev and uuid-dev")
endif()
add_library(gshard_antlr4 INTERFACE)
add_library(gshard::antlr4 ALIAS gshard_antlr4)
target_include_directories(gshard_antlr4 SYSTEM INTERFACE "${ANTLR4_INCLUDE_DIR}")
target_link_libraries(gshard_antlr4 INTERFACE antlr4_shared)

function(gshard_antlr_generate)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "GRAMMAR;OUTPUT_DIR;SOURCES" "")
  cmake_path(GET arg_GRAMMAR STEM name)
  cmake_path(ABSOLUTE_PATH arg_GRAMMAR BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(parts Lexer Parser Visitor BaseVisitor)
  list(TRANSFORM parts REPLACE "(.+)" "${arg_OUTPUT_DIR}/${name}\\1.cpp" OUTPUT_VARIABLE sources)
  list(TRANSFORM parts REPLACE "(.+)" "${arg_OUTPUT_DIR}/${name}\\1.h" OUTPUT_VARIABLE headers)
  add_custom_command(OUTPUT ${sources} ${headers}
    COMMAND "${ANTLR4_EXECUTABLE}" -Werror -Dlanguage=Cpp -visitor -no-listener -package gshard::grammar
            -Xexact-output-dir -o "${arg_OUTPUT_DIR}" "${arg_GRAMMAR}"
    DEPENDS "${arg_GRAMMAR}" VERBATIM)
  set(${arg_SOURCES} ${sources} PARENT_SCOPE)
endfunction()
