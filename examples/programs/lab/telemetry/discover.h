/* Each of these looks for sources of one kind and adds them. Called by lab_telemetry_open.
 * `root` is /sys or a copy of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_DISCOVER_H
#define COX_EXAMPLES_LAB_TELEMETRY_DISCOVER_H

#include "sources.h"

/* Clocks, settings and throttling of the CPU. */
void lab__find_cpus(struct lab_telemetry *telemetry, const char *root);

/* Temperatures of the CPU. */
void lab__find_heat(struct lab_telemetry *telemetry, const char *root);

/* Power of the CPU. `event_open` NULL: no perf counters. */
void lab__find_power(struct lab_telemetry *telemetry, const char *root,
                     int (*event_open)(uint32_t type, uint64_t config, int cpu));

/* Batteries and mains. */
void lab__find_supplies(struct lab_telemetry *telemetry, const char *root);

/* GPUs whose drivers have files in /sys. */
void lab__find_gpus(struct lab_telemetry *telemetry, const char *root);

/* GPUs of NVIDIA, through this library. */
void lab__find_nvml(struct lab_telemetry *telemetry, const char *root, const char *library);

#endif
