// output[i] = x[i] scale, or 0 if the random word of element i (src/random/philox.ts) is at most `last_dropped`.
//
// Tiling: a thread processes one or two blocks of four elements; each block uses one block of Philox. x may have any
// strides.

#include <metal_stdlib>
using namespace metal;

#include "common/philox.h"
#include "common/runs.h"

// - loop: operands: x, output
#include "generated/dropout.h"

#define BLOCK 4

inline uint4 words_of(constant Dropout &given, ulong block) {
    const uint4 start = uint4(given.counter[0], given.counter[1], given.counter[2], given.counter[3]);
    return philox(philox_block(start, block), uint2(given.key[0], given.key[1]));
}

template <typename T> inline T kept(T x, uint word, constant Dropout &given) {
    return word > given.last_dropped ? T(float(x) * given.scale) : T(0.0f);
}

// Processes blocks of adjacent elements, with one load and one store.
template <typename T>
inline void drop_run(device const T *x, device T *output, constant Dropout &given, uint2 position, uint2 grid) {
    const Run run = run_of(given.loop, position, grid);
    if (run.count == 0) return;
    long places[2];
    run_places(given.loop, run, places);
    T elements[run_width<T>()];
    load_run(x, places[0], 0, run.count, elements);
    for (uint first = 0; first < run_length(); first += BLOCK) {
        const uint4 words = words_of(given, (run.first + first) / BLOCK);
        for (uint i = 0; i < BLOCK; i += 1) elements[first + i] = kept(elements[first + i], words[i], given);
    }
    store_run(output, places[1], elements, run.count);
}

// Processes a block of elements with any strides.
template <typename T>
inline void drop_block(device const T *x, device T *output, constant Dropout &given, uint2 position, uint2 grid) {
    const ulong block = loop_element(position, grid);
    const ulong first = block * BLOCK;
    const ulong count = ulong(given.loop.count);
    if (first >= count) return;
    const uint4 words = words_of(given, block);
    for (uint i = 0; i < uint(min(ulong(BLOCK), count - first)); i += 1) {
        long places[2];
        loop_places(given.loop, first + i, places);
        output[places[1]] = kept(x[places[0]], words[i], given);
    }
}

// x       [[buffer(0)]]  the elements that its strides reach
// output  [[buffer(1)]]  the elements that its strides reach
// given   [[buffer(2)]]
template <typename T>
kernel void dropout(
    device const T *x [[buffer(0)]],
    device T *output [[buffer(1)]],
    constant Dropout &given [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    if (run_length() == 1) {
        drop_block(x, output, given, position, grid);
    } else {
        drop_run(x, output, given, position, grid);
    }
}

#define DROPOUT(T)                                                \
    template [[host_name("dropout_" #T)]] kernel void dropout<T>( \
        device const T *, device T *, constant Dropout &, uint2, uint2);

DROPOUT(float)
DROPOUT(half)
DROPOUT(bfloat)
