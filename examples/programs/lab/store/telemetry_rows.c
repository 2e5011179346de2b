/* Rows of telemetry in the session database.
 * SPDX-License-Identifier: Apache-2.0 */
#include "writers.h"

#include <math.h>

bool lab__telemetry_writer_prepare(struct lab_telemetry_writer *writer, sqlite3 *db)
{
    const unsigned flags = SQLITE_PREPARE_PERSISTENT;

    return !sqlite3_prepare_v3(db, "INSERT OR REPLACE INTO telemetry_source VALUES (?,?,?,?,?,?,?)",
                               -1, flags, &writer->source, NULL) &&
           !sqlite3_prepare_v3(db, "INSERT OR REPLACE INTO telemetry VALUES (?,?,?,?)", -1, flags,
                               &writer->value, NULL) &&
           !sqlite3_prepare_v3(db, "INSERT OR REPLACE INTO telemetry_session VALUES (?,?)", -1,
                               flags, &writer->session, NULL);
}

void lab__telemetry_writer_finalize(struct lab_telemetry_writer *writer)
{
    sqlite3_finalize(writer->source);
    sqlite3_finalize(writer->value);
    sqlite3_finalize(writer->session);
    *writer = (struct lab_telemetry_writer){0};
}

int lab__telemetry_write(struct lab_telemetry_writer *writer, int64_t run,
                         const struct lab_queued_telemetry *queued)
{
    int result = SQLITE_DONE;

    if (queued->setting[0])
        return lab__store_step(writer->value, "iiit", run, (int64_t)queued->source, queued->at_ns,
                               queued->setting);

    for (uint32_t i = 0; i < queued->count && result == SQLITE_DONE; i++)
        if (!isnan(queued->values[i]))
            result = lab__store_step(writer->value, "iiir", run, (int64_t)i, queued->at_ns,
                                     queued->values[i]);

    return result;
}
