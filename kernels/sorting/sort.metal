// The first k elements of each slice of x along an axis in sorted order (values), and their indices in x (indices). The
// sort is stable; NaN counts as larger than all numbers.
//
// - sort_slice: a bitonic network (Batcher 1968), for slices of at most BLOCK elements. A thread has HELD adjacent
//   elements in registers. An element is compared with one of the same thread, of another lane of the SIMD-group, or,
//   in 6 of 55 steps, of another SIMD-group through threadgroup memory.
//
// For longer slices, these run one after the other:
// - sort_block: sorts each block of BLOCK elements in the same way.
// - sort_merge: merges two runs of length L to one of 2L, for L = BLOCK, 2 BLOCK, … A thread finds by bisection where
//   its MERGED records begin in both runs (Odeh and others 2012, "Merge Path"), and takes the smaller of two records
//   MERGED times.
// - sort_finish: merges the last two runs in the same way, and takes the first k elements.
//
// A record is a key (keys.h; all bits are flipped for descending order) and an index. The network compares both, so no
// two records are equal and the result is stable, although the network is not. Merging prefers the left run.

#include <metal_stdlib>
using namespace metal;

#include "common/slices.h"
#include "sorting/keys.h"

// - slices: x, values, indices
// - count: k
// - run: for sort_merge: L
#include "generated/sort.h"

#define BLOCK 1024
#define HELD 4
#define MERGED 8

// Returns the record of the lane whose number differs in the bits of `across`. 64-bit numbers are moved as two halves,
// since shuffles of long are not specified for all devices.
inline uint from_lane(uint number, ushort across) { return simd_shuffle_xor(number, across); }
inline ulong from_lane(ulong number, ushort across) {
    return as_type<ulong>(simd_shuffle_xor(as_type<uint2>(number), across));
}

template <typename K> inline bool is_above(K key, uint order, K other_key, uint other_order) {
    return key > other_key || (key == other_key && order > other_order);
}

// Puts two records of a thread in ascending or in descending order.
template <typename K>
inline void arrange(thread K (&keys)[HELD], thread uint (&order)[HELD], uint low, uint high, bool ascending) {
    if (is_above(keys[low], order[low], keys[high], order[high]) == ascending) {
        const K key = keys[low];
        keys[low] = keys[high];
        keys[high] = key;
        const uint index = order[low];
        order[low] = order[high];
        order[high] = index;
    }
}

