/* Assertions of the engine's invariants. They are compiled in debug builds and fuzzers
 * (COX_ASSERTIONS) and to nothing in a release: the released library never ends the process.
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
/* Never evaluated; what only assertions need is not unused. */
#define COX_INVARIANT(holds) ((void)(0 && (holds)))
#endif

#endif
