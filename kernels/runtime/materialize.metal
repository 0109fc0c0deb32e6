// Strided copies: destination[i, j, …] = source[i, j, …] for every index of a shape of at most 8 dimensions.
//
// The runtime uses it to materialize views (the destination is row-major) and to write results back into views (the
// source is row-major). Elements are moved as bits, so there is one kernel per element size.
//
// Tiling: one thread per element, numbered in row-major order, so that adjacent threads access adjacent elements of the
// row-major operand. The grid is two-dimensional, because an element's number may need more than 32 bits and a
// coordinate of the grid has only 32. Threads beyond the last element do nothing.
//
// The host drops dimensions of length 1 and merges adjacent dimensions that are contiguous in both operands, so that a
// plain copy has rank 1.

#include <metal_stdlib>
using namespace metal;

struct StridedCopy {
    ulong shape[8];          // elements in each dimension, outermost first
    long source_strides[8];  // in elements; 0 broadcasts, and negative strides reverse a dimension
    long destination_strides[8];
    ulong source_start;  // index of element (0, …, 0) from the address where the buffer is bound
    ulong destination_start;
    ulong count;  // product of the shape
    uint rank;
    uint reserved;
};

// source       [[buffer(0)]]  the elements that the source strides reach
// destination  [[buffer(1)]]  the elements that the destination strides reach
// copy         [[buffer(2)]]  StridedCopy
template <typename Element>
kernel void copy_strided(
    device const Element *source [[buffer(0)]],
    device Element *destination [[buffer(1)]],
    constant StridedCopy &copy [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = ulong(position.y) * grid.x + position.x;
    if (element >= copy.count) {
        return;
    }
    long from = long(copy.source_start);
    long to = long(copy.destination_start);
    ulong rest = element;
    for (uint axis = copy.rank; axis > 0; axis -= 1) {
        ulong size = copy.shape[axis - 1];
        long index = long(rest % size);
        rest /= size;
        from += index * copy.source_strides[axis - 1];
        to += index * copy.destination_strides[axis - 1];
    }
    destination[to] = source[from];
}

template [[host_name("copy_strided_1")]] kernel void copy_strided<uchar>(
    device const uchar *, device uchar *, constant StridedCopy &, uint2, uint2);
template [[host_name("copy_strided_2")]] kernel void copy_strided<ushort>(
    device const ushort *, device ushort *, constant StridedCopy &, uint2, uint2);
template [[host_name("copy_strided_4")]] kernel void copy_strided<uint>(
    device const uint *, device uint *, constant StridedCopy &, uint2, uint2);
template [[host_name("copy_strided_8")]] kernel void copy_strided<ulong>(
    device const ulong *, device ulong *, constant StridedCopy &, uint2, uint2);