// Compares each record with the record of the thread whose number differs in the bits of `across`, and keeps one of
// them.
template <typename K>
inline void exchange(
    thread K (&keys)[HELD],
    thread uint (&order)[HELD],
    threadgroup K *shared_keys,
    threadgroup uint *shared_order,
    uint across,
    bool keeps_low,
    uint thread_index,
    uint threads) {
    const bool is_shared = across >= 32;
    if (is_shared) {
        for (uint i = 0; i < HELD; i += 1) {
            shared_keys[i * threads + thread_index] = keys[i];
            shared_order[i * threads + thread_index] = order[i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < HELD; i += 1) {
        const uint place = i * threads + (thread_index ^ across);
        const K key = is_shared ? shared_keys[place] : from_lane(keys[i], ushort(across));
        const uint index = is_shared ? shared_order[place] : from_lane(order[i], ushort(across));
        if (is_above(keys[i], order[i], key, index) == keeps_low) {
            keys[i] = key;
            order[i] = index;
        }
    }
    if (is_shared) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// Sorts the records of all threads. A thread's first record has number HELD · thread_index.
template <typename K>
inline void sort_records(
    thread K (&keys)[HELD],
    thread uint (&order)[HELD],
    threadgroup K *shared_keys,
    threadgroup uint *shared_order,
    uint thread_index,
    uint threads) {
    const uint first = HELD * thread_index;
    for (uint size = 2; size <= HELD * threads; size *= 2) {
        const bool ascending = (first & size) == 0;
        for (uint stride = size / 2; stride >= HELD; stride /= 2) {
            const bool keeps_low = ((first & stride) == 0) == ascending;
            exchange(keys, order, shared_keys, shared_order, stride / HELD, keeps_low, thread_index, threads);
        }
        if (size > 2) {
            arrange(keys, order, 0, 2, ascending);
            arrange(keys, order, 1, 3, ascending);
        }
        arrange(keys, order, 0, 1, ascending);
        arrange(keys, order, 2, 3, size == 2 ? false : ascending);
    }
}

// The records that the threads sort together: HELD elements per thread, of block number `block` of a slice.
template <typename T> struct Block {
    using K = typename Key<T>::type;
    K keys[HELD];
    uint order[HELD];  // indices within the slice
    long first;
    uint used;

    // `staged` receives the elements, unless it is null.
    void sort(
        device const T *x,
        constant Sort &sort,
        uint block,
        threadgroup T *staged,
        threadgroup K *shared_keys,
        threadgroup uint *shared_order,
        uint thread_index,
        uint threads) thread {
        first = long(block) * BLOCK;
        used = uint(min(sort.slices.length - first, long(BLOCK)));
        for (uint i = 0; i < HELD; i += 1) {
            const uint at = HELD * thread_index + i;
            // Padding sorts after every record: it has the largest key, and larger indices.
            keys[i] = ~K(0);
            order[i] = uint(first) + at;
            if (at < used) {
                const T element = x[(first + at) * sort.slices.along[0]];
                const K key = Key<T>::of(element);
                keys[i] = sort.descending != 0 ? ~key : key;
                if (staged) {
                    staged[at] = element;
                }
            }
        }
        sort_records(keys, order, shared_keys, shared_order, thread_index, threads);
        // Written to threadgroup memory, so that adjacent threads then read adjacent records.
        for (uint i = 0; i < HELD; i += 1) {
            shared_keys[HELD * thread_index + i] = keys[i];
            shared_order[HELD * thread_index + i] = order[i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
};

// Sorts slices of at most BLOCK elements, with one threadgroup per slice; x counts the slices. A threadgroup has a
// quarter as many threads as the next power of 2.
// x                [[buffer(0)]]     the elements that its strides reach
// values, indices  [[buffer(1, 2)]]  the elements that their strides reach
template <typename T>
kernel void sort_slice(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    constant Sort &sort [[buffer(3)]],
    uint slice [[threadgroup_position_in_grid]],
    uint thread_index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
    using K = typename Key<T>::type;
    threadgroup T staged[BLOCK];
    threadgroup K keys[BLOCK];
    threadgroup uint order[BLOCK];
    long offsets[3];
    slice_offsets(sort.slices, slice, offsets);
    Block<T> block;
    block.sort(x + offsets[0], sort, 0, staged, keys, order, thread_index, threads);
    for (long at = thread_index; at < sort.count; at += threads) {
        const uint index = order[at];
        values[offsets[1] + at * sort.slices.along[1]] = staged[index];
        indices[offsets[2] + at * sort.slices.along[2]] = long(index);
    }
}

// Sorts the blocks of longer slices, with one threadgroup per block; x counts the blocks of a slice, and y the slices.
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
    Block<T> block;
    block.sort(x + offsets[0], sort, group.x, nullptr, block_keys, block_order, lane.x, threads.x);
    const long first = long(group.y) * sort.slices.length + block.first;
    for (uint at = lane.x; at < block.used; at += threads.x) {
        keys[first + at] = block_keys[at];
        order[first + at] = block_order[at];
    }
}

// MERGED merged records, from number `first` of a slice on: their keys, and their positions before the merge.
template <typename K> struct Merged {
    K keys[MERGED];
    long places[MERGED];  // within the slice
    uint count;

    // `keys_of` points to the slice's keys. If both runs contain a key, the left run's comes first.
    void take(device const K *keys_of, constant Sort &sort, long first) thread {
        const long start = first / (2 * sort.run) * (2 * sort.run);
        const long middle = min(start + sort.run, sort.slices.length);
        const long end = min(start + 2 * sort.run, sort.slices.length);
        const long before = first - start;
        long low = max(0l, before - (end - middle));
        long high = min(before, middle - start);
        while (low < high) {
            const long split = (low + high) / 2;
            if (keys_of[start + split] <= keys_of[middle + before - 1 - split]) {
                low = split + 1;
            } else {
                high = split;
            }
        }
        long left = start + low;
        long right = middle + before - low;
        count = uint(min(long(MERGED), end - first));
        K left_key = left < middle ? keys_of[left] : K(0);
        K right_key = right < end ? keys_of[right] : K(0);
        for (uint i = 0; i < MERGED; i += 1) {
            if (i >= count) {
                break;
            }
            const bool is_left = right >= end || (left < middle && left_key <= right_key);
            keys[i] = is_left ? left_key : right_key;
            places[i] = is_left ? left : right;
            if (i + 1 == count) {
                break;
            }
            if (is_left) {
                left += 1;
                left_key = left < middle ? keys_of[left] : K(0);
            } else {
                right += 1;
                right_key = right < end ? keys_of[right] : K(0);
            }
        }
    }
};

// keys, order            [[buffer(0, 1)]]  slices × length: sorted runs of length `run`
// new_keys, new_order    [[buffer(2, 3)]]  the same: sorted runs of twice that length
// One thread per MERGED records; x counts those of a slice, and y the slices.
template <typename K>
kernel void sort_merge(
    device const K *keys [[buffer(0)]],
    device const uint *order [[buffer(1)]],
    device K *new_keys [[buffer(2)]],
    device uint *new_order [[buffer(3)]],
    constant Sort &sort [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    const long slice = long(position.y) * sort.slices.length;
    const long first = long(position.x) * MERGED;
    Merged<K> merged;
    merged.take(keys + slice, sort, first);
    // Stores four at once if slices begin at a multiple of four: adjacent threads write whole cache lines.
    if (merged.count == MERGED && sort.slices.length % 4 == 0) {
        device vec<K, 4> *keys_to = reinterpret_cast<device vec<K, 4> *>(new_keys + slice + first);
        device uint4 *order_to = reinterpret_cast<device uint4 *>(new_order + slice + first);
        for (uint four = 0; four < MERGED / 4; four += 1) {
            const uint i = four * 4;
            keys_to[four] = vec<K, 4>(merged.keys[i], merged.keys[i + 1], merged.keys[i + 2], merged.keys[i + 3]);
            order_to[four] = uint4(
                order[slice + merged.places[i]], order[slice + merged.places[i + 1]],
                order[slice + merged.places[i + 2]], order[slice + merged.places[i + 3]]);
        }
        return;
    }
    for (uint i = 0; i < MERGED; i += 1) {
        if (i < merged.count) {
            new_keys[slice + first + i] = merged.keys[i];
            new_order[slice + first + i] = order[slice + merged.places[i]];
        }
    }
}

// x, values, indices  [[buffer(0, 1, 2)]]  the elements that their strides reach
// keys, order         [[buffer(3, 4)]]     slices × length: two sorted runs
// One thread per MERGED elements of the result; x counts those of a slice, and y the slices.
template <typename T>
kernel void sort_finish(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    device const typename Key<T>::type *keys [[buffer(3)]],
    device const uint *order [[buffer(4)]],
    constant Sort &sort [[buffer(5)]],
    uint2 position [[thread_position_in_grid]]) {
    long offsets[3];
    slice_offsets(sort.slices, position.y, offsets);
    const long slice = long(position.y) * sort.slices.length;
    const long first = long(position.x) * MERGED;
    Merged<typename Key<T>::type> merged;
    merged.take(keys + slice, sort, first);
    for (uint i = 0; i < MERGED; i += 1) {
        const long at = first + i;
        if (i < merged.count && at < sort.count) {
            const long index = long(order[slice + merged.places[i]]);
            values[offsets[1] + at * sort.slices.along[1]] = x[offsets[0] + index * sort.slices.along[0]];
            indices[offsets[2] + at * sort.slices.along[2]] = index;
        }
    }
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
        device const T *, device T *, device long *, device const typename Key<T>::type *, device const uint *, \
        constant Sort &, uint2);

SORT(float)
SORT(half)
SORT(bfloat)
SORT(long)
SORT(int)
SORT(uint)
SORT(char)
SORT(uchar)
SORT(bool)
