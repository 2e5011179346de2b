/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"
#include "lab/fail.h"
#include "lab/report/chapter.h"
#include "lab/texts.h"

#include <coxswain/version.h>
#include <string.h>

static const struct {
    const char *title, *lead;
} chapters[LAPTOP_ALL_PARTS] = {
    [LAPTOP_SIZES] = {"Each device alone",
                      "Frame time over frame size, with the best static split and adaptive."},
    [LAPTOP_CURVE] = {"The split", "Frame time over the share of rows on the first device."},
    [LAPTOP_RESERVE] = {"A reserved core",
                        "One core is kept free of kernels for the scheduler thread."},
    [LAPTOP_CORUN] =
        {"Turbo, and devices working together",
         "How much a device slows down while the others work, and after the first seconds."},
    [LAPTOP_KINDS] = {"Kinds of cores", "The CPU on the cores of one kind only."},
    [LAPTOP_DISTURB] = {"Disturbed", "Policies while another program takes the cores."},
    [LAPTOP_ENERGY] = {"Energy", "Joules per frame, by deadline."},
};

/* The words of a command, in spans: the page breaks lines between them only, so that it can be
 * copied. */
static void command_words(struct html *out, const char *text)
{
    char word[LAPTOP_COMMAND_BYTES];

    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        html_raw(out, "<span>");
        html_text(out, word);
        html_raw(out, "</span> ");
    }
    html_raw(out, "\n");
}

static void commands(struct html *out, const struct laptop_record *record)
{
    html_raw(out, "<p class=\"note\">Measured ");
    html_text(out, record->started_at);
    html_format(out, ", %.0f seconds, power: %s", record->seconds,
                laptop_supply_name(record->supply));
    if (record->supply_end != record->supply)
        html_format(out, ", at the end %s", laptop_supply_name(record->supply_end));
    html_raw(out, ". To repeat it:</p><pre>");
    for (uint32_t c = 0; c < record->plan.count; c++)
        command_words(out, record->plan.commands[c].text);
    html_raw(out, "</pre>\n");
}

static void show_findings(struct html *out, const struct findings *findings)
{
    if (findings->busy)
        html_raw(out, "<p class=\"busy\">Other programs kept the machine busy: these figures "
                      "are unreliable.</p>\n");
    html_append(out, &findings->words);
    for (uint32_t k = 0; k < findings->count; k++)
        plot_figure(&findings->plots[k], "plots/", out);
    commands(out, findings->record);
}

/* Why a part that was tried has no findings. */
static void failed(struct html *out, const struct laptop_record *record)
{
    if (record->status == LAB_OK)
        html_raw(out, "<p>Its database has too few frames for figures.</p>");
    else
        html_format(out,
                    "<p>The measurement failed with exit status %d. Its messages went to "
                    "standard error.</p>",
                    record->status);
    commands(out, record);
}

/* Why there is nothing of a part. */
static void missing(struct html *out, const struct laptop_page *page, enum laptop_part part)
{
    const struct laptop_record *mains = laptop_record_find(page->records, part, false);
    const struct laptop_record *battery = laptop_record_find(page->records, part, true);

    if (mains || battery) {
        failed(out, mains ? mains : battery);
        return;
    }

    html_raw(out, "<p>");
    if (part == LAPTOP_KINDS && page->machine->kind_count == 1) {
        html_raw(out, "The cores of this machine are of one kind.");
    } else if (part == LAPTOP_KINDS && page->machine->kind_count == 0) {
        html_raw(out, "The kinds of cores are unknown: the system does not report them.");
    } else if (part == LAPTOP_ENERGY && !page->machine->meter) {
        html_raw(out, "Not measured: ");
        html_text(out, page->machine->no_meter);
        html_raw(out, ". The reference of cox-lab explains how to permit it (Permission to read).");
    } else {
        html_raw(out, "Not measured yet.");
    }
    html_raw(out, "</p>\n");
}

static void chapter(struct html *out, const struct laptop_page *page, enum laptop_part part)
{
    bool any = laptop_record_find(page->records, part, false) ||
               laptop_record_find(page->records, part, true);

    if (!any && !laptop_part_wanted(page->options, part))
        return;

    html_format(out, "<h2 class=\"part\">%s</h2>\n<p class=\"sub\">%s</p>\n", chapters[part].title,
                chapters[part].lead);
    any = false;
    for (uint32_t i = 0; i < page->count; i++)
        if (page->all[i].record->part == part && (i == 0 || i != page->supplies)) {
            show_findings(out, &page->all[i]);
            any = true;
        }
    if (!any)
        missing(out, page, part);
}

