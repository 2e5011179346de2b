/* A runtime on the scripted devices, with the kernels, frames and logs that engine tests share. Nothing here
 * asserts; an unexpected failure aborts the program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_RIG_H
#define COX_TESTS_FAKE_RIG_H

#include "specs.h"
#include "fake_backend.h"
#include <coxswain/coxswain.h>

enum { RIG_DONE_MAX = 4096, RIG_REPORTS_MAX = 4096 };

/* Per-frame parameters of the kernels. */
struct rig_params {
    uint32_t add;
    uint32_t columns;
};

struct rig_report {
    struct cox_frame_report frame; /* `bands` and `passes` point to this struct's own copies */
    struct cox_band_report *bands;
    struct cox_pass_report passes[COX_PASSES_MAX];
};

struct rig;

/* A runtime on these devices. Sets `kernels` and `kernel_count` itself. Captures the log at level DEBUG. */
struct rig *rig_new(const struct fake_params *params);

/* Like rig_new, with a cache directory. */
struct rig *rig_new_in(const struct fake_params *params, const char *cache_dir);

/* Destroy the runtime, then the fake. Returns what was wrong, "" if nothing (static storage). Destroy sessions and
 * buffers first. */
const char *rig_end(struct rig **rig);

struct fake *rig_fake(struct rig *rig);
cox_runtime *rig_runtime(struct rig *rig);

/* How often the captured log contains the text, and whether it does. */
uint32_t rig_logged_times(struct rig *rig, const char *text);
bool rig_logged(struct rig *rig, const char *text);
/* The whole log, for messages. */
const char *rig_log(struct rig *rig);

/* Records the callbacks of one session: pass `rig_done` with the rig as `user`. */
void rig_done(void *user, uint64_t frame, cox_status status);
uint32_t rig_done_count(struct rig *rig);
uint64_t rig_done_frame(struct rig *rig, uint32_t index);
cox_status rig_done_status(struct rig *rig, uint32_t index);

/* Records reports: .report = rig_report, .report_user = rig. Read them when no frame is in flight. */
void rig_report(void *user, const struct cox_frame_report *report);
uint32_t rig_report_count(struct rig *rig);
const struct rig_report *rig_report_at(struct rig *rig, uint32_t index);
/* The next report of an application's frame after `after`; NULL = the first one. Returns NULL if there is no other. */
const struct rig_report *rig_next_report(struct rig *rig, const struct rig_report *after);

struct cox_session_info rig_info(cox_session *session);

/* How often the session's devices were lost, summed. */
uint32_t rig_times_lost(cox_session *session);

/* The stages. Each is a C function of this name that works on bytes, `columns` of them per row. The column count is
 * a parameter, so the pitch may be larger. Bindings are in this order:
 *
 *   rig_map      in ROWS, out ROWS       out = in * 3 + row * 7 + add
 *   rig_halo     in HALO, out ROWS       out = sum over the rows within halo_rows, clipped at the edges, + row
 *   rig_table    in ROWS, out ROWS, table WHOLE (256 bytes)
 *   rig_count    in ROWS, histogram REDUCE (256 x uint32)
 *   rig_chroma   luma ROWS, chroma ROWS /2 read, out ROWS, chroma out ROWS /2
 *   rig_first    in ROWS, middle ROWS, out ROWS:   middle = in + 5
 *   rig_second   the same bindings:                out = middle ^ row
 *   rig_inplace  buffer ROWS read and written      buffer = buffer * 3 + 1
 *   rig_near     in HALO, out ROWS or a band's own   out = row above * 3 + row * 5 + row below * 7 + number of the row
 *   rig_pairs    in HALO, own /2                   own = row * 3 + row below, for each even row
 *   rig_unpair   own /2, out ROWS                  out = own row above * 3 + own row * 5 + own row below * 7 + row
 *   rig_turn     in WHOLE, out ROWS                out = in transposed, + 1
 *   rig_flip     in WHOLE, out ROWS                out = in, the last row first, + add
 *
 * A test's own stage may use these kernels with other bindings, which its arguments name. */
extern const struct cox__stage rig_stage_map;
extern const struct cox__stage rig_stage_halo;
extern const struct cox__stage rig_stage_table;
extern const struct cox__stage rig_stage_count;
extern const struct cox__stage rig_stage_chroma;
extern const struct cox__stage rig_stages_two[2];
extern const struct cox__stage rig_stage_inplace;

