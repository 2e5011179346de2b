/* The JSON of a kernel of the user's own from hostile bytes: no crash, one line of complaint, and what is accepted is
 * within what the library takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fuzz.h"
#include "lab/run/bindings.h"

static void check_touch(const struct cox__pass_binding *touch, bool scratch)
{
    CHECK(touch->access <= COX__READ_WRITE && touch->row_access <= COX__WHOLE && touch->row_divisor >= 1);
    CHECK(touch->row_access == COX__ROWS || touch->access == COX__READ ||
          (scratch && touch->row_access == COX__HALO && touch->access == COX__READ_WRITE));
    CHECK(touch->row_access == COX__HALO || touch->halo_rows == 0);
}

static void check_binding(const struct lab_binding *binding)
{
    CHECK(binding->name[0] && memchr(binding->name, 0, sizeof binding->name) && binding->fill <= LAB_FILL_FILE);
    CHECK((binding->fill == LAB_FILL_FILE) == (binding->file[0] != '\0'));
    check_touch(&binding->touch, binding->scratch);
    CHECK(!binding->scratch || (binding->touch.row_access != COX__WHOLE && binding->fill == LAB_FILL_ZERO));
    if (binding->touch.row_access == COX__WHOLE)
        CHECK(binding->bytes >= 1 && binding->bytes <= LAB_WHOLE_BYTES_MAX && !binding->transposed);
    else
        CHECK(binding->element_bytes >= 1 && binding->element_bytes <= LAB_ELEMENT_BYTES_MAX);
}

static void check_pass(const struct lab_bindings *bindings, const struct lab_pass *pass)
{
    CHECK(pass->stage_count >= 1 && pass->stage_count <= COX_FUSED_MAX && pass->use_count <= COX_BUFFERS_MAX);
    CHECK(pass->first_stage + pass->stage_count <= bindings->stage_count);
    CHECK(pass->use_count || !pass->transposed);
    for (uint32_t u = 0; u < pass->use_count; u++) {
        CHECK(pass->uses[u].binding < bindings->binding_count);
        const struct lab_binding *binding = &bindings->bindings[pass->uses[u].binding];
        const struct cox__pass_binding *touch = &pass->uses[u];
        check_touch(touch, binding->scratch);
        CHECK(touch->access == COX__READ || binding->touch.access != COX__READ);
        CHECK(touch->row_access == COX__WHOLE ||
              (binding->touch.row_access != COX__WHOLE && binding->transposed == pass->transposed));
    }
}

static void check_stage(const struct lab_bindings *bindings, const struct lab_stage *stage)
{
    CHECK(stage->kernel[0] && stage->local_columns && stage->local_rows && stage->item_columns && stage->item_rows);
    CHECK(stage->argument_count >= 1 && stage->argument_count <= COX_ARGUMENTS_MAX);
    CHECK(stage->first_argument + stage->argument_count <= bindings->argument_count);
}

static void check_argument(const struct lab_bindings *bindings, const struct lab_argument *argument)
{
    CHECK(argument->kind <= LAB_ARGUMENT_LOCAL);
    CHECK(argument->binding < bindings->binding_count);
    const struct lab_binding *binding = &bindings->bindings[argument->binding];
    if (argument->kind == LAB_ARGUMENT_PITCH)
        CHECK(binding->element_bytes && !(binding->element_bytes & (binding->element_bytes - 1)));
    if (argument->kind == LAB_ARGUMENT_ORIGIN || argument->kind == LAB_ARGUMENT_PITCH_BYTES)
        CHECK(binding->touch.row_access != COX__WHOLE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[400] = "";
    struct lab_bindings bindings;
    if (!lab_bindings_parse((const char *)data, size, "input", &bindings, why, sizeof why)) {
        fuzz_complaint(why, sizeof why);
        return 0;
    }
    CHECK(bindings.columns >= LAB_SIZE_MIN && bindings.columns <= LAB_SIZE_MAX);
    CHECK(bindings.rows >= LAB_SIZE_MIN && bindings.rows <= LAB_SIZE_MAX);
    CHECK(bindings.pass_count <= COX_PASSES_MAX && bindings.stage_count >= 1);
    CHECK(bindings.stage_count <= LAB_STAGES_MAX && (bindings.pass_count || bindings.stage_count == 1));
    for (uint32_t p = 0; p < bindings.pass_count; p++)
        check_pass(&bindings, &bindings.passes[p]);
    for (uint32_t s = 0; s < bindings.stage_count; s++)
        check_stage(&bindings, &bindings.stages[s]);
    CHECK(bindings.binding_count >= 1 && bindings.binding_count <= COX_BUFFERS_MAX);
    CHECK(bindings.argument_count >= 1 && bindings.argument_count <= LAB_ARGUMENTS_MAX);
    bool written = false;
    for (uint32_t b = 0; b < bindings.binding_count; b++) {
        check_binding(&bindings.bindings[b]);
        written = written || (!bindings.bindings[b].scratch && bindings.bindings[b].touch.access != COX__READ);
    }
    CHECK(written);
    for (uint32_t a = 0; a < bindings.argument_count; a++)
        check_argument(&bindings, &bindings.arguments[a]);
    return 0;
}
