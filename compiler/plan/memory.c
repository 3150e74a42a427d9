// memory.c: shared-memory offsets and tensor-memory columns. Shared memory holds the swizzled tiles first,
// whose alignment is largest, then the rest, the barriers, and the word in which the allocation of tensor
// memory arrives.
#include "compiler/plan/place_steps.h"
#include "compiler/plan/lookup.h"
#include "grammar/ast.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 16,       // alignment of vectors, of the barrier block, and of the tensor-memory pointer
    SWIZZLE_ROWS = 8,      // a swizzle pattern repeats after 8 rows (PTX ISA, "Tensors: swizzling modes")
    TMEM_LANES = 128,      // rows of tensor memory
    TMEM_COLUMN_BYTES = 4, // of one row
    TMEM_SMALLEST_ALLOCATION = 32, // columns (PTX ISA, "tcgen05.alloc")
    USERS_LISTED = 4,
};

static int64_t round_up(int64_t value, int64_t step) {
    return (value + step - 1) / step * step;
}

static const char *shape_text(const Plan *plan, const Buffer *buffer) {
    if (buffer->rank == 1)
        return arena_format(plan->arena, "%s[%d]", elem_name(buffer->elem), buffer->rows);
    return arena_format(plan->arena, "%s[%d, %d]", elem_name(buffer->elem), buffer->rows, buffer->cols);
}

// ---------------------------------------------------------------- one instance

static int64_t alignment_of(const Buffer *buffer) {
    return buffer->swizzle_bytes ? buffer->swizzle_bytes * SWIZZLE_ROWS : LINE_BYTES;
}

// A tile lies as [chunk][row][chunk_cols], a chunk being as wide as the swizzle.
static bool shape_shared(const Plan *plan, Buffer *buffer, Diag *diag) {
    int row_bytes = buffer->cols * elem_bytes(buffer->elem);
    buffer->bytes = (int64_t)buffer->rows * row_bytes;
    buffer->swizzle_bytes = 0;
    buffer->chunk_cols = buffer->cols;
    if (buffer->rank == 1)
        return true;
    buffer->swizzle_bytes = swizzle_bytes_for(row_bytes);
    if (buffer->swizzle_bytes == 0) {
        DiagItem *error = diag_error(diag, buffer->span, "smem-shape",
                                     "'%s' can't lie in shared memory: a row of %s has %d bytes",
                                     buffer->name, shape_text(plan, buffer), row_bytes);
        int step = 32 / elem_bytes(buffer->elem);
        diag_help(error,
                  "rows of tiles in shared memory are a multiple of 32 bytes: %lld columns, for example",
                  (long long)round_up(buffer->cols, step));
        return false;
    }
    buffer->chunk_cols = buffer->swizzle_bytes / elem_bytes(buffer->elem);
    if (buffer->chunk_cols < buffer->cols && buffer->rows % SWIZZLE_ROWS != 0) {
        DiagItem *error =
            diag_error(diag, buffer->span, "smem-shape", "'%s' can't lie in shared memory: %s has %d rows",
                       buffer->name, shape_text(plan, buffer), buffer->rows);
        diag_help(error, "a tile wider than %d bytes needs a multiple of %d rows: %lld, for example",
                  buffer->swizzle_bytes, SWIZZLE_ROWS, (long long)round_up(buffer->rows, SWIZZLE_ROWS));
        return false;
    }
    return true;
}

static bool shape_tensor(const Plan *plan, Buffer *buffer, Diag *diag) {
    int row_bytes = buffer->cols * elem_bytes(buffer->elem);
    buffer->bytes = (int64_t)buffer->rows * row_bytes;
    buffer->columns = row_bytes / TMEM_COLUMN_BYTES;
    if (buffer->rows == TMEM_LANES && row_bytes % TMEM_COLUMN_BYTES == 0)
        return true;
    bool rows_wrong = buffer->rows != TMEM_LANES;
    DiagItem *error = diag_error(diag, buffer->span, "tmem-shape", "'%s' can't lie in tensor memory: %s",
                                 buffer->name, shape_text(plan, buffer));
    if (rows_wrong)
        diag_help(error, "tensor memory has %d rows: the tile must have as many, not %d", TMEM_LANES,
                  buffer->rows);
    else
        diag_help(error, "a column of tensor memory has %d bytes a row: use an even number of columns",
                  TMEM_COLUMN_BYTES);
    return false;
}

