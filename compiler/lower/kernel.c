// kernel.c: the kernel's function: parameters, prologue (barriers, tensor memory), the branch to each role,
// epilogue.
#include "compiler/lower/internal.h"

#include "grammar/ast.h"

#include <string.h>

// ---------------------------------------------------------------- parameters

static void add_arg(const Plan *plan, KernelArgs *args, ArgKind kind, int index, int dim, int bytes,
                    int align) {
    for (int i = 0; i < args->count; i++)
        if (args->args[i].kind == kind && args->args[i].index == index && args->args[i].dim == dim)
            return;
    if (args->count % 16 == 0) {
        KernelArg *more = arena_array(plan->arena, KernelArg, args->count + 16);
        if (args->count)
            memcpy(more, args->args, sizeof *more * (size_t)args->count);
        args->args = more;
    }
    int offset = (args->bytes + align - 1) / align * align;
    args->args[args->count++] = (KernelArg){kind, index, dim, offset, bytes};
    args->bytes = offset + bytes;
}

// Where a tensor's elements lie, and which positions there are.
static void pointer_args(const Plan *plan, KernelArgs *args, int tensor) {
    add_arg(plan, args, ARG_POINTER, tensor, 0, 8, 8);
    for (int i = 0; i < plan->tensors[tensor].rank; i++) {
        const TensorDim *dim = &plan->tensors[tensor].dims[i];
        add_arg(plan, args, ARG_STRIDE, tensor, i, 8, 8);
        if (dim->kind == DIM_RUNTIME)
            add_arg(plan, args, ARG_DIM, dim->index, 0, 4, 4);
    }
}

static void expr_args(Plan *plan, KernelArgs *args, Expr *expr) {
    if (!expr || expr->mark == plan->marks)
        return;
    expr->mark = plan->marks;
    if (expr->kind == X_GATHER)
        pointer_args(plan, args, expr->index);
    if (expr->kind == X_DIM)
        add_arg(plan, args, ARG_DIM, expr->index, 0, 4, 4);
    if (expr->kind == X_PARAM)
        add_arg(plan, args, ARG_PARAM, expr->index, 0, 4, 4);
    expr_args(plan, args, expr->a);
    expr_args(plan, args, expr->b);
    expr_args(plan, args, expr->c);
    for (int i = 0; i < expr->arg_count; i++)
        expr_args(plan, args, expr->args[i]);
}

static void stmt_args(Plan *plan, KernelArgs *args, const Stmt *stmt) {
    for (; stmt; stmt = stmt->next) {
        expr_args(plan, args, stmt->value);
        expr_args(plan, args, stmt->fresh);
        for (int i = 0; i < MAX_TENSOR_DIMS; i++)
            expr_args(plan, args, stmt->tensor.at[i]);
        if (stmt->kind == ST_STORE_VALUE)
            pointer_args(plan, args, stmt->tensor.tensor);
        // Whether it was left out.
        if (stmt->kind == ST_STORE_TILE && plan->tensors[stmt->tensor.tensor].is_optional)
            add_arg(plan, args, ARG_POINTER, stmt->tensor.tensor, 0, 8, 8);
        stmt_args(plan, args, stmt->body);
        stmt_args(plan, args, stmt->other);
    }
}

KernelArgs lower_arguments(Plan *plan, const Watchdog *watchdog) {
    KernelArgs args = {0};
    plan->marks++;
    for (int i = 0; i < plan->map_count; i++)
        add_arg(plan, &args, ARG_MAP, i, 0, 128, 64); // CUtensorMap: 128 bytes, 64-byte aligned
    add_arg(plan, &args, ARG_RECORDS, 0, 0, 8, 8);
    for (int i = 0; i < plan->role_count; i++)
        stmt_args(plan, &args, plan->roles[i]->body);
    for (int i = 0; i < plan->walk_count; i++)
        expr_args(plan, &args, plan->walks[i]->where);
    for (int i = 0; i < plan->factor_count; i++)
        add_arg(plan, &args, ARG_DIM, plan->factors[i].dim, 0, 4, 4);
    add_arg(plan, &args, ARG_ITEMS, 0, 0, 4, 4);
    if (plan->queue_depth)
        add_arg(plan, &args, ARG_QUEUE, 0, 0, 8, 8);
    if (watchdog->ms)
        add_arg(plan, &args, ARG_WATCHDOG, 0, 0, 8, 8);
    return args;
}

