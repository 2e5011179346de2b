/* Splits: each band runs alone on poisoned memory, and must give the rows that the pass gives in
 * one band. The bands' parts of merged buffers must merge to the same result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "base/bounds.h"

#include <stdlib.h>
#include <string.h>

enum { SPLITS = 4, BANDS_MAX = 8 };

/* ---- which bands ---- */

struct split {
    uint32_t cuts[BANDS_MAX]; /* first rows, in order */
    uint32_t count;
};

/* Add a band that begins at unit `unit` of the pass's row alignment. */
static void add_cut(struct split *split, uint32_t row)
{
    uint32_t at = split->count;
    for (uint32_t c = 0; c < split->count; c++)
        if (split->cuts[c] == row)
            return;

    if (at == BANDS_MAX)
        return;
    split->count++;
    for (; at > 0 && split->cuts[at - 1] > row; at--)
        split->cuts[at] = split->cuts[at - 1];
    split->cuts[at] = row;
}

/* Choose the n-th split of a frame: two bands, many bands, small bands at the beginning and inside,
 * a small band at the end. */
static struct split choose(const struct cox__scene *scene, uint32_t n)
{
    const uint32_t step = scene->pass->row_alignment;
    const uint32_t units = (scene->pass->rows + step - 1) / step;
    const uint64_t salt = (scene->check->frame * COX_PASSES_MAX + scene->number) * SPLITS + n;
    const uint64_t chance = cox__poison_random(salt);
    const uint32_t any = 1 + (uint32_t)(chance % (units - 1));
    struct split split = {.count = 0};

    add_cut(&split, 0);
    if (n == 0)
        add_cut(&split, any * step);
    for (uint32_t c = 0; n == 1 && c < 3 + chance % 4; c++)
        add_cut(&split, (1 + (uint32_t)(cox__poison_random(chance + c) % (units - 1))) * step);
    if (n == 2) {
        add_cut(&split, step);
        add_cut(&split, any * step);
        add_cut(&split, cox__min_u32(any + 1, units - 1) * step);
    }
    if (n == 3)
        add_cut(&split, (units - 1) * step);
    return split;
}

/* ---- one band ---- */

/* The band's results differ from those of the same rows in one band. */
static cox_status report_band(struct cox__scene *scene, const struct cox__attempt *one,
                              struct cox__attempt *other, uint64_t seed,
                              const struct cox__spot *spot)
{
    struct cox__spot read;
    const cox_status status = cox__poison_run(scene, other,
                                              &(const struct cox__poison){.seed = seed,
                                                                          .inverted = UINT64_MAX});
    if (status)
        return status;

    if (cox__compare_outputs(scene, one, other, &read))
        return cox__culprit_report(scene, one, seed, other, &read);

    const struct cox__where where = cox__finding_where(scene, spot->binding, spot->offset);
    const char *advice = "the row of the pass is first_row + get_global_id(1)";
    if (scene->pass->absolute)
        advice = "work-items may depend on other rows than their own";
    if (cox__compare_is_unwritten(one, other, spot))
        cox__finding_add(scene, COX__FINDING_UNWRITTEN, spot->binding,
                         "leaves %s as it was (%zu bytes in all), but writes it if it runs in one "
                         "band",
                         where.text, spot->count);
    else
        cox__finding_add(scene, COX__FINDING_BEGIN, spot->binding,
                         "computes another %s than in one band (%zu bytes differ), from the same "
                         "rows; %s",
                         where.text, spot->count, advice);
    return COX_OK;
}

/* Whether an output by rows differs. Merged buffers are compared when all bands are merged. */
static bool differs_by_rows(const struct cox__scene *scene, const struct cox__attempt *one,
                            const struct cox__attempt *reference, struct cox__spot *spot)
{
    struct cox__scene by_rows = *scene;
    for (uint32_t i = 0; i < scene->pass->binding_count; i++)
        if (scene->pass->bindings[i].row_access == COX__REDUCE)
            by_rows.places[i].bytes = 0;
    return cox__compare_outputs(&by_rows, one, reference, spot);
}

/* ---- merged buffers ---- */

/* Merged buffers of the pass, one after the other; NULL = the pass has none. */
static cox_status new_merged(const struct cox__scene *scene, unsigned char **merged)
{
    const size_t bytes = scene->pass->partial_bytes;
    *merged = NULL;
    if (!bytes)
        return COX_OK;

    *merged = calloc(1, bytes);
    return *merged ? COX_OK : COX_E_NOMEM;
}

