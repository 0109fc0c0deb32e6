// Attention with scores in registers. A SIMD-group has 16 rows of scores, stored as two rows of 8 x 8 matrices. Each
// lane processes the elements that it holds.
//
// MSL does not specify which elements a lane holds. Apple's GPUs have one layout, which other libraries depend on too
// (MLX, `steel/gemm/mma.h`, 2024). On an NVIDIA GPU, Orchard's functions give the layout of its tensor cores.

#ifndef ORCHARD_ATTENTION_FRAGMENTS_H
#define ORCHARD_ATTENTION_FRAGMENTS_H

#include "attention/pairs.h"
#include "attention/tiles.h"

#ifdef __HAVE_ORCHARD_FRAGMENTS__
using namespace orchard;
#else
struct fragment_place {
    ushort row;
    ushort column;
    ushort neighbors[2];
};

inline fragment_place place_of_lane(ushort lane) {
    const ushort quad = lane / 4;
    return {ushort((quad & 4) + lane / 2 % 4), ushort((quad & 2) * 2 + lane % 2 * 2), {1, 8}};
}

template <typename T> inline vec<T, 2> fragment_elements(simdgroup_matrix<T, 8, 8> matrix) {
    return vec<T, 2>(matrix.thread_elements()[0], matrix.thread_elements()[1]);
}

template <typename T> inline simdgroup_matrix<T, 8, 8> fragment_of(vec<T, 2> elements) {
    simdgroup_matrix<T, 8, 8> matrix;
    matrix.thread_elements()[0] = elements.x;
    matrix.thread_elements()[1] = elements.y;
    return matrix;
}

template <typename T>
inline void fragment_load(
    thread simdgroup_matrix<T, 8, 8> &first,
    thread simdgroup_matrix<T, 8, 8> &second,
    threadgroup const T *source,
    threadgroup const T *next,
    ulong pitch,
    bool transpose) {
    simdgroup_load(first, source, pitch, ulong2(0), transpose);
    simdgroup_load(second, next, pitch, ulong2(0), transpose);
}

template <typename T>
inline void fragment_multiply_accumulate(
    thread Sums &upper,
    thread Sums &lower,
    simdgroup_matrix<T, 8, 8> a0,
    simdgroup_matrix<T, 8, 8> a1,
    simdgroup_matrix<T, 8, 8> a2,
    simdgroup_matrix<T, 8, 8> a3,
    simdgroup_matrix<T, 8, 8> b0,
    simdgroup_matrix<T, 8, 8> b1) {
    simdgroup_multiply_accumulate(upper, a0, b0, upper);
    simdgroup_multiply_accumulate(upper, a2, b1, upper);
    simdgroup_multiply_accumulate(lower, a1, b0, lower);
    simdgroup_multiply_accumulate(lower, a3, b1, lower);
}
#endif

// Returns a matrix made of two elements from each lane, rounded to T.
template <typename T> inline simdgroup_matrix<T, 8, 8> rounded_fragment(float2 elements) {
    return fragment_of(vec<T, 2>(T(elements.x), T(elements.y)));
}

// Returns e^x, for a result that is rounded to T.
template <typename T, typename Number> inline Number exponential_for(Number x) {
    return sizeof(T) == 2 ? fast::exp2(x * LOG2_E) : exponential(x);
}

// gradient_of (pairs.h), for results that are rounded to T.
template <typename T>
inline PairGradient gradient_for(constant Attention &a, Score score, float grad, float kept, RowSums row) {
    const bool counts = score.value != -INFINITY && row.log_sum_exp != -INFINITY;
    const float exponent = (score.value - row.log_sum_exp) - row.log_sum_exp_low;
    const float probability = counts ? exponential_for<T>(exponent) : 0.0f;
    const float gradient = counts ? probability * ((kept == 0.0f ? 0.0f : kept * grad) - row.delta) : 0.0f;
    return {probability * kept, gradient, a.scale * gradient * score.cap_derivative};
}

// Rows of a SIMD-group.
constant constexpr int TALL_ROWS = 16;

// Loads the rows of a SIMD-group. Padding rows and elements are 0.
template <typename T, int COUNT>
inline void load_fragments(
    thread simdgroup_matrix<T, 8, 8> (&matrices)[2][COUNT],
    device const T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    uint dim,
    fragment_place place) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < COUNT; block += 1) {
            vec<T, 2> pair = vec<T, 2>(T(0));
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const int column = block * 8 + place.column + i;
                if (row < rows_left && column < int(dim)) {
                    pair[i] = rows[row * operand.row + column * operand.column];
                }
            }
            matrices[high][block] = fragment_of(pair);
        }
    }
}

// rows[row] = factors[…] · sums[row], for rows in bounds. A lane has one factor for each of its two rows.
template <typename T, int COUNT>
inline void store_fragments(
    thread const SumBlocks<COUNT, 2> &sums,
    device T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    uint dim,
    thread const float (&factors)[2],
    fragment_place place) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < COUNT; block += 1) {
            const float2 pair = fragment_elements(sums.at[high][block]) * factors[high];
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const int column = block * 8 + place.column + i;
                if (row < rows_left && column < int(dim)) {
                    rows[row * operand.row + column * operand.column] = T(pair[i]);
                }
            }
        }
    }
}

