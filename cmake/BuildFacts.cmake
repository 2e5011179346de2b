# What a program was built from, as a C file that defines `struct lab_build` of examples/programs/lab/build.h. Usage:
#
#   cox_build_facts(<target> <out.c> <kernel file>...)
#
# Each build makes the file again, but writes it only if it changes. So a new commit compiles this one file again and
# nothing else. Nothing in it depends on the time or place of the build: paths in flags are replaced. If the
# source is not the root of a git repository, as in a release archive or a package's build, the commit is "unknown".
#
# The kernels' hash is that of `sha256sum` over their list, which you can make in the folder kernels/:
#
#   LC_ALL=C find . -name '*.cl' -o -name '*.clh' | LC_ALL=C sort | sed 's,^\./,,' | xargs sha256sum | sha256sum
# SPDX-License-Identifier: Apache-2.0

if(CMAKE_SCRIPT_MODE_FILE)
    # The commit, if the source is the top of a repository and not a part of somebody else's.
    set(commit "unknown")
    set(ENV{GIT_OPTIONAL_LOCKS} 0)
    execute_process(COMMAND git rev-parse --show-toplevel
        WORKING_DIRECTORY "${COX_SOURCE}" OUTPUT_VARIABLE top RESULT_VARIABLE failed
        ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
        get_filename_component(top "${top}" REALPATH)
        get_filename_component(source "${COX_SOURCE}" REALPATH)
        if(top STREQUAL source)
            execute_process(COMMAND git describe --always --dirty --abbrev=40 "--exclude=*"
                WORKING_DIRECTORY "${COX_SOURCE}" OUTPUT_VARIABLE described RESULT_VARIABLE failed
                ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
            if(NOT failed)
                set(commit "${described}")
            endif()
        endif()
    endif()

    set(list "")
    string(REPLACE "|" ";" kernels "${COX_KERNELS}")
    foreach(kernel IN LISTS kernels)
        file(SHA256 "${kernel}" hash)
        file(RELATIVE_PATH name "${COX_SOURCE}/kernels" "${kernel}")
        string(APPEND list "${hash}  ${name}\n")
    endforeach()
    string(SHA256 kernels_hash "${list}")

    string(REPLACE "${COX_SOURCE}" "." flags "${COX_FLAGS}")
    string(REGEX REPLACE "(^|[ =,:]|-[IL])/[^ =,:]*" "\\1PATH" flags "${flags}")
    string(REGEX REPLACE "[ \t\n]+" " " flags "${flags}")
    string(STRIP "${flags}" flags)
    string(REGEX REPLACE "([\\\\\"])" "\\\\\\1" flags "${flags}")

    set(text "/* Made by cmake/BuildFacts.cmake. */\n#include \"lab/build.h\"\n
const struct lab_build lab_build = {
    .commit = \"${commit}\",
    .type = \"${COX_TYPE}\",
    .compiler = \"${COX_COMPILER}\",
    .flags = \"${flags}\",
    .kernels_sha256 = \"${kernels_hash}\",
};\n")
    set(before "")
    if(EXISTS "${COX_OUTPUT}")
        file(READ "${COX_OUTPUT}" before)
    endif()
    if(NOT before STREQUAL text)
        file(WRITE "${COX_OUTPUT}" "${text}")
    endif()
    return()
endif()

set(COX_BUILD_FACTS_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(cox_build_facts target output)
    set(kernels ${ARGN})
    list(SORT kernels)
    list(JOIN kernels "|" kernels)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    list(JOIN cox_options " " options)
    get_filename_component(folder "${output}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")

    add_custom_target(${target}_build_facts
        COMMAND ${CMAKE_COMMAND} "-DCOX_OUTPUT=${output}" "-DCOX_SOURCE=${PROJECT_SOURCE_DIR}" "-DCOX_KERNELS=${kernels}"
                "-DCOX_TYPE=$<CONFIG>" "-DCOX_COMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
                "-DCOX_FLAGS=${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} ${options}"
                -P "${COX_BUILD_FACTS_SCRIPT}"
        BYPRODUCTS "${output}"
        COMMENT "Noting what ${target} is built from"
        VERBATIM)
    set_source_files_properties("${output}" PROPERTIES GENERATED TRUE)
    target_sources(${target} PRIVATE "${output}")
    add_dependencies(${target} ${target}_build_facts)
endfunction()
