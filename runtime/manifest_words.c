// manifest_words.c: the tables of words, and names by index.
#include "runtime/manifest_words.h"

#include <string.h>

const jfa_operand_word JFA_FIELD_WORDS[JFA_FIELD_KIND_COUNT] = {
    [JFA_FIELD_SEQ] = {"seq", REF_NONE, false, 4, 4},
    [JFA_FIELD_START] = {"start", REF_AXIS, false, 4, 4},
    [JFA_FIELD_LEN] = {"len", REF_AXIS, false, 4, 4},
    [JFA_FIELD_BASE] = {"base", REF_TENSOR, true, 4, 4},
};

const jfa_operand_word JFA_ARG_WORDS[JFA_ARG_KIND_COUNT] = {
    // cuTensorMapEncodeTiled (CUDA driver API): a map lies at a multiple of 64 bytes.
    [JFA_ARG_MAP] = {"map", REF_MAP, false, JFA_MAP_BYTES, 64},
    [JFA_ARG_PTR] = {"ptr", REF_TENSOR, false, 8, 8},
    [JFA_ARG_STRIDE] = {"stride", REF_TENSOR, true, 8, 8},
    [JFA_ARG_DIM] = {"dim", REF_DIM, false, 4, 4},
    [JFA_ARG_RECORDS] = {"records", REF_NONE, false, 8, 8},
    [JFA_ARG_RECORD_COUNT] = {"record_count", REF_NONE, false, 4, 4},
    [JFA_ARG_ITEMS] = {"items", REF_NONE, false, 4, 4},
    [JFA_ARG_PARAM] = {"param", REF_PARAM, false, 4, 4},
    [JFA_ARG_WATCHDOG] = {"watchdog", REF_NONE, false, 8, 8},
    [JFA_ARG_QUEUE] = {"queue", REF_NONE, false, 8, 8},
};

const jfa_entry_word JFA_ENTRY_WORDS[JFA_ENTRY_KIND_COUNT] = {
    [JFA_ENTRY_COL] = {"col", false, true},     [JFA_ENTRY_ROWS] = {"rows", true, true},
    [JFA_ENTRY_CHUNK] = {"chunk", false, true}, [JFA_ENTRY_DIM] = {"dim", true, true},
    [JFA_ENTRY_END] = {"end", true, false},
};

const char *const JFA_DIRECTION_WORDS[JFA_INOUT + 1] = {"in", "out", "inout"};
const char *const JFA_WAIT_WORDS[2] = {"empty", "full"};

int jfa_ref_count(const jfa_manifest *manifest, jfa_ref ref) {
    const int counts[REF_COUNT] = {
        0,
        manifest->info.axis_count,
        manifest->info.dim_count,
        manifest->info.tensor_count,
        manifest->info.param_count,
        manifest->map_count,
    };
    return counts[ref];
}

const char *jfa_ref_word(jfa_ref ref) {
    static const char *const WORDS[REF_COUNT] = {"nothing", "axis", "dim", "tensor", "param", "map"};
    return WORDS[ref];
}

const char *jfa_ref_name(const jfa_manifest *manifest, jfa_ref ref, int index) {
    const jfa_kernel_info *info = &manifest->info;
    switch (ref) {
    case REF_AXIS:
        return info->axes[index].name;
    case REF_DIM:
        return info->dims[index].name;
    case REF_TENSOR:
        return info->tensors[index].name;
    case REF_PARAM:
        return info->params[index].name;
    default:
        return NULL;
    }
}

int jfa_ref_find(const jfa_manifest *manifest, jfa_ref ref, const char *name) {
    for (int i = 0; i < jfa_ref_count(manifest, ref); i++) {
        const char *candidate = jfa_ref_name(manifest, ref, i);
        if (candidate && strcmp(candidate, name) == 0)
            return i;
    }
    return -1;
}
