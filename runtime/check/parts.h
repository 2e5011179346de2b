/* What the files of check mode share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_CHECK_PARTS_H
#define COX_CHECK_PARTS_H

#include "check.h"
#include "engine/binding.h"

#include <pthread.h>

/* ---- findings: finding.c ---- */

enum cox__finding_kind {
    COX__FINDING_UNSTABLE,  /* two equal runs differ */
    COX__FINDING_ORDER,     /* depends on the order of work-groups */
    COX__FINDING_COLUMNS,   /* work-items beyond the columns or rows have an effect */
    COX__FINDING_WRITES,    /* writes where it must not */
    COX__FINDING_READS,     /* reads where it must not */
    COX__FINDING_UNWRITTEN, /* leaves elements as they were */
    COX__FINDING_BEGIN,     /* depends on where the band begins */
    COX__FINDING_MERGED,    /* a merged buffer depends on the bands */
    COX__FINDING_DONE,      /* cox_pass.done depends on more than its input */
    COX__FINDING_DEVICES,   /* two devices differ */
    COX__FINDING_KINDS
};

enum { COX__FINDINGS_MAX = 8 }; /* log lines for a frame */

/* Findings of a frame. Each kind is reported once for each pass and binding. */
struct cox__findings {
    uint32_t count;
    uint32_t reported[COX_PASSES_MAX][COX__FINDING_KINDS]; /* a bit for each binding */
};

/* ---- memory: poison.c ---- */

/* How a binding's memory is laid out for a pass: margin, buffer, margin. The buffer, or a band's
 * own memory, begins at `margin`. */
struct cox__place {
    size_t margin;
    size_t middle;
    size_t bytes;      /* of all three; 0 = the pass does not touch the binding */
    uint64_t position; /* of its first byte among the bytes of all bindings */
};

/* The bytes of a place that a band is given, or writes. */
struct cox__extent {
    size_t first;
    size_t end;
};

/* Which poison memory holds. Bytes at positions below `inverted` are inverted. */
struct cox__poison {
    uint64_t seed;
    uint64_t inverted;
};

/* One run of a band: its memory before and after. */
struct cox__attempt {
    struct cox__trial trial;                /* its memories are those after the run */
    unsigned char *before[COX_BUFFERS_MAX]; /* owned, as is the other memory */
    bool lost;                              /* a device may still write to the memory */
};

/* ---- one pass on one device ---- */

struct cox__check_device {
    uint32_t device;                /* the runtime's */
    char name[160];                 /* for messages */
    struct cox__instance *instance; /* NULL = the kernels do not build there */
};

/* The pass that is being checked, on one device. */
struct cox__scene {
    struct cox__check *check;
    const struct cox__pass *pass;
    uint32_t number; /* of the pass */
    struct cox__check_device *device;
    struct cox__place places[COX_BUFFERS_MAX];
    uint64_t positions;            /* bytes of all places */
    unsigned char *const *buffers; /* the frame's content before the pass */
    const void *params;
    struct cox__findings *findings;

    /* The split and the band under way, for messages. */
    const uint32_t *cuts; /* first rows of its bands */
    uint32_t cut_count;
    uint32_t first_row;
    uint32_t rows;
};

struct cox__check {
    struct cox__backend *backend;
    const struct cox__log *log;
    struct cox__pipeline pipeline; /* its own; the session's may differ in access */
    uint32_t device_count;
    struct cox__check_device devices[COX_DEVICES_MAX];
    pthread_mutex_t lock; /* held during cox__check_frame */
    bool made;            /* the instances */
    uint64_t frame;       /* counts from 0 */
};

/* A random number of the frame, the pass and `salt`. */
uint64_t cox__poison_random(uint64_t salt);

/* Lay out the memory of the scene's pass. */
void cox__poison_places(struct cox__scene *scene);

/* Allocate an attempt's memory for the scene's pass. */
cox_status cox__poison_attempt_make(const struct cox__scene *scene, struct cox__attempt *attempt);
void cox__poison_attempt_free(struct cox__attempt *attempt);

/* Fill the attempt's memory for the scene's band, and run the band. */
cox_status cox__poison_run(struct cox__scene *scene, struct cox__attempt *attempt,
                           const struct cox__poison *poison);

/* The buffer rows of a binding by rows that the scene's band may read, or writes. They count from
 * the first row of the border. */
void cox__poison_rows(const struct cox__scene *scene, uint32_t binding, uint32_t *first,
                      uint32_t *end);

/* Bytes that the band may write; none for bindings that are read. */
struct cox__extent cox__poison_written(const struct cox__scene *scene, uint32_t binding);

/* Whether the binding's content before the pass is an input, though the pass writes it. */
static inline bool cox__check_keeps(const struct cox__binding *binding)
{
    return cox__written_by_rows(binding) && cox__keeps_values(binding);
}

/* ---- comparison: compare.c ---- */

/* The first of some bytes of a binding. */
struct cox__spot {
    uint32_t binding;
    size_t offset; /* in its place */
    size_t count;
};

/* Find bytes that the band writes and that differ. Bytes that neither run wrote do not count. */
bool cox__compare_outputs(const struct cox__scene *scene, const struct cox__attempt *one,
                          const struct cox__attempt *other, struct cox__spot *spot);

/* Find bytes anywhere that differ after the runs. */
bool cox__compare_all(const struct cox__scene *scene, const struct cox__attempt *one,
                      const struct cox__attempt *other, struct cox__spot *spot);

/* Report writes to bytes that the band must not write. Returns whether there are any. */
bool cox__compare_canaries(struct cox__scene *scene, const struct cox__attempt *attempt);

/* Report elements that neither run of the whole pass wrote. The runs have inverted poison. */
bool cox__compare_unwritten(struct cox__scene *scene, const struct cox__attempt *one,
                            const struct cox__attempt *other);

/* Whether neither run wrote the byte. */
bool cox__compare_is_unwritten(const struct cox__attempt *one, const struct cox__attempt *other,
                               const struct cox__spot *spot);

/* ---- the byte that was read: culprit.c ---- */

/* The results of `attempt`, whose poison has `seed` and is not inverted, depend on the poison.
 * Find a byte that was read, and report it. `scratch`: memory for more runs. `spot`: a result that
 * depends on it. */
cox_status cox__culprit_report(struct cox__scene *scene, const struct cox__attempt *attempt,
                               uint64_t seed, struct cox__attempt *scratch,
                               const struct cox__spot *spot);

/* ---- splits: bands.c ---- */

/* Compare bands of several splits with `reference`, the pass in one band on the scene's device.
 * `one`, `other`: memory for runs. Returns whether all splits could be run. */
cox_status cox__bands_check(struct cox__scene *scene, const struct cox__attempt *reference,
                            struct cox__attempt *one, struct cox__attempt *other);

/* ---- findings: finding.c ---- */

/* Note a finding, and log it: "KERNEL: TEXT [device, bands]". */
void cox__finding_add(struct cox__scene *scene, enum cox__finding_kind kind, uint32_t binding,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Where a byte of a place lies, in words: "row 3, byte 12 of buffer out". */
struct cox__where {
    char text[160];
};
struct cox__where cox__finding_where(const struct cox__scene *scene, uint32_t binding,
                                     size_t offset);

/* The buffer row of a byte of a place; negative before the buffer. 0 for buffers without rows. */
int64_t cox__finding_row(const struct cox__scene *scene, uint32_t binding, size_t offset);

#endif
