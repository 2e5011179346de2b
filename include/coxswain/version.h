/* The version of the library, and the attributes of its functions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_VERSION_H
#define COXSWAIN_VERSION_H

/* The version of these headers. cox_version returns the version of the loaded library. */
#define COX_VERSION_MAJOR 0
#define COX_VERSION_MINOR 1
#define COX_VERSION_PATCH 0
#define COX_VERSION_STRING "0.1.0"

/* COX_API: the library exports this function. COX_MUST_CHECK: the compiler warns if a caller
 * ignores the result. */
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

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the loaded library, as "major.minor.patch". The string is static.
 *
 * Thread-safety: any thread. */
COX_API const char *cox_version(void);

#ifdef __cplusplus
}
#endif
#endif
