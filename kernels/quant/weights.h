// Quantized weights [rows, columns]: each row consists of blocks. Kernels copy some bytes at a time to threadgroup
// memory, each byte once, and unpack them there.

#ifndef ORCHARD_QUANT_WEIGHTS_H
#define ORCHARD_QUANT_WEIGHTS_H

#include <metal_stdlib>
using namespace metal;

#include "generated/packing.h"
#include "generated/quant_weights.h"
#include "quant/formats.h"

// Properties of the weights (src/quant/metal.ts), as function constants, so that a pipeline contains the code of one
// format only.
constant uint packing [[function_constant(0)]];
constant uint level_bits [[function_constant(1)]];   // for formats with groups
constant uint group_parts [[function_constant(2)]];  // parts of 32 values that share a scale
constant uint scale_type [[function_constant(3)]];   // 0: float, 1: half, 2: bfloat
constant uint block_parts [[function_constant(4)]];  // parts per block: 1 or 8
constant uint block_bytes [[function_constant(5)]];
constant uint read_bytes [[function_constant(6)]];  // bytes that are loaded at once: 16, 4, 2 or 1

#define PART 32  // values per part

inline bool has_groups() { return packing == PACKING_AFFINE || packing == PACKING_SYMMETRIC; }

// Returns a scale or a bias of a group.
inline float group_number(device const ushort *numbers, long at) {
    if (scale_type == 1) {
        return float(reinterpret_cast<device const half *>(numbers)[at]);
    }
    if (scale_type == 2) {
        return as_type<float>(uint(numbers[at]) << 16);
    }
    return reinterpret_cast<device const float *>(numbers)[at];
}

// Returns the scale and the bias of a part's group; 0 out of bounds, and for formats with blocks.
inline Scales group_scales(
    constant QuantWeights &weights, device const ushort *scales, device const ushort *biases, long row, long part) {
    if (!has_groups() || row >= weights.rows || part * PART >= weights.columns) {
        return {0.0f, 0.0f};
    }
    const long at = (row * (weights.columns / PART) + part) / long(group_parts);
    const float scale = group_number(scales, at);
    return {scale, packing == PACKING_AFFINE ? group_number(biases, at) : 0.0f};
}

// The functions that `unpack` and `unpack_levels` call.
#define VALUES_OF()                                                                              \
    template <int COUNT, typename P>                                                             \
    static void unpack(P block, int part, int first, Scales group, thread float (&out)[COUNT]) { \
        const Scales own = scales(block, part, first >> 4, group);                               \
        for (int i = 0; i < COUNT; i += 1) {                                                     \
            const float product = own.scale * level(block, part, first + i);                     \
            out[i] = has_low ? product + own.low : product;                                      \
        }                                                                                        \
    }                                                                                            \
    template <int COUNT, typename P>                                                             \
    static Scales levels(P block, int part, int first, Scales group, thread half(&out)[COUNT]) { \
        for (int i = 0; i < COUNT; i += 1) {                                                     \
            out[i] = half(level(block, part, first + i));                                        \
        }                                                                                        \
        return scales(block, part, first >> 4, group);                                           \
    }

// Reads each packing: blocks, or groups with a scale and a bias. A packing that is missing here does not compile.
template <Packing name> struct Values;
#define BLOCKS(name, Format)                                                                   \
    template <> struct Values<name> {                                                          \
        enum { has_low = Format::has_low };                                                    \
        template <typename P> static Scales scales(P block, int part, int half_part, Scales) { \
            return Format::scales(block, part, half_part);                                     \
        }                                                                                      \
        template <typename P> static float level(P block, int part, int i) {                   \
            return float(Format::level(block, part, i));                                       \
        }                                                                                      \
        VALUES_OF()                                                                            \
    };

BLOCKS(PACKING_Q4_0, Q4_0)
BLOCKS(PACKING_Q4_1, Q4_1)
BLOCKS(PACKING_Q5_0, Q5_0)
BLOCKS(PACKING_Q5_1, Q5_1)
BLOCKS(PACKING_Q8_0, Q8_0)
BLOCKS(PACKING_Q2_K, Q2K)
BLOCKS(PACKING_Q3_K, Q3K)
BLOCKS(PACKING_Q4_K, Q4K)
BLOCKS(PACKING_Q5_K, Q5K)
BLOCKS(PACKING_Q6_K, Q6K)
BLOCKS(PACKING_IQ4_NL, Iq4Nl)
BLOCKS(PACKING_MXFP4, Mxfp4)
BLOCKS(PACKING_F16, F16)
BLOCKS(PACKING_BF16, BF16)

