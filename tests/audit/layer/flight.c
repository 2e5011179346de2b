/* Commands in flight: their order, the memory that they access, and the rules about both.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "audit/layer.h"

/* Host memory that a kernel wrote through a buffer. Until it is mapped, only that buffer has the new contents. */
struct written {
    struct written *next;
    uintptr_t from, to;
    unsigned root;
};

struct queue *live_queues;
struct mapping *mappings;
static struct command *oldest, *newest;
static struct written *written;
static uint64_t marks;

void queue_put(struct queue *queue)
{
    if (--queue->refs == 0)
        free(queue);
}

void command_put(struct command *command)
{
    if (!command || --command->refs > 0)
        return;
    queue_put(command->queue);
    free(command->deps);
    free(command);
}

void leave_flight(struct command *command)
{
    *(command->prev ? &command->prev->next : &oldest) = command->next;
    *(command->next ? &command->next->prev : &newest) = command->prev;
    command->prev = command->next = NULL;
    unsigned count = command->dep_count;
    command->dep_count = 0;
    for (unsigned i = 0; i < count; i++)
        command_put(command->deps[i]);
    if (command->queue->gate == command)
        command->queue->gate = NULL;
    command->done = true;
    command_put(command);
}

void enter_flight(struct command *command)
{
    command->prev = newest;
    *(newest ? &newest->next : &oldest) = command;
    newest = command;
}

unsigned in_flight(const struct queue *queue, struct command **out)
{
    unsigned count = 0;
    for (struct command *c = oldest; c; c = c->next) {
        if (c->queue != queue)
            continue;
        if (out) {
            c->refs++;
            out[count] = c;
        }
        count++;
    }
    return count;
}

void complete(struct command *command)
{
    if (command->done)
        return;
    command->refs++;
    command->done = true; /* stops the recursion; leave_flight does not need it */
    for (unsigned i = 0; i < command->dep_count; i++)
        complete(command->deps[i]);
    if (command->queue->in_order)
        complete_queue(command->queue, command->number - 1);
    leave_flight(command);
    command_put(command);
}

void complete_queue(struct queue *queue, uint64_t up_to)
{
    for (struct command *c = oldest; c;) {
        if (c->queue == queue && c->number <= up_to && !c->done) {
            complete(c);
            c = oldest; /* the list may have changed */
        } else
            c = c->next;
    }
}

/* Mark all commands that must have ended before this one begins. */
static void mark_before(struct command *command)
{
    for (unsigned i = 0; i < command->dep_count; i++)
        if (!command->deps[i]->done && command->deps[i]->mark != marks) {
            command->deps[i]->mark = marks;
            mark_before(command->deps[i]);
        }
    if (!command->queue->in_order)
        return;
    for (struct command *c = oldest; c; c = c->next)
        if (c->queue == command->queue && c->number < command->number && c->mark != marks) {
            c->mark = marks;
            mark_before(c);
        }
}

/* Find a range of `a` that conflicts with one of `b`, which is stored in *other. Returns NULL without a conflict. */
static const struct access *conflict(const struct command *a, const struct command *b, const struct access **other)
{
    for (unsigned i = 0; i < a->access_count; i++)
        for (unsigned j = 0; j < b->access_count; j++) {
            const struct access *x = &a->access[i], *y = &b->access[j];
            if (x->space == y->space && x->from < y->to && y->from < x->to && (x->write || y->write)) {
                *other = y;
                return x;
            }
        }
    return NULL;
}

static bool is_kernel(const struct command *command)
{
    return command->call == call_name[CALL_clEnqueueNDRangeKernel];
}

/* Whether the conflict is between a kernel and a copy on another queue of the same device, to a part of the
 * kernel's argument. The layer does not know which part of an argument a kernel accesses, and assumes all of it.
 * Such a copy may go to rows that the kernel does not access, so it has a separate rule, for stricter checks.
 * Between devices this does not apply: each has buffers or sub-buffers with its bands alone. */
static bool maybe_apart(const struct command *a, const struct access *x, const struct command *b,
                        const struct access *y)
{
    if (!x->space || a->queue->device != b->queue->device || is_kernel(a) == is_kernel(b))
        return false;
    const struct access *kernel = is_kernel(a) ? x : y, *copy = is_kernel(a) ? y : x;
    return kernel->from < copy->from || kernel->to > copy->to;
}