const char *lower_entry_name(const Plan *plan) {
    return plan->kernel_name;
}

static LLVMTypeRef arg_type(Lower *l, const KernelArg *arg) {
    switch (arg->kind) {
    case ARG_MAP:
        return LLVMPointerTypeInContext(l->context, 0);
    case ARG_POINTER:
    case ARG_RECORDS:
        return l->global_pointer;
    case ARG_STRIDE:
    case ARG_QUEUE:
    case ARG_WATCHDOG: // an address that only inline assembly uses
        return l->i64;
    case ARG_PARAM:
        return l->plan->params[arg->index].elem == ELEM_F32 ? l->f32 : l->i32;
    default:
        return l->i32;
    }
}

static void add_attribute(Lower *l, LLVMAttributeIndex index, const char *name, const char *value) {
    LLVMAddAttributeAtIndex(
        l->function, index,
        LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

// A tensor map lies in the parameter block itself: by value, 64-byte aligned, not to be copied (grid
// constant).
static void map_attributes(Lower *l, int number) {
    LLVMAttributeIndex index = (LLVMAttributeIndex)(number + 1);
    LLVMTypeRef bytes = LLVMArrayType2(l->i8, 128);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5),
             align = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAddAttributeAtIndex(l->function, index, LLVMCreateTypeAttribute(l->context, byval, bytes));
    LLVMAddAttributeAtIndex(l->function, index, LLVMCreateEnumAttribute(l->context, align, 64));
    add_attribute(l, index, "nvvm.grid_constant", "");
}

static void make_function(Lower *l) {
    enum { PTX_KERNEL_CALLING_CONVENTION = 71 };
    int count = l->args->count;
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, count);
    for (int i = 0; i < count; i++)
        types[i] = arg_type(l, &l->args->args[i]);
    l->function = LLVMAddFunction(l->module, lower_entry_name(l->plan),
                                  LLVMFunctionType(l->void_type, types, (unsigned)count, false));
    LLVMSetFunctionCallConv(l->function, PTX_KERNEL_CALLING_CONVENTION);
    l->arg_values = arena_array(l->arena, Value, count);
    for (int i = 0; i < count; i++) {
        l->arg_values[i] = LLVMGetParam(l->function, (unsigned)i);
        if (l->args->args[i].kind == ARG_MAP)
            map_attributes(l, i);
    }
    // ptxas needs both to honour setmaxnreg (PTX ISA, "Performance-Tuning Directives").
    add_attribute(l, LLVMAttributeFunctionIndex, "nvvm.reqntid",
                  arena_format(l->arena, "%d", 32 * l->plan->warps));
    add_attribute(l, LLVMAttributeFunctionIndex, "nvvm.minctasm",
                  arena_format(l->arena, "%d", l->plan->occupancy));
    add_attribute(l, LLVMAttributeFunctionIndex, "denormal-fp-math-f32", "preserve-sign,preserve-sign");
    unsigned no_unwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(l->function, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(l->context, no_unwind, 0));
}

// ---------------------------------------------------------------- prologue

static void shared_memory(Lower *l) {
    Value memory = LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(l->i8, 0), SHARED_SYMBOL, 3);
    LLVMSetAlignment(memory, 1024); // the period of the 128-byte swizzle
    LLVMSetLinkage(memory, LLVMExternalLinkage);
    Value wide = LLVMBuildPtrToInt(l->builder, memory, l->i64, "");
    l->shared_base = LLVMBuildTrunc(l->builder, wide, l->i32, "shared");
}

