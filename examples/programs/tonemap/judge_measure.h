/* How far mapped frames are from those of a reference, measured pixel by pixel:
 *
 *   dE ITP    ITU-R BT.2124: 720 * sqrt(dI^2 + dT^2 + dP^2); 1 is just visible at best
 *   flicker   root mean square over the frames of the change of the mean Y' since the frame before,
 *             less the change in the reference; in codes of 8 bits
 *   banding   band edges in 1000 pixels. An edge lies in a row or column between two runs of 8 or
 *             more equal Y' that differ by half a code to 4 codes of 8 bits. See Y. Wang et al., "A
 *             perceptual visibility metric for banding artifacts", ICIP 2016.
 *   clipped   share of pixels with R', G' or B' at 1 (white; in PQ the display's peak) and at 0
 *             (black)
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JUDGE_MEASURE_H
#define TONEMAP_JUDGE_MEASURE_H

#include "judge_light.h"

enum judge_side { JUDGE_OUTPUT = 0, JUDGE_REFERENCE, JUDGE_SIDES };

struct judge_figures {
    uint64_t frames;                  /* 0: the others are not known */
    double mean, p50, p90, p99, most; /* of dE ITP; percentiles by nearest rank */
    double flicker;                   /* NaN = no two neighbouring frames */
    struct {
        double band_edges;   /* in 1000 pixels */
        double white, black; /* 0 to 1 */
    } of[JUDGE_SIDES];
};

struct judge_measure;

/* NULL = out of memory. */
struct judge_measure *judge_measure_create(uint32_t width, uint32_t height);
void judge_measure_destroy(struct judge_measure **measure);

/* How all further frames of a side are coded. */
void judge_measure_set(struct judge_measure *measure, enum judge_side side,
                       const struct judge_coding *coding);

/* Frame `number` of both. */
void judge_measure_add(struct judge_measure *measure, uint64_t number,
                       const struct judge_frame frames[JUDGE_SIDES]);

void judge_measure_figures(const struct judge_measure *measure, struct judge_figures *figures);

#endif
