/* The interface between the auditing OpenCL layer (layer.c) and the programs that it audits: see
 * docs/reference/audit.md.
 *
 * The layer is put in front of the drivers in one of two ways: the program calls audit_load() before its first
 * OpenCL call, or the user sets OPENCL_LAYERS. The program then sets the current phase and reads the counts. Needs
 * _GNU_SOURCE.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_AUDIT_H
#define COX_TESTS_AUDIT_H

#include "support/layer_open.h"

#include <stdint.h>

/* X(name, word). Frames run in `adapting` and in `steady`. */
#define AUDIT_PHASE_MAP(X)  \
    X(SETUP, "setup")       \
    X(ADAPTING, "adapting") \
    X(STEADY, "steady")     \
    X(TEARDOWN, "teardown")

/* X(name, word, what the rule forbids) */
#define AUDIT_RULE_MAP(X)                                                                                          \
    X(UNFLUSHED_WAIT, "unflushed_wait", "waiting or polling while this thread has enqueued what it did not flush") \
    X(UNFLUSHED_POLL, "unflushed_poll", "polling or waiting for an event whose command was not flushed")           \
    X(BLOCKING_TRANSFER, "blocking_transfer", "a blocking read, write or map while frames run")                    \
    X(BLOCKING_WAIT, "blocking_wait", "clFinish or clWaitForEvents while frames run")                              \
    X(NULL_LOCAL_SIZE, "null_local_size", "a kernel launched without a local size")                                \
    X(LOCAL_SIZE_CHANGED, "local_size_changed", "a kernel launched with another local size than before")           \
    X(GLOBAL_OFFSET, "global_offset", "a kernel launched with a global work offset")                               \
    X(CALL_IN_CALLBACK, "call_in_callback", "an OpenCL call from inside an event callback")                        \
    X(SUB_BUFFER_ALIGNMENT, "sub_buffer_alignment", "a sub-buffer not aligned for every device of its context")    \
    X(OUT_OF_BOUNDS, "out_of_bounds", "a copy past the end of a buffer or sub-buffer")                             \
    X(OVERLAP, "overlap", "unordered commands in flight, one writing what the other touches")                      \
    X(COPY_BESIDE_KERNEL, "copy_beside_kernel",                                                                    \
      "a copy from or to a part of what an unordered kernel of the same device may use")                           \
    X(MAPPED_IN_USE, "mapped_in_use", "a command on a region that the host has mapped")                            \
    X(MISSING_HAND_OVER, "missing_hand_over",                                                                      \
      "a command on host memory that a kernel wrote through another buffer, which was not mapped since")           \
    X(CROSS_DEVICE_WAIT, "cross_device_wait", "a wait list with an event of another device")                       \
    X(USER_EVENT, "user_event", "a user event while frames run")                                                   \
    X(CREATED_IN_STEADY, "created_in_steady", "an object created or a program built in the steady state")          \
    X(BAD_RELEASE, "bad_release", "retaining or releasing what is not alive")                                      \
    X(LEAK, "leak", "an object or a mapping alive at the end")

/* X(name, word) */
#define AUDIT_TYPE_MAP(X)       \
    X(CONTEXT, "context")       \
    X(QUEUE, "queue")           \
    X(BUFFER, "buffer")         \
    X(SUB_BUFFER, "sub_buffer") \
    X(IMAGE, "image")           \
    X(SAMPLER, "sampler")       \
    X(PROGRAM, "program")       \
    X(KERNEL, "kernel")         \
    X(EVENT, "event")           \
    X(SUB_DEVICE, "sub_device") \
    X(MAPPING, "mapping")

#define AUDIT_PHASE(name, ...) AUDIT_PHASE_##name,
#define AUDIT_RULE(name, ...) AUDIT_RULE_##name,
#define AUDIT_TYPE(name, ...) AUDIT_TYPE_##name,
enum audit_phase { AUDIT_PHASE_MAP(AUDIT_PHASE) AUDIT_PHASES };
enum audit_rule { AUDIT_RULE_MAP(AUDIT_RULE) AUDIT_RULES };
enum audit_type { AUDIT_TYPE_MAP(AUDIT_TYPE) AUDIT_TYPES };
#undef AUDIT_PHASE
#undef AUDIT_RULE
#undef AUDIT_TYPE

/* The functions that the layer exports. Any thread may call them at any time. */
struct audit {
    void (*phase)(int phase);                 /* cox_audit_phase: set the current phase */
    uint64_t (*violations)(int rule);         /* cox_audit_violations: number so far */
    uint64_t (*created)(int type, int phase); /* cox_audit_created */
    uint64_t (*live)(int type);               /* cox_audit_live: number of live objects, by the application's
                                               * references */
    uint64_t (*calls)(const char *name);      /* cox_audit_calls: number of calls of a function, NULL = of all */
    uint64_t (*finish)(void);                 /* cox_audit_finish: count all live objects as leaks; returns how
                                               * many */
    int (*write)(const char *path);           /* cox_audit_write: the report; "-" = standard error; returns 0 or -1 */
};

/* Load the layer at `path`, or $COX_TEST_LAYER_DIR/layer_audit.so if it is NULL. Call this before the first OpenCL
 * call, at which the ICD loader loads the same layer. On failure it prints the reason to standard error and returns
 * false. */
static inline bool audit_load(struct audit *audit, const char *path)
{
    const struct layer_symbol symbols[] = {
        {"cox_audit_phase", &audit->phase},     {"cox_audit_violations", &audit->violations},
        {"cox_audit_created", &audit->created}, {"cox_audit_live", &audit->live},
        {"cox_audit_calls", &audit->calls},     {"cox_audit_finish", &audit->finish},
        {"cox_audit_write", &audit->write},
    };
    return layer_open("layer_audit.so", path, symbols, sizeof symbols / sizeof *symbols);
}

#define AUDIT_WORD(name, word, ...) word,
#define AUDIT_TEXT(name, word, text) text,
__attribute__((unused)) static const char *const audit_phase_words[] = {AUDIT_PHASE_MAP(AUDIT_WORD)};
__attribute__((unused)) static const char *const audit_rule_words[] = {AUDIT_RULE_MAP(AUDIT_WORD)};
__attribute__((unused)) static const char *const audit_rule_texts[] = {AUDIT_RULE_MAP(AUDIT_TEXT)};
__attribute__((unused)) static const char *const audit_type_words[] = {AUDIT_TYPE_MAP(AUDIT_WORD)};
#undef AUDIT_WORD
#undef AUDIT_TEXT

#endif
