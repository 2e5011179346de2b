/* SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include <math.h>

struct plot *findings_plot(struct findings *findings, const char *name, const char *title,
                           const char *x, const char *y)
{
    const bool on_battery = laptop_on_battery(findings->record);

    if (findings->count == FINDINGS_PLOTS_MAX)
        return NULL;

    struct plot *plot = &findings->plots[findings->count++];
    *plot = (struct plot){.line = NAN};
    snprintf(plot->name, sizeof plot->name, "%s%s", name, on_battery ? "-battery" : "");
    snprintf(plot->title, sizeof plot->title, "%s%s", title, on_battery ? ", on battery" : "");
    snprintf(plot->x, sizeof plot->x, "%s", x);
    snprintf(plot->y, sizeof plot->y, "%s", y);
    return plot;
}

void findings_free(struct findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        plot_free(&findings->plots[i]);
    findings->count = 0;

    html_free(&findings->words);
    html_free(&findings->finding);
}
