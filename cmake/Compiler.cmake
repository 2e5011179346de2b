# Warnings, hardening and sanitizers, the same for every target.
# SPDX-License-Identifier: Apache-2.0
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

if(NOT COX_SANITIZE MATCHES "^(|address|thread)$")
    message(FATAL_ERROR "COX_SANITIZE is '${COX_SANITIZE}': it must be empty, 'address' or 'thread'")
endif()

if(COX_FUZZ AND NOT COX_SANITIZE STREQUAL "address")
    message(FATAL_ERROR "COX_FUZZ goes with COX_SANITIZE=address")
endif()

# No contraction of a * b + c, which compilers for arm64 do by default (gcc -std=gnu11, clang). So splits, curve
# constants and simulations are the same on every machine.
set(cox_options -Wall -Wextra -Wformat=2 -Wno-format-nonliteral -ffp-contract=off)
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
    # Level 3 also checks sizes that are known only at run time. A C library without it gives a warning, and a compiler
    # without it uses level 2.
    set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror")
    check_c_source_compiles("
#include <string.h>
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 3
#error none
#endif
int main(void) { return 0; }" COX_HAVE_FORTIFY_3)
    unset(CMAKE_REQUIRED_FLAGS)
    set(cox_fortify $<IF:$<BOOL:${COX_HAVE_FORTIFY_3}>,3,2>)
    # A distribution's compiler may set another level.
    list(APPEND cox_options $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                            $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${cox_fortify}>)
    list(APPEND cox_link_options LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,separate-code)
endif()

# GCC 12.1 and 12.2 fail in loops that compute a maximum with fmax together with another result, if the machine has an
# instruction for it, as arm64 does (GCC's bug 108608). In that case fmax becomes a call, as on x86.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(CMAKE_REQUIRED_FLAGS "-O3 -std=c11")
    check_c_source_compiles("
#include <math.h>
unsigned most(const double *from, double *to, int count, double *most)
{
    unsigned found = 0;
    double value = 0;
    for (int i = 0; i < count; i++) {
        to[i] = from[i];
        value = fmax(value, from[i]);
        if (from[i] > 0)
            found |= 1u << i;
    }
    *most = value;
    return found;
}" COX_HAVE_FMAX_IN_LOOPS)
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    if(NOT COX_HAVE_FMAX_IN_LOOPS)
        list(APPEND cox_options -fno-builtin-fmax -fno-builtin-fmin -fno-builtin-fmaxf -fno-builtin-fminf)
    endif()
endif()

function(cox_compile target)
    target_compile_options(${target} PRIVATE ${cox_options})
    # Empty, so that a file with `#define _GNU_SOURCE` does not redefine it.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE=)
    target_link_options(${target} PRIVATE ${cox_link_options})
endfunction()

# Stricter warnings for the library.
function(cox_compile_library target)
    cox_compile(${target})
    target_compile_options(${target} PRIVATE -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef)
endfunction()
