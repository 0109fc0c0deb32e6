// Tiles of factors (factors.h) in threadgroup memory, and products with tiles that contain NaN or infinity.

#ifndef ORCHARD_ATTENTION_FACTOR_TILES_H
#define ORCHARD_ATTENTION_FACTOR_TILES_H

#include "attention/factors.h"

// The bits of the exponents in a word of elements, and the lowest bit of each exponent.
template <typename T> inline uint2 exponent_bits();
template <> inline uint2 exponent_bits<float>() { return uint2(0x7f800000, 0x00800000); }
template <> inline uint2 exponent_bits<half>() { return uint2(0x7c007c00, 0x04000400); }
template <> inline uint2 exponent_bits<bfloat>() { return uint2(0x7f807f80, 0x00800080); }

// Sets the sign bits of the result whose element in any of the words is NaN or infinite. All bits of such an exponent
// are set, so adding its lowest bit carries into the sign.
template <typename T> inline uint exponent_carries(uint2 words) {
    const uint2 bits = exponent_bits<T>();
    const uint2 carries = (words & bits.x) + bits.y;
    return carries.x | carries.y;
}
template <typename T> inline uint exponent_carries(uint4 words) {
    return exponent_carries<T>(words.xy) | exponent_carries<T>(words.zw);
}

// A thread's share of a tile, in registers, so that all reads of device memory are in flight at once.
template <typename T, typename F, int ROWS, int WIDTH, int THREADS> struct TileShare {
    vec<uint, sizeof(T)> fours[ROWS * WIDTH / 4 / THREADS];

    // Whether the share is used: the tile must be in bounds, and its rows must allow loads of four elements.
    static inline bool suffices(int rows_left, uint dim) {
        return has(ATTENTION_OPTION_QUADS) && rows_left >= ROWS && dim == WIDTH;
    }

    inline void read(device const T *rows, constant AttentionOperand &operand, uint thread_index) thread {
        device const T *from =
            rows + int(thread_index) / (WIDTH / 4) * operand.row + int(thread_index) % (WIDTH / 4) * 4;
        UNROLLED
        for (int turn = 0; turn < ROWS * WIDTH / 4 / THREADS; turn += 1) {
            read_four(fours[turn], from);
            from += THREADS / (WIDTH / 4) * operand.row;
        }
    }

    // Writes the tile. Returns whether any element is NaN or infinite.
    inline bool write(threadgroup F *tile, uint thread_index) thread {
        constexpr int pitch = tile_pitch<F>(WIDTH);
        threadgroup F *to = tile + int(thread_index) / (WIDTH / 4) * pitch + int(thread_index) % (WIDTH / 4) * 4;
        uint carries = 0;
        UNROLLED
        for (int turn = 0; turn < ROWS * WIDTH / 4 / THREADS; turn += 1) {
            write_four(to + turn * (THREADS / (WIDTH / 4)) * pitch, ROWS * pitch, fours[turn]);
            carries |= exponent_carries<T>(fours[turn]);
        }
        return (carries & (sizeof(T) == 2 ? 0x80008000 : 0x80000000)) != 0;
    }

  private:
    // Loads words of 64 bits: compilers may split a load of a vector.
    static inline void read_four(thread uint2 &four, device const T *from) {
        four = as_type<uint2>(*reinterpret_cast<device const ulong *>(from));
    }
    static inline void read_four(thread uint4 &four, device const T *from) {
        device const ulong *words = reinterpret_cast<device const ulong *>(from);
        four = uint4(as_type<uint2>(words[0]), as_type<uint2>(words[1]));
    }
    static inline void write_four(threadgroup F *to, int, uint2 four) {
        *reinterpret_cast<threadgroup uint2 *>(to) = four;
    }
    static inline void write_four(threadgroup F *to, int plane, uint4 four) {
        store_parts(to, plane, as_type<float4>(four));
    }
};

// Whether the elements that a thread read for each of two tiles include NaN or infinity.
struct NonfiniteTiles {
    bool first;
    bool second;
};

