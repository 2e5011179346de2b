/* The content of a file is an array of struct cox_device_profile, as in memory. The passes come in
 * order, and within a pass the devices come in the order of their identities. The key includes the
 * format's number and the machine's byte order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device_profile.h"
#include "base/sources.h"
#include "cache.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES_LEAST = 8 }; /* a session of fewer frames says little */

/* Increment this when the meaning of the measurements changes, or the struct. */
static const uint32_t key_version = 5;

/* ---- the key ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void feed_text(struct cox__digest *sha, const char *text)
{
    cox__cache_feed(sha, or_empty(text), strlen(or_empty(text)));
}

#define FEED_NUMBERS(sha, ...) \
    cox__cache_feed((sha), (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}))

static void feed_device(struct cox__digest *sha, const struct cox__device *device)
{
    const struct cox_device_info *info = &device->info;
    feed_text(sha, info->id);
    feed_text(sha, info->driver);
    FEED_NUMBERS(sha, info->type, info->mode, info->compute_units, info->subdevice);
}

static void feed_variants(struct cox__digest *sha, const struct cox__pass *pass,
                          const struct cox__device *device)
{
    for (uint32_t s = 0; s < pass->stage_count; s++) {
        const struct cox__variant *variant =
            cox__pipeline_stage_variant(&pass->stages[s], device->device, device->info.type);
        if (!variant)
            continue;

        feed_text(sha, variant->source);
        feed_text(sha, variant->options);
        cox__sources_feed(sha, variant->headers);
        cox__sources_feed(sha, variant->libraries);
        cox__cache_feed(sha, variant->code, variant->code_bytes);
        FEED_NUMBERS(sha, s, variant->local_columns, variant->local_rows, variant->item_columns,
                     variant->item_rows);
    }
}

static void feed_pass(struct cox__digest *sha, const struct cox__pass *pass,
                      const struct cox__sharing *sharing)
{
    feed_text(sha, sharing->policy.name);
    FEED_NUMBERS(sha, pass->rows, pass->absolute, pass->row_alignment, pass->binding_count,
                 pass->stage_count, sharing->devices, sharing->lead);

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        FEED_NUMBERS(sha, binding->row_access, binding->access, binding->pitch_bytes,
                     binding->row_divisor, binding->offset_bytes, binding->border_above,
                     binding->border_below, binding->halo_above, binding->halo_below,
                     binding->bytes);
    }

    for (uint32_t s = 0; s < pass->stage_count; s++) {
        const struct cox__stage *stage = &pass->stages[s];
        feed_text(sha, stage->kernel);
        FEED_NUMBERS(sha, stage->columns, stage->one_dimension, stage->arg_count);
        for (uint32_t a = 0; a < stage->arg_count; a++)
            FEED_NUMBERS(sha, stage->args[a].kind, stage->args[a].index, stage->args[a].offset,
                         stage->args[a].bytes);
    }
}

static bool before(const struct cox_device_info *a, const struct cox_device_info *b)
{
    int order = strcmp(a->id, b->id);

    if (order)
        return order < 0;
    return a->subdevice < b->subdevice;
}

/* Find the order of the devices in the file, which does not depend on the session's order. */
static void sort_devices(cox_session *session)
{
    uint32_t *order = session->profile.order;
    for (uint32_t u = 0; u < session->devices.count; u++) {
        uint32_t at = u;
        for (; at > 0 &&
               before(&session->devices.list[u].info, &session->devices.list[order[at - 1]].info);
             at--)
            order[at] = order[at - 1];
        order[at] = u;
    }
}

static void make_key(cox_session *session, const struct cox__session_spec *params)
{
    struct cox__digest sha;
    cox__digest_begin(&sha);

    FEED_NUMBERS(&sha, key_version, session->devices.count, session->settings.min_band_rows,
                 params->policy_options->objective, params->policy_options->deadline_ns,
                 session->pipeline.params_bytes, session->pipeline.pass_count,
                 session->runtime->arithmetic);

    for (uint32_t i = 0; i < session->devices.count; i++)
        feed_device(&sha, &session->devices.list[session->profile.order[i]]);

    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        feed_pass(&sha, &session->pipeline.passes[p], &session->sharing[p]);
        for (uint32_t i = 0; i < session->devices.count; i++)
            feed_variants(&sha, &session->pipeline.passes[p],
                          &session->devices.list[session->profile.order[i]]);
    }

    cox__digest_end(&sha, session->profile.key);
}

