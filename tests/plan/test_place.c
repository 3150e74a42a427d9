// Budgets, shapes and warps: what place decides, and what it says when something doesn't fit.
#include "compiler/plan/place.h"
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const MessageCase CASES[] = {
    {"what fits is placed without a message",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [4] : dtype[128, 128];\n"
     "smem v : f32[128];\n"
     "tmem s [2] : f32[128, 256];\n"
     "tmem p [2] : dtype[128, 256] over s;\n"
     "pipe x : a r -> w;\n"
     "pipe y : v w -> r;\n"
     "pipe z : s r -> w;\n"
     "pipe u : p w -> r;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     ""},
    {"too much shared memory is told with the largest users and a depth that fits",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem small : dtype[128, 64];\n"
     "smem ring [8] : dtype[128, 128];\n"
     "smem big : dtype[128, 128];\n"
     "pipe x : ring r -> w;\n"
     "pipe y : small r -> w;\n"
     "pipe z : big r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: schedule 's' needs 311456 bytes of shared memory, 79008 more than the 232448 of "
     "sm_100a\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:5:1: note: 'ring' takes 8 x 32768 = 262144 bytes\n"
     "     5 | smem ring [8] : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:6:1: note: 'big' takes 1 x 32768 = 32768 bytes\n"
     "     6 | smem big : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:4:1: note: 'small' takes 1 x 16384 = 16384 bytes\n"
     "     4 | smem small : dtype[128, 64];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: it fits when 'ring' has a depth of 5 instead of 8\n"},
    {"too much shared memory for which all rings must be shallower",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [4] : dtype[128, 128];\n"
     "smem b [4] : dtype[128, 128];\n"
     "smem c [4] : dtype[128, 128];\n"
     "pipe x : a r -> w;\n"
     "pipe y : b r -> w;\n"
     "pipe z : c r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: schedule 's' needs 393408 bytes of shared memory, 160960 more than the 232448 of "
     "sm_100a\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:4:1: note: 'a' takes 4 x 32768 = 131072 bytes\n"
     "     4 | smem a [4] : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:5:1: note: 'b' takes 4 x 32768 = 131072 bytes\n"
     "     5 | smem b [4] : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:6:1: note: 'c' takes 4 x 32768 = 131072 bytes\n"
     "     6 | smem c [4] : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: it fits with shallower rings: 'a' of 2 instead of 4, 'b' of 2 instead of 4, 'c' of 3 instead of "
     "4\n"},
    {"too much shared memory that no shallower ring would mend is told so",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : dtype[1024, 128];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: schedule 's' needs 262160 bytes of shared memory, 29712 more than the 232448 of "
     "sm_100a\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:4:1: note: 'a' takes 1 x 262144 = 262144 bytes\n"
     "     4 | smem a : dtype[1024, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: no shallower ring makes it fit: use smaller tiles, or let buffers that are not in use at the "
     "same time share bytes with 'over'\n"},
    {"too many columns of tensor memory are told with the largest users",
     "grid tiles over (i in blocks(m, 128));\n"
     "tmem s [4] : f32[128, 128];\n"
     "tmem t : f32[128, 64];\n"
     "pipe x : s r -> w;\n"
     "pipe y : t r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: schedule 's' needs 576 columns of tensor memory, 64 more than the 512 of sm_100a\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:4:1: note: 's' takes 4 x 128 = 512 columns\n"
     "     4 | tmem s [4] : f32[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:5:1: note: 't' takes 1 x 64 = 64 columns\n"
     "     5 | tmem t : f32[128, 64];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~\n"
     "help: use fewer or narrower tiles, or let buffers that are not in use at the same time share columns "
     "with 'over'\n"},
    {"a tile of tensor memory must have 128 rows",
     "grid tiles over (i in blocks(m, 128));\n"
     "tmem s : f32[64, 128];\n"
     "pipe x : s r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:4:1: error: 's' can't lie in tensor memory: f32[64, 128]\n"
     "     4 | tmem s : f32[64, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~\n"
     "help: tensor memory has 128 rows: the tile must have as many, not 64\n"},
    {"a column of tensor memory holds two elements of 16 bits",
     "grid tiles over (i in blocks(m, 128));\n"
     "tmem s : dtype[128, 33];\n"
     "pipe x : s r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:4:1: error: 's' can't lie in tensor memory: bf16[128, 33]\n"
     "     4 | tmem s : dtype[128, 33];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: a column of tensor memory has 4 bytes a row: use an even number of columns\n"},
    {"a shared row that no swizzle divides is refused with the next width",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : dtype[128, 72];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:4:1: error: 'a' can't lie in shared memory: a row of bf16[128, 72] has 144 bytes\n"
     "     4 | smem a : dtype[128, 72];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: rows of tiles in shared memory are a multiple of 32 bytes: 80 columns, for example\n"},
    {"a tile of several chunks must have a multiple of 8 rows",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : dtype[100, 128];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:4:1: error: 'a' can't lie in shared memory: bf16[100, 128] has 100 rows\n"
     "     4 | smem a : dtype[100, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: a tile wider than 128 bytes needs a multiple of 8 rows: 104, for example\n"},
    {"bytes can be shared only by equally many instances",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [2] : dtype[128, 128];\n"
     "smem b : dtype[128, 128] over a;\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:5:1: warning: buffer 'b' has no pipe\n"
     "     5 | smem b : dtype[128, 128] over a;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: roles reach a buffer through its pipes only: declare one, or leave the buffer out\n"
     "t.jfa:5:1: error: 'b' has 1 instances, but 'a' has 2\n"
     "     5 | smem b : dtype[128, 128] over a;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:4:1: note: 'a' is declared here\n"
     "     4 | smem a [2] : dtype[128, 128];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: buffers that share bytes do so one by one: give both the same extents\n"},
    {"a buffer without a pipe is a warning, and takes its bytes",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [3] : dtype[1024, 64];\n"
     "smem v : f32[128];\n"
     "pipe x : v r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: schedule 's' needs 393744 bytes of shared memory, 161296 more than the 232448 of "
     "sm_100a\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:4:1: note: 'a' takes 3 x 131072 = 393216 bytes\n"
     "     4 | smem a [3] : dtype[1024, 64];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:5:1: note: 'v' takes 1 x 512 = 512 bytes\n"
     "     5 | smem v : f32[128];\n"
     "       | ^~~~~~~~~~~~~~~~~~\n"
     "help: no shallower ring makes it fit: use smaller tiles, or let buffers that are not in use at the "
     "same time share bytes with 'over'\n"
     "t.jfa:4:1: warning: buffer 'a' has no pipe\n"
     "     4 | smem a [3] : dtype[1024, 64];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: roles reach a buffer through its pipes only: declare one, or leave the buffer out\n"},
    {"a buffer over another must fit into it",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : dtype[64, 64];\n"
     "smem b : f32[64, 64] over a;\n"
     "pipe x : a r -> w;\n"
     "pipe y : b w -> r;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:5:1: error: 'b' has 16384 bytes, but 'a' only 8192: f32[64, 64] over bf16[64, 64]\n"
     "     5 | smem b : f32[64, 64] over a;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:4:1: note: 'a' is declared here\n"
     "     4 | smem a : dtype[64, 64];\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: declare the larger one first, and the other over it\n"},
    {"registers are multiples of 8",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : f32[128];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp, 44 regs {}\n"
     "role w : 1 warp, 44 regs {}\n",
     "t.jfa:6:18: error: role 'r' can't have 44 registers a thread\n"
     "     6 | role r : 1 warp, 44 regs {}\n"
     "       |                  ^~\n"
     "help: registers are given out in multiples of 8 from 24 to 248: 48, for example\n"
     "t.jfa:7:18: error: role 'w' can't have 44 registers a thread\n"
     "     7 | role w : 1 warp, 44 regs {}\n"
     "       |                  ^~\n"
     "help: registers are given out in multiples of 8 from 24 to 248: 48, for example\n"},
    {"all roles say their registers or none does",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : f32[128];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp, 40 regs {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:7:6: error: role 'r' says its registers, but these don't: 'w'\n"
     "     7 | role w : 1 warp {}\n"
     "       |      ^\n"
     "t.jfa:6:18: note: stated here\n"
     "     6 | role r : 1 warp, 40 regs {}\n"
     "       |                  ^~\n"
     "help: registers are moved between roles, so all roles say theirs, or none does\n"},
    {"roles of one warpgroup must agree on registers",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : f32[128];\n"
     "pipe x : a r -> w;\n"
     "role r : 1 warp, 40 regs {}\n"
     "role w : 1 warp, 48 regs {}\n",
     "t.jfa:7:18: error: roles 'r' and 'w' share a warpgroup, but say 40 and 48 registers\n"
     "     7 | role w : 1 warp, 48 regs {}\n"
     "       |                  ^~\n"
     "t.jfa:6:18: note: 'r' says 40 here\n"
     "     6 | role r : 1 warp, 40 regs {}\n"
     "       |                  ^~\n"
     "help: 4 warps that stand together have the same registers: use 48 for both\n"},
    {"more registers than the CTA has are told by role",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : f32[128];\n"
     "smem b : f32[128];\n"
     "smem c : f32[128];\n"
     "pipe x : a p -> q;\n"
     "pipe y : b q -> p;\n"
     "role p : 4 warps, 248 regs { for t in tiles { put x = 1; take v = y; free v; } }\n"
     "role q : 4 warps, 248 regs { for t in tiles { take v = x; free v; put y = rows; } }\n"
     "role r : 1 warp, 48 regs {}\n",
     "t.jfa:2:10: error: the roles want 69632 registers, 5120 more than the 64512 that 384 threads have\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:9:19: note: 'p' has 4 warps with 248 registers a thread\n"
     "     9 | role p : 4 warps, 248 regs { for t in tiles { put x = 1; take v = y; free v; } }\n"
     "       |                   ^~~\n"
     "t.jfa:10:19: note: 'q' has 4 warps with 248 registers a thread\n"
     "    10 | role q : 4 warps, 248 regs { for t in tiles { take v = x; free v; put y = rows; } }\n"
     "       |                   ^~~\n"
     "t.jfa:11:18: note: 'r' has 1 warp with 48 registers a thread\n"
     "    11 | role r : 1 warp, 48 regs {}\n"
     "       |                  ^~\n"
     "help: summed once for each 4 warps, the roles' numbers may come to 504: here they come to 544, so "
     "state 40 fewer\n"
     "t.jfa:6:1: warning: buffer 'c' has no pipe\n"
     "     6 | smem c : f32[128];\n"
     "       | ^~~~~~~~~~~~~~~~~~\n"
     "help: roles reach a buffer through its pipes only: declare one, or leave the buffer out\n"},
    {"more warps than a CTA has are told by role",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [8] : f32[128];\n"
     "pipe x [8] : a p -> q;\n"
     "role p [g in 8] : 4 warps { for t in tiles { put x[g] = 1; } }\n"
     "role q : 1 warp {}\n",
     "t.jfa:2:10: error: the roles need 36 warps, 4 more than the 32 of a CTA\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:6:19: note: 'p' has 8 x 4 warps\n"
     "     6 | role p [g in 8] : 4 warps { for t in tiles { put x[g] = 1; } }\n"
     "       |                   ^\n"
     "t.jfa:7:10: note: 'q' has 1 x 1 warp\n"
     "     7 | role q : 1 warp {}\n"
     "       |          ^\n"
     "help: use fewer replicas or warps; roles of tensor memory or of 4 warps start at a multiple of 4\n"},
    {"more barriers than a kernel may have are counted",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a [64, 8] : f32[4];\n"
     "pipe x [64] : a r -> w;\n"
     "role r : 1 warp {}\n"
     "role w : 1 warp {}\n",
     "t.jfa:2:10: error: the pipes need 1024 barriers, 512 more than the 512 that a kernel may have\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"
     "t.jfa:5:1: note: 'x' has 512 slots with 2 barriers each\n"
     "     5 | pipe x [64] : a r -> w;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: a pipe has up to two barriers a slot: fewer or less deep pipes need fewer\n"},
    {"replicas that would fill the same slots are refused",
     "grid tiles over (i in blocks(m, 128));\n"
     "smem a : f32[128];\n"
     "pipe x : a p -> q;\n"
     "role p [g in 2] : 4 warps { for t in tiles { put x = 1; } }\n"
     "role q : 1 warp {}\n",
     "t.jfa:5:1: error: all 2 replicas of 'p' put into the same slots of 'x'\n"
     "     5 | pipe x : a p -> q;\n"
     "       | ^~~~~~~~~~~~~~~~~~\n"
     "t.jfa:6:6: note: the replicas are declared here\n"
     "     6 | role p [g in 2] : 4 warps { for t in tiles { put x = 1; } }\n"
     "       |      ^\n"
     "help: give each replica its own pipe: pipe x [2], put as x[g]\n"},
    {"a schedule without roles is refused", "grid tiles over (i in blocks(m, 128));\n",
     "t.jfa:2:10: error: schedule 's' has no role\n"
     "     2 | schedule s of f for sm_100 {\n"
     "       |          ^\n"},
};

static Buffer *buffer_named(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->buffer_count; i++)
        if (!strcmp(plan->buffers[i]->name, name))
            return plan->buffers[i];
    fail_msg("no buffer %s", name);
    return NULL;
}

static Pipe *pipe_named(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->pipe_count; i++)
        if (!strcmp(plan->pipes[i]->name, name))
            return plan->pipes[i];
    fail_msg("no pipe %s", name);
    return NULL;
}

