// schedule.c: what a schedule declares: buffers, roles, pipes, the grid and walks, and how shared bytes go
// round.
#include "compiler/sema/internal.h"

#include "compiler/plan/lookup.h"

#include <string.h>

static const char *space_text(int space) {
    return space == SPACE_SMEM ? "shared" : "tensor";
}

// The buffer that `buffer` is declared over; NULL: reported.
static Buffer *shared_buffer(Sema *sema, const Ast *ast, const Buffer *buffer) {
    Symbol *over = scope_find(sema->schedule, ast->name2);
    if (over && over->kind == SYM_BUFFER && over->buffer && over->buffer->space == buffer->space)
        return over->buffer;
    sema->lost_round = true;
    if (!over || over->kind != SYM_BUFFER) {
        scope_unknown(sema, sema->schedule, ast->name2, ast->name2_span, "buffer declared before");
    } else if (over->buffer) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "over-space", "'%s' lies in %s memory, but '%s' in %s memory",
                       buffer->name, space_text(buffer->space), ast->name2, space_text(over->buffer->space));
        diag_note(item, over->buffer->span, "'%s' is declared here", ast->name2);
        diag_help(item, "only buffers of the same memory can share bytes");
    }
    return NULL;
}

static void declare_buffer(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_BUFFER, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->buffer_count, ast->span, "buffers"))
        return;
    Buffer *buffer = arena_new_of(sema->arena, Buffer);
    buffer->name = ast->name;
    buffer->space = ast->op;
    buffer->span = ast->span;
    buffer->array = buffer->depth = 1;
    Elem elem = declare_find_elem(sema, sema->schedule, ast->a->name, ast->a->span);
    buffer->elem = elem == ELEM_COUNT ? ELEM_F32 : elem;
    bool good = elem != ELEM_COUNT;
    for (const Ast *dim = ast->list; dim; dim = dim->next) {
        int64_t extent = 1;
        if (buffer->dim_count == 2) {
            diag_error(sema->diag, dim->span, "too-many", "a buffer has at most an array extent and a depth");
            return;
        }
        good &= sema_constant_int(sema, sema->schedule, dim, "the depth of a buffer", 1, 64, &extent);
        buffer->dims[buffer->dim_count++] = (int)extent;
        buffer->depth_name = dim->kind == AST_NAME ? dim->name : NULL;
    }
    int64_t extents[2] = {1, 1};
    for (const Ast *extent = ast->a->list; extent; extent = extent->next) {
        if (buffer->rank == 2) {
            diag_error(sema->diag, extent->span, "shape-mismatch", "a buffer has one or two extents");
            return;
        }
        good &= sema_constant_int(sema, sema->schedule, extent, "the extent of a buffer", 1, 4096,
                                  &extents[buffer->rank++]);
    }
    if (buffer->rank == 0)
        diag_error(sema->diag, ast->a->span, "shape-mismatch", "buffer '%s' needs its shape: %s[rows, cols]",
                   ast->name, ast->a->name);
    buffer->rows = (int)extents[0];
    buffer->cols = (int)extents[1];
    if (ast->name2 && scope_find(sema->schedule, ast->name2) == symbol)
        diag_error(sema->diag, ast->span, "bad-over", "buffer '%s' can't lie over itself", ast->name);
    else if (ast->name2)
        buffer->over = shared_buffer(sema, ast, buffer);
    if (!good)
        return;
    if (buffer->space == SPACE_TMEM && !sema->plan->target->tmem_columns) {
        diag_error(sema->diag, ast->span, "no-tmem", "%s has no tensor memory", sema->plan->target->name);
        return;
    }
    symbol->buffer = buffer;
    sema->plan->buffers[sema->plan->buffer_count++] = buffer;
}

