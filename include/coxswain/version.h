/* Version of the library's interface.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_VERSION_H
#define COXSWAIN_VERSION_H

/* The version of these headers; cox_version tells that of the library that is loaded. */
#define COX_VERSION_MAJOR 0
#define COX_VERSION_MINOR 1
#define COX_VERSION_PATCH 0
#define COX_VERSION_STRING "0.1.0"

/* COX_API: the library exports it.
 * COX_MUST_CHECK: the compiler warns where the result is not looked at. */
#if defined(_WIN32)
#define COX_API
#else
#define COX_API __attribute__((visibility("default")))
#endif
#if defined(__GNUC__)
#define COX_MUST_CHECK __attribute__((warn_unused_result))
#else
#define COX_MUST_CHECK
#endif

/* How structs grow (docs/guide/api.md, "Versions and growth"): a struct that begins with `struct_size` tells by it how
 * much of it is there; 0 = as much as in version 0.1. It is set where the struct is made, by these or by hand.
 *
 * COX_LITERAL: pointer to a struct of `type` with the fields named. In C it lives as long as the block around it. In
 * C++ (C++17 and later, GCC and Clang) fields are named in the order of the struct, and it lives until the expression
 * around it ends: it is made in the call that reads it, never kept in a variable.
 * COX_SIZED: initialiser of a struct of `type`, zero but for its size; C and C++. */
#ifdef __cplusplus
#define COX_SIZED(type)                       \
    ([] {                                     \
        type cox_sized = {};                  \
        cox_sized.struct_size = sizeof(type); \
        return cox_sized;                     \
    }())
template <class cox_type> inline const cox_type *cox_literal(const cox_type &literal)
{
    return &literal;
}
extern "C" {
#else
#define COX_LITERAL(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})
#define COX_SIZED(type)             \
    {                               \
        .struct_size = sizeof(type) \
    }
#endif

/* Version of the library that is loaded, as "major.minor.patch". Static storage.
 * Thread-safety: safe from any thread. */
COX_API const char *cox_version(void);

#ifdef __cplusplus
}
/* The rest of this file counts as a system header, so that GCC does not warn of the fields that a literal leaves out:
 * they are zero. What is written between the macro's parentheses is warned of as ever. */
#pragma GCC system_header
#define COX_LITERAL(type, ...) \
    (__extension__ cox_literal<type>({.struct_size = sizeof(type), __VA_ARGS__}))
#endif
#endif
