/* Small questions about bindings: how a band uses one, and how many bytes it has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_BINDING_H
#define COX_ENGINE_BINDING_H

#include "backend.h"

/* Whether a band touches only its own rows of the binding, not the whole buffer. */
static inline bool cox__by_rows(const struct cox__binding *binding)
{
    return binding->row_access == COX__ROWS || binding->row_access == COX__HALO;
}

/* Whether devices write the binding's buffer. REDUCE results come from the host. */
static inline bool cox__written_by_rows(const struct cox__binding *binding)
{
    return binding->row_access == COX__ROWS && binding->access != COX__READ;
}

/* Whether devices need what the memory of such rows held before the pass. */
static inline bool cox__keeps_values(const struct cox__binding *binding)
{
    return binding->access == COX__READ_WRITE ||
           (cox__written_by_rows(binding) && binding->coverage == COX__COVERS_SOME);
}

/* The bytes of a row that belong to the frame. */
static inline size_t cox__row_bytes(const struct cox__binding *binding)
{
    return binding->row_bytes ? binding->row_bytes : binding->pitch_bytes;
}

/* Whether there are bytes between the rows that do not belong to the frame. */
static inline bool cox__has_gaps(const struct cox__binding *binding)
{
    return cox__by_rows(binding) && cox__row_bytes(binding) < binding->pitch_bytes;
}

/* Whether each band has its own memory for the binding, which no other pass or device sees. */
static inline bool cox__is_own(const struct cox__binding *binding)
{
    return binding->row_access == COX__HALO && binding->access == COX__READ_WRITE;
}

/* Whether kernels get memory of the binding that begins at row 0, not at the band's rows. */
static inline bool cox__from_start(const struct cox__pass *pass, uint32_t binding)
{
    const struct cox__binding *of = &pass->bindings[binding];
    return cox__by_rows(of) && (pass->absolute || of->reads_all);
}

/* Whether a band of the pass touches the frame's memory of the binding. */
static inline bool cox__is_shared(const struct cox__binding *binding)
{
    return binding->row_access != COX__UNUSED && !cox__is_own(binding);
}

/* The stage's first argument of that kind for the binding, or NULL. */
static inline const struct cox__arg *cox__stage_arg(const struct cox__stage *stage,
                                                    enum cox__arg_kind kind, uint32_t binding)
{
    for (uint32_t a = 0; a < stage->arg_count; a++)
        if (stage->args[a].kind == kind && stage->args[a].index == binding)
            return &stage->args[a];
    return NULL;
}

/* Whether a stage takes a binding as an argument: its memory, or an image copied from it. */
static inline bool cox__stage_takes(const struct cox__stage *stage, uint32_t binding)
{
    return cox__stage_arg(stage, COX__ARG_KIND_BUFFER, binding) ||
           cox__stage_arg(stage, COX__ARG_KIND_IMAGE, binding);
}

/* The binding's name for messages. */
static inline const char *cox__binding_name(const struct cox__binding *binding)
{
    return binding->name ? binding->name : "unnamed";
}

/* Buffer rows for `rows` rows of a pass. */
static inline uint32_t cox__buffer_rows(uint32_t rows, uint32_t divisor)
{
    return rows / divisor + (rows % divisor != 0);
}

/* The row divisor that the application declares; 0 means 1. */
static inline uint32_t cox__row_divisor(uint32_t declared)
{
    return declared ? declared : 1;
}

/* Bytes of a buffer of `rows` rows, its border and what is before it. */
static inline size_t cox__rows_bytes(const struct cox__binding *binding, uint32_t rows)
{
    return binding->offset_bytes +
           binding->pitch_bytes * ((size_t)rows + binding->border_above + binding->border_below);
}

/* Size of a whole binding in bytes, as the session declares it. 0 = the session does not declare
 * it, and the size follows from the passes that use it. */
static inline size_t cox__session_bytes(const struct cox__session_spec *params, uint32_t binding)
{
    const struct cox__binding *of = &params->bindings[binding];
    if (!cox__by_rows(of))
        return of->bytes;

    return cox__rows_bytes(of, cox__buffer_rows(params->rows, cox__row_divisor(of->row_divisor)));
}

/* Bytes of a binding for all rows of the pass, or of the whole buffer. */
static inline size_t cox__pass_bytes(const struct cox__pass *pass, uint32_t binding)
{
    const struct cox__binding *of = &pass->bindings[binding];
    if (!cox__by_rows(of))
        return of->bytes;

    return cox__rows_bytes(of, cox__buffer_rows(pass->rows, of->row_divisor));
}

/* Where a buffer row begins in the binding's memory. */
static inline size_t cox__row_offset(const struct cox__binding *binding, uint32_t row)
{
    return binding->offset_bytes + (size_t)row * binding->pitch_bytes;
}

/* Whether the frame's first row begins at a multiple of `align` bytes of the memory. */
static inline bool cox__begins_aligned(const struct cox__binding *binding, uint32_t align)
{
    return !align || cox__row_offset(binding, binding->border_above) % align == 0;
}

#endif
