// decode.c: operands, constants and the search for an instruction's operation.
#include "simulator/machine/decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool has(const Decoder *d, const char *wanted) {
    for (int i = 1; i < d->in->part_count; i++)
        if (!strcmp(d->in->parts[i], wanted))
            return true;
    return false;
}

const char *part(const Decoder *d, int i) {
    return i < d->in->part_count ? d->in->parts[i] : "";
}

int type_of(const char *text) {
    static const char *const NAMES[PTX_TYPE_COUNT] = {
        [PTX_PRED] = "pred",   [PTX_B8] = "b8",   [PTX_B16] = "b16", [PTX_B32] = "b32", [PTX_B64] = "b64",
        [PTX_B128] = "b128",   [PTX_U8] = "u8",   [PTX_U16] = "u16", [PTX_U32] = "u32", [PTX_U64] = "u64",
        [PTX_S8] = "s8",       [PTX_S16] = "s16", [PTX_S32] = "s32", [PTX_S64] = "s64", [PTX_F16] = "f16",
        [PTX_F16X2] = "f16x2", [PTX_F32] = "f32", [PTX_F64] = "f64",
    };
    for (int i = 0; i < PTX_TYPE_COUNT; i++)
        if (NAMES[i] && !strcmp(NAMES[i], text))
            return i;
    return TYPE_NONE;
}

int last_type(const Decoder *d) {
    for (int i = d->in->part_count - 1; i > 0; i--) {
        int type = type_of(d->in->parts[i]);
        if (type != TYPE_NONE)
            return type;
    }
    return TYPE_NONE;
}

bool only(const Decoder *d, const char *const *allowed) {
    for (int i = 1; i < d->in->part_count; i++) {
        bool known = type_of(d->in->parts[i]) != TYPE_NONE;
        for (const char *const *name = allowed; *name && !known; name++)
            known = !strcmp(*name, d->in->parts[i]);
        if (!known)
            return false;
    }
    return true;
}

bool fail(Decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(d->message, 200, format, args);
    va_end(args);
    return false;
}

// ---------------------------------------------------------------- special registers

