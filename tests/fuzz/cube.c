/* Fuzz target: look-up tables in .cube files. A table is refused with one printable line, or it is whole: the
 * library takes it, and it comes back from the file that is written of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "media/cube.h"

#include <coxswain/video.h>
#include <math.h>

/* Larger tables only make the target slow. */
enum { POINTS_MAX = 9 };

static bool read_text(struct cube *cube, char *text, size_t size, struct error *error)
{
    FILE *file = fmemopen(text, size, "r");
    CHECK(file);
    const bool good = cube_read_stream(cube, file, error);
    fclose(file);
    return good;
}

static void check_error(const struct error *error)
{
    CHECK(*error->text && memchr(error->text, 0, sizeof error->text));
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~');
}

/* Six digits are written behind the point, and %g writes six digits of the domain. */
static bool near(float a, float b)
{
    return fabsf(a - b) <= 1e-6f + fabsf(a) * 1e-5f;
}

static void check_written(const struct cube *cube)
{
    struct cube again;
    struct error error = {""};
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    CHECK(file);
    cube_write(file, cube, "a title", "# a comment\n");
    CHECK(!fclose(file));

    /* A domain may become too narrow by rounding, and a value too large. */
    if (read_text(&again, text, bytes, &error)) {
        CHECK(again.points == cube->points);
        for (size_t i = 0; i < 3 * cube_points(cube); i++)
            CHECK(near(again.colors[i], cube->colors[i]));
        for (int c = 0; c < 3; c++)
            CHECK(near(again.least[c], cube->least[c]) && near(again.most[c], cube->most[c]));
        cube_free(&again);
    }
    free(text);
}

static void check_table(const struct cube *cube)
{
    const size_t bytes = cox_video_lut_bytes(cube->points);
    struct cox_video_lut lut = {.points = cube->points, .colors = cube->colors};
    memcpy(lut.domain_least, cube->least, sizeof lut.domain_least);
    memcpy(lut.domain_most, cube->most, sizeof lut.domain_most);
    void *table = malloc(bytes);
    CHECK(bytes && table);
    CHECK(cox_video_lut_table(&lut, table) == COX_OK);
    free(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cube cube;
    struct error error = {""};
    if (!size)
        return 0;

    char *text = fuzz_text(data, size);
    const bool good = read_text(&cube, text, size, &error);
    free(text);
    if (!good) {
        CHECK(!cube.colors);
        check_error(&error);
        return 0;
    }

    CHECK(cube.points >= 2 && cube.points <= COX_LUT_POINTS_MAX);
    if (cube.points <= POINTS_MAX) {
        check_table(&cube);
        check_written(&cube);
    }
    cube_free(&cube);
    CHECK(!cube.colors);
    return 0;
}
