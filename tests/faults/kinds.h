/* The kinds of fault that the matrix goes through: each as lines of a fault plan for real devices, and for scripted
 * ones.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_KINDS_H
#define COX_TESTS_FAULT_KINDS_H

#include "support/fake_backend.h"

/* Where a kind is tried. */
enum fault_setup {
    FAULT_ON_ONE,      /* one device */
    FAULT_ON_SHARED,   /* two in one context */
    FAULT_ON_MAPPED,   /* two, each on host memory in a context of its own; where possible of two platforms */
    FAULT_ON_STAGED,   /* two with copies */
    FAULT_ON_SCRIPTED, /* three scripted ones with copies */
    FAULT_SETUPS
};

enum {
    FAULT_VERIFY = 1 << 0,  /* bands are done twice and compared; takes two devices */
    FAULT_QUICK = 1 << 1,   /* of the selection that every run of the tests takes */
    FAULT_PARTIAL = 1 << 2, /* not every line of the plan needs to strike */
    FAULT_UNSURE = 1 << 3,  /* COX_E_MISMATCH is an answer: nobody can tell which device is right */
    FAULT_MOVING = 1 << 4,  /* bands have to move */
    FAULT_RENEW = 1 << 5,   /* the device writes after it was given up: buffers from
                               before a loss are not used again */
};

struct fault_case {
    const char *name;
    const char
        *plan; /* "@" stands for the device at fault, "%" too unless it shares what the call is about with others, then
                         for any; NULL = none */
    struct fake_fault fake[2];
    uint32_t flags;
    uint32_t not_on;    /* a bit for each set-up in which such a call or such a device does not occur; */
    const char *reason; /* why not */
};

extern const struct fault_case fault_cases[];
extern const uint32_t fault_case_count;

/* The name that a set-up has in tables and on the command line. */
const char *fault_setup_name(enum fault_setup setup);

#endif
