/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <CL/cl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define CODES(X) \
    X(CL_DEVICE_NOT_FOUND) X(CL_DEVICE_NOT_AVAILABLE) X(CL_COMPILER_NOT_AVAILABLE) \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE) X(CL_OUT_OF_RESOURCES) X(CL_OUT_OF_HOST_MEMORY) \
    X(CL_PROFILING_INFO_NOT_AVAILABLE) X(CL_MEM_COPY_OVERLAP) X(CL_IMAGE_FORMAT_MISMATCH) \
    X(CL_IMAGE_FORMAT_NOT_SUPPORTED) X(CL_BUILD_PROGRAM_FAILURE) X(CL_MAP_FAILURE) \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET) X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) X(CL_COMPILE_PROGRAM_FAILURE) \
    X(CL_LINKER_NOT_AVAILABLE) X(CL_LINK_PROGRAM_FAILURE) X(CL_DEVICE_PARTITION_FAILED) \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE) X(CL_INVALID_VALUE) X(CL_INVALID_DEVICE_TYPE) X(CL_INVALID_PLATFORM) \
    X(CL_INVALID_DEVICE) X(CL_INVALID_CONTEXT) X(CL_INVALID_QUEUE_PROPERTIES) X(CL_INVALID_COMMAND_QUEUE) \
    X(CL_INVALID_HOST_PTR) X(CL_INVALID_MEM_OBJECT) X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR) X(CL_INVALID_IMAGE_SIZE) \
    X(CL_INVALID_SAMPLER) X(CL_INVALID_BINARY) X(CL_INVALID_BUILD_OPTIONS) X(CL_INVALID_PROGRAM) \
    X(CL_INVALID_PROGRAM_EXECUTABLE) X(CL_INVALID_KERNEL_NAME) X(CL_INVALID_KERNEL_DEFINITION) X(CL_INVALID_KERNEL) \
    X(CL_INVALID_ARG_INDEX) X(CL_INVALID_ARG_VALUE) X(CL_INVALID_ARG_SIZE) X(CL_INVALID_KERNEL_ARGS) \
    X(CL_INVALID_WORK_DIMENSION) X(CL_INVALID_WORK_GROUP_SIZE) X(CL_INVALID_WORK_ITEM_SIZE) \
    X(CL_INVALID_GLOBAL_OFFSET) X(CL_INVALID_EVENT_WAIT_LIST) X(CL_INVALID_EVENT) X(CL_INVALID_OPERATION) \
    X(CL_INVALID_GL_OBJECT) X(CL_INVALID_BUFFER_SIZE) X(CL_INVALID_MIP_LEVEL) X(CL_INVALID_GLOBAL_WORK_SIZE) \
    X(CL_INVALID_PROPERTY) X(CL_INVALID_IMAGE_DESCRIPTOR) X(CL_INVALID_COMPILER_OPTIONS) \
    X(CL_INVALID_LINKER_OPTIONS) X(CL_INVALID_DEVICE_PARTITION_COUNT)
/* clang-format on */

static const struct {
    const char *name;
    int32_t code;
} codes[] = {
#define X(name) {#name, name},
    CODES(X)
#undef X
};

static const struct {
    const char *name;
    uint32_t classes;
} calls[] = {
#define X(name, classes) {#name, classes},
    FAULT_CALLS(X)
#undef X
};

static const char *const class_words[] = {
#define X(name, word) word,
    FAULT_CLASS_MAP(X)
#undef X
};

static const struct {
    const char *word;
    enum fault_value value;
    uint32_t suits;
} kinds[] = {
#define X(name, word, value, suits) {word, value, (uint32_t)(suits)},
    FAULT_KIND_MAP(X)
#undef X
};

static const char *const callback_words[] = {"", "drop", "twice", "early", "wrong-status", "late"};
static const char *const profile_words[] = {"", "backwards", "zero", "huge", "error"};

enum { WORD_BYTES = 128, CODE_MIN = -100000 };

/* Parts of a line. The keywords from DEVICE on take a value and may occur once. */
enum {
    HAS_SUBJECT = 1 << 0,
    HAS_KIND = 1 << 1,
    HAS_CODE = 1 << 2,
    HAS_DEVICE = 1 << 3,
    HAS_AT = 1 << 4,
    HAS_FROM = 1 << 5,
    HAS_EVERY = 1 << 6,
    HAS_COUNT = 1 << 7,
    HAS_CHANCE = 1 << 8,
    HAS_SEED = 1 << 9,
    HAS_AFTER = 1 << 10,
    HAS_FOR = 1 << 11,
};

