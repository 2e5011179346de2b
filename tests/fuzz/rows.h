/* A generated session database, for fuzz targets of its readers. It replaces SQLite.
 *
 * SQLite itself reads files safely; the rows are what may be hostile. A line of the input is one row: the table's
 * name and the values of its columns in order, separated by '|'.
 *   digits: an integer.
 *   Digits with a point or an exponent: a real number.
 *   nothing: NULL.
 *   Anything else: text.
 *
 * NOT NULL and keys are enforced. Other constraints are not, since a file can be changed without SQLite.
 *
 * A database in memory would spend most of the time on compiling statements. Only the SQL of the reader's queries
 * is supported; any other stops the target. The functions here take the place of the library's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FUZZ_ROWS_H
#define COX_TESTS_FUZZ_ROWS_H

#include "fuzz.h"
#include "lab/texts.h"

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    FUZZ_BYTES_MAX = 8192,
    FUZZ_TABLES_MAX = 32,
    FUZZ_COLUMNS_MAX = 20,
    FUZZ_ROWS_MAX = 256,
    FUZZ_QUERIES_MAX = 32,
    FUZZ_KEYS_MAX = 4
};

enum fuzz_type { FUZZ_NULL, FUZZ_WHOLE, FUZZ_REAL, FUZZ_TEXT };

struct fuzz_value {
    enum fuzz_type type;
    int64_t whole;
    double real;
    const char *text; /* of a number too, as it was written */
};

struct fuzz_table {
    char name[20], columns[FUZZ_COLUMNS_MAX][16];
    uint32_t not_null, key; /* a bit for each column */
    int column_count, row_count;
    struct fuzz_value rows[FUZZ_ROWS_MAX][FUZZ_COLUMNS_MAX];
};

struct sqlite3 {
    struct fuzz_table tables[FUZZ_TABLES_MAX];
    int table_count;
};

/* One item of a SELECT or ORDER BY. */
struct fuzz_item {
    enum { FUZZ_COLUMN, FUZZ_LITERAL, FUZZ_DIFFERENCE, FUZZ_EQUAL, FUZZ_CASE, FUZZ_OF_CALL, FUZZ_LATE } what;
    int column, other; /* a literal has its value in `column` */
    char text[16];     /* the column's name, or the text to compare with */
    char second[16];   /* CASE: the second text to compare with */
    int values[3];     /* CASE: the values for the first text, the second, and neither */
};

struct fuzz_query {
    const char *sql;
    const struct fuzz_table *table, *joined; /* `joined` by session and call */
    const struct fuzz_table *noticed;        /* by session, frame and band */
    int key;                                 /* the column that must equal the bound value */
    bool or_all;                             /* if the bound value is 0, all rows */
    bool down, one;                          /* descending order; only one row */
    struct fuzz_item items[FUZZ_COLUMNS_MAX], order[FUZZ_KEYS_MAX];
    int item_count, order_count;
};

struct sqlite3_stmt {
    const struct fuzz_query *query;
    int64_t bound;
    int count, next; /* next -1: nothing selected yet */
    const struct fuzz_value *rows[FUZZ_ROWS_MAX];
    char *texts[FUZZ_COLUMNS_MAX]; /* returned texts, valid until the next row */
    bool has_texts;
};

static struct sqlite3 fuzz_db;

static inline bool fuzz_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static inline int fuzz_column_find(const struct fuzz_table *table, const char *name)
{
    for (int c = 0; c < table->column_count; c++)
        if (strcmp(table->columns[c], name) == 0)
            return c;
    abort();
}

