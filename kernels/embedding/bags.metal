// Bags of rows of a table. With i over the indices of a bag that are not padding:
//     sum   out[bag, :] = Σ factor[i] table[index[i], :]
//     mean  the sum divided by the number of indices
//     max   the maximum of each column
// and the gradients of the table (for each row, the sum over the indices that select it) and of the factors.
//
// One thread computes one element, without an intermediate matrix of all rows and without atomics. For the gradient of
// the table, the host first sorts the indices stably (kernels/sorting). A threadgroup finds the runs of equal indices
// of its rows by bisection and writes each row once, or zeros if no index selects it. An element is summed in the order
// of the indices, in float32 with compensation, so every run gives the same bits.
//
// The host checks indices and offsets. Until it reports an error, indices out of range are ignored.

#include <metal_stdlib>
using namespace metal;

#include "generated/bag_mode.h"
#include "generated/offsets.h"
#include "indexing/sorted.h"

// - total: number of indices
// - length: indices per bag; -1 if offsets give the start of each bag and the end of the last
// - padding: an index that is ignored, or -1
// - table: strides of rows and columns, offset of the first element in the binding
// - gradients: the same
#include "generated/bags.h"

constant uint MODE [[function_constant(0)]];      // the value of a BagMode
constant uint WEIGHTED [[function_constant(1)]];  // 1 if indices have factors

#define ROWS_OF_GROUP 8  // rows of the table per threadgroup

inline long offset_in(constant long (&matrix)[3], long row, long column) {
    return matrix[2] + row * matrix[0] + column * matrix[1];
}

// For each mode: whether it takes the maximum, the result computed from the sum, and each row's share of a bag's
// gradient. A mode that is missing here does not compile.
template <BagMode name> struct Mode;
#define MODE_ROW(name, largest, of_sum, share)                                            \
    template <> struct Mode<name> {                                                       \
        static bool is_largest() { return largest; }                                      \
        static float result(float sum, long size) { return of_sum; }                      \
        static float share_of(float gradient, device const float *size) { return share; } \
    };

MODE_ROW(BAG_MODE_SUM, false, sum, gradient)
MODE_ROW(BAG_MODE_MEAN, false, size > 0 ? sum / float(size) : sum, gradient / *size)
MODE_ROW(BAG_MODE_MAX, true, sum, gradient)

inline bool is_largest() {
    switch (MODE) { BAG_MODE_NAMES(ORCHARD_CASE, Mode, is_largest()) }
    return false;
}
inline float bag_result(float sum, long size) {
    switch (MODE) { BAG_MODE_NAMES(ORCHARD_CASE, Mode, result(sum, size)) }
    return NAN;
}
inline float share_of(float gradient, device const float *size) {
    switch (MODE) { BAG_MODE_NAMES(ORCHARD_CASE, Mode, share_of(gradient, size)) }
    return NAN;
}

inline bool counts(constant Bags &p, long row) { return row >= 0 && row < p.rows && row != p.padding; }

