/* Members of JSON objects that statistics and trace have in common.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_REPORT_JSON_H
#define TONEMAP_REPORT_JSON_H

#include "common/json.h"
#include "report.h"

/* A member: key and value. */

/* A time that may be unknown: 0 becomes null. */
void put_known_us(struct json *json, const char *key, uint64_t ns);

/* Open an object or an array as a member. */

/* Rows and times of a band. */
void put_band_rows(struct json *json, const struct cox_band_report *band);

/* Which attempt at its rows a band was, and how it ended. */
void put_band_end(struct json *json, const struct cox_band_report *band);

/* Why a frame was split the way it was. */
void put_decision(struct json *json, const struct report_frame *frame);

#endif
