/* Reads files of clusters, as docs/reference/clusters.md describes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "description.h"
#include "lab/sim/scenario_read.h"

#include <stdio.h>
#include <stdlib.h>

static const double MOST = 1e15;

/* Enter the object under `key`. False if it is missing or invalid. */
static bool enter(struct strict_place *in, const struct strict_place *at, const char *key,
                  const char *const *known)
{
    return json_object_get(at->object, key) && lab_place_enter_member(in, at, key, known);
}

static void read_kinds(const struct strict_place *at, struct cluster *out)
{
    static const char *const known[] = {"name", "count", "begin_s", "analyse_fps", "map_fps", NULL};
    json_t *kinds = strict_array(at, "machines", true, CLUSTER_KINDS_MAX);
    bool analysed = false, given = false;

    for (size_t i = 0; kinds && i < json_array_size(kinds); i++) {
        struct strict_place in;
        struct cluster_kind *kind = &out->kinds[out->kind_count++];

        *kind = (struct cluster_kind){.count = 1};
        snprintf(kind->name, sizeof kind->name, "machine %zu", i);
        if (!strict_enter(&in, at->reader, json_array_get(kinds, i), known, "machines[#]",
                          (uint32_t)i))
            return;

        strict_string(&in, "name", false, sizeof kind->name, kind->name);
        strict_integer(&in, "count", false, 1, CLUSTER_MACHINES_MAX, &kind->count);
        strict_number(&in, "begin_s", false, 0, 1e6, &kind->begin_s);
        strict_number(&in, "analyse_fps", false, 1e-6, 1e9, &kind->fps[CLUSTER_ANALYSE]);
        strict_number(&in, "map_fps", true, 1e-6, 1e9, &kind->fps[CLUSTER_MAP]);

        given = kind->fps[CLUSTER_ANALYSE] > 0;
        if (i && given != analysed)
            strict_refuse(&in, "analyse_fps", "give it for all machines or for none");
        analysed = given;
    }
}

bool cluster_read(struct cluster *out, const char *path, char *why, size_t why_bytes)
{
    static const char *const known[] = {"name",          "text",     "frames",  "read_bytes",
                                        "written_bytes", "machines", "spread",  "slow",
                                        "deaths",        "storage",  "begin_s", "begin_machine_s",
                                        "steer_fps",     "join_fps", NULL};
    static const char *const slow[] = {"part", "times", NULL},
                             *const deaths[] = {"per_day", "again_s", NULL},
                             *const storage[] = {"bytes_per_s", "machine_bytes_per_s", NULL};
    struct strict_reader reader = {.file = path, .why = why, .why_bytes = why_bytes};
    struct strict_place at, in;
    size_t bytes;

    *out = (struct cluster){.slow_times = 1};
    char *text = strict_read_file(path, CLUSTER_BYTES_MAX, &bytes, why, why_bytes);
    if (!text)
        return false;

    json_t *root = strict_parse(&reader, text, bytes, CLUSTER_BYTES_MAX);
    if (root && strict_enter(&at, &reader, root, known, NULL, 0)) {
        strict_string(&at, "name", true, sizeof out->name, out->name);
        strict_string(&at, "text", false, sizeof out->text, out->text);
        strict_integer(&at, "frames", true, 1, CLUSTER_FRAMES_MAX, &out->frames);
        strict_number(&at, "read_bytes", false, 0, MOST, &out->read_bytes);
        strict_number(&at, "written_bytes", false, 0, MOST, &out->written_bytes);
        read_kinds(&at, out);

        strict_number(&at, "spread", false, 0, 1, &out->spread);
        if (enter(&in, &at, "slow", slow)) {
            strict_number(&in, "part", true, 0, 1, &out->slow_part);
            strict_number(&in, "times", true, 1, 1000, &out->slow_times);
        }
        if (enter(&in, &at, "deaths", deaths)) {
            strict_number(&in, "per_day", true, 0, 1000, &out->deaths_per_day);
            strict_number(&in, "again_s", true, 0, 1e6, &out->again_s);
        }
        if (enter(&in, &at, "storage", storage)) {
            strict_number(&in, "bytes_per_s", false, 1, MOST, &out->storage_bytes_per_s);
            strict_number(&in, "machine_bytes_per_s", false, 1, MOST, &out->machine_bytes_per_s);
        }

        strict_number(&at, "begin_s", false, 0, 1e6, &out->begin_s);
        strict_number(&at, "begin_machine_s", false, 0, 1e6, &out->begin_machine_s);
        strict_number(&at, "steer_fps", false, 1, 1e12, &out->steer_fps);
        strict_number(&at, "join_fps", false, 1e-3, 1e12, &out->join_fps);
    }

    json_decref(root);
    free(text);
    return !reader.failed;
}
