/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"
#include "lab/fail.h"
#include "lab/report/runs.h"

#include <math.h>
#include <stdio.h>

static void copy_text(char *out, size_t bytes, const char *text)
{
    snprintf(out, bytes, "%s", text ? text : "");
}

bool laptop_probe_read(const char *database, struct laptop_probe *probe)
{
    struct report_source source;
    char why[512];

    if (!report_read(database, 0, &source, why, sizeof why))
        return lab_fail("%s", why);

    const struct report_run *run = &source.runs[source.run_count - 1];
    *probe = (struct laptop_probe){.device_count = run->device_count};
    bool good = run->phase_count > 0 && run->device_count > 0;
    for (uint32_t d = 0; good && d < run->device_count; d++) {
        const struct report_device *from = &run->devices[d];
        struct laptop_device *to = &probe->devices[d];

        copy_text(to->name, sizeof to->name, from->name);
        copy_text(to->platform, sizeof to->platform, from->platform);
        copy_text(to->driver, sizeof to->driver, from->driver);
        copy_text(to->type, sizeof to->type, from->type);
        copy_text(to->mode, sizeof to->mode, from->mode);
        probe->single_device_ns[d] = run->phases[0].single_device_ns[d];
        good = isfinite(probe->single_device_ns[d]) && probe->single_device_ns[d] > 0;
    }
    probe->oracle_ns = NAN;
    if (good)
        probe->oracle_ns = run->phases[0].oracle_ns;

    report_free(&source);
    return isfinite(probe->oracle_ns) ||
           lab_fail("%s: has no frame times of each device; use --fresh to measure again",
                    database);
}
