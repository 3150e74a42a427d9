// manifest.h: what a compiled kernel says about itself: how it is launched, what it takes and in which form.
// The compiler fills a jfa_manifest and writes it as text into the module (global byte array `jfa_manifest`);
// the runtime reads it back. A module with several kernels holds their texts one behind the other.
//
// The text is ASCII lines (file names may be UTF-8) of words separated by single spaces, in any order in
// which a name stands before its uses:
//
//   jfa-manifest 1                 version, first line
//   kernel NAME                    as users call it
//   entry SYMBOL                   .entry of the module
//   target sm_100a
//   compiler VERSION
//   source PATH                    rest of the line
//   threads N                      of a CTA
//   shared BYTES                   dynamic shared memory
//   cluster N                      CTAs, 1: none
//   axis NAME
//   dim NAME
//   divides DIM OTHER              OTHER must be a multiple of DIM
//   constant NAME VALUE            informational
//   tensor NAME in|out|inout DTYPE DIM,... [optional]   DIM: an axis, a dim or a number; outermost first
//   param NAME f32|i32 [DEFAULT]
//   positive PARAM                 must be above 0; of an f32 normal and finite as well
//   factor DIM                     factor dims of the tile space, outermost first
//   block AXIS SIZE                blocked axes, outermost first
//   heaviest_first                 records in descending order of work
//   persistent [N]                 at most N CTAs an SM (1); otherwise a cluster an item
//   field WHAT                     int32 fields of a record, in order. WHAT:
//                                  seq, start AXIS, len AXIS, base TENSOR INDEX
//   map TENSOR SWIZZLE COLS ENTRY...   tensor maps, numbered from 0; entries innermost first, see below
//   arg OFFSET BYTES WHAT          parameters, in order. WHAT: map NUMBER, ptr TENSOR, stride TENSOR INDEX,
//                                  dim DIM, records, record_count, items, param NAME, watchdog,
//                                  queue
//   watchdog MS                    a wait that lasts longer is told, and ends the kernel
//   file PATH                      rest of the line; where waits stand, numbered from 0
//   wait ROLE full|empty PIPE COUNT STAGES FILE LINE    the waits with that limit, numbered from 0: of ROLE
//   for
//                                  a slot of PIPE (COUNT of them with STAGES each) that is full or empty
//   end
//
// INDEX counts a tensor's dims from 0, the outermost.
//
// Work. Records are the pairs (sequence, block of each blocked axis) with positions on every blocked axis.
// With F the product of the factor dims, item w is record w / F with factor index w % F (last factor
// fastest); items = records * F. heaviest_first: sequences in descending order of the product of their
// lengths on the other axes (at least 1 each), equal ones in natural order; within a sequence blocks are in
// natural order, the last axis fastest.
//
// A kernel deals its items itself, one to a cluster at a time: in round r, cluster c of G takes item r * G +
// c, in odd rounds r * G + G - 1 - c, so that the CTA with the heaviest item of a round has the lightest of
// the next.
//
// Maps. Each entry is a dimension of the tensor map and a coordinate of the instruction that uses it:
//   col:BOX          the innermost dim of the tensor. Always first.
//   rows:INDEX:BOX   rows of the ragged dim INDEX, extent BOX.
//   chunk:BOX        steps of col's box along the innermost dim, a constant C: extent C / col's box.
//   dim:INDEX:BOX    that dim with its extent and stride.
//   end:INDEX        the ragged dim again, extent rows + 1, box 1.
// With a chunk entry col has the extent of its box, otherwise that of the tensor's innermost dim. COLS are
// the columns of a whole tile, moved in one instruction or several: where the innermost dim is an axis,
// sequences must be multiples of COLS on it, or end where the tensor ends, because only rows are ragged.
//
// With rows and end the map is *ragged*: its address is the tensor's minus R rows (R: the box of rows). For
// rows [row, row + R) of a sequence that ends before `end` (both counted from the tensor's start), let
// n = min(R, max(end - row, 0)); the coordinates are R - n for rows and row + n for end. Row i of the box is
// then outside the map for i >= n (loads give zeros, stores are clipped), and otherwise is row
// (R - n) + i + (row + n) - R = row + i.
//
// Queue. The arg `queue` is the address of two uint32 that are 0 before a launch, and which the kernel leaves
// at 0: how many items were asked for beyond the first of each cluster, and how many clusters have none left.
// Such a kernel's launches of one plan must not overlap.
//
// Watchdog. The arg `watchdog` is the address of words (uint32) that are 0 at first and can be read after the
// kernel has failed: a head of four, then four for each warp of a cluster, by rank * warps of a CTA + warp. A
// wait beyond its limit puts 1 + its cluster's number into word 0 and goes on if that was 0 or the same: one
// cluster tells. The warp that found 0 puts 1 + its place into word 1. Each writes into its own four: 1 + the
// wait's number, the parity that it waits for, index of the pipe * STAGES + stage, %ctaid.x. A quarter of the
// limit later, so that others of the cluster get to tell, it traps.
#ifndef JFA_RUNTIME_MANIFEST_H
#define JFA_RUNTIME_MANIFEST_H

#include "runtime/jfa.h"

