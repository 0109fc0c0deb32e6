// Samples categories by their weights, without summing weights: category c of a row gets the key E(c) / weight(c),
// where each E(c) is an independent exponential random number. Category c has the smallest key with probability
// weight(c) / Σ weights (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). With replacement,
// every sample has new keys; without, the samples are those with the smallest, second smallest, … of one set of keys.
// So results do not depend on an order of summation.
//
// Tiling: one threadgroup per set of keys. Its threads go through the categories in steps of four; a block of Philox
// has the counter (category / 4, sample, row). Each thread keeps its smallest key; then SIMD-groups and the threadgroup
// find the smallest of all. Without replacement, this is repeated for each sample, among the keys that follow the
// previous one.
//
// A category whose weight is not above 0 is never sampled. If no other category is left, the index is −1.

#include <metal_stdlib>
using namespace metal;

#include "common/philox.h"
#include "random/normal.h"

// - counter: only the last word is used
// - row_stride: of the weights, in elements
#include "generated/multinomial.h"

// A category and its key. The smaller key comes first; of equal ones, the lower category.
struct Arrival {
    float time;
    uint category;
};

constant uint NONE = 0xffffffff;
constant uint MAX_GROUPS = 32;

inline bool is_before(Arrival a, Arrival b) {
    bool is_first = a.time < b.time || (a.time == b.time && a.category < b.category);
    return a.category != NONE && (b.category == NONE || is_first);
}

inline Arrival first_of_simdgroup(Arrival mine) {
    for (ushort distance = 16; distance > 0; distance /= 2) {
        Arrival other = {simd_shuffle_xor(mine.time, distance), simd_shuffle_xor(mine.category, distance)};
        if (is_before(other, mine)) {
            mine = other;
        }
    }
    return mine;
}

// weights  [[buffer(0)]]  the elements that the strides reach
// output   [[buffer(1)]]  int64[rows, samples]
// given    [[buffer(2)]]
// Threadgroups: (samples or 1, rows); threads: a multiple of 32, at most 1024.
template <typename W>
kernel void multinomial(
    device const W *weights [[buffer(0)]],
    device long *output [[buffer(1)]],
    constant Multinomial &given [[buffer(2)]],
    uint2 race [[threadgroup_position_in_grid]],
    uint2 threads [[threads_per_threadgroup]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint groups [[simdgroups_per_threadgroup]]) {
    threadgroup Arrival firsts[MAX_GROUPS];
    device const W *row = weights + given.start + long(race.y) * given.row_stride;
    uint rounds = given.replacement != 0 ? 1 : given.samples;
    uint sample = given.replacement != 0 ? race.x : 0;
    Arrival last = {0.0f, NONE};
    for (uint round = 0; round < rounds; round += 1) {
        Arrival mine = {0.0f, NONE};
        for (uint block = thread_index; block <= (given.categories - 1) / 4; block += threads.x) {
            uint4 words = philox(uint4(block, sample, race.y, given.counter[3]), uint2(given.key[0], given.key[1]));
            for (uint at = 0; at < 4 && 4 * block + at < given.categories; at += 1) {
                float weight = float(row[long(4 * block + at) * given.stride]);
                Arrival other = {exponential_number(words[at]) / weight, 4 * block + at};
                if (weight > 0 && (round == 0 || is_before(last, other)) && is_before(other, mine)) {
                    mine = other;
                }
            }
        }
        mine = first_of_simdgroup(mine);
        if (lane == 0) {
            firsts[group] = mine;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        last = firsts[0];
        for (uint other = 1; other < groups; other += 1) {
            if (is_before(firsts[other], last)) {
                last = firsts[other];
            }
        }
        if (thread_index == 0) {
            output[ulong(race.y) * given.samples + (given.replacement != 0 ? sample : round)] =
                last.category == NONE ? -1 : long(last.category);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#define MULTINOMIAL(W)                                                    \
    template [[host_name("multinomial_" #W)]] kernel void multinomial<W>( \
        device const W *, device long *, constant Multinomial &, uint2, uint2, uint, uint, uint, uint);

MULTINOMIAL(float)
MULTINOMIAL(half)
MULTINOMIAL(bfloat)
