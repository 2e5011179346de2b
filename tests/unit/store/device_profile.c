/* Device profiles: what a session saves, and what the next session starts with.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "store/cache.h"
#include "store/device_profile.h"
#include "support/fake_rig.h"
#include "unit/store/base.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

static char dir[96];   /* the cache in the test's folder */
static char path[400]; /* of a file in the cache */

/* The number of files in the cache. */
static int file_count(void)
{
    int count = 0;
    DIR *list = opendir(dir);
    for (struct dirent *file; list && (file = readdir(list));) {
        if (file->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", dir, file->d_name);
    }
    if (list)
        closedir(list);
    return count;
}

static void only_file(void)
{
    cr_assert_eq(file_count(), 1);
    cr_assert_not_null(strstr(path, ".profile"), "%s", path);
}

static ino_t only_inode(void)
{
    struct stat st;
    only_file();
    cr_assert_eq(stat(path, &st), 0);
    return st.st_ino;
}

/* ---- sessions ---- */

/* A policy that takes each device's nanoseconds per row from its last band. Without one it splits equally. */
struct learner {
    double ns_per_row[COX_DEVICES_MAX];
    bool loaded;
};

static size_t learner_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct learner);
}

static cox_status learner_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)view, (void)options;
    struct learner *learner = state;
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        learner->ns_per_row[d] = 1;
    return COX_OK;
}

static cox_status learner_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    struct learner *learner = state;
    struct cox_cost costs[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX], next = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){.usable = view->devices[d].usable, .ns_per_row = learner->ns_per_row[d]};
    if (cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs, view->device_count, rows) < 0)
        return COX_E_INVALID;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] == 0)
            continue;
        out->bands[out->band_count++] = (struct cox_band){d, next, rows[d]};
        next += rows[d];
    }
    out->reason = view->frame == 0 && learner->loaded ? COX_REASON_PROFILE : COX_REASON_BALANCED;
    return COX_OK;
}

static void learner_observe(void *state, const struct cox_measurement *measurement)
{
    struct learner *learner = state;
    learner->ns_per_row[measurement->device] = (double)measurement->wall_ns / measurement->rows;
}

static double given_solo_ns[COX_DEVICES_MAX]; /* from the profile that was loaded last */

static void learner_load_profile(void *state, const struct cox_sched_view *view,
                                 const struct cox_device_profile *profiles)
{
    struct learner *learner = state;
    for (uint32_t d = 0; d < view->device_count; d++) {
        learner->ns_per_row[d] = profiles[d].ns_per_row;
        given_solo_ns[d] = profiles[d].single_device_ns;
    }
    learner->loaded = true;
}

static void learner_save_profile(const void *state, const struct cox_sched_view *view,
                                 struct cox_device_profile *profiles)
{
    const struct learner *learner = state;
    double speeds = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        speeds += 1 / learner->ns_per_row[d];
    for (uint32_t d = 0; d < view->device_count; d++)
        profiles[d] = (struct cox_device_profile){.frames = (double)view->frame,
                                                  .ns_per_row = learner->ns_per_row[d],
                                                  .share = 1 / learner->ns_per_row[d] / speeds};
}

static const struct cox_policy learner = {.name = "learner",
                                          .state_bytes = learner_bytes,
                                          .init = learner_init,
                                          .split = learner_split,
                                          .observe = learner_observe,
                                          .load_profile = learner_load_profile,
                                          .save_profile = learner_save_profile};

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "a", .ns_per_row = 3e3}, {.name = "b", .ns_per_row = 1e3}, {.name = "c", .ns_per_row = 6e3}}};

/* How a session differs from the one whose profile was saved. */
struct way {
    const char *what;
    struct fake_params devices;
    struct cox__session_spec params;
    uint32_t rows, columns;
    size_t pitch;
    const char *source, *options, *kernel;
    uint32_t local_columns;
    uint32_t frames; /* frames to run; 0 = 40 */
    bool no_cache;
    bool passes; /* two passes that share a split */
};

static struct way usual(void)
{
    return (struct way){
        .devices = trio, .params = {.custom_policy = &learner}, .rows = 100, .columns = 16, .pitch = 16};
}

static struct way way; /* for the next session */

static void setup(void)
{
    make_base();
    snprintf(dir, sizeof dir, "%s/a/cache", folder);
    way = usual();
}

