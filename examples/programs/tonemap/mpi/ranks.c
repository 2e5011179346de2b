/* cox-tonemap-mpi: a film over the ranks of MPI, to the frames of one run.
 *
 *     mpirun -n N cox-tonemap-mpi FILM -o OUTPUT.mkv [options of cox-tonemap]
 *
 * It runs the steps of a film in pieces (docs/guide/pieces.md) in the processes of the ranks. A
 * thread of rank 0 hands out ranges of frames; every rank, 0 too, works on one range after the
 * other. Parts and encoded pieces lie in the folder OUTPUT.pieces, which all ranks can see; each is
 * whole or does not exist. Frames that are not encoded go to one file in this folder
 * (shared_file.h), and a journal says which of them are there. After a restart, what is there is
 * not done again. The time of each range is in OUTPUT.pieces/times.csv, which `cox-lab cluster`
 * reads.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/range_scheduler.h"
#include "common/now.h"
#include "common/outfile.h"
#include "found.h"
#include "journal.h"
#include "shared_file.h"
#include "tonemap/command_line.h"
#include "tonemap/devices.h"
#include "tonemap/dispatch.h"
#include "tonemap/ends_with.h"
#include "tonemap/files.h"
#include "tonemap/messages.h"
#include "tonemap/scenes.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAG_ASK = 1, TAG_RANGE = 2, NAME_BYTES = 4096 };

/* The request for the next range, with the result of the last one. */
struct ask {
    uint64_t frames; /* 0 = no range yet */
    double seconds;
};

/* The range that a rank works on, and since when, by the clock of rank 0. */
struct given {
    struct frame_range range; /* a count of 0: no range is left */
    uint64_t since_ns;
    char piece[VIDEO_PIECE_BYTES]; /* the name of its piece */
};

struct world {
    int rank, size;
    struct options options; /* of the whole, as given */
    char folder[NAME_BYTES], scene[NAME_BYTES + 16];
    char devices[1024]; /* this rank's */
    bool encoded;
    char film_path[NAME_BYTES + 16], journal_path[NAME_BYTES + 16];
    struct shared_file film; /* unless encoded */
    uint64_t frames;
    struct profile profile;

    /* Of rank 0. */
    FILE *times;
    uint64_t began_ns;
    struct journal journal;

    /* Of the thread of rank 0 that hands out ranges. */
    struct range_scheduler scheduler;
    enum film_step step;
    struct given *given;         /* to each rank */
    const struct scenes *scenes; /* of the step; NULL = there are none yet */
};

/* --- What one process does --- */

/* The options of a step. */
static struct options step_of(struct world *world, enum film_step step, const char *output)
{
    struct options options = world->options;
    options.step = step;
    options.given = 0; /* choose_output has checked them */
    options.output = output;
    options.quiet = true;
    options.arithmetic = world->profile.arithmetic;
    options.devices = *world->devices ? world->devices : NULL;
    return options;
}

/* End all ranks with this exit status. */
static _Noreturn void end_all_ranks(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status ? status : EXIT_BAD);
    abort();
}

static void do_range(struct world *world, enum film_step step, const struct given *given)
{
    const struct frame_range range = given->range;
    const bool map = step == FILM_MAP, shared = map && !world->encoded;
    const struct video_place place = shared_file_place(&world->film, range.first);
    char name[NAME_BYTES + 64];
    snprintf(name, sizeof name, "%s/%" PRIu64 "-%" PRIu64 ".%s", world->folder, range.first,
             range.count, map ? "mkv" : "part");

    struct options options = step_of(world, step, shared ? world->film_path : name);
    options.ranged = true;
    options.range_first = range.first;
    options.range_end = range.first + range.count;
    if (map) {
        options.scenes = world->scene;
        options.piece = given->piece;
    }
    if (shared)
        options.place = &place;
    else if (map)
        options.to = OUTPUT_MKV;

    const int status = dispatch_run(&options);
    if (status || (shared && !shared_file_sync(&world->film)))
        end_all_ranks(status);
}

