/* The world of a recorded session: its functions for the simulator, then how the factors of
 * devices, their answers and the overheads of frames are filled in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "world.h"
#include "common/policies/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A factor beyond these limits comes from a stopped clock or program, not from a device. */
static const double FACTOR_MIN = 0.02, FACTOR_MAX = 1000;
enum { LEVEL_REACH = 3 }; /* frames on each side whose median is a level */

/* Missing frames cost memory too: a session may lack this number of frames, and as many as it
 * has. */
enum { MISSING_MAX = 100 };

static double clip(double factor)
{
    if (isnan(factor))
        return factor;

    return fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX);
}

/* --- The world -------------------------------------------------------------------------------- */

static void begin_run(void *ctx, uint64_t seed)
{
    (void)ctx;
    (void)seed;
}

static void begin_frame(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *row_alignment,
                        bool *alive)
{
    const struct lab_replay *replay = ctx;
    *rows = replay->rows[frame];
    *row_alignment = replay->data->row_alignment;
    for (uint32_t d = 0; d < replay->world.device_count; d++)
        alive[d] = replay->answering[frame] >> d & 1;
}

/* A value of the arrays with one for each frame and device. */
static double value_at(const struct lab_replay *replay, const double *values,
                       const struct lab_launch *launch)
{
    return values[launch->frame * replay->world.device_count + launch->device];
}

static double expected_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_replay *replay = ctx;
    const struct lab_replay_fit *fit = &replay->fits[launch->device];

    return lab_replay_cost(fit, launch->rows, launch->launch) *
               value_at(replay, replay->levels, launch) +
           fit->gap_ns[launch->launch > 0];
}

/* A launch in a frame whose bands tell the device's speed. A further launch is like the band of the
 * same number. A first one is like all bands that are as long together; rows beyond them have the
 * factor of the frame, `whole`. */
static double profiled_ns(const struct lab_replay *replay, const struct lab_launch *launch,
                          double whole)
{
    const struct lab_replay_fit *fit = &replay->fits[launch->device];
    const struct lab_replay_frame *frame = replay->recorded[launch->frame];
    const double own = lab_replay_cost(fit, launch->rows, launch->launch);
    double gap = fit->gap_ns[launch->launch > 0];
    double took = 0, should = 0, left = launch->rows;

    for (size_t b = 0; b < frame->band_count && left > 0; b++) {
        const struct lab_replay_band *band = &replay->session->bands[frame->first_band + b];
        if (band->device != launch->device)
            continue;

        double cost = lab_replay_cost(fit, band->rows, band->launch);
        if (band->launch == launch->launch)
            gap = band->gap_ns;
        if (launch->launch > 0 && band->launch == launch->launch)
            return own * clip(lab_replay_alone(fit, band) / cost) + gap;

        double part = fmin(1, left / band->rows);
        took += part * lab_replay_alone(fit, band);
        should += part * cost;
        left -= band->rows;
    }

    if (launch->launch > 0)
        return own * whole + gap;

    double rest = fmax(0, left) * fit->ns_per_row;

    return own * clip((took + rest * whole) / (should + rest)) + gap;
}

static double launch_ns(void *ctx, const struct lab_launch *launch)
{
    const struct lab_replay *replay = ctx;
    const struct lab_replay_fit *fit = &replay->fits[launch->device];
    const double single_device_ns = replay->session->single_device_ns[launch->device];

    if (launch->launch == LAB_LAUNCH_WARMUP && single_device_ns > 0)
        return single_device_ns;
    if (launch->launch == LAB_LAUNCH_WARMUP)
        return lab_replay_cost(fit, launch->rows, 0) + fit->gap_ns[0];

    double factor = value_at(replay, replay->factors, launch);
    if (replay->profiled[launch->frame] >> launch->device & 1 && !launch->shadow)
        return profiled_ns(replay, launch, factor);

    return lab_replay_cost(fit, launch->rows, launch->launch) * factor +
           fit->gap_ns[launch->launch > 0];
}

static double slowdown(void *ctx, uint64_t frame, uint32_t device, uint32_t active)
{
    const struct lab_replay *replay = ctx;

    (void)frame;
    if (active & ~(1u << device))
        return replay->fits[device].slowdown;

    return 1;
}

