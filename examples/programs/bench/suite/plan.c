/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "bench/message.h"

#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = COX_DEVICES_MAX * SUITE_LANES };

/* A use of rows of a store at one place by a command. Later commands may have to wait for it. */
struct use {
    uint32_t command;
    struct suite_range rows;
    bool write;
};

struct uses {
    struct use *at;
    uint32_t count, room;
};

/* What is known about one store. Place 0 is the host, place 1 + d the memory of device d. */
struct store {
    struct suite_ranges valid[1 + COX_DEVICES_MAX];
    struct uses uses[1 + COX_DEVICES_MAX];
};

struct planner {
    struct suite_plan *plan;
    const struct suite_view *view;
    const struct suite_device_kind *devices;
    uint32_t device_count;
    struct store stores[SUITE_STORES_MAX];
    struct uses partials[COX_BUFFERS_MAX][COX_DEVICES_MAX];
    uint32_t newest[LANES_MAX]; /* need of the command in the making; 0 = none, else 1 + index */
    bool failed;
};

static bool grow(void **array, uint32_t *room, uint32_t count, size_t element)
{
    if (count < *room)
        return true;

    const uint32_t more = *room ? *room * 2 : 64;
    void *larger = realloc(*array, more * element);
    if (!larger)
        return false;

    *array = larger;
    *room = more;

    return true;
}

static uint32_t place_of(const struct planner *planner, uint32_t device)
{
    return planner->devices[device].on_host ? 0 : 1 + device;
}

/* --- commands and what they wait for --- */

static bool by_host(const struct suite_command *command)
{
    return command->kind >= SUITE_MERGE;
}

static uint32_t queue_of(const struct suite_command *command)
{
    return command->device * SUITE_LANES + command->lane;
}

static void need(struct planner *planner, const struct suite_command *command, uint32_t earlier)
{
    const struct suite_command *before = &planner->plan->commands[earlier];
    const uint32_t queue = queue_of(before);

    /* The host has waited for its own commands, and queues are in order. */
    if (by_host(before) || (!by_host(command) && queue == queue_of(command)))
        return;
    if (planner->newest[queue] < earlier + 1)
        planner->newest[queue] = earlier + 1;
}

static void drop(struct uses *uses, uint32_t u)
{
    uses->at[u] = uses->at[--uses->count];
}

/* Whether a later use replaces this one: a command that waits for the later one waits for both. */
static bool replaced(const struct planner *planner, const struct use *old,
                     const struct suite_command *command, struct suite_range rows, bool write)
{
    const struct suite_command *before = &planner->plan->commands[old->command];

    if (!suite_range_contains(rows, old->rows))
        return false;
    if (write || by_host(before))
        return true;

    return !old->write && !by_host(command) && queue_of(before) == queue_of(command);
}

/* Note that the command in the making uses rows, and wait for earlier uses that conflict. */
static void use_rows(struct planner *planner, const struct suite_command *command,
                     struct uses *uses, struct suite_range rows, bool write)
{
    for (uint32_t u = uses->count; u-- > 0;) {
        const struct use *old = &uses->at[u];
        if (old->command == planner->plan->count || !suite_range_overlaps(old->rows, rows))
            continue;
        if (write || old->write)
            need(planner, command, old->command);
        if (replaced(planner, old, command, rows, write))
            drop(uses, u);
    }

    if (by_host(command))
        return;
    if (!grow((void **)&uses->at, &uses->room, uses->count, sizeof *uses->at)) {
        planner->failed = true;
        return;
    }

    uses->at[uses->count++] = (struct use){planner->plan->count, rows, write};
}

/* End the making of a command. */
static void append(struct planner *planner, struct suite_command command)
{
    struct suite_plan *plan = planner->plan;

    command.first_need = plan->need_count;
    if (!grow((void **)&plan->commands, &plan->room, plan->count, sizeof *plan->commands))
        planner->failed = true;

    for (uint32_t q = 0; q < LANES_MAX && !planner->failed; q++) {
        if (!planner->newest[q])
            continue;
        if (!grow((void **)&plan->needs, &plan->need_room, plan->need_count, sizeof *plan->needs)) {
            planner->failed = true;
            break;
        }
        plan->needs[plan->need_count++] = planner->newest[q] - 1;
        plan->commands[planner->newest[q] - 1].awaited = true;
    }

    memset(planner->newest, 0, sizeof planner->newest);
    command.need_count = plan->need_count - command.first_need;
    if (!planner->failed)
        plan->commands[plan->count++] = command;
}