static bool check_over(const Plan *plan, const Buffer *buffer, Diag *diag) {
    const Buffer *over = buffer->over;
    DiagItem *error = NULL;
    if (buffer_instances(buffer) != buffer_instances(over)) {
        error = diag_error(diag, buffer->span, "over-count", "'%s' has %lld instances, but '%s' has %lld",
                           buffer->name, (long long)buffer_instances(buffer), over->name,
                           (long long)buffer_instances(over));
        diag_help(error, "buffers that share bytes do so one by one: give both the same extents");
    } else if (buffer->bytes > over->bytes) {
        error =
            diag_error(diag, buffer->span, "over-size", "'%s' has %lld bytes, but '%s' only %lld: %s over %s",
                       buffer->name, (long long)buffer->bytes, over->name, (long long)over->bytes,
                       shape_text(plan, buffer), shape_text(plan, over));
        diag_help(error, "declare the larger one first, and the other over it");
    }
    if (error)
        diag_note(error, over->span, "'%s' is declared here", over->name);
    return !error;
}

// Which extent is the depth follows from a buffer's pipes. One without pipes takes its bytes all the same.
static void check_used(const Plan *plan, Buffer *buffer, Diag *diag) {
    for (int i = 0; i < plan->pipe_count; i++)
        if (plan->pipes[i]->buffer == buffer)
            return;
    for (int i = 0; i < buffer->dim_count; i++)
        buffer->array *= buffer->dims[i];
    DiagItem *warning =
        diag_warning(diag, buffer->span, "unused-buffer", "buffer '%s' has no pipe", buffer->name);
    diag_help(warning, "roles reach a buffer through its pipes only: declare one, or leave the buffer out");
}

bool memory_shapes(Plan *plan, Diag *diag) {
    int errors = diag->error_count;
    for (int i = 0; i < plan->buffer_count; i++)
        check_used(plan, plan->buffers[i], diag);
    for (int i = 0; i < plan->buffer_count; i++) {
        Buffer *buffer = plan->buffers[i];
        if (buffer->space == SPACE_SMEM)
            shape_shared(plan, buffer, diag);
        else
            shape_tensor(plan, buffer, diag);
    }
    for (int i = 0; i < plan->buffer_count && diag->error_count == errors; i++)
        if (plan->buffers[i]->over)
            check_over(plan, plan->buffers[i], diag);
    return diag->error_count == errors;
}

// ---------------------------------------------------------------- all of them

// What a root buffer takes, with all its instances: bytes, or columns of tensor memory.
static int64_t taken_by(const Buffer *root) {
    return root->stride * buffer_instances(root);
}

static void assign_root(const Plan *plan, Buffer *root, int64_t *next) {
    int64_t alignment = 1, size = root->columns;
    if (root->space == SPACE_SMEM) {
        size = root->bytes;
        for (int i = 0; i < plan->buffer_count;
             i++) // `over` needs the same start, so the strictest alignment holds
            if (buffer_root(plan->buffers[i]) == root && alignment_of(plan->buffers[i]) > alignment)
                alignment = alignment_of(plan->buffers[i]);
    }
    root->offset = round_up(*next, alignment);
    root->stride = round_up(size, alignment);
    *next = root->offset + taken_by(root);
}

// Places the buffers of a space one behind the other; returns where the next would start.
static int64_t assign_all(Plan *plan, int space) {
    int64_t next = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < plan->buffer_count; i++) {
            Buffer *buffer = plan->buffers[i];
            bool first_pass = buffer->space == SPACE_TMEM || buffer->swizzle_bytes != 0;
            if (buffer->space == space && !buffer->over && first_pass == (pass == 0))
                assign_root(plan, buffer, &next);
        }
    for (int i = 0; i < plan->buffer_count; i++) {
        Buffer *buffer = plan->buffers[i];
        buffer->offset = buffer_root(buffer)->offset;
        buffer->stride = buffer_root(buffer)->stride;
    }
    return next;
}

