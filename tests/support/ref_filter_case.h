/* Test cases for filters: shapes, generated planes, and the comparison with the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_FILTER_CASE_H
#define COX_TESTS_REF_FILTER_CASE_H

#include "specs.h"
#include "bits_frame.h"
#include <coxswain/filter.h>

enum filter_kind {
    FILTER_SEPARABLE,
    FILTER_CONVOLUTION,
    FILTER_GAUSSIAN,
    FILTER_BOX,
    FILTER_GUIDED,
    FILTER_TRANSPOSITION,
    FILTER_PREFIX_SUMS,
};

struct filter_case {
    const char *name;
    enum filter_kind kind;
    struct cox_filter_shape shape; /* without pitches */
    float first, second;           /* sigma_x and sigma_y; or epsilon, and whether there is a guide */
};

extern const struct filter_case filter_cases[];
extern const uint32_t filter_case_count;

/* A case with its memory: input, output, and the guide or NULL. Scratch planes are NULL. */
struct filter_test {
    const struct filter_case *about;
    struct cox_filter_shape shape;
    struct cox_filter_constants params;
    struct cox__pipeline_storage storage;
    struct cox__session_spec session; /* rows, bindings, passes, params_bytes */
    struct bits_frame frame;
};

/* Fill the planes, the pipeline and the parameters. The frame is at most `most` pixels wide and high, and pitches
 * are multiples of `align`. If `runtime` is not NULL, it wraps the planes. On an error the test is closed, and the
 * library's status is returned. */
cox_status filter_test_open(struct filter_test *test, cox_runtime *runtime, const struct filter_case *about,
                            size_t align, uint32_t most);
void filter_test_close(struct filter_test *test);

/* Compare a result with the reference. `text` gets the figures. */
bool filter_test_judge(const struct filter_test *test, const uint8_t *result, char *text, size_t text_bytes);

#endif