static void declare_role(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_ROLE, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->role_count, ast->span, "roles"))
        return;
    Role *role = arena_new_of(sema->arena, Role);
    role->name = ast->name;
    role->span = ast->name_span;
    role->replicas = 1;
    int64_t value;
    if (ast->list) {
        role->replica_name = ast->list->name;
        if (!sema_constant_int(sema, sema->schedule, ast->list->a, "the number of replicas", 1, 8, &value))
            value = 1;
        role->replicas = (int)value;
    }
    role->warps_span = ast->a->span;
    role->warps = sema_constant_int(sema, sema->schedule, ast->a, "the number of warps", 1, 32, &value)
                      ? (int)value
                      : 0; // reported
    if (ast->b) {
        role->regs_span = ast->b->span;
        role->regs = sema_constant_int(sema, sema->schedule, ast->b, "registers a thread", 24, 255, &value)
                         ? (int)value
                         : 0;
    }
    role->number = sema->plan->role_count;
    symbol->role = role;
    sema->plan->roles[sema->plan->role_count++] = role;
}

static Role *role_named(Sema *sema, const char *name, Span span) {
    Symbol *symbol = scope_find(sema->schedule, name);
    if (symbol && symbol->kind == SYM_ROLE)
        return symbol->role;
    scope_unknown(sema, sema->schedule, name, span, "role");
    return NULL;
}

// The leading dims of the buffer are the pipe's own; what remains is the ring's depth.
static bool match_ring(Sema *sema, const Ast *ast, Pipe *pipe) {
    Buffer *buffer = pipe->buffer;
    int64_t extent = 1;
    int own = 0;
    for (const Ast *dim = ast->list; dim; dim = dim->next, own++) {
        if (own == 1) {
            diag_error(sema->diag, dim->span, "shape-mismatch", "a pipe array has one extent");
            return false;
        }
        if (!sema_constant_int(sema, sema->schedule, dim, "the extent of a pipe array", 1, 64, &extent))
            return false;
    }
    pipe->is_array = own == 1;
    pipe->array = (int)extent;
    int remaining = buffer->dim_count - own;
    if (remaining < 0 || remaining > 1 || (own == 1 && buffer->dims[0] != extent)) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "shape-mismatch",
                       "the extents of pipe '%s' don't fit those of buffer '%s'", pipe->name, buffer->name);
        diag_note(item, buffer->span, "declared here");
        diag_help(item, "pipe p[A] : b needs buffer b[A] or b[A, DEPTH]; pipe p : b needs b or b[DEPTH]");
        return false;
    }
    int depth = remaining == 1 ? buffer->dims[own] : 1;
    if ((buffer->array != 1 || buffer->depth != 1) &&
        (buffer->array != pipe->array || buffer->depth != depth)) {
        diag_error(sema->diag, ast->span, "shape-mismatch",
                   "two pipes see buffer '%s' as rings of different depth", buffer->name);
        return false;
    }
    buffer->array = pipe->array;
    buffer->depth = depth;
    return true;
}

static void declare_pipe(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_PIPE, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->pipe_count, ast->span, "pipes"))
        return;
    Symbol *buffer = scope_find(sema->schedule, ast->name2);
    if (!buffer || buffer->kind != SYM_BUFFER) {
        scope_unknown(sema, sema->schedule, ast->name2, ast->name2_span, "buffer");
        return;
    }
    if (!buffer->buffer)
        return;
    Pipe *pipe = arena_new_of(sema->arena, Pipe);
    pipe->name = ast->name;
    pipe->span = ast->span;
    pipe->buffer = buffer->buffer;
    pipe->in_place = ast->op == PIPE_IN_PLACE;
    pipe->multicast = ast->op == PIPE_MULTICAST && sema->plan->cluster > 1;
    if (ast->op == PIPE_MULTICAST && !sema->plan->cluster_span.end) {
        DiagItem *item = diag_error(sema->diag, ast->span, "bad-multicast",
                                    "'%s' is multicast, but the schedule has no cluster", pipe->name);
        diag_help(item, "say how many CTAs work on a tile together: cluster c in 2;");
    }
    pipe->full_barrier = pipe->empty_barrier = -1;
    pipe->from = role_named(sema, ast->name3, ast->name3_span);
    for (const Ast *to = ast->list2; to; to = to->next) {
        if (pipe->to_count == 4) {
            diag_error(sema->diag, to->span, "too-many", "a pipe has at most 4 takers");
            return;
        }
        Role *role = role_named(sema, to->name, to->span);
        if (!role)
            return;
        pipe->to[pipe->to_count++] = role;
    }
    if (!pipe->from || !match_ring(sema, ast, pipe))
        return;
    symbol->pipe = pipe;
    sema->plan->pipes[sema->plan->pipe_count++] = pipe;
}

