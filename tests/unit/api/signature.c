/* What the library reads from a kernel's source.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/signature.h"
#include "support/captured_log.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(signature);

static const struct cox__log captured = {.fn = on_log, .level = COX_LOG_DEBUG};

static cox_status read(const char *source, const char *kernel, struct cox__signature *signature)
{
    logged[0] = '\0';
    return cox__signature_read(source, kernel, signature, &captured);
}

/* Text of a signature: "name: KIND type/bytes name ...", with "KIND=" for an argument that is only read. */
static const char *text_of(const struct cox__signature *signature)
{
    static const char *const kinds[] = {"BUFFER", "IMAGE", "LOCAL", "VALUE"};
    static char text[2048];
    int length = snprintf(text, sizeof text, "%s:", signature->kernel);
    for (uint32_t p = 0; p < signature->count; p++) {
        const struct cox__parameter *of = &signature->parameters[p];
        length += snprintf(text + length, sizeof text - (size_t)length, " %s%s %s/%u %s", kinds[of->kind],
                           of->reads_only ? "=" : "", of->type, of->bytes, of->name);
    }
    return text;
}

Test(signature, says_what_each_parameter_is)
{
    static const struct {
        const char *source, *text;
    } cases[] = {
        {"kernel void f() {}", "f:"},
        {"__kernel void f(__global const float4 *in, __global uchar *out, int n) {}",
         "f: BUFFER= float4/16 in BUFFER uchar/1 out VALUE int/4 n"},
        {"kernel void f(global float const *restrict a, const global half3*b, global int *const c)",
         "f: BUFFER= float/4 a BUFFER= half3/8 b BUFFER int/4 c"},
        {"kernel void f(constant ushort2 *table, local double16 *room)",
         "f: BUFFER= ushort2/4 table LOCAL double16/128 room"},
        {"kernel void f(read_only image2d_t picture, private long x)", "f: IMAGE= image2d_t/0 picture VALUE long/8 x"},
        {"kernel void f(unsigned char a, unsigned b, global const unsigned int *c, signed char d)",
         "f: VALUE uchar/1 a VALUE uint/4 b BUFFER= uint/4 c VALUE char/1 d"},
        {"typedef struct { float x; } t; kernel void f(t settings, global const t *all, struct s other)",
         "f: VALUE t/0 settings BUFFER= t/0 all VALUE s/0 other"},
        {"kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f(volatile global int *x)", "f: BUFFER int/4 x"},
        {"kernel void __attribute__((vec_type_hint(int))) f(int a)", "f: VALUE int/4 a"},
        {"#define kernel void no(\\\n  int x)\n/* kernel void g(int a) */ // kernel void h(int b)\n"
         "  # pragma x\nkernel /* ( */ void\nf // )\n(int a /* , int b */)",
         "f: VALUE int/4 a"},
        {"int kernels(int kernel_rows); constant char text[] = \"kernel void g(int a)\"; kernel void f(int a)",
         "f: VALUE int/4 a"},
        {"#define ROWS 4 /* of the\n kernel (see below) */\nkernel void f(int a)", "f: VALUE int/4 a"},
        {"#define X \\\r\n kernel void g(int b)\r\nkernel void f(int a)", "f: VALUE int/4 a"},
        {"kernel void f(void)", "f:"},
        {"kernel void f(int a); kernel void f(int a) {}", "f: VALUE int/4 a"},
        {"kernel void f(int pipe, global int *event_t)", "f: VALUE int/4 pipe BUFFER int/4 event_t"},
        {"kernel void f(float5 a, int33 b, char16x c)", "f: VALUE float5/0 a VALUE int33/0 b VALUE char16x/0 c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cox__signature signature;
        cr_expect_eq(read(cases[i].source, NULL, &signature), COX_OK, "%s: %s", cases[i].source, logged);
        cr_expect_str_eq(text_of(&signature), cases[i].text);
    }
}

Test(signature, finds_the_kernel_of_a_name)
{
    static const char source[] = "void g(int x) {} kernel void ff(int a) {} kernel void f(float b) {}";
    struct cox__signature signature;
    cr_expect_eq(read(source, "f", &signature), COX_OK);
    cr_expect_str_eq(text_of(&signature), "f: VALUE float/4 b");
    cr_expect_eq(read(source, "ff", &signature), COX_OK);
    cr_expect_str_eq(text_of(&signature), "ff: VALUE int/4 a");
}

Test(signature, says_what_cannot_be_read)
{
    static char many[2048] = "kernel void f(int a0";
    for (int i = 1; i <= COX_ARGUMENTS_MAX; i++)
        sprintf(many + strlen(many), ", int a%d", i);
    strcat(many, ")");
    const struct {
        const char *source, *kernel, *line;
    } cases[] = {
        {"", NULL, "the source has no kernel"},
        {"kernel", NULL, "the source has no kernel"},
        {"kernel void", NULL, "the source has no kernel"},
        {"kernel __attribute__((", NULL, "the source has no kernel"},
        {"/* kernel void f(int a)", NULL, "the source has no kernel"},
        {"kernel void f(int a) {}", "g", "the source has no kernel g"},
        {"void f(int a) {}", "f", "the source has no kernel f"},
        {"kernel void f(int a) {} kernel void g(int a) {}", NULL,
         "several kernels, f and g; set `kernel` to one of them"},
        {"kernel void f(", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(int a", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(int a, )", NULL, "kernel f: cannot read parameter 2"},
        {"kernel void f(PARAMETERS)", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(int a[4])", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(global int x)", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(int *x)", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(global int **x)", NULL, "kernel f: cannot read parameter 1"},
        {"kernel void f(int b, write_only image2d_t a)", NULL, "kernel f: parameter 2 is 'write_only'; allowed: "},
        {"kernel void f(__read_write image2d_t a)", NULL, "kernel f: parameter 1 is 'read_write'"},
        {"kernel void f(read_only image3d_t a)", NULL, "kernel f: parameter 1 is 'image3d_t'"},
        {"kernel void f(read_only image1d_buffer_t a)", NULL, "kernel f: parameter 1 is 'image1d_buffer_t'"},
        {"kernel void f(sampler_t a)", NULL, "kernel f: parameter 1 is 'sampler_t'"},
        {"kernel void f(read_only pipe int a)", NULL, "kernel f: parameter 1 is 'pipe'"},
        {"kernel void f(int a, long long b)", NULL, "kernel f: cannot read parameter 2"},
        {many, NULL, "; allowed: a type and a name"},
        {"kernel void f(int a123456789_123456789_123456789_123456789_123456789_123456789_12345)", NULL,
         "kernel f: cannot read parameter 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cox__signature signature;
        cr_expect_eq(read(cases[i].source, cases[i].kernel, &signature), COX_E_INVALID, "%s", cases[i].source);
        cr_expect(strstr(logged, cases[i].line), "%s: %s", cases[i].source, logged);
    }
}