static void thread_numbers(Lower *l) {
    l->thread = ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.tid.x", NULL, 0, NULL, 0);
    // The shuffle tells ptxas that the warp's number is uniform.
    Value raw = ir_shr(l, l->thread, 5);
    l->warp = ir_intrinsic(l, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0,
                           IR_ARGS(ir_int(l, -1), raw, ir_int(l, 0), ir_int(l, 31)));
    l->lane = ir_and(l, l->thread, ir_int(l, 31));
    Value cta = ir_intrinsic(l, "llvm.nvvm.read.ptx.sreg.ctaid.x", NULL, 0, NULL, 0);
    l->cta = ir_and(l, cta, ir_int(l, l->plan->cluster - 1)); // a power of two; clusters lie along x
}

static void init_ring(Lower *l, int64_t offset, int barriers, int count) {
    for (int i = 0; offset >= 0 && i < barriers; i++)
        ptx_barrier_init(l, ir_add(l, l->shared_base, ir_int(l, offset + 8 * i)), count);
}

static void init_barriers(Lower *l) {
    LLVMBasicBlockRef init = ir_block(l, "init"), done = ir_block(l, "initialised");
    ir_branch(l, ir_equal(l, l->thread, ir_int(l, 0)), init, done);
    ir_at(l, init);
    for (int i = 0; i < l->plan->pipe_count; i++) {
        const Pipe *pipe = l->plan->pipes[i];
        int barriers = pipe->array * pipe->buffer->depth;
        init_ring(l, pipe->full_barrier, barriers, pipe->full_count);
        init_ring(l, pipe->empty_barrier, barriers, pipe->empty_count);
    }
    init_ring(l, l->plan->queue_full, l->plan->queue_depth, 1);
    init_ring(l, l->plan->queue_empty, l->plan->queue_depth, l->plan->queue_empty_count);
    ptx_fence_barrier_init(l);
    ir_jump(l, done);
    ir_at(l, done);
}

static void prologue(Lower *l) {
    shared_memory(l);
    thread_numbers(l);
    init_barriers(l);
    l->engines->begin(l);
    ptx_sync_warp(l);
    if (l->plan->tmem_allocation)
        l->engines->before_arrive(l);
    ptx_sync_cta(l);
    if (l->plan->cluster > 1) // others arrive at this CTA's barriers
        ptx_sync_cluster(l);
    if (l->plan->tmem_allocation) {
        l->engines->after_wait(l);
        ptx_load_shared(l, ir_add(l, l->shared_base, ir_int(l, l->plan->tmem_pointer_offset)), 0, &l->tmem,
                        1);
    }
}

// ---------------------------------------------------------------- roles

static bool stores_tiles(const Stmt *stmt) {
    for (; stmt; stmt = stmt->next)
        if (stmt->kind == ST_STORE_TILE || stores_tiles(stmt->body) || stores_tiles(stmt->other))
            return true;
    return false;
}

// The last replica ends the turn before the first one.
static void start_turns(Lower *l, const Role *role) {
    for (int i = 0; i < l->plan->turn_count; i++) {
        const Turn *turn = l->plan->turns[i];
        if (turn->role != role || role->replicas == 1)
            continue;
        LLVMBasicBlockRef last = ir_block(l, "last_replica"), done = ir_block(l, "turns_started");
        ir_branch(l, ir_equal(l, l->replica, ir_int(l, role->replicas - 1)), last, done);
        ir_at(l, last);
        ptx_named_barrier(l, ir_int(l, turn->barrier), 2 * 32 * role->warps, false);
        ir_jump(l, done);
        ir_at(l, done);
    }
}

static void lower_role(Lower *l, const Role *role) {
    l->role = role;
    l->ring_count = 0;
    l->fields = arena_array(l->arena, Value, l->plan->field_count + 1);
    l->factors = arena_array(l->arena, Value, l->plan->factor_count + 1);
    l->slots = arena_array(l->arena, SlotState, role->slot_count + 1);
    l->blocks = arena_array(l->arena, BlockState, role->block_count + 1);
    l->locals = arena_array(l->arena, LocalState, role->local_count + 1);
    row_sums_find(l, role);
    Value within = ir_sub(l, l->warp, ir_int(l, role->first_warp));
    l->replica = role->replicas == 1 ? ir_int(l, 0) : ir_udiv(l, within, ir_int(l, role->warps));
    l->warp_of_role = role->replicas == 1 ? within : ir_urem(l, within, ir_int(l, role->warps));
    layout_begin_role(l);
    LLVMBasicBlockRef done = NULL;
    if (!role->uses_values) {
        LLVMBasicBlockRef chosen = ir_block(l, role->name);
        done = ir_block(l, "rejoin");
        ir_branch(l, ptx_elect(l), chosen, done);
        ir_at(l, chosen);
    }
    l->flight_count = 0;
    start_turns(l, role);
    walk_statements(l, role->body);
    flight_settle_all(l);
    slot_drain(l);
    if (stores_tiles(role->body))
        ptx_store_wait(l, false);
    if (done) {
        ir_jump(l, done);
        ir_at(l, done);
    }
}