/* Create the tables of the schema. */
static inline void fuzz_rows_begin(void)
{
    const struct lab_text *schema = lab_texts;
    struct fuzz_table *table = NULL;
    while (schema->name && strcmp(schema->name, "schema.sql") != 0)
        schema++;
    CHECK(schema->name);
    for (const char *line = schema->text; line; line = strchr(line, '\n')) {
        char word[20], about[64];
        line += *line == '\n';
        if (sscanf(line, "CREATE TABLE %19[a-z_](", word) == 1) {
            CHECK(fuzz_db.table_count < FUZZ_TABLES_MAX);
            table = &fuzz_db.tables[fuzz_db.table_count++];
            memcpy(table->name, word, sizeof word);
        } else if (table && fuzz_begins(line, "    PRIMARY KEY (")) {
            for (const char *at = strchr(line, '('); *at != ')'; at += strcspn(at + 1, ",)") + 1)
                if (sscanf(at + 1, " %15[a-z_]", word) == 1)
                    table->key |= 1u << fuzz_column_find(table, word);
            table->not_null |= table->key;
        } else if (table && sscanf(line, "    %15[a-z_] %63[^\n]", word, about) == 2) {
            uint32_t bit = 1u << table->column_count;
            CHECK(table->column_count < FUZZ_COLUMNS_MAX);
            memcpy(table->columns[table->column_count++], word, sizeof table->columns[0]);
            table->key |= strstr(about, "PRIMARY KEY") ? bit : 0;
            table->not_null |= strstr(about, "NOT NULL") ? bit : table->key;
        } else {
            table = NULL;
        }
    }
}

static inline struct fuzz_table *fuzz_table_find(const char *name)
{
    for (int t = 0; t < fuzz_db.table_count; t++)
        if (strcmp(fuzz_db.tables[t].name, name) == 0)
            return &fuzz_db.tables[t];
    return NULL;
}

static inline struct fuzz_value fuzz_value_of(const char *text)
{
    struct fuzz_value value = {.type = FUZZ_TEXT, .text = text};
    char *end = NULL;
    if (!*text)
        return (struct fuzz_value){0};
    if (!strchr("+-.0123456789", *text))
        return value;
    size_t digits = strspn(text, "+-0123456789"), number = strspn(text, "+-.0123456789eE");
    value.whole = strtoll(text, &end, 10);
    value.real = (double)value.whole;
    if (number > digits)
        value.real = strtod(text, &end);
    if (!*end)
        value.type = number > digits ? FUZZ_REAL : FUZZ_WHOLE;
    return value;
}

/* NULL before numbers before texts, as in SQLite. */
static inline int fuzz_compare(const struct fuzz_value *a, const struct fuzz_value *b)
{
    if (a->type == FUZZ_TEXT && b->type == FUZZ_TEXT)
        return strcmp(a->text, b->text);
    if (!a->type || !b->type || a->type == FUZZ_TEXT || b->type == FUZZ_TEXT)
        return (a->type > b->type) - (a->type < b->type);
    if (a->type == FUZZ_WHOLE && b->type == FUZZ_WHOLE)
        return (a->whole > b->whole) - (a->whole < b->whole);
    return (a->real > b->real) - (a->real < b->real);
}

/* Whether the table accepts the row: its NOT NULL columns are set, and its key is new. */
static inline bool fuzz_row_fits(const struct fuzz_table *table, const struct fuzz_value *row)
{
    for (int c = 0; c < table->column_count; c++)
        if (table->not_null >> c & 1 && !row[c].type)
            return false;
    for (int r = 0; r < table->row_count && table->key; r++) {
        bool same = true;
        for (int c = 0; c < table->column_count && same; c++)
            same = !(table->key >> c & 1) || fuzz_compare(&table->rows[r][c], &row[c]) == 0;
        if (same)
            return false;
    }
    return true;
}

static inline void fuzz_row_add(char *line)
{
    char *rest = strchr(line, '|');
    if (!rest)
        return;
    *rest++ = 0;
    struct fuzz_table *table = fuzz_table_find(line);
    if (!table || table->row_count == FUZZ_ROWS_MAX)
        return;
    struct fuzz_value *row = table->rows[table->row_count];
    memset(row, 0, sizeof *table->rows);
    for (int c = 0; c < table->column_count && rest; c++) {
        char *next = strchr(rest, '|');
        if (next)
            *next++ = 0;
        row[c] = fuzz_value_of(rest);
        rest = next;
    }
    table->row_count += fuzz_row_fits(table, row);
}

