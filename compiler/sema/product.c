// product.c: products a @ b: operands, shapes, where they may stand.
#include "compiler/sema/internal.h"

#include <string.h>

typedef struct {
    Slot *slot;
    Local *local; // a tile in registers, when there is no slot
    Elem elem;    // ELEM_COUNT: that of the other operand
    bool transposed;
    int rows, cols; // after transposing
} Operand;

bool product_is(const Ast *ast) {
    return ast->kind == AST_BINARY && ast->op == '@';
}

// The tile of values that a name stands for, or NULL.
static Local *local_named(Scope *scope, const Ast *ast) {
    Symbol *symbol = ast->kind == AST_NAME ? scope_find(scope, ast->name) : NULL;
    return symbol && symbol->kind == SYM_VALUE && symbol->expr && symbol->expr->kind == X_LOCAL
               ? symbol->expr->local
               : NULL;
}

static bool read_registers(Sema *sema, const Ast *ast, Operand *operand) {
    const Local *local = operand->local;
    if (!sema->plan->target->products_in_registers) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place",
                                    "an operand of a product must be a slot, or a slot^T");
        diag_help(item,
                  "products read tiles in shared or tensor memory; put a computed tile into a pipe first");
        return false;
    }
    if (operand->transposed) {
        DiagItem *item =
            diag_error(sema->diag, ast->span, "product-place", "a tile in registers can't be transposed");
        diag_help(item, "put it into a pipe first");
        return false;
    }
    operand->elem = elem_bytes(local->stored) == 2 ? local->stored : ELEM_COUNT;
    operand->rows = local->type.rows;
    operand->cols = local->type.cols;
    if (local->type.elem == ELEM_F32 && local->type.rows > 1 && local->type.cols > 1)
        return true;
    diag_error(sema->diag, ast->span, "shape-mismatch", "'%s' can't be an operand: it is %s, not a tile",
               local->name, type_text(sema, local->type));
    return false;
}

static bool read_operand(Sema *sema, Scope *scope, const Ast *ast, Operand *operand) {
    operand->transposed = ast->kind == AST_TRANSPOSE;
    const Ast *inner = operand->transposed ? ast->a : ast;
    operand->local = local_named(scope, inner);
    if (operand->local)
        return read_registers(sema, ast, operand);
    if (inner->kind != AST_NAME && inner->kind != AST_INDEX) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place",
                                    "an operand of a product must be a slot, or a slot^T");
        if (sema->plan->target->products_in_registers)
            diag_help(item, "the left one may also be a computed tile with a name: let p = ...; p @ b");
        else
            diag_help(
                item,
                "products read tiles in shared or tensor memory; put a computed tile into a pipe first");
        return false;
    }
    operand->slot = sema_slot(sema, scope, inner);
    if (!operand->slot)
        return false;
    const Buffer *buffer = operand->slot->pipe->buffer;
    if (operand->slot->filling || buffer->rank != 2) {
        diag_error(sema->diag, ast->span, "shape-mismatch", "slot '%s' can't be an operand: %s",
                   operand->slot->name, operand->slot->filling ? "it is being filled" : "it is a vector");
        return false;
    }
    if (elem_bytes(buffer->elem) != 2) {
        diag_error(sema->diag, ast->span, "product-type", "the tensor core multiplies bf16 or f16, not %s",
                   elem_name(buffer->elem));
        return false;
    }
    operand->elem = buffer->elem;
    operand->rows = operand->transposed ? buffer->cols : buffer->rows;
    operand->cols = operand->transposed ? buffer->rows : buffer->cols;
    slot_use(sema, operand->slot, ENGINE_PRODUCT, ast->span);
    return true;
}

// Which shapes the tensor core has, in words.
static bool shape_supported(Sema *sema, const Product *product, Span span) {
    const Target *target = sema->plan->target;
    bool m_fits = false;
    const char *rows = "";
    for (int i = 0; i < target->product_m_count; i++) {
        m_fits |= product->m == target->product_m[i];
        rows = arena_format(sema->arena, "%s%s%d", rows, i ? " or " : "", target->product_m[i]);
    }
    bool n_fits =
        product->n % target->product_n_step == 0 && product->n > 0 && product->n <= target->product_n_max;
    if (m_fits && n_fits && product->k % target->product_k == 0)
        return true;
    DiagItem *item =
        diag_error(sema->diag, span, "product-shape", "%s has no product of [%d, %d] by [%d, %d]",
                   target->name, product->m, product->k, product->k, product->n);
    diag_help(item, "supported: %s rows; columns a multiple of %d up to %d; inner extent a multiple of %d",
              rows, target->product_n_step, target->product_n_max, target->product_k);
    return false;
}

