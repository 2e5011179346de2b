/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"
#include "bench/message.h"
#include "bench/session.h"
#include "common/now.h"

#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 3 };

struct suite_library {
    const struct suite_problem *problem;
    cox_session *session;
    cox_buffer *buffers[SUITE_MEMORIES_MAX];
    bool stays[SUITE_MEMORIES_MAX];
    cox_buffer *frames[2][COX_BUFFERS_MAX + 1]; /* of even and odd frames */
    struct suite_device_cost costs[COX_DEVICES_MAX];
    uint32_t device_count;
    struct suite_turns turns;
    uint64_t noticed_ns; /* the end of the pass before; 0 = none yet */
};

/* One pass of a frame: its bands are `count` from `bands` on. */
static void add_turn(struct suite_library *library, const struct cox_band_report *bands,
                     uint32_t count)
{
    struct suite_turns *turns = &library->turns;
    const struct cox_band_report *last = bands;
    uint64_t submit = bands->submit_ns;

    for (uint32_t b = 0; b < count; b++) {
        if (bands[b].submit_ns < submit)
            submit = bands[b].submit_ns;
        if (bands[b].noticed_ns > last->noticed_ns)
            last = &bands[b];
    }

    /* Frames in flight may overlap. */
    if (submit < library->noticed_ns)
        submit = library->noticed_ns;
    if (submit > last->end_ns)
        submit = last->end_ns;

    turns->passes++;
    if (last->end_ns - submit > last->kernel_ns)
        turns->start_ms += (double)(last->end_ns - submit - last->kernel_ns) * 1e-6;
    turns->kernel_ms += (double)last->kernel_ns * 1e-6;
    turns->notice_ms += (double)(last->noticed_ns - last->end_ns) * 1e-6;
    if (library->noticed_ns && submit > library->noticed_ns)
        turns->next_ms += (double)(submit - library->noticed_ns) * 1e-6;
    library->noticed_ns = last->noticed_ns;
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct suite_library *library = user;

    if (report->warmup || report->shadow)
        return;

    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        struct suite_device_cost *cost = &library->costs[band->device];
        cost->bands++;
        cost->rows += band->rows;
        cost->kernel_ms += (double)band->kernel_ns * 1e-6;
        cost->copy_ms += (double)(band->copy_in_ns + band->copy_out_ns) * 1e-6;
        cost->busy_ms += (double)(band->end_ns - band->submit_ns) * 1e-6;
    }

    for (uint32_t first = 0, end; first < report->band_count; first = end) {
        for (end = first + 1; end < report->band_count; end++)
            if (report->bands[end].pass != report->bands[first].pass)
                break;
        add_turn(library, &report->bands[first], end - first);
    }
}

/* Which memory each frame's buffers are. */
static void assign_buffers(struct suite_library *library)
{
    const struct suite_problem *problem = library->problem;

    for (uint32_t parity = 0; parity < 2; parity++) {
        uint32_t count = 0;
        for (const struct cox_buffer_layout *b = problem->params.buffers; b->name; b++) {
            if (b->scratch)
                continue;
            const uint32_t memory = problem->use[parity][count];
            library->frames[parity][count++] = library->buffers[memory];
            library->stays[memory] |= b->stays;
        }
    }
}

static bool make(struct suite_library *library, cox_runtime *runtime, const char *devices,
                 const char *policy, bool profile)
{
    const struct suite_problem *problem = library->problem;
    struct cox_session_params params = problem->params;
    struct cox_session_info info;

    params.devices = devices;
    params.policy = policy;
    params.profile = profile;
    params.in_flight = IN_FLIGHT;
    params.report = on_report;
    params.report_user = library;
    if (!bench_good(bench_session_create(runtime, &params, &library->session), "session"))
        return false;
    cox_session_info(library->session, &info);
    library->device_count = info.device_count;

    for (uint32_t m = 0; m < problem->memory_count; m++)
        if (!bench_good(cox_buffer_create(runtime, problem->memories[m].bytes,
                                          &library->buffers[m]),
                        "buffer"))
            return false;
    assign_buffers(library);

    return true;
}