static double kernel_part(void *ctx, const struct lab_launch *launch)
{
    const struct lab_replay_fit *fit = &((const struct lab_replay *)ctx)->fits[launch->device];

    if (!fit->kernel_of_rows)
        return fit->kernel_part;

    double part = fit->kernel_part * fit->ns_per_row * launch->rows /
                  lab_replay_cost(fit, launch->rows, launch->launch);

    return fmin(part, 1);
}

static double end_frame(void *ctx, uint64_t frame, const double *busy_ns, double wall_ns)
{
    (void)ctx;
    (void)frame;
    (void)busy_ns;
    (void)wall_ns;
    return -1;
}

/* --- Factors ---------------------------------------------------------------------------------- */

/* The device's time in its bands of the frame over the estimate; NaN without bands. A band that was
 * given up would have taken longer: it only counts if it was slow already. */
static double recorded_factor(const struct lab_replay *replay, const struct lab_replay_frame *frame,
                              uint32_t device, bool *profiled)
{
    double took = 0, should = 0, late = 0;

    *profiled = true;
    for (size_t b = 0; b < frame->band_count; b++) {
        const struct lab_replay_band *band = &replay->session->bands[frame->first_band + b];
        if (band->device != device || band->wall_ns <= 0)
            continue;

        double band_took = lab_replay_alone(&replay->fits[device], band);
        double band_should = lab_replay_cost(&replay->fits[device], band->rows, band->launch);
        if (band->good) {
            took += band_took;
            should += band_should;
        } else {
            late = fmax(late, band_took / band_should);
            *profiled = false;
        }
    }

    double factor = NAN;
    if (should > 0)
        factor = took / should;
    if (late > 1 && !(factor > late))
        factor = late;
    *profiled = *profiled && should > 0;

    return clip(factor);
}

/* The device's median factor in the solo sessions of a phase; NaN if there are none. */
static double solo_factor(const struct lab_replay *replay, uint32_t phase, uint32_t device,
                          double *scratch)
{
    size_t count = 0;

    for (size_t s = 0; s < replay->data->session_count; s++) {
        const struct lab_replay_session *session = &replay->data->sessions[s];
        if (session->kind != LAB_REPLAY_SOLO)
            continue;

        for (size_t f = 0; f < session->frame_count && count < replay->world.frames; f++) {
            const struct lab_replay_frame *frame = &session->frames[f];
            if (frame->phase != phase || frame->band_count != 1)
                continue;

            const struct lab_replay_band *band = &session->bands[frame->first_band];
            if (band->device == device && band->good)
                scratch[count++] = lab_replay_alone(&replay->fits[device], band) /
                                   lab_replay_cost(&replay->fits[device], band->rows, 0);
        }
    }

    return clip(lab_replay_median(scratch, count));
}

/* The index of the frame in the session, from `from` on, or of the next one. */
static size_t find_frame(const struct lab_replay_session *session, uint64_t frame, size_t from)
{
    while (from < session->frame_count && session->frames[from].frame < frame)
        from++;
    return from;
}

/* Factors of the frames before .. after, which have one, on a straight line; `before` UINT64_MAX:
 * as `after`. */
static void interpolate(double *factors, uint32_t stride, uint64_t first, uint64_t before,
                        uint64_t after)
{
    double to = factors[after * stride];

    if (before == UINT64_MAX) {
        for (uint64_t f = first; f < after; f++)
            factors[f * stride] = to;
        return;
    }

    double from = factors[before * stride];
    for (uint64_t f = before + 1; f < after; f++) {
        double part = (double)(f - before) / (double)(after - before);

        factors[f * stride] = from + (to - from) * part;
    }
}

/* Fill in the frames of first .. end - 1 in which the device has no factor: straight lines between
 * those that have one. False if no frame has one. */
static bool bridge(const struct lab_replay *replay, uint32_t device, uint64_t first, uint64_t end)
{
    const uint32_t stride = replay->world.device_count;
    double *factors = replay->factors + device;
    uint64_t before = UINT64_MAX;

    for (uint64_t f = first; f < end; f++) {
        if (isnan(factors[f * stride]))
            continue;

        interpolate(factors, stride, first, before, f);
        before = f;
    }

    if (before == UINT64_MAX)
        return false;

    for (uint64_t g = before + 1; g < end; g++)
        factors[g * stride] = factors[before * stride];

    return true;
}