// Sets bit 31 or bit 15 of the result if any of four elements is NaN or infinite. All bits of such an exponent are set,
// so adding its lowest bit carries into the sign.
inline uint exponent_carries(float4 elements) {
    const uint4 carries = (as_type<uint4>(elements) & 0x7f800000) + 0x00800000;
    return (carries.x | carries.y) | (carries.z | carries.w);
}
inline uint exponent_carries(half4 elements) {
    const uint2 carries = (as_type<uint2>(elements) & 0x7c007c00) + 0x04000400;
    return carries.x | carries.y;
}
inline uint exponent_carries(bfloat4 elements) {
    uint carries = 0;
    UNROLLED
    for (int i = 0; i < 4; i += 1) {
        carries |= (uint(as_type<ushort>(elements[i])) & 0x7f80) + 0x0080;
    }
    return carries << 16;
}

// A thread's share of a tile, in registers, so that all reads of device memory are in flight at once.
template <typename T, int ROWS, int WIDTH, int THREADS> struct TileShare {
    vec<T, 4> fours[ROWS * WIDTH / 4 / THREADS];

    // Whether the share is used: the tile must be in bounds, and its rows must allow loads of four elements.
    static inline bool suffices(int rows_left, uint dim) {
        return has(ATTENTION_OPTION_QUADS) && rows_left >= ROWS && dim == WIDTH;
    }

    inline void read(device const T *rows, constant AttentionOperand &operand, uint thread_index) thread {
        device const T *from =
            rows + int(thread_index) / (WIDTH / 4) * operand.row + int(thread_index) % (WIDTH / 4) * 4;
        UNROLLED
        for (int turn = 0; turn < ROWS * WIDTH / 4 / THREADS; turn += 1) {
            fours[turn] = *reinterpret_cast<device const vec<T, 4> *>(from);
            from += THREADS / (WIDTH / 4) * operand.row;
        }
    }

    // Writes the tile. Returns whether any element is NaN or infinite.
    inline bool write(threadgroup T *tile, uint thread_index) thread {
        constexpr int pitch = tile_pitch<T>(WIDTH);
        threadgroup T *to = tile + int(thread_index) / (WIDTH / 4) * pitch + int(thread_index) % (WIDTH / 4) * 4;
        uint carries = 0;
        UNROLLED
        for (int turn = 0; turn < ROWS * WIDTH / 4 / THREADS; turn += 1) {
            *reinterpret_cast<threadgroup vec<T, 4> *>(to + turn * (THREADS / (WIDTH / 4)) * pitch) = fours[turn];
            carries |= exponent_carries(fours[turn]);
        }
        return (carries & (sizeof(T) == 2 ? 0x80008000 : 0x80000000)) != 0;
    }
};

// Whether the elements that a thread read for each of two tiles include NaN or infinity.
struct NonfiniteTiles {
    bool first;
    bool second;
};

// Two tiles that are read ahead, so that the computation hides the latency of device memory.
template <typename T, int ROWS, int WIDTH, int THREADS> struct TilesAhead {
    TileShare<T, ROWS, WIDTH, THREADS> first;
    TileShare<T, ROWS, WIDTH, THREADS> second;

    static inline bool suffice(int rows_left, uint first_dim, uint second_dim) {
        typedef TileShare<T, ROWS, WIDTH, THREADS> Share;
        return Share::suffices(rows_left, first_dim) && Share::suffices(rows_left, second_dim);
    }

    inline void read(
        device const T *first_rows,
        constant AttentionOperand &first_operand,
        device const T *second_rows,
        constant AttentionOperand &second_operand,
        uint thread_index) thread {
        first.read(first_rows, first_operand, thread_index);
        second.read(second_rows, second_operand, thread_index);
    }
};

// Like load_rows (tiles.h), for two tiles.
template <typename T, int ROWS, int WIDTH, int THREADS>
inline NonfiniteTiles load_two_tiles(
    threadgroup T *first,
    device const T *first_rows,
    constant AttentionOperand &first_operand,
    uint first_dim,
    threadgroup T *second,
    device const T *second_rows,
    constant AttentionOperand &second_operand,
    uint second_dim,
    int rows_left,
    uint thread_index) {
    typedef TileShare<T, ROWS, WIDTH, THREADS> Share;
    if (Share::suffices(rows_left, first_dim) && Share::suffices(rows_left, second_dim)) {
        Share first_share;
        Share second_share;
        first_share.read(first_rows, first_operand, thread_index);
        second_share.read(second_rows, second_operand, thread_index);
        const bool nonfinite_first = first_share.write(first, thread_index);
        return {nonfinite_first, second_share.write(second, thread_index)};
    }
    constexpr int pitch = tile_pitch<T>(WIDTH);
    const bool nonfinite_first =
        load_rows<T, ROWS, pitch, THREADS>(first, first_rows, first_operand, rows_left, first_dim, thread_index);
    return {
        nonfinite_first,
        load_rows<T, ROWS, pitch, THREADS>(second, second_rows, second_operand, rows_left, second_dim, thread_index)};
}

