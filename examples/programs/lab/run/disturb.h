/* Disturbances: what takes processor, GPU or quota away from a run, from one given frame to another.
 *
 *   hog@A:B          threads of a process of our own that compute for ever, one on each core of the first CPU
 *                    device, else on CPU 0;
 *   hog=CPUS@A:B     or on these CPUs: 0,2-5
 *   gpu-hog@A:B      a process of our own with frames of its own on the run's first GPU
 *   quota=PERCENT@A:B    a quota of processor time for this process, PERCENT of what it may use, by the cgroup
 *                        controller cpu
 *   delay=DEVICE,MICROSECONDS@A:B    artificial: every launch on the device takes so much longer
 *
 * A disturbance is on for the frames A .. B - 1. All processes are started before the first frame and sleep when theirs
 * is off, so that switching takes no longer than waking them. They end with this process, whatever ends it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_H
#define COX_EXAMPLES_LAB_DISTURB_H

#include <coxswain/sched.h>
#include <coxswain/runtime.h>
#include <sys/types.h>

enum {
    LAB_DISTURBANCES_MAX = 16,
    LAB_HOG_CPUS_MAX = 256,
    LAB_PHASES_MAX = 2 * LAB_DISTURBANCES_MAX + 1
};

enum lab_disturb_kind { LAB_HOG, LAB_GPU_HOG, LAB_QUOTA, LAB_DELAY };

struct lab_disturbance {
    enum lab_disturb_kind kind;
    uint64_t first_frame, end_frame;
    uint32_t cpu_count; /* hog; 0 = the cores of the first CPU device */
    uint16_t cpus[LAB_HOG_CPUS_MAX];
    double percent;  /* quota */
    uint32_t device; /* delay */
    double delay_us;
    char text[96]; /* as given */
};

/* "hog", "gpu-hog", "quota", "delay". */
const char *lab_disturb_kind_name(enum lab_disturb_kind kind);

/* False with a sentence in `why`. */
bool lab_disturbance_parse(const char *text, struct lab_disturbance *out, char *why,
                           size_t why_bytes);

/* Whether the CPUs that it names may be used by this process: what can be told before anything is opened. */
bool lab_disturbance_possible(const struct lab_disturbance *disturbance, char *why,
                              size_t why_bytes);

/* A stretch of frames during which nothing starts or ends. */
struct lab_phase {
    uint64_t first_frame, end_frame;
    uint32_t active; /* a bit for each disturbance */
    char text[160];
};

/* The phases of a run, in order; returns how many. The disturbances end within the run. */
uint32_t lab_phases(const struct lab_disturbance *disturbances, uint32_t count, uint64_t frames,
                    struct lab_phase phases[LAB_PHASES_MAX]);

/* Them all, at work. One in a process. */
struct lab_disturber;

/* Start the processes, asleep. Must be called before anything in this process touches OpenCL or starts a thread, since
 * a process with frames of its own cannot be split off later. */
bool lab_disturber_start(const struct lab_disturbance *disturbances, uint32_t count,
                         struct lab_disturber **out, char *why, size_t why_bytes);

/* Make everything ready that needs to know the devices: `cpus` are those of the first CPU device (0 = unknown), `gpu`
 * is the first GPU (NULL = there is none). False with a sentence in `why` and the disturbance that cannot be in
 * `*which`; then lab_disturber_drop may leave it out, and this be called again. */
bool lab_disturber_prepare(struct lab_disturber *disturber, const uint16_t *cpus,
                           uint32_t cpu_count, const struct cox_device_info *gpu, uint32_t *which,
                           char *why, size_t why_bytes);
void lab_disturber_drop(struct lab_disturber *disturber, uint32_t which);

/* What disturbance `which` came to be: "on CPU 0, 1"; "" = nothing to add. */
const char *lab_disturber_note(const struct lab_disturber *disturber, uint32_t which);

/* Those of `active` are on and the others off when this returns. The artificial delay is the kernel's business. */
bool lab_disturber_set(struct lab_disturber *disturber, uint32_t active, char *why,
                       size_t why_bytes);

/* The processes, for callers that count processor time. */
const pid_t *lab_disturber_children(const struct lab_disturber *disturber, size_t *count);

/* End the processes, lift the quota; sets to NULL, NULL is accepted. */
void lab_disturber_stop(struct lab_disturber **disturber);

#endif