template <> struct Values<PACKING_AFFINE> {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P, int, int, Scales group) { return group; }
    template <typename P> static float level(P block, int, int i) {
        return float(packed_level(block, int(level_bits), i));
    }
    VALUES_OF()
};

template <> struct Values<PACKING_SYMMETRIC> {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P, int, int, Scales group) { return group; }
    template <typename P> static float level(P block, int, int i) {
        return float(packed_level(block, int(level_bits), i) - int(1u << (level_bits - 1)));
    }
    VALUES_OF()
};

// Unpacks values `first` to first + COUNT - 1 of a part of a block, all within one half of the part. `group` is the
// scale and bias of a group.
template <int COUNT, typename P>
inline void unpack(P block, int part, int first, Scales group, thread float (&out)[COUNT]) {
    switch (packing) { PACKING_NAMES(ORCHARD_CASE, Values, unpack(block, part, first, group, out)) }
}

// Unpacks the levels of the same values, and returns their scale and low. Levels are integers from -128 to 255, except
// those of f16 and bf16.
template <int COUNT, typename P>
inline Scales unpack_levels(P block, int part, int first, Scales group, thread half (&out)[COUNT]) {
    switch (packing) { PACKING_NAMES(ORCHARD_CASE, Values, levels(block, part, first, group, out)) }
    return group;
}

// Whether `low` may differ from 0.
inline bool has_lows() {
    switch (packing) { PACKING_NAMES(ORCHARD_CASE, Values, has_low) }
    return false;
}

// Whether the halves of a part have different scales.
inline bool has_halves() { return packing == PACKING_Q2_K || packing == PACKING_Q3_K || packing == PACKING_Q6_K; }

// ---------------------------------------------------------------- bytes in threadgroup memory

// Returns the number of bytes in `parts` parts, which are whole blocks.
inline int bytes_of(int parts) { return parts / int(block_parts) * int(block_bytes); }

template <typename Word>
inline void copy_rows(
    threadgroup uchar *to,
    device const uchar *from,
    int bytes,
    int rows,
    long row_bytes,
    long bytes_left,
    long rows_left,
    int index,
    int threads) {
    constexpr int size = int(sizeof(Word));
    const int words = bytes / size;
    if (rows <= rows_left && bytes <= bytes_left) {
        // If all rows are in bounds, the distance between a thread's words is constant.
        const int row_step = threads / words;
        const int word_step = threads % words;
        int row = index / words;
        int word = index % words;
        for (int at = index; at < rows * words; at += threads) {
            reinterpret_cast<threadgroup Word *>(to)[at] =
                reinterpret_cast<device const Word *>(from + row * row_bytes)[word];
            row += row_step;
            word += word_step;
            if (word >= words) {
                word -= words;
                row += 1;
            }
        }
        return;
    }
    for (int at = index; at < rows * words; at += threads) {
        const int row = at / words;
        const int word = at % words;
        const bool inside = row < rows_left && word * size < bytes_left;
        device const Word *source = reinterpret_cast<device const Word *>(from + row * row_bytes) + word;
        reinterpret_cast<threadgroup Word *>(to)[at] = inside ? *source : Word(0);
    }
}

// Copies the bytes of `parts` parts of `rows` rows, from part `part` of row `row` on. Bytes out of bounds become zeros,
// which unpack to finite numbers. All `threads` threads take part; adjacent threads read adjacent words.
inline void load_rows(
    threadgroup uchar *to,
    device const uchar *packed,
    constant QuantWeights &weights,
    long row,
    long part,
    int rows,
    int parts,
    int index,
    int threads) {
    const long first = part / long(block_parts) * long(block_bytes);
    device const uchar *from = packed + row * weights.row_bytes + first;
    const int bytes = bytes_of(parts);
    const long bytes_left = weights.row_bytes - first;
    const long rows_left = weights.rows - row;
    if (read_bytes == 16) {
        copy_rows<uint4>(to, from, bytes, rows, weights.row_bytes, bytes_left, rows_left, index, threads);
    } else if (read_bytes == 4) {
        copy_rows<uint>(to, from, bytes, rows, weights.row_bytes, bytes_left, rows_left, index, threads);
    } else if (read_bytes == 2) {
        copy_rows<ushort>(to, from, bytes, rows, weights.row_bytes, bytes_left, rows_left, index, threads);
    } else {
        copy_rows<uchar>(to, from, bytes, rows, weights.row_bytes, bytes_left, rows_left, index, threads);
    }
}

#endif