static void merge(const struct cox__scene *scene, const struct cox__attempt *attempt,
                  unsigned char *merged)
{
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const struct cox__binding *binding = &scene->pass->bindings[i];
        if (binding->row_access != COX__REDUCE)
            continue;

        binding->merge(merged, attempt->trial.memories[i].data + scene->places[i].margin,
                       binding->bytes, binding->merge_user);
        merged += binding->bytes;
    }
}

static cox_status check_merged(struct cox__scene *scene, const struct cox__attempt *reference,
                               const unsigned char *merged, bool *differs)
{
    unsigned char *expected;
    const cox_status status = new_merged(scene, &expected);
    if (status || !expected)
        return status;

    merge(scene, reference, expected);
    size_t offset = 0;
    for (uint32_t i = 0; i < scene->pass->binding_count; i++) {
        const struct cox__binding *binding = &scene->pass->bindings[i];
        if (binding->row_access != COX__REDUCE)
            continue;

        size_t at = 0;
        while (at < binding->bytes && merged[offset + at] == expected[offset + at])
            at++;
        if (at < binding->bytes) {
            *differs = true;
            cox__finding_add(scene, COX__FINDING_MERGED, i,
                             "gives another byte %zu of buffer %s, merged over bands, than in one "
                             "band; sums must be exact, such as integers",
                             at, cox__binding_name(&scene->check->pipeline.bindings[i]));
        }
        offset += binding->bytes;
    }

    free(expected);
    return COX_OK;
}

/* ---- one split ---- */

static cox_status check_band(struct cox__scene *scene, const struct cox__attempt *reference,
                             struct cox__attempt *one, struct cox__attempt *other, bool *any)
{
    const uint64_t seed = cox__poison_random(scene->first_row + 1);
    struct cox__spot spot;
    cox_status status = cox__poison_run(scene, one, &(const struct cox__poison){.seed = seed});
    if (status)
        return status;

    *any = cox__compare_canaries(scene, one);
    if (!*any && differs_by_rows(scene, one, reference, &spot)) {
        *any = true;
        return report_band(scene, one, other, seed, &spot);
    }
    if (*any || !scene->pass->partial_bytes)
        return COX_OK;

    /* What a band adds to merged buffers cannot be compared by rows. */
    status = cox__poison_run(scene, other,
                             &(const struct cox__poison){.seed = seed, .inverted = UINT64_MAX});
    if (status || !cox__compare_outputs(scene, one, other, &spot))
        return status;
    *any = true;
    return cox__culprit_report(scene, one, seed, other, &spot);
}

static cox_status check_bands(struct cox__scene *scene, const struct cox__attempt *reference,
                              struct cox__attempt *one, struct cox__attempt *other,
                              unsigned char *merged, bool *any)
{
    for (uint32_t c = 0; !*any && c < scene->cut_count; c++) {
        uint32_t end = scene->pass->rows;
        if (c + 1 < scene->cut_count)
            end = scene->cuts[c + 1];
        scene->first_row = scene->cuts[c];
        scene->rows = end - scene->first_row;

        const cox_status status = check_band(scene, reference, one, other, any);
        if (status)
            return status;
        merge(scene, one, merged);
    }

    scene->first_row = 0;
    scene->rows = scene->pass->rows;
    if (*any || !merged)
        return COX_OK;
    return check_merged(scene, reference, merged, any);
}

cox_status cox__bands_check(struct cox__scene *scene, const struct cox__attempt *reference,
                            struct cox__attempt *one, struct cox__attempt *other)
{
    cox_status status = COX_OK;
    bool any = false;
    if (scene->pass->row_alignment >= scene->pass->rows) /* it is never split */
        return COX_OK;

    for (uint32_t n = 0; !status && !any && n < SPLITS; n++) {
        const struct split split = choose(scene, n);
        unsigned char *merged;
        status = new_merged(scene, &merged);

        scene->cuts = split.cuts;
        scene->cut_count = split.count;
        if (!status)
            status = check_bands(scene, reference, one, other, merged, &any);
        free(merged);
    }

    scene->cuts = NULL;
    scene->cut_count = 0;
    return status;
}
