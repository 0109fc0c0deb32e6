// The sums of tiled.metal for half and bfloat, by the tensor cores of NVIDIA GPUs (common/fragments.h).
//
// A threadgroup computes a tile of ROWS x COLUMNS, which its DOWN x ACROSS SIMD-groups divide. Sums stay in registers,
// from where they are written. Device memory is read one step ahead: while the tiles of one step along k are
// multiplied, the elements of the next step are on their way to registers.
//
// Grid: threadgroups (n / COLUMNS, m / ROWS, batch * splits), rounded up. The tile sizes are rows of the table in
// src/ops/matmul/tiles.ts (`fragmentTiles`). Any sizes and strides are supported; at the edges, and where lines do not
// start at multiples of 8 elements, nothing is read ahead.

#include <metal_stdlib>
using namespace metal;

#include "common/fragments.h"
#include "matmul/product.h"

// For each factor: whether its lines run along k, and whether each line starts at a multiple of 8 elements.
constant uint a_along_k [[function_constant(0)]];
constant uint a_eights [[function_constant(1)]];
constant uint b_along_k [[function_constant(2)]];
constant uint b_eights [[function_constant(3)]];
// Whether two adjacent elements of a row of the result can be written at once.
constant uint out_pairs [[function_constant(4)]];
constant uint has_input [[function_constant(5)]];

// The tiles of a factor, one after another along k. A tile has SIZE rows of a, or SIZE columns of b. Its lines run
// along the axis whose elements are adjacent in device memory.
template <typename T, int SIZE, int DEPTH, int THREADS> struct FactorTiles {
    device const T *start;  // the element of the first tile at k = 0
    long step;              // between the SIZE rows or columns
    long step_k;
    long left;  // rows or columns in bounds
    bool along_k;
    bool eights;
    uint4 ahead[SIZE * DEPTH / 8 / THREADS];  // a thread's share of a tile: 8 elements each

    inline int pitch() const thread { return along_k ? tile_pitch<T>(DEPTH) : tile_pitch<T>(SIZE); }

    inline bool can_read_ahead(long k_left) const thread { return eights && left >= SIZE && k_left >= DEPTH; }

    inline void read_ahead(long k, uint thread_index) thread {
        const int across = (along_k ? DEPTH : SIZE) / 8;
        const long line_step = along_k ? step : step_k;
        device const T *from =
            start + k * step_k + int(thread_index) / across * line_step + int(thread_index) % across * 8;
        UNROLLED
        for (int turn = 0; turn < SIZE * DEPTH / 8 / THREADS; turn += 1) {
            ahead[turn] = *reinterpret_cast<device const uint4 *>(from);
            from += THREADS / across * line_step;
        }
    }

    // Writes the tile at k: the share that was read ahead if can_read_ahead(k_left), else single elements, 0 out of
    // bounds.
    inline void write(threadgroup T *tile, long k, long k_left, uint thread_index) const thread {
        if (can_read_ahead(k_left)) {
            const int across = (along_k ? DEPTH : SIZE) / 8;
            threadgroup T *to = tile + int(thread_index) / across * pitch() + int(thread_index) % across * 8;
            UNROLLED
            for (int turn = 0; turn < SIZE * DEPTH / 8 / THREADS; turn += 1) {
                *reinterpret_cast<threadgroup uint4 *>(to + turn * (THREADS / across) * pitch()) = ahead[turn];
            }
            return;
        }
        const int inner = along_k ? DEPTH : SIZE;
        // An unrolled loop would keep its addresses in registers, which the sums need.
        ROLLED
        for (int first = int(thread_index); first < SIZE * DEPTH; first += 4 * THREADS) {
            UNROLLED
            for (int i = 0; i < 4; i += 1) {
                const int line = (first + i * THREADS) / inner;
                const int element = (first + i * THREADS) % inner;
                const int place = along_k ? line : element;
                const int depth = along_k ? element : line;
                const bool inside = place < left && depth < k_left;
                tile[line * pitch() + element] = inside ? start[(k + depth) * step_k + place * step] : T(0);
            }
        }
    }

    // The place in the tile of a row of a, or a column of b, at k.
    inline int at(int place, int k) const thread { return along_k ? place * pitch() + k : k * pitch() + place; }
};

