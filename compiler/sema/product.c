// product.c: products a @ b: operands, shapes, where they may stand.
#include "compiler/sema/internal.h"

#include <string.h>

typedef struct {
    Slot *slot;
    bool transposed;
    int rows, cols; // after transposing
} Operand;

static bool read_operand(Sema *sema, Scope *scope, const Ast *ast, Operand *operand) {
    operand->transposed = ast->kind == AST_TRANSPOSE;
    const Ast *inner = operand->transposed ? ast->a : ast;
    if (inner->kind != AST_NAME && inner->kind != AST_INDEX) {
        DiagItem *item = diag_error(sema->diag, ast->span, "product-place",
                                    "an operand of a product must be a slot, or a slot^T");
        diag_help(item,
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

Stmt *product_read(Sema *sema, Scope *scope, Slot *into, const Ast *value, const Ast *fresh, bool accumulates,
                   Span span) {
    Operand a, b;
    if (!read_operand(sema, scope, value->a, &a) | !read_operand(sema, scope, value->b, &b))
        return NULL;
    const Buffer *result = into->pipe->buffer;
    Product product = {.a = a.slot,
                       .b = b.slot,
                       .a_transposed = a.transposed,
                       .b_transposed = b.transposed,
                       .m = a.rows,
                       .n = b.cols,
                       .k = a.cols};
    if (a.cols != b.rows) {
        diag_error(sema->diag, value->span, "shape-mismatch", "[%d, %d] @ [%d, %d]: the inner extents differ",
                   a.rows, a.cols, b.rows, b.cols);
        return NULL;
    }
    if (a.slot->pipe->buffer->elem != b.slot->pipe->buffer->elem) {
        diag_error(sema->diag, value->span, "type-mismatch",
                   "a product needs operands of one type, not %s and %s",
                   elem_name(a.slot->pipe->buffer->elem), elem_name(b.slot->pipe->buffer->elem));
        return NULL;
    }
    if (result->space != SPACE_TMEM || result->elem != ELEM_F32 || result->rows != product.m ||
        result->cols != product.n) {
        DiagItem *item =
            diag_error(sema->diag, span, "shape-mismatch",
                       "the product is f32[%d, %d] in tensor memory; buffer '%s' is %s[%d, %d] in %s memory",
                       product.m, product.n, result->name, elem_name(result->elem), result->rows,
                       result->cols, result->space == SPACE_TMEM ? "tensor" : "shared");
        diag_note(item, result->span, "declared here");
        return NULL;
    }
    if (b.slot->pipe->buffer->space == SPACE_TMEM ||
        (a.transposed && a.slot->pipe->buffer->space == SPACE_TMEM)) {
        diag_error(sema->diag, value->span, "product-place",
                   b.slot->pipe->buffer->space == SPACE_TMEM
                       ? "the right operand of a product must be in shared memory"
                       : "an operand in tensor memory can't be transposed");
        return NULL;
    }
    if (!shape_supported(sema, &product, value->span))
        return NULL;
    slot_set_engine(sema, &into->pipe->filled_by, ENGINE_PRODUCT, into->pipe, span, "filled");
    sema->role->issues_products = true;
    Stmt *stmt = stmt_make(sema, ST_PRODUCT, span);
    stmt->slot = into;
    stmt->product = product;
    stmt->fresh = accumulates ? NULL : expr_bool(sema, true, span);
    if (fresh) {
        stmt->fresh = expr_cast(sema, sema_expr(sema, scope, fresh), ELEM_BOOL, fresh->span);
        if (!stmt->fresh)
            return NULL;
        if (!type_is_uniform(stmt->fresh->type)) {
            diag_error(sema->diag, fresh->span, "not-uniform",
                       "'fresh if' needs one condition for the whole tile");
            return NULL;
        }
    }
    return stmt;
}