/* A variant for any device, whose arguments are one binding to read and one to write. */
extern const struct cox__variant rig_any_device;
#define RIG_STAGE(its_kernel, in, out)                                                                          \
    {                                                                                                           \
        .kernel = (its_kernel), .columns = 64, .variant_count = 1, .variants = &rig_any_device, .arg_count = 4, \
        .args = (const struct cox__arg[])                                                                       \
        {                                                                                                       \
            COX__ARG_BUFFER(in), COX__ARG_BUFFER(out), COX__ARG_ORIGIN(in), COX__ARG_ORIGIN(out)                \
        }                                                                                                       \
    }

/* A stage with an array of arguments. */
#define RIG_STAGE_OF(its_kernel, its_columns, its_variant, its_args)                                     \
    {                                                                                                    \
        .kernel = (its_kernel), .columns = (its_columns), .variant_count = 1, .variants = (its_variant), \
        .arg_count = sizeof(its_args) / sizeof *(its_args), .args = (its_args)                           \
    }

/* A pass with these arrays. More fields may follow. */
#define RIG_PASS(its_uses, its_stages, ...)                                                           \
    {                                                                                                 \
        .use_count = sizeof(its_uses) / sizeof *(its_uses), .uses = (its_uses),                       \
        .stage_count = sizeof(its_stages) / sizeof *(its_stages), .stages = (its_stages), __VA_ARGS__ \
    }

/* The results of rig_near and rig_turn for a whole frame, computed without bands. rig_turn needs as many rows as
 * columns. */
void rig_near_rows(const unsigned char *in, unsigned char *out, uint32_t rows, uint32_t columns, size_t pitch);
void rig_turn_rows(const unsigned char *in, unsigned char *out, uint32_t rows, uint32_t columns, size_t pitch);

/* Called at the end of rig_map, rig_halo and rig_table with the index of the output binding, unless it is NULL. */
extern void (*rig_spy)(const struct fake_args *args, uint32_t out);
/* Called likewise at the beginning of rig_map. */
extern void (*rig_spy_first)(const struct fake_args *args, uint32_t out);

/* A cox_merge_fn that adds uint32 counters. */
void rig_merge_sum(void *into, const void *partial, size_t bytes, void *user);

/* Frames for sessions of `rig_map` alone, the common case. */
struct rig_frames {
    struct rig *rig;
    uint32_t rows;
    uint32_t columns;
    size_t pitch;
    uint32_t count;
    cox_buffer **in;
    cox_buffer **out;
    struct rig_params *params;
};

/* `count` frames of random content. */
struct rig_frames *rig_frames_new(struct rig *rig, uint32_t rows, uint32_t columns, size_t pitch, uint32_t count);
void rig_frames_free(struct rig_frames **frames);

/* Create a session of rig_map for these frames. It keeps all fields of `extra` except rows, bindings, stages and
 * params_bytes. */
cox_status rig_map_session(struct rig_frames *frames, const struct cox__session_spec *extra, cox_session **out);

/* Submit frame `index % count` with rig_done. Overwrites its output first, unless `nowait` is set. Use more frames
 * than can be in flight. */
cox_status rig_submit(struct rig_frames *frames, cox_session *session, uint32_t index, bool nowait);

/* One of the rig's frames. */
#define RIG_FRAME(frames, i)                                                                    \
    &(const struct cox__frame_spec)                                                             \
    {                                                                                           \
        .buffers = (cox_buffer *const[]){(frames)->in[i], (frames)->out[i]}, .buffer_count = 2, \
        .params = &(frames)->params[i]                                                          \
    }

/* The first byte of a frame that differs from rig_map's result, as text; "" if none (static storage per thread). */
const char *rig_check(const struct rig_frames *frames, uint32_t index);

/* A policy that returns the splits of `rig_splits`, one per frame; the last one repeats. Its state is in these
 * variables, so use it for one session at a time. */
extern const struct cox_policy rig_policy;

/* For policies without options: rig_policy_bytes and rig_policy_init give a state that is one seed, this value +
 * the frame's rows. */
extern uint64_t rig_policy_seed;
size_t rig_policy_bytes(uint32_t device_count);
cox_status rig_policy_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options);

extern struct cox_split rig_splits[1024];
extern uint32_t rig_split_count;

/* Append a split: pairs of device and rows, bands in row order. */
void rig_add_split(uint32_t bands, const uint32_t (*device_rows)[2]);

/* Replace all splits by this one. */
void rig_set_split(uint32_t bands, const uint32_t (*device_rows)[2]);

/* Append a random split of `rows` over `devices`, cut at multiples of the row alignment. */
void rig_add_random_split(uint64_t *seed, uint32_t rows, uint32_t row_alignment, uint32_t devices);

/* rig_random: the next random number of a sequence (splitmix64). rig_fill: fill memory with their lowest bytes. */
uint64_t rig_random(uint64_t *seed);
void rig_fill(void *memory, size_t bytes, uint64_t *seed);

#endif
