/* Picture output and other files: a name exists only when its file is complete, and a PNG holds the given pixels.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/outfile.h"
#include "media/picture.h"
#include "unit/programs/bytes.h"
#include "support/folder.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(outfile, .init = make_folder, .fini = remove_folder, .timeout = 600);
TestSuite(png, .init = make_folder, .fini = remove_folder, .timeout = 600);

static struct error said;

static void expect_said(const char *words)
{
    cr_expect(strstr(said.text, words) != NULL, "%s", said.text);
}

static int count_files(void)
{
    int count = 0;
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while ((entry = readdir(directory)))
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(directory);
    return count;
}

static void expect_files(int files)
{
    cr_expect_eq(count_files(), files, "%d files instead of %d", count_files(), files);
}

/* The contents of the file with this name. NULL: no file. */
static void expect_content(const char *path, const char *content)
{
    cr_expect_eq(access(path, F_OK), content ? 0 : -1, "%s", path);
    if (!content)
        return;
    const struct bytes *b = load_file(path);
    cr_expect(b->count == strlen(content) && (!b->count || !memcmp(b->data, content, b->count)), "%s is not %s", path,
              content);
}

static struct outfile *begin(const char *path, const char *content)
{
    struct outfile *file;
    cr_assert(outfile_open(&file, path, &said), "%s", said.text);
    fputs(content, outfile_stream(file));
    return file;
}

static void finish(struct outfile **file)
{
    cr_assert(outfile_finish(file, &said), "%s", said.text);
    cr_expect(*file == NULL);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* The temporary file has no name if the system supports that, otherwise it is a hidden file. */
Test(outfile, nothing_stands_under_the_name_until_it_is_finished)
{
    for (int named = 0; named < 2; named++) {
        const char *path = in_folder(named ? "out.txt" : "another.txt");
        if (named)
            outfile_use_names();
        struct outfile *file = begin(path, "content");
        fflush(outfile_stream(file));
        expect_content(path, NULL);
        const int temporary = count_files() - named; /* without the old file */
        cr_expect(temporary == 1 || (temporary == 0 && !named), "%d", temporary);
        finish(&file);
        expect_content(path, "content");
        expect_files(1 + named); /* the temporary file is gone */
    }
}

Test(outfile, two_names_of_one_place_are_told)
{
    char other[4096];
    snprintf(other, sizeof other, "%s/./new", folder);
    cr_expect(outfile_same_place(in_folder("new"), other), "before it exists");
    write_file(in_folder("new"), "x", 1);
    cr_expect(outfile_same_place(in_folder("new"), other));
    cr_expect_not(outfile_same_place(other, in_folder("newer")));
    cr_assert_eq(symlink("new", in_folder("link")), 0);
    cr_expect(outfile_same_place(other, in_folder("link")));
    cr_expect_not(outfile_same_place("/dev/null", "/dev/null"), "a device takes all");
    cr_expect_not(outfile_same_place("-", "-"));
}

Test(outfile, abandoned_it_leaves_what_was_there)
{
    const char *path = in_folder("out.txt");
    write_file(path, "before", 6);
    struct outfile *file = begin(path, "after");
    outfile_abandon(&file);
    outfile_abandon(&file);
    expect_content(path, "before");
    expect_files(1);
}

Test(outfile, an_interrupted_program_can_remove_what_it_began)
{
    outfile_use_names();
    struct outfile *one = begin(in_folder("one"), ""), *two = begin(in_folder("two"), "");
    expect_files(2);
    outfile_remove_all();
    expect_files(0);
    outfile_abandon(&one);
    outfile_abandon(&two);
}

/* Start a process that is killed while it writes. */
static void write_and_be_killed(const char *path)
{
    struct outfile *file;
    int status;
    const pid_t child = fork();
    if (!child) {
        if (outfile_open(&file, path, &said) && fputs("half", outfile_stream(file)) >= 0)
            raise(SIGKILL);
        _exit(1);
    }
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFSIGNALED(status));
}