/* --- transfers --- */

static void copied(struct planner *planner, struct suite_command command, uint32_t from_place,
                   uint32_t to_place)
{
    struct store *store = &planner->stores[command.store];

    use_rows(planner, &command, &store->uses[from_place], command.rows, false);
    use_rows(planner, &command, &store->uses[to_place], command.rows, true);
    append(planner, command);
    suite_ranges_add(&store->valid[to_place], command.rows);
}

/* Bring rows to the host. A row that several devices have is read once. */
static void to_host(struct planner *planner, uint32_t frame, uint32_t buffer, uint32_t at,
                    struct suite_range rows)
{
    struct store *store = &planner->stores[at];
    struct suite_command command = {.kind = SUITE_READ,
                                    .lane = SUITE_LANE_OUT,
                                    .frame = frame,
                                    .buffer = buffer,
                                    .store = at,
                                    .pitch_bytes = planner->view->buffers[buffer].pitch_bytes};

    for (uint32_t d = 0; d < planner->device_count; d++) {
        const struct suite_ranges missing = suite_ranges_missing(&store->valid[0], rows);
        command.device = d;
        for (uint32_t m = 0; m < missing.count; m++) {
            const struct suite_ranges has = suite_ranges_common(&store->valid[1 + d],
                                                                missing.at[m]);
            for (uint32_t r = 0; r < has.count; r++) {
                command.rows = has.at[r];
                copied(planner, command, 1 + d, 0);
            }
        }
    }
}

/* Bring rows to a device that has its own memory. */
static void to_device(struct planner *planner, uint32_t frame, uint32_t device, uint32_t buffer,
                      struct suite_range rows)
{
    const uint32_t at = suite_view_store(planner->view, frame, buffer);
    struct store *store = &planner->stores[at];
    struct suite_command command = {.device = device,
                                    .lane = SUITE_LANE_IN,
                                    .frame = frame,
                                    .buffer = buffer,
                                    .store = at,
                                    .pitch_bytes = planner->view->buffers[buffer].pitch_bytes};

    /* From another device directly. */
    for (uint32_t d = 0; d < planner->device_count; d++) {
        if (d == device || planner->devices[d].on_host ||
            planner->devices[d].peers != planner->devices[device].peers)
            continue;
        const struct suite_ranges missing = suite_ranges_missing(&store->valid[1 + device], rows);
        for (uint32_t m = 0; m < missing.count; m++) {
            struct suite_ranges has = suite_ranges_common(&store->valid[1 + d], missing.at[m]);
            for (uint32_t v = 0; v < store->valid[0].count; v++)
                suite_ranges_remove(&has, store->valid[0].at[v]);
            for (uint32_t r = 0; r < has.count; r++) {
                command.kind = SUITE_COPY;
                command.from = d;
                command.rows = has.at[r];
                copied(planner, command, 1 + d, 1 + device);
            }
        }
    }

    /* From the host, which may have to get them first. */
    const struct suite_ranges missing = suite_ranges_missing(&store->valid[1 + device], rows);
    for (uint32_t m = 0; m < missing.count; m++) {
        to_host(planner, frame, buffer, at, missing.at[m]);
        const struct suite_ranges has = suite_ranges_common(&store->valid[0], missing.at[m]);
        for (uint32_t r = 0; r < has.count; r++) {
            command.kind = SUITE_WRITE;
            command.rows = has.at[r];
            copied(planner, command, 0, 1 + device);
        }
    }
}

/* --- steps --- */

static bool merges(const struct planner *planner, const struct suite_access *access)
{
    return access->writes && planner->view->buffers[access->buffer].layout->merge;
}

/* Whether a kernel needs the content of what it writes. */
static bool needs_content(const struct suite_access *access)
{
    return access->reads || !access->writes;
}

static void zero_partials(struct planner *planner, uint32_t frame, uint32_t s, uint32_t device)
{
    const struct suite_step *step = &planner->view->steps[s];

    for (uint32_t a = 0; a < step->access_count; a++) {
        const struct suite_access *access = &step->accesses[a];
        if (!merges(planner, access))
            continue;
        const struct suite_command zero = {.kind = SUITE_ZERO,
                                           .device = device,
                                           .lane = SUITE_LANE_COMPUTE,
                                           .frame = frame,
                                           .step = s,
                                           .buffer = access->buffer};
        use_rows(planner, &zero, &planner->partials[access->buffer][device],
                 (struct suite_range){0, 1}, true);
        append(planner, zero);
    }
}

