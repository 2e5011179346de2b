/* The results: the page, the plots' files, the description of the machine, the archive with a README,
 * the licence and checksums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bundle.h"
#include "archive.h"
#include "common/json.h"
#include "common/host_machine.h"
#include "common/outfile.h"
#include "common/sha256.h"
#include "lab/fail.h"
#include "lab/texts.h"
#include "part_plots.h"
#include "readme.h"
#include "summary.h"

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
    char names[128][64];
};

static void add_file(struct files *files, const char *name)
{
    if (files->count < sizeof files->names / sizeof files->names[0] && access(name, R_OK) == 0)
        snprintf(files->names[files->count++], sizeof files->names[0], "%s", name);
}

/* A file that is being written. */
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

    if (fflush(to) != 0 || ferror(to)) {
        lab_fail("%s: %s", writer->name, strerror(errno));
        outfile_abandon(&writer->file);
        return false;
    }
    if (!outfile_finish(&writer->file, &error))
        return lab_fail("%s: %s", writer->name, error.text);

    add_file(files, writer->name);
    return true;
}

/* --- The plots' files ------------------------------------------------------------------------- */

static bool write_csv(const struct plot *plot, struct files *files)
{
    struct writer writer;
    char name[64];

    snprintf(name, sizeof name, "plots/%s.csv", plot->name);
    FILE *to = begin_file(&writer, name);
    if (!to)
        return false;

    plot_csv(plot, to);
    return end_file(&writer, files);
}

static bool write_plots(const struct laptop_page *page, struct files *files)
{
    struct writer writer;
    const struct plot *plots[(LAPTOP_RECORDS_MAX + 1) * FINDINGS_PLOTS_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < page->count; i++)
        for (uint32_t k = 0; k < page->all[i].count; k++)
            if (plot_has_points(&page->all[i].plots[k]))
                plots[count++] = &page->all[i].plots[k];

    for (size_t i = 0; i < count; i++)
        if (!write_csv(plots[i], files))
            return false;

    FILE *to = begin_file(&writer, "plots/plots.gp");
    if (!to)
        return false;
    fputs("# Draws each CSV file of this folder as SVG:  gnuplot plots.gp  (gnuplot 5.4; Debian:"
          " gnuplot-nox)\n"
          "set terminal svg size 900,420 dynamic noenhanced background rgb 'white'\n",
          to);
    for (size_t i = 0; i < count; i++)
        plot_gnuplot(plots[i], to);
    return end_file(&writer, files);
}

/* --- The machine ------------------------------------------------------------------------------ */

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
    json_member_string(&json, "version", cox_version());
    machine_json(about, &json);
    json_member_string(&json, "supply",
                       laptop_supply_name(laptop_supply_now(laptop_or_null(options->sysfs))));
    json_member_bool(&json, "energy_meter", machine->meter);

    json_member_array(&json, "kinds", false);
    for (uint32_t i = 0; i < machine->kind_count; i++) {
        json_open_object(&json, true);
        json_member_string(&json, "name", machine->kinds[i].name);
        json_member_unsigned(&json, "cores", machine->kinds[i].cores);
        json_member_string(&json, "cpus", machine->kinds[i].cpus);
        json_close_object(&json);
    }
    json_close_array(&json);

    json_member_array(&json, "devices", false);
    for (uint32_t d = 0; d < machine->probe.device_count; d++) {
        const struct laptop_device *device = &machine->probe.devices[d];

        json_open_object(&json, true);
        json_member_string(&json, "name", device->name);
        json_member_string(&json, "platform", device->platform);
        json_member_string(&json, "driver", device->driver);
        json_member_string(&json, "type", device->type);
        json_member_string(&json, "mode", device->mode);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
    return end_file(&writer, files);
}

/* --- What comes with the results -------------------------------------------------------------- */

static bool write_papers(const struct laptop_records *records, struct files *files)
{
    struct writer writer;
    FILE *to = begin_file(&writer, "README.txt");

    if (!to)
        return false;
    laptop_readme(records, to);
    if (!end_file(&writer, files))
        return false;

    to = begin_file(&writer, "LICENSE");
    if (!to)
        return false;
    fputs(lab_text("LICENSE"), to);
    return end_file(&writer, files);
}

/* Of all files so far, as `sha256sum -c` reads them. */
static bool write_checksums(struct files *files)
{
    static const char name[] = "SHA256SUMS";
    char hash[SHA256_TEXT_BYTES];
    struct writer writer;
    FILE *to = begin_file(&writer, name);

    if (!to)
        return false;

    for (uint32_t i = 0; i < files->count; i++) {
        if (!sha256_of_file(files->names[i], hash)) {
            outfile_abandon(&writer.file);
            return lab_fail("%s: %s: %s", name, files->names[i], strerror(errno));
        }
        fprintf(to, "%s  %s\n", hash, files->names[i]);
    }
    return end_file(&writer, files);
}

