/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"
#include "lab/commands.h"
#include "lab/report/chapter.h"
#include "lab/texts.h"

#include <coxswain/version.h>
#include <string.h>

static const struct {
    const char *title, *lead;
} chapters[LAPTOP_ALL_PARTS] = {
    [LAPTOP_SIZES] = {"Each device alone",
                      "Over the size of the frames, with the best static split and adaptive."},
    [LAPTOP_CURVE] = {"The split",
                      "What a frame takes by the share of the rows that the first device does."},
    [LAPTOP_RESERVE] = {"A reserved core",
                        "One core kept free of kernels, from which the devices are fed."},
    [LAPTOP_CORUN] =
        {"Turbo, and devices beside each other",
         "How much a device slows down when the others compute, and what comes after the first seconds."},
    [LAPTOP_KINDS] = {"Kinds of cores", "The CPU on the cores of one kind only."},
    [LAPTOP_DISTURB] = {"Disturbed", "Policies while another program takes the cores."},
    [LAPTOP_ENERGY] = {"Energy", "Joules of a frame by the deadline that it has."},
};

static void commands(struct html *out, const struct laptop_record *record)
{
    html_raw(out, "<p class=\"note\">Measured ");
    html_text(out, record->started_at);
    html_format(out, ", %.0f seconds, power: %s", record->seconds,
                laptop_supply_name(record->supply));
    if (record->supply_end != record->supply)
        html_format(out, ", at the end %s", laptop_supply_name(record->supply_end));
    html_raw(out, ". Again by:</p><pre>");
    for (uint32_t c = 0; c < record->plan.count; c++) {
        /* A line is broken between words only, so that it can be copied. */
        const char *text = record->plan.commands[c].text;
        for (size_t length; *text; text += length + (text[length] == ' ')) {
            char word[LAPTOP_COMMAND_BYTES];
            length = strcspn(text, " ");
            snprintf(word, sizeof word, "%.*s", (int)length, text);
            html_raw(out, "<span>");
            html_text(out, word);
            html_raw(out, "</span> ");
        }
        html_raw(out, "\n");
    }
    html_raw(out, "</pre>\n");
}

static void one_figure(struct html *out, const struct figures *figures)
{
    if (figures->busy)
        html_raw(
            out,
            "<p class=\"busy\">Other programs kept the machine busy meanwhile: the figures say little.</p>\n");
    if (figures->words.text)
        html_append(out, &figures->words);
    for (uint32_t k = 0; k < figures->count; k++)
        plot_figure(&figures->plots[k], "plots/", out);
    commands(out, figures->record);
}

/* Why there is nothing of a part. */
static void missing(struct html *out, const struct laptop_page *page, enum laptop_part part)
{
    const struct laptop_record *mains = laptop_record_find(page->records, part, false);
    const struct laptop_record *battery = laptop_record_find(page->records, part, true);
    const struct laptop_record *failed = mains ? mains : battery;
    html_raw(out, "<p>");
    if (failed) {
        if (failed->status == LAB_OK)
            html_raw(out, "Its database says too little.</p>");
        else
            html_format(
                out,
                "It could not be measured here: exit status %d. What it said stood on standard error.</p>",
                failed->status);
        commands(out, failed);
        return;
    }
    if (part == LAPTOP_KINDS && page->machine->kind_count < 2)
        html_raw(out, page->machine->kind_count
                          ? "The cores of this machine are of one kind."
                          : "The system does not say what kinds of cores there are.");
    else if (part == LAPTOP_ENERGY && !page->machine->meter) {
        html_raw(out, "Not measured: ");
        html_text(out, page->machine->no_meter);
        html_raw(out, ". The guide of cox-lab says what permits it (What it takes to be read).");
    } else
        html_raw(out, "Not measured yet.");
    html_raw(out, "</p>\n");
}

static void chapter(struct html *out, const struct laptop_page *page, enum laptop_part part)
{
    bool any = laptop_record_find(page->records, part, false) ||
               laptop_record_find(page->records, part, true);
    if (!any && !laptop_part_wanted(page->options, part))
        return;
    any = false;
    html_raw(out, "<h2 class=\"part\">");
    html_raw(out, chapters[part].title);
    html_raw(out, "</h2>\n<p class=\"sub\">");
    html_raw(out, chapters[part].lead);
    html_raw(out, "</p>\n");
    for (uint32_t i = 0; i < page->count; i++)
        if (page->all[i].record->part == part && (i == 0 || i != page->supplies)) {
            one_figure(out, &page->all[i]);
            any = true;
        }
    if (!any)
        missing(out, page, part);
}