/* Work on ranges until none is left. */
static void work(struct world *world, enum film_step step)
{
    struct ask ask = {0};
    for (;;) {
        struct given given;
        MPI_Send(&ask, sizeof ask, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
        wait_receive(&given, sizeof given, 0, TAG_RANGE);
        if (!given.range.count)
            return;

        const uint64_t began_ns = now_ns();
        do_range(world, step, &given);
        ask = (struct ask){given.range.count, (double)(now_ns() - began_ns) / 1e9};
    }
}

/* --- Rank 0's thread --- */

/* Write a line of times.csv, by the clock of rank 0. */
static void note_time(const struct world *world, const char *step, int rank,
                      struct frame_range range, uint64_t since_ns, double seconds)
{
    fprintf(world->times, "%s,%d,%" PRIu64 ",%" PRIu64 ",%.4f,%.4f\n", step, rank, range.first,
            range.count, (double)(since_ns - world->began_ns) / 1e9, seconds);
}

static void *hand_out_ranges(void *user)
{
    struct world *world = user;
    for (int ended = 0; ended < world->size;) {
        struct ask ask;
        const int rank = wait_receive(&ask, sizeof ask, MPI_ANY_SOURCE, TAG_ASK);
        struct given *given = &world->given[rank];
        if (ask.frames)
            note_time(world, options_step_name(world->step), rank, given->range, given->since_ns,
                      ask.seconds);
        if (ask.frames && world->journal.path && !journal_add(&world->journal, given->piece))
            end_all_ranks(EXIT_BAD);

        range_scheduler_note(&world->scheduler, (uint32_t)rank, ask.frames, ask.seconds);
        *given = (struct given){range_scheduler_next(&world->scheduler, (uint32_t)rank), now_ns(),
                                ""};
        if (world->scenes && given->range.count)
            scenes_piece(world->scenes, given->range.first, given->range.count,
                         options_encoding(&world->options), given->piece);

        MPI_Send(given, sizeof *given, MPI_BYTE, rank, TAG_RANGE, MPI_COMM_WORLD);
        ended += !given->range.count;
    }
    return NULL;
}

/* --- Steps of all ranks --- */

/* Find the existing parts (`scenes` NULL) or encoded pieces. */
static bool find(const struct world *world, const struct scenes *scenes, struct founds *founds)
{
    const struct found_what what = {&world->profile, scenes, options_encoding(&world->options)};
    return founds_look(founds, world->folder, &what);
}

/* The ranges of the existing parts or encoded pieces. */
static bool find_ranges(const struct world *world, const struct scenes *scenes,
                        struct frame_range **done, uint64_t *count)
{
    struct founds founds;
    if (!find(world, scenes, &founds))
        return false;

    *count = founds.count;
    *done = calloc(founds.count + 1, sizeof **done);
    for (uint64_t i = 0; *done && i < founds.count; i++)
        (*done)[i] = founds.all[i].range;
    founds_forget(&founds);

    return *done || message_error("out of memory");
}

/* Rank 0: find the ranges that a step still has to do. For a file that all ranks write, the journal
 * has the ranges that are done; if it is empty, the file is created. */
static bool begin_step(struct world *world, const struct scenes *scenes)
{
    struct frame_range *done = NULL;
    uint64_t count = 0;
    bool good;
    if (!scenes || world->encoded)
        good = find_ranges(world, scenes, &done, &count);
    else
        good = journal_begin(&world->journal, world->journal_path, scenes,
                             options_encoding(&world->options), shared_file_room(&world->film),
                             &done, &count) &&
               (count || shared_file_create(&world->film));

    if (good && !range_scheduler_begin(&world->scheduler, (uint32_t)world->size, world->frames,
                                       done, count))
        good = message_error("out of memory");
    free(done);
    return good;
}

/* All ranks together: do all that is left of a step. */
static void do_step(struct world *world, enum film_step step, const struct scenes *scenes)
{
    pthread_t thread;
    const bool shared = step == FILM_MAP && !world->encoded;
    const uint64_t began_ns = now_ns();
    world->step = step;
    world->scenes = scenes;

    if (!world->rank &&
        (!begin_step(world, scenes) || pthread_create(&thread, NULL, hand_out_ranges, world)))
        end_all_ranks(EXIT_BAD);

    wait_for_all_ranks();
    if (shared && !shared_file_open(&world->film))
        end_all_ranks(EXIT_BAD);
    work(world, step);
    if (shared && !shared_file_close(&world->film))
        end_all_ranks(EXIT_BAD);
    wait_for_all_ranks();
    if (world->rank)
        return;

    pthread_join(thread, NULL);
    range_scheduler_end(&world->scheduler);

    printf("%-10s%.2f s\n", step == FILM_ANALYSE ? "analysed" : "mapped",
           (double)(now_ns() - began_ns) / 1e9);
    fflush(stdout);
    fflush(world->times);
}

/* Whether the existing scene file is of this film with this look. People may have changed its
 * scenes. */
static bool scenes_fit(const struct world *world)
{
    struct scenes scenes;
    if (access(world->scene, F_OK) || !scenes_read(&scenes, world->scene))
        return false;

    const bool fit = profile_equal(&scenes.profile, &world->profile);
    scenes_free(&scenes);
    return fit;
}

/* Rank 0 alone: steer the parts or join the encoded pieces. */
static bool gather(struct world *world, enum film_step step, const struct scenes *scenes,
                   const char *output)
{
    struct founds founds;
    struct options options = step_of(world, step, output);
    if (!find(world, scenes, &founds))
        return false;

    char **paths = calloc(founds.count + 1, sizeof *paths);
    if (!paths)
        end_all_ranks(EXIT_BAD);
    for (uint64_t i = 0; i < founds.count; i++)
        paths[i] = founds.all[i].path;

    options.inputs = paths;
    options.input_count = (uint32_t)founds.count;
    options.input = paths[0]; /* NULL if nothing was found */
    options.overwrite = step == FILM_JOIN ? world->options.overwrite : !scenes_fit(world);
    if (step == FILM_JOIN)
        options.source = world->options.input;

    const uint64_t began_ns = now_ns();
    int status = EXIT_BAD;
    if (founds.count)
        status = dispatch_run(&options);
    note_time(world, options_step_name(step), 0, (struct frame_range){0, world->frames}, began_ns,
              (double)(now_ns() - began_ns) / 1e9);
    free(paths);
    founds_forget(&founds);
    if (status)
        end_all_ranks(status);
    return true;
}

/* Rank 0 alone: rename the file that all ranks have written to the output. */
static bool finish(struct world *world)
{
    const uint64_t began_ns = now_ns();
    journal_end(&world->journal);
    const bool good = shared_file_finish(&world->film, world->options.output);

    note_time(world, options_step_name(FILM_JOIN), 0, (struct frame_range){0, world->frames},
              began_ns, (double)(now_ns() - began_ns) / 1e9);
    return good;
}

/* --- Beginning --- */

/* "gpu|cpu": the devices of the first and of the second rank of each machine. The third rank begins
 * with the first list again. */
static bool choose_devices(struct world *world)
{
    MPI_Comm machine;
    int local = 0, lists = 1;
    const char *at = world->options.devices;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &local);
    MPI_Comm_free(&machine);
    if (!at)
        return true;

    for (const char *c = at; *c; c++)
        lists += *c == '|';
    for (int skip = local % lists; skip > 0; at++)
        skip -= *at == '|';

    const size_t length = strcspn(at, "|");
    snprintf(world->devices, sizeof world->devices, "%.*s", (int)length, at);
    return length < sizeof world->devices ||
           message_error("--devices: a list can have at most %zu characters",
                         sizeof world->devices - 1);
}