static void set_registers(Lower *l, int regs) {
    if (regs && regs != l->plan->launch_regs)
        ptx_set_registers(l, regs, regs > l->plan->launch_regs);
}

static int role_warps(const Role *role) {
    return role->warps * role->replicas;
}

// Roles within the warpgroup that starts at `first`, which share one register budget.
static void lower_group(Lower *l, int first, LLVMBasicBlockRef end) {
    const Plan *plan = l->plan;
    int regs = 0;
    for (int i = 0; i < plan->role_count; i++)
        if (plan->roles[i]->first_warp / 4 == first / 4)
            regs = plan->roles[i]->final_regs;
    set_registers(l, regs);
    for (int i = 0; i < plan->role_count; i++) {
        const Role *role = plan->roles[i];
        if (role->first_warp / 4 != first / 4)
            continue;
        LLVMBasicBlockRef own = ir_block(l, role->name), next = ir_block(l, "next_role");
        Value within = ir_sub(l, l->warp, ir_int(l, role->first_warp));
        ir_branch(l, LLVMBuildICmp(l->builder, LLVMIntULT, within, ir_int(l, role_warps(role)), ""), own,
                  next);
        ir_at(l, own);
        lower_role(l, role);
        ir_jump(l, end);
        ir_at(l, next);
    }
    if (plan->queue_depth && plan->queue_warp / 4 == first / 4) {
        LLVMBasicBlockRef own = ir_block(l, "queue_warp");
        ir_branch(l, ir_equal(l, l->warp, ir_int(l, plan->queue_warp)), own, end);
        ir_at(l, own);
        queue_serve(l);
    }
    ir_jump(l, end);
}

// Warpgroups in order; a role of several warpgroups is one branch for all of them.
static void dispatch(Lower *l, LLVMBasicBlockRef end) {
    const Plan *plan = l->plan;
    for (int first = 0; first < plan->warps;) {
        int warps = 4;
        for (int i = 0; i < plan->role_count; i++)
            if (plan->roles[i]->first_warp == first && role_warps(plan->roles[i]) > warps)
                warps = (role_warps(plan->roles[i]) + 3) / 4 * 4;
        LLVMBasicBlockRef group = ir_block(l, "warpgroup"), next = ir_block(l, "next_warpgroup");
        Value last = ir_int(l, first + warps);
        ir_branch(l, LLVMBuildICmp(l->builder, LLVMIntULT, l->warp, last, ""), group, next);
        ir_at(l, group);
        lower_group(l, first, end);
        ir_at(l, next);
        first += warps;
    }
    ir_jump(l, end);
}

// ---------------------------------------------------------------- source lines

static void start_debug(Lower *l) {
    if (!l->sources)
        return;
    enum { DIRECTIVES_ONLY = 3 }; // .loc without DWARF sections
    l->debug = LLVMCreateDIBuilder(l->module);
    l->debug_files = arena_array(l->arena, LLVMMetadataRef, l->sources->count);
    for (int i = 0; i < l->sources->count; i++) {
        const char *path = l->sources->files[i].path;
        l->debug_files[i] = LLVMDIBuilderCreateFile(l->debug, path, strlen(path), ".", 1);
    }
    LLVMDIBuilderCreateCompileUnit(l->debug, LLVMDWARFSourceLanguageC99, l->debug_files[0], "jfac", 4, true,
                                   "", 0, 0, "", 0, (LLVMDWARFEmissionKind)DIRECTIVES_ONLY, 0, false, false,
                                   "", 0, "", 0);
    LLVMMetadataRef type =
        LLVMDIBuilderCreateSubroutineType(l->debug, l->debug_files[0], NULL, 0, LLVMDIFlagZero);
    const char *name = lower_entry_name(l->plan);
    Place place = source_place(l->sources, l->plan->kernel_span.file, l->plan->kernel_span.start);
    l->debug_scope = LLVMDIBuilderCreateFunction(l->debug, l->debug_files[0], name, strlen(name), name,
                                                 strlen(name), l->debug_files[0], (unsigned)place.line, type,
                                                 false, true, (unsigned)place.line, LLVMDIFlagZero, true);
    LLVMSetSubprogram(l->function, l->debug_scope);
    Value version = ir_int(l, 3);
    LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                      LLVMValueAsMetadata(version));
}

