/* Signals that end the program early: SIGINT, SIGTERM and SIGHUP. Partial output files are removed
 * however the program ends.
 * Thread-safety: the two functions that catch signals are for the main thread, while no other
 * thread runs; all others are for any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_INTERRUPT_H
#define TONEMAP_INTERRUPT_H

struct video_input;

/* From now on a signal only sets a flag (interrupted). A second signal, half a second or more after
 * the first, ends the program at once; one that comes sooner is ignored. */
void interrupt_catch(void);

/* For steps that use no device: the first signal ends the program. */
void interrupt_catch_at_once(void);

/* The number of the signal that came; 0 = none. */
int interrupted(void);

/* The input whose reads a signal cancels; NULL = none. After a call with NULL no handler uses the
 * input any more. */
void interrupt_cancels(struct video_input *input);

#endif