/* ---- the content ---- */

static const double a_day_ns = 86400e9;

static bool in_range(double value, double least, double most)
{
    return value >= least && value <= most; /* false for NaN */
}

bool cox__device_profiles_plausible(const struct cox_device_profile *profiles, uint32_t count)
{
    double shares = 0;
    bool any = false;

    for (uint32_t d = 0; d < count; d++) {
        const struct cox_device_profile *profile = &profiles[d];
        const double least_per_row_ns = profile->frames > 0 ? 1e-6 : 0;
        if (!in_range(profile->share, 0, 1) || !in_range(profile->frames, 0, 1e15) ||
            !in_range(profile->fixed_ns, 0, a_day_ns) ||
            !in_range(profile->launch_ns, 0, a_day_ns) ||
            !in_range(profile->ns_per_row, least_per_row_ns, a_day_ns) ||
            !in_range(profile->single_device_ns, 0, a_day_ns))
            return false;

        shares += profile->share;
        any |= profile->frames > 0;
    }
    return any && shares <= 1.01; /* less than 1: the rest was handed out on demand */
}

/* A pass that follows another pass's split only has times of single devices. */
static bool times_plausible(const struct cox_device_profile *profiles, uint32_t count)
{
    bool plausible = true;
    for (uint32_t d = 0; d < count; d++)
        plausible &= in_range(profiles[d].single_device_ns, 0, a_day_ns);
    return plausible;
}

static bool pass_plausible(const cox_session *session, uint32_t pass,
                           const struct cox_device_profile *profiles)
{
    if (session->sharing[pass].lead == pass)
        return cox__device_profiles_plausible(profiles, session->devices.count);
    return times_plausible(profiles, session->devices.count);
}

/* Read the session's file into session->profile.loaded, in the order of the session's devices. */
static bool read_file(cox_session *session)
{
    const struct cox__log *log = &session->runtime->log;
    size_t bytes;
    struct cox_device_profile *sorted = cox__cache_load(session->runtime->cache_dir,
                                                        &cox__cache_profiles, session->profile.key,
                                                        &bytes, log);

    const uint32_t passes = session->pipeline.pass_count, devices = session->devices.count;
    bool good = sorted && bytes == (size_t)passes * devices * sizeof *sorted;
    for (uint32_t p = 0; good && p < passes; p++)
        good = pass_plausible(session, p, &sorted[p * devices]);

    if (sorted && !good)
        cox__log(log, COX_LOG_INFO, "device profiles: a file without usable figures is ignored");

    for (uint32_t p = 0; good && p < passes; p++)
        for (uint32_t i = 0; i < devices; i++)
            session->profile.loaded[p][session->profile.order[i]] = sorted[p * devices + i];

    free(sorted);
    return good;
}

static bool policies_take_profiles(const cox_session *session)
{
    bool take = true;
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++)
        take = take && session->sharing[p].policy.load_profile &&
               session->sharing[p].policy.save_profile;
    return take;
}

/* Give the measurements to a policy. Passes that share a split get the first one's profile, with
 * the single-device times of all added up. */
static void give(cox_session *session, uint32_t lead)
{
    struct cox_device_profile profiles[COX_DEVICES_MAX];
    memcpy(profiles, session->profile.loaded[lead], session->devices.count * sizeof *profiles);

    for (uint32_t u = 0; u < session->devices.count; u++)
        for (uint32_t p = lead + 1; p < lead + session->sharing[lead].count; p++) {
            const double more_ns = session->profile.loaded[p][u].single_device_ns;
            double *single_ns = &profiles[u].single_device_ns;
            if (*single_ns > 0 && more_ns > 0)
                *single_ns += more_ns;
            else
                *single_ns = 0;
        }

    cox__policy_load_profile(session, lead, profiles);
}

