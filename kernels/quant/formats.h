// Unpacks 32 adjacent values of each format. All kernels read weights through this table.
//
// Value i (0 to 31) of a part (32 values) of a block is
//
//     scale · level + low        of half i / 16 of the part
//
// A format defines `scales` (the scale and low of a half), `level`, and whether it has a `low`; adding 0 instead would
// lose the sign of -0. The product of a float16 scale and a level is exact in float32, so contracting it into a fused
// multiply-add changes nothing. Scales of groups may be float32; then contraction saves a rounding. P is a pointer to
// bytes in device or threadgroup memory. native/cpu/quant/formats.h and src/quant/ggml have the same formulas.

#ifndef ORCHARD_QUANT_FORMATS_H
#define ORCHARD_QUANT_FORMATS_H

#include <metal_stdlib>

struct Scales {
    float scale;
    float low;
};

template <typename P> inline uint short_at(P bytes) { return uint(bytes[0]) | uint(bytes[1]) << 8; }
template <typename P> inline float half_at(P bytes) { return float(as_type<half>(ushort(short_at(bytes)))); }

// 2^(exponent - 128): half of the scale, since the table of mxfp4 has doubled values.
inline float half_power(uint exponent) {
    return as_type<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

// Returns 4-bit value i of 16 bytes: first come the lower four bits of all bytes, then the upper four.
template <typename P> inline int nibble(P bytes, int i) { return int(uint(bytes[i & 15]) >> (i >> 4) * 4 & 15u); }

// Returns bit i of 4 bytes.
template <typename P> inline int one_bit(P bytes, int i) { return int(uint(bytes[i >> 3]) >> (i & 7) & 1u); }

inline int signed_byte(uint byte) { return int(byte ^ 128u) - 128; }

// ---------------------------------------------------------------- blocks of 32

struct Q4_0 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), 0.0f}; }
    template <typename P> static int level(P block, int, int i) { return nibble(block + 2, i) - 8; }
};

struct Q4_1 {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), half_at(block + 2)}; }
    template <typename P> static int level(P block, int, int i) { return nibble(block + 4, i); }
};

struct Q5_0 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), 0.0f}; }
    template <typename P> static int level(P block, int, int i) {
        return (nibble(block + 6, i) | one_bit(block + 2, i) << 4) - 16;
    }
};

struct Q5_1 {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), half_at(block + 2)}; }
    template <typename P> static int level(P block, int, int i) {
        return nibble(block + 8, i) | one_bit(block + 4, i) << 4;
    }
};

struct Q8_0 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), 0.0f}; }
    template <typename P> static int level(P block, int, int i) { return signed_byte(block[2 + i]); }
};

constant char iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct Iq4Nl {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int, int) { return {half_at(block), 0.0f}; }
    template <typename P> static int level(P block, int, int i) { return iq4_levels[nibble(block + 2, i)]; }
};

// 4-bit floats (one bit of sign, two of exponent, one of mantissa), doubled.
constant char mxfp4_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct Mxfp4 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int, int) { return {half_power(block[0]), 0.0f}; }
    template <typename P> static int level(P block, int, int i) { return mxfp4_levels[nibble(block + 1, i)]; }
};

// ---------------------------------------------------------------- blocks of 256

// Returns the 2-bit level of a value: 32 bytes contain 128 values, in four layers of 32.
template <typename P> inline int two_bits(P pairs, int part, int i) {
    return int(uint(pairs[(part >> 2) * 32 + i]) >> (part & 3) * 2 & 3u);
}

// Returns the 4-bit level of a value: 32 bytes contain 64 values, in two layers of 32.
template <typename P> inline int layered_nibble(P nibbles, int part, int i) {
    return int(uint(nibbles[(part >> 1) * 32 + i]) >> (part & 1) * 4 & 15u);
}

struct Q2K {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P block, int part, int half_part) {
        const uint packed = block[part * 2 + half_part];
        return {half_at(block + 80) * float(packed & 15u), -(half_at(block + 82) * float(packed >> 4))};
    }
    template <typename P> static int level(P block, int part, int i) { return two_bits(block + 16, part, i); }
};

struct Q3K {
    enum { has_low = 0 };
    // Scales have six bits: the lower 4 are in 8 bytes, the upper 2 in the 4 bytes after them.
    template <typename P> static Scales scales(P block, int part, int half_part) {
        const int sub = part * 2 + half_part;
        const int low = int(uint(block[96 + (sub & 7)]) >> (sub >> 3) * 4 & 15u);
        const int high = int(uint(block[104 + (sub & 3)]) >> (sub >> 2) * 2 & 3u);
        return {half_at(block + 108) * float((low | high << 4) - 32), 0.0f};
    }
    template <typename P> static int level(P block, int part, int i) {
        return two_bits(block + 32, part, i) - 4 + 4 * int(uint(block[i]) >> part & 1u);
    }
};

// The scale and the minimum of a part of q4_K and q5_K: six bits each, in 12 bytes.
template <typename P> inline Scales scale_and_minimum(P block, int part) {
    P packed = block + 4 + (part & 3);
    const uint scale = packed[0];
    const uint minimum = packed[4];
    const uint factor = part < 4 ? scale & 63u : (uint(packed[8]) & 15u) | (scale >> 2 & 48u);
    const uint low = part < 4 ? minimum & 63u : uint(packed[8]) >> 4 | (minimum >> 2 & 48u);
    return {half_at(block) * float(factor), -(half_at(block + 2) * float(low))};
}

struct Q4K {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P block, int part, int) { return scale_and_minimum(block, part); }
    template <typename P> static int level(P block, int part, int i) { return layered_nibble(block + 16, part, i); }
};

struct Q5K {
    enum { has_low = 1 };
    template <typename P> static Scales scales(P block, int part, int) { return scale_and_minimum(block, part); }
    template <typename P> static int level(P block, int part, int i) {
        return layered_nibble(block + 48, part, i) | int(uint(block[16 + i]) >> part & 1u) << 4;
    }
};

struct Q6K {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P block, int part, int half_part) {
        return {half_at(block + 208) * float(signed_byte(block[192 + part * 2 + half_part])), 0.0f};
    }
    template <typename P> static int level(P block, int part, int i) {
        const uint nibbles = block[(part >> 2) * 64 + (part & 1) * 32 + i];
        return int((nibbles >> (part >> 1 & 1) * 4 & 15u) | uint(two_bits(block + 128, part, i)) << 4) - 32;
    }
};

// ---------------------------------------------------------------- floats and groups

struct F16 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P, int, int) { return {1.0f, 0.0f}; }
    template <typename P> static float level(P block, int, int i) { return half_at(block + 2 * i); }
};

struct BF16 {
    enum { has_low = 0 };
    template <typename P> static Scales scales(P, int, int) { return {1.0f, 0.0f}; }
    template <typename P> static float level(P block, int, int i) {
        return as_type<float>(short_at(block + 2 * i) << 16);
    }
};

// Returns level i of `bits` bits; levels are packed contiguously from the lowest bit on.
template <typename P> inline int packed_level(P bytes, int bits, int i) {
    const int first = i * bits;
    const int shift = first & 7;
    uint level = uint(bytes[first >> 3]) >> shift;
    if (shift + bits > 8) {
        level |= uint(bytes[(first >> 3) + 1]) << (8 - shift);
    }
    return int(level & ((1u << bits) - 1u));
}

#endif
