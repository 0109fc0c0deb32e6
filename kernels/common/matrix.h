// Tiles of matrices in threadgroup memory, for kernels that multiply with simdgroup_matrix.
//
// A tile is OUTER lines of INNER elements. The lines run along the axis whose elements are adjacent in device memory,
// so that adjacent threads read adjacent elements, whether a matrix is stored row-major or column-major. Lines are
// padded by 16 bytes, so that the 8 lines of a simdgroup_load are in different memory banks.
#ifndef ORCHARD_COMMON_MATRIX_H
#define ORCHARD_COMMON_MATRIX_H

#include <metal_simdgroup_matrix>

typedef simdgroup_matrix<float, 8, 8> Sums;

// The distance between two lines of a tile, in elements.
template <typename T> constexpr int tile_pitch(int inner) { return inner + 16 / int(sizeof(T)); }

constexpr int tile_larger(int a, int b) { return a > b ? a : b; }

// Returns the size of a tile whose lines may run along either axis.
template <typename T> constexpr int tile_elements(int rows, int columns) {
    return tile_larger(rows * tile_pitch<T>(columns), columns * tile_pitch<T>(rows));
}

// tile[i][j] = source[i * outer_stride + j * inner_stride], or 0, without a read, if i >= outer_left or j >=
// inner_left. All THREADS threads take part. `quads` says that inner_stride is 1 and each line starts at a multiple of
// 4 elements. Elements are converted to the tile's type.
template <typename T, int OUTER, int INNER, int THREADS, typename In>
inline void load_tile(
    threadgroup T *tile,
    device const In *source,
    long outer_stride,
    long inner_stride,
    long outer_left,
    long inner_left,
    bool quads,
    uint thread_index) {
    constexpr int pitch = tile_pitch<T>(INNER);
    constexpr int fours = OUTER * INNER / 4;
    constexpr int lines = THREADS * 4 / INNER;  // lines that all threads load at a time
    static_assert(THREADS * 4 % INNER == 0, "threads read whole lines");
    if (quads && outer_left >= OUTER && inner_left >= INNER) {
        // If the whole tile is in bounds, a thread's elements are a constant distance apart, so their addresses need no
        // multiplications.
        const int line = int(thread_index) * 4 / INNER;
        const int element = int(thread_index) * 4 % INNER;
        device const In *from = source + line * outer_stride + element;
        threadgroup T *to = tile + line * pitch + element;
        const long step = lines * outer_stride;
        for (int turn = 0; turn < (OUTER + lines - 1) / lines; turn += 1) {
            if (OUTER % lines == 0 || turn * lines + line < OUTER) {
                *reinterpret_cast<threadgroup vec<T, 4> *>(to + turn * lines * pitch) =
                    vec<T, 4>(*reinterpret_cast<device const vec<In, 4> *>(from));
            }
            from += step;
        }
        return;
    }
    // The number of iterations is constant, so that the compiler unrolls the loop and computes shared subexpressions
    // once for all k.
    for (int turn = 0; turn < (fours + THREADS - 1) / THREADS; turn += 1) {
        const int four = turn * THREADS + int(thread_index);
        if (four >= fours) {
            break;
        }
        // A thread loads four consecutive elements at once; single elements are interleaved, so that adjacent threads
        // read adjacent elements.
        const int first = quads ? four * 4 : four;
        const int step = quads ? 1 : fours;
        const int row = first / INNER;
        const int column = first % INNER;
        if (quads && row < outer_left && column + 4 <= inner_left) {
            device const In *from = source + row * outer_stride + column;
            *reinterpret_cast<threadgroup vec<T, 4> *>(tile + row * pitch + column) =
                vec<T, 4>(*reinterpret_cast<device const vec<In, 4> *>(from));
            continue;
        }
        for (int element = first, count = 0; count < 4; element += step, count += 1) {
            const int i = element / INNER;
            const int j = element % INNER;
            const bool inside = i < outer_left && j < inner_left;
            tile[i * pitch + j] = inside ? T(source[i * outer_stride + j * inner_stride]) : T(0);
        }
    }
}

template <int ROWS, int COLUMNS> inline void clear_sums(thread Sums (&sums)[ROWS][COLUMNS]) {
    for (int i = 0; i < ROWS; i += 1) {
        for (int j = 0; j < COLUMNS; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
}

// sums += left right, for a column of matrices and a row of matrices.
template <typename T, int ROWS, int COLUMNS>
inline void add_products(
    thread Sums (&sums)[ROWS][COLUMNS],
    thread const simdgroup_matrix<T, 8, 8> (&left)[ROWS],
    thread const simdgroup_matrix<T, 8, 8> (&right)[COLUMNS]) {
    for (int i = 0; i < ROWS; i += 1) {
        for (int j = 0; j < COLUMNS; j += 1) {
            simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
        }
    }
}

#endif
