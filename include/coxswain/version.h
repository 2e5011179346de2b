/* Version of the library's interface.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_VERSION_H
#define COXSWAIN_VERSION_H

#define COX_VERSION_MAJOR 0
#define COX_VERSION_MINOR 1
#define COX_VERSION_PATCH 0
#define COX_VERSION_STRING "0.1.0"

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
 * COX_LITERAL: pointer to a struct of `type` with the fields named, which lives as long as the block around it; C only.
 * COX_SIZED: initialiser of a struct of `type`, zero but for its size; C and C++. */
#define COX_LITERAL(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})
#ifdef __cplusplus
#define COX_SIZED(type)                       \
    ([] {                                     \
        type cox_sized = {};                  \
        cox_sized.struct_size = sizeof(type); \
        return cox_sized;                     \
    }())
extern "C" {
#else
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
#endif
#endif