struct parser {
    const char *name;
    uint32_t number; /* of the line */
    char *why;
    size_t why_bytes;
    /* of the line */
    unsigned has;
    int32_t code; /* error=, either of a vanish or the fault itself */
};

__attribute__((format(printf, 2, 3))) static bool wrong(const struct parser *parser, const char *format, ...)
{
    va_list args;
    if (!parser->why_bytes)
        return false;
    int at = snprintf(parser->why, parser->why_bytes, "%s:%u: ", parser->name, (unsigned)parser->number);
    if (at < 0 || (size_t)at >= parser->why_bytes)
        return false;
    va_start(args, format);
    vsnprintf(parser->why + at, parser->why_bytes - (size_t)at, format, args);
    va_end(args);
    return false;
}

/* ---- values ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the digits at the beginning. Returns what follows, or NULL if there are none or too many. */
static const char *digits(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!is_digit(*text))
        return NULL;
    for (; is_digit(*text); text++) {
        if (value > (UINT64_MAX - 9) / 10)
            return NULL;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return text;
}

static bool read_count(const struct parser *parser, const char *key, const char *text, uint64_t least, uint64_t most,
                       uint64_t *out)
{
    const char *end = digits(text, out);
    if (!end || *end || *out < least || *out > most)
        return wrong(parser, "%s= takes a whole number of %llu to %llu", key, (unsigned long long)least,
                     (unsigned long long)most);
    return true;
}

/* Reads a decimal number with at most nine digits before and after the point. */
static const char *decimal(const char *text, double *out)
{
    uint64_t whole = 0, part = 0;
    const char *at = digits(text, &whole);
    if (!at || at - text > 9)
        return NULL;
    *out = (double)whole;
    if (*at != '.')
        return at;
    const char *end = digits(at + 1, &part);
    if (!end || end - at > 10)
        return NULL;
    double scale = 1;
    for (const char *c = at + 1; c < end; c++)
        scale *= 10;
    *out += (double)part / scale;
    return end;
}

static bool read_time(const struct parser *parser, const char *key, const char *text, bool forever, uint64_t *out)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const double most_ns = 86400e9;
    double value = 0;
    if (forever && !strcmp(text, "forever")) {
        *out = FAULT_FOREVER;
        return true;
    }
    const char *end = decimal(text, &value);
    for (size_t i = 0; end && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && value * units[i].ns <= most_ns) {
            *out = (uint64_t)(value * units[i].ns);
            return true;
        }
    return wrong(parser, "%s= takes a time of at most a day with its unit, as 30ms or 1.5s%s", key,
                 forever ? ", or forever" : "");
}

static bool read_code(const struct parser *parser, const char *key, const char *text, int32_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(text, codes[i].name)) {
            *out = codes[i].code;
            return true;
        }
    const char *end = *text == '-' ? digits(text + 1, &value) : NULL;
    if (!end || *end || value == 0 || value > -CODE_MIN)
        return wrong(parser, "%s= takes the name of an OpenCL error, or a negative number of at least %d", key,
                     CODE_MIN);
    *out = -(int32_t)value;
    return true;
}

static bool read_device(const struct parser *parser, const char *text, struct fault_line *line)
{
    uint64_t device = 0, sub = 0;
    const char *end = digits(text, &device);
    const bool has_sub = end && *end == '.';
    if (has_sub)
        end = digits(end + 1, &sub);
    if (end && !*end && device < 1000 && sub < 1000) {
        line->device_kind = has_sub ? FAULT_DEVICE_SUB : FAULT_DEVICE_INDEX;
        line->device = (uint32_t)device;
        line->sub = (uint32_t)sub;
        return true;
    }
    if (is_digit(*text))
        return wrong(parser, "device= takes a number below 1000, or two as 0.1 for a sub-device, a type or a name");
    static const char *const types[] = {
        [FAULT_DEVICE_ANY] = "any",
        [FAULT_DEVICE_CPU] = "cpu",
        [FAULT_DEVICE_GPU] = "gpu",
        [FAULT_DEVICE_ACCELERATOR] = "accelerator",
    };
    for (int kind = 0; kind <= FAULT_DEVICE_ACCELERATOR; kind++)
        if (types[kind] && !strcmp(text, types[kind])) {
            line->device_kind = (enum fault_device)kind;
            return true;
        }
    if (!*text || strlen(text) >= sizeof line->device_name)
        return wrong(parser, "device= takes a name of 1 to %zu characters", sizeof line->device_name - 1);
    line->device_kind = FAULT_DEVICE_NAME;
    memcpy(line->device_name, text, strlen(text) + 1);
    return true;
}