static int special_number(const char *name) {
    static const struct {
        const char *name;
        int number;
    } SPECIALS[] = {
        {"%tid.x", SPECIAL_TID_X},
        {"%tid.y", SPECIAL_TID_Y},
        {"%tid.z", SPECIAL_TID_Z},
        {"%ntid.x", SPECIAL_NTID_X},
        {"%ntid.y", SPECIAL_NTID_Y},
        {"%ntid.z", SPECIAL_NTID_Z},
        {"%ctaid.x", SPECIAL_CTAID_X},
        {"%ctaid.y", SPECIAL_CTAID_Y},
        {"%ctaid.z", SPECIAL_CTAID_Z},
        {"%nctaid.x", SPECIAL_NCTAID_X},
        {"%nctaid.y", SPECIAL_NCTAID_Y},
        {"%nctaid.z", SPECIAL_NCTAID_Z},
        {"%laneid", SPECIAL_LANEID},
        {"%warpid", SPECIAL_WARPID},
        {"%nwarpid", SPECIAL_NWARPID},
        {"%smid", SPECIAL_SMID},
        {"%nsmid", SPECIAL_NSMID},
        {"%cluster_ctarank", SPECIAL_CLUSTER_RANK},
        {"%cluster_nctarank", SPECIAL_CLUSTER_SIZE},
        {"%clusterid.x", SPECIAL_CLUSTERID_X},
        {"%clusterid.y", SPECIAL_CLUSTERID_Y},
        {"%clusterid.z", SPECIAL_CLUSTERID_Z},
        {"%nclusterid.x", SPECIAL_NCLUSTERID_X},
        {"%nclusterid.y", SPECIAL_NCLUSTERID_Y},
        {"%nclusterid.z", SPECIAL_NCLUSTERID_Z},
        {"%cluster_ctaid.x", SPECIAL_CLUSTER_CTAID_X},
        {"%cluster_ctaid.y", SPECIAL_CLUSTER_CTAID_Y},
        {"%cluster_ctaid.z", SPECIAL_CLUSTER_CTAID_Z},
        {"%cluster_nctaid.x", SPECIAL_CLUSTER_NCTAID_X},
        {"%cluster_nctaid.y", SPECIAL_CLUSTER_NCTAID_Y},
        {"%cluster_nctaid.z", SPECIAL_CLUSTER_NCTAID_Z},
        {"%lanemask_eq", SPECIAL_LANEMASK_EQ},
        {"%lanemask_le", SPECIAL_LANEMASK_LE},
        {"%lanemask_lt", SPECIAL_LANEMASK_LT},
        {"%lanemask_ge", SPECIAL_LANEMASK_GE},
        {"%lanemask_gt", SPECIAL_LANEMASK_GT},
        {"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED},
        {"%is_explicit_cluster", SPECIAL_EXPLICIT_CLUSTER},
        {"%clock", SPECIAL_CLOCK},
        {"%clock64", SPECIAL_CLOCK},
        {"%globaltimer", SPECIAL_CLOCK},
        {"%globaltimer_lo", SPECIAL_CLOCK},
    };
    for (size_t i = 0; i < sizeof SPECIALS / sizeof SPECIALS[0]; i++)
        if (!strcmp(SPECIALS[i].name, name))
            return SPECIALS[i].number;
    return SPECIAL_NONE;
}

static uint64_t special_value(const Warp *warp, int special, uint64_t value, int lane) {
    const Cta *cta = warp->cta;
    const Launch *launch = cta->cluster->launch;
    uint32_t thread = (uint32_t)(warp->number * LANES + lane);
    const uint32_t *block = launch->block, *grid = launch->grid, *size = launch->cluster;
    uint32_t rank = (uint32_t)cta->rank;
    uint32_t in_cluster[3] = {rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
    if (special >= SPECIAL_TID_X && special <= SPECIAL_TID_Z) {
        uint32_t id[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
        return id[special - SPECIAL_TID_X];
    }
    if (special >= SPECIAL_NTID_X && special <= SPECIAL_NTID_Z)
        return block[special - SPECIAL_NTID_X];
    if (special >= SPECIAL_CTAID_X && special <= SPECIAL_CTAID_Z)
        return cta->id[special - SPECIAL_CTAID_X];
    if (special >= SPECIAL_NCTAID_X && special <= SPECIAL_NCTAID_Z)
        return grid[special - SPECIAL_NCTAID_X];
    if (special >= SPECIAL_CLUSTERID_X && special <= SPECIAL_CLUSTERID_Z)
        return cta->id[special - SPECIAL_CLUSTERID_X] / size[special - SPECIAL_CLUSTERID_X];
    if (special >= SPECIAL_NCLUSTERID_X && special <= SPECIAL_NCLUSTERID_Z)
        return grid[special - SPECIAL_NCLUSTERID_X] / size[special - SPECIAL_NCLUSTERID_X];
    if (special >= SPECIAL_CLUSTER_CTAID_X && special <= SPECIAL_CLUSTER_CTAID_Z)
        return in_cluster[special - SPECIAL_CLUSTER_CTAID_X];
    if (special >= SPECIAL_CLUSTER_NCTAID_X && special <= SPECIAL_CLUSTER_NCTAID_Z)
        return size[special - SPECIAL_CLUSTER_NCTAID_X];
    switch (special) {
    case SPECIAL_LANEID:
        return (uint64_t)lane;
    case SPECIAL_WARPID:
        return (uint64_t)warp->number;
    case SPECIAL_NWARPID:
        return (uint64_t)cta->warp_count;
    case SPECIAL_SMID:
        return (uint64_t)cta->sm;
    case SPECIAL_NSMID:
        return (uint64_t)launch->sim->sm_count;
    case SPECIAL_CLUSTER_RANK:
        return rank;
    case SPECIAL_CLUSTER_SIZE:
        return (uint64_t)cta->cluster->cta_count;
    case SPECIAL_LANEMASK_EQ:
        return 1u << lane;
    case SPECIAL_LANEMASK_LE:
        return lane == 31 ? ALL_LANES : (1u << (lane + 1)) - 1;
    case SPECIAL_LANEMASK_LT:
        return (1u << lane) - 1;
    case SPECIAL_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case SPECIAL_LANEMASK_GT:
        return lane == 31 ? 0 : ~((1u << (lane + 1)) - 1);
    case SPECIAL_DYNAMIC_SHARED:
        return launch->dynamic_shared;
    case SPECIAL_EXPLICIT_CLUSTER:
        return cta->cluster->cta_count > 1 || launch->program->entry->cluster[0] > 0;
    case SPECIAL_CLOCK:
        return cta->cluster->now;
    case SPECIAL_SHARED_ADDRESS:
        return (rank << 24) + SHARED_BASE + value;
    case SPECIAL_EXTERN_SHARED:
        return (rank << 24) + SHARED_BASE + launch->static_shared + value;
    default:
        return value;
    }
}

void decode_init_registers(const Program *program, Warp *warp) {
    for (int i = 0; i < program->constant_count; i++) {
        const struct Constant *constant = &program->constants[i];
        Operand place = {constant->at, constant->bytes, 0};
        for (int lane = 0; lane < LANES; lane++) {
            lane_set(warp, &place, lane, special_value(warp, constant->special, constant->value, lane));
            if (constant->bytes == 16)
                reg64(warp, &place)[2 * lane + 1] = 0;
        }
    }
}

void decode_read_clock(const Program *program, Warp *warp) {
    for (int i = 0; i < program->constant_count; i++) {
        const struct Constant *constant = &program->constants[i];
        Operand place = {constant->at, constant->bytes, 0};
        for (int lane = 0; lane < LANES && constant->special == SPECIAL_CLOCK; lane++)
            lane_set(warp, &place, lane, warp->cta->cluster->now);
    }
}

// ---------------------------------------------------------------- operands

static int32_t constant_place(Decoder *d, int bytes, uint64_t value, int special) {
    Program *program = d->program;
    for (int i = 0; i < program->constant_count; i++)
        if (program->constants[i].bytes == bytes && program->constants[i].value == value &&
            program->constants[i].special == special)
            return program->constants[i].at;
    if (program->constant_count == program->constant_capacity) {
        int capacity = program->constant_capacity ? 2 * program->constant_capacity : 64;
        void *more = realloc(program->constants, sizeof *program->constants * (size_t)capacity);
        if (!more) {
            fail(d, "out of memory");
            return -2;
        }
        program->constants = more;
        program->constant_capacity = capacity;
    }
    int32_t at = (int32_t)program->register_bytes;
    program->register_bytes += bytes ? (size_t)bytes * LANES : 8;
    program->constants[program->constant_count++] = (struct Constant){at, bytes, value, special};
    return at;
}

static bool add_operand(Decoder *d, Operand operand) {
    Program *program = d->program;
    if (program->operand_count == program->operand_capacity) { // sized for the whole entry beforehand
        return fail(d, "too many operands");
    }
    program->operand_pool[program->operand_count++] = operand;
    return operand.at != -2;
}

static Operand register_place(Decoder *d, int number) {
    return d->program->register_places[number];
}

static bool symbol_operand(Decoder *d, const PtxOperand *in, Operand *out) {
    const PtxSymbol *symbol = &d->module->ptx->symbols[in->symbol];
    switch (symbol->space) {
    case PTX_SPACE_SHARED:
        out->at =
            constant_place(d, out->bytes, (uint64_t)((symbol->is_extern ? 0 : symbol->offset) + in->offset),
                           symbol->is_extern ? SPECIAL_EXTERN_SHARED : SPECIAL_SHARED_ADDRESS);
        return true;
    case PTX_SPACE_PARAM:
    case PTX_SPACE_LOCAL:
        out->at = constant_place(d, out->bytes, (uint64_t)(symbol->offset + in->offset), SPECIAL_NONE);
        return true;
    default:
        out->at = constant_place(d, out->bytes, d->module->global_symbols[in->symbol] + (uint64_t)in->offset,
                                 SPECIAL_NONE);
        return true;
    }
}

static bool flatten(Decoder *d, const PtxOperand *in, int bytes) {
    Operand out = {.at = -1, .bytes = bytes};
    switch (in->kind) {
    case PTX_REG:
        if (!add_operand(d, register_place(d, in->reg)))
            return false;
        return in->second < 0 || add_operand(d, register_place(d, in->second));
    case PTX_SINK:
        if (!add_operand(d, out))
            return false;
        return in->second < 0 || add_operand(d, register_place(d, in->second));
    case PTX_INT:
        out.at = constant_place(d, bytes, (uint64_t)in->integer, SPECIAL_NONE);
        return add_operand(d, out);
    case PTX_FLOAT: {
        uint64_t bits = (uint64_t)in->integer;
        if (in->is_double && bytes == 4) {
            double wide;
            memcpy(&wide, &bits, 8);
            float narrow = (float)wide;
            uint32_t word;
            memcpy(&word, &narrow, 4);
            bits = word;
        }
        out.at = constant_place(d, bytes, bits, SPECIAL_NONE);
        return add_operand(d, out);
    }
    case PTX_SYMBOL:
        return symbol_operand(d, in, &out) && add_operand(d, out);
    case PTX_SPECIAL: {
        int special = special_number(in->name);
        if (special == SPECIAL_NONE)
            return fail(d, "unknown special register %s", in->name);
        out.bytes = bytes == 8 ? 8 : 4;
        out.at = constant_place(d, out.bytes, 0, special);
        return add_operand(d, out);
    }
    case PTX_ADDRESS: {
        if (!flatten(d, &in->items[0], 8))
            return false;
        d->program->operand_pool[d->program->operand_count - 1].add = (int32_t)in->offset;
        return true;
    }
    case PTX_TENSOR:
        for (int i = 0; i < in->count; i++)
            if (!flatten(d, &in->items[i], i == 0 ? 8 : 4))
                return false;
        return true;
    case PTX_VECTOR: {
        int each = bytes >= 8 && in->count > 1 ? bytes / in->count : bytes;
        for (int i = 0; i < in->count; i++)
            if (!flatten(d, &in->items[i], each < 4 ? 4 : each))
                return false;
        return true;
    }
    default:
        return add_operand(d, out); // labels and names
    }
}

int operand_width(const PtxOperand *operand) {
    switch (operand->kind) {
    case PTX_REG:
    case PTX_SINK:
        return operand->second < 0 ? 1 : 2;
    case PTX_TENSOR:
    case PTX_VECTOR: {
        int width = 0;
        for (int i = 0; i < operand->count; i++)
            width += operand_width(&operand->items[i]);
        return width;
    }
    default:
        return 1;
    }
}

int operand_start(const Decoder *d, int i) {
    int start = 0;
    for (int k = 0; k < i; k++)
        start += operand_width(&d->in->operands[k]);
    return start;
}

bool take_operands(Decoder *d, Op *op, int type) {
    int bytes = type == TYPE_NONE ? 4 : type == PTX_PRED ? 0 : ptx_type_bytes((PtxType)type);
    if (bytes > 0 && bytes < 4)
        bytes = 4;
    op->operands = d->program->operand_pool + d->program->operand_count;
    int before = d->program->operand_count;
    for (int i = 0; i < d->in->operand_count; i++)
        if (!flatten(d, &d->in->operands[i], bytes))
            return false;
    op->operand_count = d->program->operand_count - before;
    return true;
}

// ---------------------------------------------------------------- instructions

// Operands without a place (_ and names) may only stand where an instruction gives results that it need not
// keep.
static bool places_are_good(Decoder *d, const Op *op) {
    static const char *const FIRST[] = {"mbarrier", "elect", "atom", "shfl", "setp", NULL},
                             *const LISTS[] = {"ld", "clusterlaunchcontrol", "mov", NULL};
    int free_to = 0;
    for (int i = 0; FIRST[i]; i++)
        free_to = !strcmp(FIRST[i], d->in->parts[0]) ? 1 : free_to;
    bool has_list = strcmp(d->in->parts[0], "mov") != 0 || d->in->operands[0].kind == PTX_VECTOR;
    for (int i = 0; LISTS[i] && has_list; i++)
        free_to = !strcmp(LISTS[i], d->in->parts[0]) ? op->operand_count - 1 : free_to;
    for (int i = 0; i < op->operand_count && !(op->flags & OP_BRANCH); i++)
        if (op->operands[i].at < 0 && (i >= free_to || op->operands[i].bytes == 16))
            return fail(d, "operand %d of %s must be a register or a number", i + 1, d->in->text);
    return true;
}

static void mark_clock(Decoder *d, Op *op) {
    for (int i = 0; i < d->in->operand_count; i++)
        if (d->in->operands[i].kind == PTX_SPECIAL &&
            special_number(d->in->operands[i].name) == SPECIAL_CLOCK) {
            op->flags |= OP_CLOCK;
            d->program->reads_clock = true;
        }
}

static bool decode_instruction(Decoder *d, Op *op) {
    static const OpEntry *const TABLES[] = {FLOAT_OPS, INTEGER_OPS,  COMPARE_OPS,   CONVERT_OPS, ACCESS_OPS,
                                            SYNC_OPS,  MBARRIER_OPS, WARP_OPS,      COPY_OPS,    TENSOR_OPS,
                                            WGMMA_OPS, MATRIX_OPS,   TENSORMAP_OPS, QUEUE_OPS,   CARRY_OPS};
    const PtxInstruction *in = d->in;
    op->source = in;
    op->line = in->line;
    op->loc_file = in->loc_file;
    op->loc_line = in->loc_line;
    op->predicate = in->predicate < 0 ? -1 : d->program->register_places[in->predicate].at;
    op->predicate_negated = in->predicate_negated;
    op->target = -1;
    d->message[0] = '\0';
    for (size_t t = 0; t < sizeof TABLES / sizeof TABLES[0]; t++)
        for (const OpEntry *entry = TABLES[t]; entry->root; entry++)
            if (!strcmp(entry->root, in->parts[0])) {
                if (entry->decode(d, op)) {
                    mark_clock(d, op);
                    return places_are_good(d, op);
                }
                if (d->message[0])
                    return false;
            }
    return fail(d, "unknown instruction %s", in->text);
}

static int count_operands(const PtxEntry *entry) {
    int count = 16;
    for (int i = 0; i < entry->instruction_count; i++)
        for (int k = 0; k < entry->instructions[i].operand_count; k++)
            count += operand_width(&entry->instructions[i].operands[k]) + 1;
    return count;
}

static bool place_registers(Program *program) {
    const PtxEntry *entry = program->entry;
    program->register_places = calloc((size_t)entry->register_count + 1, sizeof(Operand));
    if (!program->register_places)
        return false;
    for (int i = 0; i < entry->register_count; i++) {
        int bytes = entry->registers[i].type == PTX_PRED ? 0 : ptx_type_bytes(entry->registers[i].type);
        if (bytes > 0 && bytes < 4)
            bytes = 4;
        program->register_places[i] = (Operand){(int32_t)program->register_bytes, bytes, 0};
        program->register_bytes += bytes ? (size_t)bytes * LANES : 8;
    }
    return true;
}

bool decode_entry(Module *module, int number, Program *program, char message[256]) {
    const PtxEntry *entry = &module->ptx->entries[number];
    *program = (Program){.entry = entry, .module = module->ptx};
    program->ops = calloc((size_t)entry->instruction_count + 1, sizeof(Op));
    program->operand_capacity = count_operands(entry);
    program->operand_pool = calloc((size_t)program->operand_capacity, sizeof(Operand));
    if (!program->ops || !program->operand_pool || !place_registers(program)) {
        snprintf(message, 256, "out of memory");
        return false;
    }
    for (int i = 0; i < entry->instruction_count; i++) {
        char text[256] = "";
        Decoder d = {.module = module,
                     .program = program,
                     .in = &entry->instructions[i],
                     .entry = number,
                     .message = text};
        if (!decode_instruction(&d, &program->ops[i])) {
            snprintf(message, 256, "PTX line %d: %.200s", entry->instructions[i].line, text);
            return false;
        }
    }
    program->op_count = entry->instruction_count;
    if (!check_unset_registers(program)) {
        snprintf(message, 256, "out of memory");
        return false;
    }
    return true;
}

void decode_free(Program *program) {
    free(program->ops);
    free(program->operand_pool);
    free(program->register_places);
    free(program->constants);
    *program = (Program){0};
}
