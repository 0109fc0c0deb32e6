// out[k] along a slice is computed from a carried state h; the function constant `operation` (a `Scan`) selects how:
//   cumsum             h = h + x[k]
//   cumprod            h = h · x[k]
//   exclusiveCumprod   the product of the elements before k
//   shift              x[k - 1]; 0 for k = 0
//   recurrence         h = a[k] · h + x[k]
//   shiftedRecurrence  h = a[k - 1] · h + x[k]
//
// Floats are carried in float32, together with the rounding error of each addition (Knuth's TwoSum) and each product
// (extended.h), so that the error does not grow with the length. Running products also have a wider range, so that
// later factors can bring them back into float32's range. Integers are carried in 64 bits.
//
// In `scan` each thread scans a slice; adjacent elements belong to adjacent slices. In `scan_long` each threadgroup
// scans a slice of adjacent elements, 1024 at a time, four of them per thread.

#include <metal_stdlib>
using namespace metal;

#include "common/extended.h"
#include "common/slices.h"
#include "generated/scan.h"

constant uint operation [[function_constant(0)]];
constant uint quads [[function_constant(1)]];  // for scan_long: 1 if a thread loads four elements at once

template <typename T> struct Carrier {
    using number = long;
    using result = long;
};
template <> struct Carrier<float> {
    using number = float;
    using result = float;
};
template <> struct Carrier<half> {
    using number = float;
    using result = half;
};
template <> struct Carrier<bfloat> {
    using number = float;
    using result = bfloat;
};

// (value + lost) · 2^exponent; the exponent is 0 except for products.
template <typename Number> struct Carried {
    Number value;
    Number lost;
    int exponent;
};

inline Carried<float> plus(Carried<float> a, Carried<float> b) {
    float sum = a.value + b.value;
    float part = sum - a.value;
    float lost = (a.value - (sum - part)) + (b.value - part);
    return {sum, isfinite(sum) ? a.lost + b.lost + lost : 0.0f, 0};
}
inline Carried<long> plus(Carried<long> a, Carried<long> b) { return {long(ulong(a.value) + ulong(b.value)), 0, 0}; }

inline Carried<float> times(Carried<float> a, Carried<float> b) {
    ExtendedProduct product = multiplied({a.value, a.lost, a.exponent}, {b.value, b.lost, b.exponent});
    return {product.value, product.lost, product.exponent};
}
inline Carried<long> times(Carried<long> a, Carried<long> b) { return {long(ulong(a.value) * ulong(b.value)), 0, 0}; }

// For each scan: the new carried state, computed from the state before element k and the element's contribution.
// `product`: whether products are carried; `exclusive`: whether an element's result is the state before it;
// `coefficients`: whether there are coefficients; `lag`: element k uses a[k - lag]. A scan that is missing here does
// not compile.
template <Scan name> struct Step;
#define STEP(name, joined, product, exclusive, coefficients, lag)                                            \
    template <> struct Step<name> {                                                                          \
        template <typename Number> static Carried<Number> of(Carried<Number> before, Carried<Number> next) { \
            return joined;                                                                                   \
        }                                                                                                    \
        static bool is_product() { return product; }                                                         \
        static bool is_exclusive() { return exclusive; }                                                     \
        static bool has_coefficients() { return coefficients; }                                              \
        static long lag_of() { return lag; }                                                                 \
    };

STEP(SCAN_CUMSUM, plus(before, next), false, false, false, 0)
STEP(SCAN_CUMPROD, times(before, next), true, false, false, 0)
STEP(SCAN_EXCLUSIVE_CUMPROD, times(before, next), true, true, false, 0)
STEP(SCAN_SHIFT, next, false, true, false, 0)
STEP(SCAN_RECURRENCE, next, false, false, true, 0)
STEP(SCAN_SHIFTED_RECURRENCE, next, false, false, true, 1)

template <typename Number> inline Carried<Number> joined(Carried<Number> before, Carried<Number> next) {
    switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, of(before, next)) }
    return before;
}
inline bool is_product() {
    switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, is_product()) }
    return false;
}
inline bool is_exclusive() {
    switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, is_exclusive()) }
    return false;
}
inline bool has_coefficients() {
    switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, has_coefficients()) }
    return false;
}
inline long coefficient_lag() {
    switch (operation) { SCAN_NAMES(ORCHARD_CASE, Step, lag_of()) }
    return 0;
}