static Role *role_named(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->role_count; i++)
        if (!strcmp(plan->roles[i]->name, name))
            return plan->roles[i];
    fail_msg("no role %s", name);
    return NULL;
}

static Program *placed(const char *path) {
    Program *program = program_open(path);
    assert_non_null(program->plan);
    assert_true(place_plan(program->plan, &program->diag));
    return program;
}

static bool over_same_bytes(const Buffer *a, const Buffer *b) {
    for (; a; a = a->over)
        for (const Buffer *c = b; c; c = c->over)
            if (a == c)
                return true;
    return false;
}

static int64_t end_of(const Buffer *buffer) {
    return buffer->offset + (int64_t)buffer->array * buffer->depth * buffer->stride;
}

static void buffers_that_are_not_over_each_other_never_overlap(void **state) {
    (void)state;
    Program *program = placed("examples/dense.jfa");
    const Plan *plan = program->plan;
    for (int i = 0; i < plan->buffer_count; i++)
        for (int k = 0; k < i; k++) {
            const Buffer *a = plan->buffers[i], *b = plan->buffers[k];
            if (a->space != b->space || over_same_bytes(a, b))
                continue;
            assert_true(end_of(a) <= b->offset || end_of(b) <= a->offset);
        }
    program_free(program);
}

static void swizzled_tiles_start_where_their_pattern_does(void **state) {
    (void)state;
    Program *program = placed("examples/dense.jfa");
    const Plan *plan = program->plan;
    int tiles = 0;
    for (int i = 0; i < plan->buffer_count; i++) {
        const Buffer *buffer = plan->buffers[i];
        if (!buffer->swizzle_bytes)
            continue;
        tiles++;
        assert_int_equal(buffer->offset % (8 * buffer->swizzle_bytes), 0);
        assert_int_equal(buffer->stride % (8 * buffer->swizzle_bytes), 0);
    }
    assert_true(tiles >= 3);
    program_free(program);
}

