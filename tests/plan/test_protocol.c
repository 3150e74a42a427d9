// Roles that work together and roles that don't: what is said, and under which trip.
#include "compiler/plan/protocol.h"
#include "tests/plan/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const MessageCase CASES[] = {
    {"a schedule whose roles come out even and never wait in a circle passes",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     ""},
    {"a ring that is too shallow is named with the depth that passes",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [1] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put a_in = A[t.i, "
     "s.p]; put b_in = B[t.j, s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take z = a_in; take y = b_in; d += x @ y^T fresh if s.first; "
     "free x; free y; free z; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:11:82: error: roles 'load' and 'mma' wait for each other with 1 tile of 1 block\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put a_in = "
     "A[t.i, s.p]; put b_in = B[t.j, s.p]; } } }\n"
     "       |                                                                                  "
     "^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:82: note: 'load' waits for a free slot of 'a_in' (depth 1), which 'mma' frees\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put a_in = "
     "A[t.i, s.p]; put b_in = B[t.j, s.p]; } } }\n"
     "       |                                                                                  "
     "^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:43: note: 'mma' waits for 'load' to put 'a_in'\n"
     "    16 |         for s in t.steps { take x = a_in; take z = a_in; take y = b_in; d += x @ y^T fresh if "
     "s.first; free x; free y; free z; }\n"
     "       |                                           ^~~~~~~~~~~~~~\n"
     "help: it passes when 'a' has a depth of 2 instead of 1\n"},
    {"takes in another order than the puts are told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [1] : dtype[128, 64];\n"
     "smem b [1] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } for s in t.steps { "
     "put b_in = B[t.j, s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take y = b_in; take x = a_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:11:58: error: roles 'load' and 'mma' wait for each other with 1 tile of 2 blocks\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } for s in "
     "t.steps { put b_in = B[t.j, s.p]; } } }\n"
     "       |                                                          ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:58: note: 'load' waits for a free slot of 'a_in' (depth 1), which 'mma' frees\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } for s in "
     "t.steps { put b_in = B[t.j, s.p]; } } }\n"
     "       |                                                          ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:28: note: 'mma' waits for 'load' to put 'b_in'\n"
     "    16 |         for s in t.steps { take y = b_in; take x = a_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                            ^~~~~~~~~~~~~~\n"
     "help: let 'mma' take and 'load' put 'a_in' and 'b_in' in the same order: here 'mma' takes 'b_in' next, "
     "but "
     "'load' puts 'a_in'\n"},
    {"a role that needs its own free to go on is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 128);\n"
     "smem a : dtype[128, 128];\n"
     "tmem s [1] : f32[128, 128];\n"
     "tmem p [1] : dtype[128, 128] over s;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe scores : s mma -> soft;\n"
     "pipe probs : p soft -> mma;\n"
     "pipe o : acc mma -> out in place;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    take x = a_in;\n"
     "    put scores = x @ x^T;\n"
     "    put scores = x @ x^T;\n"
     "    take y = probs;\n"
     "    put o += y @ x fresh if true;\n"
     "    free y;\n"
     "    take z = probs;\n"
     "    free z;\n"
     "    free x;\n"
     "  }\n"
     "}\n"
     "role soft : 4 warps { for t in tiles { take x = scores; put probs = x; take y = scores; put probs = y; "
     "} }\n"
     "role out : 4 warps { for t in tiles { take x = o; store C[t.i + rows, t.j + cols] = x; free x; } }\n",
     "t.jfa:18:5: error: role 'mma' waits for itself with 1 tile of 0 blocks\n"
     "    18 |     put scores = x @ x^T;\n"
     "       |     ^~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:18:5: note: 'mma' waits for the bytes that 'scores' shares with 'probs', which 'mma' frees\n"
     "    18 |     put scores = x @ x^T;\n"
     "       |     ^~~~~~~~~~~~~~~~~~~~~\n"
     "help: it passes when 's' has a depth of 2 instead of 1; or let 'mma' free 'probs' before it puts "
     "'scores'\n"},
    {"a put on one path only is told with the trip",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } for s in "
     "t.steps.rest { put b_in = B[t.j, s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:9:1: error: 'load' never puts 'b_in', but 'mma' takes it once, with 1 tile of 1 block\n"
     "     9 | pipe b_in : b load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:108: note: 'load' puts it here\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } for s in "
     "t.steps.rest { put b_in = B[t.j, s.p]; } } }\n"
     "       |                                                                                               "
     "             ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:43: note: and it is taken here\n"
     "    16 |         for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                                           ^~~~~~~~~~~~~~\n"
     "help: on every path, each slot that is put must be taken once by each taker\n"},
    {"a condition that only a launch knows comes out alike in all roles",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { if limit > 2.0 { for s in t.steps { put a_in = A[t.i, s.p]; put "
     "b_in = B[t.j, s.p]; } } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 && limit > 2.0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 && limit > 2.0 { take x = product; store C[t.i + rows, t.j + cols] = x; free "
     "x; }\n"
     "  }\n"
     "}\n",
     ""},
    {"equal conditions in other words come out alike too",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { if 2.0 < limit { for s in t.steps { put a_in = A[t.i, s.p]; put "
     "b_in = B[t.j, s.p]; } } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 && !(limit <= 2.0) {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if limit > 2.0 && t.steps.count >= 1 { take x = product; store C[t.i + rows, t.j + cols] = x; free "
     "x; }\n"
     "  }\n"
     "}\n",
     ""},
    {"a condition of one role alone is told with its outcome",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { if limit > 2.0 { for s in t.steps { put a_in = A[t.i, s.p]; put "
     "b_in = B[t.j, s.p]; } } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:8:1: error: 'load' never puts 'a_in', but 'mma' takes it once, with 1 tile of 1 block, where "
     "'limit > 2.0' doesn't hold\n"
     "     8 | pipe a_in : a load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:75: note: 'load' puts it here\n"
     "    11 | role load : 1 warp { for t in tiles { if limit > 2.0 { for s in t.steps { put a_in = A[t.i, "
     "s.p]; put b_in = B[t.j, s.p]; } } } }\n"
     "       |                                                                           "
     "^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:28: note: and it is taken here\n"
     "    16 |         for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                            ^~~~~~~~~~~~~~\n"
     "help: on every path, each slot that is put must be taken once by each taker\n"
     "t.jfa:9:1: error: 'load' never puts 'b_in', but 'mma' takes it once, with 1 tile of 1 block, where "
     "'limit > 2.0' doesn't hold\n"
     "     9 | pipe b_in : b load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:99: note: 'load' puts it here\n"
     "    11 | role load : 1 warp { for t in tiles { if limit > 2.0 { for s in t.steps { put a_in = A[t.i, "
     "s.p]; put b_in = B[t.j, s.p]; } } } }\n"
     "       |                                                                                               "
     "    ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:43: note: and it is taken here\n"
     "    16 |         for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                                           ^~~~~~~~~~~~~~\n"
     "help: on every path, each slot that is put must be taken once by each taker\n"},
    {"a product that starts on a slot that holds nothing is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T; free x; free y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:16:58: error: this product adds to a slot of 'product' that holds nothing, with 1 tile of 1 "
     "block\n"
     "    16 |         for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T; free x; free y; }\n"
     "       |                                                          ^~~~~~~~~~~~~\n"
     "help: start anew with 'fresh if' at the first product; only a pipe that is 'in place' keeps what its "
     "slots held before\n"},
    {"a product in place that never starts anew is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 128);\n"
     "smem a : dtype[128, 128];\n"
     "tmem s [1] : f32[128, 128];\n"
     "tmem p [1] : dtype[128, 128] over s;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe scores : s mma -> soft;\n"
     "pipe probs : p soft -> mma;\n"
     "pipe o : acc mma -> out in place;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp { for t in tiles { take x = a_in; put scores = x @ x^T; take y = probs; put o += y @ "
     "x; free y; free x; } }\n"
     "role soft : 4 warps { for t in tiles { take x = scores; put probs = x; } }\n"
     "role out : 4 warps { for t in tiles { take x = o; store C[t.i + rows, t.j + cols] = x; free x; } }\n",
     "t.jfa:14:91: error: this product adds to a slot of 'o' that holds nothing, with 1 tile of 0 blocks\n"
     "    14 | role mma : 1 warp { for t in tiles { take x = a_in; put scores = x @ x^T; take y = probs; put "
     "o += y @ x; free y; free x; } }\n"
     "       |                                                                                           "
     "^~~~~~~~~~~~~~~\n"
     "help: start anew with 'fresh if' at the first product of each tile\n"},
    {"a slot that is published without having been written is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if true {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if true { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:15:7: error: nothing is written to 'product' before it is published, with 1 tile of 0 blocks\n"
     "    15 |       fill d = product {\n"
     "       |       ^~~~~~~~~~~~~~~~~~\n"
     "help: put it only when there is something to write, and take it under the same condition\n"},
    {"a pipe that nobody puts is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:9:1: error: role 'load' never puts 'b_in'\n"
     "     9 | pipe b_in : b load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:11:6: note: role 'load' is declared here\n"
     "    11 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; } } }\n"
     "       |      ^~~~\n"
     "help: put b_in = ...; or leave the pipe out\n"},
    {"a pipe that its taker never takes is told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 1 warp {}\n",
     "t.jfa:10:1: error: role 'out' never takes 'product'\n"
     "    10 | pipe product : acc mma -> out;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:21:6: note: role 'out' is declared here\n"
     "    21 | role out : 1 warp {}\n"
     "       |      ^~~\n"
     "help: every taker that a pipe names must take and free each slot: take x = product; ... free x;\n"},
    {"a taker may be named once only",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [2] : dtype[128, 64];\n"
     "smem b [2] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out, out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.steps { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free "
     "y; }\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:10:1: error: 'product' names its taker 'out' twice\n"
     "    10 | pipe product : acc mma -> out, out;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"},
    {"a slot that is handed on elsewhere must not be freed",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 128);\n"
     "smem a : dtype[128, 128];\n"
     "tmem s [1] : f32[128, 128];\n"
     "tmem p [1] : dtype[128, 128] over s;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe scores : s mma -> soft;\n"
     "pipe probs : p soft -> mma;\n"
     "pipe o : acc mma -> out in place;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp { for t in tiles { take x = a_in; put scores = x @ x^T; put o += x @ x fresh if "
     "true; free x; if limit > 0.0 { take y = probs; free y; } } }\n"
     "role soft : 4 warps { for t in tiles { take x = scores; if limit > 0.0 { put probs = x; } else { free "
     "x; } } }\n"
     "role out : 4 warps { for t in tiles { take x = o; store C[t.i + rows, t.j + cols] = x; free x; } }\n",
     "t.jfa:15:98: error: a slot of 'scores' is freed here, but handed on to 'probs' elsewhere\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; if limit > 0.0 { put probs = x; } "
     "else { free x; } } }\n"
     "       |                                                                                               "
     "   ^~~~~~~\n"
     "t.jfa:15:74: note: handed on here\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; if limit > 0.0 { put probs = x; } "
     "else { free x; } } }\n"
     "       |                                                                          ^~~~~~~~~~~~~~\n"
     "help: treat it alike on every path: put 'probs' while the slot is held, or free it first\n"},
    {"slots are handed on in the order in which they were taken",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 128);\n"
     "smem a : dtype[128, 128];\n"
     "tmem s [2] : f32[128, 128];\n"
     "tmem p [2] : dtype[128, 128] over s;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe scores : s mma -> soft;\n"
     "pipe probs : p soft -> mma;\n"
     "pipe o : acc mma -> out in place;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp { for t in tiles { take x = a_in; put scores = x @ x^T; put scores = x @ x^T; take y "
     "= probs; put o += y @ x fresh if true; free y; take z = probs; free z; free x; } }\n"
     "role soft : 4 warps { for t in tiles { take x = scores; take y = scores; put probs = y; put probs = x; "
     "} }\n"
     "role out : 4 warps { for t in tiles { take x = o; store C[t.i + rows, t.j + cols] = x; free x; } }\n",
     "t.jfa:15:74: error: 'probs' takes over slots of 'scores' out of order, with 1 tile of 0 blocks\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; take y = scores; put probs = y; put "
     "probs = x; } }\n"
     "       |                                                                          ^~~~~~~~~~~~~~\n"
     "t.jfa:15:57: note: this slot of 'scores' was taken here\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; take y = scores; put probs = y; put "
     "probs = x; } }\n"
     "       |                                                         ^~~~~~~~~~~~~~~~\n"
     "help: hand slots on in the order in which they were taken, each exactly once\n"
     "t.jfa:15:89: error: 'probs' takes over slots of 'scores' out of order, with 1 tile of 0 blocks\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; take y = scores; put probs = y; put "
     "probs = x; } }\n"
     "       |                                                                                         "
     "^~~~~~~~~~~~~~\n"
     "t.jfa:15:40: note: this slot of 'scores' was taken here\n"
     "    15 | role soft : 4 warps { for t in tiles { take x = scores; take y = scores; put probs = y; put "
     "probs = x; } }\n"
     "       |                                        ^~~~~~~~~~~~~~~~\n"
     "help: hand slots on in the order in which they were taken, each exactly once\n"},
    {"pipes over shared bytes are put equally often",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 128);\n"
     "smem a : dtype[128, 128];\n"
     "smem c : dtype[128, 128] over a;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe back : c out -> write;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp { for t in tiles { take x = a_in; put product = x @ x^T; free x; } }\n"
     "role out : 4 warps { for t in tiles { take x = product; if t.steps.count > 1 { put back = x; } free x; "
     "} }\n"
     "role write : 1 warp { for t in tiles { if t.steps.count > 1 { take y = back; store C[t.i, t.j] = y; "
     "free y; } } }\n",
     "t.jfa:8:1: error: 'load' puts 'a_in' once, but 'out' never puts 'back', whose bytes it shares, with 1 "
     "tile of 0 blocks\n"
     "     8 | pipe a_in : a load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:9:1: note: 'back' is declared here\n"
     "     9 | pipe back : c out -> write;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "help: shared bytes go round: each put of 'a_in' belongs to one put of 'back'\n"},
    {"shared bytes that are wanted back too early are told",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a : dtype[128, 64];\n"
     "smem c : dtype[128, 64] over a;\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe back : c out -> write;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { put a_in = A[t.i, 0]; } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles { take x = a_in; put product = x @ x^T; put product = x @ x^T; free x; }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles { put back = 0; take x = product; free x; take y = product; free y; }\n"
     "}\n"
     "role write : 1 warp { for t in tiles { take y = back; free y; } }\n",
     "t.jfa:13:58: error: roles 'mma' and 'out' wait for each other with 1 tile of 0 blocks\n"
     "    13 |   for t in tiles { take x = a_in; put product = x @ x^T; put product = x @ x^T; free x; }\n"
     "       |                                                          ^~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:13:58: note: 'mma' waits for a free slot of 'product' (depth 1), which 'out' frees\n"
     "    13 |   for t in tiles { take x = a_in; put product = x @ x^T; put product = x @ x^T; free x; }\n"
     "       |                                                          ^~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:16:20: note: 'out' waits for the bytes that 'back' shares with 'a_in', which 'mma' frees\n"
     "    16 |   for t in tiles { put back = 0; take x = product; free x; take y = product; free y; }\n"
     "       |                    ^~~~~~~~~~~~~\n"
     "help: it passes when 'acc' has a depth of 2 instead of 1\n"},
    {"two walks are told by name",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk more over r in blocks(n, 64);\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a [1] : dtype[128, 64];\n"
     "smem b [1] : dtype[128, 64];\n"
     "tmem acc : f32[128, 128];\n"
     "pipe a_in : a load -> mma;\n"
     "pipe b_in : b load -> mma;\n"
     "pipe product : acc mma -> out;\n"
     "role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = B[t.j, "
     "s.p]; } } }\n"
     "role mma : 1 warp {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 {\n"
     "      fill d = product {\n"
     "        for s in t.more { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free x; free y; "
     "}\n"
     "      }\n"
     "    }\n"
     "  }\n"
     "}\n"
     "role out : 4 warps {\n"
     "  for t in tiles {\n"
     "    if t.steps.count > 0 { take x = product; store C[t.i + rows, t.j + cols] = x; free x; }\n"
     "  }\n"
     "}\n",
     "t.jfa:9:1: error: 'load' puts 'a_in' once, but 'mma' never takes it, with 1 tile of 0 blocks of 'more' "
     "and 1 block of 'steps'\n"
     "     9 | pipe a_in : a load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:12:58: note: 'load' puts it here\n"
     "    12 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = "
     "B[t.j, s.p]; } } }\n"
     "       |                                                          ^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:17:27: note: and it is taken here\n"
     "    17 |         for s in t.more { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                           ^~~~~~~~~~~~~~\n"
     "help: on every path, each slot that is put must be taken once by each taker\n"
     "t.jfa:10:1: error: 'load' puts 'b_in' once, but 'mma' never takes it, with 1 tile of 0 blocks of "
     "'more' and 1 block of 'steps'\n"
     "    10 | pipe b_in : b load -> mma;\n"
     "       | ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:12:82: note: 'load' puts it here\n"
     "    12 | role load : 1 warp { for t in tiles { for s in t.steps { put a_in = A[t.i, s.p]; put b_in = "
     "B[t.j, s.p]; } } }\n"
     "       |                                                                                  "
     "^~~~~~~~~~~~~~~~~~~~~~~\n"
     "t.jfa:17:42: note: and it is taken here\n"
     "    17 |         for s in t.more { take x = a_in; take y = b_in; d += x @ y^T fresh if s.first; free "
     "x; free y; }\n"
     "       |                                          ^~~~~~~~~~~~~~\n"
     "help: on every path, each slot that is put must be taken once by each taker\n"
     "t.jfa:16:7: error: nothing is written to 'product' before it is published, with 1 tile of 0 blocks of "
     "'more' and 1 block of 'steps'\n"
     "    16 |       fill d = product {\n"
     "       |       ^~~~~~~~~~~~~~~~~~\n"
     "help: put it only when there is something to write, and take it under the same condition\n"},
    {"loops within loops are refused rather than run for ever",
     "grid tiles over (i in blocks(m, 128), j in blocks(n, 128)) persistent;\n"
     "walk steps over p in blocks(k, 64);\n"
     "smem a : dtype[128, 64];\n"
     "pipe a_in : a load -> out;\n"
     "role out : 1 warp { for t in tiles { for s0 in t.steps { for s1 in t.steps { for s2 in t.steps { for "
     "s3 in t.steps { for s4 in t.steps { for s5 in t.steps { for s6 in t.steps { for s7 in t.steps { for s8 "
     "in t.steps { for s9 in t.steps { for s10 in t.steps { for s11 in t.steps { for s12 in t.steps { for "
     "s13 in t.steps { take x = a_in; free x; } } } } } } } } } } } } } } } }\n"
     "role load : 1 warp { for t in tiles { for s0 in t.steps { for s1 in t.steps { for s2 in t.steps { for "
     "s3 in t.steps { for s4 in t.steps { for s5 in t.steps { for s6 in t.steps { for s7 in t.steps { for s8 "
     "in t.steps { for s9 in t.steps { for s10 in t.steps { for s11 in t.steps { for s12 in t.steps { for "
     "s13 in t.steps { put a_in = A[t.i, 0]; } } } } } } } } } } } } } } } }\n",
     "t.jfa:7:6: error: role 'out' runs more than 262144 statements with 1 tile of 3 blocks: too many to be "
     "checked\n"
     "     7 | role out : 1 warp { for t in tiles { for s0 in t.steps { for s1 in t.steps { for s2 in "
     "t.steps { for "
     "s3 in t.steps { for s4 in t.steps { for s5 in t.steps { for s6 in t.steps { for s7 in t.steps { for s8 "
     "in t.steps { for s9 in t.steps { for s10 in t.steps { for s11 in t.steps { for s12 in t.steps { for "
     "s13 in t.steps { take x = a_in; free x; } } } } } } } } } } } } } } } }\n"
     "       |      ^~~\n"
     "help: a loop over blocks within another one runs its body for each pair of blocks: put what doesn't "
     "need "
     "both outside of the inner loop\n"},
};

static void the_schedules_of_the_repository_pass(void **state) {
    static const char *const PATHS[] = {"examples/dense.jfa", "examples/matmul.jfa"};
    (void)state;
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        Program *program = program_open(PATHS[i]);
        assert_non_null(program->plan);
        protocol_check(program->plan, &program->diag);
        assert_string_equal(program_messages(program), "");
        program_free(program);
    }
}

// The attention schedule, with one thing wrong each time.
static void every_slip_in_the_attention_schedule_is_told(void **state) {
    static const struct {
        const char *from, *to, *code;
    } SLIPS[] = {
        {"head_dim == 64 ? 6 : 3", "1", "deadlock"},
        {" fresh if t.kv.count == 1", "", "adds-to-nothing"},
        {"if !b.first { put decay[g] = a; }", "put decay[g] = a;", "uneven"},
        {"for b in t.kv.last { put kv_in = V[b.j, kv_head]; }", "", "uneven"},
        {"for b in t.kv.first { put kv_in", "for b in t.kv { put kv_in", "uneven"},
        {"if t.kv.count > 0 {\n        take k = kv_in;", "if t.kv.count > 1 {\n        take k = kv_in;",
         "uneven"},
        {"take inv_l = stats[g];", "take inv_l = stats[g]; put result[g] = 0;", "uneven"},
        {"take e = probs[g];\n            put o[g] += e @ v fresh if b.index == 1;\n            free e;\n"
         "            put scores[g] = a[g] @ k^T;",
         "put scores[g] = a[g] @ k^T;\n            take e = probs[g];\n"
         "            put o[g] += e @ v fresh if b.index == 1;\n            free e;",
         "deadlock"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof SLIPS / sizeof SLIPS[0]; i++) {
        Program *program = program_edited("templates/attention_sm100.jfa", SLIPS[i].from, SLIPS[i].to);
        assert_string_equal(program_messages(program), "");
        assert_false(protocol_check(program->plan, &program->diag));
        bool found = false;
        for (const DiagItem *item = program->diag.items; item; item = item->next)
            found |= !strcmp(item->code, SLIPS[i].code);
        if (!found)
            fail_msg("%s -> %s: no '%s' in\n%s", SLIPS[i].from, SLIPS[i].to, SLIPS[i].code,
                     program_messages(program));
        program_free(program);
    }
}

static void a_cycle_is_told_once_however_many_trips_show_it(void **state) {
    (void)state;
    Program *program = program_edited("templates/attention_sm100.jfa", "head_dim == 64 ? 6 : 3", "1");
    protocol_check(program->plan, &program->diag);
    assert_int_equal(program->diag.error_count, 1);
    program_free(program);
}

static void the_check_of_attention_takes_less_than_ten_milliseconds(void **state) {
    enum { ROUNDS = 5 };
    (void)state;
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) { // the best of a few: the machine may be busy
        Program *program = program_open("examples/dense.jfa");
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        assert_true(protocol_check(program->plan, &program->diag));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        double ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) / 1e6;
        best = ms < best ? ms : best;
        program_free(program);
    }
    assert_true(best < 10);
}

int main(void) {
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(the_schedules_of_the_repository_pass),
        cmocka_unit_test(every_slip_in_the_attention_schedule_is_told),
        cmocka_unit_test(a_cycle_is_told_once_however_many_trips_show_it),
        cmocka_unit_test(the_check_of_attention_takes_less_than_ten_milliseconds),
    };
    int failed = run_message_cases(CASES, sizeof CASES / sizeof CASES[0], protocol_check);
    return failed + cmocka_run_group_tests(TESTS, NULL, NULL);
}