inline Carried<float> carried_of(float x) {
    if (!is_product()) return {x, 0.0f, 0};
    ExtendedProduct product = product_of(x);
    return {product.value, product.lost, product.exponent};
}
inline Carried<long> carried_of(long x) { return {x, 0, 0}; }

// Returns a coefficient times the carried state. If the product is not finite, there is no rounding error.
inline Carried<float> weighted(float a, Carried<float> h) {
    float product = a * h.value;
    return {product, isfinite(product) ? fma(a, h.value, -product) + a * h.lost : 0.0f, 0};
}
inline Carried<long> weighted(long a, Carried<long> h) { return times({a, 0, 0}, h); }

inline float shown(Carried<float> x) {
    return is_product() ? rounded(ExtendedProduct{x.value, x.lost, x.exponent}) : x.value + x.lost;
}
inline long shown(Carried<long> x) { return x.value; }

template <typename T>
inline void scan_slice(
    device const T *x,
    device const T *a,
    device typename Carrier<T>::result *out,
    constant Slices<3> &slices,
    ulong slice) {
    using Number = typename Carrier<T>::number;
    using Result = typename Carrier<T>::result;
    if (slice >= ulong(slices.nest.count)) return;
    long offsets[3];
    slice_offsets(slices, slice, offsets);
    Carried<Number> carried = carried_of(Number(is_product() ? 1 : 0));
    for (long k = 0; k < slices.length; k += 1) {
        Carried<Number> before = carried;
        Carried<Number> next = carried_of(Number(x[offsets[0] + k * slices.along[0]]));
        if (has_coefficients() && k > 0) {
            long at = k - coefficient_lag();
            next = plus(next, weighted(Number(a[offsets[1] + at * slices.along[1]]), before));
        }
        carried = joined(before, next);
        out[offsets[2] + k * slices.along[2]] = Result(shown(is_exclusive() ? before : carried));
    }
}

inline float from_below(float x, ushort delta) { return simd_shuffle_up(x, delta); }
inline float from_lane(float x, ushort lane) { return simd_shuffle(x, lane); }
// Shuffles move at most 32 bits.
inline long from_below(long x, ushort delta) {
    uint low = simd_shuffle_up(uint(ulong(x)), delta);
    uint high = simd_shuffle_up(uint(ulong(x) >> 32), delta);
    return long(ulong(high) << 32 | ulong(low));
}
inline long from_lane(long x, ushort lane) {
    uint low = simd_shuffle(uint(ulong(x)), lane);
    uint high = simd_shuffle(uint(ulong(x) >> 32), lane);
    return long(ulong(high) << 32 | ulong(low));
}

template <typename Number> inline Carried<Number> from_below(Carried<Number> x, ushort delta) {
    return {
        from_below(x.value, delta), from_below(x.lost, delta), is_product() ? simd_shuffle_up(x.exponent, delta) : 0};
}
template <typename Number> inline Carried<Number> from_lane(Carried<Number> x, ushort lane) {
    return {from_lane(x.value, lane), from_lane(x.lost, lane), is_product() ? simd_shuffle(x.exponent, lane) : 0};
}

// Computes the inclusive scan over `lanes` lanes, separately for each group of that many lanes in a SIMD-group.
template <typename Number> inline Carried<Number> scanned(Carried<Number> number, ushort lane, ushort lanes) {
    for (ushort delta = 1; delta < lanes; delta *= 2) {
        const Carried<Number> below = from_below(number, delta);
        if (lane % lanes >= delta) number = joined(below, number);
    }
    return number;
}

#define GROUPS 8
#define HELD 4
#define ROUND (GROUPS * 32 * HELD)

// Returns the lowest offset of four elements, relative to the first element of a slice.
inline long lowest(long k, long along) { return along > 0 ? k : -(k + HELD - 1); }

// Loads a thread's elements of a slice from k on, and 0 beyond its end. If the axis is read backwards, the last of
// these elements has the lowest address.
template <typename T>
inline void load_held(device const T *slice, long along, long k, long length, thread T (&elements)[HELD]) {
    if (quads != 0 && k < length) {
        const vec<T, 4> four = *reinterpret_cast<device const vec<T, 4> *>(slice + lowest(k, along));
        for (int i = 0; i < HELD; i += 1) elements[i] = along > 0 ? four[i] : four[HELD - 1 - i];
    } else {
        for (int i = 0; i < HELD; i += 1) elements[i] = k + i < length ? slice[(k + i) * along] : T(0);
    }
}