static void a_chain_of_over_shares_the_first_buffers_place(void **state) {
    (void)state;
    Program *program =
        program_of_schedule("grid tiles over (i in blocks(m, 128));\n"
                            "smem pad : dtype[128, 64];\nsmem a [2] : dtype[128, 128];\n"
                            "smem b [2] : f32[128, 32] over a;\nsmem c [2] : f32[128] over b;\n"
                            "pipe v : pad r -> w;\npipe x : a r -> w;\npipe y : b w -> r;\n"
                            "pipe z : c r -> w;\nrole r : 1 warp {}\nrole w : 1 warp {}\n");
    assert_non_null(program->plan);
    assert_true(place_plan(program->plan, &program->diag));
    const Buffer *a = buffer_named(program->plan, "a"), *c = buffer_named(program->plan, "c");
    assert_int_equal(a->offset, 16384);
    assert_int_equal(c->offset, a->offset);
    assert_int_equal(c->stride, a->stride);
    assert_int_equal(program->plan->barrier_offset, 16384 + 2 * 32768);
    program_free(program);
}

static void sixteen_bit_tiles_take_half_the_columns_of_tensor_memory(void **state) {
    (void)state;
    Program *program = placed("examples/dense.jfa");
    const Buffer *s = buffer_named(program->plan, "s"), *p = buffer_named(program->plan, "p");
    assert_int_equal(s->columns, 128);
    assert_int_equal(p->columns, 64);
    assert_int_equal(p->offset, s->offset);
    assert_int_equal(p->stride, s->stride);
    assert_int_equal(program->plan->tmem_columns, 512);
    assert_int_equal(program->plan->tmem_allocation, 512);
    program_free(program);
}

