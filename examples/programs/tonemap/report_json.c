/* SPDX-License-Identifier: Apache-2.0 */
#include "report_json.h"

void put_known_us(struct json *json, const char *key, uint64_t ns)
{
    json_key(json, key);
    if (ns)
        json_us(json, ns);
    else
        json_null(json);
}

void put_band_rows(struct json *json, const struct cox_band_report *band)
{
    json_member_unsigned(json, "first_row", band->first_row);
    json_member_unsigned(json, "rows", band->rows);

    json_member_us(json, "wall_us", band->wall_ns);
    json_member_us(json, "queue_us", band->queue_ns);
    json_member_us(json, "kernel_us", band->kernel_ns);
    put_known_us(json, "predicted_us", band->predicted_ns);

    json_member_bool(json, "on_demand", band->on_demand);
}

void put_band_end(struct json *json, const struct cox_band_report *band)
{
    json_member_unsigned(json, "attempt", band->attempt);
    json_member_string(json, "status", cox_status_name(band->status));
}

void put_decision(struct json *json, const struct report_frame *frame)
{
    json_member_string(json, "reason", cox_reason_text(frame->reason));
    put_known_us(json, "predicted_us", frame->predicted_ns);
    put_known_us(json, "alternative_us", frame->rejected_ns);
    json_member_unsigned(json, "pool_rows", frame->pool_rows);
}