TestSuite(device_profile, .init = setup, .fini = remove_folder, .timeout = 600);

struct outcome {
    bool loaded;
    enum cox_reason first_reason;
    uint32_t first[FAKE_DEVICES_MAX]; /* rows of each device in frame 0 */
    uint32_t last[FAKE_DEVICES_MAX];
    uint32_t warmups;
    uint64_t single_device_ns[FAKE_DEVICES_MAX];
    char log[4000];
};

static cox_status submit(const struct rig_frames *frames, cox_session *session, uint32_t index, uint32_t buffer_count)
{
    const uint32_t i = index % frames->count;
    cox_buffer *const buffers[] = {frames->in[i], frames->out[i], NULL};
    return cox__session_submit(session,
                               &(const struct cox__frame_spec){
                                   .buffers = buffers, .buffer_count = buffer_count, .params = &frames->params[i]},
                               rig_done, frames->rig);
}

/* Run one session in its own runtime. */
static struct outcome run_session(void)
{
    struct outcome outcome = {0};
    struct rig *rig = rig_new_in(&way.devices, way.no_cache ? NULL : dir);
    struct rig_frames *frames = rig_frames_new(rig, way.rows, way.columns, way.pitch, 4);
    const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = way.pitch},
        {.name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = way.pitch},
        {.name = "middle", .row_access = COX__ROWS, .pitch_bytes = way.pitch, .scratch = true},
    };
    const struct cox__variant variant = {
        .source = way.source ? way.source : "fake", .options = way.options, .local_columns = way.local_columns};
    struct cox__stage stage = rig_stage_map;
    stage.columns = way.columns;
    stage.variants = &variant;
    struct cox__session_spec params = way.params;
    params.rows = way.rows;
    params.binding_count = 2; /* without `middle` */
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &stage;
    const struct cox__arg aside[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(2)};
    struct cox__stage stage_aside = stage;
    stage_aside.args = aside;
    stage_aside.arg_count = 2;
    const struct cox__pass_binding uses[][2] = {{{.binding = 0}, {.binding = 2, .access = COX__WRITE}},
                                                {{.binding = 0}, {.binding = 1, .access = COX__WRITE}}};
    const struct cox__pass_spec passes[] = {{.use_count = 2, .uses = uses[0], .stage_count = 1, .stages = &stage_aside},
                                            {.use_count = 2, .uses = uses[1], .stage_count = 1, .stages = &stage}};
    if (way.passes) {
        params.binding_count = 3;
        params.stage_count = 0;
        params.stages = NULL;
        params.pass_count = 2;
        params.passes = passes;
    }
    params.params_bytes = sizeof(struct rig_params);
    params.report = rig_report;
    params.report_user = rig;
    cox_session *session;
    cr_assert_eq(cox__session_create(rig_runtime(rig), &params, &session), COX_OK, "%s", rig_log(rig));
    struct cox_session_info info = rig_info(session);
    outcome.loaded = session->profile.is_loaded;
    for (uint32_t i = 0; i < (way.frames ? way.frames : 40); i++)
        cr_assert_eq(submit(frames, session, i, params.binding_count), COX_OK);
    cox_session_wait(session);
    info = rig_info(session);
    for (uint32_t d = 0; d < info.device_count; d++)
        outcome.single_device_ns[d] = info.devices[d].single_device_ns;
    cox_session_destroy(&session);
    for (uint32_t r = 0; r < rig_report_count(rig); r++) {
        const struct cox_frame_report *report = &rig_report_at(rig, r)->frame;
        outcome.warmups += report->warmup;
        if (report->warmup || report->shadow)
            continue;
        if (report->index == 0)
            outcome.first_reason = report->total.reason;
        memset(outcome.last, 0, sizeof outcome.last);
        for (uint32_t b = 0; b < report->band_count; b++)
            outcome.last[report->bands[b].device] += report->bands[b].rows;
        if (report->index == 0)
            memcpy(outcome.first, outcome.last, sizeof outcome.first);
    }
    snprintf(outcome.log, sizeof outcome.log, "%s", rig_log(rig));
    rig_frames_free(&frames);
    cr_assert_str_empty(rig_end(&rig));
    return outcome;
}