/* A database of these rows, valid until the next call. */
static inline struct sqlite3 *fuzz_rows(const uint8_t *data, size_t size)
{
    static char lines[FUZZ_BYTES_MAX + 1];
    if (!fuzz_db.table_count)
        fuzz_rows_begin();
    for (int t = 0; t < fuzz_db.table_count; t++)
        fuzz_db.tables[t].row_count = 0;
    if (size > FUZZ_BYTES_MAX)
        size = FUZZ_BYTES_MAX;
    if (size)
        memcpy(lines, data, size);
    lines[size] = 0;
    for (char *line = lines, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        fuzz_row_add(line);
    }
    return &fuzz_db;
}

static inline void fuzz_why(const char *why, size_t bytes)
{
    CHECK(*why && memchr(why, 0, bytes));
}

/* --- Queries ------------------------------------------------------------------------------------------------------ */

static inline struct fuzz_item fuzz_item_of(const struct fuzz_query *query, const char *text)
{
    struct fuzz_item item = {.what = FUZZ_COLUMN};
    char name[16] = "", other[16] = "";
    if (fuzz_begins(text, "ifnull(c.frame, 0) AS frame") || fuzz_begins(text, "c.pass")) {
        item.what = FUZZ_OF_CALL;
        strcpy(name, *text == 'c' ? "pass" : "frame");
        item.column = fuzz_column_find(query->joined, name);
    } else if (fuzz_begins(text, "ifnull(noticed_ns - end_ns, -1)")) {
        item.what = FUZZ_LATE;
        item.other = fuzz_column_find(query->noticed, "noticed_ns");
        strcpy(name, "end_ns");
    } else if (sscanf(text, "CASE %15[a-z_] WHEN '%15[a-z]' THEN %d WHEN '%15[a-z]' THEN %d ELSE %d END", name, other,
                      &item.values[0], item.second, &item.values[1], &item.values[2]) == 6) {
        item.what = FUZZ_CASE;
    } else if (sscanf(text, "%d", &item.column) == 1) {
        item.what = FUZZ_LITERAL;
        strcpy(item.text, "literal");
        return item;
    } else if (sscanf(text, "%15[a-z_] = '%15[a-z]'", name, other) == 2) {
        item.what = FUZZ_EQUAL;
    } else if (sscanf(text, "%15[a-z_] - %15[a-z_]", name, other) == 2) {
        item.what = FUZZ_DIFFERENCE;
        item.other = fuzz_column_find(query->table, other);
    } else {
        CHECK(sscanf(text[0] && text[1] == '.' ? text + 2 : text, "%15[a-z_]", name) == 1);
    }
    if (item.what != FUZZ_OF_CALL)
        item.column = fuzz_column_find(query->table, name);
    strcpy(item.text, item.what == FUZZ_EQUAL || item.what == FUZZ_CASE ? other : name);
    return item;
}

/* Parse the items of a list up to `end`. Returns their number. */
static inline int fuzz_items_of(const struct fuzz_query *query, const char *list, const char *end,
                                struct fuzz_item *items, int most)
{
    int count = 0, depth = 0;
    for (const char *at = list; at < end; at++) {
        if (at == list || (depth == 0 && at[-2] == ',' && at[-1] == ' ')) {
            CHECK(count < most);
            items[count++] = fuzz_item_of(query, at);
        }
        depth += (*at == '(') - (*at == ')');
    }
    return count;
}

static inline void fuzz_compile(struct fuzz_query *query, const char *sql)
{
    char table[16], key[16];
    const char *from = strstr(sql, " FROM "), *where = strstr(sql, " WHERE "), *order = strstr(sql, " ORDER BY ");
    CHECK(fuzz_begins(sql, "SELECT ") && from && where && !strstr(sql, "GROUP"));
    CHECK(sscanf(from, " FROM %15[a-z_]", table) == 1 && sscanf(where, " WHERE %15[a-z] = ?", key) == 1);
    query->sql = sql;
    query->table = fuzz_table_find(table);
    query->joined = strstr(sql, " JOIN call c USING (session, call)") ? fuzz_table_find("call") : NULL;
    query->noticed = strstr(sql, " LEFT JOIN notice USING (session, frame, band)") ? fuzz_table_find("notice") : NULL;
    CHECK(query->table && (query->joined || query->noticed) == (strstr(sql, " JOIN ") != NULL));
    query->key = fuzz_column_find(query->table, key);
    query->or_all = strstr(where, " OR ?1 = 0");
    query->down = strstr(where, " DESC");
    query->one = strstr(where, " LIMIT 1");
    query->item_count = fuzz_items_of(query, sql + 7, from, query->items, FUZZ_COLUMNS_MAX);
    if (order)
        query->order_count = fuzz_items_of(query, order + 10, sql + strlen(sql), query->order, FUZZ_KEYS_MAX);
}