static void what_is_handed_on_or_ordered_by_the_tensor_core_has_no_empty_barrier(void **state) {
    (void)state;
    Program *program = placed("examples/dense.jfa");
    const Plan *plan = program->plan;
    assert_int_equal(pipe_named(plan, "scores")->empty_barrier, -1); // handed on to probs
    assert_int_equal(pipe_named(plan, "probs")->empty_barrier,
                     -1); // the product that overwrites it comes later
    assert_true(pipe_named(plan, "probs")->free_is_ordered);
    assert_false(pipe_named(plan, "scores")->free_is_ordered);
    assert_false(pipe_named(plan, "q_in")->free_is_ordered); // the threads overwrite it next
    assert_true(pipe_named(plan, "q_in")->empty_barrier > 0);
    program_free(program);
}

static void arrivals_follow_the_engine_that_completes(void **state) {
    static const struct {
        const char *pipe;
        int full, empty;
        int64_t bytes;
    } WANTED[] = {{"q_in", 1, 1, 32768}, {"kv_in", 1, 1, 32768}, {"scores", 1, 0, 0}, {"probs", 4, 0, 0},
                  {"decay", 4, 4, 0},    {"o", 1, 4, 0},         {"result", 4, 1, 0}};
    (void)state;
    Program *program = placed("examples/dense.jfa");
    for (size_t i = 0; i < sizeof WANTED / sizeof WANTED[0]; i++) {
        const Pipe *pipe = pipe_named(program->plan, WANTED[i].pipe);
        assert_int_equal(pipe->full_count, WANTED[i].full);
        assert_int_equal(pipe->empty_count, WANTED[i].empty);
        assert_int_equal(pipe->bytes, WANTED[i].bytes);
    }
    program_free(program);
}

