// output[…, d, …] = x[…, d, …] + Σ source[…, i, …] over the i with index[…, i, …] = d, in ascending order of i.
//
// The host has sorted the indices along the axis stably before (kernels/sorting): `keys` are the indices in order,
// `order` says where each was. One thread an element of the output: it finds its run of keys by bisection and sums it.
// Nothing is shared, so no atomics are needed and every run gives the same bits. An index out of range is no element's
// key.
//
// Floats are summed in float32 with a second number for what each addition loses (Neumaier 1974), so that the error
// does not grow with the length of a run. Integers wrap around; a sum of bools is whether any is true.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "indexing/sorted.h"

struct ScatterAdd {
    LoopNest loop;       // operands: x, output, source and keys (both stride 0 along the axis that is indexed)
    long inner;          // elements of the loop from one index of that axis to the next
    long size;           // of x along it
    long length;         // of source, keys and order along it
    long source_stride;  // of source along it
    long key_stride;     // of keys and order along it
};

template <typename T> struct IntegerSum {
    T sum = 0;

    void add(T value) { sum += value; }
    T result() const { return sum; }
};

template <> struct IntegerSum<bool> {
    bool sum = false;

    void add(bool value) { sum = sum || value; }
    bool result() const { return sum; }
};

template <typename T> struct SumOf {
    using type = IntegerSum<T>;
};
template <> struct SumOf<float> {
    using type = FloatSum;
};
template <> struct SumOf<half> {
    using type = FloatSum;
};
template <> struct SumOf<bfloat> {
    using type = FloatSum;
};

// x, source    [[buffer(0, 1)]]  the elements that their strides reach
// keys, order  [[buffer(2, 3)]]  dense, of one layout
// output       [[buffer(4)]]     the elements that its strides reach
// scatter      [[buffer(5)]]
template <typename T, typename Index>
kernel void scatter_add(
    device const T *x [[buffer(0)]],
    device const T *source [[buffer(1)]],
    device const Index *keys [[buffer(2)]],
    device const long *order [[buffer(3)]],
    device T *output [[buffer(4)]],
    constant ScatterAdd &scatter [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(scatter.loop.count)) {
        return;
    }
    long offsets[4];
    loop_places(scatter.loop, element, offsets);
    long destination = long(element / ulong(scatter.inner) % ulong(scatter.size));
    typename SumOf<T>::type sum;
    sum.add(x[offsets[0]]);
    long first = offsets[3];
    for (long at = lower_bound(keys, first, scatter.key_stride, scatter.length, destination);
         at < scatter.length && long(keys[first + at * scatter.key_stride]) == destination; at += 1) {
        sum.add(source[offsets[2] + order[first + at * scatter.key_stride] * scatter.source_stride]);
    }
    output[offsets[1]] = T(sum.result());
}

#define SCATTER_ADD(T, Index)                                                                      \
    template [[host_name("scatter_add_" #T "_" #Index)]] kernel void scatter_add<T, Index>(        \
        device const T *, device const T *, device const Index *, device const long *, device T *, \
        constant ScatterAdd &, uint2, uint2);

#define SCATTER_ADD_TO(T) \
    SCATTER_ADD(T, long)  \
    SCATTER_ADD(T, int)

SCATTER_ADD_TO(float)
SCATTER_ADD_TO(half)
SCATTER_ADD_TO(bfloat)
SCATTER_ADD_TO(long)
SCATTER_ADD_TO(int)
SCATTER_ADD_TO(uint)
SCATTER_ADD_TO(char)
SCATTER_ADD_TO(uchar)
SCATTER_ADD_TO(bool)
