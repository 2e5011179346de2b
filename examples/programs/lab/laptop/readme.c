/* SPDX-License-Identifier: Apache-2.0 */
#include "readme.h"
#include "lab/build.h"
#include "lab/commands.h"
#include "lab/provenance.h"

#include <coxswain/version.h>

static const char files[] =
    "Files\n"
    "  laptop.html       the results: open it in a browser\n"
    "  machine.json      the devices and their drivers, and the energy meter\n"
    "  parts.json        the parts of the measurement, with their commands\n"
    "  plots/NAME.csv    the figures of a plot; low and high are 95 % intervals\n"
    "  plots/plots.gp    draws the plots: cd plots && gnuplot plots.gp\n"
    "  PART.db           every frame of a part, as an SQLite database\n"
    "  PART.txt          what the commands of the part printed\n"
    "  LICENSE           the licence of these files, Apache-2.0\n"
    "  SHA256SUMS        checksums of all files: sha256sum -c SHA256SUMS\n"
    "\n"
    "A page of one part, and its figures as CSV:\n"
    "  cox-lab report PART.db\n"
    "  cox-lab report PART.db --csv\n"
    "\n"
    "The files do not name the machine or its user. They have times of day.\n";

void laptop_readme(const struct laptop_records *records, FILE *to)
{
    struct lab_provenance hashes;

    lab_provenance_read(&hashes);
    fprintf(to,
            "Load balancing between the devices of one machine, measured by cox-lab laptop\n\n"
            "Made by\n"
            "  cox-lab %s of Coxswain, commit %s\n"
            "  %s build by %s\n"
            "  SHA-256 of the program: %s\n"
            "  SHA-256 of the library: %s\n",
            cox_version(), lab_build.commit, lab_build.type, lab_build.compiler,
            hashes.program[0] ? hashes.program : "unknown",
            hashes.library[0] ? hashes.library : "unknown");

    fputs("\nMeasured\n", to);
    for (uint32_t i = 0; i < records->count; i++) {
        const struct laptop_record *record = &records->all[i];

        if (record->status == LAB_OK)
            fprintf(to, "  %-8s %s, power: %s\n", laptop_part_name(record->part),
                    record->started_at, laptop_supply_name(record->supply));
    }
    fprintf(to, "Each database says which program recorded its runs.\n\n%s", files);
}