/* Reads one of `words`, from the second one on. */
static bool read_word(const struct parser *parser, const char *key, const char *text, const char *const *words,
                      int count, int *out)
{
    char all[96] = "";
    for (int i = 1; i < count; i++) {
        if (!strcmp(text, words[i])) {
            *out = i;
            return true;
        }
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i > 1 ? ", " : "", words[i]);
    }
    return wrong(parser, "%s= takes one of: %s", key, all);
}

static bool read_callback(const struct parser *parser, const char *text, struct fault_line *line)
{
    int word = 0;
    if (!strncmp(text, "late=", 5)) {
        line->callback = FAULT_CALLBACK_LATE;
        return read_time(parser, "callback=late", text + 5, false, &line->time_ns);
    }
    if (!read_word(parser, "callback", text, callback_words, FAULT_CALLBACK_LATE, &word))
        return false;
    line->callback = (enum fault_callback)word;
    return true;
}

/* ---- a word ---- */

static bool once(struct parser *parser, const char *key, unsigned what)
{
    if (parser->has & what)
        return wrong(parser, "%s= occurs twice", key);
    parser->has |= what;
    return true;
}

static bool read_kind(struct parser *parser, enum fault_kind kind, const char *value, struct fault_line *line)
{
    const char *key = kinds[kind].word;
    int word = 0;
    if (!value && kinds[kind].value != FAULT_VALUE_NONE)
        return wrong(parser, "%s needs a value, as in %s=…", key, key);
    if (value && kinds[kind].value == FAULT_VALUE_NONE)
        return wrong(parser, "%s takes no value", key);
    if (kind == FAULT_KIND_ERROR && value) /* if `vanish` follows, this is the answer of calls on the device */
        return once(parser, key, HAS_CODE) && read_code(parser, key, value, &parser->code);
    if (parser->has & HAS_KIND)
        return wrong(parser, "%s is a second fault: one per line", key);
    parser->has |= HAS_KIND;
    line->kind = kind;
    switch (kinds[kind].value) {
    case FAULT_VALUE_NONE:
        return true;
    case FAULT_VALUE_CODE:
        return read_code(parser, key, value, &line->code);
    case FAULT_VALUE_TIME:
        return read_time(parser, key, value, kind == FAULT_KIND_HANG, &line->time_ns);
    case FAULT_VALUE_COUNT:
        return read_count(parser, key, value, 1, 1000000, &line->bits);
    case FAULT_VALUE_FACTOR: {
        const char *end = decimal(value, &line->factor);
        if (end && !*end && line->factor >= 1 && line->factor <= 1e6)
            return true;
        return wrong(parser, "%s= takes a number of 1 to 1000000", key);
    }
    case FAULT_VALUE_CALLBACK:
        return read_callback(parser, value, line);
    case FAULT_VALUE_PROFILE:
        if (!read_word(parser, key, value, profile_words, FAULT_PROFILE_ERROR + 1, &word))
            return false;
        line->profile = (enum fault_profile)word;
        return true;
    }
    return false;
}

static bool read_chance(const struct parser *parser, const char *text, double *out)
{
    const char *end = decimal(text, out);
    return (end && !*end && *out > 0 && *out <= 1) || wrong(parser, "chance= takes a number above 0 and up to 1");
}

static bool read_choice(struct parser *parser, const char *key, const char *value, struct fault_line *line)
{
    const struct {
        const char *key;
        unsigned has;
        uint64_t *count, least, *time_ns;
    } choices[] = {
        {"device", HAS_DEVICE, NULL, 0, NULL},          {"at", HAS_AT, &line->from, 1, NULL},
        {"from", HAS_FROM, &line->from, 1, NULL},       {"every", HAS_EVERY, &line->every, 1, NULL},
        {"count", HAS_COUNT, &line->count, 1, NULL},    {"seed", HAS_SEED, &line->seed, 0, NULL},
        {"after", HAS_AFTER, NULL, 0, &line->after_ns}, {"for", HAS_FOR, NULL, 0, &line->time_ns},
        {"chance", HAS_CHANCE, NULL, 0, NULL},
    };
    size_t i = 0;
    while (i < sizeof choices / sizeof *choices && strcmp(key, choices[i].key) != 0)
        i++;
    if (i == sizeof choices / sizeof *choices)
        return wrong(parser, "there is no keyword %s=", key);
    if (!once(parser, key, choices[i].has))
        return false;
    if (choices[i].count)
        return read_count(parser, key, value, choices[i].least, UINT64_MAX / 16, choices[i].count);
    if (choices[i].time_ns)
        return read_time(parser, key, value, false, choices[i].time_ns);
    return choices[i].has == HAS_DEVICE ? read_device(parser, value, line) : read_chance(parser, value, &line->chance);
}

