/* What is told of a run: its row, settings, devices, phases, disturbances, references, and what telemetry reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/now.h"
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

int64_t lab_store_begin_run(struct lab_store *store, const struct lab_store_run *run)
{
    lab_store_write(store);
    struct utsname names;
    char system[1024] = "";
    if (uname(&names) == 0)
        describe_system(&names, system, sizeof system);
    else
        names.nodename[0] = '\0';
    store->run_number = 0;
    store->run_ns = now_ns();
    store->has_telemetry = false;
    store->phase_count = 0;
    if (!lab__store_writing(store))
        return 0;
    lab__store_check(store,
                     lab__store_step(store->sql[LAB_SQL_RUN], "tttttttiiiiitit", run->source,
                                     run->started_at, cox_version(),
                                     run->host ? run->host : names.nodename,
                                     run->system ? run->system : system, run->command, run->kernel,
                                     (int64_t)run->columns, (int64_t)run->rows,
                                     (int64_t)run->granule, (int64_t)run->in_flight,
                                     (int64_t)run->frames, lab_objective_name(run->objective),
                                     (int64_t)run->deadline_ns, run->meter));
    if (!store->error[0])
        store->run_number = sqlite3_last_insert_rowid(store->db);
    lab_store_pass(store, 0, NULL, run->rows, 0);
    lab__store_end(store);
    return store->error[0] ? 0 : store->run_number;
}

void lab_store_granule(struct lab_store *store, uint32_t granule)
{
    if (lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_GRANULE], "ii",
                                                store->run_number, (int64_t)granule));
}

void lab_store_setting(struct lab_store *store, const char *name, const char *value)
{
    if (lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_SETTING], "itt",
                                                store->run_number, name, value));
}

void lab_store_device(struct lab_store *store, uint32_t device, const struct cox_device_info *info)
{
    if (lab__store_writing(store))
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_DEVICE], "iittttt", store->run_number,
                                         (int64_t)device, info->name, info->platform, info->driver,
                                         cox_device_type_name(info->type),
                                         cox_memory_mode_name(info->mode)));
}

void lab_store_pass(struct lab_store *store, uint32_t pass, const char *name, uint32_t rows,
                    uint32_t stages)
{
    if (lab__store_writing(store))
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_PASS], stages ? "iitii" : "iitin",
                                         store->run_number, (int64_t)pass, name, (int64_t)rows,
                                         (int64_t)stages));
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
    if (lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_PHASE], "iiiit",
                                                store->run_number, (int64_t)phase,
                                                (int64_t)first_frame, (int64_t)end_frame, text));
}

void lab_store_disturbance(struct lab_store *store, uint32_t disturbance, const char *kind,
                           const char *text, uint64_t first_frame, uint64_t end_frame, bool real,
                           const char *note)
{
    if (lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_DISTURBANCE], "iittiiit",
                                                store->run_number, (int64_t)disturbance, kind, text,
                                                (int64_t)first_frame, (int64_t)end_frame,
                                                (int64_t)real, note));
}

void lab_store_reference(struct lab_store *store, uint32_t phase, int32_t device, double median_ns,
                         uint64_t frames, const double *ratios, uint32_t ratio_count)
{
    if (!lab__store_writing(store))
        return;
    char text[COX_DEVICES_MAX * 26 + 3];
    if (ratio_count > COX_DEVICES_MAX)
        ratio_count = COX_DEVICES_MAX;
    lab__store_ratios_text(ratios, ratio_count, text, sizeof text);
    const char *kind = device < 0 ? "oracle" : "solo";
    const char *types[2] = {device < 0 ? "iitn" : "iiti", device < 0 ? "iitnrit" : "iitirit"};
    const char *shares = ratio_count ? text : NULL;
    if (device < 0) {
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_REFERENCE_AWAY], types[0],
                                                store->run_number, (int64_t)phase, kind));
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_REFERENCE], types[1], store->run_number,
                                         (int64_t)phase, kind, median_ns, (int64_t)frames, shares));
    } else {
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_REFERENCE_AWAY], types[0],
                                         store->run_number, (int64_t)phase, kind, (int64_t)device));
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_REFERENCE], types[1], store->run_number,
                                         (int64_t)phase, kind, (int64_t)device, median_ns,
                                         (int64_t)frames, shares));
    }
}

void lab_store_reference_mean(struct lab_store *store, uint32_t phase, int32_t device,
                              double mean_ns)
{
    if (mean_ns > 0 && lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_REFERENCE_MEAN], "iiir",
                                                store->run_number, (int64_t)phase,
                                                (int64_t)(device < 0 ? -1 : device), mean_ns));
}

void lab_store_reference_p90(struct lab_store *store, uint32_t phase, int32_t device, double p90_ns)
{
    if (p90_ns > 0 && lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_REFERENCE_P90], "iiir",
                                                store->run_number, (int64_t)phase,
                                                (int64_t)(device < 0 ? -1 : device), p90_ns));
}

void lab_store_load(struct lab_store *store, double processors, bool busy)
{
    if (processors >= 0 && lab__store_writing(store))
        lab__store_check(store, lab__store_step(store->sql[LAB_SQL_LOAD], "iri", store->run_number,
                                                processors, (int64_t)(busy ? 1 : 0)));
}

void lab_store_source(struct lab_store *store, uint32_t source,
                      const struct lab_store_source *about)
{
    store->has_telemetry = true;
    if (lab__store_writing(store))
        lab__store_check(store,
                         lab__store_step(store->telemetry.source, "iittttt", store->run_number,
                                         (int64_t)source, about->name, about->kind, about->part,
                                         about->unit, about->origin));
}

void lab_store_finish_run(struct lab_store *store)
{
    lab_store_write(store);
    if (lab__store_writing(store))
        lab__store_check(store,
                         lab__store_step(store->sql[LAB_SQL_FINISH], "i", store->run_number));
    lab__store_end(store);
}
