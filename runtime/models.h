/* What sessions measured of their devices, kept from run to run: the file `models.sqlite` in the cache directory. An entry
 * is what one kind of session knew of each of its devices; what makes sessions of one kind is the caller's affair
 * (recall.h) and comes as a digest. The schema is described in docs/memory.md.
 *
 * The file is a help, never a condition. One that is missing is as good as empty; one that is damaged, somebody else's,
 * of another version, no private file of this user or no file at all is left as it is, with one log line. Without
 * SQLite (COX_HAVE_SQLITE) nothing is ever found and nothing is kept.
 *
 * Thread-safety: safe from any thread and from several processes on one directory. Blocks for file access, so not for the
 * scheduler thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_MODELS_H
#define COX_RUNTIME_MODELS_H

#include "log.h"
#include <coxswain/sched.h>

#define COX__MODELS_FILE "models.sqlite"

enum {
    COX__MODELS_ENTRIES_MAX = 256,   /* beyond, the entries that were not written for longest go */
    COX__MODELS_LOAD_WAIT_MS = 40,   /* for other processes that write; a session's start waits no longer */
    COX__MODELS_STORE_WAIT_MS = 250, /* a session's end */
};

/* A device of an entry, as the file's readers see it; strings are read during the call only. */
struct cox__models_device {
    const char *id;
    const char *driver;
    uint32_t compute_units;
};

/* An entry's key, and for the file's readers what it stands for. */
struct cox__models_entry {
    unsigned char key[32];
    const char *policy;
    const char *kernels;
    uint32_t rows;
    uint32_t columns;
    uint32_t device_count;
    struct cox__models_device devices[COX_DEVICES_MAX];
};

enum cox__models_found {
    COX__MODELS_NONE = 0, /* nothing is known of such a session */
    COX__MODELS_FOUND = 1,
    COX__MODELS_UNUSABLE = 2, /* the file must be left alone (logged): do not call store */
};

/* Fill entry->device_count models. */
enum cox__models_found cox__models_load(const char *dir, const struct cox__models_entry *entry,
                                        struct cox_device_model *models, const struct cox__log *log);

/* Write an entry: in place of the one of the same key if `frames`, the frames measured by this session, are many, else
 * mixed with it. A failure is a log line. */
void cox__models_store(const char *dir, const struct cox__models_entry *entry, uint64_t frames,
                       const struct cox_device_model *models, const struct cox__log *log);

/* Whether models can be of use: in range, of one device at least, and shares of one whole. */
bool cox__models_plausible(const struct cox_device_model *models, uint32_t count);

#endif
