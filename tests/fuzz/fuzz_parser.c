// Bytes that nobody wrote: the parser, both printers and the reference of what could be read must come back
// without a fault of memory and in time, and must say something exactly when there is an error.
#include "compiler/reference/reference.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DECLARED = 16, EXTENT = 3 };

static const int64_t LENGTHS[] = {2, 0}, BASES[] = {0, 2};

typedef struct {
    ReferenceDim dims[MOST_DECLARED];
    ReferenceAxis axes[MOST_DECLARED];
    ReferenceTensor tensors[MOST_DECLARED];
    ReferenceProblem problem;
} Made;

static void declare_tensor(Made *made, const Ast *ast, const void *data) {
    if (made->problem.tensor_count == MOST_DECLARED)
        return;
    ReferenceTensor *tensor = &made->tensors[made->problem.tensor_count];
    *tensor =
        (ReferenceTensor){.name = ast->name, .data = ast->op == TENSOR_OUT ? NULL : data, .is_double = true};
    for (const Ast *dim = ast->a->list; dim && tensor->rank < REFERENCE_MAX_DIMS; dim = dim->next) {
        tensor->extent[tensor->rank] = EXTENT;
        tensor->base[tensor->rank++] = BASES;
    }
    made->problem.tensor_count += tensor->rank > 0;
}

static void declare_all(Made *made, const Ast *list, const void *data) {
    for (; list; list = list->next) {
        if (list->kind == AST_DIM && made->problem.dim_count < MOST_DECLARED)
            made->dims[made->problem.dim_count++] = (ReferenceDim){list->name, EXTENT};
        if (list->kind == AST_AXIS && made->problem.axis_count < MOST_DECLARED)
            made->axes[made->problem.axis_count++] = (ReferenceAxis){list->name, LENGTHS};
        if (list->kind == AST_TENSOR)
            declare_tensor(made, list, data);
    }
}

// Loops over constants may be long; they are not the reference's fault.
static bool has_large_number(const char *text, size_t length) {
    int digits = 0;
    for (size_t i = 0; i < length; i++) {
        digits = (text[i] >= '0' && text[i] <= '9') || text[i] == 'x' ? digits + 1 : 0;
        if (digits > 2)
            return true;
    }
    return false;
}

static void evaluate(Arena *arena, Diag *diag, const Ast *family, const Ast *kernel) {
    static const double ZEROS[EXTENT * EXTENT * EXTENT * EXTENT * EXTENT];
    Made made = {.problem = {.family = family, .kernel = kernel, .sequences = 2}};
    declare_all(&made, family->list, ZEROS);
    if (kernel)
        declare_all(&made, kernel->list, ZEROS);
    made.problem.dims = made.dims;
    made.problem.axes = made.axes;
    made.problem.tensors = made.tensors;
    ReferenceResults results;
    int errors = diag->error_count;
    bool is_good = reference_evaluate(arena, diag, &made.problem, REFERENCE_ROUNDED, &results);
    if (is_good != (diag->error_count == errors))
        abort();
    reference_results_free(&results);
}

static void print_all(const Ast *items, const Diag *diag) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    ast_print(items, out);
    diag_print_text(diag, out);
    diag_print_json(diag, out);
    fclose(out);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *arena = arena_new();
    if (!arena)
        return 0;
    SourceSet sources = {.arena = arena};
    Diag diag;
    diag_init(&diag, arena, &sources);
    const Ast *items = parse_file(arena, &diag, source_add(&sources, "fuzz.jfa", (const char *)data, size));
    const Ast *family = NULL, *kernel = NULL;
    for (const Ast *item = items; item; item = item->next) {
        family = item->kind == AST_FAMILY ? item : family;
        kernel = item->kind == AST_KERNEL ? item : kernel;
    }
    if (family && !diag.error_count && !has_large_number((const char *)data, size))
        evaluate(arena, &diag, family, kernel);
    print_all(items, &diag);
    arena_free(arena);
    return 0;
}