static void supplies(struct html *out, const struct laptop_page *page)
{
    bool mains = false, battery = false;
    for (uint32_t i = 0; i < page->records->count; i++) {
        battery |= page->records->all[i].supply == LAPTOP_SUPPLY_BATTERY;
        mains |= page->records->all[i].supply != LAPTOP_SUPPLY_BATTERY;
    }
    html_raw(out, "<h2 class=\"part\">Mains and battery</h2>\n");
    if (page->supplies)
        one_figure(out, &page->all[page->supplies]);
    else if (battery && !mains)
        html_raw(
            out,
            "<p>Everything was measured on battery. Start the same command again on mains: what it measures then "
            "comes beside this.</p>\n");
    else if (battery)
        html_raw(
            out,
            "<p>Some parts were measured on mains, others on battery, as said with each. Start the same command "
            "again on either supply: what is missing there is measured.</p>\n");
    else if (laptop_supply_now(laptop_or_null(page->options->sysfs)) == LAPTOP_SUPPLY_UNKNOWN)
        html_raw(out,
                 "<p>The system lists no battery and no mains: there is nothing to compare.</p>\n");
    else
        html_raw(
            out,
            "<p>Everything was measured on mains. Start the same command again on battery: what it measures then "
            "comes beside this.</p>\n");
}

static void fact(struct html *out, const char *what, const char *text)
{
    html_format(out, "<div><dt>%s</dt><dd>", what);
    html_text(out, *text ? text : "unknown");
    html_raw(out, "</dd></div>\n");
}

static void machine_part(struct html *out, const struct laptop_page *page)
{
    const struct laptop_machine *machine = page->machine;
    char text[400];
    html_raw(out, "<h2 class=\"part\">The machine</h2>\n<dl class=\"facts\">");
    fact(out, "Processor", page->about.cpu);
    fact(out, "System", page->about.system);
    snprintf(text, sizeof text, "%u", page->about.cpus);
    fact(out, "Threads", text);
    text[0] = '\0';
    for (uint32_t i = 0; i < machine->kind_count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%u %s", i ? ", " : "",
                 machine->kinds[i].cores, machine->kinds[i].name);
    }
    fact(out, "Cores", text);
    snprintf(text, sizeof text, "%s, %u × %u", page->options->kernel, page->options->columns,
             page->options->rows);
    fact(out, "Kernel", text);
    fact(out, "Version", cox_version());
    html_raw(out, "</dl>\n");
    table_begin(out, "words", "Devices");
    html_raw(
        out,
        "<thead><tr><th scope=\"col\">Device</th><th scope=\"col\">Platform</th><th scope=\"col\">Driver</th>"
        "<th scope=\"col\">Type</th><th scope=\"col\">Memory</th></tr></thead><tbody>\n");
    for (uint32_t d = 0; d < machine->probe.device_count; d++) {
        const struct laptop_device *device = &machine->probe.devices[d];
        const char *const texts[] = {device->platform, device->driver, device->type, device->mode};
        html_format(out, "<tr><th scope=\"row\">%u: ", d);
        html_text(out, device->name);
        html_raw(out, "</th>");
        for (int i = 0; i < 4; i++) {
            html_raw(out, "<td>");
            words_or(out, texts[i], "–");
            html_raw(out, "</td>");
        }
        html_raw(out, "</tr>\n");
    }
    table_end(out);
}

static void finding(struct html *out, const struct laptop_page *page)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < page->count; i++)
        busy += page->all[i].busy;
    if (busy)
        html_format(
            out,
            "<p class=\"busy\">Other programs kept the machine busy while %u of %u parts were measured: what is "
            "said of these says little.</p>\n",
            busy, page->count - (page->supplies > 0));
    for (uint32_t i = 0; i < page->count; i++)
        if (page->all[i].finding.text) {
            html_raw(out, "<p class=\"lede\">");
            if (page->all[i].record->supply == LAPTOP_SUPPLY_BATTERY)
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
    html_format(
        out,
        "</article>\n<footer><p>Made by cox-lab %s. The page loads nothing and runs nothing. "
        "The archive beside it holds the session databases (cox-lab report, cox-lab replay), what each part "
        "printed, and the plots as CSV with a gnuplot script.</p></footer>\n</main></body></html>\n",
        cox_version());
    bool failed = out->failed;
    for (uint32_t i = 0; i < page->count; i++)
        for (uint32_t k = 0; k < page->all[i].count; k++)
            failed |= page->all[i].plots[k].failed;
    return !failed;
}