/* Run a session that starts with a profile. */
static struct outcome run_loaded(void)
{
    struct outcome outcome = run_session();
    cr_assert(outcome.loaded, "%s", outcome.log);
    cr_assert_eq(outcome.first_reason, COX_REASON_PROFILE);
    return outcome;
}

/* ---- plausible figures ---- */

static const struct cox_device_profile known[2] = {
    {.frames = 100, .fixed_ns = 60e3, .launch_ns = 20e3, .ns_per_row = 18e3, .single_device_ns = 19e6, .share = 0.34},
    {.frames = 101, .fixed_ns = 250e3, .launch_ns = 0, .ns_per_row = 9e3, .single_device_ns = 0, .share = 0.66},
};

Test(device_profile, of_nonsense_is_implausible)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1, 1e300};
    cr_assert(cox__device_profiles_plausible(known, 2));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (int field = 0; field < 6; field++) {
            struct cox_device_profile profiles[2];
            memcpy(profiles, known, sizeof known);
            double *const fields[] = {&profiles[1].frames,     &profiles[1].fixed_ns,         &profiles[1].launch_ns,
                                      &profiles[1].ns_per_row, &profiles[1].single_device_ns, &profiles[1].share};
            *fields[field] = bad[b];
            cr_assert_not(cox__device_profiles_plausible(profiles, 2), "field %d, %g", field, bad[b]);
        }
    struct cox_device_profile profiles[2];
    memcpy(profiles, known, sizeof known);
    profiles[1].ns_per_row = 0;
    cr_assert_not(cox__device_profiles_plausible(profiles, 2));
    memcpy(profiles, known, sizeof known);
    profiles[1].frames = 0;
    cr_assert(cox__device_profiles_plausible(profiles, 2), "fields of a device without frames do not count");
    profiles[1].single_device_ns = NAN;
    cr_assert_not(cox__device_profiles_plausible(profiles, 2), "but the session uses this device's time alone");
    memcpy(profiles, known, sizeof known);
    profiles[0].share = 0.1;
    cr_assert(cox__device_profiles_plausible(profiles, 2), "the rest is handed out on demand");
    profiles[0].share = 0.4;
    cr_assert_not(cox__device_profiles_plausible(profiles, 2), "shares add up to more than 1");
    profiles[0].share = profiles[1].share = 0;
    cr_assert(cox__device_profiles_plausible(profiles, 2), "everything is");
    memcpy(profiles, known, sizeof known);
    memset(profiles, 0, sizeof profiles);
    cr_assert_not(cox__device_profiles_plausible(profiles, 2), "nothing is known");
    profiles[1] = known[1];
    profiles[1].share = 1;
    cr_assert(cox__device_profiles_plausible(profiles, 2), "one device was left out and is not known");
}

/* The profiles are those of the devices in this device set. */
Test(device_profile, lets_adaptive_begin_with_the_devices_that_were_in_use)
{
    const struct cox_policy *policy = cox_policy_find("adaptive");
    const struct cox_sched_device devices[2] = {{.usable = true, .hint = 1}, {.usable = true, .hint = 1}};
    const struct cox_sched_view view = {
        .rows = 1080, .row_alignment = 8, .device_count = 2, .devices = devices, .in_flight = 2};
    const struct cox_policy_options options = {0};
    struct cox_device_profile profiles[2];
    for (int alone = 0; alone < 2; alone++) {
        struct cox_split split = {0};
        void *state = calloc(1, policy->state_bytes(2));
        cr_assert_eq(policy->init(state, &view, &options), COX_OK);
        memcpy(profiles, known, sizeof known);
        profiles[0].share = alone ? 0 : 0.34;
        profiles[1].share = alone ? 1 : 0.66;
        profiles[1].single_device_ns = 10e6;
        policy->load_profile(state, &view, profiles);
        cr_assert_eq(policy->split(state, &view, &split), COX_OK);
        cr_assert_eq(split.reason, COX_REASON_PROFILE);
        cr_assert_eq(split.band_count, alone ? 1 : 2);
        cr_assert_eq(split.bands[split.band_count - 1].device, 1);
        free(state);
    }
}

/* ---- what a session starts with ---- */