// table    [[buffer(3)]]  [rows, width], the elements that its strides reach
// indices, factors  [[buffer(0, 2)]]  [total], dense; factors if there are any
// offsets  [[buffer(1)]]  [bags + 1], ascending
// out      [[buffer(4)]]  [bags, width]
// sizes    [[buffer(5)]]  [bags]
// best     [[buffer(6)]]  [bags, width], for max only: the position of the index with the maximum, -1 in an empty bag
// grid: threads [width, bags]
template <typename T, typename Index>
kernel void bag_rows(
    device const Index *indices [[buffer(0)]],
    device const Index *offsets [[buffer(1)]],
    device const T *factors [[buffer(2)]],
    device const T *table [[buffer(3)]],
    device T *out [[buffer(4)]],
    device float *sizes [[buffer(5)]],
    device long *best [[buffer(6)]],
    constant Bags &p [[buffer(7)]],
    uint2 position [[thread_position_in_grid]]) {
    long column = position.x;
    long bag = position.y;
    if (bag >= p.bags) return;
    long begin = p.length >= 0 ? bag * p.length : clamp(long(offsets[bag]), 0l, p.total);
    long end = p.length >= 0 ? begin + p.length : clamp(long(offsets[bag + 1]), begin, p.total);
    FloatSum sum;
    long size = 0;
    long largest = -1;
    T value = T(0.0f);
    for (long i = begin; i < end; i += 1) {
        long row = long(indices[i]);
        if (!counts(p, row)) continue;
        size += 1;
        if (column >= p.width) continue;
        T entry = table[offset_in(p.table, row, column)];
        if (!is_largest()) {
            sum.add(WEIGHTED != 0 ? float(entry) * float(factors[i]) : float(entry));
        } else if (largest < 0 || float(entry) > float(value) || (isnan(float(entry)) && !isnan(float(value)))) {
            value = entry;
            largest = i;
        }
    }
    if (column == 0) sizes[bag] = float(size);
    if (column >= p.width) return;
    long element = bag * p.width + column;
    if (is_largest()) {
        out[element] = value;
        best[element] = largest;
    } else {
        out[element] = T(bag_result(sum.result(), size));
    }
}

