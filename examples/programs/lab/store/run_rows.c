/* The rows of a run: its parameters, devices, passes, phases, disturbances, references and
 * telemetry sources.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
#include "lab/build.h"
#include "lab/objective.h"
#include "recording.h"

#include <coxswain/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* "Linux 6.1.0 x86_64, Intel(R) Core(TM) ..." */
static void describe_system(const struct utsname *names, char *text, size_t bytes)
{
    char line[256], model[200] = "";

    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !model[0] && fgets(line, sizeof line, file))
        sscanf(line, "model name : %199[^\n]", model);
    if (file)
        fclose(file);

    snprintf(text, bytes, "%s %s %s%s%s", names->sysname, names->release, names->machine,
             model[0] ? ", " : "", model);
}

/* What the run was measured with. */
static void put_provenance(struct lab_store *store)
{
    const struct lab_provenance *files = &store->provenance;

    if (!store->has_provenance)
        lab_provenance_read(&store->provenance);
    store->has_provenance = true;

    lab_store_setting(store, "commit", lab_build.commit);
    lab_store_setting(store, "build_type", lab_build.type);
    lab_store_setting(store, "compiler", lab_build.compiler);
    lab_store_setting(store, "build_flags", lab_build.flags);
    lab_store_setting(store, "program_sha256", files->program[0] ? files->program : NULL);
    lab_store_setting(store, "library_sha256", files->library[0] ? files->library : NULL);
}

int64_t lab_store_begin_run(struct lab_store *store, const struct lab_store_run *run)
{
    struct utsname names;
    char described[1024] = "";
    const char *host = run->host, *system = run->system;

    lab_store_write(store);
    if (uname(&names) == 0)
        describe_system(&names, described, sizeof described);
    else
        names.nodename[0] = '\0';
    if (!host)
        host = names.nodename;
    if (!system)
        system = described;

    store->run_number = 0;
    store->run_ns = now_ns();
    store->has_telemetry = false;
    store->phase_count = 0;
    lab__store_put(store, LAB_SQL_RUN, "tttttttiiiiitit", run->source, run->started_at,
                   cox_version(), host, system, run->command, run->kernel, (int64_t)run->columns,
                   (int64_t)run->rows, (int64_t)run->row_alignment, (int64_t)run->in_flight,
                   (int64_t)run->frames, lab_objective_name(run->objective),
                   (int64_t)run->deadline_ns, run->meter);
    if (store->error[0])
        return 0;

    store->run_number = sqlite3_last_insert_rowid(store->db);
    lab_store_pass(store, 0, NULL, run->rows, 0);
    put_provenance(store);
    lab__store_end(store);
    if (store->error[0])
        return 0;

    return store->run_number;
}

void lab_store_row_alignment(struct lab_store *store, uint32_t row_alignment)
{
    lab__store_put(store, LAB_SQL_GRANULE, "ii", store->run_number, (int64_t)row_alignment);
}

void lab_store_setting(struct lab_store *store, const char *name, const char *value)
{
    lab__store_put(store, LAB_SQL_SETTING, "itt", store->run_number, name, value);
}

void lab_store_device(struct lab_store *store, uint32_t device, const struct cox_device_info *info)
{
    lab__store_put(store, LAB_SQL_DEVICE, "iittttt", store->run_number, (int64_t)device, info->name,
                   info->platform, info->driver, cox_device_type_name(info->type),
                   cox_memory_mode_name(info->mode));
}

void lab_store_pass(struct lab_store *store, uint32_t pass, const char *name, uint32_t rows,
                    uint32_t stages)
{
    int64_t known_stages = -1;

    if (stages > 0)
        known_stages = stages;
    lab__store_put(store, LAB_SQL_PASS, "iitik", store->run_number, (int64_t)pass, name,
                   (int64_t)rows, known_stages);
}

void lab_store_phase(struct lab_store *store, uint32_t phase, uint64_t first_frame,
                     uint64_t end_frame, const char *text)
{
    struct lab_store_phase *phases = realloc(store->phases,
                                             (store->phase_count + 1) * sizeof *phases);

    if (!phases) {
        lab__store_fail(store, "out of memory");
        return;
    }

    store->phases = phases;
    phases[store->phase_count++] = (struct lab_store_phase){phase, first_frame, end_frame};
    lab__store_put(store, LAB_SQL_PHASE, "iiiit", store->run_number, (int64_t)phase,
                   (int64_t)first_frame, (int64_t)end_frame, text);
}

void lab_store_disturbance(struct lab_store *store, uint32_t disturbance, const char *kind,
                           const char *text, uint64_t first_frame, uint64_t end_frame, bool real,
                           const char *note)
{
    lab__store_put(store, LAB_SQL_DISTURBANCE, "iittiiit", store->run_number, (int64_t)disturbance,
                   kind, text, (int64_t)first_frame, (int64_t)end_frame, (int64_t)real, note);
}

void lab_store_reference(struct lab_store *store, uint32_t phase, int32_t device, double median_ns,
                         uint64_t frames, const double *ratios, uint32_t ratio_count)
{
    const char *kind = "solo", *shares = NULL;
    char text[LAB_RATIOS_BYTES];

    if (device < 0)
        kind = "oracle";
    if (ratio_count > 0) {
        lab__store_ratios_text(ratios, ratio_count, text, sizeof text);
        shares = text;
    }

    lab__store_put(store, LAB_SQL_REFERENCE_AWAY, "iitk", store->run_number, (int64_t)phase, kind,
                   (int64_t)device);
    lab__store_put(store, LAB_SQL_REFERENCE, "iitkrit", store->run_number, (int64_t)phase, kind,
                   (int64_t)device, median_ns, (int64_t)frames, shares);
}

void lab_store_reference_mean(struct lab_store *store, uint32_t phase, int32_t device,
                              double mean_ns)
{
    if (mean_ns > 0)
        lab__store_put(store, LAB_SQL_REFERENCE_MEAN, "iikr", store->run_number, (int64_t)phase,
                       (int64_t)device, mean_ns);
}

void lab_store_reference_p90(struct lab_store *store, uint32_t phase, int32_t device, double p90_ns)
{
    if (p90_ns > 0)
        lab__store_put(store, LAB_SQL_REFERENCE_P90, "iikr", store->run_number, (int64_t)phase,
                       (int64_t)device, p90_ns);
}

void lab_store_load(struct lab_store *store, double processors, bool busy)
{
    if (processors >= 0)
        lab__store_put(store, LAB_SQL_LOAD, "iri", store->run_number, processors, (int64_t)busy);
}

void lab_store_source(struct lab_store *store, uint32_t source,
                      const struct lab_store_source *about)
{
    store->has_telemetry = true;
    lab__store_put(store, LAB_SQL_SOURCE, "iittttt", store->run_number, (int64_t)source,
                   about->name, about->kind, about->part, about->unit, about->origin);
}

void lab_store_finish_run(struct lab_store *store)
{
    lab_store_write(store);
    lab__store_put(store, LAB_SQL_FINISH, "i", store->run_number);
    lab__store_end(store);
}