static void barriers_lie_apart_behind_the_buffers(void **state) {
    (void)state;
    Program *program = placed("examples/dense.jfa");
    const Plan *plan = program->plan;
    int64_t next = plan->barrier_offset;
    for (int i = 0; i < plan->pipe_count; i++) {
        const Pipe *pipe = plan->pipes[i];
        int64_t bytes = (int64_t)pipe->array * pipe->buffer->depth * 8;
        assert_int_equal(pipe->full_barrier, next);
        next += bytes;
        if (pipe->empty_barrier < 0)
            continue;
        assert_int_equal(pipe->empty_barrier, next);
        next += bytes;
    }
    for (int i = 0; i < plan->buffer_count; i++)
        assert_true(plan->buffers[i]->space != 0 || end_of(plan->buffers[i]) <= plan->barrier_offset);
    assert_int_equal(plan->barrier_offset % 16, 0);
    assert_int_equal(next - plan->barrier_offset, 8 * plan->mbarriers);
    assert_true(plan->tmem_pointer_offset >= next && plan->tmem_pointer_offset + 16 == plan->shared_bytes);
    program_free(program);
}

static void all_replicas_of_a_taker_arrive_at_a_shared_pipe(void **state) {
    (void)state;
    Program *program = program_of_schedule(
        "grid tiles over (i in blocks(m, 128));\nsmem a : f32[128];\nsmem b [2] : f32[128];\npipe x : a p -> "
        "q;\n"
        "pipe y [2] : b p -> q;\nrole p : 4 warps { for t in tiles { put x = 1; put y[0] = 1; put y[1] = 2; "
        "} }\n"
        "role q [g in 2] : 4 warps { for t in tiles { take v = x; store C[t.i + rows, 0] = v; free v; take w "
        "= y[g]; free w; } }\n");
    assert_string_equal(program_messages(program), "");
    assert_true(place_plan(program->plan, &program->diag));
    assert_int_equal(pipe_named(program->plan, "x")->empty_count, 8);
    assert_int_equal(pipe_named(program->plan, "y")->empty_count, 4);
    program_free(program);
}