// sums += a_tile b_tile, for the part of the tile that starts at (row, column).
template <typename T, int HIGH, int WIDE, int DEPTH, typename Left, typename Right>
inline void add_tiles(
    thread Sums (&sums)[2 * HIGH][WIDE],
    thread const Left &left,
    thread const Right &right,
    threadgroup const T *a_tile,
    threadgroup const T *b_tile,
    int row,
    int column) {
    UNROLLED
    for (int k = 0; k < DEPTH; k += 16) {
        simdgroup_matrix<T, 8, 8> a[HIGH][4];
        UNROLLED
        for (int i = 0; i < HIGH; i += 1) {
            UNROLLED
            for (int low = 0; low < 2; low += 1) {
                const int at = row + i * TALL_ROWS + low * 8;
                fragment_load_left(
                    a[i][low], a[i][low + 2], a_tile + left.at(at, k), a_tile + left.at(at, k + 8), left.pitch(),
                    !left.along_k);
            }
        }
        UNROLLED
        for (int j = 0; j < WIDE; j += 1) {
            simdgroup_matrix<T, 8, 8> b[2];
            const int at = column + j * 8;
            fragment_load(
                b[0], b[1], b_tile + right.at(at, k), b_tile + right.at(at, k + 8), right.pitch(), right.along_k);
            UNROLLED
            for (int i = 0; i < HIGH; i += 1) {
                fragment_multiply_accumulate(
                    sums[2 * i][j], sums[2 * i + 1][j], a[i][0], a[i][1], a[i][2], a[i][3], b[0], b[1]);
            }
        }
    }
}