static bool read_subject(struct parser *parser, const char *word, struct fault_line *line)
{
    if (parser->has & HAS_SUBJECT)
        return wrong(parser, "%s is a second call: one per line", word);
    parser->has |= HAS_SUBJECT;
    for (int i = 0; i < FAULT_CALL_COUNT; i++)
        if (!strcmp(word, calls[i].name)) {
            line->call = i;
            return true;
        }
    for (int i = 0; i < FAULT_BITS; i++)
        if (i != FAULT_BIT_OTHER && !strcmp(word, class_words[i])) {
            line->classes = 1u << i;
            return true;
        }
    if (!strcmp(word, "any")) {
        line->classes = (uint32_t)FAULT_ANY;
        return true;
    }
    if (!strcmp(word, "event")) {
        line->classes = FAULT_COMMAND;
        line->with_event = true;
        return true;
    }
    return wrong(parser, "'%s' is neither a fault, nor a call that the layer knows, nor a class of them", word);
}

static bool read_token(struct parser *parser, char *word, struct fault_line *line)
{
    char *value = strchr(word, '=');
    if (value)
        *value++ = 0;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        if (!strcmp(word, kinds[kind].word))
            return read_kind(parser, (enum fault_kind)kind, value, line);
    if (!value)
        return read_subject(parser, word, line);
    return read_choice(parser, word, value, line);
}

/* ---- a line ---- */

/* Whether the fault can happen to at least one of the calls. With the class `any`, it must be possible for all
 * calls. */
static bool suits(const struct fault_line *line)
{
    if (line->call >= 0)
        return calls[line->call].classes & kinds[line->kind].suits;
    if (line->classes == (uint32_t)FAULT_ANY)
        return kinds[line->kind].suits == (uint32_t)FAULT_ANY;
    for (int i = 0; i < FAULT_CALL_COUNT; i++)
        if (fault_line_names(line, i, true))
            return true;
    return false;
}

static bool finish_line(struct parser *parser, struct fault_line *line)
{
    if (!(parser->has & (HAS_KIND | HAS_CODE)))
        return wrong(parser, "the line names no fault");
    if (!(parser->has & HAS_KIND)) {
        line->kind = FAULT_KIND_ERROR;
        line->code = parser->code;
    } else if ((parser->has & HAS_CODE) && line->kind != FAULT_KIND_VANISH)
        return wrong(parser, "error= and %s are two faults: one per line", kinds[line->kind].word);
    const bool vanish = line->kind == FAULT_KIND_VANISH;
    if (vanish) {
        line->code = parser->code;
        if (!(parser->has & HAS_FOR))
            line->time_ns = FAULT_FOREVER;
    } else if (parser->has & HAS_FOR)
        return wrong(parser, "for= needs vanish");
    if (!(parser->has & HAS_SUBJECT) && !vanish)
        return wrong(parser, "the line names no call");
    if (!(parser->has & HAS_SUBJECT))
        line->classes = (uint32_t)FAULT_ANY;
    if (!suits(line))
        return wrong(parser, "%s is not possible for these calls", kinds[line->kind].word);
    if ((parser->has & HAS_AT) && (parser->has & (HAS_FROM | HAS_EVERY)))
        return wrong(parser, "at= cannot be combined with from= or every=");
    if ((parser->has & HAS_SEED) && !(parser->has & HAS_CHANCE))
        return wrong(parser, "seed= needs chance=");
    if (!(parser->has & HAS_COUNT) && ((parser->has & HAS_AT) || (vanish && !(parser->has & (HAS_EVERY | HAS_CHANCE)))))
        line->count = 1;
    return true;
}

