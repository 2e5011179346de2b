# Turn OpenCL C sources into C character arrays at build time, so that the library opens no file at run time.
# Usage:
#
#   cox_embed_kernels(<out.c> <root> <file.cl>...)
#
# For each file FOLDER/NAME.cl below the root, the output defines `const char cox__source_FOLDER_NAME[]`, which
# kernels/sources.h declares. It is the file's text, with every `#include "X"` replaced by the text of X, a path from
# the root. The function makes a command that runs this file as a script (cmake -P).
# SPDX-License-Identifier: Apache-2.0

if(CMAKE_SCRIPT_MODE_FILE)
    function(read_resolved path result)
        file(READ "${path}" text)
        while(text MATCHES "(^|\n)#include \"([^\"\n]+)\"")
            set(name "${CMAKE_MATCH_2}")
            file(READ "${COX_ROOT}/${name}" included)
            string(REPLACE "#include \"${name}\"" "${included}" text "${text}")
        endwhile()
        set(${result} "${text}" PARENT_SCOPE)
    endfunction()

    set(generated "/* Made from the files in kernels/ by cmake/EmbedKernels.cmake. */\n#include \"sources.h\"\n")
    string(REPLACE "|" ";" inputs "${COX_INPUTS}")
    foreach(input IN LISTS inputs)
        file(RELATIVE_PATH name "${COX_ROOT}" "${input}")
        string(REGEX REPLACE "[.]cl$" "" name "${name}")
        string(REPLACE "/" "_" name "${name}")
        read_resolved("${input}" text)
        file(WRITE "${COX_OUTPUT}.tmp" "${text}")
        file(READ "${COX_OUTPUT}.tmp" hex HEX)
        file(REMOVE "${COX_OUTPUT}.tmp")
        string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
        string(APPEND generated "\nconst char cox__source_${name}[] = {\n${hex}0x00};\n")
    endforeach()
    file(WRITE "${COX_OUTPUT}" "${generated}")
    return()
endif()

set(COX_EMBED_KERNELS_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(cox_embed_kernels output root)
    set(inputs)
    get_filename_component(root "${root}" ABSOLUTE)
    foreach(file IN LISTS ARGN)
        get_filename_component(path "${file}" ABSOLUTE)
        if(path MATCHES "\\.cl$")
            list(APPEND inputs "${path}")
        endif()
    endforeach()
    file(GLOB headers CONFIGURE_DEPENDS "${root}/*/*.clh")
    string(REPLACE ";" "|" joined "${inputs}")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DCOX_OUTPUT=${output}" "-DCOX_ROOT=${root}" "-DCOX_INPUTS=${joined}" -P "${COX_EMBED_KERNELS_SCRIPT}"
        DEPENDS ${inputs} ${headers} "${COX_EMBED_KERNELS_SCRIPT}"
        COMMENT "Embedding the kernels"
        VERBATIM)
endfunction()
