// values.c: inputs, computed where they are needed: filling a tensor and checking a row use the same
// function.
#include "bench/attention/bench.h"

#include <math.h>
#include <string.h>

enum { SUM_COUNT = 4 * 255 + 1 };

// The steps of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t values_mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

float value_of_bf16(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint16_t bf16_of(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return (uint16_t)((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
}

// A sum of four bytes, centred and scaled to variance 1, as bf16.
static const uint16_t *sum_table(void) {
    static uint16_t table[SUM_COUNT];
    static bool is_made;
    if (is_made)
        return table;
    const double mean = (SUM_COUNT - 1) / 2.0, deviation = sqrt(4 * (256.0 * 256.0 - 1) / 12);
    for (int i = 0; i < SUM_COUNT; i++)
        table[i] = bf16_of((float)((i - mean) / deviation));
    is_made = true;
    return table;
}

void values_fill(TensorId id, int64_t start, int64_t count, uint16_t *out) {
    const uint16_t *table = sum_table();
    const uint64_t odd_bytes = 0x00FF00FF00FF00FFu, low_half = 0xFFFFu;
    uint64_t base = ((uint64_t)id + 1) << 56;
    for (int64_t i = 0; i < count; i += 2) {
        uint64_t word = values_mix(base + (uint64_t)(start + i) / 2);
        uint64_t pairs = (word & odd_bytes) + (word >> 8 & odd_bytes);
        uint64_t sums = pairs + (pairs >> 16); // in bits 0 .. 15 and 32 .. 47
        out[i] = table[sums & low_half];
        if (i + 1 < count)
            out[i + 1] = table[sums >> 32 & low_half];
    }
}