static void declare_turn(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_TURN, ast->name, ast->name_span);
    if (!symbol || !declare_grows(sema, sema->plan->turn_count, ast->span, "turns"))
        return;
    Turn *turn = arena_new_of(sema->arena, Turn);
    turn->name = ast->name;
    turn->span = ast->span;
    turn->role = role_named(sema, ast->name2, ast->span);
    if (!turn->role)
        return;
    symbol->turn = turn;
    sema->plan->turns[sema->plan->turn_count++] = turn;
}

// name in blocks(axis, size)
static bool blocks_of(Sema *sema, const Ast *bind, int *axis, int64_t *size) {
    const Ast *call = bind->a;
    if (call->kind != AST_CALL || call->a->kind != AST_NAME || strcmp(call->a->name, "blocks") ||
        !call->list || !call->list->next || call->list->next->next || call->list->kind != AST_NAME) {
        diag_error(sema->diag, call->span, "bad-grid", "expected blocks(axis, size)");
        return false;
    }
    Symbol *symbol = scope_find(sema->schedule, call->list->name);
    if (!symbol || symbol->kind != SYM_AXIS) {
        scope_unknown(sema, sema->schedule, call->list->name, call->list->span, "axis");
        return false;
    }
    *axis = symbol->index;
    return sema_constant_int(sema, sema->schedule, call->list->next, "the size of a block", 1, 65536, size);
}

// What the grid is over are members of its tiles, beside seq, len_<axis> and the walks.
static bool grid_name_is_free(Sema *sema, const Ast *list, const Ast *bind) {
    const Ast *other = list;
    while (other != bind && strcmp(other->name, bind->name))
        other = other->next;
    bool is_given = !strcmp(bind->name, "seq");
    if (!strncmp(bind->name, "len_", 4))
        for (int i = 0; i < sema->plan->axis_count; i++)
            is_given |= !strcmp(sema->plan->axes[i].name, bind->name + 4);
    if (other == bind && !is_given)
        return true;
    DiagItem *item =
        diag_error(sema->diag, bind->span, "duplicate-name", "a tile has a '%s' already", bind->name);
    if (other != bind)
        diag_note(item, other->span, "declared here");
    else
        diag_help(item, "every tile has seq and len_<axis>; choose another name");
    return false;
}

// Enough that a role which moves tiles ahead of the others isn't held up.
enum { QUEUE_DEPTH = 4 };

// "persistent via queue": who says which item a CTA works on next.
static const Ast *read_via(Sema *sema, const Ast *via) {
    const Ast *how = via->next;
    if (how && !strcmp(how->name, "queue"))
        sema->plan->queue_depth = QUEUE_DEPTH;
    else if (!how || strcmp(how->name, "static") != 0)
        diag_error(
            sema->diag, how ? how->span : via->span, "bad-grid",
            "work comes 'via static', dealt out when a launch is planned, or 'via queue', asked for by CTAs "
            "that are done");
    if (sema->plan->queue_depth && sema->plan->cluster > 1) {
        DiagItem *item =
            diag_error(sema->diag, how->span, "bad-grid",
                       "CTAs of a cluster can't ask for work one by one: they work on the same tile");
        diag_note(item, sema->plan->cluster_span, "clusters of %d", sema->plan->cluster);
        diag_help(item, "say 'via static', or make a cluster of one");
    }
    return how ? how : via;
}

static void read_modifiers(Sema *sema, const Ast *modifiers) {
    Plan *plan = sema->plan;
    for (const Ast *modifier = modifiers; modifier; modifier = modifier->next) {
        bool is_via = !strcmp(modifier->name, "via") && plan->persistent;
        bool *is = !strcmp(modifier->name, "heaviest_first") ? &plan->heaviest_first
                   : !strcmp(modifier->name, "persistent")   ? &plan->persistent
                                                             : NULL;
        if (is_via)
            modifier = read_via(sema, modifier);
        else if (!is)
            diag_error(sema->diag, modifier->span, "unknown-name",
                       "a grid is 'heaviest_first' or 'persistent', also 'persistent via queue', not '%s'",
                       modifier->name);
        else if (*is)
            diag_error(sema->diag, modifier->span, "bad-grid", "'%s' is said already", modifier->name);
        else
            *is = true;
    }
}

