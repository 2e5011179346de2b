/* Disturbances: they take CPU time, GPU time or quota from a run, for a given range of frames.
 *
 *   hog@A:B              a child process that computes, one thread on each core of the first
 *                        CPU device, else on CPU 0
 *   hog=CPUS@A:B         the same on these CPUs: 0,2-5
 *   gpu-hog@A:B          a child process with its own frames on the run's first GPU
 *   quota=PERCENT@A:B    this process may use PERCENT of its CPU time, by the cgroup controller cpu
 *   delay=DEVICE,MICROSECONDS@A:B    artificial: every launch on the device takes longer
 *
 * A disturbance is on for the frames A .. B - 1. All child processes start before the first
 * frame and sleep while they are off, so that switching only wakes them. They end with this
 * process, for any reason.
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

/* Whether this process may use the CPUs of the disturbance. Can be called before anything is
 * opened. */
bool lab_disturbance_possible(const struct lab_disturbance *disturbance, char *why,
                              size_t why_bytes);

/* A range of frames during which no disturbance starts or ends. */
struct lab_phase {
    uint64_t first_frame, end_frame;
    uint32_t active; /* a bit for each disturbance */
    char text[160];
};

/* The phases of a run, in order. Returns their number. The disturbances must end within the run. */
uint32_t lab_phases(const struct lab_disturbance *disturbances, uint32_t count, uint64_t frames,
                    struct lab_phase phases[LAB_PHASES_MAX]);

/* All disturbances of a run. There is one disturber in a process. */
struct lab_disturber;

/* Start the child processes, asleep. Call this before the process uses OpenCL or starts a thread: a
 * child that uses a GPU cannot be forked later. */
bool lab_disturber_start(const struct lab_disturbance *disturbances, uint32_t count,
                         struct lab_disturber **out, char *why, size_t why_bytes);

/* Make everything ready that depends on the devices: `cpus` are those of the first CPU device
 * (`cpu_count` 0 = unknown), `gpu` is the first GPU (NULL = none). On false `why` says why
 * disturbance `*which` is not possible; the caller may drop it and call this again. */
bool lab_disturber_prepare(struct lab_disturber *disturber, const uint16_t *cpus,
                           uint32_t cpu_count, const struct cox_device_info *gpu, uint32_t *which,
                           char *why, size_t why_bytes);
void lab_disturber_drop(struct lab_disturber *disturber, uint32_t which);

/* Details of disturbance `which`: "on CPU 0, 1"; "" = none. */
const char *lab_disturber_note(const struct lab_disturber *disturber, uint32_t which);

/* Switch the disturbances of `active` on and the others off, and wait until they are. The kernel
 * does the artificial delay. */
bool lab_disturber_set(struct lab_disturber *disturber, uint32_t active, char *why,
                       size_t why_bytes);

/* The child processes, for callers that count CPU time. */
const pid_t *lab_disturber_children(const struct lab_disturber *disturber, size_t *count);

/* End the processes, lift the quota and set the pointer to NULL. NULL is accepted. */
void lab_disturber_stop(struct lab_disturber **disturber);

#endif
