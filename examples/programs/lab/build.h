/* From what this program was built. cmake/BuildFacts.cmake makes the file that defines it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_BUILD_H
#define COX_EXAMPLES_LAB_BUILD_H

struct lab_build {
    /* Of the source, with "-dirty" if tracked files were changed; "unknown" without git. */
    const char *commit;

    const char *type;     /* "Release" */
    const char *compiler; /* "GNU 12.2.0" */
    const char *flags;    /* without paths */

    /* SHA-256 of the list that `sha256sum` makes of the library's kernels, see
     * cmake/BuildFacts.cmake. */
    const char *kernels_sha256;
};

extern const struct lab_build lab_build;

#endif