// Like load_rows (tiles.h), in parts. The padding fills the row if `fills`.
template <typename T, typename F, int ROWS, int PITCH, int THREADS>
inline bool load_factors(
    threadgroup F *tile,
    device const T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    uint dim,
    bool fills,
    uint thread_index) {
    if (part_count<T>() == 1 && !fills) {
        return load_rows<F, ROWS, PITCH, THREADS>(
            tile, reinterpret_cast<device const F *>(rows), operand, rows_left, dim, thread_index);
    }
    const int fours = fills ? (PITCH - 8) / 4 : int(dim + 7) / 8 * 2;  // of a row
    bool is_nonfinite = false;
    for (int four = int(thread_index); four < ROWS * fours; four += THREADS) {
        const int row = four / fours;
        const int column = four % fours * 4;
        device const T *from = rows + row * operand.row + column * operand.column;
        float4 elements = 0.0f;
        if (has(ATTENTION_OPTION_QUADS) && row < rows_left && column + 4 <= int(dim)) {
            elements = float4(*reinterpret_cast<device const vec<T, 4> *>(from));
        } else {
            for (int i = 0; i < 4; i += 1) {
                if (row < rows_left && column + i < int(dim)) {
                    elements[i] = float(from[i * operand.column]);
                }
            }
        }
        is_nonfinite = is_nonfinite || !all(isfinite(elements));
        threadgroup F *to = tile + row * PITCH + column;
        if (part_count<T>() == 1) {
            *reinterpret_cast<threadgroup vec<F, 4> *>(to) = vec<F, 4>(elements);
        } else {
            store_parts(to, ROWS * PITCH, elements);
        }
    }
    return is_nonfinite;
}

// Two tiles, of rows of D and of E elements. With AHEAD, they are read from device memory before the previous ones are
// used, so that the computation hides the latency.
template <typename T, typename F, int ROWS, int WIDTH, int THREADS, bool AHEAD> struct TwoTiles {
    typedef TileShare<T, F, ROWS, WIDTH, THREADS> Share;
    Share first;
    Share second;

    inline void read(
        device const T *first_rows,
        constant AttentionOperand &first_operand,
        device const T *second_rows,
        constant AttentionOperand &second_operand,
        uint thread_index) thread {
        first.read(first_rows, first_operand, thread_index);
        second.read(second_rows, second_operand, thread_index);
    }

    inline void read_ahead(
        device const T *first_rows,
        constant AttentionOperand &first_operand,
        device const T *second_rows,
        constant AttentionOperand &second_operand,
        int rows_left,
        uint thread_index) thread {
        if (AHEAD && suffice(rows_left)) {
            read(first_rows, first_operand, second_rows, second_operand, thread_index);
        }
    }

    // Reads the rows that were not read ahead, and then writes the tiles. load_factors explains `fills`.
    inline NonfiniteTiles write(
        threadgroup F *first_tile,
        device const T *first_rows,
        constant AttentionOperand &first_operand,
        threadgroup F *second_tile,
        device const T *second_rows,
        constant AttentionOperand &second_operand,
        int rows_left,
        bool fills,
        uint thread_index) thread {
        NonfiniteTiles nonfinite;
        if (suffice(rows_left)) {
            if (!AHEAD) {
                read(first_rows, first_operand, second_rows, second_operand, thread_index);
            }
            nonfinite.first = first.write(first_tile, thread_index);
            nonfinite.second = second.write(second_tile, thread_index);
            return nonfinite;
        }
        constexpr int pitch = tile_pitch<F>(WIDTH);
        nonfinite.first = load_factors<T, F, ROWS, pitch, THREADS>(
            first_tile, first_rows, first_operand, rows_left, DIM, fills, thread_index);
        nonfinite.second = load_factors<T, F, ROWS, pitch, THREADS>(
            second_tile, second_rows, second_operand, rows_left, VALUE_DIM, fills, thread_index);
        return nonfinite;
    }

  private:
    static inline bool suffice(int rows_left) {
        return Share::suffices(rows_left, DIM) && Share::suffices(rows_left, VALUE_DIM);
    }
};

// Returns a row times a column, both in device memory.
template <typename T>
__attribute__((noinline)) float nonfinite_product(
    device const T *row, device const T *column, long row_step, long column_step, uint dim) {
    float sum = 0.0f;
    ROLLED
    for (uint i = 0; i < dim; i += 1) {
        sum = fma(float(row[i * row_step]), float(column[i * column_step]), sum);
    }
    return sum;
}

// Computes the products that are NaN or infinite from device memory, for a tile or rows that contain NaN or infinity.
// The second part of an infinite element is NaN, so its products are NaN.
template <typename T, int COLUMNS>
inline void replace_products(
    thread Sums (&products)[2][COLUMNS / 8],
    device const T *rows,
    constant AttentionOperand &row_operand,
    int rows_left,
    device const T *columns,
    constant AttentionOperand &column_operand,
    int columns_left,
    uint dim,
    fragment_place place) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < COLUMNS / 8; block += 1) {
            float2 pair = fragment_elements(products[high][block]);
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const int column = block * 8 + place.column + i;
                if (!isfinite(pair[i]) && row < rows_left && column < columns_left) {
                    pair[i] = nonfinite_product<T>(
                        rows + row * row_operand.row, columns + column * column_operand.row, row_operand.column,
                        column_operand.column, dim);
                }
            }
            products[high][block] = fragment_of(pair);
        }
    }
}

