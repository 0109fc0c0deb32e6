// output[…, d, …] = x[…, d, …] combined with source[…, i, …] for all i with index[…, i, …] = d, in ascending order of
// i: their sum, product, maximum or minimum, or the last of them.
//
// The host first sorts the indices along the axis stably (kernels/sorting): `keys` are the sorted indices, and `order`
// is the position of each before sorting. One thread computes one element of x: it finds the run of equal keys by
// bisection and iterates over it. So no atomics are needed, and every run gives the same bits. An index out of range
// matches no element.
//
// Sums and products of floats are in float32 with a second number for rounding errors, so that the error does not grow
// with the length of a run. Integers wrap around; a sum of bools is whether any is true.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "generated/scattering.h"
#include "indexing/sorted.h"

// - loop: operands: x, output, source and keys (the last two with stride 0 along the indexed axis)
// - inner: elements of the loop between indices of the indexed axis
// - size: length of the indexed axis of x
// - length: length of the indexed axis of source, keys and order
// - source_stride: stride of source along the indexed axis
// - key_stride: stride of keys and order along the indexed axis
// - output_stride: stride of output along the indexed axis, if output has the source's shape
#include "generated/scatter.h"

constant uint WAY [[function_constant(0)]];
constant uint INCLUDES_SELF [[function_constant(1)]];  // if 0, x is kept only if no index selects it

template <typename T> struct IntegerSum {
    T sum = 0;

    void add(T value) { sum = T(sum + value); }
    T result() const { return sum; }
};

template <> struct IntegerSum<bool> {
    bool sum = false;

    void add(bool value) { sum = sum || value; }
    bool result() const { return sum; }
};

template <typename T> struct IntegerProduct {
    T product = 1;

    void add(T value) { product = T(product * value); }
    T result() const { return product; }
};

template <typename T> struct SumOf {
    using type = IntegerSum<T>;
    using product = IntegerProduct<T>;
};
template <> struct SumOf<float> {
    using type = FloatSum;
    using product = FloatProduct;
};
template <> struct SumOf<half> {
    using type = FloatSum;
    using product = FloatProduct;
};
template <> struct SumOf<bfloat> {
    using type = FloatSum;
    using product = FloatProduct;
};

struct Larger {
    template <typename T> static bool is_better(T value, T best) { return value > best; }
};
struct Smaller {
    template <typename T> static bool is_better(T value, T best) { return value < best; }
};

// NaN counts as both larger and smaller than any number.
template <typename T, typename Order> struct Extremum {
    T best = T(0);
    bool is_empty = true;

    void add(T value) {
        best = is_empty || Order::is_better(value, best) || !(value == value) ? value : best;
        is_empty = false;
    }
    T result() const { return best; }
};

// The elements of source that belong to a run of equal keys.
template <typename T> struct Run {
    device const T *source;     // the first element along the indexed axis
    device const long *places;  // position of the first element of the run, followed by the others
    long source_stride;
    long key_stride;
    long count;

    T at(long i) const { return source[places[i * key_stride] * source_stride]; }
};

template <typename State, typename T> inline T put_together(State state, T element, Run<T> run) {
    if (INCLUDES_SELF != 0) {
        state.add(element);
    }
    for (long i = 0; i < run.count; i += 1) {
        state.add(run.at(i));
    }
    return T(state.result());
}

// The operation with which each Scattering combines elements. A Scattering that is missing here does not compile.
template <Scattering name> struct Scattered;
template <> struct Scattered<SCATTERING_SUM> {
    template <typename T> static T of(T element, Run<T> run) {
        return put_together(typename SumOf<T>::type(), element, run);
    }
};
template <> struct Scattered<SCATTERING_PROD> {
    template <typename T> static T of(T element, Run<T> run) {
        return put_together(typename SumOf<T>::product(), element, run);
    }
};
template <> struct Scattered<SCATTERING_AMAX> {
    template <typename T> static T of(T element, Run<T> run) {
        return put_together(Extremum<T, Larger>(), element, run);
    }
};
template <> struct Scattered<SCATTERING_AMIN> {
    template <typename T> static T of(T element, Run<T> run) {
        return put_together(Extremum<T, Smaller>(), element, run);
    }
};
template <> struct Scattered<SCATTERING_LAST> {
    template <typename T> static T of(T, Run<T> run) { return run.at(run.count - 1); }
};