static void roles_of_few_warps_share_a_warpgroup_behind_the_others(void **state) {
    static const struct {
        const char *role;
        int first;
    } WANTED[] = {{"softmax", 0}, {"correct", 8}, {"mma", 12}, {"load", 13}, {"store", 14}};
    (void)state;
    Program *program = placed("examples/dense.jfa");
    for (size_t i = 0; i < sizeof WANTED / sizeof WANTED[0]; i++)
        assert_int_equal(role_named(program->plan, WANTED[i].role)->first_warp, WANTED[i].first);
    assert_int_equal(program->plan->warps, 16);
    assert_int_equal(program->plan->launch_regs, 128);
    assert_int_equal(role_named(program->plan, "correct")->final_regs,
                     role_named(program->plan, "correct")->regs);
    program_free(program);
}

static void no_small_role_lies_across_two_warpgroups(void **state) {
    (void)state;
    Program *program = program_of_schedule(
        "grid tiles over (i in blocks(m, 96));\nsmem a : f32[96];\npipe x : a p -> q;\n"
        "role p : 3 warps { for t in tiles { put x = 1; } }\n"
        "role q : 3 warps { for t in tiles { take v = x; store C[t.i + rows, 0] = v; free v; } }\n");
    assert_string_equal(program_messages(program), "");
    assert_true(place_plan(program->plan, &program->diag));
    assert_int_equal(role_named(program->plan, "p")->first_warp, 0);
    assert_int_equal(role_named(program->plan, "q")->first_warp, 4);
    assert_int_equal(program->plan->warps, 8);
    program_free(program);
}

static void roles_that_say_no_registers_keep_those_of_the_launch(void **state) {
    (void)state;
    Program *program = placed("examples/matmul.jfa");
    for (int i = 0; i < program->plan->role_count; i++)
        assert_int_equal(program->plan->roles[i]->final_regs, program->plan->launch_regs);
    program_free(program);
}

int main(void) {
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(buffers_that_are_not_over_each_other_never_overlap),
        cmocka_unit_test(swizzled_tiles_start_where_their_pattern_does),
        cmocka_unit_test(a_chain_of_over_shares_the_first_buffers_place),
        cmocka_unit_test(sixteen_bit_tiles_take_half_the_columns_of_tensor_memory),
        cmocka_unit_test(what_is_handed_on_or_ordered_by_the_tensor_core_has_no_empty_barrier),
        cmocka_unit_test(arrivals_follow_the_engine_that_completes),
        cmocka_unit_test(barriers_lie_apart_behind_the_buffers),
        cmocka_unit_test(all_replicas_of_a_taker_arrive_at_a_shared_pipe),
        cmocka_unit_test(roles_of_few_warps_share_a_warpgroup_behind_the_others),
        cmocka_unit_test(no_small_role_lies_across_two_warpgroups),
        cmocka_unit_test(roles_that_say_no_registers_keep_those_of_the_launch),
    };
    int failed = run_message_cases(CASES, sizeof CASES / sizeof CASES[0], place_plan);
    return failed + cmocka_run_group_tests(TESTS, NULL, NULL);
}