template <typename T>
inline void store_held(device T *slice, long along, long k, long length, thread const T (&elements)[HELD]) {
    if (quads != 0 && k < length) {
        vec<T, 4> four;
        for (int i = 0; i < HELD; i += 1) four[i] = along > 0 ? elements[i] : elements[HELD - 1 - i];
        *reinterpret_cast<device vec<T, 4> *>(slice + lowest(k, along)) = four;
    } else {
        for (int i = 0; i < HELD; i += 1) {
            if (k + i < length) slice[(k + i) * along] = elements[i];
        }
    }
}

// For cumsum and cumprod. A thread scans its elements, a SIMD-group scans its threads' totals, and each SIMD-group
// scans the totals of all SIMD-groups. totals [2][GROUPS] has the totals of this round and of the previous one, which
// other SIMD-groups may still read.
template <typename T>
inline void scan_long_slice(
    device const T *x,
    device typename Carrier<T>::result *out,
    constant Slices<3> &slices,
    ulong slice,
    threadgroup Carried<typename Carrier<T>::number> *totals,
    uint thread_index) {
    using Number = typename Carrier<T>::number;
    using Result = typename Carrier<T>::result;
    const ushort lane = ushort(thread_index % 32);
    const ushort group = ushort(thread_index / 32);
    long offsets[3];
    slice_offsets(slices, slice, offsets);
    const Carried<Number> identity = carried_of(Number(is_product() ? 1 : 0));
    Carried<Number> carried = identity;
    for (long first = 0; first < slices.length; first += ROUND) {
        const uint half_used = uint(first / ROUND % 2) * GROUPS;
        const long k = first + long(thread_index) * HELD;
        T elements[HELD];
        load_held(x + offsets[0], slices.along[0], k, slices.length, elements);
        Carried<Number> scans[HELD];
        for (int i = 0; i < HELD; i += 1) {
            const Carried<Number> element = k + i < slices.length ? carried_of(Number(elements[i])) : identity;
            scans[i] = i == 0 ? element : joined(scans[i - 1], element);
        }
        const Carried<Number> up_to = scanned(scans[HELD - 1], lane, 32);
        if (lane == 31) totals[half_used + group] = up_to;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const Carried<Number> all = scanned(totals[half_used + lane % GROUPS], lane, GROUPS);
        const Carried<Number> groups_before = from_lane(all, ushort(max(int(group) - 1, 0)));
        const Carried<Number> lanes_before = from_below(up_to, 1);
        Carried<Number> before = group == 0 ? carried : joined(carried, groups_before);
        if (lane > 0) before = joined(before, lanes_before);
        carried = joined(carried, from_lane(all, GROUPS - 1));
        Result results[HELD];
        for (int i = 0; i < HELD; i += 1) results[i] = Result(shown(joined(before, scans[i])));
        store_held(out + offsets[2], slices.along[2], k, slices.length, results);
    }
}

// x, a [[buffer(0, 1)]]  a is x if the operation has no coefficients
// out  [[buffer(2)]]
// scan: one thread per slice; scan_long: one threadgroup of 256 threads per slice

#define SCAN(T, Number, Result)                                                                             \
    kernel void scan_##T(                                                                                   \
        device const T *x [[buffer(0)]], device const T *a [[buffer(1)]], device Result *out [[buffer(2)]], \
        constant Slices<3> &slices [[buffer(3)]], uint position [[thread_position_in_grid]]) {              \
        scan_slice(x, a, out, slices, position);                                                            \
    }                                                                                                       \
    kernel void scan_long_##T(                                                                              \
        device const T *x [[buffer(0)]], device const T *a [[buffer(1)]], device Result *out [[buffer(2)]], \
        constant Slices<3> &slices [[buffer(3)]], uint thread_index [[thread_index_in_threadgroup]],        \
        uint group [[threadgroup_position_in_grid]]) {                                                      \
        threadgroup Carried<Number> totals[2 * GROUPS];                                                     \
        scan_long_slice(x, out, slices, group, totals, thread_index);                                       \
    }

SCAN(float, float, float)
SCAN(half, float, half)
SCAN(bfloat, float, bfloat)
SCAN(long, long, long)
SCAN(int, long, long)
SCAN(uint, long, long)
SCAN(char, long, long)
SCAN(uchar, long, long)
SCAN(bool, long, long)
