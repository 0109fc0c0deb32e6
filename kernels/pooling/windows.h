// Windows of planes, as in src/ops/pooling/primitive.ts. Along an axis, element k of window p is x[p · stride + k ·
// dilation - before]; indices outside [0, input) have no element.

#ifndef ORCHARD_POOLING_WINDOWS_H
#define ORCHARD_POOLING_WINDOWS_H

struct Pooling {
    long planes;
    long input[3];
    long output[3];
    long kernel_size[3];
    long stride[3];
    long dilation[3];
    long before[3];
};

inline uint volume(constant long (&sizes)[3]) { return uint(sizes[0] * sizes[1] * sizes[2]); }

// Converts a row-major index in a plane to an index along each axis.
inline void coordinates(constant long (&sizes)[3], uint number, thread int (&at)[3]) {
    for (int axis = 2; axis >= 0; axis -= 1) {
        const uint size = uint(sizes[axis]);
        at[axis] = int(number % size);
        number /= size;
    }
}

// The windows along an axis that may contain an element: in all later windows the element is before the first position,
// and in all earlier ones after the last position.
struct Reach {
    int begin;
    int end;
};

inline Reach windows_around(constant Pooling &pooling, int axis, int element) {
    const int stride = int(pooling.stride[axis]);
    const int span = int((pooling.kernel_size[axis] - 1) * pooling.dilation[axis]);
    const int last = element + int(pooling.before[axis]);
    const int first = last - span;
    const int begin = first > 0 ? (first + stride - 1) / stride : 0;
    return {begin, min(last / stride + 1, int(pooling.output[axis]))};
}

#endif