/* The transfers that a kernel needs before it starts. */
static void bring(struct planner *planner, uint32_t frame, uint32_t s, uint32_t device,
                  struct suite_range band)
{
    const struct suite_step *step = &planner->view->steps[s];

    for (uint32_t a = 0; a < step->access_count; a++) {
        const struct suite_access *access = &step->accesses[a];
        const struct suite_range rows = suite_view_rows(planner->view, access, band);
        if (planner->view->buffers[access->buffer].place == SUITE_PRIVATE ||
            merges(planner, access) || !needs_content(access))
            continue;
        if (planner->devices[device].on_host)
            to_host(planner, frame, access->buffer,
                    suite_view_store(planner->view, frame, access->buffer), rows);
        else
            to_device(planner, frame, device, access->buffer, rows);
    }
}

static void kernel(struct planner *planner, uint32_t frame, uint32_t s, uint32_t device,
                   struct suite_range band)
{
    const struct suite_step *step = &planner->view->steps[s];
    const uint32_t place = place_of(planner, device);
    const struct suite_command command = {.kind = SUITE_KERNEL,
                                          .device = device,
                                          .lane = SUITE_LANE_COMPUTE,
                                          .frame = frame,
                                          .step = s,
                                          .rows = band};

    for (uint32_t a = 0; a < step->access_count; a++) {
        const struct suite_access *access = &step->accesses[a];
        if (planner->view->buffers[access->buffer].place == SUITE_PRIVATE)
            continue; /* the queue is in order */
        if (merges(planner, access)) {
            use_rows(planner, &command, &planner->partials[access->buffer][device],
                     (struct suite_range){0, 1}, true);
            continue;
        }
        struct store *store =
            &planner->stores[suite_view_store(planner->view, frame, access->buffer)];
        if (needs_content(access))
            use_rows(planner, &command, &store->uses[place],
                     suite_view_rows(planner->view, access, band), false);
        if (access->writes)
            use_rows(planner, &command, &store->uses[place],
                     suite_view_written(planner->view, access, band), true);
    }

    append(planner, command);
}

/* After all kernels of a step: the rows that they wrote are valid in one place only. */
static void written(struct planner *planner, uint32_t frame, uint32_t s, uint32_t device,
                    struct suite_range band)
{
    const struct suite_step *step = &planner->view->steps[s];

    for (uint32_t a = 0; a < step->access_count; a++) {
        const struct suite_access *access = &step->accesses[a];
        if (!access->writes || merges(planner, access) ||
            planner->view->buffers[access->buffer].place == SUITE_PRIVATE)
            continue;
        const struct suite_range rows = suite_view_written(planner->view, access, band);
        struct store *store =
            &planner->stores[suite_view_store(planner->view, frame, access->buffer)];
        for (uint32_t p = 0; p <= planner->device_count; p++)
            suite_ranges_remove(&store->valid[p], rows);
        suite_ranges_add(&store->valid[place_of(planner, device)], rows);
    }
}

/* Bring the devices' copies of merged buffers to the host and merge them. */
static void merge(struct planner *planner, uint32_t frame, uint32_t s)
{
    const struct suite_step *step = &planner->view->steps[s];

    for (uint32_t a = 0; a < step->access_count; a++) {
        const uint32_t buffer = step->accesses[a].buffer;
        if (!merges(planner, &step->accesses[a]))
            continue;
        struct suite_command command = {.kind = SUITE_MERGE,
                                        .frame = frame,
                                        .step = s,
                                        .buffer = buffer,
                                        .store = suite_view_store(planner->view, frame, buffer)};

        for (uint32_t d = 0; d < planner->device_count; d++) {
            if (suite_range_empty(planner->plan->bands[d][s]))
                continue;
            command.devices |= 1u << d;
            if (planner->devices[d].on_host)
                continue;
            const struct suite_command read = {.kind = SUITE_READ_PARTIAL,
                                               .device = d,
                                               .lane = SUITE_LANE_OUT,
                                               .frame = frame,
                                               .step = s,
                                               .buffer = buffer};
            use_rows(planner, &read, &planner->partials[buffer][d], (struct suite_range){0, 1},
                     true);
            append(planner, read);
        }

        for (uint32_t d = 0; d < planner->device_count; d++)
            use_rows(planner, &command, &planner->partials[buffer][d], (struct suite_range){0, 1},
                     true);

        struct store *store = &planner->stores[command.store];
        use_rows(planner, &command, &store->uses[0], (struct suite_range){0, 1}, true);
        append(planner, command);
        for (uint32_t p = 1; p <= planner->device_count; p++)
            store->valid[p].count = 0;
        suite_ranges_add(&store->valid[0], (struct suite_range){0, 1});
    }
}