/* Start the session with session->profile.loaded. */
static void begin_with_loaded(cox_session *session)
{
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        if (session->sharing[p].lead == p)
            give(session, p);

        for (uint32_t u = 0; u < session->devices.count; u++)
            session->devices.list[u].passes[p].single_device_ns =
                (uint64_t)session->profile.loaded[p][u].single_device_ns;
    }

    session->profile.is_loaded = true;
    cox__log(&session->runtime->log, COX_LOG_INFO,
             "the session starts with measurements from device profiles");
}

/* Collect what the session learnt of a pass, by device. A pass that follows another pass's split
 * only has single-device times. Returns false if there is nothing useful. Frames may be running. */
static bool collect(cox_session *session, uint32_t pass, struct cox_device_profile *profiles)
{
    double single_device_ns[COX_DEVICES_MAX] = {0};

    pthread_mutex_lock(&session->lock);
    for (uint32_t u = 0; u < session->devices.count; u++)
        single_device_ns[u] = (double)session->devices.list[u].passes[pass].single_device_ns;
    pthread_mutex_unlock(&session->lock);

    if (session->sharing[pass].lead != pass) {
        for (uint32_t u = 0; u < session->devices.count; u++)
            profiles[u] = (struct cox_device_profile){.single_device_ns = single_device_ns[u]};
        return true;
    }

    if (!cox__policy_save_profile(session, pass, profiles))
        return false;

    for (uint32_t u = 0; u < session->devices.count; u++) {
        const double share = profiles[u].share;
        /* Keep what was known of a device that this session never used. Without a loaded profile
         * that is all zero. */
        if (profiles[u].frames == 0)
            profiles[u] = session->profile.loaded[pass][u];

        profiles[u].share = share;
        if (profiles[u].single_device_ns == 0 || session->sharing[pass].count > 1)
            profiles[u].single_device_ns = single_device_ns[u];
    }
    return cox__device_profiles_plausible(profiles, session->devices.count);
}

/* Whether the session has measured enough, on all its devices: if one has left, the others learn to
 * work without it. */
static bool has_learnt(cox_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool all = !session->no_device && session->counts.done >= FRAMES_LEAST;
    for (uint32_t u = 0; u < session->devices.count; u++)
        all = all && cox__device_is_active(&session->devices.list[u]);
    pthread_mutex_unlock(&session->lock);

    return all;
}

/* ---- from a warm_start ---- */

/* Whether both sessions run the same passes by the same policies on the same devices. */
static bool is_alike(const cox_session *a, const cox_session *b)
{
    bool alike = a->devices.count == b->devices.count &&
                 a->pipeline.pass_count == b->pipeline.pass_count;

    for (uint32_t u = 0; alike && u < a->devices.count; u++)
        alike = a->devices.list[u].device == b->devices.list[u].device;

    for (uint32_t p = 0; alike && p < a->pipeline.pass_count; p++)
        alike = a->sharing[p].lead == b->sharing[p].lead &&
                a->sharing[p].devices == b->sharing[p].devices &&
                strcmp(a->sharing[p].policy.name, b->sharing[p].policy.name) == 0;
    return alike;
}

/* Number of bytes that a pass reads and writes. */
static double work_of(const struct cox__pass *pass)
{
    double bytes = 1;
    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (cox__by_rows(&pass->bindings[i]))
            bytes += (double)pass->bindings[i].pitch_bytes * pass->rows /
                     pass->bindings[i].row_divisor;
    return bytes;
}

static void scale(struct cox_device_profile *profiles, uint32_t count, const struct cox__pass *from,
                  const struct cox__pass *to)
{
    const double work = work_of(to) / work_of(from), rows = (double)to->rows / from->rows;

    for (uint32_t u = 0; u < count; u++) {
        profiles[u].single_device_ns *= work;
        profiles[u].ns_per_row *= work / rows;
    }
}

