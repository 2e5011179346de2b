# Turn text files into C character arrays at build time, so that a program needs no other file. Usage:
#
#   cox_embed_texts(<out.c> <header> <prefix> <file>...)
#
# The output defines `PREFIX_texts[]` of `struct PREFIX_text`, which examples/programs/HEADER declares. It has the name
# (without its folder) and the text of each file, in the order of the arguments. The function makes a command that runs
# this file as a script (cmake -P).
# SPDX-License-Identifier: Apache-2.0

if(CMAKE_SCRIPT_MODE_FILE)
    set(arrays "")
    set(table "")
    set(index 0)
    string(REPLACE "|" ";" inputs "${COX_INPUTS}")
    foreach(input IN LISTS inputs)
        get_filename_component(name "${input}" NAME)
        file(READ "${input}" hex HEX)
        string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
        string(APPEND arrays "\nstatic const char text_${index}[] = {\n${hex}0x00};\n")
        string(APPEND table "    {\"${name}\", text_${index}},\n")
        math(EXPR index "${index} + 1")
    endforeach()
    file(WRITE "${COX_OUTPUT}" "/* Made by cmake/EmbedTexts.cmake. */\n#include \"${COX_HEADER}\"\n${arrays}\n"
         "const struct ${COX_PREFIX}_text ${COX_PREFIX}_texts[] = {\n${table}    {0, 0}};\n")
    return()
endif()

set(COX_EMBED_TEXTS_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(cox_embed_texts output header prefix)
    string(REPLACE ";" "|" inputs "${ARGN}")
    get_filename_component(folder "${output}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${output}"
        COMMAND ${CMAKE_COMMAND} "-DCOX_OUTPUT=${output}" "-DCOX_INPUTS=${inputs}" "-DCOX_HEADER=${header}"
                "-DCOX_PREFIX=${prefix}" -P "${COX_EMBED_TEXTS_SCRIPT}"
        DEPENDS ${ARGN} "${COX_EMBED_TEXTS_SCRIPT}"
        VERBATIM)
endfunction()
