/* Assertions of the engine's invariants. They are active in debug builds and fuzzers
 * (COX_ASSERTIONS). A release build contains none, because the library must never end the process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_INVARIANT_H
#define COX_ENGINE_INVARIANT_H

#ifdef COX_ASSERTIONS
#include <stdio.h>
#include <stdlib.h>
#define COX_INVARIANT(holds)                                                                \
    do {                                                                                    \
        if (!(holds)) {                                                                     \
            fprintf(stderr, "%s:%d: the invariant does not hold: %s\n", __FILE__, __LINE__, \
                    #holds);                                                                \
            abort();                                                                        \
        }                                                                                   \
    } while (0)
#else
/* Never evaluated, but the compiler sees the variables as used. */
#define COX_INVARIANT(holds) ((void)(0 && (holds)))
#endif

#endif
