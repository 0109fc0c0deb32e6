// The first k elements of each slice of x along an axis in order (values), and where each was (indices). Equal elements
// stay in the order of their indices; NaN counts as larger than all numbers.
//
// - sort_slice: a bitonic network (Batcher 1968) in threadgroup memory, for slices of at most BLOCK elements.
//
// For longer ones, one after the other:
// - sort_block: the same for each block of BLOCK elements.
// - sort_merge: two runs of L become one of 2L, L = BLOCK, 2 BLOCK, …: each record counts those of the other run before
//   it.
// - sort_finish: the first k are taken.
//
// A record is a key (keys.h; all bits flipped for descending) and an index. The network compares both, so that no two
// records are equal and it gives the stable order, though it is not stable in itself; merging favours the left run.

#include <metal_stdlib>
using namespace metal;

#include "common/slices.h"
#include "sorting/keys.h"

#define BLOCK 1024

struct Sort {
    Slices<3> slices;  // x, values, indices
    long count;        // k
    long run;          // merge: L
    uint descending;   // 1 or 0
};

// Puts records [0, capacity) in order; capacity is a power of two. Called by all threads of the threadgroup.
template <typename K>
inline void sort_records(threadgroup K *keys, threadgroup uint *order, uint capacity, uint lane, uint threads) {
    for (uint size = 2; size <= capacity; size *= 2) {
        for (uint stride = size / 2; stride > 0; stride /= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint pair = lane; pair < capacity / 2; pair += threads) {
                uint low = 2 * pair - (pair & (stride - 1));
                uint high = low + stride;
                bool is_above = keys[low] > keys[high] || (keys[low] == keys[high] && order[low] > order[high]);
                bool ascending = (low & size) == 0;
                if (is_above == ascending) {
                    K key = keys[low];
                    keys[low] = keys[high];
                    keys[high] = key;
                    uint index = order[low];
                    order[low] = order[high];
                    order[high] = index;
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Loads block number `block` of the slice at x, puts it in order, and returns how many records it has.
template <typename T, typename K>
inline uint sorted_block(
    device const T *x,
    constant Sort &sort,
    uint block,
    threadgroup K *keys,
    threadgroup uint *order,
    uint lane,
    uint threads) {
    long first = long(block) * BLOCK;
    uint used = uint(min(sort.slices.length - first, long(BLOCK)));
    uint capacity = 1;
    while (capacity < used) {
        capacity *= 2;
    }
    for (uint at = lane; at < capacity; at += threads) {
        // What fills the block up comes behind every record: the largest key, and indices beyond theirs.
        K key = ~K(0);
        if (at < used) {
            K own = Key<T>::of(x[(first + at) * sort.slices.along[0]]);
            key = sort.descending != 0 ? ~own : own;
        }
        keys[at] = key;
        order[at] = uint(first) + at;
    }
    sort_records(keys, order, capacity, lane, threads);
    return used;
}

// Slices of at most BLOCK elements, one threadgroup each: x counts the slices.
// x                [[buffer(0)]]     the elements that its strides reach
// values, indices  [[buffer(1, 2)]]  the elements that their strides reach
template <typename T>
kernel void sort_slice(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    constant Sort &sort [[buffer(3)]],
    uint slice [[threadgroup_position_in_grid]],
    uint lane [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
    using K = typename Key<T>::type;
    threadgroup K keys[BLOCK];
    threadgroup uint order[BLOCK];
    long offsets[3];
    slice_offsets(sort.slices, slice, offsets);
    sorted_block(x + offsets[0], sort, 0, keys, order, lane, threads);
    for (long at = lane; at < sort.count; at += threads) {
        long index = long(order[at]);
        values[offsets[1] + at * sort.slices.along[1]] = x[offsets[0] + index * sort.slices.along[0]];
        indices[offsets[2] + at * sort.slices.along[2]] = index;
    }
}

// Longer slices, one threadgroup for each block: x counts the blocks of a slice, y the slices.
// x            [[buffer(0)]]     the elements that its strides reach
// keys, order  [[buffer(1, 2)]]  slices × length
template <typename T>
kernel void sort_block(
    device const T *x [[buffer(0)]],
    device typename Key<T>::type *keys [[buffer(1)]],
    device uint *order [[buffer(2)]],
    constant Sort &sort [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 lane [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
    using K = typename Key<T>::type;
    threadgroup K block_keys[BLOCK];
    threadgroup uint block_order[BLOCK];
    long offsets[3];
    slice_offsets(sort.slices, group.y, offsets);
    uint used = sorted_block(x + offsets[0], sort, group.x, block_keys, block_order, lane.x, threads.x);
    long first = long(group.y) * sort.slices.length + long(group.x) * BLOCK;
    for (uint at = lane.x; at < used; at += threads.x) {
        keys[first + at] = block_keys[at];
        order[first + at] = block_order[at];
    }
}

// The number of keys of a sorted run that are below `key`, or at most `key`.
template <typename K> inline long count_before(device const K *run, long length, K key, bool equal_too) {
    long low = 0;
    long high = length;
    while (low < high) {
        long middle = (low + high) / 2;
        bool before = run[middle] < key || (equal_too && run[middle] == key);
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// keys, order            [[buffer(0, 1)]]  slices × length, runs of `run` in order
// new_keys, new_order    [[buffer(2, 3)]]  the same, runs of twice that
// One thread for each record: x counts those of a slice, y the slices.
template <typename K>
kernel void sort_merge(
    device const K *keys [[buffer(0)]],
    device const uint *order [[buffer(1)]],
    device K *new_keys [[buffer(2)]],
    device uint *new_order [[buffer(3)]],
    constant Sort &sort [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    long at = long(position.x);
    long first = long(position.y) * sort.slices.length;
    long start = at / (2 * sort.run) * (2 * sort.run);
    long middle = min(start + sort.run, sort.slices.length);
    long end = min(start + 2 * sort.run, sort.slices.length);
    K key = keys[first + at];
    long rank = at < middle ? at - start + count_before(keys + first + middle, end - middle, key, false)
                            : at - middle + count_before(keys + first + start, middle - start, key, true);
    new_keys[first + start + rank] = key;
    new_order[first + start + rank] = order[first + at];
}

// x, values, indices  [[buffer(0, 1, 2)]]  the elements that their strides reach
// order               [[buffer(3)]]        slices × length, in order
// One thread for each element of the result: x counts those of a slice, y the slices.
template <typename T>
kernel void sort_finish(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    device const uint *order [[buffer(3)]],
    constant Sort &sort [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    long offsets[3];
    slice_offsets(sort.slices, position.y, offsets);
    long at = long(position.x);
    long index = long(order[long(position.y) * sort.slices.length + at]);
    values[offsets[1] + at * sort.slices.along[1]] = x[offsets[0] + index * sort.slices.along[0]];
    indices[offsets[2] + at * sort.slices.along[2]] = index;
}

#define MERGE(K)                                                        \
    template [[host_name("sort_merge_" #K)]] kernel void sort_merge<K>( \
        device const K *, device const uint *, device K *, device uint *, constant Sort &, uint2);

MERGE(uint)
MERGE(ulong)

#define SORT(T)                                                                                                 \
    template [[host_name("sort_slice_" #T)]] kernel void sort_slice<T>(                                         \
        device const T *, device T *, device long *, constant Sort &, uint, uint, uint);                        \
    template [[host_name("sort_block_" #T)]] kernel void sort_block<T>(                                         \
        device const T *, device typename Key<T>::type *, device uint *, constant Sort &, uint2, uint2, uint2); \
    template [[host_name("sort_finish_" #T)]] kernel void sort_finish<T>(                                       \
        device const T *, device T *, device long *, device const uint *, constant Sort &, uint2);

SORT(float)
SORT(half)
SORT(bfloat)
SORT(long)
SORT(int)
SORT(uint)
SORT(char)
SORT(uchar)
SORT(bool)