static void fill_recorded(const struct lab_replay *replay, uint32_t device)
{
    const struct lab_replay_session *session = replay->session;
    const uint32_t stride = replay->world.device_count;

    for (uint64_t f = 0; f < replay->world.frames; f++)
        replay->factors[f * stride + device] = NAN;
    for (size_t i = 0; i < session->frame_count; i++) {
        const struct lab_replay_frame *frame = &session->frames[i];
        bool profiled = false;

        replay->factors[frame->frame * stride + device] = recorded_factor(replay, frame, device,
                                                                          &profiled);
        replay->profiled[frame->frame] |= (uint32_t)profiled << device;
    }

    for (size_t s = 0; s < session->shadow_count; s++) {
        struct lab_replay_band shadow = session->shadows[s];
        if (shadow.device != device || shadow.frame >= replay->world.frames || !shadow.good ||
            !isnan(replay->factors[shadow.frame * stride + device]))
            continue;

        shadow.together = 1; /* a shadow runs while the others do a frame */
        replay->factors[shadow.frame * stride + device] =
            clip(lab_replay_alone(&replay->fits[device], &shadow) /
                 lab_replay_cost(&replay->fits[device], shadow.rows, 0));
    }
}

/* Factors of frames without any: within the phase; else from its solo sessions; else from the
 * neighbour phases. */
static void fill_gaps(const struct lab_replay *replay, uint32_t device, double *scratch)
{
    const struct lab_replay_session *session = replay->session;
    const uint32_t stride = replay->world.device_count;

    for (size_t i = 0; i < session->frame_count;) {
        size_t from = i;
        while (i < session->frame_count && session->frames[i].phase == session->frames[from].phase)
            i++;

        uint64_t first = 0, end = replay->world.frames;
        if (from > 0)
            first = session->frames[from].frame;
        if (i < session->frame_count)
            end = session->frames[i].frame;
        if (bridge(replay, device, first, end))
            continue;

        double factor = solo_factor(replay, session->frames[from].phase, device, scratch);
        for (uint64_t f = first; f < end && !isnan(factor); f++)
            replay->factors[f * stride + device] = factor;
    }

    if (!bridge(replay, device, 0, replay->world.frames))
        for (uint64_t f = 0; f < replay->world.frames; f++)
            replay->factors[f * stride + device] = 1;
}

/* Medians over neighbours of the same phase. */
static void fill_levels(const struct lab_replay *replay, uint32_t device)
{
    const struct lab_replay_session *session = replay->session;
    const uint32_t stride = replay->world.device_count;
    size_t here = 0;

    for (uint64_t f = 0; f < replay->world.frames; f++) {
        double near[2 * LEVEL_REACH + 1];
        size_t count = 0;
        uint32_t phase = 0;

        here = find_frame(session, f, here);
        if (here < session->frame_count)
            phase = session->frames[here].phase;
        for (int offset = -LEVEL_REACH; offset <= LEVEL_REACH; offset++) {
            int64_t other = (int64_t)f + offset;
            int64_t index = (int64_t)here + offset;
            if (other < 0 || other >= (int64_t)replay->world.frames)
                continue;

            bool same = index < 0 || index >= (int64_t)session->frame_count ||
                        session->frames[index].phase == phase;
            if (same || offset == 0)
                near[count++] = replay->factors[(uint64_t)other * stride + device];
        }

        replay->levels[f * stride + device] = lab_replay_median(near, count);
    }
}

static bool failed_in(const struct lab_replay_session *session,
                      const struct lab_replay_frame *frame, uint32_t device, bool *ended)
{
    bool failed = false;

    for (size_t b = 0; b < frame->band_count; b++) {
        const struct lab_replay_band *band = &session->bands[frame->first_band + b];
        failed = failed || (band->device == device && !band->good);
        *ended = *ended || (band->device == device && band->good);
    }

    return failed;
}