/* Find what must be the same on all ranks. That is the arithmetic that the devices of all ranks
 * have, the profile of the film, its frames, and how they lie in a file. */
static bool agree(struct world *world)
{
    struct options options = step_of(world, FILM_ANALYSE, world->folder);
    struct source from = {.options = &options};
    struct devices devices = {0};
    struct error error;
    options.arithmetic = world->options.arithmetic;
    if (world->encoded)
        options.to = OUTPUT_Y4M;

    bool good = devices_start(&devices, &options);
    int arithmetic = 0, least = 0;
    if (good)
        arithmetic = (int)cox_runtime_arithmetic(devices.runtime);
    wait_for_all_ranks(); /* a rank may compile kernels for a long time */
    MPI_Allreduce(&arithmetic, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);

    good = good && least && source_open(&from) && source_choose_shape(&from);
    if (good)
        source_choose_light(&from);
    good = good && profile_make(&world->profile, &from, (enum cox_arithmetic)least);
    if (good && !world->rank)
        good = video_input_count(from.input, &world->frames, &error) ||
               message_file_error(options.input, &error);
    if (good && !world->encoded)
        good = video_output_layout(&world->film.layout,
                                   options.to == OUTPUT_Y4M ? VIDEO_OUTPUT_Y4M : VIDEO_OUTPUT_RAW,
                                   &from.target, &error) ||
               message_file_error(world->film_path, &error);

    world->film.frames = world->frames;
    video_input_close(&from.input);
    devices_stop(&devices);
    if (!good)
        return false;

    wait_for_all_ranks(); /* rank 0 may have read the whole film */
    /* Another version of libavformat may find another rate or aspect in the input. */
    MPI_Bcast(&world->film.layout, sizeof world->film.layout, MPI_BYTE, 0, MPI_COMM_WORLD);
    return true;
}

