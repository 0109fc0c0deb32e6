// Windows of planes, as in src/ops/pooling/primitive.ts. Along an axis, element k of window p is x[p · stride + k ·
// dilation - before]; indices outside [0, input) have no element. A kernel size of 0 stands for adaptive windows, which
// divide the input: window p of n is elements ⌊p·input/n⌋ to ⌈(p + 1)·input/n⌉ - 1.

#ifndef ORCHARD_POOLING_WINDOWS_H
#define ORCHARD_POOLING_WINDOWS_H

#include "generated/pooling.h"
inline uint volume(constant long (&sizes)[3]) { return uint(sizes[0] * sizes[1] * sizes[2]); }

// Converts a row-major index in a plane to an index along each axis.
inline void coordinates(constant long (&sizes)[3], uint number, thread int (&at)[3]) {
    for (int axis = 2; axis >= 0; axis -= 1) {
        const uint size = uint(sizes[axis]);
        at[axis] = int(number % size);
        number /= size;
    }
}

// The index of a window's first element along an axis, and its number of elements.
struct Span {
    int first;
    int size;
};

inline Span window_span(constant Pooling &pooling, int axis, int window) {
    const int size = int(pooling.kernel_size[axis]);
    if (size > 0) {
        return {window * int(pooling.stride[axis]) - int(pooling.before[axis]), size};
    }
    const int input = int(pooling.input[axis]);
    const int output = int(pooling.output[axis]);
    const int first = window * input / output;
    return {first, ((window + 1) * input + output - 1) / output - first};
}

// The windows along an axis that may contain an element. All later windows begin after the element, and all earlier
// ones end before it.
struct Reach {
    int begin;
    int end;
};

inline Reach windows_around(constant Pooling &pooling, int axis, int element) {
    if (pooling.kernel_size[axis] == 0) {
        const int input = int(pooling.input[axis]);
        const int output = int(pooling.output[axis]);
        return {element * output / input, min(((element + 1) * output + input - 1) / input, output)};
    }
    const int stride = int(pooling.stride[axis]);
    const int span = int((pooling.kernel_size[axis] - 1) * pooling.dilation[axis]);
    const int last = element + int(pooling.before[axis]);
    const int first = last - span;
    const int begin = first > 0 ? (first + stride - 1) / stride : 0;
    return {begin, min(last / stride + 1, int(pooling.output[axis]))};
}

#endif
