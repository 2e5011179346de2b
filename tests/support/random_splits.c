/* SPDX-License-Identifier: Apache-2.0 */
#include "random_splits.h"
#include "fake_rig.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t random_next(uint64_t *seed)
{
    uint64_t x = (*seed += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint32_t random_below(uint64_t *seed, uint32_t bound)
{
    return (uint32_t)(random_next(seed) % bound);
}

uint32_t random_short(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

uint32_t random_short_below(uint32_t *seed, uint32_t bound)
{
    return random_short(seed) % bound;
}

uint32_t random_pairs_new(struct random_pairs *pairs, const uint8_t values[RANDOM_PAIRS_CHOICES], bool keep)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < RANDOM_PAIRS_CHOICES; a++)
        for (uint32_t b = a + 1; b < RANDOM_PAIRS_CHOICES; b++) {
            bool *pair = &pairs->seen[a][values[a]][b][values[b]];
            count += !*pair;
            *pair |= keep;
        }
    return count;
}

/* Set before a session is created. */
static struct {
    uint32_t first;
    uint32_t row_alignment;
} drawing;

void random_splits_begin(uint32_t first_number, uint32_t row_alignment)
{
    drawing.first = first_number;
    drawing.row_alignment = row_alignment;
}

/* Sort the cuts and remove repeats. Returns how many are left. */
static uint32_t sort_cuts(uint32_t *cuts, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cut = cuts[i], at = kept;
        while (at > 0 && cuts[at - 1] > cut)
            at--;
        if (at > 0 && cuts[at - 1] == cut)
            continue;
        memmove(&cuts[at + 1], &cuts[at], (kept - at) * sizeof *cuts);
        cuts[at] = cut;
        kept++;
    }
    return kept;
}

void random_splits_draw(uint32_t number, uint32_t rows, uint32_t row_alignment, uint32_t devices, struct cox_split *out)
{
    const uint32_t wide = drawing.row_alignment ? drawing.row_alignment : row_alignment;
    const uint32_t row_units = (rows - 1) / wide + 1;
    uint64_t seed = ((uint64_t)rows << 32 | number) * 0x2545f4914f6cdd1du;
    uint32_t order[COX_DEVICES_MAX], cuts[COX_BANDS_MAX], count = 0;
    for (uint32_t d = 0; d < devices; d++) {
        const uint32_t other = random_below(&seed, d + 1);
        order[d] = order[other];
        order[other] = d;
    }
    const uint32_t kind = devices > 1 ? number % 4 : 2 + number % 2;
    if (kind == 3) {
        const uint32_t start = random_below(&seed, row_units), thin = 1 + random_below(&seed, 16);
        for (uint32_t i = 0; i <= thin; i++)
            cuts[count++] = start + i;
    } else {
        const uint32_t bands = kind == 0   ? devices
                               : kind == 1 ? 1 + random_below(&seed, devices - 1)
                                           : devices * (2 + random_below(&seed, 3));
        while (count + 1 < bands && row_units > 1)
            cuts[count++] = 1 + random_below(&seed, row_units - 1);
    }
    count = sort_cuts(cuts, count);
    memset(out, 0, sizeof *out);
    out->reason = COX_REASON_GIVEN;
    for (uint32_t i = 0, first = 0; i <= count; i++) {
        uint64_t end = i < count ? (uint64_t)cuts[i] * wide : rows;
        if (i < count && wide != row_alignment)
            end = (end + row_alignment / 2) / row_alignment * row_alignment;
        if (end > rows)
            end = rows;
        const uint32_t device = kind == 3 ? random_below(&seed, devices) : order[i % devices];
        if (end <= first)
            continue;
        out->bands[out->band_count++] = (struct cox_band){device, first, (uint32_t)end - first};
        first = (uint32_t)end;
    }
}

static cox_status random_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    random_splits_draw(drawing.first + (uint32_t)view->frame, view->rows, view->row_alignment, view->device_count, out);
    return COX_OK;
}

const struct cox_policy random_splits_policy = {
    .name = "random", .state_bytes = rig_policy_bytes, .init = rig_policy_init, .split = random_split};

void random_tally_report(struct random_tally *tally, const struct cox_frame_report *report, uint32_t rows,
                         uint32_t row_alignment, uint32_t devices)
{
    struct cox_split drawn;
    uint32_t own[COX_DEVICES_MAX] = {0}, first_tries = 0;
    bool right = true, idle = false;
    random_splits_draw(drawing.first + (uint32_t)report->index, rows, row_alignment, devices, &drawn);
    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        if (band->status == COX_OK)
            tally->rows[band->device] += band->rows;
        if (band->attempt > 0)
            continue;
        const struct cox_band *wanted = &drawn.bands[first_tries];
        right = right && first_tries < drawn.band_count && band->device == wanted->device &&
                band->first_row == wanted->first_row && band->rows == wanted->rows;
        first_tries++;
        if (++own[band->device] > tally->bands_most_of_one)
            tally->bands_most_of_one = own[band->device];
    }
    for (uint32_t d = 0; d < devices; d++)
        idle = idle || own[d] == 0;
    tally->frames++;
    tally->idle += idle;
    tally->wrong += !right || first_tries != drawn.band_count;
    if (first_tries > tally->bands_most)
        tally->bands_most = first_tries;
}

void random_tally_add(struct random_tally *to, const struct random_tally *from)
{
    to->frames += from->frames;
    to->wrong += from->wrong;
    to->idle += from->idle;
    if (from->bands_most > to->bands_most)
        to->bands_most = from->bands_most;
    if (from->bands_most_of_one > to->bands_most_of_one)
        to->bands_most_of_one = from->bands_most_of_one;
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        to->rows[d] += from->rows[d];
}

uint32_t random_tally_print(const struct random_tally *tally, uint32_t devices)
{
    uint64_t all = 0;
    uint32_t without = 0;
    for (uint32_t d = 0; d < devices; d++)
        all += tally->rows[d];
    printf("splits %" PRIu64 " frames, up to %u bands, up to %u of one device, %" PRIu64 " left a device out; rows:",
           tally->frames, tally->bands_most, tally->bands_most_of_one, tally->idle);
    for (uint32_t d = 0; d < devices; d++) {
        printf(" %.0f %%", 100 * (double)tally->rows[d] / (double)(all ? all : 1));
        without += tally->rows[d] == 0;
    }
    printf("\n");
    return without;
}
