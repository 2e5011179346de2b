/* What a plain test program asserts with: it ends at once, in every build type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_CHECK_H
#define COX_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

#endif
