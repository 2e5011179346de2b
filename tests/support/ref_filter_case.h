/* Filters to be tested: shapes, made-up planes, and what must come out.
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
    float first, second;           /* sigma_x and sigma_y; epsilon, and whether there is a guide */
};

extern const struct filter_case filter_cases[];
extern const uint32_t filter_case_count;

/* A case with its memory: input, output, and the guide or NULL; then what is scratch, NULL. */
struct filter_test {
    const struct filter_case *about;
    struct cox_filter_shape shape;
    struct cox_constants params;
    struct cox__pipeline_storage storage;
    struct cox__session_spec session; /* rows, bindings, passes, params_bytes */
    struct bits_frame frame;
};

/* Fill the planes, the pipeline and the parameters, at most `most` pixels wide and high; pitches are multiples of
 * `align`. The runtime wraps the planes, if there is one. What is not COX_OK is the library's answer, and the test is
 * closed. */
cox_status filter_test_open(struct filter_test *test, cox_runtime *runtime, const struct filter_case *about,
                            size_t align, uint32_t most);
void filter_test_close(struct filter_test *test);

/* Hold a result against the reference; `text` gets the figures, words without blanks between them but one. */
bool filter_test_judge(const struct filter_test *test, const uint8_t *result, char *text, size_t text_bytes);

#endif
