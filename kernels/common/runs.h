// Elementwise kernels in which each thread processes a run of adjacent elements with one load and one store: four
// elements, or eight if none has more than two bytes.
//
// The host (`runLoop` of src/backend/metal/loop.ts) checks two conditions: in each operand, the last axis of the merged
// loop is contiguous or broadcast, and runs begin at multiples of their length. Otherwise a thread processes fewer
// elements, possibly one.

#ifndef ORCHARD_COMMON_RUNS_H
#define ORCHARD_COMMON_RUNS_H

#include "common/loop.h"

// Bits 0 to 3: the number of elements per thread. Bit 4: the loop has one axis. Bit 5 + operand: the operand is
// broadcast along the last axis.
constant uint RUNS [[function_constant(0)]];

// Returns the largest number of elements per thread; `Wide` is the widest type of an operand.
template <typename Wide> constexpr uint run_width() { return sizeof(Wide) <= 2 ? 8 : 4; }

// Returns the number of elements per thread. Results beyond a thread's count are not stored.
inline uint run_length() { return RUNS & 15; }

inline bool is_repeated(uint operand) { return (RUNS >> (5 + operand) & 1) != 0; }

// A thread's elements; their number `count` is 0 beyond the end.
struct Run {
    ulong first;
    uint count;
};

inline Run run_of(constant LoopNest &loop, uint2 position, uint2 grid) {
    const ulong count = ulong(loop.count);
    const uint width = run_length();
    const ulong first = loop_element(position, grid) * width;
    return {first, first >= count ? 0 : uint(min(ulong(width), count - first))};
}

// The arguments of a kernel whose threads process runs, starting at buffer `index`.
#define RUN_ARGUMENTS(index)                                                               \
    constant LoopNest &loop [[buffer(index)]], uint2 position [[thread_position_in_grid]], \
        uint2 grid [[threads_per_grid]]

// Computes the offset of a thread's first element in each of the first `count` operands. In a loop with one axis,
// offsets start at 0.
template <int count> inline void run_places(constant LoopNest &loop, Run run, thread long (&places)[count]) {
    if ((RUNS & 16) == 0) return loop_places(loop, run.first, places);
    for (int operand = 0; operand < count; operand += 1) {
        places[operand] = is_repeated(operand) ? 0 : long(run.first);
    }
}

// Returns the distance from a thread's first element to its element `index`.
inline long run_step(uint operand, uint index) { return is_repeated(operand) ? 0 : long(index); }

// Loads and stores eight elements: in one access if they have two bytes, in two if they have four.
template <typename T, uint size = sizeof(T)> struct Eight {
    static void load(device const T *from, thread vec<T, 4> (&fours)[2]) {
        fours[0] = *reinterpret_cast<device const vec<T, 4> *>(from);
        fours[1] = *reinterpret_cast<device const vec<T, 4> *>(from + 4);
    }
    static void store(device T *to, vec<T, 4> low, vec<T, 4> high) {
        *reinterpret_cast<device vec<T, 4> *>(to) = low;
        *reinterpret_cast<device vec<T, 4> *>(to + 4) = high;
    }
};
template <typename T> struct Eight<T, 2> {
    static void load(device const T *from, thread vec<T, 4> (&fours)[2]) {
        const uint4 words = *reinterpret_cast<device const uint4 *>(from);
        fours[0] = as_type<vec<T, 4>>(words.xy);
        fours[1] = as_type<vec<T, 4>>(words.zw);
    }
    static void store(device T *to, vec<T, 4> low, vec<T, 4> high) {
        *reinterpret_cast<device uint4 *>(to) = uint4(as_type<uint2>(low), as_type<uint2>(high));
    }
};

// Loads a thread's elements of an operand, from `place` on. Elements beyond its count are 0.
template <typename T, uint width>
inline void load_run(device const T *from, long place, uint operand, uint count, thread T (&elements)[width]) {
    if (is_repeated(operand)) {
        const T element = from[place];
        for (uint i = 0; i < width; i += 1) elements[i] = element;
    } else if (width == 8 && run_length() == 8 && count == 8) {
        vec<T, 4> fours[2];
        Eight<T>::load(from + place, fours);
        for (uint i = 0; i < width; i += 1) elements[i] = fours[i / 4][i % 4];
    } else if (run_length() == 4 && count == 4) {
        const vec<T, 4> four = *reinterpret_cast<device const vec<T, 4> *>(from + place);
        for (uint i = 0; i < width; i += 1) elements[i] = i < 4 ? four[i % 4] : T(0);
    } else {
        for (uint i = 0; i < width; i += 1) elements[i] = i < count ? from[place + i] : T(0);
    }
}

template <typename T, uint width> inline vec<T, 4> four_of(thread const T (&elements)[width], uint first) {
    return vec<T, 4>(elements[first], elements[first + 1], elements[first + 2], elements[first + 3]);
}

template <typename T, uint width>
inline void store_run(device T *to, long place, thread const T (&elements)[width], uint count) {
    if (width == 8 && run_length() == 8 && count == 8) {
        Eight<T>::store(to + place, four_of(elements, 0), four_of(elements, width - 4));
    } else if (run_length() == 4 && count == 4) {
        *reinterpret_cast<device vec<T, 4> *>(to + place) = four_of(elements, 0);
    } else {
        for (uint i = 0; i < run_length(); i += 1) {
            if (i < count) to[place + i] = elements[i];
        }
    }
}

#endif