// ---------------------------------------------------------------- the whole

static void init_types(Lower *l) {
    l->i1 = LLVMInt1TypeInContext(l->context);
    l->i8 = LLVMInt8TypeInContext(l->context);
    l->i16 = LLVMInt16TypeInContext(l->context);
    l->i32 = LLVMInt32TypeInContext(l->context);
    l->i64 = LLVMInt64TypeInContext(l->context);
    l->f32 = LLVMFloatTypeInContext(l->context);
    l->void_type = LLVMVoidTypeInContext(l->context);
    l->shared_pointer = LLVMPointerTypeInContext(l->context, 3);
    l->global_pointer = LLVMPointerTypeInContext(l->context, 1);
}

LLVMModuleRef lower_kernel(const Plan *plan, const KernelArgs *args, const SourceSet *sources,
                           Watchdog *watchdog, LLVMContextRef context) {
    Lower *l = arena_new_of(plan->arena, Lower);
    l->plan = plan;
    l->args = args;
    l->sources = sources;
    l->watchdog = watchdog;
    l->arena = plan->arena;
    l->context = context;
    l->engines = plan->target->products_in_registers ? &SM90_ENGINES : &SM100_ENGINES;
    l->module = LLVMModuleCreateWithNameInContext(plan->kernel_name, context);
    LLVMSetTarget(l->module, "nvptx64-nvidia-cuda");
    init_types(l);
    make_function(l);
    l->builder = LLVMCreateBuilderInContext(context);
    l->entry_builder = LLVMCreateBuilderInContext(context);
    LLVMBasicBlockRef entry = ir_block(l, "entry"), start = ir_block(l, "start"), end = ir_block(l, "end");
    LLVMPositionBuilderAtEnd(l->entry_builder, entry);
    LLVMPositionBuilderBefore(l->entry_builder, LLVMBuildBr(l->entry_builder, start));
    ir_at(l, start);
    start_debug(l);
    walk_place(l, plan->kernel_span);
    prologue(l);
    dispatch(l, end);
    ir_at(l, end);
    walk_place(l, plan->kernel_span);
    ptx_sync_warp(l);
    if (plan->tmem_allocation)
        l->engines->before_arrive(l);
    ptx_sync_cta(l);
    if (plan->cluster > 1) // others may still write into this CTA's shared memory
        ptx_sync_cluster(l);
    l->engines->end(l);
    LLVMBuildRetVoid(l->builder);
    if (l->debug) {
        LLVMDIBuilderFinalize(l->debug);
        LLVMDisposeDIBuilder(l->debug);
    }
    LLVMDisposeBuilder(l->builder);
    LLVMDisposeBuilder(l->entry_builder);
    if (l->out_of_rings) {
        LLVMDisposeModule(l->module);
        return NULL;
    }
    return l->module;
}

void lower_add_manifest(LLVMModuleRef module, const char *text, size_t length) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    Value bytes = LLVMConstStringInContext2(context, text, length, true);
    Value global = LLVMAddGlobalInAddressSpace(module, LLVMTypeOf(bytes), "jfa_manifest", 1);
    LLVMSetInitializer(global, bytes);
    LLVMSetGlobalConstant(global, false);
    LLVMSetLinkage(global, LLVMExternalLinkage);
    LLVMSetAlignment(global, 1);
}