/* Returns whether the command overlaps no other. */
static bool check_overlap(struct command *command)
{
    marks++;
    command->mark = marks;
    mark_before(command);
    for (struct command *c = oldest; c; c = c->next) {
        const struct access *other = NULL, *range = c->mark != marks ? conflict(command, c, &other) : NULL;
        if (!range)
            continue;
        violate(maybe_apart(command, range, c, other) ? AUDIT_RULE_COPY_BESIDE_KERNEL : AUDIT_RULE_OVERLAP,
                "%s on queue %u %s bytes %zu to %zu of %s, where %s on queue %u is in flight", command->call,
                command->queue->number, range->write ? "writes" : "reads", (size_t)range->from, (size_t)range->to,
                range->space ? "a buffer" : "host memory", c->call, c->queue->number);
        return false;
    }
    return true;
}

static void check_mapped(const struct command *command)
{
    for (const struct mapping *map = mappings; map; map = map->next)
        for (unsigned i = 0; i < command->access_count; i++) {
            const struct access *x = &command->access[i];
            if (x->root && x->root == map->access.root && x->root_from < map->access.root_to &&
                map->access.root_from < x->root_to && (x->write || map->flags & ~(cl_map_flags)CL_MAP_READ)) {
                violate(AUDIT_RULE_MAPPED_IN_USE, "%s on queue %u %s a region that is mapped for %s", command->call,
                        command->queue->number, x->write ? "writes" : "reads",
                        map->flags & ~(cl_map_flags)CL_MAP_READ ? "writing" : "reading");
                return;
            }
        }
}

/* ---- host memory that kernels have written ---- */

static void add_written(uintptr_t from, uintptr_t to, unsigned root)
{
    struct written *range = must_alloc(1, sizeof *range);
    *range = (struct written){.next = written, .from = from, .to = to, .root = root};
    written = range;
}

void forget_written(uintptr_t from, uintptr_t to, unsigned root)
{
    struct written *rest = written;
    written = NULL;
    while (rest) {
        struct written *range = rest;
        rest = range->next;
        if (range->to <= from || to <= range->from || (root && range->root != root)) {
            range->next = written;
            written = range;
            continue;
        }
        if (range->from < from)
            add_written(range->from, from, range->root);
        if (range->to > to)
            add_written(to, range->to, range->root);
        free(range);
    }
}

static bool reads_host_memory(const struct access *access)
{
    return !access->space && !access->write;
}

/* Check reads of host memory that a kernel wrote and nothing has mapped since. The map itself is allowed. An unmap
 * is too, since the kernel that reads the buffer is checked. */
static void check_hand_over(const struct command *command)
{
    if (command->call == call_name[CALL_clEnqueueMapBuffer] || command->call == call_name[CALL_clEnqueueUnmapMemObject])
        return;
    for (unsigned i = 0; i < command->access_count; i++)
        for (const struct written *range = written; range && reads_host_memory(&command->access[i]);
             range = range->next) {
            const struct access *x = &command->access[i];
            if (range->root != x->root && range->from < x->to && x->from < range->to) {
                violate(AUDIT_RULE_MISSING_HAND_OVER,
                        "%s on queue %u reads bytes %zu to %zu of host memory, of which "
                        "a kernel wrote some through a buffer that is not mapped since",
                        command->call, command->queue->number, (size_t)x->from, (size_t)x->to);
                return;
            }
        }
}

static void note_written(const struct command *command)
{
    for (unsigned i = 0; i < command->access_count; i++) {
        const struct access *x = &command->access[i];
        if (x->space || !x->write)
            continue;
        forget_written(x->from, x->to, 0);
        if (is_kernel(command))
            add_written(x->from, x->to, x->root);
    }
}

void check_accesses(struct command *command)
{
    if (command->access_count == 0)
        return;
    if (check_overlap(command))
        check_hand_over(command);
    check_mapped(command);
    note_written(command);
}

void check_flushed(const char *call, const struct queue *except)
{
    for (struct queue *queue = live_queues; queue; queue = queue->next)
        if (queue != except && queue->last > queue->flushed && pthread_equal(queue->thread, pthread_self())) {
            violate(AUDIT_RULE_UNFLUSHED_WAIT, "%s while %llu commands of queue %u are not flushed", call,
                    (unsigned long long)(queue->last - queue->flushed), queue->number);
            return;
        }
}

void check_event_flushed(const char *call, const struct object *event)
{
    const struct command *command = event ? event->command : NULL;
    if (command && !command->done && command->number > command->queue->flushed)
        violate(AUDIT_RULE_UNFLUSHED_POLL, "%s of a %s that queue %u has not flushed", call, command->call,
                command->queue->number);
}
