/* The call sites of a program: where our code calls the system or a library. A site is a call and the functions of our
 * code that led to it. Its key is the same in every run of the same binaries.
 *
 * COX_CALLS_TABLE names a file, which all processes of a run share in memory, so that it survives a kill. It gets each
 * site with the number of calls (struct sites). sweep.py reads it.
 *
 * COX_CALLS_STRIKE=KEY:N:HOW disturbs the N-th call of the site KEY:
 *   fail    it does nothing and fails       ever    this call and all later ones of the site fail
 *   before  SIGKILL instead of the call     after   SIGKILL after the call
 *   half    SIGKILL after half of a write
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CALLS_SITES_H
#define COX_TESTS_CALLS_SITES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SITES_MAX = 8192, SITE_FRAMES = 6, SITE_MODULES = 16 };

struct site {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint32_t calls;
    _Atomic uint32_t struck;
    char call[32];
    uint64_t frames[SITE_FRAMES]; /* the module << 48 | the offset in it, the caller first; 0: no more */
};

struct sites {
    char modules[SITE_MODULES][256];
    struct site sites[SITES_MAX];
};

enum strike { STRIKE_NONE, STRIKE_FAIL, STRIKE_BEFORE, STRIKE_AFTER, STRIKE_HALF };

/* Count this call. `caller` is the address that it returns to. Only calls from our code, and from a library that works
 * for it, are counted. Keeps errno. */
enum strike site_pass(const char *call, void *caller);

/* Whether the call comes from our code or a library that works for it. */
bool site_is_ours(const void *caller);

/* End the process, as SIGKILL does. */
void site_kill(void);

#endif
