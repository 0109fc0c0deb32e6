// Sums over windows (windows.h) as matrix products, in the registers of simdgroup_matrix. The source elements under the
// kernel are gathered into a tile; no unfolded copy of the source (im2col) is written to device memory.
//
//     sums = 0
//     for each DEPTH steps of the sum:
//         left_tile = ROWS rows of the weight, right_tile = the source under COLUMNS positions, 0 out of bounds
//         sums += left_tile right_tile                in products of 8 x 8
//     result = sums                                   only elements in bounds
//
// float16 and bfloat16 are storage types: tiles and sums are in float32, and the result is rounded once.
//
// For the weight's gradient, the sum is over positions and the columns are steps; `left` is the result's gradient.
//
// Grid: threadgroups (columns / COLUMNS, rows / ROWS, groups * splits), rounded up, of 128 threads.

#include <metal_stdlib>
using namespace metal;

#include "common/matrix.h"
#include "convolution/windows.h"

constant uint is_of_weight [[function_constant(0)]];
// Whether four steps of a row of `left` can be loaded at once: they are adjacent if the first step is a multiple of
// four, and start at a multiple of four elements.
constant uint left_quads [[function_constant(1)]];

constant constexpr int ROWS = 32;
constant constexpr int COLUMNS = 64;
constant constexpr int DEPTH = 32;
constant constexpr int ACROSS = 2;  // in a grid of 2 x 2 SIMD-groups
constant constexpr int THREADS = 128;

inline WindowPart depth_part(constant Windows &windows, uint at) {
    return is_of_weight ? position_part(windows, at) : step_part(windows, at);
}
inline WindowPart column_part(constant Windows &windows, uint at) {
    return is_of_weight ? step_part(windows, at) : position_part(windows, at);
}

// tile[i][j] = rows[i * row_stride + parts[j].other], or 0 if i >= rows_left or j >= steps_left.
template <typename In>
inline void load_left(
    threadgroup float *tile,
    device const In *rows,
    long row_stride,
    long rows_left,
    long steps_left,
    threadgroup const WindowPart *parts,
    int index) {
    constexpr int pitch = tile_pitch<float>(DEPTH);
    const bool is_whole = rows_left >= ROWS && steps_left >= DEPTH;
    if (is_whole && left_quads) {
        const int step = index % (DEPTH / 4) * 4;
        device const In *from = rows + parts[step].other;
        for (int i = index / (DEPTH / 4); i < ROWS; i += THREADS / (DEPTH / 4)) {
            *reinterpret_cast<threadgroup float4 *>(tile + i * pitch + step) =
                float4(*reinterpret_cast<device const vec<In, 4> *>(from + i * row_stride));
        }
        return;
    }
    const int step = index % DEPTH;
    if (is_whole) {
        device const In *from = rows + parts[step].other;
        for (int i = index / DEPTH; i < ROWS; i += THREADS / DEPTH) {
            tile[i * pitch + step] = float(from[i * row_stride]);
        }
        return;
    }
    for (int i = index / DEPTH; i < ROWS; i += THREADS / DEPTH) {
        const bool inside = i < rows_left && step < steps_left;
        tile[i * pitch + step] = inside ? float(rows[i * row_stride + parts[step].other]) : 0.0f;
    }
}

// A thread's column of the source, and whether every step reads in bounds there.
template <typename In> struct SourceColumn {
    WindowPart part;
    device const In *source;  // of the column's group
    bool exists;
    bool is_inside;
};

// tile[i][0] is the source element that step i reads for the column. A thread loads every (THREADS / COLUMNS)-th step.
template <typename In>
inline void load_right(
    threadgroup float *tile,
    constant Windows &windows,
    thread const SourceColumn<In> &column,
    long steps_left,
    threadgroup const WindowPart *parts,
    int index) {
    constexpr int pitch = tile_pitch<float>(COLUMNS);
    device const In *from = column.source + column.part.element;
    if (column.is_inside && steps_left >= DEPTH) {
        for (int i = index / COLUMNS; i < DEPTH; i += THREADS / COLUMNS) {
            tile[i * pitch] = float(from[parts[i].element]);
        }
        return;
    }
    const bool is_divided = has_divisor(windows);
    const int3 at = int3(column.part.at[0], column.part.at[1], column.part.at[2]);
    const uint3 size = uint3(uint(windows.source[0]), uint(windows.source[1]), uint(windows.source[2]));
    for (int i = index / COLUMNS; i < DEPTH; i += THREADS / COLUMNS) {
        float element = 0.0f;
        if (column.exists && i < steps_left) {
            if (is_divided) {
                const WindowPart step = parts[i];
                element = window_element(windows, column.source, step, column.part);
            } else if (all(uint3(at + int3(parts[i].at[0], parts[i].at[1], parts[i].at[2])) < size)) {
                element = float(from[parts[i].element]);  // negative positions become large unsigned ones
            }
        }
        tile[i * pitch] = element;
    }
}