/* In which frames the device answered, by the tape: when it was usable to the policy. If it no
 * longer was and its band of the frame before failed, it did not answer there either. */
static void fill_answering_by_tape(const struct lab_replay *replay, uint32_t device)
{
    const struct lab_replay_session *session = replay->session;
    uint64_t next = 0;
    bool usable = true;

    for (size_t c = 0; c <= session->change_count; c++) {
        bool end = c == session->change_count;
        if (!end && session->changes[c].device != device)
            continue;

        uint64_t frame = end ? replay->world.frames : session->changes[c].frame;
        for (; next < frame && next < replay->world.frames; next++)
            replay->answering[next] |= (uint32_t)usable << device;
        if (!end)
            usable = session->changes[c].usable;
    }

    for (size_t i = 0; i + 1 < session->frame_count; i++) {
        const struct lab_replay_frame *frame = &session->frames[i];
        bool ended = false, after = replay->answering[session->frames[i + 1].frame] >> device & 1;
        if (!after && failed_in(session, frame, device, &ended))
            replay->answering[frame->frame] &= ~(1u << device);
    }
}

/* Without a tape: a failed device answers again when it next ends a band or a shadow. One failed
 * band between good ones was given up; the device kept answering. */
static void fill_answering_by_bands(const struct lab_replay *replay, uint32_t device)
{
    const struct lab_replay_session *session = replay->session;
    bool answers = true;
    size_t shadow = 0;
    uint64_t next = 0;

    for (size_t i = 0; i < session->frame_count; i++) {
        const struct lab_replay_frame *frame = &session->frames[i];
        bool ended = false, failed = failed_in(session, frame, device, &ended);
        for (; shadow < session->shadow_count && session->shadows[shadow].frame <= frame->frame;
             shadow++)
            ended = ended ||
                    (session->shadows[shadow].device == device && session->shadows[shadow].good);
        answers = ended || (answers && !failed);
        for (; next <= frame->frame; next++)
            replay->answering[next] |= (uint32_t)answers << device;
    }

    for (uint64_t f = 0; f + 1 < replay->world.frames; f++)
        if (f == 0 || replay->answering[f - 1] >> device & 1)
            replay->answering[f] |= replay->answering[f + 1] & 1u << device;
}

static void fill_rows(const struct lab_replay *replay)
{
    uint64_t next = 0;

    for (size_t i = 0; i < replay->session->frame_count; i++) {
        const struct lab_replay_frame *frame = &replay->session->frames[i];
        uint32_t rows = frame->rows;

        if (rows == 0)
            rows = replay->data->rows;
        for (; next <= frame->frame; next++)
            replay->rows[next] = rows;
        replay->recorded[frame->frame] = frame;
    }
}

/* The time of the busiest device in the frame at this index of the session; 0 without bands. */
static double longest_device(const struct lab_replay *replay, size_t place)
{
    const struct lab_replay_frame *frame = &replay->session->frames[place];
    double busy[COX_DEVICES_MAX] = {0}, longest = 0;

    for (size_t b = 0; b < frame->band_count; b++) {
        const struct lab_replay_band *band = &replay->session->bands[frame->first_band + b];
        busy[band->device] += band->gap_ns + band->wall_ns;
        longest = fmax(longest, busy[band->device]);
    }

    return longest;
}

/* The time of a frame beyond the longest device of each pass and the pauses between passes. Missing
 * frames get the median. So do all if several are in flight: a period is not the time of one frame
 * then. */
static void fill_overhead(const struct lab_replay *replay, double *scratch)
{
    const struct lab_replay_session *session = replay->session;
    size_t count = 0;

    for (size_t i = 0; i < session->frame_count; i++) {
        const struct lab_replay_frame *frame = &session->frames[i];
        double longest = longest_device(replay, i);
        if (!frame->good || longest <= 0)
            continue;

        for (const struct lab_replay *of = replay->next_pass; of; of = of->next_pass)
            longest += of->world.before_ns + longest_device(of, i);
        replay->overhead_ns[frame->frame] = fmax(0, frame->period_ns - longest);
        scratch[count++] = frame->period_ns - longest;
    }

    double median = fmax(0, lab_replay_median(scratch, count)); /* 0 of none: fmax ignores NaN */
    for (uint64_t f = 0; f < replay->world.frames; f++)
        if (!replay->recorded[f] || replay->data->in_flight > 1)
            replay->overhead_ns[f] = median;
}