// sums += left right, where `left` has `count` columns of matrices, and right[i][j] = tile[j * pitch + i] if
// `transposed`, else tile[i * pitch + j].
template <typename T, int COUNT>
inline void add_column(
    thread Sums &upper,
    thread Sums &lower,
    thread const simdgroup_matrix<T, 8, 8> (&left)[2][COUNT],
    int count,
    threadgroup const T *tile,
    int pitch,
    bool transposed) {
    UNROLLED
    for (int block = 0; block < COUNT; block += 2) {
        if (block >= count) {
            break;
        }
        const int step = transposed ? 8 : 8 * pitch;
        const bool is_last = block + 1 == count;
        simdgroup_matrix<T, 8, 8> first;
        simdgroup_matrix<T, 8, 8> second;
        fragment_load(
            first, second, tile + block * step, tile + (is_last ? block : block + 1) * step, pitch, transposed);
        if (is_last) {
            simdgroup_multiply_accumulate(upper, left[0][block], first, upper);
            simdgroup_multiply_accumulate(lower, left[1][block], first, lower);
            break;
        }
        fragment_multiply_accumulate(
            upper, lower, left[0][block], left[1][block], left[0][block + 1], left[1][block + 1], first, second);
    }
}

// products[row][column] = rows[row] · tile[column]
template <typename T, int COUNT, int COLUMNS, int PITCH>
inline void multiply_by_rows(
    thread Sums (&products)[2][COLUMNS / 8],
    thread const simdgroup_matrix<T, 8, 8> (&rows)[2][COUNT],
    threadgroup const T *tile,
    int count) {
    UNROLLED
    for (int column = 0; column < COLUMNS / 8; column += 1) {
        products[0][column] = products[1][column] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        add_column<T, COUNT>(
            products[0][column], products[1][column], rows, count, tile + column * 8 * PITCH, PITCH, true);
    }
}

// sums[row] += weights[row] · tile. If the tile contains NaN or infinity, `without_nonfinite_values` must be called
// first.
template <typename T, int COUNT, int COLUMNS, int PITCH>
inline void add_weighted_rows(
    thread SumBlocks<COUNT, 2> &sums,
    thread const simdgroup_matrix<T, 8, 8> (&weights)[2][COLUMNS / 8],
    threadgroup const T *tile,
    int count) {
    UNROLLED
    for (int block = 0; block < COUNT; block += 1) {
        if (block >= count) {
            break;
        }
        add_column<T, COLUMNS / 8>(
            sums.at[0][block], sums.at[1][block], weights, COLUMNS / 8, tile + block * 8, PITCH, false);
    }
}

// Returns Σ weights[column] · tile[column] over the NaN and infinite elements whose weight is not 0.
template <typename T, int COLUMNS, int PITCH>
__attribute__((noinline)) float nonfinite_fragment_products(
    threadgroup const T *weights, threadgroup const T *elements) {
    float sum = 0.0f;
    ROLLED
    for (int column = 0; column < COLUMNS; column += 1) {
        const float value = float(elements[column * PITCH]);
        const float weight = float(weights[column]);
        if (!isfinite(value) && weight != 0.0f) {
            sum += weight * value;
        }
    }
    return sum;
}

// Adds a tile's NaN and infinite elements to the sums if their weight is not 0, and replaces them by 0 in the tile.
// `strip` has 16 rows of COLUMNS elements for the SIMD-group. All threads of the threadgroup take part.
template <typename T, int COUNT, int COLUMNS, int PITCH, int THREADS>
inline void without_nonfinite_values(
    thread SumBlocks<COUNT, 2> &sums,
    thread const simdgroup_matrix<T, 8, 8> (&weights)[2][COLUMNS / 8],
    threadgroup T *tile,
    threadgroup T *strip,
    uint dim,
    int count,
    fragment_place place,
    uint thread_index) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the strip's memory was read
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        UNROLLED
        for (int column = 0; column < COLUMNS / 8; column += 1) {
            simdgroup_store(weights[high][column], strip + high * 8 * COLUMNS + column * 8, COLUMNS);
        }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        UNROLLED
        for (int block = 0; block < COUNT; block += 1) {
            if (block >= count) {
                break;
            }
            threadgroup const T *row = strip + (high * 8 + place.row) * COLUMNS;
            threadgroup const T *elements = tile + block * 8 + place.column;
            float2 pair = fragment_elements(sums.at[high][block]);
            pair.x += nonfinite_fragment_products<T, COLUMNS, PITCH>(row, elements);
            pair.y += nonfinite_fragment_products<T, COLUMNS, PITCH>(row, elements + 1);
            sums.at[high][block] = fragment_of(pair);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    make_finite<T, COLUMNS, PITCH, THREADS>(tile, dim, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

#endif