// a      [[buffer(0)]]  m x k
// b      [[buffer(1)]]  k x n
// input  [[buffer(2)]]  m x n; not read without has_input
// out    [[buffer(3)]]  m x n; the partial sums if they are split
template <typename T, typename Out, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void fragments(
    PRODUCT_ARGUMENTS(T, Out),
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr int threads = DOWN * ACROSS * 32;
    constexpr int high = ROWS / DOWN / TALL_ROWS;  // of a SIMD-group's part
    constexpr int wide = COLUMNS / ACROSS / 8;
    constexpr int a_elements = tile_elements<T>(ROWS, DEPTH);
    threadgroup float4 memory[(a_elements + tile_elements<T>(DEPTH, COLUMNS)) * int(sizeof(T)) / 16];
    threadgroup T *a_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *b_tile = a_tile + a_elements;

    const ProductPart part = product_part(product, group.z);
    const long row = long(group.y) * ROWS;
    const long column = long(group.x) * COLUMNS;
    FactorTiles<T, ROWS, DEPTH, threads> left;
    left.step = product.row_strides[PRODUCT_A];
    left.step_k = product.column_strides[PRODUCT_A];
    left.start = a + matrix_offset(product, PRODUCT_A, part.batch) + row * left.step;
    left.left = product.m - row;
    left.along_k = a_along_k;
    left.eights = a_eights;
    FactorTiles<T, COLUMNS, DEPTH, threads> right;
    right.step = product.column_strides[PRODUCT_B];
    right.step_k = product.row_strides[PRODUCT_B];
    right.start = b + matrix_offset(product, PRODUCT_B, part.batch) + column * right.step;
    right.left = product.n - column;
    right.along_k = b_along_k;
    right.eights = b_eights;

    Sums sums[2 * high][wide];
    clear_sums(sums);
    const int simd_row = int(simdgroup_index) / ACROSS * high * TALL_ROWS;
    const int simd_column = int(simdgroup_index) % ACROSS * wide * 8;
    if (left.can_read_ahead(part.last - part.first)) {
        left.read_ahead(part.first, thread_index);
    }
    if (right.can_read_ahead(part.last - part.first)) {
        right.read_ahead(part.first, thread_index);
    }
    for (long k = part.first; k < part.last; k += DEPTH) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        left.write(a_tile, k, part.last - k, thread_index);
        right.write(b_tile, k, part.last - k, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (left.can_read_ahead(part.last - k - DEPTH)) {
            left.read_ahead(k + DEPTH, thread_index);
        }
        if (right.can_read_ahead(part.last - k - DEPTH)) {
            right.read_ahead(k + DEPTH, thread_index);
        }
        add_tiles<T, high, wide, DEPTH>(sums, left, right, a_tile, b_tile, simd_row, simd_column);
    }

    const fragment_place place = place_of_lane(ushort(lane));
    const long input_step = product.column_strides[PRODUCT_INPUT];
    const long out_step = product.column_strides[PRODUCT_OUT];
    const int columns_left = int(min(product.n - column - simd_column, long(COLUMNS))) - place.column;
    UNROLLED
    for (int i = 0; i < high; i += 1) {
        UNROLLED
        for (int low = 0; low < 2; low += 1) {
            const long at_row = row + simd_row + i * TALL_ROWS + low * 8 + place.row;
            if (at_row >= product.m) {
                continue;
            }
            const long at_column = column + simd_column + place.column;
            device const Out *from = input + matrix_offset(product, PRODUCT_INPUT, part.batch) +
                                     element_offset(product, PRODUCT_INPUT, at_row, at_column);
            device Out *to = out + out_offset(product, part.batch, part.split) +
                             element_offset(product, PRODUCT_OUT, at_row, at_column);
            UNROLLED
            for (int j = 0; j < wide; j += 1) {
                float2 pair = product.alpha * fragment_elements(sums[2 * i + low][j]);
                const bool has_second = j * 8 + 1 < columns_left;
                if (j * 8 >= columns_left) {
                    break;
                }
                if (has_input) {
                    pair.x += product.beta * float(from[j * 8 * input_step]);
                    pair.y += has_second ? product.beta * float(from[(j * 8 + 1) * input_step]) : 0.0f;
                }
                if (out_pairs && has_second) {
                    *reinterpret_cast<device vec<Out, 2> *>(to + j * 8) = vec<Out, 2>(Out(pair.x), Out(pair.y));
                    continue;
                }
                to[j * 8 * out_step] = Out(pair.x);
                if (has_second) {
                    to[(j * 8 + 1) * out_step] = Out(pair.y);
                }
            }
        }
    }
}

#define FRAGMENTS(T, Out, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)                                                        \
    template [[host_name("fragments_" #T "_" #Out "_" #ROWS "x" #COLUMNS "x" #DEPTH)]] kernel void                   \
    fragments<T, Out, ROWS, COLUMNS, DEPTH, DOWN, ACROSS>(                                                           \
        device const T *, device const T *, device const Out *, device Out *, constant Product &, uint3, uint, uint, \
        uint);

// Out is float if sums are split into parts.
#define FRAGMENTS_TYPES(ROWS, COLUMNS, DEPTH, DOWN, ACROSS)       \
    FRAGMENTS(half, half, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)     \
    FRAGMENTS(half, float, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)    \
    FRAGMENTS(bfloat, bfloat, ROWS, COLUMNS, DEPTH, DOWN, ACROSS) \
    FRAGMENTS(bfloat, float, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)

FRAGMENTS_TYPES(16, 64, 64, 1, 4)
FRAGMENTS_TYPES(64, 16, 64, 4, 1)
FRAGMENTS_TYPES(32, 32, 64, 2, 2)
FRAGMENTS_TYPES(64, 64, 64, 2, 2)
FRAGMENTS_TYPES(64, 128, 64, 2, 2)
