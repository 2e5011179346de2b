/* SPDX-License-Identifier: Apache-2.0 */
#include "signature.h"
#include "base/type_name.h"

#include <ctype.h>
#include <string.h>

/* ---- tokens ---- */

/* A word or a single character. `length` 0 = the end of the source. */
struct token {
    const char *start;
    size_t length;
};

/* A position in a source. */
struct reader {
    const char *at;
    const char *source;
};

static bool begins_line(const struct reader *reader)
{
    const char *at = reader->at;
    while (at > reader->source && (at[-1] == ' ' || at[-1] == '\t'))
        at--;

    return at == reader->source || at[-1] == '\n';
}

/* The character behind one that a backslash may precede. */
static const char *skip_escaped(const char *at)
{
    if (at[0] == '\\' && at[1] == '\r' && at[2] == '\n')
        return at + 3;
    if (at[0] == '\\' && at[1])
        at++;

    return at + 1;
}

/* A line ends at a newline that no backslash precedes. */
static const char *skip_line(const char *at)
{
    while (*at && *at != '\n')
        at = skip_escaped(at);

    return at;
}

static const char *skip_comment(const char *at)
{
    if (at[1] == '/')
        return skip_line(at);

    const char *end = strstr(at + 2, "*/");
    if (!end)
        return at + strlen(at);

    return end + 2;
}

/* A preprocessor line. A comment that begins on it may go on. */
static const char *skip_directive(const char *at)
{
    while (*at && *at != '\n') {
        if (at[0] == '/' && at[1] == '*')
            at = skip_comment(at);
        else
            at = skip_escaped(at);
    }
    return at;
}

