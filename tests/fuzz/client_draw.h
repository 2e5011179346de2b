/* Shared by the fuzz targets of the engine: what the input decides.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_CLIENT_DRAW_H
#define COX_TESTS_FUZZ_CLIENT_DRAW_H

#include "client_check.h"

/* ---- faults ---- */

static const uint64_t delays[] = {1000, 100000, 5000000, 30000000, 120000000, 600000000, 3000000000, UINT64_MAX};

struct fault_name {
    enum fake_fault_kind kind;
    const char *name;
};
static const struct fault_name fault_names[] = {
    {FAKE_HANGS, "hangs"},
    {FAKE_EVENT_FAILS, "fails"},
    {FAKE_SUBMIT_FAILS, "fails at submit"},
    {FAKE_DEVICE_DIES, "dies"},
    {FAKE_FAILS_LATE, "fails, and ends later"},
    {FAKE_CORRUPTS, "corrupts"},
    {FAKE_SLOW, "is slow"},
    {FAKE_SUBMIT_BLOCKS, "blocks in submit"},
    {FAKE_INSTANCE_FAILS, "cannot be had"},
    {FAKE_MEM_FAILS, "(memory fails)"},
    {FAKE_NO_POST, "posts nothing"},
    {FAKE_POST_TWICE, "posts twice"},
    {FAKE_POST_EARLY, "posts early"},
    {FAKE_POST_LATE, "posts late"},
    {FAKE_LIES_PROFILE, "lies in its profile"},
    {FAKE_END_EARLY, "says that it ended early"},
    /* not in stored inputs of fuzz_engine: */
    {FAKE_END_LATE, "says that it will end"},
    {FAKE_INSTANCE_BLOCKS, "takes long to be had"},
    {FAKE_DESTROY_BLOCKS, "takes long to go"},
};
enum { FAULTS_OLD = 16, FAULTS_ALL = sizeof fault_names / sizeof fault_names[0] };

/* One of the first `names` faults. */
static void take_fault(uint32_t names, bool at_once)
{
    static const enum fake_fault_kind stuck[] = {FAKE_SUBMIT_STUCK, FAKE_FLUSH_STUCK, FAKE_POLL_STUCK};
    static const uint32_t counts[] = {1, 1, 2, 3, 5, 8, 20, UINT32_MAX};
    const uint32_t what = take(), when = take(), how = take(), name = what % names;
    if (w.faults == FAULTS_MOST)
        return;
    w.faults++;
    struct fake_fault fault = {.kind = fault_names[name].kind,
                               .device = what / 16 % DEVICES_MAX,
                               .skip = when % 32,
                               .count = counts[when / 32],
                               .status = what / 64 % 2 ? COX_E_DEVICE_MEMORY : COX_E_DEVICE_LOST,
                               .delay_ns = delays[how % 8],
                               .factor = (double)(1u << how / 16 % 8)};
    if (fault.kind == FAKE_SUBMIT_BLOCKS && fault.delay_ns == never)
        fault.delay_ns = second;
    if (fault.kind == FAKE_SUBMIT_BLOCKS && how & 8)
        fault.kind = stuck[how / 16 % 3];
    if ((fault.kind == FAKE_INSTANCE_BLOCKS || fault.kind == FAKE_DESTROY_BLOCKS) && fault.delay_ns == never)
        fault.delay_ns = second;
    if (fault.kind == FAKE_DEVICE_DIES && fault.delay_ns == never)
        fault.delay_ns = 0;
    if (fault.kind == FAKE_MEM_FAILS && fault.count > 20)
        fault.count = 20;
    if (at_once)
        fault.skip %= 4;
    if (fault.delay_ns != never && fault.delay_ns > w.longest_ns)
        w.longest_ns = fault.delay_ns;
    if (fault.kind == FAKE_SLOW && fault.factor > w.slower)
        w.slower = fault.factor;
    tell("  device %u %s after %u bands, %u times: %.3f ms, factor %.0f, %s\n", fault.device, fault_names[name].name,
         fault.skip, fault.count, told_ms(fault.delay_ns), fault.factor, cox_status_name(fault.status));
    fake_script(w.fake, &fault);
}

/* ---- devices, frames, sessions ---- */

