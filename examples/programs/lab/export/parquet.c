/* A file is the magic number, the pages, the metadata, its length, and the magic number again. A
 * page is its header, then runs of definition levels (1 = a value, 0 = null), then the values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parquet.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUP_ROWS = 65536,
    GROUP_BYTES = 32 << 20, /* a column with more ends the row group */
    NESTING_MAX = 8
};

static const char magic[] = "PAR1";

/* Numbers of Parquet's format. */
enum { DATA_PAGE = 0, PLAIN = 0, RLE = 3, UNCOMPRESSED = 0, OPTIONAL = 1, UTF8 = 0, VERSION = 1 };
/* Types of the compact protocol. */
enum { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

/* --- Bytes ------------------------------------------------------------------------------------ */

struct bytes {
    uint8_t *data;
    size_t count, room;
    bool failed; /* memory ran out */
};

static void add(struct bytes *to, const void *data, size_t count)
{
    if (count > to->room - to->count && !to->failed) {
        const size_t room = 2 * to->room + count + 256;
        uint8_t *grown = realloc(to->data, room);

        to->failed = !grown;
        if (grown) {
            to->data = grown;
            to->room = room;
        }
    }

    if (to->failed || count == 0)
        return;
    memcpy(to->data + to->count, data, count);
    to->count += count;
}

static void add_byte(struct bytes *to, uint8_t value)
{
    add(to, &value, 1);
}

static void add_little_endian(struct bytes *to, uint64_t value, unsigned count)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    add(to, bytes, count);
}

static void add_varint(struct bytes *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_byte(to, (uint8_t)(value | 0x80));
    add_byte(to, (uint8_t)value);
}

/* --- Structs of the compact protocol ---------------------------------------------------------- */

/* Fields are written in ascending order of their numbers, as differences. */
struct thrift {
    struct bytes *to;
    int depth;
    int last[NESTING_MAX]; /* field of each open struct */
};

static void field(struct thrift *thrift, int number, int type)
{
    int *last = &thrift->last[thrift->depth];

    add_byte(thrift->to, (uint8_t)((number - *last) << 4 | type));
    *last = number;
}