struct suite_library *suite_library_create(const struct suite_problem *problem,
                                           cox_runtime *runtime, const char *devices,
                                           const char *policy, bool profile)
{
    struct suite_library *library = calloc(1, sizeof *library);

    if (!library) {
        bench_fail("out of memory");
        return NULL;
    }

    library->problem = problem;
    if (!make(library, runtime, devices, policy, profile))
        suite_library_destroy(&library);

    return library;
}

void suite_library_destroy(struct suite_library **library)
{
    if (!*library)
        return;

    bench_session_destroy(&(*library)->session);
    for (uint32_t m = 0; m < SUITE_MEMORIES_MAX; m++)
        cox_buffer_destroy(&(*library)->buffers[m]);
    free(*library);
    *library = NULL;
}

const void *suite_library_data(const struct suite_library *library, uint32_t memory)
{
    return cox_buffer_data(library->buffers[memory]);
}

uint32_t suite_library_costs(const struct suite_library *library,
                             struct suite_device_cost costs[COX_DEVICES_MAX])
{
    memcpy(costs, library->costs, sizeof library->costs);

    return library->device_count;
}

struct suite_turns suite_library_turns(const struct suite_library *library)
{
    return library->turns;
}

/* --- a run --- */

/* Fresh data, as the application would have written them. */
static void reset(struct suite_library *library)
{
    for (uint32_t m = 0; m < library->problem->memory_count; m++) {
        memcpy(cox_buffer_data(library->buffers[m]), library->problem->memories[m].data,
               library->problem->memories[m].bytes);
        cox_buffer_changed(library->buffers[m]);
    }

    memset(library->costs, 0, sizeof library->costs);
    library->turns = (struct suite_turns){0};
    library->noticed_ns = 0;
}

/* Bring memories that stay on devices to the host. */
static cox_status fetch(struct suite_library *library, const bool *wanted)
{
    cox_status status = COX_OK;

    for (uint32_t m = 0; m < library->problem->memory_count && !status; m++)
        if (library->stays[m] && wanted[m])
            status = cox_session_fetch(library->session, library->buffers[m]);

    return status;
}

static cox_status after_frame(struct suite_library *library, uint32_t frame)
{
    const struct suite_problem *problem = library->problem;
    void *memories[SUITE_MEMORIES_MAX] = {NULL};

    cox_status status = cox_session_wait(library->session);
    if (!status)
        status = fetch(library, problem->reads);
    if (status)
        return status;

    for (uint32_t m = 0; m < problem->memory_count; m++)
        memories[m] = cox_buffer_data(library->buffers[m]);
    problem->after_frame(problem, frame, memories);

    for (uint32_t m = 0; m < problem->memory_count; m++)
        if (problem->writes[m])
            cox_buffer_changed(library->buffers[m]);

    return status;
}

static cox_status run_frame(struct suite_library *library, uint32_t index)
{
    const struct suite_problem *problem = library->problem;
    struct cox_constants constants;
    const struct cox_frame frame = {.buffers = library->frames[index % 2], .constants = &constants};

    suite_frame_constants(problem, index, &constants);

    /* Running one frame is faster than submitting it and waiting. */
    if (problem->after_frame || problem->frames == 1) {
        cox_status status = cox_session_run(library->session, &frame);
        if (!status && problem->after_frame)
            status = after_frame(library, index);
        return status;
    }

    return cox_session_submit(library->session, &frame, NULL, NULL);
}

bool suite_library_run(struct suite_library *library, double *wall_ns)
{
    const struct suite_problem *problem = library->problem;
    bool results[SUITE_MEMORIES_MAX];
    cox_status status = COX_OK;

    for (uint32_t m = 0; m < problem->memory_count; m++)
        results[m] = problem->memories[m].result;
    reset(library);

    const uint64_t start = now_ns();
    for (uint32_t f = 0; f < problem->frames && !status; f++)
        status = run_frame(library, f);
    const cox_status waited = cox_session_wait(library->session);
    if (!status)
        status = waited;
    if (!status)
        status = fetch(library, results);
    *wall_ns = (double)(now_ns() - start);

    return bench_good(status, "a run of the library");
}