static int64_t assign_shared(Plan *plan) {
    plan->barrier_offset = round_up(assign_all(plan, SPACE_SMEM), LINE_BYTES);
    int64_t end = round_up(plan->barrier_offset + barriers_bytes(plan), LINE_BYTES);
    bool has_tmem = false;
    for (int i = 0; i < plan->buffer_count; i++)
        has_tmem |= plan->buffers[i]->space == SPACE_TMEM;
    plan->tmem_pointer_offset = has_tmem ? end : -1;
    return end + (has_tmem ? LINE_BYTES : 0);
}

static int by_size(const void *left, const void *right) {
    const Buffer *a = *(Buffer *const *)left, *b = *(Buffer *const *)right;
    if (taken_by(a) != taken_by(b))
        return taken_by(a) > taken_by(b) ? -1 : 1;
    return a->span.start < b->span.start ? -1 : a->span.start > b->span.start;
}

static Buffer **largest_first(const Plan *plan, int space, int *count) {
    Buffer **roots = arena_array(plan->arena, Buffer *, plan->buffer_count + 1);
    *count = 0;
    for (int i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i]->space == space && !plan->buffers[i]->over)
            roots[(*count)++] = plan->buffers[i];
    qsort(roots, (size_t)*count, sizeof *roots, by_size);
    return roots;
}

static void note_users(DiagItem *error, Buffer *const *roots, int count, const char *unit) {
    for (int i = 0; i < count && i < USERS_LISTED; i++)
        diag_note(error, roots[i]->span, "'%s' takes %lld x %lld = %lld %s", roots[i]->name,
                  (long long)buffer_instances(roots[i]), (long long)roots[i]->stride,
                  (long long)taken_by(roots[i]), unit);
}

static void set_depth(Plan *plan, const Buffer *root, int depth) {
    for (int i = 0; i < plan->buffer_count; i++)
        if (buffer_root(plan->buffers[i]) == root)
            plan->buffers[i]->depth = depth;
}

static bool has_depth_of(const Buffer *root, const Buffer *other) {
    return root == other || (root->depth_name && other->depth_name && root->depth == other->depth &&
                             !strcmp(root->depth_name, other->depth_name));
}

// The largest depth with which everything fits, of that ring and of those whose depth is the same constant;
// or 0.
static int fitting_depth(Plan *plan, Buffer *const *roots, int count, const Buffer *ring) {
    int declared = ring->depth, depth = declared - 1;
    bool *changes = arena_array(plan->arena, bool, count);
    for (int i = 0; i < count; i++)
        changes[i] = has_depth_of(ring, roots[i]);
    for (; depth > 0; depth--) {
        for (int i = 0; i < count; i++)
            if (changes[i])
                set_depth(plan, roots[i], depth);
        if (assign_shared(plan) <= target_shared_bytes(plan->target, plan->occupancy))
            break;
    }
    for (int i = 0; i < count; i++)
        if (changes[i])
            set_depth(plan, roots[i], declared);
    assign_shared(plan);
    return depth;
}

// Whose memory the buffers must fit into.
static const char *owner_text(const Plan *plan) {
    return plan->occupancy > 1 ? arena_format(plan->arena, "a CTA when an SM runs %d", plan->occupancy)
                               : plan->target->name;
}

static void note_occupancy(const Plan *plan, DiagItem *error) {
    if (plan->occupancy > 1)
        diag_note(error, plan->occupancy_span, "CTAs that an SM runs at a time share its memory");
}

// "'a' and 'b'": the rings whose depth is that of `ring`.
static const char *rings_text(const Plan *plan, Buffer *const *roots, int count, const Buffer *ring) {
    const char *text = "";
    int named = 0, total = 0;
    for (int i = 0; i < count; i++)
        total += has_depth_of(ring, roots[i]);
    for (int i = 0; i < count; i++)
        if (has_depth_of(ring, roots[i])) {
            const char *before = named == 0 ? "" : named == total - 1 ? " and " : ", ";
            text = arena_format(plan->arena, "%s%s'%s'", text, before, roots[i]->name);
            named++;
        }
    return text;
}