static void supplies(struct html *out, const struct laptop_page *page)
{
    const char *sysfs = laptop_or_null(page->options->sysfs), *text;
    bool mains = false, battery = false;

    for (uint32_t i = 0; i < page->records->count; i++) {
        battery |= laptop_on_battery(&page->records->all[i]);
        mains |= !laptop_on_battery(&page->records->all[i]);
    }

    html_raw(out, "<h2 class=\"part\">Mains and battery</h2>\n");
    if (page->supplies) {
        show_findings(out, &page->all[page->supplies]);
        return;
    }

    if (battery && !mains)
        text = "Everything was measured on battery. Run the same command on mains to compare.";
    else if (battery)
        text = "Some parts were measured on mains, others on battery, as stated with "
               "each. Run the same command on each supply to measure the missing parts.";
    else if (laptop_supply_now(sysfs) == LAPTOP_SUPPLY_UNKNOWN)
        text = "The system reports neither battery nor mains, so nothing can be compared.";
    else
        text = "Everything was measured on mains. Run the same command on battery to compare.";
    html_format(out, "<p>%s</p>\n", text);
}

static void fact(struct html *out, const char *what, const char *text)
{
    html_format(out, "<div><dt>%s</dt><dd>", what);
    html_text(out, *text ? text : "unknown");
    html_raw(out, "</dd></div>\n");
}

static void device_table(struct html *out, const struct laptop_probe *probe)
{
    static const char *const columns[] = {"Device", "Platform", "Driver", "Type", "Memory", NULL};

    table_open(out, "words", "Devices", columns);
    for (uint32_t d = 0; d < probe->device_count; d++) {
        const struct laptop_device *device = &probe->devices[d];

        html_format(out, "<tr><th scope=\"row\">%u: ", d);
        html_text(out, device->name);
        html_raw(out, "</th>");
        table_cell_text(out, device->platform);
        table_cell_text(out, device->driver);
        table_cell_text(out, device->type);
        table_cell_text(out, device->mode);
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void machine_part(struct html *out, const struct laptop_page *page)
{
    const struct laptop_machine *machine = page->machine;
    char text[400] = "";
    size_t length = 0;

    html_raw(out, "<h2 class=\"part\">The machine</h2>\n<dl class=\"facts\">");
    fact(out, "Processor", page->about.cpu);
    fact(out, "System", page->about.system);
    snprintf(text, sizeof text, "%u", page->about.cpus);
    fact(out, "Threads", text);

    text[0] = '\0';
    for (uint32_t i = 0; i < machine->kind_count; i++) {
        snprintf(text + length, sizeof text - length, "%s%u %s", i ? ", " : "",
                 machine->kinds[i].cores, machine->kinds[i].name);
        length = strlen(text);
    }
    fact(out, "Cores", text);

    snprintf(text, sizeof text, "%s, %u × %u", page->options->kernel, page->options->columns,
             page->options->rows);
    fact(out, "Kernel", text);
    fact(out, "Version", cox_version());
    html_raw(out, "</dl>\n");
    device_table(out, &machine->probe);
}

static void finding(struct html *out, const struct laptop_page *page)
{
    uint32_t busy = 0;

    for (uint32_t i = 0; i < page->count; i++)
        busy += page->all[i].busy;
    if (busy)
        html_format(out,
                    "<p class=\"busy\">Other programs kept the machine busy while %u of %u parts "
                    "were measured: their figures are unreliable.</p>\n",
                    busy, page->count - (page->supplies > 0));

    for (uint32_t i = 0; i < page->count; i++)
        if (page->all[i].finding.text) {
            html_raw(out, "<p class=\"lede\">");
            if (laptop_on_battery(page->all[i].record))
                html_raw(out, "On battery. ");
            html_append(out, &page->all[i].finding);
            html_raw(out, "</p>\n");
        }
}

bool laptop_page(const struct laptop_page *page, struct html *out)
{
    html_begin(out, "CPU and GPU of one machine", "cox-lab laptop",
               (const char *const[]){lab_text("style.css"), NULL});
    html_raw(out, "<header class=\"masthead\"><p class=\"kicker\">Coxswain lab</p>"
                  "<h1>Load balancing of one machine</h1></header>\n<article><header><h2>");
    html_text(out, page->about.cpu);
    html_format(out, "</h2>\n<p class=\"sub\"><span class=\"badge\">measured</span> %u devices, ",
                page->machine->probe.device_count);
    html_text(out, page->options->kernel);
    html_format(out, ", %u × %u</p></header>\n", page->options->columns, page->options->rows);

    finding(out, page);
    for (enum laptop_part part = LAPTOP_SIZES; part < LAPTOP_ALL_PARTS; part++)
        chapter(out, page, part);
    supplies(out, page);
    machine_part(out, page);
    html_format(out,
                "</article>\n"
                "<footer><p>Made by cox-lab %s. The page loads nothing and runs nothing. The "
                "archive next to it contains the session databases (for cox-lab report and "
                "cox-lab replay), the output of each part, and the plots as CSV with a gnuplot "
                "script.</p></footer>\n"
                "</main></body></html>\n",
                cox_version());

    bool failed = out->failed;
    for (uint32_t i = 0; i < page->count; i++)
        for (uint32_t k = 0; k < page->all[i].count; k++)
            failed |= page->all[i].plots[k].failed;
    return !failed;
}