enum {
    JFA_MANIFEST_VERSION = 1,
    JFA_ENTRY_BYTES = 256,
    JFA_MAX_BLOCKS = 4,
    JFA_MAX_FIELDS = 64,
    JFA_MAX_OCCUPANCY = 32, // CTAs that an SM runs at a time
    JFA_MAX_ARGS = 192,
    JFA_MAX_MAPS = 32,
    JFA_MAX_WAITS = 128,
    JFA_MAX_FILES = 16,
    JFA_MOST_WATCHDOG_MS = 3600 * 1000,
    JFA_WATCHDOG_WORDS = 4,      // of the head, and of a warp
    JFA_PARAMETER_BYTES = 32764, // PTX ISA, "Kernel Function Parameters": sm_70 and later
    JFA_MAP_BYTES = 128,         // CUtensorMap
};

typedef enum {
    JFA_FIELD_SEQ,
    JFA_FIELD_START,
    JFA_FIELD_LEN,
    JFA_FIELD_BASE,
    JFA_FIELD_KIND_COUNT
} jfa_field_kind;

typedef struct {
    jfa_field_kind kind;
    int index; // axis (start, len) or tensor (base)
    int dim;   // base: which dim of the tensor
} jfa_field;

typedef enum {
    JFA_ENTRY_COL,
    JFA_ENTRY_ROWS,
    JFA_ENTRY_CHUNK,
    JFA_ENTRY_DIM,
    JFA_ENTRY_END,
    JFA_ENTRY_KIND_COUNT
} jfa_map_entry_kind;

typedef struct {
    jfa_map_entry_kind kind;
    int dim;     // rows, dim, end: which dim of the tensor
    int64_t box; // elements, 1..256; chunk: chunks; end: 1
} jfa_map_entry;

typedef struct {
    int tensor;
    int swizzle_bytes; // 0, 32, 64, 128
    int64_t cols;      // columns of the tiles that it moves, in one instruction or several
    int rank;
    jfa_map_entry entries[5]; // innermost first
} jfa_map;

typedef enum {
    JFA_ARG_MAP,          // index: map. 128 bytes, at a multiple of 64
    JFA_ARG_PTR,          // index: tensor. 8 bytes
    JFA_ARG_STRIDE,       // index: tensor, dim. int64 elements
    JFA_ARG_DIM,          // index: dim. int32
    JFA_ARG_RECORDS,      // pointer to the records
    JFA_ARG_RECORD_COUNT, // int32
    JFA_ARG_ITEMS,        // int32
    JFA_ARG_PARAM,        // index: param. f32 or int32
    JFA_ARG_WATCHDOG,     // pointer to what waits tell
    JFA_ARG_QUEUE,        // pointer to the queue's counters
    JFA_ARG_KIND_COUNT
} jfa_arg_kind;

typedef struct {
    jfa_arg_kind kind;
    int index, dim;
    int64_t offset, bytes; // in the block of parameters
} jfa_arg;

typedef struct {
    int axis;
    int64_t size; // positions
} jfa_block;

typedef struct {
    char role[JFA_NAME_BYTES], pipe[JFA_NAME_BYTES];
    bool is_full;      // waits for a filled slot; otherwise for a free one
    int count, stages; // pipes of that name, and slots of each
    int file, line;
} jfa_wait;

typedef struct {
    jfa_kernel_info info;
    char entry[JFA_ENTRY_BYTES];
    bool heaviest_first;
    int persistent; // CTAs an SM at most; 0: a cluster an item
    int factor_count, block_count, field_count, map_count, arg_count;
    int factors[JFA_MAX_DIMS]; // dims
    jfa_block blocks[JFA_MAX_BLOCKS];
    jfa_field fields[JFA_MAX_FIELDS];
    jfa_map maps[JFA_MAX_MAPS];
    jfa_arg args[JFA_MAX_ARGS];
    int64_t watchdog_ms; // 0: none
    int file_count, wait_count;
    char files[JFA_MAX_FILES][JFA_PATH_BYTES];
    jfa_wait waits[JFA_MAX_WAITS];
} jfa_manifest;

// Is the manifest complete and consistent? JFA_ERROR_MANIFEST and a sentence otherwise. Counts, indices and
// strings may hold anything.
jfa_status jfa_manifest_check(const jfa_manifest *manifest, jfa_error *err);

// Checks the manifest and writes its text, with a final NUL, into text[0 .. capacity - 1] as far as that
// reaches (text may be NULL when capacity is 0). *length: bytes of the whole text without the NUL; a capacity
// above it held all.
jfa_status jfa_manifest_write(const jfa_manifest *manifest, char *text, size_t capacity, size_t *length,
                              jfa_error *err);

// Reads the first kernel of the text and checks it; *used: bytes read, up to and with its `end` line. Needs
// no NUL at the end. JFA_ERROR_MANIFEST names the line.
jfa_status jfa_manifest_read(const char *text, size_t length, jfa_manifest *manifest, size_t *used,
                             jfa_error *err);

// Whether a value keeps what `> 0` promises: arithmetic flushes subnormal numbers to 0.
bool jfa_param_is_positive(const jfa_param_info *param, double value);

// Bytes of the block of parameters: the end of the last one.
int64_t jfa_manifest_parameter_bytes(const jfa_manifest *manifest);

#endif