Test(device_profile, lets_the_second_session_begin_at_the_good_split)
{
    struct outcome first = run_session();
    cr_assert_not(first.loaded);
    cr_assert_eq(first.first[0], first.first[2] + 1, "equal shares at first: %u %u %u", first.first[0], first.first[1],
                 first.first[2]);
    struct outcome second = run_loaded();
    cr_assert_arr_eq(second.first, first.last, sizeof first.last);
    cr_assert_arr_eq(second.last, first.last, sizeof first.last);
}

Test(device_profile, of_passes_that_share_a_split_is_of_all_of_them)
{
    way.passes = true;
    struct outcome first = run_session();
    cr_assert_not(first.loaded);
    struct outcome second = run_loaded();
    cr_assert_arr_eq(second.first, first.last, sizeof first.last);
    for (int d = 0; d < 3; d++) {
        cr_assert_eq(second.single_device_ns[d], first.single_device_ns[d]);
        cr_assert_eq(given_solo_ns[d], (double)first.single_device_ns[d], "device %d: %g, %llu", d, given_solo_ns[d],
                     (unsigned long long)first.single_device_ns[d]);
    }
    way.params.split_each_pass = true;
    cr_assert_not(run_session().loaded);
}

/* With jitter, so that there is something to learn. Rows handed out on demand count for the device that did them. */
Test(device_profile, lets_adaptive_begin_where_it_ended)
{
    way.params = (struct cox__session_spec){.policy = "adaptive", .in_flight = 1};
    way.rows = 1000;
    way.devices.device_count = 2;
    for (uint32_t d = 0; d < 2; d++) {
        way.devices.devices[d].fixed_ns = 2e3;
        way.devices.devices[d].jitter = 0.02;
    }
    struct outcome first = run_session();
    cr_assert_not(first.loaded);
    struct outcome second = run_loaded();
    for (int d = 0; d < 2; d++)
        cr_assert_lt(abs((int)second.first[d] - (int)first.last[d]), 60, "device %d: %u rows at first, %u at last", d,
                     second.first[d], first.last[d]);
}

Test(device_profile, lets_the_second_session_warm_up_with_a_slice_and_one_run_for_each_device)
{
    struct outcome first = run_session();
    cr_assert_gt(first.warmups, 6);
    struct outcome second = run_session();
    cr_assert_eq(second.warmups, 1 + 3, "the slices run at the same time");
    for (int d = 0; d < 3; d++)
        cr_assert_eq(second.single_device_ns[d], first.single_device_ns[d]);
}

Test(device_profile, that_holds_no_longer_does_not_hide_what_the_warm_up_shows)
{
    way.devices.devices[1].inside_submit = true; /* a difference that requires a timed run */
    struct outcome first = run_session();
    way.devices.devices[1].ns_per_row *= 4; /* the same device, busy with other work */
    struct outcome second = run_session();
    cr_assert(second.loaded);
    cr_assert_eq(second.warmups, 1 + 3 + 1);
    cr_assert_eq(second.single_device_ns[0], first.single_device_ns[0]);
    cr_assert_eq(second.single_device_ns[1], 4 * first.single_device_ns[1]);
}

Test(device_profile, is_the_same_whatever_the_order_of_the_devices)
{
    static const uint32_t backwards[] = {2, 1, 0};
    struct outcome first = run_session();
    way.params.devices = backwards;
    way.params.device_count = 3;
    struct outcome second = run_session();
    cr_assert(second.loaded);
    for (int d = 0; d < 3; d++)
        cr_assert_eq(second.first[d], first.last[2 - d]);
}

