/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_small.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SIDE = 64, VALUES = SIDE * SIDE, SETS = 4, STEP = 61 };

static const char source[] =
    "kernel void small(global const uint *in, global uint *out, int columns, int rows, uint n)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = in[y * columns + x] * 3u + n;\n"
    "}\n";

struct constants {
    uint32_t n;
};

struct set {
    struct ref_small *small;
    cox_buffer *buffers[3]; /* in, out, NULL */
    sem_t free;
    uint32_t n; /* of the frame that has it */
    uint32_t callbacks;
    cox_status status;
    bool used;
};

struct ref_small {
    cox_session *session;
    struct set sets[SETS];
    struct ref_stream_counts counts;
    uint64_t expected; /* the frame of the next callback */
    atomic_uint_fast64_t wrong;
};

static uint32_t input(uint32_t n, uint32_t i)
{
    return i * 2654435761u + n;
}

/* Compare every STEP-th value, another one in each frame. */
static void compare(struct ref_small *small, const struct set *set)
{
    const uint32_t *out = cox_buffer_data(set->buffers[1]);
    for (uint32_t i = set->n % STEP; i < VALUES; i += STEP)
        if (out[i] != input(set->n, i) * 3u + set->n) {
            atomic_fetch_add(&small->wrong, 1);
            return;
        }
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct set *set = user;
    struct ref_small *small = set->small;
    small->counts.callbacks++;
    small->counts.duplicated += set->callbacks++ > 0;
    small->counts.unordered += frame != small->expected;
    small->expected = frame + 1;

    set->status = status;
    if (status == COX_OK)
        compare(small, set);
    sem_post(&set->free);
}

struct ref_small *ref_small_open(cox_runtime *runtime, cox_status *status)
{
    const struct cox_session_params params = {.columns = SIDE,
                                              .rows = SIDE,
                                              .in_flight = 3,
                                              .fields = COX_LIST(struct cox_field, COX_FIELD(struct constants, n)),
                                              .constants_bytes = sizeof(struct constants),
                                              .passes = COX_LIST(struct cox_pass, {.source = source})};
    struct ref_small *small = calloc(1, sizeof *small);
    *status = COX_E_NOMEM;
    if (!small)
        return NULL;

    for (uint32_t s = 0; s < SETS; s++) {
        small->sets[s].small = small;
        sem_init(&small->sets[s].free, 0, 1);
    }
    *status = cox_session_create(runtime, &params, &small->session);
    for (uint32_t b = 0; b < 2 * SETS && *status == COX_OK; b++)
        *status = cox_buffer_create(runtime, sizeof(uint32_t) * VALUES, &small->sets[b / 2].buffers[b % 2]);
    if (*status != COX_OK)
        ref_small_close(&small, NULL, NULL);
    return small;
}

/* The result of the set's last frame. */
static void take_back(struct ref_small *small, struct set *set)
{
    if (!set->used)
        return;
    if (set->status == COX_OK)
        compare(small, set);
    small->counts.lost += set->callbacks == 0;
    small->counts.errors += set->status != COX_OK;
    if (set->status != COX_OK && -set->status < REF_STREAM_STATUSES)
        small->counts.errors_by[-set->status]++;
    set->used = false;
}

cox_status ref_small_submit(struct ref_small *small)
{
    const uint32_t n = (uint32_t)(small->counts.frames + small->counts.refused);
    struct set *set = &small->sets[n % SETS];
    while (sem_wait(&set->free))
        ;
    take_back(small, set);

    uint32_t *in = cox_buffer_data(set->buffers[0]);
    for (uint32_t i = 0; i < VALUES; i++)
        in[i] = input(n, i);
    set->n = n;
    set->callbacks = 0;

    const cox_status status =
        cox_session_submit(small->session, &(struct cox_frame){.buffers = set->buffers, .constants = &n}, on_done, set);
    set->used = status == COX_OK;
    small->counts.frames += set->used;
    small->counts.refused += !set->used;
    if (!set->used)
        sem_post(&set->free);
    return status;
}

void ref_small_close(struct ref_small **out, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    struct ref_small *small = *out;
    *out = NULL;
    if (small->session) {
        cox_session_wait(small->session);
        if (info)
            cox_session_info(small->session, info);
        cox_session_destroy(&small->session);
    }

    for (uint32_t s = 0; s < SETS; s++) {
        take_back(small, &small->sets[s]);
        sem_destroy(&small->sets[s].free);
        for (uint32_t b = 0; b < 2; b++)
            cox_buffer_destroy(&small->sets[s].buffers[b]);
    }
    small->counts.wrong = atomic_load(&small->wrong);
    if (counts)
        *counts = small->counts;
    free(small);
}