static void declare_grid(Sema *sema, const Ast *ast) {
    Plan *plan = sema->plan;
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_TILES, ast->name, ast->name_span);
    if (!symbol)
        return;
    if (sema->tiles) {
        DiagItem *item = diag_error(sema->diag, ast->span, "duplicate-name", "a schedule has one grid");
        diag_note(item, sema->tiles->span, "the first is here");
        return;
    }
    sema->tiles = symbol;
    for (const Ast *bind = ast->list; bind; bind = bind->next) {
        Symbol *dim = bind->a->kind == AST_NAME ? scope_find(sema->schedule, bind->a->name) : NULL;
        if (!grid_name_is_free(sema, ast->list, bind))
            continue;
        if (dim && dim->kind == SYM_DIM) {
            for (int i = 0; i < plan->factor_count; i++)
                if (plan->factors[i].dim == dim->index)
                    diag_error(sema->diag, bind->span, "bad-grid", "the grid is over dim '%s' twice",
                               bind->a->name);
            if (!declare_grows(sema, plan->factor_count, bind->span, "factors"))
                return;
            plan->factors[plan->factor_count].name = bind->name;
            plan->factors[plan->factor_count++].dim = dim->index;
            continue;
        }
        if (plan->tile_axis_count == MAX_TILE_AXES) {
            diag_error(sema->diag, bind->span, "too-many", "a grid has at most %d blocked axes",
                       MAX_TILE_AXES);
            return;
        }
        TileAxis *tile = &plan->tile_axes[plan->tile_axis_count];
        if (!blocks_of(sema, bind, &tile->axis, &tile->size))
            continue;
        for (int i = 0; i < plan->tile_axis_count; i++)
            if (plan->tile_axes[i].axis == tile->axis)
                diag_error(sema->diag, bind->span, "bad-grid", "the grid is over axis '%s' twice",
                           plan->axes[tile->axis].name);
        tile->name = bind->name;
        plan->tile_axis_count++;
        plan_field(plan, FIELD_START, tile->axis, 0);
        plan_field(plan, FIELD_LEN, tile->axis, 0);
    }
    read_modifiers(sema, ast->list2);
}

int walk_number(const Sema *sema, const Walk *walk) {
    for (int i = 0; i < sema->plan->walk_count; i++)
        if (sema->plan->walks[i] == walk)
            return i;
    return -1;
}

static void declare_walk(Sema *sema, const Ast *ast) {
    Symbol *symbol = scope_add(sema, sema->schedule, SYM_WALK, ast->name, ast->name_span);
    if (!symbol)
        return;
    if (sema->plan->walk_count == 16) {
        diag_error(sema->diag, ast->span, "too-many", "more than 16 walks");
        return;
    }
    Walk *walk = arena_new_of(sema->arena, Walk);
    walk->name = ast->name;
    walk->span = ast->span;
    walk->block_name = ast->list->name;
    static const char *const TAKEN[] = {"index", "first", "last", "full"};
    for (size_t i = 0; i < sizeof TAKEN / sizeof TAKEN[0]; i++)
        if (!strcmp(walk->block_name, TAKEN[i]))
            diag_error(sema->diag, ast->list->span, "duplicate-name",
                       "every block has a '%s' already; choose another name", TAKEN[i]);
    if (!blocks_of(sema, ast->list, &walk->axis, &walk->size)) {
        sema->lost_walk = true;
        return;
    }
    plan_field(sema->plan, FIELD_LEN, walk->axis, 0);
    for (const Ast *modifier = ast->list2; modifier; modifier = modifier->next) {
        if (!strcmp(modifier->name, "last_first"))
            walk->last_first = true;
        else
            diag_error(sema->diag, modifier->span, "unknown-name", "a walk is 'last_first', not '%s'",
                       modifier->name);
    }
    symbol->walk = walk;
    sema->walk_where[sema->plan->walk_count] = ast->a;
    sema->plan->walks[sema->plan->walk_count++] = walk;
    static const Type POSITION = {ELEM_I32, 1, 1};
    Expr *positions[2];
    Local **locals[2] = {&walk->row_position, &walk->col_position};
    for (int i = 0; i < 2; i++) {
        Local *local = *locals[i] = arena_new_of(sema->arena, Local);
        local->name = i ? walk->block_name : sema->plan->tile_axis_count ? sema->plan->tile_axes[0].name : "";
        local->number = -1;
        local->type = POSITION;
        positions[i] = expr_new(sema, X_LOCAL, POSITION, ast->span);
        positions[i]->local = local;
    }
    walk->where = sema_walk_predicate(sema, walk, positions[0], positions[1], ast->span);
}

