/* Status codes. A status says what failed. A log line says why.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_STATUS_H
#define COXSWAIN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define COX_API __attribute__((visibility("default")))
#define COX_MUST_CHECK __attribute__((warn_unused_result))

/* X(name, value, text). Append values. Never renumber them. */
#define COX_STATUS_MAP(X)                                                                    \
    X(COX_OK, 0, "success")                                                                  \
    X(COX_E_INVALID, -1, "invalid argument")                                                 \
    X(COX_E_NOMEM, -2, "out of host memory")                                                 \
    X(COX_E_NO_PLATFORM, -3, "no OpenCL platform is installed")                              \
    X(COX_E_NO_DEVICE, -4, "no OpenCL device is available")                                  \
    X(COX_E_NOT_FOUND, -5, "not found")                                                      \
    X(COX_E_BUILD, -6, "a kernel does not compile")                                          \
    X(COX_E_UNSUPPORTED, -7, "not supported by this device or build")                        \
    X(COX_E_BUSY, -8, "no free frame slot")                                                  \
    X(COX_E_DEVICE_LOST, -9, "a device failed")                                              \
    X(COX_E_DEVICE_MEMORY, -10, "out of device memory")                                      \
    X(COX_E_POLICY, -11, "the policy returned an invalid split")                             \
    X(COX_E_SYSTEM, -12, "the operating system refused a resource")                          \
    X(COX_E_TIMEOUT, -13, "a device exceeded its timeout")                                   \
    X(COX_E_MISMATCH, -14, "two devices computed different results for the same rows")       \
    X(COX_E_CANCELLED, -15, "cancelled")                                                     \
    X(COX_E_UNSAFE_MEMORY, -16, "a device that hangs may still write to the frame's memory") \
    X(COX_E_LATE, -17, "the frame missed its deadline")

typedef enum cox_status {
#define COX_STATUS_ENUM(name, value, text) name = value,
    COX_STATUS_MAP(COX_STATUS_ENUM)
#undef COX_STATUS_ENUM
} cox_status;

/* The text of a status, such as "out of host memory". "unknown status" for any other value.
 * The string is static. Thread-safety: any thread. */
COX_API const char *cox_status_text(cox_status status);

/* A zero-terminated array: COX_LIST(struct cox_pass, {.source = blur}, {.source = sharpen}).
 * Every list in this library ends with an element that is all zeros. A NULL list is empty. */
#define COX_LIST(type, ...) ((type const[]){__VA_ARGS__, {0}})

#ifdef __cplusplus
}
#endif
#endif