template <typename T> inline T scattered(T element, Run<T> run) {
    switch (WAY) { SCATTERING_NAMES(ORCHARD_CASE, Scattered, of(element, run)) }
    return T(0);
}

// Computes the offset of an element in each operand, and its run. Returns false beyond the last element.
template <typename T, typename Index>
inline bool find_run(
    device const T *source,
    device const Index *keys,
    device const long *order,
    constant Scatter &scatter,
    ulong element,
    thread long (&offsets)[4],
    thread Run<T> &run) {
    if (element >= ulong(scatter.loop.count)) return false;
    loop_places(scatter.loop, element, offsets);
    const long first = offsets[3];
    const long destination = long(element / ulong(scatter.inner) % ulong(scatter.size));
    const long begin = lower_bound(keys, first, scatter.key_stride, scatter.length, destination);
    const long end = lower_bound(keys, first, scatter.key_stride, scatter.length, destination + 1);
    run = {
        source + offsets[2], order + first + begin * scatter.key_stride, scatter.source_stride, scatter.key_stride,
        end - begin};
    return true;
}

// x, source    [[buffer(0, 1)]]  the elements that their strides reach
// keys, order  [[buffer(2, 3)]]  dense, with the same layout
// output       [[buffer(4)]]     the elements that its strides reach
// scatter      [[buffer(5)]]
#define SCATTER_ARGUMENTS(T, Index)                                                                                \
    device const T *x [[buffer(0)]], device const T *source [[buffer(1)]], device const Index *keys [[buffer(2)]], \
        device const long *order [[buffer(3)]], device T *output [[buffer(4)]],                                    \
        constant Scatter &scatter [[buffer(5)]], uint2 position [[thread_position_in_grid]],                       \
        uint2 grid [[threads_per_grid]]

template <typename T, typename Index> kernel void scatter(SCATTER_ARGUMENTS(T, Index)) {
    long offsets[4];
    Run<T> run;
    if (!find_run(source, keys, order, scatter, loop_element(position, grid), offsets, run)) return;
    T value = x[offsets[0]];
    output[offsets[1]] = run.count == 0 ? value : scattered(value, run);
}

// output[…, i, …] = the product of all elements that are scattered to the same element as source[…, i, …], except
// source[…, i, …] itself. A thread multiplies the elements of the run before it, and then those after it.
template <typename T, typename Index> kernel void scatter_others(SCATTER_ARGUMENTS(T, Index)) {
    long offsets[4];
    Run<T> run;
    if (!find_run(source, keys, order, scatter, loop_element(position, grid), offsets, run)) return;
    device T *to = output + offsets[1];
    typename SumOf<T>::product before;
    if (INCLUDES_SELF != 0) {
        before.add(x[offsets[0]]);
    }
    for (long i = 0; i < run.count; i += 1) {
        to[run.places[i * scatter.key_stride] * scatter.output_stride] = T(before.result());
        before.add(run.at(i));
    }
    typename SumOf<T>::product after;
    for (long i = run.count - 1; i >= 0; i -= 1) {
        long place = run.places[i * scatter.key_stride] * scatter.output_stride;
        to[place] = T(float(to[place]) * float(after.result()));
        after.add(run.at(i));
    }
}

#define SCATTER(name, T, Index)                                                                                        \
    template [[host_name(#name "_" #T "_" #Index)]] kernel void name<T, Index>(                                        \
        device const T *, device const T *, device const Index *, device const long *, device T *, constant Scatter &, \
        uint2, uint2);

#define SCATTER_TO(T)         \
    SCATTER(scatter, T, long) \
    SCATTER(scatter, T, int)

SCATTER_TO(float)
SCATTER_TO(half)
SCATTER_TO(bfloat)
SCATTER_TO(long)
SCATTER_TO(int)
SCATTER_TO(uint)
SCATTER_TO(char)
SCATTER_TO(uchar)
SCATTER_TO(bool)

SCATTER(scatter_others, float, long)
SCATTER(scatter_others, float, int)
