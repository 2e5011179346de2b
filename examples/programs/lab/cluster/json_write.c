/* Writes a cluster as the text of a file, for `cox-lab cluster --fit`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "description.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>

/* Values of 0 are left out. */
static void number(struct json *json, const char *key, double value)
{
    if (!(value > 0))
        return;
    json_member_number(json, key, value);
}

char *cluster_write(const struct cluster *cluster)
{
    char *out = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *stream = open_memstream(&out, &bytes);

    if (!stream)
        return NULL;

    json_begin(&json, stream);
    json_open_object(&json, false);
    json_member_string(&json, "name", cluster->name);
    if (*cluster->text)
        json_member_string(&json, "text", cluster->text);
    json_member_unsigned(&json, "frames", cluster->frames);

    json_member_array(&json, "machines", false);
    for (uint32_t k = 0; k < cluster->kind_count; k++) {
        const struct cluster_kind *kind = &cluster->kinds[k];

        json_open_object(&json, true);
        json_member_string(&json, "name", kind->name);
        number(&json, "begin_s", kind->begin_s);
        number(&json, "analyse_fps", kind->fps[CLUSTER_ANALYSE]);
        number(&json, "map_fps", kind->fps[CLUSTER_MAP]);
        json_close_object(&json);
    }
    json_close_array(&json);

    number(&json, "spread", cluster->spread);
    number(&json, "begin_s", cluster->begin_s);
    number(&json, "steer_fps", cluster->steer_fps);
    number(&json, "join_fps", cluster->join_fps);
    json_close_object(&json);
    json_end(&json);

    const bool bad = ferror(stream);
    if (fclose(stream) || bad) {
        free(out);
        return NULL;
    }

    return out;
}