static void zigzag(struct thrift *thrift, int64_t value)
{
    add_varint(thrift->to, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static void whole(struct thrift *thrift, int number, int type, int64_t value)
{
    field(thrift, number, type);
    zigzag(thrift, value);
}

static void string(struct thrift *thrift, const char *text)
{
    add_varint(thrift->to, strlen(text));
    add(thrift->to, text, strlen(text));
}

static void list(struct thrift *thrift, int number, int type, size_t count)
{
    field(thrift, number, THRIFT_LIST);
    add_byte(thrift->to, (uint8_t)((count < 15 ? count : 15) << 4 | (size_t)type));
    if (count >= 15)
        add_varint(thrift->to, count);
}

/* A struct in a list has no field number. */
static void open_element(struct thrift *thrift)
{
    thrift->last[++thrift->depth] = 0;
}

static void open_struct(struct thrift *thrift, int number)
{
    field(thrift, number, THRIFT_STRUCT);
    open_element(thrift);
}

static void close_struct(struct thrift *thrift)
{
    add_byte(thrift->to, 0);
    thrift->depth--;
}

/* --- Columns ---------------------------------------------------------------------------------- */

/* A column's values of the row group. */
struct chunk {
    struct bytes levels, values;
    uint8_t level; /* of the run that is not yet in `levels` */
    uint32_t run;
    uint32_t booleans; /* values, eight in a byte */
};

struct parquet {
    FILE *to;
    uint64_t at; /* bytes written */
    const struct parquet_column *columns;
    uint32_t count, column; /* columns; the next one */
    uint32_t group_rows;
    uint64_t rows;
    struct bytes groups; /* their metadata */
    uint32_t group_count;
    bool full, failed;
    struct chunk chunks[];
};

static void put(struct parquet *file, const struct bytes *bytes)
{
    file->failed |= bytes->failed;
    if (bytes->count > 0)
        fwrite(bytes->data, 1, bytes->count, file->to);
    file->at += bytes->count;
}

static void end_run(struct chunk *chunk)
{
    if (chunk->run == 0)
        return;
    add_varint(&chunk->levels, (uint64_t)chunk->run << 1);
    add_byte(&chunk->levels, chunk->level);
    chunk->run = 0;
}

/* A page's header; the lengths of its levels come first in its content. */
static void add_page_header(struct bytes *to, const struct chunk *chunk, uint32_t rows)
{
    struct thrift thrift = {.to = to};
    const int64_t content = (int64_t)(4 + chunk->levels.count + chunk->values.count);

    whole(&thrift, 1, THRIFT_I32, DATA_PAGE);
    whole(&thrift, 2, THRIFT_I32, content);
    whole(&thrift, 3, THRIFT_I32, content);
    open_struct(&thrift, 5);
    whole(&thrift, 1, THRIFT_I32, rows);
    whole(&thrift, 2, THRIFT_I32, PLAIN);
    whole(&thrift, 3, THRIFT_I32, RLE);
    whole(&thrift, 4, THRIFT_I32, RLE);
    close_struct(&thrift);
    add_byte(to, 0);

    add_little_endian(to, chunk->levels.count, 4);
}

static void add_chunk_metadata(struct thrift *thrift, const struct parquet_column *column,
                               uint32_t rows, uint64_t at, uint64_t size)
{
    open_element(thrift);
    whole(thrift, 2, THRIFT_I64, 0);
    open_struct(thrift, 3);
    whole(thrift, 1, THRIFT_I32, column->type);
    list(thrift, 2, THRIFT_I32, 2);
    zigzag(thrift, PLAIN);
    zigzag(thrift, RLE);
    list(thrift, 3, THRIFT_BINARY, 1);
    string(thrift, column->name);
    whole(thrift, 4, THRIFT_I32, UNCOMPRESSED);
    whole(thrift, 5, THRIFT_I64, rows);
    whole(thrift, 6, THRIFT_I64, (int64_t)size);
    whole(thrift, 7, THRIFT_I64, (int64_t)size);
    whole(thrift, 9, THRIFT_I64, (int64_t)at);
    close_struct(thrift);
    close_struct(thrift);
}

/* Write a column's page and forget its values. Returns the bytes written. */
static uint64_t write_chunk(struct parquet *file, struct chunk *chunk, struct bytes *header)
{
    const uint64_t before = file->at;

    end_run(chunk);
    header->count = 0;
    add_page_header(header, chunk, file->group_rows);
    put(file, header);
    put(file, &chunk->levels);
    put(file, &chunk->values);
    chunk->levels.count = chunk->values.count = 0;
    chunk->booleans = 0;

    return file->at - before;
}

static void write_group(struct parquet *file)
{
    struct thrift thrift = {.to = &file->groups};
    struct bytes header = {.count = 0};
    const uint64_t begin = file->at;

    open_element(&thrift);
    list(&thrift, 1, THRIFT_STRUCT, file->count);
    for (uint32_t i = 0; i < file->count; i++) {
        const uint64_t at = file->at;
        const uint64_t size = write_chunk(file, &file->chunks[i], &header);

        add_chunk_metadata(&thrift, &file->columns[i], file->group_rows, at, size);
    }
    whole(&thrift, 2, THRIFT_I64, (int64_t)(file->at - begin));
    whole(&thrift, 3, THRIFT_I64, file->group_rows);
    close_struct(&thrift);

    free(header.data);
    file->group_count++;
    file->rows += file->group_rows;
    file->group_rows = 0;
    file->full = false;
}

/* --- Values ----------------------------------------------------------------------------------- */

/* Add the level of the row's next column. Returns the values to add the value to. */
static struct chunk *next(struct parquet *file, uint8_t level)
{
    struct chunk *chunk = &file->chunks[file->column];

    if (chunk->level != level)
        end_run(chunk);
    chunk->level = level;
    chunk->run++;
    return chunk;
}

static void end_value(struct parquet *file, const struct chunk *chunk)
{
    file->full |= chunk->values.count > GROUP_BYTES;
    if (++file->column < file->count)
        return;

    file->column = 0;
    if (++file->group_rows == GROUP_ROWS || file->full)
        write_group(file);
}

void parquet_null(struct parquet *file)
{
    end_value(file, next(file, 0));
}

void parquet_boolean(struct parquet *file, bool value)
{
    struct chunk *chunk = next(file, 1);
    struct bytes *values = &chunk->values;
    const uint32_t bit = chunk->booleans++ % 8;

    if (bit == 0)
        add_byte(values, 0);
    if (value && !values->failed)
        values->data[values->count - 1] |= (uint8_t)(1u << bit);
    end_value(file, chunk);
}

void parquet_int64(struct parquet *file, int64_t value)
{
    struct chunk *chunk = next(file, 1);
    add_little_endian(&chunk->values, (uint64_t)value, 8);
    end_value(file, chunk);
}

void parquet_double(struct parquet *file, double value)
{
    struct chunk *chunk = next(file, 1);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_little_endian(&chunk->values, bits, 8);
    end_value(file, chunk);
}

void parquet_text(struct parquet *file, const char *text)
{
    struct chunk *chunk = next(file, 1);
    add_little_endian(&chunk->values, strlen(text), 4);
    add(&chunk->values, text, strlen(text));
    end_value(file, chunk);
}

/* --- The file --------------------------------------------------------------------------------- */

struct parquet *parquet_begin(FILE *to, const struct parquet_column *columns, uint32_t count)
{
    struct parquet *file = calloc(1, sizeof *file + count * sizeof file->chunks[0]);

    if (!file)
        return NULL;
    file->to = to;
    file->columns = columns;
    file->count = count;
    put(file, &(struct bytes){.data = (uint8_t *)magic, .count = 4});
    return file;
}

static void add_schema(struct thrift *thrift, const struct parquet *file)
{
    list(thrift, 2, THRIFT_STRUCT, file->count + 1);
    open_element(thrift);
    field(thrift, 4, THRIFT_BINARY);
    string(thrift, "schema");
    whole(thrift, 5, THRIFT_I32, file->count);
    close_struct(thrift);

    for (uint32_t i = 0; i < file->count; i++) {
        open_element(thrift);
        whole(thrift, 1, THRIFT_I32, file->columns[i].type);
        whole(thrift, 3, THRIFT_I32, OPTIONAL);
        field(thrift, 4, THRIFT_BINARY);
        string(thrift, file->columns[i].name);
        if (file->columns[i].type == PARQUET_TEXT) {
            whole(thrift, 6, THRIFT_I32, UTF8);
            open_struct(thrift, 10); /* the logical type: a string */
            open_struct(thrift, 1);
            close_struct(thrift);
            close_struct(thrift);
        }
        close_struct(thrift);
    }
}

static void write_footer(struct parquet *file)
{
    struct bytes footer = {.count = 0};
    struct thrift thrift = {.to = &footer};

    whole(&thrift, 1, THRIFT_I32, VERSION);
    add_schema(&thrift, file);
    whole(&thrift, 3, THRIFT_I64, (int64_t)file->rows);
    list(&thrift, 4, THRIFT_STRUCT, file->group_count);
    add(&footer, file->groups.data, file->groups.count);
    field(&thrift, 6, THRIFT_BINARY);
    string(&thrift, "cox-lab");
    add_byte(&footer, 0);

    add_little_endian(&footer, footer.count, 4);
    add(&footer, magic, 4);
    put(file, &footer);
    free(footer.data);
}

bool parquet_end(struct parquet **file)
{
    struct parquet *ended = *file;
    if (!ended)
        return false;

    if (ended->group_rows > 0)
        write_group(ended);
    write_footer(ended);

    const bool good = !ended->failed && !ended->groups.failed;
    for (uint32_t i = 0; i < ended->count; i++) {
        free(ended->chunks[i].levels.data);
        free(ended->chunks[i].values.data);
    }
    free(ended->groups.data);
    free(ended);
    *file = NULL;
    return good;
}