/* Reads the next word of the line without its quotes. Returns 1, 0 at the line's end, or -1 on an error. */
static int next_word(const struct parser *parser, const char **at, const char *end, char *word)
{
    size_t length = 0;
    bool quoted = false;
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        ++*at;
    if (*at == end)
        return 0;
    for (; *at < end; ++*at) {
        const char c = **at;
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (c == ' ' || c == '\t' || c == '\r'))
            break;
        if ((unsigned char)c < ' ' || (unsigned char)c == 0x7f) {
            wrong(parser, "a control character");
            return -1;
        }
        if (length == WORD_BYTES - 1) {
            wrong(parser, "a word of more than %d characters", WORD_BYTES - 1);
            return -1;
        }
        word[length++] = c;
    }
    word[length] = 0;
    if (quoted) {
        wrong(parser, "a quotation mark that is not closed");
        return -1;
    }
    return 1;
}

static bool read_line(struct parser *parser, const char *from, const char *end, struct fault_plan *plan)
{
    struct fault_line line = {
        .number = parser->number, .call = -1, .from = 1, .every = 1, .count = UINT64_MAX, .chance = 1};
    char word[WORD_BYTES];
    int words = 0, got;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    for (const char *at = from; (got = next_word(parser, &at, end, word)) != 0; words++)
        if (got < 0 || !read_token(parser, word, &line))
            return false;
    if (words == 0)
        return true;
    if (!finish_line(parser, &line))
        return false;
    if (plan->line_count == FAULT_LINES_MAX)
        return wrong(parser, "more than %d faults", FAULT_LINES_MAX);
    if ((plan->line_count & (plan->line_count - 1)) == 0) { /* double the room */
        struct fault_line *more = realloc(plan->lines, 2 * (plan->line_count + 1) * sizeof *more);
        if (!more)
            return wrong(parser, "out of memory");
        plan->lines = more;
    }
    size_t length = (size_t)(end - from) < sizeof line.text ? (size_t)(end - from) : sizeof line.text - 1;
    memcpy(line.text, from, length);
    plan->lines[plan->line_count++] = line;
    return true;
}

/* Returns the end of the line that begins at `at`: a line feed, a semicolon or a comment.
 *   *next  the beginning of the next line
 *   *feed  whether a line feed comes before it */
static const char *line_end(const char *at, const char *end, const char **next, bool *feed)
{
    bool quoted = false;
    const char *stop = NULL;
    for (; at < end && *at != '\n'; at++) {
        if (stop)
            continue;
        quoted ^= *at == '"';
        if (*at == '#' && !quoted)
            stop = at;
        else if (*at == ';' && !quoted) {
            *next = at + 1;
            *feed = false;
            return at;
        }
    }
    *next = at < end ? at + 1 : end;
    *feed = true;
    return stop ? stop : at;
}

struct fault_plan *fault_plan_parse(const char *text, size_t bytes, const char *name, char *why, size_t why_bytes)
{
    const char *at = text, *end = text + bytes;
    struct fault_plan *plan = calloc(1, sizeof *plan);
    uint32_t number = 1;
    if (why_bytes)
        *why = 0;
    while (plan && at < end) {
        struct parser parser = {.name = name, .number = number, .why = why, .why_bytes = why_bytes};
        const char *next;
        bool feed;
        const char *stop = line_end(at, end, &next, &feed);
        if (!read_line(&parser, at, stop, plan)) {
            fault_plan_free(&plan);
            return NULL;
        }
        number += feed;
        at = next;
    }
    if (!plan && why_bytes)
        snprintf(why, why_bytes, "%s: out of memory", name);
    return plan;
}

void fault_plan_free(struct fault_plan **plan)
{
    if (*plan)
        free((*plan)->lines);
    free(*plan);
    *plan = NULL;
}

/* ---- queries ---- */

uint32_t fault_call_classes(int call)
{
    return calls[call].classes;
}

const char *fault_call_name(int call)
{
    return calls[call].name;
}

bool fault_line_names(const struct fault_line *line, int call, bool gives_event)
{
    if (line->call >= 0)
        return line->call == call;
    if (line->classes != (uint32_t)FAULT_ANY && !(line->classes & calls[call].classes))
        return false;
    /* With the class `enqueue`, for example, `corrupt` affects only the commands that can show wrong results. */
    if (!(kinds[line->kind].suits & calls[call].classes))
        return false;
    return gives_event || !line->with_event;
}

/* A number in [0, 1) that depends only on the seed and the number of the call. */
static double chance_of(uint64_t seed, uint64_t number)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + number * 0xd1342543de82ef95u + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) / 9007199254740992.0;
}

bool fault_line_strikes(const struct fault_line *line, uint64_t matched, uint64_t chosen)
{
    if (matched < line->from || (matched - line->from) % line->every != 0 || chosen >= line->count)
        return false;
    return line->chance >= 1 || chance_of(line->seed, matched) < line->chance;
}