Test(outfile, what_killed_programs_have_left_is_taken_away)
{
    const char *path = in_folder("out.txt");
    outfile_use_names();
    for (int i = 0; i < 30; i++)
        write_and_be_killed(path);
    expect_files(1);
    struct outfile *file = begin(path, "");
    expect_files(1); /* replaced */
    write_and_be_killed(path);
    struct outfile *other = begin(path, "");
    expect_files(2); /* the file of a running program is left alone */
    outfile_abandon(&other);
    expect_files(1);
    finish(&file);
    expect_content(path, "");
    expect_files(1);
}

Test(outfile, programs_that_write_to_one_place_at_once_do_not_disturb_each_other)
{
    enum { PROGRAMS = 8, TIMES = 200 };
    const char *path = in_folder("out.txt");
    struct outfile *file;
    int status;
    outfile_use_names();
    for (int i = 0; i < PROGRAMS; i++) {
        if (fork())
            continue;
        bool good = true;
        for (int n = 0; n < TIMES && good; n++)
            good = outfile_open(&file, path, &said) && fputs("whole", outfile_stream(file)) >= 0 &&
                   outfile_finish(&file, &said);
        if (good && i % 2 && outfile_open(&file, path, &said))
            raise(SIGKILL);
        _exit(!good);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        cr_assert(wait(&status) > 0);
        cr_expect(WIFSIGNALED(status) || !WEXITSTATUS(status));
    }
    cr_expect_leq(count_files(), 1 + PROGRAMS / 2);
    for (int i = 0; i < PROGRAMS; i++) { /* remaining files may have any of the hidden names */
        file = begin(path, "");
        finish(&file);
    }
    expect_content(path, ""); /* the last file was empty */
}

Test(outfile, what_a_killed_program_has_left_gives_way_to_a_file_without_a_name)
{
    write_file(in_folder(".out.txt.0.tmp"), "half", 4);
    struct outfile *file = begin(in_folder("out.txt"), "");
    finish(&file);
    expect_content(in_folder("out.txt"), "");
    expect_files(1);
}

Test(outfile, a_link_stays_and_permissions_too)
{
    struct stat about;
    write_file(in_folder("target"), "x", 1);
    cr_assert_eq(chmod(in_folder("target"), 0640), 0);
    cr_assert_eq(symlink("target", in_folder("link")), 0);
    struct outfile *file = begin(in_folder("link"), "new");
    finish(&file);
    cr_expect_eq(lstat(in_folder("link"), &about), 0);
    cr_expect(S_ISLNK(about.st_mode));
    expect_content(in_folder("target"), "new");
    cr_expect_eq(stat(in_folder("target"), &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0640);
}

Test(outfile, a_device_is_written_not_replaced)
{
    struct stat about;
    struct outfile *file = begin("/dev/null", "");
    cr_expect(outfile_is_special(file));
    finish(&file);
    cr_expect_eq(stat("/dev/null", &about), 0);
    cr_expect(S_ISCHR(about.st_mode));
}

Test(outfile, what_cannot_be_written_is_told)
{
    struct outfile *file = begin("/dev/full", "does not fit");
    cr_expect_not(outfile_finish(&file, &said));
    expect_said("No space left");
    cr_expect_not(outfile_open(&file, in_folder("no/such/place"), &said));
    expect_said("cannot be written");
    cr_expect_not(outfile_open(&file, folder, &said));
    expect_said("is a directory");
    cr_expect_not(outfile_open(&file, "", &said));
}

/* --- PNG ---------------------------------------------------------------------------------------------------------- */

#if COX_HAVE_PNG
#include <png.h>

static void write_png(const char *path, const void *pixels, uint32_t width, uint32_t height, enum cox_pixel_out pixel,
                      size_t pitch)
{
    struct picture_output *output;
    cr_assert(picture_output_open(&output, path, width, height, pixel, &said), "%s", said.text);
    cr_assert(picture_output_write(output, pixels, pitch, &said), "%s", said.text);
    cr_assert(picture_output_finish(&output, &said), "%s", said.text);
    cr_assert(output == NULL);
}

/* Read an sRGB PNG back without this project's code: rows of components of `depth` bits, big-endian. They stay
 * valid until the next call. Returns the number of components per pixel. */
static int read_png(const char *path, int depth, struct bytes **out)
{
    static struct bytes b;
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL);
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    cr_assert_eq(setjmp(png_jmpbuf(png)), 0, "libpng cannot read it back");
    png_init_io(png, f);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    const int channels = png_get_channels(png, info);
    cr_expect_eq(png_get_bit_depth(png, info), depth);
    cr_expect(png_get_valid(png, info, PNG_INFO_sRGB));
    png_bytepp rows = png_get_rows(png, info);
    b.count = 0;
    for (uint32_t y = 0; y < png_get_image_height(png, info); y++)
        put(&b, rows[y], png_get_rowbytes(png, info));
    png_destroy_read_struct(&png, &info, NULL);
    fclose(f);
    *out = &b;
    return channels;
}