static bool take_over(cox_session *session, cox_session *from)
{
    bool good = has_learnt(from) && is_alike(session, from);
    for (uint32_t p = 0; good && p < session->pipeline.pass_count; p++) {
        struct cox_device_profile *profiles = session->profile.loaded[p];
        good = collect(from, p, profiles);
        scale(profiles, session->devices.count, &from->pipeline.passes[p],
              &session->pipeline.passes[p]);
        good = good && pass_plausible(session, p, profiles);
    }

    if (!good)
        memset(session->profile.loaded, 0, sizeof session->profile.loaded);
    return good;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(or_empty(a), or_empty(b)) == 0;
}

static bool same_code(const struct cox__variant *a, const struct cox__variant *b)
{
    return a->code_bytes == b->code_bytes &&
           (!a->code_bytes || memcmp(a->code, b->code, a->code_bytes) == 0);
}

static bool same_variants(const struct cox__stage *a, const struct cox__stage *b)
{
    bool same = a->variant_count == b->variant_count && same_text(a->kernel, b->kernel);

    for (uint32_t v = 0; same && v < a->variant_count; v++) {
        const struct cox__variant *one = &a->variants[v], *other = &b->variants[v];
        same = one->device_plus_1 == other->device_plus_1 && one->type == other->type &&
               one->local_columns == other->local_columns && one->local_rows == other->local_rows &&
               same_text(one->options, other->options) && same_text(one->source, other->source) &&
               cox__sources_equal(one->headers, other->headers) &&
               cox__sources_equal(one->libraries, other->libraries) && same_code(one, other);
    }
    return same;
}

static bool same_kernels(const cox_session *a, const cox_session *b)
{
    bool same = true;
    for (uint32_t p = 0; same && p < a->pipeline.pass_count; p++) {
        const struct cox__pass *one = &a->pipeline.passes[p], *other = &b->pipeline.passes[p];
        same = one->stage_count == other->stage_count;
        for (uint32_t s = 0; same && s < one->stage_count; s++)
            same = same_variants(&one->stages[s], &other->stages[s]);
    }
    return same;
}

bool cox__device_profile_skip_warmup(cox_session *session, cox_session *warm_start)
{
    if (!session->profile.is_loaded || !has_learnt(warm_start) || !is_alike(session, warm_start) ||
        !same_kernels(session, warm_start))
        return false;

    /* A warm-up of `warm_start` that cox_session_warm asked for may still run. */
    cox__watchdog_lock(session->runtime->watchdog);
    for (uint32_t u = 0; u < session->devices.count; u++) {
        session->devices.list[u].blocks_in_submit = warm_start->devices.list[u].blocks_in_submit;
        session->devices.any_blocks |= session->devices.list[u].blocks_in_submit;
    }
    cox__watchdog_unlock(session->runtime->watchdog);
    return true;
}

void cox__device_profile_load(cox_session *session, const struct cox__session_spec *params)
{
    if (!policies_take_profiles(session))
        return;

    session->profile.save = session->runtime->cache_dir && !params->no_profile;
    if (session->profile.save) {
        sort_devices(session);
        make_key(session, params);
    }

    if ((session->profile.save && read_file(session)) ||
        (params->warm_start && take_over(session, params->warm_start)))
        begin_with_loaded(session);
}

void cox__device_profile_save(cox_session *session)
{
    struct cox_device_profile sorted[COX_PASSES_MAX * COX_DEVICES_MAX], profiles[COX_DEVICES_MAX];
    if (!session->profile.save || !has_learnt(session))
        return;

    bool worth = true;
    for (uint32_t p = 0; worth && p < session->pipeline.pass_count; p++) {
        worth = collect(session, p, profiles);
        for (uint32_t i = 0; worth && i < session->devices.count; i++)
            sorted[p * session->devices.count + i] = profiles[session->profile.order[i]];
    }

    if (worth)
        cox__cache_store(session->runtime->cache_dir, &cox__cache_profiles, session->profile.key,
                         sorted,
                         (size_t)session->pipeline.pass_count * session->devices.count *
                             sizeof *sorted,
                         &session->runtime->log);
    else
        cox__log(&session->runtime->log, COX_LOG_DEBUG,
                 "device profiles: nothing worth saving was measured");
}
