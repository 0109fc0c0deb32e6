// Elementwise kernels whose threads take four adjacent elements, which one access loads and one stores.
//
// The host (`quadLoop` of src/backend/metal/loop.ts) looks whether the last axis of a merged loop is one run, or one
// element that is repeated, in each operand, and whether runs begin at multiples of four elements. Where they don't, a
// thread takes one element.

#ifndef ORCHARD_COMMON_QUADS_H
#define ORCHARD_COMMON_QUADS_H

#include "common/loop.h"

// Bits: 0, threads take four elements; 1, the loop has one axis; 2 + operand, the operand is repeated along the last.
constant uint QUADS [[function_constant(0)]];

inline bool is_repeated(uint operand) { return (QUADS >> (2 + operand) & 1) != 0; }

// The elements that a thread takes: `count` of them, 0 behind the end. Four are one access.
struct Quad {
    ulong first;
    uint count;
};

inline Quad quad_of(constant LoopNest &loop, uint2 position, uint2 grid) {
    const ulong count = ulong(loop.count);
    const uint width = (QUADS & 1) != 0 ? 4 : 1;
    const ulong first = loop_element(position, grid) * width;
    return {first, first >= count ? 0 : uint(min(ulong(width), count - first))};
}

// Where a thread's first element lies in each of the first `count` operands. A loop of one axis starts at 0.
template <int count> inline void quad_places(constant LoopNest &loop, Quad quad, thread long (&places)[count]) {
    if ((QUADS & 2) == 0) return loop_places(loop, quad.first, places);
    for (int operand = 0; operand < count; operand += 1) {
        places[operand] = is_repeated(operand) ? 0 : long(quad.first);
    }
}

// From the first element of a thread to its element `index`.
inline long quad_step(uint operand, uint index) { return is_repeated(operand) ? 0 : long(index); }

// Up to four elements of an operand from `place` on.
template <typename T> inline vec<T, 4> load_quad(device const T *from, long place, uint operand, uint count) {
    if (is_repeated(operand)) return vec<T, 4>(from[place]);
    if (count == 4) return *reinterpret_cast<device const vec<T, 4> *>(from + place);
    vec<T, 4> elements = vec<T, 4>(T(0));
    for (uint i = 0; i < count; i += 1) {
        elements[i] = from[place + i];
    }
    return elements;
}

template <typename T> inline void store_quad(device T *to, long place, vec<T, 4> elements, uint count) {
    if (count == 4) {
        *reinterpret_cast<device vec<T, 4> *>(to + place) = elements;
        return;
    }
    for (uint i = 0; i < count; i += 1) {
        to[place + i] = elements[i];
    }
}

#endif
