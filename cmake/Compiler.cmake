# Warnings, hardening and sanitizers, the same for every target.
# SPDX-License-Identifier: Apache-2.0
include(CheckCCompilerFlag)

if(NOT COX_SANITIZE MATCHES "^(|address|thread)$")
    message(FATAL_ERROR "COX_SANITIZE is '${COX_SANITIZE}': it must be empty, 'address' or 'thread'")
endif()

if(COX_FUZZ AND NOT COX_SANITIZE STREQUAL "address")
    message(FATAL_ERROR "COX_FUZZ goes with COX_SANITIZE=address")
endif()

set(cox_options -Wall -Wextra)
set(cox_link_options)
if(COX_WERROR)
    list(APPEND cox_options -Werror)
endif()
if(COX_SANITIZE STREQUAL "address")
    list(APPEND cox_options -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    list(APPEND cox_link_options -fsanitize=address,undefined)
    if(COX_FUZZ)
        if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
            message(FATAL_ERROR "COX_FUZZ needs clang and its libFuzzer: cmake --preset fuzz")
        endif()
        list(APPEND cox_options -fsanitize=fuzzer-no-link)
        list(APPEND cox_link_options -fsanitize=fuzzer-no-link)
    endif()
elseif(COX_SANITIZE STREQUAL "thread")
    list(APPEND cox_options -fsanitize=thread -fno-omit-frame-pointer)
    list(APPEND cox_link_options -fsanitize=thread)
else()
    foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
        string(MAKE_C_IDENTIFIER "COX_HAVE${flag}" have)
        check_c_compiler_flag("${flag} -Werror" ${have})
        if(${have})
            list(APPEND cox_options $<$<NOT:$<CONFIG:Debug>>:${flag}>)
        endif()
    endforeach()
    list(APPEND cox_options $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
    list(APPEND cox_link_options LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

function(cox_compile target)
    target_compile_options(${target} PRIVATE ${cox_options})
    # Empty, so that a file that says `#define _GNU_SOURCE` itself does not redefine it.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
    target_link_options(${target} PRIVATE ${cox_link_options})
endfunction()

# The library itself is held to more. No contraction of a * b + c: splits and curve constants are then the same on
# every machine.
function(cox_compile_library target)
    cox_compile(${target})
    target_compile_options(${target} PRIVATE -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
                                             -ffp-contract=off)
endfunction()