Test(png, eight_bits_come_back_and_alpha_only_where_it_matters)
{
    enum { WIDTH = 5, HEIGHT = 3, PITCH = 32 };
    for (int transparent = 0; transparent < 2; transparent++) {
        uint8_t pixels[HEIGHT * PITCH];
        struct bytes *b;
        for (int i = 0; i < HEIGHT * PITCH; i++)
            pixels[i] = i % 4 == 3 ? 255 : (uint8_t)(i * 7);
        if (transparent)
            pixels[PITCH + 4 * 2 + 3] = 254;
        write_png(in_folder("a.png"), pixels, WIDTH, HEIGHT, COX_PIXEL_RGBA8, PITCH);
        const int channels = read_png(in_folder("a.png"), 8, &b);
        cr_expect_eq(channels, transparent ? 4 : 3);
        cr_assert_eq(b->count, (size_t)(WIDTH * HEIGHT * channels));
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                cr_assert_eq(memcmp(b->data + (y * WIDTH + x) * channels, pixels + y * PITCH + 4 * x, (size_t)channels),
                             0);
    }
}

Test(png, sixteen_bits_come_back)
{
    enum { WIDTH = 4, HEIGHT = 2 };
    uint16_t pixels[WIDTH * HEIGHT * 4];
    struct bytes *b;
    for (int i = 0; i < WIDTH * HEIGHT * 4; i++)
        pixels[i] = i % 4 == 3 ? 65535 : (uint16_t)(i * 1717);
    write_png(in_folder("a.PNG"), pixels, WIDTH, HEIGHT, COX_PIXEL_RGBA16, WIDTH * 8);
    cr_expect_eq(read_png(in_folder("a.PNG"), 16, &b), 3);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        for (int c = 0; c < 3; c++)
            cr_assert_eq(b->data[(i * 3 + c) * 2] << 8 | b->data[(i * 3 + c) * 2 + 1], pixels[i * 4 + c]);
}

Test(png, errors_leave_no_file)
{
    struct picture_output *output;
    uint8_t pixels[4] = {1, 2, 3, 255};
    cr_expect_not(picture_output_open(&output, in_folder("a.bmp"), 1, 1, COX_PIXEL_RGBA8, &said));
    expect_said(".png");
    cr_assert(picture_output_open(&output, in_folder("b.png"), 1, 1, COX_PIXEL_RGBA8, &said));
    cr_expect(picture_output_write(output, pixels, 4, &said));
    cr_expect_not(picture_output_write(output, pixels, 4, &said), "a PNG holds one picture");
    picture_output_abandon(&output);
    picture_output_abandon(&output);
    expect_files(0);
}

#ifdef COX_HAVE_JPEG
Test(png, what_a_jpeg_cannot_hold_is_refused)
{
    struct picture_output *output;
    cr_expect_not(picture_output_open(&output, in_folder("a.jpg"), 1, 1, COX_PIXEL_RGBA16, &said));
    expect_said("8 bits");
    cr_expect_not(picture_output_open(&output, in_folder("a.jpeg"), 65501, 1, COX_PIXEL_RGBA8, &said));
    expect_said("65500 pixels");
    cr_expect(output == NULL);
    expect_files(0);
}
#endif

Test(png, a_full_disk_is_told)
{
    enum { SIDE = 256 };
    static uint8_t noise[SIDE * SIDE * 4];
    struct picture_output *output;
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    cr_assert(picture_output_open(&output, "/dev/full", SIDE, SIDE, COX_PIXEL_RGBA8, &said));
    cr_expect_not(picture_output_write(output, noise, SIDE * 4, &said));
    expect_said("No space left");
    picture_output_abandon(&output);
}

#endif
