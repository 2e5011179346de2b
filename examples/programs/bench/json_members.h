/* Members of a JSON object: a key and its value in one call.
 * Thread-safety: from one thread at a time for each writer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_JSON_MEMBERS_H
#define BENCH_JSON_MEMBERS_H

#include "common/json.h"
#include "common/host_machine.h"
#include "common/quiet.h"

/* Begin a report on standard output: an object whose first members are `benchmark` and the machine.
 * json_report_end closes the object and ends the output. */
void json_report_begin(struct json *json, const char *benchmark, const struct machine *machine);
void json_report_end(struct json *json);

/* A number, or null if it is not known. */
void member_known(struct json *json, const char *key, bool known, double value);

/* Two numbers as an array on one line. */
void member_range(struct json *json, const char *key, double low, double high);

/* What other programs did; `again`: the key for the number of repetitions. */
void member_quiet(struct json *json, const char *again, const struct quiet *quiet);

/* Open an object or array as the member's value; close it with json_close_object or
 * json_close_array. */

#endif
