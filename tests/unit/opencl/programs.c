/* The sessions of a runtime share programs, and programs outlive the sessions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/cl.h"
#include "opencl/internal.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(cl_programs, .timeout = 600);

static const char source[] = "__kernel void one(__global uint *to) { to[get_global_id(0)] = ONE; }\n";

static void post(void *ctx, struct cox__job *job)
{
    (void)ctx, (void)job;
}

static struct cox__cl_backend *backend_new(void)
{
    static const struct cox__log silent;
    struct cox__backend *backend = NULL;
    const struct cox__cl_options options = {.devices = "cpu", .post = {.post = post}, .log = &silent};
    cr_assert_eq(cox__cl_create(&backend, &options), COX_OK);
    return (struct cox__cl_backend *)backend;
}

static void backend_end(struct cox__cl_backend *backend)
{
    backend->base.ops->destroy(&backend->base);
}

static struct cox__cl_program *get(struct cox__cl_backend *backend, const char *options)
{
    struct cox__cl_program *program = NULL;
    const cl_context context = backend->groups[backend->devices[0].group].context;
    const struct cox__variant kernel = {.source = source, .options = options};
    cr_assert_eq(cox__cl_program_get(backend, 0, context, &kernel, &program), COX_OK);
    return program;
}

Test(cl_programs, the_same_source_and_options_are_built_once)
{
    struct cox__cl_backend *backend = backend_new();
    struct cox__cl_program *first = get(backend, "-DONE=1"), *again = get(backend, "-DONE=1");
    struct cox__cl_program *other = get(backend, "-DONE=2");
    cr_assert_eq(first, again);
    cr_assert_neq(first, other);
    cox__cl_program_put(backend, first, true);
    cox__cl_program_put(backend, again, true);
    again = get(backend, "-DONE=1");
    cr_assert_eq(again, first, "the program is kept for the next session");
    cox__cl_program_put(backend, again, true);
    cox__cl_program_put(backend, other, true);
    cox__cl_program_put(backend, NULL, true);
    backend_end(backend);
}

Test(cl_programs, what_does_not_build_is_an_error_each_time)
{
    struct cox__cl_backend *backend = backend_new();
    struct cox__cl_program *program;
    const cl_context context = backend->groups[backend->devices[0].group].context;
    const struct cox__variant kernel = {.source = source, .options = ""};
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(cox__cl_program_get(backend, 0, context, &kernel, &program), COX_E_BUILD);
        cr_assert_null(program);
    }
    cr_assert_null(backend->programs);
    backend_end(backend);
}

/* Not even by a session that starts while the first one still uses it. */
Test(cl_programs, one_of_a_device_that_failed_is_not_used_again)
{
    struct cox__cl_backend *backend = backend_new();
    struct cox__cl_program *first = get(backend, "-DONE=1"), *again = get(backend, "-DONE=1");
    cox__cl_program_put(backend, first, false);
    struct cox__cl_program *fresh = get(backend, "-DONE=1");
    cr_assert_neq(fresh, again);
    cox__cl_program_put(backend, again, true);
    cr_assert_eq(backend->programs, fresh);
    cr_assert_null(fresh->next, "the failed program is released with its last user");
    cox__cl_program_put(backend, fresh, true);
    backend_end(backend);
}

/* The most recently requested ones stay. */
Test(cl_programs, only_so_many_stay_that_no_session_uses)
{
    enum { STAY = 32, MANY = STAY + 2 };
    struct cox__cl_backend *backend = backend_new();
    struct cox__cl_program *used = get(backend, "-DONE=1000");
    char options[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(options, sizeof options, "-DONE=%d", i);
        cox__cl_program_put(backend, get(backend, options), true);
    }
    int idle = 0, users = 0;
    for (const struct cox__cl_program *program = backend->programs; program; program = program->next) {
        idle += !program->users;
        users += program->users > 0;
    }
    cr_assert_eq(idle, STAY);
    cr_assert_eq(users, 1);
    const struct cox__cl_program *newest = backend->programs;
    snprintf(options, sizeof options, "-DONE=%d", MANY - 1);
    struct cox__cl_program *again = get(backend, options);
    cr_assert_eq(again, newest);
    cox__cl_program_put(backend, again, true);
    cox__cl_program_put(backend, used, true);
    backend_end(backend);
}
