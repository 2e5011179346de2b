/* SPDX-License-Identifier: Apache-2.0 */
#include "json_members.h"

void json_report_begin(struct json *json, const char *benchmark, const struct machine *machine)
{
    json_begin(json, stdout);
    json_open_object(json, false);
    json_member_string(json, "benchmark", benchmark);
    machine_json(machine, json);
}

void json_report_end(struct json *json)
{
    json_close_object(json);
    json_end(json);
}

void member_known(struct json *json, const char *key, bool known, double value)
{
    json_key(json, key);
    if (known)
        json_number(json, value);
    else
        json_null(json);
}

void member_range(struct json *json, const char *key, double low, double high)
{
    json_member_array(json, key, true);
    json_number(json, low);
    json_number(json, high);
    json_close_array(json);
}

void member_quiet(struct json *json, const char *again, const struct quiet *quiet)
{
    json_member_number(json, "others_cpus", quiet_others(quiet));
    json_member_unsigned(json, again, quiet->again);
}