// numbers  [[buffer(1)]]  [total]: the bag of each index, -1 if it is in none
template <typename Index>
kernel void bag_numbers(
    device const Index *offsets [[buffer(0)]],
    device long *numbers [[buffer(1)]],
    constant Bags &p [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
    if (long(index) >= p.total) return;
    long bag = lower_bound(offsets, 0, 1, p.bags + 1, long(index) + 1) - 1;
    numbers[index] = bag < p.bags ? bag : -1;
}

inline long bag_of(constant Bags &p, device const long *numbers, long index) {
    return p.length > 0 ? index / p.length : numbers[index];
}

// keys, order  [[buffer(0, 1)]]  [total], the sorted indices and the position of each before sorting
// numbers      [[buffer(2)]]  the bag of each index, if there are offsets; else any buffer
// factors      [[buffer(3)]]  of the indices, if they have any
// gradients    [[buffer(4)]]  [bags, width], the elements that its strides reach
// sizes, best  [[buffer(5, 6)]]  as above: for means, and for maxima
// out          [[buffer(7)]]  [rows, width]
// runs         [[threadgroup(0)]]  the first key of each row, and of the row after the last
// grid: threadgroups [rows / ROWS_OF_GROUP, width / threads]
template <typename T, typename Index>
kernel void bag_gradient(
    device const Index *keys [[buffer(0)]],
    device const long *order [[buffer(1)]],
    device const long *numbers [[buffer(2)]],
    device const T *factors [[buffer(3)]],
    device const T *gradients [[buffer(4)]],
    device const float *sizes [[buffer(5)]],
    device const long *best [[buffer(6)]],
    device T *out [[buffer(7)]],
    constant Bags &p [[buffer(8)]],
    threadgroup long *runs [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
    const long first_row = long(group.x) * ROWS_OF_GROUP;
    const int rows = int(min(p.rows - first_row, long(ROWS_OF_GROUP)));
    if (int(thread_index) <= rows) runs[thread_index] = lower_bound(keys, 0, 1, p.total, first_row + thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const long column = long(group.y) * threads.x + thread_index;
    for (int r = 0; r < rows; r += 1) {
        const long row = first_row + r;
        const long end = row == p.padding ? 0 : runs[r + 1];
        FloatSum sum;
        for (long first = runs[r]; first < end; first += 32) {
            // Each lane reads the position of one index and finds its bag, for all lanes.
            const long place = first + lane < end ? order[first + lane] : 0;
            const uint2 place_bag = as_type<uint2>(bag_of(p, numbers, place));
            const int count = int(min(end - first, 32l));
            for (ushort i = 0; i < count; i += 1) {
                const long index = as_type<long>(simd_shuffle(as_type<uint2>(place), i));
                const long bag = as_type<long>(simd_shuffle(place_bag, i));
                if (bag < 0 || column >= p.width) continue;
                if (is_largest() && best[bag * p.width + column] != index) continue;
                float gradient = share_of(float(gradients[offset_in(p.gradients, bag, column)]), sizes + bag);
                if (WEIGHTED != 0) gradient *= float(factors[index]);
                sum.add(gradient);
            }
        }
        if (column < p.width) out[row * p.width + column] = T(sum.result());
    }
}

// indices, numbers, table, gradients  [[buffer(0, 1, 2, 3)]]  as above
// out  [[buffer(4)]]  [total]: the dot product of each index's row with the gradient of its bag
// grid: threads [32 · total], one SIMD-group per index
template <typename T, typename Index>
kernel void bag_factors(
    device const Index *indices [[buffer(0)]],
    device const long *numbers [[buffer(1)]],
    device const T *table [[buffer(2)]],
    device const T *gradients [[buffer(3)]],
    device T *out [[buffer(4)]],
    constant Bags &p [[buffer(5)]],
    uint group [[threadgroup_position_in_grid]],
    uint simd [[simdgroup_index_in_threadgroup]],
    uint simds [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    long index = long(group) * simds + simd;
    if (index >= p.total) return;
    long row = long(indices[index]);
    long bag = bag_of(p, numbers, index);
    float sum = 0.0f;
    if (bag >= 0 && counts(p, row)) {
        for (long column = lane; column < p.width; column += 32) {
            float value = float(table[offset_in(p.table, row, column)]);
            sum += value * float(gradients[offset_in(p.gradients, bag, column)]);
        }
    }
    sum = simd_sum(sum);
    if (lane == 0) out[index] = T(sum);
}

// first[0] = min(first[0], the number of the first invalid offset). An offset is invalid if it is less than the one
// before it or more than `total`; the first offset must be 0.
//
// offsets  [[buffer(0)]]  dense
// first    [[buffer(1)]]  one number, 2^32 - 1 if no offset is invalid
template <typename Index>
kernel void find_descent(
    device const Index *offsets [[buffer(0)]],
    device atomic_uint *first [[buffer(1)]],
    constant Offsets &p [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
    if (long(index) >= p.count) return;
    long offset = long(offsets[index]);
    bool wrong = offset > p.total || (index == 0 ? offset != 0 : offset < long(offsets[index - 1]));
    if (wrong) atomic_fetch_min_explicit(first, index, memory_order_relaxed);
}

#define BAGS_OF(Index)                                                              \
    template [[host_name("bag_numbers_" #Index)]] kernel void bag_numbers<Index>(   \
        device const Index *, device long *, constant Bags &, uint);                \
    template [[host_name("find_descent_" #Index)]] kernel void find_descent<Index>( \
        device const Index *, device atomic_uint *, constant Offsets &, uint);

BAGS_OF(long)
BAGS_OF(int)

#define BAGS(T, Index)                                                                                                 \
    template [[host_name("bag_rows_" #T "_" #Index)]] kernel void bag_rows<T, Index>(                                  \
        device const Index *, device const Index *, device const T *, device const T *, device T *, device float *,    \
        device long *, constant Bags &, uint2);                                                                        \
    template [[host_name("bag_gradient_" #T "_" #Index)]] kernel void bag_gradient<T, Index>(                          \
        device const Index *, device const long *, device const long *, device const T *, device const T *,            \
        device const float *, device const long *, device T *, constant Bags &, threadgroup long *, uint2, uint, uint, \
        uint2);                                                                                                        \
    template [[host_name("bag_factors_" #T "_" #Index)]] kernel void bag_factors<T, Index>(                            \
        device const Index *, device const long *, device const T *, device const T *, device T *, constant Bags &,    \
        uint, uint, uint, uint);

#define BAGS_WITH(T) \
    BAGS(T, long)    \
    BAGS(T, int)

BAGS_WITH(float)
BAGS_WITH(half)
BAGS_WITH(bfloat)
