/* Collects the frame reports of a session: for summaries and bars here, for statistics (stats.h)
 * and for a trace (trace.h). docs/reference/stats.md says what the numbers mean.
 *
 * Thread-safety: report_on_frame runs on the scheduler thread while another thread calls the
 * others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_REPORT_H
#define TONEMAP_REPORT_H

#include <coxswain/session.h>

struct report;
struct judge_figures;

/* What one frame cost. Its bands are in the report's own list. */
struct report_frame {
    uint64_t index;
    uint64_t submit_ns, start_ns, end_ns, delivered_ns;
    uint64_t deadline_ns; /* from submit_ns; 0 = none */
    uint64_t predicted_ns, rejected_ns;
    cox_status status;
    enum cox_reason reason;
    bool warmup, shadow;
    uint32_t pool_rows;
    uint32_t band_count;
    size_t first_band;
};

struct report_summary {
    uint64_t frames; /* delivered and successful */
    /* Bands of all delivered frames whose rows other devices had to do, and the bands that did. */
    uint64_t timeout_bands, wrong_bands, failed_bands;
    uint64_t bands_again;
    double fps; /* 0 = unknown */
    uint64_t wall_p50_ns, wall_p99_ns;
    uint64_t latency_p50_ns, latency_p99_ns; /* from submission to delivery */
    double efficiency;                       /* NaN = unknown: no solo time of some device */
};

/* `frames` is a guess that saves allocations while frames run. NULL = out of memory. */
struct report *report_create(uint32_t device_count, uint64_t frames);

/* Keep only the newest delivered frame from now on, so that memory does not grow. This is for the
 * bar of a film without statistics. Then report_frame knows this frame only, and nothing can be
 * summarised or written. */
void report_keep_newest(struct report *report);

/* NULL is accepted; sets to NULL. */
void report_destroy(struct report **report);

/* A cox_report_fn; `user` is the report. report_lost counts the frames for which memory was
 * missing. */
void report_on_frame(void *user, const struct cox_frame_report *frame);

/* Delivered frames so far, warm-up runs and shadows not counted. */
uint64_t report_frame_count(struct report *report);
uint64_t report_lost(struct report *report);

/* Successful frames so far that missed their deadline, and the longest time by which one missed
 * it. */
void report_late(struct report *report, uint64_t *frames, uint64_t *worst_ns);

/* Copy the n-th delivered frame and up to `max_bands` bands of it. False: no such frame. */
bool report_frame(struct report *report, uint64_t n, struct report_frame *frame,
                  struct cox_band_report *bands, uint32_t max_bands);

/* The session must be idle. `single_device_ns` has one time for each device, 0 = unknown. */
void report_summarise(struct report *report, const uint64_t *single_device_ns,
                      uint32_t device_count, struct report_summary *summary);

struct report_device {
    const char *name;
    const char *type;
    const char *mode;
    const char *state; /* at the end; NULL = "active" */
    uint32_t lost, returned;
};

/* The light of one frame, and the curve it was mapped with. */
struct report_scene {
    float peak_nits, average_nits;     /* of the frame */
    float curve_peak_nits, curve_gain; /* what it was mapped with */
    bool cut;                          /* it began a new scene */
};

/* A film in statistics: all but its frames. */
struct report_film {
    uint64_t read, written;
    uint64_t start_ns; /* from the program's start to the first frame given to the devices */
    uint64_t total_ns; /* to the end of the last frame's writing */
    uint64_t input_ns, devices_ns, output_ns; /* waits of the next frame */
    const char *bound;                        /* the longest of these waits; NULL = none */
    const struct report_scene *scenes;        /* NULL = the curve was fixed */
    uint64_t scene_count;
    uint64_t cuts;
};

struct report_about {
    const char *program; /* for the trace */
    const char *policy;
    const char *arithmetic; /* "fma" or "muladd" */
    uint32_t row_alignment;
    uint32_t device_count;
    const struct report_device *devices;
    const uint64_t *single_device_ns;
    const struct report_film *film;     /* NULL = a picture */
    const struct judge_figures *judged; /* NULL = there is no reference */
};

/* Whether a frame's band is the first one of a pass other than the first. */
bool report_begins_pass(const struct cox_band_report *bands, uint32_t b);

/* "[#####====]": the split as `width` characters, device 0 '#', device 1 '=' and so on. Of a frame
 * with several passes it is the last one, which maps. Writes width + 3 bytes. */
void report_bar(const struct cox_band_report *bands, uint32_t count, uint32_t width, char *text);
char report_bar_mark(uint32_t device);

#endif