// Adds the products of the SIMD-groups that share rows: each has those of a share of the elements. `exchange` has
// COLUMNS / 8 · 64 pairs for each SIMD-group. All threads of the threadgroup take part.
template <int ACROSS, int COLUMNS>
inline void add_shares(
    thread Sums (&products)[2][COLUMNS / 8], threadgroup float2 *exchange, uint simdgroup, uint lane) {
    constexpr int pairs = COLUMNS / 8 * 64;
    if (ACROSS == 1) {
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the memory was read
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        UNROLLED
        for (int block = 0; block < COLUMNS / 8; block += 1) {
            exchange[int(simdgroup) * pairs + (high * (COLUMNS / 8) + block) * 32 + int(lane)] =
                fragment_elements(products[high][block]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        UNROLLED
        for (int block = 0; block < COLUMNS / 8; block += 1) {
            // The shares are added in the same order in all SIMD-groups.
            float2 sum = 0.0f;
            UNROLLED
            for (int share = 0; share < ACROSS; share += 1) {
                sum += exchange
                    [(int(simdgroup) / ACROSS * ACROSS + share) * pairs + (high * (COLUMNS / 8) + block) * 32 +
                     int(lane)];
            }
            products[high][block] = fragment_of(sum);
        }
    }
}

// Returns Σ weights[column] · elements[column * pitch] over the NaN and infinite elements whose weight is not 0.
template <typename T, typename F, int PARTS, int COLUMNS>
__attribute__((noinline)) float nonfinite_fragment_products(
    threadgroup const F *weights, device const T *elements, long pitch, int count) {
    float sum = 0.0f;
    ROLLED
    for (int column = 0; column < min(count, COLUMNS); column += 1) {
        const float value = float(elements[column * pitch]);
        float weight = float(weights[column]);
        for (int part = 1; part < PARTS; part += 1) {
            weight += float(weights[part * TALL_ROWS * COLUMNS + column]);
        }
        if (!isfinite(value) && weight != 0.0f) {
            sum += weight * value;
        }
    }
    return sum;
}

// Like make_finite (tiles.h), in parts: the first part of an element is finite if the element is.
template <typename F, int PARTS, int ROWS, int PITCH, int THREADS>
inline void make_factors_finite(threadgroup F *tile, uint dim, uint thread_index) {
    const int width = int(dim + 7) / 8 * 8;
    ROLLED
    for (int element = int(thread_index); element < ROWS * width; element += THREADS) {
        threadgroup F *value = tile + element / width * PITCH + element % width;
        if (!isfinite(float(*value))) {
            for (int part = 0; part < PARTS; part += 1) {
                value[part * ROWS * PITCH] = F(0);
            }
        }
    }
}

// Adds a tile's NaN and infinite elements to the sums if their weight is not 0, and replaces them by 0 in the tile.
// `rows` has the elements of the SIMD-group's columns in device memory, `dim` of them. `strip` has 16 rows of COLUMNS
// elements, in parts, for the SIMD-group. All threads of the threadgroup take part.
template <typename T, typename F, int PARTS, int COUNT, int COLUMNS, int PITCH, int THREADS>
inline void without_nonfinite_values(
    thread SumBlocks<COUNT, 2> &sums,
    thread const Factors<F, PARTS, COLUMNS / 8> &weights,
    threadgroup F *tile,
    uint tile_dim,
    device const T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    threadgroup F *strip,
    int dim,
    int count,
    fragment_place place,
    uint thread_index) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the strip's memory was read
    UNROLLED
    for (int part = 0; part < PARTS; part += 1) {
        UNROLLED
        for (int high = 0; high < 2; high += 1) {
            UNROLLED
            for (int column = 0; column < COLUMNS / 8; column += 1) {
                simdgroup_store(
                    weights.at[part][high][column], strip + (part * TALL_ROWS + high * 8) * COLUMNS + column * 8,
                    COLUMNS);
            }
        }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    // The calls are in a loop: an unrolled loop of them takes registers from the kernel.
    ROLLED
    for (int matrix = 0; matrix < 2 * count; matrix += 1) {
        const int row = matrix % 2 * 8 + place.row;
        float2 products;
        UNROLLED
        for (int i = 0; i < 2; i += 1) {
            const int column = matrix / 2 * 8 + place.column + i;
            products[i] = nonfinite_fragment_products<T, F, PARTS, COLUMNS>(
                strip + row * COLUMNS, rows + column * operand.column, operand.row, column < dim ? rows_left : 0);
        }
        UNROLLED
        for (int block = 0; block < COUNT; block += 1) {
            UNROLLED
            for (int high = 0; high < 2; high += 1) {
                if (block * 2 + high == matrix) {
                    sums.at[high][block] = fragment_of(fragment_elements(sums.at[high][block]) + products);
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    make_factors_finite<F, PARTS, COLUMNS, PITCH, THREADS>(tile, tile_dim, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

#endif