static void declare_occupancy(Sema *sema, const Ast *ast) {
    Plan *plan = sema->plan;
    if (plan->occupancy_span.end) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "bad-occupancy", "the schedule states its occupancy already");
        diag_note(item, plan->occupancy_span, "here");
        return;
    }
    plan->occupancy_span = ast->span;
    int64_t count;
    if (sema_constant_int(sema, sema->schedule, ast->a, "the number of CTAs that an SM runs at a time", 1, 16,
                          &count))
        plan->occupancy = (int)count;
}

void declare_schedule(Sema *sema) {
    const Ast *list = sema->parts->schedule->list;
    for (const Ast *item = list; item; item = item->next)
        switch (item->kind) {
        case AST_CONST:
            declare_const(sema, sema->schedule, item, true);
            break;
        case AST_FUNCTION:
            declare_function(sema, sema->schedule, item);
            break;
        case AST_BUFFER:
            declare_buffer(sema, item);
            break;
        case AST_ROLE:
            declare_role(sema, item);
            break;
        case AST_CLUSTER:
            cluster_declare(sema, item);
            break;
        case AST_OCCUPANCY:
            declare_occupancy(sema, item);
            break;
        case AST_PIPE:
        case AST_GRID:
        case AST_WALK:
        case AST_TURN:
            break;
        default:
            declare_misplaced(sema, item, "schedule");
            break;
        }
    for (const Ast *item = list; item; item = item->next)
        if (item->kind == AST_PIPE)
            declare_pipe(sema, item);
        else if (item->kind == AST_GRID)
            declare_grid(sema, item);
        else if (item->kind == AST_TURN)
            declare_turn(sema, item);
    for (const Ast *item = list; item; item = item->next)
        if (item->kind == AST_WALK)
            declare_walk(sema, item);
    if (!sema->tiles) {
        DiagItem *item = diag_error(sema->diag, sema->parts->schedule->name_span, "bad-grid",
                                    "schedule '%s' has no grid", sema->parts->schedule->name);
        diag_help(item, "say what a tile is: grid tiles over (i in blocks(AXIS, SIZE));");
    }
}

// ---------------------------------------------------------------- rounds

void declare_rounds(Sema *sema) {
    Plan *plan = sema->plan;
    for (int i = 0; i < plan->pipe_count; i++) {
        Pipe *round[MAX_ITEMS] = {plan->pipes[i]};
        int count = 0;
        for (int k = 0; k < plan->pipe_count; k++)
            if (buffer_root(plan->pipes[k]->buffer) == buffer_root(plan->pipes[i]->buffer))
                round[count++] = plan->pipes[k];
        if (round[0] != plan->pipes[i])
            continue;
        for (int k = 0; k < count; k++) {
            Pipe *before = round[(k + count - 1) % count];
            round[k]->first_in_round = k == 0;
            if (round[k]->hands_over && (k == 0 || round[k]->before != before)) {
                DiagItem *item =
                    diag_error(sema->diag, round[k]->span, "round-order",
                               "'%s' takes over the bytes of '%s', but isn't declared right after it",
                               round[k]->name, round[k]->before->name);
                diag_note(item, round[k]->before->span, "'%s' is declared here", round[k]->before->name);
                diag_help(item, "declare pipes over shared bytes in the order in which the bytes go round");
            }
            round[k]->before = before;
            if (round[k]->array != round[0]->array || round[k]->buffer->depth != round[0]->buffer->depth)
                diag_error(sema->diag, round[k]->span, "shape-mismatch",
                           "pipes over shared bytes must have the same extents: '%s' and '%s'",
                           round[0]->name, round[k]->name);
        }
    }
}