static const char *skip_quoted(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at = skip_escaped(at);

    if (*at == quote)
        at++;
    return at;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next token, behind spaces, comments, preprocessor lines and quoted text. */
static struct token next(struct reader *reader)
{
    for (;;) {
        const char *at = reader->at;
        if (isspace((unsigned char)*at))
            reader->at++;
        else if (at[0] == '/' && (at[1] == '/' || at[1] == '*'))
            reader->at = skip_comment(at);
        else if (at[0] == '#' && begins_line(reader))
            reader->at = skip_directive(at);
        else if (at[0] == '"' || at[0] == '\'')
            reader->at = skip_quoted(at);
        else
            break;
    }

    struct token token = {.start = reader->at};
    if (!*reader->at)
        return token;

    do
        reader->at++;
    while (is_word(*token.start) && is_word(*reader->at));

    token.length = (size_t)(reader->at - token.start);
    return token;
}

static bool is(struct token token, const char *text)
{
    return token.length == strlen(text) && memcmp(token.start, text, token.length) == 0;
}

/* Whether the token is a keyword. OpenCL C allows two underscores before it. */
static bool is_keyword(struct token token, const char *word)
{
    if (token.length > 2 && memcmp(token.start, "__", 2) == 0) {
        token.start += 2;
        token.length -= 2;
    }
    return is(token, word);
}

static bool copy(struct token token, char name[COX__NAME_BYTES])
{
    if (token.length >= COX__NAME_BYTES)
        return false;

    memcpy(name, token.start, token.length);
    name[token.length] = '\0';
    return true;
}

/* ---- types ---- */

/* The short name of a type that begins with `unsigned`, such as "unsigned char". */
static void make_unsigned(char type[COX__NAME_BYTES])
{
    char plain[COX__NAME_BYTES] = "int";
    if (*type)
        memcpy(plain, type, sizeof plain);

    type[0] = 'u';
    memcpy(type + 1, plain, sizeof plain - 1);
    type[COX__NAME_BYTES - 1] = '\0';
}

/* ---- parameters ---- */

/* A parameter that is being read. */
struct draft {
    struct cox__parameter *parameter;
    bool is_pointer, is_unsigned, is_const, is_constant;
    char words[2][COX__NAME_BYTES]; /* the type, then the name */
    uint32_t word_count;
};

static bool is_qualifier(struct token token)
{
    static const char *const words[] = {"restrict", "volatile", "private", "read_only",
                                        "signed",   "struct",   "union",   "enum"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_keyword(token, words[i]))
            return true;

    return false;
}

/* The type or qualifier of OpenCL C that a session cannot give. NULL = it can give the token. */
static const char *find_foreign(struct token token)
{
    static const char *const words[] = {
        "write_only",      "read_write",     "pipe",
        "sampler_t",       "image1d_t",      "image1d_buffer_t",
        "image1d_array_t", "image3d_t",      "image2d_array_t",
        "image2d_depth_t", "image2d_msaa_t", "image2d_array_depth_t",
        "event_t",         "queue_t",        "clk_event_t"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_keyword(token, words[i]))
            return words[i];

    return NULL;
}

/* Add one token to the parameter. False: it cannot be read. */
static bool take(struct draft *draft, struct token token)
{
    struct cox__parameter *parameter = draft->parameter;
    if (is(token, "*")) {
        const bool first = !draft->is_pointer;
        draft->is_pointer = true;
        return first;
    }
    if (is_keyword(token, "const")) {
        draft->is_const |= !draft->is_pointer; /* behind the star the pointer itself is const */
        return true;
    }
    if (is_keyword(token, "global") || is_keyword(token, "constant")) {
        parameter->kind = COX__PARAMETER_BUFFER;
        draft->is_constant = is_keyword(token, "constant");
        return true;
    }
    if (is_keyword(token, "local")) {
        parameter->kind = COX__PARAMETER_LOCAL;
        return true;
    }
    if (is(token, "unsigned")) {
        draft->is_unsigned = true;
        return true;
    }
    if (is_qualifier(token))
        return true;

    /* The type or the name. */
    if (is(token, "image2d_t"))
        parameter->kind = COX__PARAMETER_IMAGE;

    return is_word(*token.start) && draft->word_count < 2 &&
           copy(token, draft->words[draft->word_count++]);
}

/* Fill in the parameter when all of its tokens were read. False: it cannot be read. */
static bool finish(struct draft *draft)
{
    struct cox__parameter *parameter = draft->parameter;
    const bool has_type = draft->word_count == 2; /* `unsigned` alone is one */
    if (!has_type && !(draft->word_count == 1 && draft->is_unsigned))
        return false;

    const bool needs_pointer = parameter->kind == COX__PARAMETER_BUFFER ||
                               parameter->kind == COX__PARAMETER_LOCAL;
    if (needs_pointer != draft->is_pointer)
        return false;

    if (has_type)
        memcpy(parameter->type, draft->words[0], sizeof parameter->type);
    memcpy(parameter->name, draft->words[has_type], sizeof parameter->name);
    if (draft->is_unsigned)
        make_unsigned(parameter->type);

    parameter->bytes = cox__type_name_bytes(parameter->type);
    parameter->reads_only = draft->is_const || draft->is_constant ||
                            parameter->kind == COX__PARAMETER_IMAGE;
    return true;
}

/* Read the parameters; the reader stands behind the opening parenthesis. False: one cannot be
 * read. `*foreign` is then the word that no session can give, or NULL. */
static bool read_parameters(struct reader *reader, struct cox__signature *signature,
                            const char **foreign)
{
    *foreign = NULL;
    struct token token = next(reader);
    if (is(token, "void"))
        token = next(reader);
    if (is(token, ")"))
        return true;

    for (;;) {
        if (signature->count == COX_ARGUMENTS_MAX)
            return false;

        struct cox__parameter *parameter = &signature->parameters[signature->count++];
        *parameter = (struct cox__parameter){.kind = COX__PARAMETER_VALUE};
        struct draft draft = {.parameter = parameter};
        for (; !is(token, ",") && !is(token, ")"); token = next(reader)) {
            if (!draft.word_count) /* the type, not the name */
                *foreign = find_foreign(token);
            if (!token.length || *foreign || !take(&draft, token))
                return false;
        }

        if (!finish(&draft))
            return false;
        if (is(token, ")"))
            return true;

        token = next(reader);
    }
}

/* ---- kernels ---- */

/* Skip what is in the parentheses of an attribute. */
static void skip_attribute(struct reader *reader)
{
    uint32_t depth = 0;
    struct token token;
    do {
        token = next(reader);
        depth += is(token, "(");
        depth -= is(token, ")");
    } while (token.length && depth > 0);
}

/* Look at what comes behind a kernel's parameters: a body, or the end of a declaration. */
static void read_body(const struct reader *behind_parameters, struct cox__signature *signature)
{
    struct reader reader = *behind_parameters;
    struct token token = next(&reader);
    if (!is(token, "{"))
        return;

    signature->defined = true;
    for (uint32_t depth = 1; token.length && depth > 0;) {
        token = next(&reader);
        depth += is(token, "{");
        depth -= is(token, "}");
        signature->local_arrays |= is_keyword(token, "local");
    }
}

/* Move the reader to the next kernel's parameters, behind the opening parenthesis. At the end of
 * the source `*name` has no length. */
static void find_kernel(struct reader *reader, struct token *name)
{
    struct token token = next(reader);
    while (token.length && !is_keyword(token, "kernel"))
        token = next(reader);

    /* The last word before the parenthesis is the name. */
    *name = token;
    while (token.length && !is(token, "(")) {
        *name = token;
        token = next(reader);
        if (is(token, "__attribute__"))
            skip_attribute(reader);
    }

    if (!token.length)
        name->length = 0;
}

static void refuse_parameter(struct token kernel, uint32_t number, const char *foreign,
                             const struct cox__log *log)
{
    if (foreign)
        cox__log(log, COX_LOG_ERROR,
                 "kernel %.*s: parameter %u is '%s'; allowed: pointers, values and read_only "
                 "image2d_t",
                 (int)kernel.length, kernel.start, number, foreign);
    else
        cox__log(log, COX_LOG_ERROR,
                 "kernel %.*s: cannot read parameter %u; allowed: a type and a name, with OpenCL C "
                 "qualifiers, and at most %d parameters",
                 (int)kernel.length, kernel.start, number, COX_ARGUMENTS_MAX);
}

/* A kernel that was declared before, or that another branch of an #if defines: the first one says
 * the parameters. */
static void read_again(struct reader *reader, struct cox__signature *signature)
{
    struct cox__signature other = {.count = 0};
    const char *foreign;

    if (read_parameters(reader, &other, &foreign))
        read_body(reader, signature);
}

cox_status cox__signature_read(const char *source, const char *kernel,
                               struct cox__signature *signature, const struct cox__log *log)
{
    struct reader reader = {.at = source, .source = source};
    bool found = false;
    for (;;) {
        struct token name;
        find_kernel(&reader, &name);
        if (!name.length)
            break;

        /* A kernel may be declared before its definition. */
        if (kernel && !is(name, kernel))
            continue;
        if (found && is(name, signature->kernel)) {
            read_again(&reader, signature);
            continue;
        }
        if (found) {
            cox__log(log, COX_LOG_ERROR,
                     "the source has several kernels, %s and %.*s; set `kernel` to one of them",
                     signature->kernel, (int)name.length, name.start);
            return COX_E_INVALID;
        }

        const char *foreign = NULL;
        *signature = (struct cox__signature){.count = 0};
        if (!copy(name, signature->kernel) || !read_parameters(&reader, signature, &foreign)) {
            refuse_parameter(name, signature->count, foreign, log);
            return COX_E_INVALID;
        }
        read_body(&reader, signature);
        found = true;
    }
    if (found)
        return COX_OK;

    if (kernel)
        cox__log(log, COX_LOG_ERROR, "the source has no kernel %s", kernel);
    else
        cox__log(log, COX_LOG_ERROR, "the source has no kernel");
    return COX_E_INVALID;
}

bool cox__signature_is_defined(const char *source, const char *kernel)
{
    static const struct cox__log silent;
    struct cox__signature signature;
    return cox__signature_read(source, kernel, &signature, &silent) != COX_OK || signature.defined;
}

const struct cox__parameter *cox__signature_find(const struct cox__signature *signature,
                                                 const char *name)
{
    for (uint32_t p = 0; p < signature->count; p++)
        if (strcmp(signature->parameters[p].name, name) == 0)
            return &signature->parameters[p];

    return NULL;
}
