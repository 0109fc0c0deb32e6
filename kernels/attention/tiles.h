// Tiles of attention: how their elements come from device memory, and the products of matrices of 8 x 8.
//
// A threadgroup owns DOWN · TALL · 8 rows (queries or keys), and goes through the others, a tile of COLUMNS of them at
// a time. Its SIMD-groups stand DOWN x ACROSS: those side by side own the same TALL · 8 rows, and each one its blocks
// of 8 of their elements (of D and of E). So a product of rows with a tile's rows is the sum of ACROSS parts, one in
// each one's strip of memory, and of what comes after, each writes its own blocks. What a SIMD-group loads of a tile
// serves all of its rows: with TALL = 2, half as much is read from threadgroup memory.
//
// No lane knows which elements of a simdgroup_matrix it holds (the layout is unspecified), so that what treats rows or
// pairs one by one goes through threadgroup memory.

#ifndef ORCHARD_ATTENTION_TILES_H
#define ORCHARD_ATTENTION_TILES_H

#include <metal_simdgroup_matrix>

#include "attention/problem.h"
#include "common/matrix.h"

typedef simdgroup_matrix<float, 8, 8> Sums;

// What is rare is not worth the room that its copies take in the cache of instructions.
#define ROLLED _Pragma("clang loop unroll(disable)")

// The blocks of 8 elements of a row that one of the SIMD-groups side by side owns.
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

// The distance of two rows of a strip, in elements.
constexpr int strip_pitch(int columns) { return columns + 4; }

// The blocks of the 8 · TALL rows that a SIMD-group owns, in registers. Rows and elements beyond the ends are 0.
template <typename T, int COUNT, int TALL = 1> struct OwnRows {
    simdgroup_matrix<T, 8, 8> at[TALL][COUNT];

    // `rows`: the first row; `scratch`: 64 elements of the SIMD-group.
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

// tile[row][element] = rows[row][element], 0 beyond the ends, up to the next multiple of 8 elements. Gives whether any
// is NaN or infinite among those that this thread reads. All THREADS threads take part.
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
        // Nothing is beyond an edge: a thread's places are the same distance apart, and need no multiplication each.
        const int high = THREADS / (width / 4);  // rows that all threads read at a time
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
        // By fours they are consecutive in a thread; one by one they are dealt out, so that threads side by side read
        // side by side.
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

// strip[row][column] = own[row] · tile[column], over the SIMD-group's blocks.
template <typename T, int COUNT, int COLUMNS, int PITCH, int TALL>
inline void multiply_rows(
    threadgroup float *strip, thread const OwnRows<T, COUNT, TALL> &rows, threadgroup const T *tile, Blocks blocks) {
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

// Σ weights[column] · tile[column], of NaN and infinity alone where their weights are not 0.
template <typename T, int COLUMNS, int PITCH>
inline float nonfinite_products(threadgroup const float *weights, threadgroup const T *elements) {
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

// Puts 0 where a tile's element is not finite. All THREADS threads take part, after a barrier and before one.
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

// Rows of sums in registers: the SIMD-group's blocks of 8 · TALL rows of a result.
template <int COUNT, int TALL = 1> struct OwnSums {
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

    // sums[row] += weights[row] · tile. Where the tile holds what is not finite, `without_nonfinite` comes before.
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

    // sums[row] *= factors[row]
    inline void scale(threadgroup const float *factors, Blocks blocks, threadgroup float *scratch, uint lane) thread {
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
                    scratch[element] *= factors[high * 8 + element / 8];
                }
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_load(at[high][block], scratch, 8);
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
    }

    // rows[row] = sums[row], times factors[row] where there are any, as far as they lie inside.
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
                    const int row = high * 8 + element / 8;
                    const int column = (blocks.first + block) * 8 + element % 8;
                    if (row < rows_left && column < int(dim)) {
                        const float sum = factors ? scratch[element] * factors[row] : scratch[element];
                        rows[row * operand.row + column * operand.column] = T(sum);
                    }
                }
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
    }

    // sums[row] += weights[row] · tile, of NaN and infinity alone, of which a weight of 0 takes nothing.
    template <typename T, int COLUMNS, int PITCH>
    inline void add_nonfinite(
        threadgroup const float *weights,
        threadgroup const T *tile,
        Blocks blocks,
        threadgroup float *scratch,
        uint lane) thread {
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
                    const int row = high * 8 + element / 8;
                    scratch[element] += nonfinite_products<T, COLUMNS, PITCH>(
                        weights + row * strip_pitch(COLUMNS), tile + (blocks.first + block) * 8 + element % 8);
                }
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_load(at[high][block], scratch, 8);
                simdgroup_barrier(mem_flags::mem_threadgroup);
            }
        }
    }
};

// Adds what is not finite of a tile to sums, where it counts, and takes it out of the tile: values of weight 0 then
// leave the sums as they are, to the last bit. All threads of the threadgroup take part, each with its SIMD-group's
// sums; `adds`: they are to be added to.
template <typename T, int COLUMNS, int PITCH, int THREADS, int COUNT, int TALL>
inline void without_nonfinite(
    thread OwnSums<COUNT, TALL> &sums,
    bool adds,
    threadgroup const float *weights,
    threadgroup T *tile,
    uint dim,
    Blocks blocks,
    threadgroup float *scratch,
    uint thread_index) {
    if (adds) {
        sums.template add_nonfinite<T, COLUMNS, PITCH>(weights, tile, blocks, scratch, thread_index % 32);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    make_finite<T, COLUMNS, PITCH, THREADS>(tile, dim, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Which row of the 8, and which columns by twos, a lane treats one by one: SIMD-groups side by side share the rows.
struct LanePosition {
    int row;
    int column;  // the first one; every lane_step columns there are two more
};

constexpr int lanes_of_row(int across) { return 4 * across; }
constexpr int lane_step(int across) { return 2 * lanes_of_row(across); }
constexpr int lane_iterations(int across, int columns) { return (columns + lane_step(across) - 1) / lane_step(across); }

inline LanePosition lane_position(int all_across, int across, uint lane) {
    const int lanes = lanes_of_row(all_across);
    return {across * (8 / all_across) + int(lane) / lanes, int(lane) % lanes * 2};
}

// Records whether a thread of this SIMD-group read NaN or infinity; after a barrier, `any_nonfinite` is whether any
// did.
inline void report_nonfinite(threadgroup uint *nonfinite_values, bool is_nonfinite, uint simdgroup, uint lane) {
    const bool any = simd_any(is_nonfinite);
    if (lane == 0) {
        nonfinite_values[simdgroup] = any;
    }
}

template <int SIMDGROUPS> inline bool any_nonfinite(threadgroup const uint *nonfinite_values, uint lane) {
    return simd_any(nonfinite_values[lane % SIMDGROUPS] != 0);
}

// The products of a pair of columns: the sums of the parts that the SIMD-groups side by side left in their strips,
// which are aligned to pairs.
template <int ACROSS, int STRIP> inline float2 summed(threadgroup const float *strips, int offset) {
    float2 sum = 0.0f;
    for (int part = 0; part < ACROSS; part += 1) {
        sum += *reinterpret_cast<threadgroup const float2 *>(strips + part * STRIP + offset);
    }
    return sum;
}

// Writes a pair of columns of a strip.
inline void write_pair(threadgroup float *strip, int offset, float2 pair) {
    *reinterpret_cast<threadgroup float2 *>(strip + offset) = pair;
}

#endif