/* The function of the application after a step reads what the step wrote. */
static void step_done(struct planner *planner, uint32_t frame, uint32_t s)
{
    const struct suite_step *step = &planner->view->steps[s];
    const struct suite_command command = {.kind = SUITE_STEP_DONE, .frame = frame, .step = s};

    if (!step->pass->done)
        return;
    for (uint32_t a = 0; a < step->access_count; a++) {
        const uint32_t buffer = step->accesses[a].buffer;
        if (step->accesses[a].writes && planner->view->buffers[buffer].place != SUITE_PRIVATE)
            to_host(planner, frame, buffer, suite_view_store(planner->view, frame, buffer),
                    (struct suite_range){0, planner->view->buffers[buffer].rows});
    }

    for (uint32_t a = 0; a < step->access_count; a++) {
        const uint32_t buffer = step->accesses[a].buffer;
        if (!step->accesses[a].writes || planner->view->buffers[buffer].place == SUITE_PRIVATE)
            continue;
        struct store *store = &planner->stores[suite_view_store(planner->view, frame, buffer)];
        use_rows(planner, &command, &store->uses[0],
                 (struct suite_range){0, planner->view->buffers[buffer].rows}, false);
    }
    append(planner, command);
}

/* A group of fused steps, or one step. Transfers come first, so that devices do not wait. */
static void group(struct planner *planner, uint32_t frame, uint32_t first)
{
    const uint32_t end = planner->view->steps[first].group_end;
    struct suite_range rows[COX_DEVICES_MAX][SUITE_PASSES_MAX];

    for (uint32_t d = 0; d < planner->device_count; d++) {
        const struct suite_range band = planner->plan->bands[d][first];
        for (uint32_t s = first; s < end; s++)
            rows[d][s - first] = band;
        if (end > first + 1 && !suite_range_empty(band))
            suite_view_group(planner->view, first, band, rows[d]);
    }

    for (uint32_t d = 0; d < planner->device_count; d++)
        for (uint32_t s = first; s < end; s++)
            if (!suite_range_empty(rows[d][s - first])) {
                bring(planner, frame, s, d, rows[d][s - first]);
                zero_partials(planner, frame, s, d);
            }

    for (uint32_t d = 0; d < planner->device_count; d++)
        for (uint32_t s = first; s < end; s++)
            if (!suite_range_empty(rows[d][s - first]))
                kernel(planner, frame, s, d, rows[d][s - first]);

    for (uint32_t d = 0; d < planner->device_count; d++)
        for (uint32_t s = first; s < end; s++)
            if (!suite_range_empty(rows[d][s - first]))
                written(planner, frame, s, d, rows[d][s - first]);

    for (uint32_t s = first; s < end; s++) {
        merge(planner, frame, s);
        step_done(planner, frame, s);
    }
}

/* --- frames --- */

/* Devices have no content of buffers that do not stay. */
static void begin_frame(struct planner *planner, uint32_t frame)
{
    for (uint32_t b = 0; b < planner->view->buffer_count; b++) {
        const struct suite_buffer *buffer = &planner->view->buffers[b];
        if (buffer->place != SUITE_FRAME || buffer->layout->stays)
            continue;
        struct store *store = &planner->stores[suite_view_store(planner->view, frame, b)];
        for (uint32_t d = 0; d < planner->device_count; d++)
            store->valid[1 + d].count = 0;
    }
}

static void fetch(struct planner *planner, uint32_t frame, uint32_t buffer)
{
    to_host(planner, frame, buffer, suite_view_store(planner->view, frame, buffer),
            (struct suite_range){0, planner->view->buffers[buffer].rows});
}

