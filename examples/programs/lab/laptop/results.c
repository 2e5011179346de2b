/* What comes out of the parts: the page, the plots' files, the machine's description, the archive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"
#include "common/json.h"
#include "common/host_machine.h"
#include "common/outfile.h"
#include "figures.h"
#include "lab/commands.h"
#include "page.h"

#include <coxswain/version.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char archive_name[] = "laptop.tar", archive_prefix[] = "laptop";

/* Files of the archive, in its order. */
struct files {
    uint32_t count;
    char names[96][64];
};

static void add_file(struct files *files, const char *name)
{
    if (files->count < sizeof files->names / sizeof files->names[0] && access(name, R_OK) == 0)
        snprintf(files->names[files->count++], sizeof files->names[0], "%s", name);
}

/* A whole file at once, by what writes it. */
struct writer {
    struct outfile *file;
    const char *name;
};

static FILE *begin_file(struct writer *writer, const char *name)
{
    struct error error;
    writer->name = name;
    if (!outfile_open(&writer->file, name, &error)) {
        lab_fail("%s: %s", name, error.text);
        return NULL;
    }
    return outfile_stream(writer->file);
}

static bool end_file(struct writer *writer, struct files *files)
{
    struct error error;
    FILE *to = outfile_stream(writer->file);
    bool good = fflush(to) == 0 && !ferror(to);
    if (!good) {
        lab_fail("%s: %s", writer->name, strerror(errno));
        outfile_abandon(&writer->file);
        return false;
    }
    if (!outfile_finish(&writer->file, &error))
        return lab_fail("%s: %s", writer->name, error.text);
    add_file(files, writer->name);
    return true;
}

/* --- The plots' files --------------------------------------------------------------------------------------------- */

static bool write_plots(const struct laptop_page *page, struct files *files)
{
    struct writer writer;
    char name[64];
    for (uint32_t i = 0; i < page->count; i++)
        for (uint32_t k = 0; k < page->all[i].count; k++) {
            const struct plot *plot = &page->all[i].plots[k];
            if (!plot_has_points(plot))
                continue;
            snprintf(name, sizeof name, "plots/%s.csv", plot->name);
            FILE *to = begin_file(&writer, name);
            if (!to)
                return false;
            plot_csv(plot, to);
            if (!end_file(&writer, files))
                return false;
        }
    FILE *to = begin_file(&writer, "plots/plots.gp");
    if (!to)
        return false;
    fputs(
        "# Draws each CSV file of this folder as SVG:  gnuplot plots.gp  (gnuplot 5.4; Debian: gnuplot-nox)\n"
        "set terminal svg size 900,420 dynamic noenhanced background rgb 'white'\n",
        to);
    for (uint32_t i = 0; i < page->count; i++)
        for (uint32_t k = 0; k < page->all[i].count; k++)
            if (plot_has_points(&page->all[i].plots[k]))
                plot_gnuplot(&page->all[i].plots[k], to);
    return end_file(&writer, files);
}

/* --- The machine -------------------------------------------------------------------------------------------------- */

static void put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

static bool write_machine(const struct laptop_options *options,
                          const struct laptop_machine *machine, const struct machine *about,
                          struct files *files)
{
    struct writer writer;
    struct json json;
    FILE *to = begin_file(&writer, "machine.json");
    if (!to)
        return false;
    json_begin(&json, to);
    json_open_object(&json, false);
    put_text(&json, "version", cox_version());
    machine_json(about, &json);
    put_text(&json, "supply",
             laptop_supply_name(laptop_supply_now(laptop_or_null(options->sysfs))));
    json_key(&json, "energy_meter");
    json_bool(&json, machine->meter);
    json_key(&json, "kinds");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < machine->kind_count; i++) {
        json_open_object(&json, true);
        put_text(&json, "name", machine->kinds[i].name);
        json_key(&json, "cores");
        json_unsigned(&json, machine->kinds[i].cores);
        put_text(&json, "cpus", machine->kinds[i].cpus);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t d = 0; d < machine->probe.device_count; d++) {
        const struct laptop_device *device = &machine->probe.devices[d];
        json_open_object(&json, true);
        put_text(&json, "name", device->name);
        put_text(&json, "platform", device->platform);
        put_text(&json, "driver", device->driver);
        put_text(&json, "type", device->type);
        put_text(&json, "mode", device->mode);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
    return end_file(&writer, files);
}