/* Whether a film over MPI can become an output of this kind and name. */
static bool check_output(const struct world *world, const struct options *whole,
                         struct options_error *wrong)
{
    const char *output = whole->output;
    bool good = ends_with(output, ".mkv") || ends_with(output, ".mp4");
    struct stat about;
    if (!world->encoded)
        good = (whole->to == OUTPUT_Y4M || options_want_raw(whole)) && strcmp(output, "-");
    if (!good)
        return options_refuse(wrong, "%s: with MPI the output is .mkv, .mp4, .y4m, .nv12 or .p010",
                              output);
    if (!world->encoded && !stat(output, &about) && !S_ISREG(about.st_mode))
        return options_refuse(wrong, "%s: not a regular file, which the output must be with MPI",
                              output);
    if (outfile_same_place(whole->input, output))
        return options_refuse(
            wrong, "%s: input and output are the same file; give the output another name", output);

    if (whole->start || whole->frames || whole->stats || whole->trace || whole->scenes ||
        whole->hash || whole->judge || whole->step || whole->lut || whole->input_count != 1)
        return options_refuse(wrong,
                              "cox-tonemap-mpi maps one whole film; --start, --frames, --scene, "
                              "--hash, --judge, --lut, --stats and --trace are not supported");
    return true;
}

static bool choose_output(struct world *world, struct options_error *wrong)
{
    const char *output = world->options.output;
    struct options whole = world->options;
    if (!options_suit(&whole, OPTIONS_VIDEO, wrong))
        return false;
    world->options.to = whole.to;
    world->options.depth = whole.depth;
    world->encoded = options_want_finished(&whole);
    if (!check_output(world, &whole, wrong))
        return false;

    snprintf(world->folder, sizeof world->folder, "%s.pieces", output);
    snprintf(world->scene, sizeof world->scene, "%s/film.scene", world->folder);
    snprintf(world->film_path, sizeof world->film_path, "%s/film.%s", world->folder,
             options_kind_name(whole.to));
    snprintf(world->journal_path, sizeof world->journal_path, "%s/journal", world->folder);
    world->film.path = world->film_path;
    return true;
}

/* Rank 0: whether a file of the folder can be renamed to the output. Checked before hours of
 * work. */
static bool can_be_renamed(const struct world *world)
{
    const char *output = world->options.output, *slash = strrchr(output, '/');
    char place[NAME_BYTES] = ".";
    struct stat from, to;
    if (slash)
        snprintf(place, sizeof place, "%.*s", (int)(slash - output) + 1, output);
    if (world->encoded || stat(world->folder, &from) || stat(place, &to) ||
        from.st_dev == to.st_dev)
        return true;

    return message_error("%s: not on the file system of %s, so the finished film cannot be moved "
                         "there",
                         world->folder, output);
}

/* Rank 0: lock the folder until the process ends. If files cannot be locked, another run is not
 * noticed. */
