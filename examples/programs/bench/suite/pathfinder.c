/* Rodinia's pathfinder: dynamic programming. Each frame goes down STEPS rows of the wall.
 *
 * A work-group has more work-items than columns that it writes. So a row of the session is a
 * work-item, and a row of the sums has the columns of one work-group.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/texts.h"
#include "list.h"

#include <stdlib.h>

enum { GROUP = 256, STEPS = 20 };        /* as in the pass's options */
enum { GROUP_COLS = GROUP - 2 * STEPS }; /* that a work-group writes */

enum { WALL, SUMS, RESULT };

struct constants {
    int32_t cols, start;
};

struct shape {
    int32_t groups;
    uint32_t blocks; /* of STEPS rows of the wall; then it begins again */
    uint32_t frames;
};

struct own {
    struct constants constants;
    uint32_t blocks;
    int32_t steps[]; /* two lines of sums, for reference() */
};

static void set_constants(const struct suite_problem *problem, uint32_t frame, void *constants)
{
    const struct own *own = problem->own;

    ((struct constants *)constants)->start = (int32_t)(frame % own->blocks) * STEPS;
}

static void step_down(const int32_t *wall, const int32_t *sums, int32_t *result, int32_t cols)
{
    for (int32_t x = 0; x < cols; x++) {
        int32_t least = sums[x];
        if (x > 0 && sums[x - 1] < least)
            least = sums[x - 1];
        if (x < cols - 1 && sums[x + 1] < least)
            least = sums[x + 1];

        result[x] = wall[x] + least;
    }
}

static void reference(const struct suite_problem *problem, void *const *memories)
{
    struct own *own = problem->own;
    const int32_t cols = own->constants.cols;

    for (uint32_t frame = 0; frame < problem->frames; frame++) {
        const int32_t *sums = memories[problem->use[frame & 1][SUMS]];
        const int32_t *wall = memories[WALL];
        wall += (size_t)(frame % own->blocks) * STEPS * cols;

        for (int step = 0; step < STEPS; step++) {
            int32_t *to = own->steps + (size_t)(step & 1) * cols;
            if (step == STEPS - 1)
                to = memories[problem->use[frame & 1][RESULT]];

            step_down(wall, sums, to, cols);
            sums = to;
            wall += cols;
        }
    }
}

static struct cox_buffer_layout sums_layout(const char *name)
{
    return (struct cox_buffer_layout){.name = name,
                                      .pitch_bytes = GROUP_COLS * sizeof(int32_t),
                                      .row_divisor = GROUP,
                                      .stays = true};
}

bool suite_make_pathfinder(enum suite_size size, struct suite_problem *problem)
{
    static const struct shape shapes[] = {{14, 2, 3}, {2000, 5, 6}, {9000, 10, 60}};
    static const struct cox_field fields[] = {
        COX_FIELD(struct constants, cols), COX_FIELD(struct constants, start), {0}};
    static const struct cox_argument arguments[] = {
        {.name = "wall", .whole = true}, {.name = "sums", .halo_rows = 1}, {0}};

    const size_t cols = (size_t)shapes[size].groups * GROUP_COLS;
    const size_t rows = (size_t)shapes[size].blocks * STEPS;
    const size_t line_bytes = cols * sizeof(int32_t);

    int32_t *wall = suite_memory_add(problem, rows * line_bytes, false, false);
    int32_t *sums = suite_memory_add(problem, line_bytes, false, true);
    struct own *own = malloc(sizeof *own + 2 * line_bytes);
    problem->own = own;
    if (!own || !wall || !sums || !suite_memory_add(problem, line_bytes, false, true))
        return false;

    uint32_t seed = 1;
    for (size_t i = 0; i < rows * cols; i++)
        wall[i] = suite_random(&seed) % 10;
    for (size_t x = 0; x < cols; x++)
        sums[x] = suite_random(&seed) % 10;
    own->constants = (struct constants){.cols = (int32_t)cols};
    own->blocks = shapes[size].blocks;

    problem->passes[0] = (struct cox_pass){.source = bench_text("pathfinder.cl"),
                                           .options = "-D GROUP=256 -D STEPS=20",
                                           .local_rows = GROUP,
                                           .absolute = true,
                                           .arguments = arguments};
    problem->buffers[0] = (struct cox_buffer_layout){
        .name = "wall", .bytes = rows * line_bytes, .stays = true};
    problem->buffers[1] = sums_layout("sums");
    problem->buffers[2] = sums_layout("result");
    suite_set_shape(problem, 0, (uint32_t)shapes[size].groups * GROUP);
    suite_set_fields(problem, fields, &own->constants, sizeof own->constants);

    problem->frames = shapes[size].frames;
    problem->set_constants = set_constants;
    problem->reference = reference;

    /* Each frame continues from the result of the frame before. */
    suite_use_in_order(problem);
    problem->use[1][SUMS] = RESULT;
    problem->use[1][RESULT] = SUMS;

    return true;
}