Test(device_profile, is_of_one_kind_of_session_only)
{
    static const uint32_t two[] = {0, 1}, others[] = {0, 2};
    static const struct cox_policy_options energy = {.objective = COX_OBJECTIVE_ENERGY};
    struct cox_policy namesake = learner;
    namesake.name = "another";
    struct way ways[16];
    size_t count = 0;
#define WAY(text, change)      \
    do {                       \
        way = usual();         \
        change;                \
        way.what = (text);     \
        ways[count++] = (way); \
    } while (0)
    WAY("rows", way.rows = 104);
    WAY("pitch", way.pitch = 32);
    WAY("columns", way.columns = 12);
    WAY("source", way.source = "another");
    WAY("options", way.options = "-DX");
    WAY("local size", way.local_columns = 4);
    WAY("driver", way.devices.devices[1].driver = "2");
    WAY("compute units", way.devices.devices[1].compute_units = 77);
    WAY("memory mode", way.devices.devices[1].mode = COX_MODE_STAGED);
    WAY("type", way.devices.devices[1].type = COX_DEVICE_GPU);
    WAY("policy", way.params.custom_policy = &namesake);
    WAY("objective", way.params.policy_options = &energy);
    WAY("fewer devices", (way.params.devices = two, way.params.device_count = 2));
    WAY("another device", (way.params.devices = others, way.params.device_count = 2));
    WAY("shortest band", way.params.min_band_rows = 2);
#undef WAY
    way = usual();
    run_session();
    for (size_t w = 0; w < count; w++) {
        way = ways[w];
        cr_assert_not(run_session().loaded, "another %s", way.what);
        cr_assert(run_session().loaded, "the same %s", way.what);
    }
    way = usual();
    cr_assert(run_session().loaded);
}

Test(device_profile, is_neither_saved_nor_loaded_without_a_cache_directory)
{
    way.no_cache = true;
    run_session();
    cr_assert_not(run_session().loaded);
    struct stat st;
    cr_assert_neq(lstat(dir, &st), 0);
}

Test(device_profile, is_neither_saved_nor_loaded_with_no_profile)
{
    way.params.no_profile = true;
    run_session();
    cr_assert_eq(file_count(), 0);
    way.params.no_profile = false;
    run_session();
    const ino_t before = only_inode();
    way.params.no_profile = true;
    cr_assert_not(run_session().loaded);
    cr_assert_eq(only_inode(), before, "not written");
}

Test(device_profile, is_saved_by_policies_that_load_and_save_one)
{
    struct cox_policy deaf = learner, mute = learner;
    deaf.load_profile = NULL;
    mute.save_profile = NULL;
    way.params.custom_policy = &deaf;
    run_session();
    way.params.custom_policy = &mute;
    run_session();
    cr_assert_not(file_count() > 0);
}

Test(device_profile, of_a_short_session_is_not_saved)
{
    way.frames = 7;
    run_session();
    cr_assert_not(file_count() > 0);
    way.frames = 8;
    run_session();
    cr_assert(file_count() > 0);
}

Test(device_profile, of_a_session_that_lost_a_device_is_not_saved)
{
    struct rig *rig = rig_new_in(&trio, dir);
    struct rig_frames *frames = rig_frames_new(rig, 100, 16, 16, 4);
    cox_session *session;
    cr_assert_eq(rig_map_session(frames, &(const struct cox__session_spec){.custom_policy = &learner}, &session),
                 COX_OK);
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_wait(session);
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 2});
    for (uint32_t i = 20; i < 40; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    cr_assert_str_empty(rig_end(&rig));
    cr_assert_not(file_count() > 0);
}

/* Saves the first device's profile as if that device got no rows. */
static void save_without_the_first(const void *state, const struct cox_sched_view *view,
                                   struct cox_device_profile *profiles)
{
    learner_save_profile(state, view, profiles);
    profiles[0] = (struct cox_device_profile){0};
}

Test(device_profile, of_a_device_that_was_not_used_stays)
{
    struct cox_policy idle = learner;
    idle.save_profile = save_without_the_first;
    struct outcome first = run_session();
    way.params.custom_policy = &idle;
    run_session();
    way.params.custom_policy = &learner;
    struct outcome third = run_session();
    cr_assert(third.loaded);
    cr_assert_arr_eq(third.first, first.last, sizeof first.last);
}

/* ---- files ---- */

Test(device_profile, is_one_private_file)
{
    struct stat st;
    run_session();
    run_session();
    only_file();
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0600);
    cr_assert_lt(st.st_size, 300);
    cr_assert_eq(stat(dir, &st), 0);
    cr_assert_eq(st.st_mode & 07777, 0700);
}