static bool take_folder(const struct world *world)
{
    if (mkdir(world->folder, 0777) && errno != EEXIST)
        return message_error("%s: %s", world->folder, strerror(errno));

    const int fd = open(world->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return message_error("%s: %s", world->folder, strerror(errno));
    return !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK ||
           message_error("%s: another run uses this folder", world->folder);
}

/* Rank 0: the file of times. */
static bool begin_times(struct world *world)
{
    char path[NAME_BYTES + 16];
    snprintf(path, sizeof path, "%s/times.csv", world->folder);

    world->given = calloc((size_t)world->size, sizeof *world->given);
    world->times = fopen(path, "w");
    if (!world->times || !world->given)
        return message_error("%s: %s", path, strerror(errno));

    fprintf(world->times, "step,rank,first,count,start_s,seconds\n");
    return true;
}

/* Rank 0: the checks and files that no other rank needs. */
static bool begin(struct world *world)
{
    if (world->encoded && !files_may_write(&world->options))
        return false;

    return take_folder(world) && can_be_renamed(world) && begin_times(world);
}

/* Rank 0: from the mapped frames to the output. */
static bool end(struct world *world, const struct scenes *scenes)
{
    if (world->encoded)
        return gather(world, FILM_JOIN, scenes, world->options.output);

    return finish(world);
}

static bool run(struct world *world)
{
    const bool first = !world->rank;
    struct scenes scenes = {0};
    if (first && !begin(world))
        return false;
    wait_for_all_ranks();
    if (!choose_devices(world) || !agree(world))
        return false;
    if (first)
        note_time(world, "begin", 0, (struct frame_range){0, world->frames}, world->began_ns,
                  (double)(now_ns() - world->began_ns) / 1e9);

    do_step(world, FILM_ANALYSE, NULL);
    if (first && !gather(world, FILM_STEER, NULL, world->scene))
        return false;
    wait_for_all_ranks();
    if (first && !scenes_read(&scenes, world->scene))
        return false;
    do_step(world, FILM_MAP, &scenes);
    const bool good = !first || end(world, &scenes);

    scenes_free(&scenes);
    if (first && fclose(world->times))
        message_error("warning: %s/times.csv is incomplete: %s", world->folder, strerror(errno));
    free(world->given);
    if (good && first)
        printf("written   %s (%" PRIu64 " frames, %d rank%s)\n", world->options.output,
               world->frames, world->size, plural((uint64_t)world->size));
    return good;
}

static const char help[] =
    "Usage: mpirun -n N cox-tonemap-mpi FILM -o OUTPUT.mkv|.mp4|.y4m|.nv12|.p010 [options]\n"
    "\n"
    "Maps one film on all ranks. The frames are the same as those of one cox-tonemap run.\n"
    "\n"
    "Parts and pieces are kept in the folder OUTPUT.pieces, which all ranks must see. After a\n"
    "failure start the command again: finished parts and pieces are kept. For y4m and raw frames\n"
    "all ranks write to one file there, which is renamed to OUTPUT at the end.\n"
    "\n"
    "  --devices A|B|...   device lists: A for the first rank of each machine, B for the second, and\n"
    "                      so on; ranks after the last list begin again with A\n"
    "  -h, --help          print this text\n"
    "\n"
    "Look, device and encoder options are those of cox-tonemap --help.\n";

int main(int argc, char **argv)
{
    struct world world = {0};
    struct options_error wrong;
    int provided = 0;
    world.began_ns = now_ns();

    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return EXIT_BAD;
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    messages_begin(NULL, COX_LOG_ERROR);
    if (provided < MPI_THREAD_MULTIPLE) {
        message_error("this MPI does not support MPI_THREAD_MULTIPLE");
        end_all_ranks(EXIT_BAD);
    }

    const enum options_parsed parsed = options_parse(&world.options, argc, argv, &wrong);
    if (parsed == OPTIONS_HELP && !world.rank)
        fputs(help, stdout);

    if (parsed == OPTIONS_WRONG || (parsed == OPTIONS_RUN && !choose_output(&world, &wrong))) {
        if (!world.rank)
            message_error("%s", wrong.text);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    if (parsed == OPTIONS_RUN && !run(&world))
        end_all_ranks(messages_incompatible() ? EXIT_INCOMPATIBLE : EXIT_BAD);
    MPI_Finalize();
    return 0;
}
