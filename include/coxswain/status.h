/* Status codes. A status says what failed. A log line says why.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_STATUS_H
#define COXSWAIN_STATUS_H

#include <coxswain/version.h>

/* X(name, value, text). The values are part of the ABI: append values, never renumber them. */
#define COX_STATUS_MAP(X)                                                              \
    X(COX_OK, 0, "success")                                                            \
    X(COX_E_INVALID, -1, "invalid argument")                                           \
    X(COX_E_NOMEM, -2, "out of host memory")                                           \
    X(COX_E_NO_PLATFORM, -3, "no OpenCL platform is installed")                        \
    X(COX_E_NO_DEVICE, -4, "no OpenCL device is available")                            \
    X(COX_E_NOT_FOUND, -5, "nothing with that name exists")                            \
    X(COX_E_BUILD, -6, "a kernel does not compile")                                    \
    X(COX_E_UNSUPPORTED, -7, "not supported by this device or build")                  \
    X(COX_E_BUSY, -8, "no free frame slot")                                            \
    X(COX_E_DEVICE_LOST, -9, "a device failed")                                        \
    X(COX_E_DEVICE_MEMORY, -10, "out of device memory")                                \
    X(COX_E_POLICY, -11, "the policy returned an invalid split")                       \
    X(COX_E_SYSTEM, -12, "the operating system refused a resource")                    \
    X(COX_E_TIMEOUT, -13, "a device exceeded its timeout")                             \
    X(COX_E_MISMATCH, -14, "results that must be equal differ")                        \
    X(COX_E_CANCELLED, -15, "the session's frames were cancelled")                     \
    X(COX_E_MEMORY_UNSAFE, -16, "a hung device may still write to the frame's memory") \
    X(COX_E_LATE, -17, "the frame's deadline passed before all its bands began")

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns, and how a frame ended. 0 is success. */
typedef enum cox_status {
#define COX_STATUS_ENUM(name, value, text) name = value,
    COX_STATUS_MAP(COX_STATUS_ENUM)
#undef COX_STATUS_ENUM
} cox_status;

/* The text of a status, such as "out of host memory". "unknown status" for any other value. The
 * string is static.
 *
 * Thread-safety: any thread. */
COX_API const char *cox_status_text(cox_status status);

/* The name of a status, such as "COX_E_NOMEM". "unknown status" for any other value. The string is
 * static.
 *
 * Thread-safety: any thread. */
COX_API const char *cox_status_name(cox_status status);

#ifdef __cplusplus
}
#endif
#endif
