// Tiles of attention: loads from device memory, and products of 8 x 8 matrices.
//
// A threadgroup computes DOWN · TALL · 8 rows (queries or keys), and loads the other operand in tiles of COLUMNS. Its
// SIMD-groups form a grid of DOWN x ACROSS. The ACROSS SIMD-groups of one grid row share the same TALL · 8 rows, and
// each has some of the blocks of 8 elements along D and E. So a product of rows with a tile is the sum of ACROSS
// partial products, one in the strip of each SIMD-group, and each SIMD-group writes its blocks of the result. A tile
// that was loaded serves all rows of a SIMD-group: with TALL = 2, threadgroup memory is read half as often.
//
// The layout of a simdgroup_matrix across lanes is unspecified, so operations on single rows or pairs go through
// threadgroup memory.

#ifndef ORCHARD_ATTENTION_TILES_H
#define ORCHARD_ATTENTION_TILES_H

#include "attention/problem.h"
#include "common/matrix.h"

// The position of a thread, as kernel arguments.
#define TILE_ARGUMENTS                                                                               \
    uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]], \
        uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]

// The blocks of 8 elements of a row that belong to one of the ACROSS SIMD-groups.
struct Blocks {
    int first;
    int count;
};

inline Blocks blocks_of(uint dim, int across, int index) {
    const int all = int(dim + 7) / 8;
    const int share = (all + across - 1) / across;
    const int first = index * share;
    return {first, max(0, min(share, all - first))};
}

// The distance between two rows of a strip, in elements.
constexpr int strip_pitch(int columns) { return columns + 4; }

