/* SPDX-License-Identifier: Apache-2.0 */
#include "report_json.h"

void put_number(struct json *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_unsigned(json, number);
}

void put_real(struct json *json, const char *key, double number)
{
    json_key(json, key);
    json_number(json, number);
}

void put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

void put_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void put_us(struct json *json, const char *key, uint64_t ns)
{
    json_key(json, key);
    json_us(json, ns);
}

void put_known_us(struct json *json, const char *key, uint64_t ns)
{
    json_key(json, key);
    if (ns)
        json_us(json, ns);
    else
        json_null(json);
}

void put_object(struct json *json, const char *key, bool flat)
{
    json_key(json, key);
    json_open_object(json, flat);
}

void put_array(struct json *json, const char *key, bool flat)
{
    json_key(json, key);
    json_open_array(json, flat);
}

void put_band_rows(struct json *json, const struct cox_band_report *band)
{
    put_number(json, "first_row", band->first_row);
    put_number(json, "rows", band->rows);

    put_us(json, "wall_us", band->wall_ns);
    put_us(json, "queue_us", band->queue_ns);
    put_us(json, "kernel_us", band->kernel_ns);
    put_known_us(json, "predicted_us", band->predicted_ns);

    put_bool(json, "on_demand", band->on_demand);
}

void put_band_end(struct json *json, const struct cox_band_report *band)
{
    put_number(json, "attempt", band->attempt);
    put_text(json, "status", cox_status_name(band->status));
}

void put_decision(struct json *json, const struct report_frame *frame)
{
    put_text(json, "reason", cox_reason_text(frame->reason));
    put_known_us(json, "predicted_us", frame->predicted_ns);
    put_known_us(json, "alternative_us", frame->alternative_ns);
    put_number(json, "pool_rows", frame->pool_rows);
}