/* Median pause between the pass before, whose session is `earlier`, and this one. */
static double find_pause(const struct lab_replay_session *earlier,
                         const struct lab_replay_session *session, double *scratch)
{
    size_t count = 0;

    for (size_t i = 0; i < session->frame_count; i++)
        if (session->frames[i].good)
            scratch[count++] = fmax(0, session->frames[i].pass_start_ns -
                                           earlier->frames[i].pass_end_ns);
    if (count == 0)
        return 0;

    return lab_replay_median(scratch, count);
}

/* --- Creation --------------------------------------------------------------------------------- */

static bool allocate(struct lab_replay *replay, double **scratch)
{
    size_t frames = (size_t)replay->world.frames, all = frames * replay->world.device_count;

    replay->rows = calloc(frames, sizeof *replay->rows);
    replay->answering = calloc(frames, sizeof *replay->answering);
    replay->profiled = calloc(frames, sizeof *replay->profiled);
    replay->recorded = calloc(frames, sizeof *replay->recorded);
    replay->overhead_ns = calloc(frames, sizeof *replay->overhead_ns);
    replay->factors = malloc(all * sizeof *replay->factors);
    replay->levels = malloc(all * sizeof *replay->levels);
    *scratch = malloc((frames + 1) * sizeof **scratch);

    return replay->rows && replay->answering && replay->profiled && replay->recorded &&
           replay->overhead_ns && replay->factors && replay->levels && *scratch;
}

static void fill(struct lab_replay *replay, double *scratch)
{
    fill_rows(replay);
    for (uint32_t d = 0; d < replay->world.device_count; d++) {
        if (!replay->fits[d].bands)
            replay->fits[d].ns_per_row = 1; /* it never answers, but costs must be positive */
        else if (replay->session->change_count)
            fill_answering_by_tape(replay, d);
        else
            fill_answering_by_bands(replay, d);
        fill_recorded(replay, d);
        fill_gaps(replay, d, scratch);
        fill_levels(replay, d);
    }
}

bool lab_replay_possible(const struct lab_replay_session *session, char *why, size_t why_bytes)
{
    if (session->frame_count == 0)
        return lab_replay_refuse(why, why_bytes, "it has no frames");
    if (session->band_count == 0)
        return lab_replay_refuse(why, why_bytes, "it has no bands");

    uint64_t last = session->frames[session->frame_count - 1].frame;
    if (last >= MISSING_MAX + 2 * (uint64_t)session->frame_count)
        return lab_replay_refuse(why, why_bytes, "it has only %zu frame%s up to frame %llu",
                                 session->frame_count, session->frame_count == 1 ? "" : "s",
                                 (unsigned long long)last);

    return true;
}

/* Whether the kernels' part of the time is known of each device that had rows. */
static bool has_kernel_parts(const struct lab_replay *replay)
{
    for (uint32_t d = 0; d < replay->data->device_count; d++)
        if (replay->fits[d].bands && !(replay->fits[d].kernel_part > 0))
            return false;

    return true;
}

/* The world of one pass; NULL if out of memory. `earlier`: the session of the pass before, or
 * NULL. */
static struct lab_replay *create_pass(const struct lab_replay_data *data,
                                      const struct lab_replay_session *session,
                                      const struct lab_replay_session *earlier)
{
    struct lab_replay *replay = calloc(1, sizeof *replay);
    double *scratch = NULL;
    bool good = false;

    if (!replay)
        return NULL;

    replay->data = data;
    replay->session = session;
    replay->world = (struct lab_world){.ctx = replay,
                                       .device_count = data->device_count,
                                       .frames = session->frames[session->frame_count - 1].frame +
                                                 1,
                                       .begin_run = begin_run,
                                       .begin_frame = begin_frame,
                                       .launch_ns = launch_ns,
                                       .expected_ns = expected_ns,
                                       .slowdown = slowdown,
                                       .end_frame = end_frame,
                                       .hints = session->hints};
    if (allocate(replay, &scratch) &&
        lab_replay_fit(data, lab_replay_main_phase(session), replay->fits)) {
        if (has_kernel_parts(replay))
            replay->world.kernel_part = kernel_part;
        fill(replay, scratch);
        if (earlier)
            replay->world.before_ns = find_pause(earlier, session, scratch);
        if (data->next_pass) {
            const size_t place = (size_t)(session - data->sessions);

            replay->next_pass = create_pass(data->next_pass, &data->next_pass->sessions[place],
                                            session);
            if (replay->next_pass)
                replay->world.next_pass = &replay->next_pass->world;
        }

        good = !data->next_pass || replay->next_pass;
        if (good && !earlier)
            fill_overhead(replay, scratch);
    }

    free(scratch);
    if (!good)
        lab_replay_destroy(&replay);

    return replay;
}