Test(device_profile, whose_file_is_damaged_or_foreign_is_ignored_and_written_anew)
{
    static const struct {
        const char *what, *command; /* $f is the file, $b the test's folder */
    } cases[] = {
        {"noise", "seq 1000 | gzip | head -c 900 >$f"},
        {"empty", ": >$f"},
        {"cut", "truncate -s 150 $f"},
        {"of a terabyte", "truncate -s 1T $f"},
        {"changed in one bit", "byte=$(od -An -tu1 -j60 -N1 $f) && printf \\\\$(printf %o $((byte ^ 1))) | $d seek=60"},
        {"a compiled kernel's", "printf 'COXBIN\\0\\1' | $d"},
        {"a link", "mv $f $b/other && ln -s $b/other $f"},
        {"a link to nothing", "rm $f && ln -s nothing $f"},
        {"with a second name", "ln $f $b/name"},
        {"a FIFO", "rm $f && mkfifo -m 600 $f"},
        {"writable by others", "chmod 666 $f"},
        {"without permission", "chmod 0 $f"}};
    run_session();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char command[1200];
        struct stat st;
        only_file();
        if (strstr(cases[c].command, "chmod 0 ") && geteuid() == 0)
            continue;
        snprintf(command, sizeof command, "f=%s b=%s d=\"dd of=%s bs=1 conv=notrunc status=none\"; %s", path, folder,
                 path, cases[c].command);
        cr_assert_eq(system(command), 0, "%s", cases[c].what);
        struct outcome outcome = run_session();
        cr_assert_not(outcome.loaded, "%s", cases[c].what);
        char *line = strstr(outcome.log, "device profiles: ");
        cr_assert_not_null(line, "%s: %s", cases[c].what, outcome.log);
        cr_assert_null(strstr(line + 1, "device profiles: "), "%s: more than a line: %s", cases[c].what, outcome.log);
        only_file();
        cr_assert_eq(lstat(path, &st), 0);
        cr_assert(S_ISREG(st.st_mode), "%s", cases[c].what);
        cr_assert(run_session().loaded, "%s: written again", cases[c].what);
    }
}

Test(device_profile, that_cannot_be_written_is_done_without)
{
    run_session();
    only_file();
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    run_session();
    cr_assert_not(run_session().loaded);
    cr_assert_eq(rmdir(path), 0, "the directory is left alone");
}

/* Replace the contents of the file, and give it the right checksum. */
static void replace_content(const void *content, size_t bytes)
{
    char *name;
    unsigned char key[32];
    static const struct cox__log silent = {.level = COX_LOG_ERROR};
    only_file();
    name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof key; i++) {
        const char digits[3] = {name[2 * i], name[2 * i + 1], '\0'};
        key[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    cox__cache_store(dir, &cox__cache_profiles, key, content, bytes, &silent);
    cr_assert_eq(file_count(), 1);
}

Test(device_profile, of_nonsense_is_ignored_and_written_anew)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1, 1e300};
    struct cox_device_profile good[4];
    for (int d = 0; d < 4; d++)
        good[d] = (struct cox_device_profile){.frames = 9, .ns_per_row = 9e3, .share = 0.2};
    run_session();
    replace_content(good, 3 * sizeof *good);
    cr_assert(run_session().loaded, "the three devices' figures are as they should be");
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (size_t field = 0; field < sizeof *good / sizeof(double); field++) {
            struct cox_device_profile figures[3];
            memcpy(figures, good, sizeof figures);
            memcpy((char *)&figures[1] + field * sizeof(double), &bad[b], sizeof(double));
            replace_content(figures, sizeof figures);
            struct outcome outcome = run_session();
            cr_assert_not(outcome.loaded, "field %zu, %g", field, bad[b]);
            cr_assert_neq(outcome.first_reason, COX_REASON_PROFILE);
        }
    static const size_t sizes[] = {0, 1, sizeof *good, 2 * sizeof *good, 3 * sizeof *good - 1, 4 * sizeof *good};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        replace_content(good, sizes[i]);
        cr_assert_not(run_session().loaded, "%zu bytes", sizes[i]);
        cr_assert(run_session().loaded);
    }
}

Test(device_profile, in_a_directory_that_others_may_write_to_is_not_used)
{
    run_session();
    const ino_t before = only_inode();
    cr_assert_eq(chmod(dir, 0777), 0);
    struct outcome outcome = run_session();
    cr_assert_not(outcome.loaded);
    cr_assert_not_null(strstr(outcome.log, "is not used, because"), "%s", outcome.log);
    cr_assert_eq(only_inode(), before, "not written");
}