/* Each of the reader's queries is a constant, so its address identifies it. */
static inline const struct fuzz_query *fuzz_query_of(const char *sql)
{
    static struct fuzz_query queries[FUZZ_QUERIES_MAX];
    int q = 0;
    while (q < FUZZ_QUERIES_MAX && queries[q].sql && queries[q].sql != sql)
        q++;
    CHECK(q < FUZZ_QUERIES_MAX);
    if (!queries[q].sql)
        fuzz_compile(&queries[q], sql);
    return &queries[q];
}

/* The call of a row of another table, by its first two columns. */
static inline const struct fuzz_value *fuzz_call_of(const struct fuzz_query *query, const struct fuzz_value *row)
{
    for (int r = 0; r < query->joined->row_count; r++) {
        const struct fuzz_value *call = query->joined->rows[r];
        if (fuzz_compare(&call[0], &row[0]) == 0 && fuzz_compare(&call[1], &row[1]) == 0)
            return call;
    }
    return NULL;
}

/* How late a band's end was noticed, by the first three columns of the row; -1 = not recorded. */
static inline struct fuzz_value fuzz_late(const struct fuzz_query *query, const struct fuzz_item *item,
                                          const struct fuzz_value *band)
{
    const struct fuzz_value *end = &band[item->column];
    for (int r = 0; r < query->noticed->row_count; r++) {
        const struct fuzz_value *notice = query->noticed->rows[r], *at = &notice[item->other];
        bool same = true;
        for (int c = 0; c < 3; c++)
            same = same && fuzz_compare(&notice[c], &band[c]) == 0;
        if (same && end->type && at->type && !isnan(at->real - end->real))
            return (struct fuzz_value){FUZZ_REAL, 0, at->real - end->real, ""};
    }
    return (struct fuzz_value){FUZZ_WHOLE, -1, -1, ""};
}

static inline struct fuzz_value fuzz_whole(int64_t whole)
{
    return (struct fuzz_value){FUZZ_WHOLE, whole, (double)whole, ""};
}

static inline struct fuzz_value fuzz_evaluate(const struct fuzz_query *query, const struct fuzz_item *item,
                                              const struct fuzz_value *row)
{
    if (item->what == FUZZ_LITERAL)
        return fuzz_whole(item->column);
    if (item->what == FUZZ_LATE)
        return fuzz_late(query, item, row);

    const struct fuzz_value *value = &row[item->column];
    switch (item->what) {
    case FUZZ_DIFFERENCE: {
        const struct fuzz_value *other = &row[item->other];
        struct fuzz_value real = {FUZZ_REAL, 0, value->real - other->real, ""};
        return value->type && other->type && !isnan(real.real) ? real : (struct fuzz_value){0};
    }
    case FUZZ_EQUAL:
        return fuzz_whole(value->text && strcmp(value->text, item->text) == 0);
    case FUZZ_CASE:
        return fuzz_whole(item->values[!value->text                             ? 2
                                       : strcmp(value->text, item->text) == 0   ? 0
                                       : strcmp(value->text, item->second) == 0 ? 1
                                                                                : 2]);
    case FUZZ_OF_CALL:
        value = &fuzz_call_of(query, row)[item->column];
        return value->type ? *value : fuzz_whole(0);
    default:
        return *value;
    }
}

static inline bool fuzz_before(const struct fuzz_query *query, const struct fuzz_value *a, const struct fuzz_value *b)
{
    int order = 0;
    for (int k = 0; k < query->order_count && order == 0; k++) {
        struct fuzz_value key = fuzz_evaluate(query, &query->order[k], a);
        struct fuzz_value other = fuzz_evaluate(query, &query->order[k], b);
        order = fuzz_compare(&key, &other);
    }
    return query->down ? order > 0 : order < 0;
}