static void after_frame(struct planner *planner, uint32_t frame)
{
    const struct suite_problem *problem = planner->view->problem;
    const struct suite_command command = {.kind = SUITE_AFTER_FRAME, .frame = frame};

    if (!problem->after_frame)
        return;
    for (uint32_t b = 0; b < planner->view->buffer_count; b++)
        if (planner->view->buffers[b].place == SUITE_FRAME &&
            problem->reads[suite_view_store(planner->view, frame, b)])
            fetch(planner, frame, b);

    for (uint32_t m = 0; m < problem->memory_count; m++) {
        struct store *store = &planner->stores[m];
        if (!problem->reads[m] && !problem->writes[m])
            continue;
        use_rows(planner, &command, &store->uses[0], (struct suite_range){0, UINT32_MAX},
                 problem->writes[m]);
        for (uint32_t d = 0; problem->writes[m] && d < planner->device_count; d++)
            store->valid[1 + d].count = 0;
        if (problem->writes[m])
            suite_ranges_add(&store->valid[0], (struct suite_range){0, UINT32_MAX});
    }
    append(planner, command);
}

static void end_frame(struct planner *planner, uint32_t frame)
{
    for (uint32_t b = 0; b < planner->view->buffer_count; b++)
        if (planner->view->buffers[b].place == SUITE_FRAME &&
            !planner->view->buffers[b].layout->stays)
            fetch(planner, frame, b);

    after_frame(planner, frame);
}

/* Results that stayed on devices. */
static void end_run(struct planner *planner)
{
    const struct suite_problem *problem = planner->view->problem;

    for (uint32_t frame = 0; frame < 2 && frame < problem->frames; frame++)
        for (uint32_t b = 0; b < planner->view->buffer_count; b++)
            if (planner->view->buffers[b].place == SUITE_FRAME &&
                problem->memories[suite_view_store(planner->view, frame, b)].result)
                fetch(planner, frame, b);
}

/* --- bands --- */

static void find_bands(struct planner *planner, const double *shares)
{
    for (uint32_t s = 0; s < planner->view->step_count; s++) {
        const struct suite_step *step = &planner->view->steps[s];
        double sum = 0;
        uint32_t first = 0;

        for (uint32_t d = 0; d < planner->device_count; d++) {
            sum += shares[d];
            const double multiples = sum * step->rows / step->row_multiple + 0.5;
            uint64_t end = (uint64_t)multiples * step->row_multiple;
            if (end > step->rows || d + 1 == planner->device_count || sum > 1 - 1e-9)
                end = step->rows;
            planner->plan->bands[d][s] = (struct suite_range){first, (uint32_t)end};
            first = (uint32_t)end;
        }
    }
}

/* The host waits for the last command of each queue. */
static void find_last(struct suite_plan *plan)
{
    memset(plan->last, 0, sizeof plan->last);

    for (uint32_t c = 0; c < plan->count; c++)
        if (!by_host(&plan->commands[c]))
            plan->last[queue_of(&plan->commands[c])] = c + 1;

    for (uint32_t q = 0; q < LANES_MAX; q++)
        if (plan->last[q])
            plan->commands[plan->last[q] - 1].awaited = true;
}

static void free_planner(struct planner *planner)
{
    for (uint32_t s = 0; s < SUITE_STORES_MAX; s++)
        for (uint32_t p = 0; p <= COX_DEVICES_MAX; p++)
            free(planner->stores[s].uses[p].at);
    for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++)
        for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
            free(planner->partials[b][d].at);
    free(planner);
}

struct suite_plan *suite_plan_create(const struct suite_view *view,
                                     const struct suite_device_kind *devices, const double *shares,
                                     uint32_t device_count)
{
    struct planner *planner = calloc(1, sizeof *planner);
    struct suite_plan *plan = calloc(1, sizeof *plan);

    if (!planner || !plan) {
        free(planner);
        free(plan);
        bench_fail("out of memory");
        return NULL;
    }

    *plan = (struct suite_plan){.view = view, .device_count = device_count};
    planner->plan = plan;
    planner->view = view;
    planner->devices = devices;
    planner->device_count = device_count;
    for (uint32_t s = 0; s < view->store_count; s++)
        suite_ranges_add(&planner->stores[s].valid[0], (struct suite_range){0, UINT32_MAX});
    find_bands(planner, shares);

    for (uint32_t frame = 0; frame < view->problem->frames && !planner->failed; frame++) {
        begin_frame(planner, frame);
        for (uint32_t s = 0; s < view->step_count; s = view->steps[s].group_end)
            group(planner, frame, s);
        end_frame(planner, frame);
    }
    end_run(planner);
    find_last(plan);

    if (planner->failed) {
        bench_fail("out of memory");
        suite_plan_destroy(&plan);
    }
    free_planner(planner);

    return plan;
}

void suite_plan_destroy(struct suite_plan **plan)
{
    if (!*plan)
        return;
    free((*plan)->commands);
    free((*plan)->needs);
    free(*plan);
    *plan = NULL;
}