/* --- The archive -------------------------------------------------------------------------------------------------- */

static bool write_archive(const struct files *files)
{
    struct error error;
    struct outfile *file;
    if (!outfile_open(&file, archive_name, &error))
        return lab_fail("%s: %s", archive_name, error.text);
    FILE *to = outfile_stream(file);
    errno = 0;
    for (uint32_t i = 0; i < files->count; i++)
        if (!archive_add(to, archive_prefix, files->names[i], files->names[i])) {
            lab_fail("%s: %s: %s", archive_name, files->names[i], strerror(errno));
            outfile_abandon(&file);
            return false;
        }
    if (!archive_end(to)) {
        lab_fail("%s: %s", archive_name, strerror(errno));
        outfile_abandon(&file);
        return false;
    }
    return outfile_finish(&file, &error) || lab_fail("%s: %s", archive_name, error.text);
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

/* What cannot be made of one part is left out, and said. */
static bool take_figures(struct laptop_page *page, bool made)
{
    if (made)
        page->count++;
    else
        figures_free(&page->all[page->count]);
    return made;
}

static bool make_figures(const struct laptop_machine *machine, const struct laptop_records *records,
                         struct laptop_page *page)
{
    bool good = true;
    for (enum laptop_part part = LAPTOP_SIZES; part < LAPTOP_ALL_PARTS; part++)
        for (int battery = 0; battery < 2; battery++) {
            const struct laptop_record *record = laptop_record_find(records, part, battery);
            if (record && record->status == LAB_OK &&
                !take_figures(page, figures_make(machine, record, &page->all[page->count])))
                good = lab_fail("%s: no figures can be made of it", laptop_part_name(part));
        }
    const struct laptop_record *mains = laptop_record_find(records, LAPTOP_CURVE, false);
    const struct laptop_record *battery = laptop_record_find(records, LAPTOP_CURVE, true);
    if (!mains || !battery || mains->status != LAB_OK || battery->status != LAB_OK)
        return good;
    if (!take_figures(page, figures_supplies(mains, battery, &page->all[page->count])))
        return false;
    page->supplies = page->count - 1;
    return good;
}

static bool write_page(const struct laptop_page *page, struct files *files)
{
    struct html html = {0};
    struct writer writer;
    bool good = laptop_page(page, &html) || lab_fail("out of memory");
    FILE *to = good ? begin_file(&writer, "laptop.html") : NULL;
    if (to)
        fwrite(html.text, 1, html.length, to);
    good = to && end_file(&writer, files);
    html_free(&html);
    return good;
}

bool laptop_write_results(const struct laptop_options *options,
                          const struct laptop_machine *machine,
                          const struct laptop_records *records)
{
    struct laptop_page *page = calloc(1, sizeof *page);
    struct files *files = calloc(1, sizeof *files);
    bool good = false;
    if (!page || !files) {
        lab_fail("out of memory");
        goto end;
    }
    good = true;
    page->options = options;
    page->machine = machine;
    page->records = records;
    machine_read(&page->about);
    if (mkdir("plots", 0777) != 0 && errno != EEXIST)
        good = lab_fail("plots: %s", strerror(errno));
    const bool whole = make_figures(machine, records, page);
    good = good && write_page(page, files) && write_plots(page, files) &&
           write_machine(options, machine, &page->about, files);
    add_file(files, "parts.json");
    for (uint32_t i = 0; good && i < records->count; i++) {
        char name[64];
        if (records->all[i].status != LAB_OK)
            continue;
        laptop_file_name(records->all[i].part, records->all[i].supply, ".db", name, sizeof name);
        add_file(files, name);
        laptop_file_name(records->all[i].part, records->all[i].supply, ".txt", name, sizeof name);
        add_file(files, name);
    }
    good = good && write_archive(files);
    if (good)
        printf("\npage: %s/laptop.html\narchive: %s/%s, %u files\n", options->folder,
               options->folder, archive_name, files->count);
    good = good && whole;
end:
    for (uint32_t i = 0; page && i < page->count; i++)
        figures_free(&page->all[i]);
    free(page);
    free(files);
    return good;
}
