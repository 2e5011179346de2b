/* The kinds of fault in the matrix: each as lines of a fault plan for real devices, and as faults of scripted
 * devices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAULT_KINDS_H
#define COX_TESTS_FAULT_KINDS_H

#include "support/fake_backend.h"

/* Where a kind is tested. */
enum fault_setup {
    FAULT_ON_ONE,      /* one device */
    FAULT_ON_SHARED,   /* two in one context */
    FAULT_ON_MAPPED,   /* two in their own contexts, on host memory; of two platforms if possible */
    FAULT_ON_STAGED,   /* two with copies */
    FAULT_ON_SCRIPTED, /* three scripted ones with copies */
    FAULT_SETUPS
};

enum {
    FAULT_VERIFY = 1 << 0,  /* every band is repeated and compared; needs two devices */
    FAULT_QUICK = 1 << 1,   /* part of the quick selection */
    FAULT_PARTIAL = 1 << 2, /* not every line of the plan must strike */
    FAULT_UNSURE = 1 << 3,  /* COX_E_MISMATCH is allowed, since nothing can decide which device is right */
    FAULT_MOVING = 1 << 4,  /* bands must move */
    FAULT_RENEW = 1 << 5,   /* the device writes after it was given up, so do not reuse buffers from before a loss */
};

struct fault_case {
    const char *name;
    /* Lines of a fault plan; NULL = none. "@" is the device at fault. "%" is the same device, or any device if several
     * share the object of the call. */
    const char *plan;
    struct fake_fault fake[2];
    uint32_t flags;
    uint32_t not_on;    /* a bit for each set-up without such a call or device */
    const char *reason; /* the reason for `not_on` */
};

extern const struct fault_case fault_cases[];
extern const uint32_t fault_case_count;

/* The name of a set-up in tables and on the command line. */
const char *fault_setup_name(enum fault_setup setup);

#endif
