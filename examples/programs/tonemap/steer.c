/* cox-tonemap steer: from the histograms of all parts, in the order of the film, to the light of
 * each frame. It is the light that one machine finds when it maps the whole film (runtime/stream).
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/by_first.h"
#include "common/outfile.h"
#include "jobs.h"
#include "part.h"
#include "range.h"
#include "scenes.h"
#include "messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the parts are of one film and contiguous. */
static bool check_parts(const struct part *parts, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct part *before = &parts[i - 1], *part = &parts[i];
        if (!profile_same(&parts[0].profile, parts[0].text.path, &part->profile, part->text.path) ||
            !range_follows("part", before->text.path, before->first + before->count,
                           part->text.path, part->first))
            return false;
        if (before->last && part->count)
            return message_incompatible("%s is the end of the film, but %s has frames after it",
                                        before->text.path, part->text.path);
    }
    return true;
}

/* How the curve follows the film. */
struct steering {
    struct cox_adaptation_state state;
    struct cox_video_shape shape; /* of the last frame */
    struct scenes_light now;
};

/* Let the curve follow the next frame, which `profile` describes. Returns whether a scene begins
 * with it. source.c has checked the stream's peak before it came into the profile. */
static bool follow(struct steering *steering, const struct profile *profile,
                   const uint32_t *histogram)
{
    struct cox_video_settings settings = profile->settings;
    float gain = 1;
    if (settings.gain > 0)
        gain = settings.gain;
    settings.prior_nits = profile->steering.known_peak_nits;
    if (profile->steering.trusts)
        settings.most_nits = profile->steering.known_peak_nits;

    const bool begins = cox_video_adapt(&steering->state, &profile->shape, histogram, &settings);
    scenes_light_set(&steering->now, settings.peak_nits * gain, settings.gain * gain);
    return begins;
}

/* The light of a part's frames. Without lookahead a frame has the light that was found with the
 * frame before it. The first frame of the film, and the first of other colours, has its own. */
static bool steer_part(struct part *part, struct steering *steering, struct scenes *scenes)
{
    const struct profile *profile = &part->profile;
    uint32_t histogram[COX_VIDEO_BINS];
    for (uint64_t n = 0; n < part->count; n++) {
        const uint64_t at = part->first - scenes->first + n;
        struct scenes_light *light = &scenes->light[at];
        const struct scenes_light before = steering->now;
        if (!profile->steering.on) {
            *light = before;
            continue;
        }

        if (!part_next(part, histogram))
            return false;
        const bool restarts = !at || !film_same_colours(&profile->shape, &steering->shape);
        if (restarts)
            steering->state = (struct cox_adaptation_state){0};
        steering->shape = profile->shape;

        const bool begins = follow(steering, profile, histogram);
        *light = before;
        if (profile->steering.lookahead || restarts)
            *light = steering->now;
        light->begins = begins;
    }

    return part->text.at == part->text.bytes ||
           message_incompatible("%s: damaged: more histograms than frames", part->text.path);
}

/* Before the first frame. */
static void begin(struct steering *steering, const struct profile *profile)
{
    *steering = (struct steering){.now = {.peak_nits = 1000, .gain = 1}};
    if (profile->settings.peak_nits > 0)
        steering->now.peak_nits = profile->settings.peak_nits;
    if (profile->settings.gain > 0)
        steering->now.gain = profile->settings.gain;
}

/* Whether the output is a scene file for these parts already. People may have changed its
 * scenes. */
static bool is_done(const struct part *parts, uint64_t count, const char *output)
{
    struct scenes there;
    if (access(output, F_OK) || !scenes_read(&there, output))
        return false;

    const bool done = profile_equal(&there.profile, &parts[0].profile) &&
                      there.first == parts[0].first && there.count == count;
    scenes_free(&there);
    return done;
}

static void warn_of_gaps(const struct part *parts, const struct part *last)
{
    if (parts->first)
        message_warning("%s: begins with frame %" PRIu64
                        "; the peak is measured as if the film began there",
                        parts->text.path, parts->first);
    if (!last->last)
        message_warning("%s: may not be the end of the film; later frames are in no part",
                        last->text.path);
}

static void print_written(const struct scenes *scenes, const char *output)
{
    const uint64_t frames = scenes->count;
    uint64_t cuts = 0;
    for (uint64_t i = 1; i < frames; i++)
        cuts += scenes->light[i].begins;

    say("written   %s (frames %" PRIu64 " to %" PRIu64 "%s, %" PRIu64 " cut%s)\n", output,
        scenes->first, scenes->first + frames - (frames > 0),
        scenes->last ? ", to the film's end" : "", cuts, plural(cuts));
}

static bool steer_all(struct part *parts, uint32_t count, const struct options *options)
{
    const char *output = options->output;
    struct steering steering;
    qsort(parts, count, sizeof *parts, by_first);
    if (!check_parts(parts, count))
        return false;

    const struct part *last = &parts[count - 1];
    struct scenes scenes = {
        .profile = parts[0].profile, .first = parts[0].first, .last = last->last};
    const uint64_t frames = last->first + last->count - scenes.first;
    if (frames > SCENES_FRAMES_MAX)
        return message_incompatible("%s: a film can have at most %d frames", last->text.path,
                                    SCENES_FRAMES_MAX);

    warn_of_gaps(parts, last);
    if (!options->overwrite && is_done(parts, frames, output)) {
        say("done      %s exists already; use --overwrite to write it again\n", output);
        return true;
    }

    if (!scenes_make(&scenes, frames))
        return false;
    begin(&steering, &scenes.profile);
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = steer_part(&parts[i], &steering, &scenes);

    good = good && scenes_write(&scenes, output);
    if (good)
        print_written(&scenes, output);
    scenes_free(&scenes);
    return good;
}

bool steer_job(const struct options *options)
{
    const uint32_t count = options->input_count;
    uint32_t opened = 0;
    for (uint32_t i = 0; i < count; i++)
        if (outfile_same_place(options->inputs[i], options->output))
            return message_error(
                "%s: output and an input are the same file; give the output another name",
                options->output);

    struct part *parts = calloc(count, sizeof *parts);
    if (!parts)
        return message_error("out of memory");
    while (opened < count && part_open(&parts[opened], options->inputs[opened]))
        opened++;
    const bool good = opened == count && steer_all(parts, count, options);

    for (uint32_t i = 0; i < opened; i++)
        part_close(&parts[i]);
    free(parts);
    return good;
}