static bool operands_fit(Sema *sema, const Operand *a, const Operand *b, const Ast *value) {
    if (a->cols != b->rows) {
        DiagItem *item =
            diag_error(sema->diag, value->span, "shape-mismatch",
                       "[%d, %d] @ [%d, %d]: the inner extents differ", a->rows, a->cols, b->rows, b->cols);
        if (a->cols == b->cols && b->slot)
            diag_help(item, "transpose the right operand: %s",
                      b->transposed ? "without ^T" : arena_format(sema->arena, "%s^T", b->slot->name));
        else if (a->rows == b->rows && a->slot)
            diag_help(item, "transpose the left operand: %s",
                      a->transposed ? "without ^T" : arena_format(sema->arena, "%s^T", a->slot->name));
        else
            diag_help(item, "a @ b needs as many columns of a as b has rows");
        return false;
    }
    if (a->elem != ELEM_COUNT && a->elem != b->elem) {
        diag_error(sema->diag, value->span, "type-mismatch",
                   "a product needs operands of one type, not %s and %s", elem_name(a->elem),
                   elem_name(b->elem));
        return false;
    }
    if (b->local) {
        DiagItem *item = diag_error(sema->diag, value->b->span, "product-place",
                                    "the right operand of a product must be in shared memory");
        diag_help(item, "only the left one may be a tile in registers");
        return false;
    }
    bool a_in_tmem = a->slot && a->slot->pipe->buffer->space == SPACE_TMEM;
    bool b_in_tmem = b->slot->pipe->buffer->space == SPACE_TMEM;
    if (!b_in_tmem && !(a->transposed && a_in_tmem))
        return true;
    diag_error(sema->diag, value->span, "product-place",
               b_in_tmem ? "the right operand of a product must be in shared memory"
                         : "an operand in tensor memory can't be transposed");
    return false;
}

// Where a target leaves its products: in registers (into: NULL), or in tensor memory.
static bool result_fits(Sema *sema, const Slot *into, const Product *product, Span span) {
    const Target *target = sema->plan->target;
    if (target->products_in_registers == !into) {
        if (!into)
            return true;
        const Buffer *result = into->pipe->buffer;
        if (result->space == SPACE_TMEM && result->elem == ELEM_F32 && result->rows == product->m &&
            result->cols == product->n)
            return true;
        DiagItem *item =
            diag_error(sema->diag, span, "shape-mismatch",
                       "the product is f32[%d, %d] in tensor memory; buffer '%s' is %s[%d, %d] in %s memory",
                       product->m, product->n, result->name, elem_name(result->elem), result->rows,
                       result->cols, result->space == SPACE_TMEM ? "tensor" : "shared");
        diag_note(item, result->span, "declared here");
        diag_help(item, "declare it: tmem %s ... : f32[%d, %d]", result->name, product->m, product->n);
        return false;
    }
    DiagItem *item =
        diag_error(sema->diag, span, "product-place", "%s leaves products in %s", target->name,
                   into ? "registers, not in a pipe's slots" : "tensor memory, not in registers");
    if (into)
        diag_help(item, "give it a name: let x = a @ b; or add it to a variable: acc += a @ b;");
    else
        diag_help(item, "put it into a pipe over a tmem buffer: put pipe = a @ b;");
    return false;
}

static bool read_fresh(Sema *sema, Scope *scope, const Ast *fresh, Stmt *stmt) {
    if (!fresh)
        return true;
    stmt->fresh = expr_cast(sema, sema_expr(sema, scope, fresh), ELEM_BOOL, fresh->span);
    if (!stmt->fresh || type_is_uniform(stmt->fresh->type))
        return stmt->fresh != NULL;
    diag_error(sema->diag, fresh->span, "not-uniform", "'fresh if' needs one condition for the whole tile");
    return false;
}

Stmt *product_read(Sema *sema, Scope *scope, Slot *into, const Ast *value, const Ast *fresh, bool accumulates,
                   Span span) {
    Operand a = {0}, b = {0};
    if (!read_operand(sema, scope, value->a, &a) | !read_operand(sema, scope, value->b, &b) ||
        !slot_in_tiles(sema, span) || !operands_fit(sema, &a, &b, value))
        return NULL;
    Product product = {.a = a.slot,
                       .a_local = a.slot ? NULL : a.local,
                       .b = b.slot,
                       .a_transposed = a.transposed,
                       .b_transposed = b.transposed,
                       .m = a.rows,
                       .n = b.cols,
                       .k = a.cols};
    if (!result_fits(sema, into, &product, span) || !shape_supported(sema, &product, value->span))
        return NULL;
    if (into)
        slot_set_engine(sema, &into->pipe->filled_by, ENGINE_PRODUCT, into->pipe, span, "filled");
    else if (!stmt_check_tile(sema, product.m, product.n, span))
        return NULL;
    sema->role->uses_values |= !into;
    sema->role->issues_products = true;
    Stmt *stmt = stmt_make(sema, ST_PRODUCT, span);
    stmt->slot = into;
    stmt->product = product;
    stmt->fresh = accumulates ? NULL : expr_bool(sema, true, span);
    return read_fresh(sema, scope, fresh, stmt) ? stmt : NULL;
}