// left    [[buffer(0)]]  the weight, or the result's gradient
// source  [[buffer(1)]]
// result  [[buffer(2)]]  the result, the weight's gradient, or parts of that gradient
template <typename In, typename Out>
kernel void convolution_matrices(
    device const In *left [[buffer(0)]],
    device const In *source [[buffer(1)]],
    device Out *result [[buffer(2)]],
    constant Windows &windows [[buffer(3)]],
    uint3 block [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr int simd_rows = ROWS / 2 / 8;
    constexpr int simd_columns = COLUMNS / ACROSS / 8;
    constexpr int strip_columns = simd_columns * 8;
    constexpr int left_pitch = tile_pitch<float>(DEPTH);
    constexpr int right_pitch = tile_pitch<float>(COLUMNS);
    threadgroup float4 left_fours[ROWS * left_pitch / 4];
    threadgroup float *left_tile = reinterpret_cast<threadgroup float *>(left_fours);
    threadgroup float right_tile[DEPTH * right_pitch];
    threadgroup float strips[4 * 8 * strip_columns];
    threadgroup WindowPart parts[DEPTH];  // of the steps, or of the positions, in a tile

    const uint group = block.z / uint(windows.splits);
    const uint split = block.z % uint(windows.splits);
    const uint steps = uint(windows.channels * volume(windows.places));
    const uint positions = uint(windows.batch * volume(windows.grid));
    const uint columns = is_of_weight ? steps : positions;
    const uint first = split * uint(windows.split_length);
    const uint last = is_of_weight ? min(positions, first + uint(windows.split_length)) : steps;
    const long row = long(block.y) * ROWS;
    const uint column = block.x * COLUMNS;
    const long row_stride = is_of_weight ? volume(windows.grid) : windows.weight_row;
    device const In *group_left =
        left + (is_of_weight ? long(group) * windows.rows * volume(windows.grid) : long(group) * windows.weight_group);
    device const In *group_source = source + long(group) * windows.channels * volume(windows.source);

    // A thread's column is the same during the whole sum. All lanes of a SIMD-group load their columns with the same
    // code path.
    const uint thread_column = column + thread_index % COLUMNS;
    SourceColumn<In> at_column = {{}, group_source, thread_column < columns, false};
    at_column.part = column_part(windows, at_column.exists ? thread_column : 0);
    at_column.is_inside = simd_all(!is_of_weight && at_column.exists && is_inside(windows, at_column.part));
    const int tile_row = int(simdgroup_index) / ACROSS * simd_rows * 8;
    const int tile_column = int(simdgroup_index) % ACROSS * strip_columns;

    simdgroup_matrix<float, 8, 8> sums[simd_rows][simd_columns];
    clear_sums(sums);

    for (uint depth = first; depth < last; depth += DEPTH) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        if (thread_index < DEPTH && depth + thread_index < last) {
            parts[thread_index] = depth_part(windows, depth + thread_index);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        load_left(
            left_tile, group_left + row * row_stride, row_stride, windows.rows - row, long(last - depth), parts,
            int(thread_index));
        load_right(
            right_tile + thread_index % COLUMNS, windows, at_column, long(last - depth), parts, int(thread_index));
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < DEPTH; k += 8) {
            simdgroup_matrix<float, 8, 8> factors[simd_columns];
            for (int j = 0; j < simd_columns; j += 1) {
                simdgroup_load(factors[j], right_tile + k * right_pitch + tile_column + j * 8, right_pitch);
            }
            for (int i = 0; i < simd_rows; i += 1) {
                simdgroup_matrix<float, 8, 8> left_factor;
                simdgroup_load(left_factor, left_tile + (tile_row + i * 8) * left_pitch + k, left_pitch);
                for (int j = 0; j < simd_columns; j += 1) {
                    simdgroup_multiply_accumulate(sums[i][j], left_factor, factors[j], sums[i][j]);
                }
            }
        }
    }

    // The layout of elements across lanes is unspecified, so sums go through memory, 8 rows at a time: afterwards each
    // lane has one column of them.
    static_assert(strip_columns == 32, "a lane has a column of its SIMD-group's");
    threadgroup float *strip = strips + int(simdgroup_index) * 8 * strip_columns;
    const uint at = column + uint(tile_column) + lane;
    const long out_stride = is_of_weight ? long(steps) : volume(windows.result);
    device Out *out = result;
    if (at < columns) {
        out += is_of_weight ? (long(split) * windows.groups + group) * windows.rows * steps + at
                            : result_offset(windows, group, 0, at);
    }
    for (int i = 0; i < simd_rows; i += 1) {
        for (int j = 0; j < simd_columns; j += 1) {
            simdgroup_store(sums[i][j], strip + j * 8, strip_columns);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const long first_row = row + tile_row + i * 8;
        const int rows = at < columns ? int(min(long(8), windows.rows - first_row)) : 0;
        for (int line = 0; line < rows; line += 1) {
            out[(first_row + line) * out_stride] = Out(strip[line * strip_columns + int(lane)]);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// result[i] = Σ over parts of sums[part][i], added in order. Grid: one thread per element of the weight.
template <typename Out>
kernel void convolution_parts(
    device const float *sums [[buffer(0)]],
    device Out *result [[buffer(1)]],
    constant Windows &windows [[buffer(2)]],
    uint at [[thread_position_in_grid]]) {
    const long size = windows.groups * windows.rows * windows.channels * volume(windows.places);
    float total = sums[at];
    for (long part = 1; part < windows.splits; part += 1) {
        total += sums[part * size + at];
    }
    result[at] = Out(total);
}

#define MATRICES(In, Out)                                                                                   \
    template [[host_name("convolution_matrices_" #In "_" #Out)]] kernel void convolution_matrices<In, Out>( \
        device const In *, device const In *, device Out *, constant Windows &, uint3, uint, uint, uint);
#define PARTS(Out)                                                                        \
    template [[host_name("convolution_parts_" #Out)]] kernel void convolution_parts<Out>( \
        device const float *, device Out *, constant Windows &, uint);

MATRICES(float, float)
MATRICES(half, half)
MATRICES(half, float)
MATRICES(bfloat, bfloat)
MATRICES(bfloat, float)
PARTS(float)
PARTS(half)
PARTS(bfloat)
