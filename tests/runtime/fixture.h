// fixture.h: a kernel's manifest as a compiler would write it, images that carry it, and a device made of
// host tables.
#ifndef JFA_TESTS_RUNTIME_FIXTURE_H
#define JFA_TESTS_RUNTIME_FIXTURE_H

#include "runtime/internal.h"

// Jagged attention: Q, K, O moved by ragged maps, LSE (optional) by pointer; records of all field kinds.
extern const char SAMPLE_MANIFEST[];
// C[m, n] = A[m, k] B[n, k]^T over blocks of m and n; k is an axis and the innermost dim of A and B.
extern const char MATMUL_MANIFEST[];

// The sample built with a watchdog of 100 ms, by two waits in "a schedule.jfa": of role mma, line 73, for a
// full slot of the three of pipe kv; of role load, line 81, for a free one of the two pipes scores. The
// caller frees it. The address of the watchdog's words is the parameter at WATCHDOG_OFFSET.
char *fixture_watched(void);
enum { WATCHDOG_OFFSET = 440 };

// Reads a manifest that must be good.
jfa_manifest fixture_manifest(const char *text);

// SAMPLE_MANIFEST or another with the first `find` replaced; the caller frees it. Fails the test when it
// isn't there.
char *fixture_edit(const char *text, const char *find, const char *replace);

// PTX text with the bytes as its manifest; the caller frees it.
char *fixture_ptx(const char *manifest, size_t length);

// The device "fake:sm_100a" (4 SMs). A tensor map is encoded as the jfa_tensor_map itself.
typedef struct {
    const char *failing; // the backend's function that fails, or NULL
    bool silent;         // it fails without a message
    jfa_status failure;  // with this status; JFA_OK: JFA_ERROR_DEVICE
    int live_devices, live_allocations, live_modules, launches;
    jfa_launch_desc last_launch;
    uint8_t last_params[1024];
    char last_function[256];
    char last_option[64];
    bool image_ended; // the last image had a NUL behind its bytes
} Fake;

extern Fake fake;

void fixture_register(void); // idempotent
// Host bytes of a device address.
void *fixture_memory(uint64_t address);

// The sample's problem over `sequences` sequences; dense tensors with `heads` and `kv_heads`. Plain data:
// tests change it.
typedef struct {
    jfa_axis axes[4];
    jfa_tensor tensors[6];
    jfa_param params[3];
    jfa_dim dims[2];
    jfa_problem problem;
} Sample;

enum { SAMPLE_Q, SAMPLE_K, SAMPLE_O, SAMPLE_LSE };

// q_rows and k_rows: rows of the tensors. Lengths are the caller's to set in axes[0] (q) and axes[1] (k).
void fixture_sample(Sample *sample, int64_t sequences, int64_t q_rows, int64_t k_rows, int64_t heads,
                    int64_t kv_heads);

#endif