/* `instant`: the clock stands still while some of them work. */
static void take_devices(struct fake_params *devices, uint32_t count, uint32_t rows, bool instant)
{
    static const double costs[] = {1e3, 1e4, 3e4, 1e5, 1e5, 3e5, 1e6, 4e6};
    static const enum cox_memory_mode modes[] = {COX_MODE_MAPPED, COX_MODE_STAGED, COX_MODE_SHARED, COX_MODE_MAPPED};
    *devices = (struct fake_params){.device_count = count, .driven = true};
    for (uint32_t d = 0; d < devices->device_count; d++) {
        const uint32_t kind = take(), cost = take();
        struct fake_device *device = &devices->devices[d];
        *device = (struct fake_device){.mode = modes[kind % 4],
                                       .type = kind & 4 ? COX_DEVICE_GPU : COX_DEVICE_CPU,
                                       .inside_submit = (kind & 24) == 24,
                                       .no_profile = kind & 32,
                                       .align_bytes = kind & 64 ? 64 : 4,
                                       .max_rows = kind & 128 ? rows / 3 + 1 : 0,
                                       .ns_per_row = costs[cost % 8],
                                       .fixed_ns = cost & 8 ? 2e5 : 0,
                                       .jitter = cost & 16 ? 0.3 : 0,
                                       .parts = 1 + cost % 3,
                                       .copy_in_ns_per_row = cost & 32 ? costs[cost % 8] / 2 : 0,
                                       .copy_out_ns_per_row = cost & 64 ? costs[cost % 8] : 0};
        if (instant && cost & 128)
            device->ns_per_row = device->fixed_ns = device->copy_in_ns_per_row = device->copy_out_ns_per_row = 0;
        w.inside_submit |= device->inside_submit;
        const double frame_ns = device->fixed_ns + 2.5 * 1.3 * device->ns_per_row * rows;
        w.slowest_ns = frame_ns > (double)w.slowest_ns ? (uint64_t)frame_ns : w.slowest_ns;
        tell("device %u: %s %s, %.0f ns a row, %.0f ns a band%s%s%s\n", d, cox_memory_mode_name(device->mode),
             device->type == COX_DEVICE_GPU ? "GPU" : "CPU", device->ns_per_row, device->fixed_ns,
             device->inside_submit ? ", runs inside submit" : "", device->max_rows ? ", few rows at once" : "",
             device->jitter > 0 ? ", jitters" : "");
    }
}

/* Those of the programs show that the engine takes any policy. */
static const struct cox_policy *take_policy(uint32_t devices, uint32_t rows, uint32_t row_alignment)
{
    static const char *const names[] = {"adaptive", "static", "single",  "last-frame", "mean10",
                                        "ewma",     "chunks", "hguided", NULL};
    const char *name = PICK(names);
    uint64_t seed = rows;
    rig_split_count = 0;
    for (uint32_t i = 0; i < FRAMES_MAX; i++)
        rig_add_random_split(&seed, rows, row_alignment, devices);
    return name ? program_policy_find(name) : &rig_policy;
}

/* Draw the parameters of the session. */
static void take_session(uint32_t devices, uint32_t row_alignment)
{
    static const uint64_t give_ups[] = {0, 30000000, 100000000, 500000000};
    static const double shares[] = {0, 0, 0.3, 1};
    const uint32_t flags = take(), more = take();
    c->params = (struct cox__session_spec){.custom_policy = take_policy(devices, c->frames->rows, row_alignment),
                                           .in_flight = 1 + more % 4,
                                           .min_band_rows = more / 4 % 4 * 4,
                                           .verify = shares[more / 16 % 4],
                                           .device_timeout_ns = give_ups[more / 64],
                                           .no_warmup = flags & 8,
                                           .split_each_pass = flags & 64,
                                           .report = on_report,
                                           .report_user = c};
    c->refills = flags & 16;
    c->drops = flags & 128;
    w.lag_ns = flags & 32 ? 50 * us : 0;
    tell("session: policy %s, %u in flight, verify %.1f, time limit %.0f ms%s%s%s\n", c->params.custom_policy->name,
         c->params.in_flight, c->params.verify, (double)c->params.device_timeout_ns * 1e-6,
         c->params.no_warmup ? ", no warm-up" : "", c->refills ? ", inputs change" : "",
         c->drops ? ", late frames are dropped" : "");
}

/* Some passes run on one device only. */
static void choose_pass_devices(struct shape_frames *frames, uint32_t how, uint32_t devices)
{
    const uint32_t last = frames->pass_count - 1;
    if (!frames->pass_count)
        return;
    if (how & 1)
        frames->pass_device_plus_1[0] = 1;
    if (how & 2) {
        frames->pass_device_plus_1[last] = devices;
        frames->pass_policy = "chunks";
    }
    w.slowest_ns *= frames->pass_count;
    tell("passes: the first on %s, the last on %s\n", how & 1 ? "device 0" : "all",
         how & 2 ? "the last device" : "all");
}

/* How long the tasks of the worker take. */
static void take_tasks(void)
{
    static const uint64_t takes[] = {0, 0, 0, 1000000, 60000000, 300000000, 2500000000, UINT64_MAX};
    const uint32_t tasks = take();
    w.task_ns[0] = takes[tasks % 8];
    w.task_ns[1] = takes[tasks / 8 % 8];
    w.task_ns[2] = takes[tasks / 64 % 4];
    for (uint32_t i = 0; i < 4; i++) {
        if (leaked > LEAKED_MAX)
            w.task_ns[i] = least(w.task_ns[i], 60 * ms);
        w.longest_ns = w.task_ns[i] != never && w.task_ns[i] > w.longest_ns ? w.task_ns[i] : w.longest_ns;
    }
    tell("tasks take %.0f, %.0f, %.0f, 0 ms (-1: never end)\n", told_ms(w.task_ns[0]), told_ms(w.task_ns[1]),
         told_ms(w.task_ns[2]));
}

#endif