Test(device_profile, in_a_directory_that_cannot_be_written_is_loaded)
{
    skip_unless(geteuid() != 0, "root may write everywhere");
    run_session();
    cr_assert_eq(chmod(dir, 0500), 0);
    cr_assert(run_session().loaded);
    cr_assert(run_session().loaded);
    cr_assert_eq(chmod(dir, 0700), 0);
}

/* ---- from a warm_start ---- */

static cox_status try_map(struct rig_frames *frames, cox_session *warm_start, cox_session **out)
{
    return rig_map_session(frames,
                           &(const struct cox__session_spec){.custom_policy = &learner,
                                                             .report = rig_report,
                                                             .report_user = frames->rig,
                                                             .warm_start = warm_start},
                           out);
}

static cox_session *make_map(struct rig_frames *frames, cox_session *warm_start)
{
    cox_session *session = NULL;
    cr_assert_eq(try_map(frames, warm_start, &session), COX_OK);
    return session;
}

static void run_frames(struct rig_frames *frames, cox_session *session, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
}

static bool begins_with_profile(cox_session *session)
{
    return session->profile.is_loaded;
}

/* Sets the rows of each device in the last report, and returns its reason. */
static enum cox_reason last_split(struct rig *rig, uint32_t *rows)
{
    const struct cox_frame_report *report = &rig_report_at(rig, rig_report_count(rig) - 1)->frame;
    memset(rows, 0, FAKE_DEVICES_MAX * sizeof *rows);
    for (uint32_t b = 0; b < report->band_count; b++)
        rows[report->bands[b].device] += report->bands[b].rows;
    return report->total.reason;
}

/* Twice the rows. Without a warm-up the first frame is split in the proportions of the warm_start's last one. */
Test(device_profile, are_taken_over_from_a_predecessor_of_other_rows)
{
    struct rig *rig = rig_new(&trio);
    struct rig_frames *small = rig_frames_new(rig, 100, 16, 16, 4), *large = rig_frames_new(rig, 200, 16, 16, 4);
    uint32_t before[FAKE_DEVICES_MAX], after[FAKE_DEVICES_MAX];
    cox_session *first = make_map(small, NULL);
    run_frames(small, first, 40);
    cox_session_wait(first);
    last_split(rig, before);
    cox_session *second = make_map(large, first);
    cox_session_destroy(&first);
    cr_assert(begins_with_profile(second));
    const uint32_t reports = rig_report_count(rig);
    run_frames(large, second, 1);
    cox_session_wait(second);
    cr_assert_eq(rig_report_count(rig), reports + 1, "the frame: its kernels have run on every device");
    cr_assert_eq(last_split(rig, after), COX_REASON_PROFILE);
    for (uint32_t d = 0; d < 3; d++)
        cr_assert_leq(abs((int)after[d] - 2 * (int)before[d]), 4, "device %u: %u rows of 100, then %u of 200", d,
                      before[d], after[d]);
    cr_assert_str_empty(rig_check(large, 0));
    cox_session_destroy(&second);
    rig_frames_free(&small);
    rig_frames_free(&large);
    cr_assert_str_empty(rig_end(&rig));
}

/* Profiles are taken while frames of the warm_start are running. None is taken from a session that has hardly
 * begun, or that belongs to another runtime. */
Test(device_profile, of_a_predecessor_at_work_are_taken_if_it_has_learnt_something)
{
    struct rig *rig = rig_new(&trio), *other = rig_new(&trio);
    struct rig_frames *frames = rig_frames_new(rig, 100, 16, 16, 4), *others = rig_frames_new(other, 100, 16, 16, 4);
    cox_session *first = make_map(frames, NULL), *second = make_map(frames, first), *foreign = NULL;
    cr_assert_not(begins_with_profile(second));
    cox_session_destroy(&second);
    run_frames(frames, first, 20);
    second = make_map(frames, first);
    cr_assert(begins_with_profile(second));
    cr_assert_eq(try_map(others, first, &foreign), COX_E_INVALID);
    cr_assert(rig_logged(other, "warm_start"), "%s", rig_log(other));
    cox_session_destroy(&second);
    cox_session_destroy(&first);
    rig_frames_free(&frames);
    rig_frames_free(&others);
    cr_assert_str_empty(rig_end(&rig));
    cr_assert_str_empty(rig_end(&other));
}