// A SIMD-group's blocks of its 8 · TALL rows, in registers. Padding rows and elements are 0.
template <typename T, int COUNT, int TALL = 1> struct RowBlocks {
    simdgroup_matrix<T, 8, 8> at[TALL][COUNT];

    // `rows` is the address of the first row; `scratch` has 64 elements for the SIMD-group.
    inline void load(
        device const T *rows,
        constant AttentionOperand &operand,
        int rows_left,
        uint dim,
        Blocks blocks,
        threadgroup T *scratch,
        uint lane) thread {
        UNROLLED
        for (int high = 0; high < TALL; high += 1) {
            UNROLLED
            for (int block = 0; block < COUNT; block += 1) {
                if (block >= blocks.count) {
                    break;
                }
                for (int element = int(lane); element < 64; element += 32) {
                    const int row = high * 8 + element / 8;
                    const int column = (blocks.first + block) * 8 + element % 8;
                    const bool inside = row < rows_left && column < int(dim);
                    scratch[element] = inside ? rows[row * operand.row + column * operand.column] : T(0);
                }
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_load(at[high][block], scratch, 8);
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
    }
};

// tile[row][element] = rows[row][element], and 0 out of bounds, up to the next multiple of 8 elements. Returns whether
// any element that this thread read is NaN or infinite. All THREADS threads take part.
template <typename T, int ROWS, int PITCH, int THREADS>
inline bool load_rows(
    threadgroup T *tile,
    device const T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    uint dim,
    uint thread_index) {
    const int width = int(dim + 7) / 8 * 8;
    bool is_nonfinite = false;
    if (has(ATTENTION_OPTION_QUADS) && rows_left >= ROWS && dim % 8 == 0 && THREADS % (width / 4) == 0) {
        // If the whole tile is in bounds, a thread's elements are a constant distance apart, so their addresses need no
        // multiplications.
        const int high = THREADS / (width / 4);  // rows that all threads load at a time
        const int row = int(thread_index) / (width / 4);
        const int column = int(thread_index) % (width / 4) * 4;
        device const T *from = rows + row * operand.row + column;
        const long step = high * operand.row;
        for (int first = row; first < ROWS; first += high) {
            const vec<T, 4> elements = *reinterpret_cast<device const vec<T, 4> *>(from);
            *reinterpret_cast<threadgroup vec<T, 4> *>(tile + first * PITCH + column) = elements;
            is_nonfinite = is_nonfinite || !all(isfinite(float4(elements)));
            from += step;
        }
        return is_nonfinite;
    }
    for (int four = int(thread_index); four < ROWS * width / 4; four += THREADS) {
        // A thread loads four consecutive elements at once; single elements are interleaved, so that adjacent threads
        // read adjacent elements.
        const int first = has(ATTENTION_OPTION_QUADS) ? four * 4 : four;
        const int step = has(ATTENTION_OPTION_QUADS) ? 1 : ROWS * width / 4;
        const int row = first / width;
        const int column = first % width;
        if (has(ATTENTION_OPTION_QUADS) && row < rows_left && column + 4 <= int(dim)) {
            const vec<T, 4> elements = *reinterpret_cast<device const vec<T, 4> *>(rows + row * operand.row + column);
            *reinterpret_cast<threadgroup vec<T, 4> *>(tile + row * PITCH + column) = elements;
            is_nonfinite = is_nonfinite || !all(isfinite(float4(elements)));
            continue;
        }
        for (int element = first, count = 0; count < 4; element += step, count += 1) {
            const int i = element / width;
            const int j = element % width;
            const bool inside = i < rows_left && j < int(dim);
            const T value = inside ? rows[i * operand.row + j * operand.column] : T(0);
            tile[i * PITCH + j] = value;
            is_nonfinite = is_nonfinite || !isfinite(float(value));
        }
    }
    return is_nonfinite;
}

// strip[row][column] = rows[row] · tile[column], over the SIMD-group's blocks.
template <typename T, int COUNT, int COLUMNS, int PITCH, int TALL>
inline void multiply_rows(
    threadgroup float *strip, thread const RowBlocks<T, COUNT, TALL> &rows, threadgroup const T *tile, Blocks blocks) {
    Sums sums[TALL][COLUMNS / 8];
    UNROLLED
    for (int high = 0; high < TALL; high += 1) {
        UNROLLED
        for (int column = 0; column < COLUMNS / 8; column += 1) {
            sums[high][column] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    UNROLLED
    for (int block = 0; block < COUNT; block += 1) {
        if (block >= blocks.count) {
            break;
        }
        UNROLLED
        for (int column = 0; column < COLUMNS / 8; column += 1) {
            simdgroup_matrix<T, 8, 8> right;
            simdgroup_load(right, tile + column * 8 * PITCH + (blocks.first + block) * 8, PITCH, ulong2(0), true);
            UNROLLED
            for (int high = 0; high < TALL; high += 1) {
                simdgroup_multiply_accumulate(sums[high][column], rows.at[high][block], right, sums[high][column]);
            }
        }
    }
    UNROLLED
    for (int high = 0; high < TALL; high += 1) {
        UNROLLED
        for (int column = 0; column < COLUMNS / 8; column += 1) {
            const int first = high * 8 * strip_pitch(COLUMNS) + column * 8;
            simdgroup_store(sums[high][column], strip + first, strip_pitch(COLUMNS));
        }
    }
}

// Returns Σ weights[column] · tile[column] over the NaN and infinite elements whose weight is not 0. If it were
// inlined, the loops around it could become too large to be unrolled, and their sums would not stay in registers.
template <typename T, int COLUMNS, int PITCH>
__attribute__((noinline)) float nonfinite_products(threadgroup const float *weights, threadgroup const T *elements) {
    float sum = 0.0f;
    ROLLED
    for (int column = 0; column < COLUMNS; column += 1) {
        const float value = float(elements[column * PITCH]);
        if (!isfinite(value) && weights[column] != 0.0f) {
            sum += weights[column] * value;
        }
    }
    return sum;
}

// Replaces the nonfinite elements of a tile by 0. All THREADS threads take part; a barrier is needed before and after.
template <typename T, int ROWS, int PITCH, int THREADS>
inline void make_finite(threadgroup T *tile, uint dim, uint thread_index) {
    const int width = int(dim + 7) / 8 * 8;
    ROLLED
    for (int element = int(thread_index); element < ROWS * width; element += THREADS) {
        threadgroup T *value = tile + element / width * PITCH + element % width;
        if (!isfinite(float(*value))) {
            *value = T(0);
        }
    }
}

// sums[row] *= factors[row], for SumBlocks::change_elements.
struct RowFactors {
    threadgroup const float *factors;

    void apply(threadgroup float *sum, int row, int) const thread { *sum *= factors[row]; }
};

// sums[row] += weights[row] · tile, over NaN and infinite elements only; those with a weight of 0 add nothing.
template <typename T, int COLUMNS, int PITCH> struct NonfiniteSums {
    threadgroup const float *weights;
    threadgroup const T *tile;

    void apply(threadgroup float *sum, int row, int column) const thread {
        *sum += nonfinite_products<T, COLUMNS, PITCH>(weights + row * strip_pitch(COLUMNS), tile + column);
    }
};

// rows[row] = sums[row], times factors[row] unless null, for SumBlocks::store.
template <typename T> struct StoredSums {
    device T *rows;
    long row_pitch;
    long column_pitch;
    int rows_left;
    int dim;
    threadgroup const float *factors;

    void apply(threadgroup float *sum, int row, int column) const thread {
        if (row < rows_left && column < dim) {
            rows[row * row_pitch + column * column_pitch] = T(factors ? *sum * factors[row] : *sum);
        }
    }
};

// Rows of sums in registers: the SIMD-group's blocks of 8 · TALL rows of a result.
template <int COUNT, int TALL = 1> struct SumBlocks {
    Sums at[TALL][COUNT];

    inline void clear() thread {
        UNROLLED
        for (int high = 0; high < TALL; high += 1) {
            UNROLLED
            for (int block = 0; block < COUNT; block += 1) {
                at[high][block] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
            }
        }
    }

    // sums[row] += weights[row] · tile. If the tile contains NaN or infinity, `without_nonfinite` must be called first.
    template <typename T, int COLUMNS, int PITCH>
    inline void add(threadgroup const float *weights, threadgroup const T *tile, Blocks blocks) thread {
        UNROLLED
        for (int column = 0; column < COLUMNS / 8; column += 1) {
            Sums left[TALL];
            UNROLLED
            for (int high = 0; high < TALL; high += 1) {
                simdgroup_load(
                    left[high], weights + high * 8 * strip_pitch(COLUMNS) + column * 8, strip_pitch(COLUMNS));
            }
            UNROLLED
            for (int block = 0; block < COUNT; block += 1) {
                if (block >= blocks.count) {
                    break;
                }
                simdgroup_matrix<T, 8, 8> right;
                simdgroup_load(right, tile + column * 8 * PITCH + (blocks.first + block) * 8, PITCH);
                UNROLLED
                for (int high = 0; high < TALL; high += 1) {
                    simdgroup_multiply_accumulate(at[high][block], left[high], right, at[high][block]);
                }
            }
        }
    }

    // Applies `change` to each element, which is copied to `scratch` and back.
    template <typename Change>
    inline void change_elements(Change change, Blocks blocks, threadgroup float *scratch, uint lane) thread {
        apply_to_elements<true>(change, blocks, scratch, lane);
    }

    // rows[row] = sums[row], times factors[row] unless null, for rows in bounds.
    template <typename T>
    inline void store(
        device T *rows,
        constant AttentionOperand &operand,
        int rows_left,
        uint dim,
        Blocks blocks,
        threadgroup const float *factors,
        threadgroup float *scratch,
        uint lane) thread {
        const StoredSums<T> stored = {rows, operand.row, operand.column, rows_left, int(dim), factors};
        apply_to_elements<false>(stored, blocks, scratch, lane);
    }

  private:
    template <bool CHANGES, typename Apply>
    inline void apply_to_elements(Apply each, Blocks blocks, threadgroup float *scratch, uint lane) thread {
        UNROLLED
        for (int high = 0; high < TALL; high += 1) {
            UNROLLED
            for (int block = 0; block < COUNT; block += 1) {
                if (block >= blocks.count) {
                    break;
                }
                simdgroup_store(at[high][block], scratch, 8);
                simdgroup_barrier(mem_flags::mem_threadgroup);
                for (int element = int(lane); element < 64; element += 32) {
                    each.apply(scratch + element, high * 8 + element / 8, (blocks.first + block) * 8 + element % 8);
                }
                simdgroup_barrier(mem_flags::mem_threadgroup);
                if (CHANGES) {
                    simdgroup_load(at[high][block], scratch, 8);
                    simdgroup_barrier(mem_flags::mem_threadgroup);
                }
            }
        }
    }
};

// Adds a tile's NaN and infinite elements to the sums if their weight is not 0, and replaces them by 0 in the tile, so
// that elements with weight 0 do not affect the sums. All threads of the threadgroup take part, each with its
// SIMD-group's sums; `adds` says whether to change these.
template <typename T, int COLUMNS, int PITCH, int THREADS, int COUNT, int TALL>
inline void without_nonfinite(
    thread SumBlocks<COUNT, TALL> &sums,
    bool adds,
    threadgroup const float *weights,
    threadgroup T *tile,
    uint dim,
    Blocks blocks,
    threadgroup float *scratch,
    uint thread_index) {
    if (adds) {
        sums.change_elements(NonfiniteSums<T, COLUMNS, PITCH>{weights, tile}, blocks, scratch, thread_index % 32);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    make_finite<T, COLUMNS, PITCH, THREADS>(tile, dim, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// The row, among 8, and the pairs of columns that a lane processes one by one. The ACROSS SIMD-groups divide the rows.
struct LanePosition {
    int row;
    int column;  // the first column; two more follow at every lane_step
};

constexpr int lanes_of_row(int across) { return 4 * across; }
constexpr int lane_step(int across) { return 2 * lanes_of_row(across); }
constexpr int lane_iterations(int across, int columns) { return (columns + lane_step(across) - 1) / lane_step(across); }

inline LanePosition lane_position(int all_across, int across, uint lane) {
    const int lanes = lanes_of_row(all_across);
    return {across * (8 / all_across) + int(lane) / lanes, int(lane) % lanes * 2};
}

// The place of a SIMD-group in the grid of DOWN x ACROSS, its blocks of D and E, and the place of a lane.
struct SimdPlace {
    int down;
    int across;
    Blocks dims;
    Blocks values;
    LanePosition lane;
};

template <int ACROSS> inline SimdPlace simd_place(uint simdgroup, uint lane) {
    const int across = int(simdgroup) % ACROSS;
    return {
        int(simdgroup) / ACROSS, across, blocks_of(DIM, ACROSS, across), blocks_of(VALUE_DIM, ACROSS, across),
        lane_position(ACROSS, across, lane)};
}

// Records whether a thread of this SIMD-group read NaN or infinity. After a barrier, `any_nonfinite` returns whether
// any thread did.
inline void report_nonfinite(threadgroup uint *nonfinite_values, bool is_nonfinite, uint simdgroup, uint lane) {
    const bool any = simd_any(is_nonfinite);
    if (lane == 0) {
        nonfinite_values[simdgroup] = any;
    }
}

template <int SIMDGROUPS> inline bool any_nonfinite(threadgroup const uint *nonfinite_values, uint lane) {
    return simd_any(nonfinite_values[lane % SIMDGROUPS] != 0);
}

// Returns the products of a pair of columns: the sums of the partial products that the ACROSS SIMD-groups stored in
// their strips, which are aligned to pairs.
template <int ACROSS, int STRIP> inline float2 summed(threadgroup const float *strips, int offset) {
    float2 sum = 0.0f;
    for (int part = 0; part < ACROSS; part += 1) {
        sum += *reinterpret_cast<threadgroup const float2 *>(strips + part * STRIP + offset);
    }
    return sum;
}

// Writes a pair of columns to a strip.
inline void write_pair(threadgroup float *strip, int offset, float2 pair) {
    *reinterpret_cast<threadgroup float2 *>(strip + offset) = pair;
}

#endif