/* --- The archive ------------------------------------------------------------------------------ */

static bool write_archive(const struct files *files)
{
    struct error error;
    struct outfile *file;
    bool good = true;

    if (!outfile_open(&file, archive_name, &error))
        return lab_fail("%s: %s", archive_name, error.text);

    FILE *to = outfile_stream(file);
    errno = 0;
    for (uint32_t i = 0; good && i < files->count; i++)
        if (!archive_add(to, archive_prefix, files->names[i], files->names[i]))
            good = lab_fail("%s: %s: %s", archive_name, files->names[i], strerror(errno));
    if (good && !archive_end(to))
        good = lab_fail("%s: %s", archive_name, strerror(errno));
    if (!good) {
        outfile_abandon(&file);
        return false;
    }

    return outfile_finish(&file, &error) || lab_fail("%s: %s", archive_name, error.text);
}

/* --- All -------------------------------------------------------------------------------------- */

/* Keep the findings, or leave them out if they could not be made. */
static bool take_findings(struct laptop_page *page, bool made)
{
    if (made)
        page->count++;
    else
        findings_free(&page->all[page->count]);
    return made;
}

/* NULL unless the part was measured. */
static const struct laptop_record *find_done(const struct laptop_page *page, enum laptop_part part,
                                             bool on_battery)
{
    const struct laptop_record *record = laptop_record_find(page->records, part, on_battery);

    if (record && record->status != LAB_OK)
        return NULL;
    return record;
}

static bool make_findings(struct laptop_page *page)
{
    bool good = true;

    for (enum laptop_part part = LAPTOP_SIZES; part < LAPTOP_ALL_PARTS; part++)
        for (int battery = 0; battery < 2; battery++) {
            const struct laptop_record *record = find_done(page, part, battery);

            if (record &&
                !take_findings(page, findings_make(page->machine, record, &page->all[page->count])))
                good = lab_fail("part %s: its database has too few frames for figures",
                                laptop_part_name(part));
        }

    const struct laptop_record *mains = find_done(page, LAPTOP_CURVE, false);
    const struct laptop_record *battery = find_done(page, LAPTOP_CURVE, true);
    if (!mains || !battery)
        return good;
    if (!take_findings(page, findings_supplies(mains, battery, &page->all[page->count])))
        return false;
    page->supplies = page->count - 1;
    return good;
}

static bool write_page(const struct laptop_page *page, struct files *files)
{
    static const char name[] = "laptop.html";
    struct html html = {0};
    struct error error;
    bool good = laptop_page(page, &html) || lab_fail("out of memory");

    good = good && (html_save(&html, name, &error) || lab_fail("%s: %s", name, error.text));
    if (good)
        add_file(files, name);
    html_free(&html);
    return good;
}

/* Databases and printed output of the parts that were measured. */
static void add_parts(const struct laptop_records *records, struct files *files)
{
    char name[64];

    add_file(files, laptop_records_file);
    for (uint32_t i = 0; i < records->count; i++) {
        if (records->all[i].status != LAB_OK)
            continue;
        laptop_file_name(&records->all[i], ".db", name, sizeof name);
        add_file(files, name);
        laptop_file_name(&records->all[i], ".txt", name, sizeof name);
        add_file(files, name);
    }
}

/* False after a message. */
static bool write_files(struct laptop_page *page, struct files *files)
{
    machine_read(&page->about);
    if (mkdir("plots", 0777) != 0 && errno != EEXIST)
        return lab_fail("plots: %s", strerror(errno));

    /* A part without findings does not prevent the results of the others. */
    const bool whole = make_findings(page);
    if (!write_papers(page->records, files) || !write_page(page, files) ||
        !write_plots(page, files) ||
        !write_machine(page->options, page->machine, &page->about, files))
        return false;

    add_parts(page->records, files);
    if (!write_checksums(files) || !write_archive(files))
        return false;

    printf("\npage: %s/laptop.html\narchive: %s/%s, %u files\n", page->options->folder,
           page->options->folder, archive_name, files->count);
    return whole;
}

bool laptop_write_results(const struct laptop_options *options,
                          const struct laptop_machine *machine,
                          const struct laptop_records *records)
{
    struct laptop_page *page = calloc(1, sizeof *page);
    struct files *files = calloc(1, sizeof *files);
    bool good = false;

    if (page && files) {
        page->options = options;
        page->machine = machine;
        page->records = records;
        good = write_files(page, files);
    } else {
        lab_fail("out of memory");
    }

    for (uint32_t i = 0; page && i < page->count; i++)
        findings_free(&page->all[i]);
    free(page);
    free(files);
    return good;
}
