// The first k elements of each line of x in order (values), and where each was (indices). Equal elements stay in the order of their
// indices; NaN counts as larger than all numbers.
//
//   sort_line    a bitonic network (Batcher 1968) in threadgroup memory, for lines of at most BLOCK elements. For longer ones:
//   sort_block   1. the same for each block of BLOCK elements
//   sort_merge   2. two runs of L become one of 2L, L = BLOCK, 2 BLOCK, …: each record counts those of the other run before it
//   sort_finish  3. the first k are taken
//
// A record is a key (keys.h; all bits turned for descending) and an index. The network compares both, so that no two records are equal and
// it gives the stable order, though it is not stable in itself; merging favours the left run.

#include <metal_stdlib>
using namespace metal;

#include "sorting/keys.h"

#define BLOCK 1024
#define MAX_RANK 8

struct Sort {
    long shape[MAX_RANK];       // of the lines: all axes but the sorted one
    long strides[3][MAX_RANK];  // of x, values, indices along those axes
    long start[3];              // of the first line, from where each is bound
    long along[3];              // stride along the line
    long rank;
    long length;                // of a line
    long count;                 // k
    long descending;            // 1 or 0
    long run;                   // merge: L
};

// Where a line begins in x, values and indices.
inline void line_places(constant Sort &sort, uint line, thread long (&places)[3]) {
    for (int operand = 0; operand < 3; operand += 1) {
        places[operand] = sort.start[operand];
    }
    ulong rest = line;
    for (long axis = sort.rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(sort.shape[axis]);
        long index = long(rest % size);
        rest /= size;
        for (int operand = 0; operand < 3; operand += 1) {
            places[operand] += index * sort.strides[operand][axis];
        }
    }
}

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

// Loads block number `block` of the line at x, puts it in order, and returns how many records it has.
template <typename T, typename K>
inline uint sorted_block(
    device const T *x, constant Sort &sort, uint block, threadgroup K *keys, threadgroup uint *order, uint lane, uint threads) {
    long first = long(block) * BLOCK;
    uint used = uint(min(sort.length - first, long(BLOCK)));
    uint capacity = 1;
    while (capacity < used) {
        capacity *= 2;
    }
    for (uint at = lane; at < capacity; at += threads) {
        // What fills the block up comes behind every record: the largest key, and indices beyond theirs.
        K key = ~K(0);
        if (at < used) {
            K own = Key<T>::of(x[(first + at) * sort.along[0]]);
            key = sort.descending != 0 ? ~own : own;
        }
        keys[at] = key;
        order[at] = uint(first) + at;
    }
    sort_records(keys, order, capacity, lane, threads);
    return used;
}

// Lines of at most BLOCK elements, one threadgroup each: x counts the lines.
// x                [[buffer(0)]]     the elements that its strides reach
// values, indices  [[buffer(1, 2)]]  the elements that their strides reach
template <typename T>
kernel void sort_line(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    constant Sort &sort [[buffer(3)]],
    uint line [[threadgroup_position_in_grid]],
    uint lane [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
    using K = typename Key<T>::type;
    threadgroup K keys[BLOCK];
    threadgroup uint order[BLOCK];
    long places[3];
    line_places(sort, line, places);
    sorted_block(x + places[0], sort, 0, keys, order, lane, threads);
    for (long at = lane; at < sort.count; at += threads) {
        long index = long(order[at]);
        values[places[1] + at * sort.along[1]] = x[places[0] + index * sort.along[0]];
        indices[places[2] + at * sort.along[2]] = index;
    }
}

// Longer lines, one threadgroup a block: x counts the blocks of a line, y the lines.
// x            [[buffer(0)]]     the elements that its strides reach
// keys, order  [[buffer(1, 2)]]  lines × length
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
    long places[3];
    line_places(sort, group.y, places);
    uint used = sorted_block(x + places[0], sort, group.x, block_keys, block_order, lane.x, threads.x);
    long first = long(group.y) * sort.length + long(group.x) * BLOCK;
    for (uint at = lane.x; at < used; at += threads.x) {
        keys[first + at] = block_keys[at];
        order[first + at] = block_order[at];
    }
}

// The number of keys of a sorted run that are below `key`, or at most `key`.
template <typename K>
inline long count_before(device const K *run, long length, K key, bool equal_too) {
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

// keys, order            [[buffer(0, 1)]]  lines × length, runs of `run` in order
// new_keys, new_order    [[buffer(2, 3)]]  the same, runs of twice that
// One thread a record: x counts those of a line, y the lines.
template <typename K>
kernel void sort_merge(
    device const K *keys [[buffer(0)]],
    device const uint *order [[buffer(1)]],
    device K *new_keys [[buffer(2)]],
    device uint *new_order [[buffer(3)]],
    constant Sort &sort [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    long at = long(position.x);
    long line = long(position.y) * sort.length;
    long start = at / (2 * sort.run) * (2 * sort.run);
    long middle = min(start + sort.run, sort.length);
    long end = min(start + 2 * sort.run, sort.length);
    K key = keys[line + at];
    long rank = at < middle ? at - start + count_before(keys + line + middle, end - middle, key, false)
                            : at - middle + count_before(keys + line + start, middle - start, key, true);
    new_keys[line + start + rank] = key;
    new_order[line + start + rank] = order[line + at];
}

// x, values, indices  [[buffer(0, 1, 2)]]  the elements that their strides reach
// order               [[buffer(3)]]        lines × length, in order
// One thread an element of the result: x counts those of a line, y the lines.
template <typename T>
kernel void sort_finish(
    device const T *x [[buffer(0)]],
    device T *values [[buffer(1)]],
    device long *indices [[buffer(2)]],
    device const uint *order [[buffer(3)]],
    constant Sort &sort [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    long places[3];
    line_places(sort, position.y, places);
    long at = long(position.x);
    long index = long(order[long(position.y) * sort.length + at]);
    values[places[1] + at * sort.along[1]] = x[places[0] + index * sort.along[0]];
    indices[places[2] + at * sort.along[2]] = index;
}

#define MERGE(K) \
    template [[host_name("sort_merge_" #K)]] kernel void sort_merge<K>(device const K *, device const uint *, device K *, device uint *, constant Sort &, uint2);

MERGE(uint)
MERGE(ulong)

#define SORT(T)                                                                                        \
    template [[host_name("sort_line_" #T)]] kernel void sort_line<T>(                                  \
        device const T *, device T *, device long *, constant Sort &, uint, uint, uint);               \
    template [[host_name("sort_block_" #T)]] kernel void sort_block<T>(                                \
        device const T *, device typename Key<T>::type *, device uint *, constant Sort &, uint2, uint2, uint2); \
    template [[host_name("sort_finish_" #T)]] kernel void sort_finish<T>(                              \
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