static void help_with_depth(const Plan *plan, DiagItem *error, Buffer *const *roots, int count,
                            const Buffer *ring, int depth) {
    const char *rings = rings_text(plan, roots, count, ring);
    bool several = strchr(rings, ' ');
    if (ring->depth_name)
        diag_help(error, "it fits with %s = %d (also as -D %s=%d), the depth of %s, instead of %d",
                  ring->depth_name, depth, ring->depth_name, depth, rings, ring->depth);
    else
        diag_help(error, "it fits when %s %s a depth of %d instead of %d", rings, several ? "have" : "has",
                  depth, ring->depth);
}

// No one of them is enough: the ring that takes the most gives up a slot, until all fits. "'a' of 3, 'b' of
// 2"; NULL: it never does.
static const char *shallower_rings(Plan *plan, Buffer *const *roots, int count) {
    int *declared = arena_array(plan->arena, int, count + 1);
    for (int i = 0; i < count; i++)
        declared[i] = roots[i]->depth;
    const Buffer *largest;
    bool fits;
    do {
        largest = NULL;
        for (int i = 0; i < count; i++)
            if (roots[i]->depth > 1 && (!largest || taken_by(roots[i]) > taken_by(largest)))
                largest = roots[i];
        if (largest)
            set_depth(plan, largest, largest->depth - 1);
        fits = assign_shared(plan) <= target_shared_bytes(plan->target, plan->occupancy);
    } while (largest && !fits);
    const char *text = "";
    for (int i = 0; i < count; i++) {
        if (roots[i]->depth != declared[i])
            text = arena_format(plan->arena, "%s%s'%s' of %d instead of %d", text, *text ? ", " : "",
                                roots[i]->name, roots[i]->depth, declared[i]);
        set_depth(plan, roots[i], declared[i]);
    }
    assign_shared(plan);
    return fits ? text : NULL;
}

void memory_shared(Plan *plan, Diag *diag) {
    plan->shared_bytes = assign_shared(plan);
    barriers_place(plan);
    int64_t available = target_shared_bytes(plan->target, plan->occupancy);
    int64_t excess = plan->shared_bytes - available;
    if (excess <= 0)
        return;
    int count;
    Buffer **roots = largest_first(plan, SPACE_SMEM, &count);
    DiagItem *error = diag_error(
        diag, plan->schedule_span, "smem-budget",
        "schedule '%s' needs %lld bytes of shared memory, %lld more than the %lld of %s", plan->schedule_name,
        (long long)plan->shared_bytes, (long long)excess, (long long)available, owner_text(plan));
    note_occupancy(plan, error);
    note_users(error, roots, count, "bytes");
    for (int i = 0; i < count; i++) {
        int depth = fitting_depth(plan, roots, count, roots[i]);
        if (depth > 0) {
            help_with_depth(plan, error, roots, count, roots[i], depth);
            return;
        }
    }
    const char *all = shallower_rings(plan, roots, count);
    if (all) {
        diag_help(error, "it fits with shallower rings: %s", all);
        return;
    }
    diag_help(error,
              "no shallower ring makes it fit: use smaller tiles, or let buffers that are not in use at the "
              "same time share bytes with 'over'");
}

void memory_tensor(Plan *plan, Diag *diag) {
    plan->tmem_columns = (int)assign_all(plan, SPACE_TMEM);
    plan->tmem_allocation = plan->tmem_columns ? TMEM_SMALLEST_ALLOCATION : 0;
    while (plan->tmem_allocation < plan->tmem_columns)
        plan->tmem_allocation *= 2;
    int available = plan->target->tmem_columns / plan->occupancy;
    int needed =
        plan->occupancy > 1 ? plan->tmem_allocation : plan->tmem_columns; // powers of two beside each other
    int excess = needed - available;
    if (excess <= 0)
        return;
    int count;
    Buffer **roots = largest_first(plan, SPACE_TMEM, &count);
    DiagItem *error = diag_error(diag, plan->schedule_span, "tmem-budget",
                                 "schedule '%s' needs %d columns of tensor memory, %d more than the %d of %s",
                                 plan->schedule_name, needed, excess, available, owner_text(plan));
    note_occupancy(plan, error);
    note_users(error, roots, count, "columns");
    diag_help(
        error,
        "use fewer or narrower tiles, or let buffers that are not in use at the same time share columns "
        "with 'over'");
}