/* The first device that had rows in some passes only: its costs in the others are unknown. The
 * number of devices if no device is found. */
static uint32_t find_unknown(const struct lab_replay *replay)
{
    for (const struct lab_replay *pass = replay->next_pass; pass; pass = pass->next_pass)
        for (uint32_t d = 0; d < replay->world.device_count; d++)
            if (!pass->fits[d].bands != !replay->fits[d].bands)
                return d;
    return replay->world.device_count;
}

bool lab_replay_create(const struct lab_replay_data *data, const struct lab_replay_session *session,
                       struct lab_replay **out, char *why, size_t why_bytes)
{
    char lacks[160];

    *out = NULL;
    if (!lab_replay_possible(session, lacks, sizeof lacks))
        return lab_replay_refuse(why, why_bytes, "cannot replay session %lld: %s",
                                 (long long)session->session, lacks);

    *out = create_pass(data, session, NULL);
    if (!*out)
        return lab_replay_refuse(why, why_bytes, "out of memory");

    const uint32_t unknown = find_unknown(*out);
    if (unknown == data->device_count)
        return true;

    lab_replay_destroy(out);

    return lab_replay_refuse(why, why_bytes,
                             "cannot replay session %lld: device %u has no rows in some passes",
                             (long long)session->session, unknown);
}

void lab_replay_destroy(struct lab_replay **replay)
{
    if (!*replay)
        return;

    lab_replay_destroy(&(*replay)->next_pass);
    free((*replay)->rows);
    free((*replay)->answering);
    free((*replay)->profiled);
    free((*replay)->recorded);
    free((*replay)->overhead_ns);
    free((*replay)->factors);
    free((*replay)->levels);
    free(*replay);
    *replay = NULL;
}

bool lab_replay_policy(const char *name, struct cox_policy *policy)
{
    static const char no_pool[] = ":no-pool";
    const size_t ending = strlen(no_pool);
    char base[64];

    snprintf(base, sizeof base, "%s", name);
    size_t length = strlen(base);
    bool without = length > ending && strcmp(base + length - ending, no_pool) == 0;
    if (without)
        base[length - ending] = '\0';
    if (!*base)
        return false;

    const struct cox_policy *found = program_policy_find(base);
    if (!found)
        return false;

    *policy = *found;
    policy->name = name;
    if (without)
        policy->assign = NULL;

    return true;
}

/* Whether rows on demand were off: only the session of a policy that can hand them out shows it. */
static bool without_pool(const struct lab_replay_data *data)
{
    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        struct cox_policy policy;
        if (session->taped && session->no_pool && lab_replay_policy(session->policy, &policy) &&
            policy.assign)
            return true;
    }

    return false;
}

void lab_replay_options(const struct lab_replay *replay, struct lab_sim_options *options)
{
    const struct lab_replay_session *session = replay->session;

    *options = (struct lab_sim_options){.in_flight = replay->data->in_flight,
                                        .min_band_rows = session->min_band_rows,
                                        .no_pool = without_pool(replay->data),
                                        .no_shadow = session->no_shadow,
                                        .policy = session->options};
    if (session->profile_loaded)
        options->profiles = session->profiles[0];
    if (options->policy.objective == COX_OBJECTIVE_ENERGY) /* there is no meter in a replay */
        options->policy.objective = COX_OBJECTIVE_THROUGHPUT;
}
