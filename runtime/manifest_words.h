// manifest_words.h: the words of the manifest's text, shared by reader, writer and check.
#ifndef JFA_RUNTIME_MANIFEST_WORDS_H
#define JFA_RUNTIME_MANIFEST_WORDS_H

#include "runtime/manifest.h"

// What the operand of a word names.
typedef enum { REF_NONE, REF_AXIS, REF_DIM, REF_TENSOR, REF_PARAM, REF_MAP, REF_COUNT } jfa_ref;

typedef struct {
    const char *word;
    jfa_ref ref;
    bool has_dim;    // a dim of the tensor follows
    int bytes, unit; // of an arg: size and alignment
} jfa_operand_word;

typedef struct {
    const char *word;
    bool has_dim, has_box;
} jfa_entry_word;

extern const jfa_operand_word JFA_FIELD_WORDS[JFA_FIELD_KIND_COUNT];
extern const jfa_operand_word JFA_ARG_WORDS[JFA_ARG_KIND_COUNT];
extern const jfa_entry_word JFA_ENTRY_WORDS[JFA_ENTRY_KIND_COUNT];
extern const char *const JFA_DIRECTION_WORDS[JFA_INOUT + 1];
extern const char *const JFA_WAIT_WORDS[2]; // by jfa_wait.is_full

// How many there are of what `ref` names, what one is called ("axis"), and the name of one (NULL for maps).
int jfa_ref_count(const jfa_manifest *manifest, jfa_ref ref);
const char *jfa_ref_word(jfa_ref ref);
const char *jfa_ref_name(const jfa_manifest *manifest, jfa_ref ref, int index);
// The index of that name, or -1.
int jfa_ref_find(const jfa_manifest *manifest, jfa_ref ref, const char *name);

// The part of jfa_manifest_check that looks at maps; the tensors are good. False and a message otherwise.
bool jfa_manifest_check_maps(const jfa_manifest *manifest, jfa_error *err);

#endif