static inline void fuzz_select(struct sqlite3_stmt *statement)
{
    const struct fuzz_query *query = statement->query;
    for (int r = 0; r < query->table->row_count; r++) {
        const struct fuzz_value *row = query->table->rows[r], *key = &row[query->key];
        bool wanted = (key->type == FUZZ_WHOLE && key->whole == statement->bound) ||
                      (key->type == FUZZ_REAL && key->real == (double)statement->bound);
        if ((!wanted && !(query->or_all && statement->bound == 0)) || (query->joined && !fuzz_call_of(query, row)))
            continue;
        int at = statement->count++;
        for (; at > 0 && fuzz_before(query, row, statement->rows[at - 1]); at--)
            statement->rows[at] = statement->rows[at - 1];
        statement->rows[at] = row;
    }
    if (query->one && statement->count > 1)
        statement->count = 1;
}

static inline void fuzz_forget_texts(struct sqlite3_stmt *statement)
{
    for (int i = 0; i < statement->query->item_count && statement->has_texts; i++) {
        free(statement->texts[i]);
        statement->texts[i] = NULL;
    }
    statement->has_texts = false;
}

static inline struct fuzz_value fuzz_at(const struct sqlite3_stmt *statement, int item)
{
    CHECK(item >= 0 && item < statement->query->item_count && statement->next >= 0);
    CHECK(statement->next < statement->count);
    return fuzz_evaluate(statement->query, &statement->query->items[item], statement->rows[statement->next]);
}

/* --- Functions for the reader ------------------------------------------------------------------------------------- */

int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **statement, const char **rest)
{
    CHECK(db == &fuzz_db && bytes == -1 && !rest);
    *statement = malloc(sizeof **statement); /* so that a sanitizer detects use after its end */
    CHECK(*statement);
    (*statement)->query = fuzz_query_of(sql);
    (*statement)->bound = (*statement)->count = 0;
    (*statement)->next = -1;
    memset((*statement)->texts, 0, sizeof(*statement)->texts);
    (*statement)->has_texts = false;
    return SQLITE_OK;
}

int sqlite3_bind_int64(sqlite3_stmt *statement, int place, sqlite3_int64 number)
{
    CHECK(place == 1 && statement->next == -1);
    statement->bound = number;
    return SQLITE_OK;
}

int sqlite3_step(sqlite3_stmt *statement)
{
    if (statement->next == -1)
        fuzz_select(statement);
    fuzz_forget_texts(statement);
    statement->next += statement->next < statement->count;
    return statement->next < statement->count ? SQLITE_ROW : SQLITE_DONE;
}

int sqlite3_finalize(sqlite3_stmt *statement)
{
    if (statement)
        fuzz_forget_texts(statement);
    free(statement);
    return SQLITE_OK;
}

sqlite3_int64 sqlite3_column_int64(sqlite3_stmt *statement, int item)
{
    struct fuzz_value value = fuzz_at(statement, item);
    if (value.type != FUZZ_REAL)
        return value.whole;
    return value.real >= 0x1p63 ? INT64_MAX : value.real < -0x1p63 ? INT64_MIN : (int64_t)value.real;
}

int sqlite3_column_int(sqlite3_stmt *statement, int item)
{
    return (int)sqlite3_column_int64(statement, item);
}

double sqlite3_column_double(sqlite3_stmt *statement, int item)
{
    return fuzz_at(statement, item).real;
}

/* A separate copy, so that a sanitizer detects reads beyond its end, and after the next row. */
const unsigned char *sqlite3_column_text(sqlite3_stmt *statement, int item)
{
    struct fuzz_value value = fuzz_at(statement, item);
    if (!value.type || statement->texts[item])
        return (const unsigned char *)statement->texts[item];
    statement->texts[item] = strdup(value.text);
    CHECK(statement->texts[item]);
    statement->has_texts = true;
    return (const unsigned char *)statement->texts[item];
}

const char *sqlite3_column_name(sqlite3_stmt *statement, int item)
{
    return statement->query->items[item].text;
}

const char *sqlite3_errmsg(sqlite3 *db)
{
    (void)db;
    return "SQLite complains";
}

int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *user, char **why)
{
    CHECK(db == &fuzz_db && sql && !row && !user && !why);
    return SQLITE_OK;
}

#endif
