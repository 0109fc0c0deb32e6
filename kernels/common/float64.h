// float64 arithmetic with integers, for the few places where a GPU must round as a CPU does: products, sums and
// rounding to narrower floats, each to the nearest, ties to even. Numbers are bit patterns, and finite. Results below
// the smallest normal number become 0.

#ifndef ORCHARD_COMMON_FLOAT64_H
#define ORCHARD_COMMON_FLOAT64_H

constant ulong FLOAT64_SIGN = 0x8000000000000000;
constant ulong FLOAT64_INFINITY = 0x7ff0000000000000;
constant int FLOAT64_BIAS = 1023;

inline int float64_exponent(ulong x) { return int(x >> 52 & 0x7ff); }

// The 53 bits of a normal number's significand.
inline ulong float64_significand(ulong x) { return (x & 0xfffffffffffff) | 0x10000000000000; }

// Returns the upper 64 bits of a product. The lowest bit is sticky: it is also set if any lower bit of the product is.
inline ulong high_product_sticky(ulong a, ulong b) {
    ulong a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
    ulong low = a0 * b0;
    ulong middle = a1 * b0 + (low >> 32);
    ulong cross = a0 * b1 + (middle & 0xffffffff);
    ulong below = (cross << 32) | (low & 0xffffffff);
    return (a1 * b1 + (middle >> 32) + (cross >> 32)) | (below != 0 ? 1 : 0);
}

// Rounds a significand whose leading bit is bit 63 to `bits` bits: to the nearest, ties to even. The result may have
// one bit more.
inline ulong round_significand(ulong significand, uint bits) {
    uint dropped = 64 - bits;
    ulong kept = significand >> dropped;
    ulong rest = significand << bits;
    bool is_up = rest > FLOAT64_SIGN || (rest == FLOAT64_SIGN && (kept & 1) != 0);
    return kept + (is_up ? 1 : 0);
}

// Returns ± significand · 2^(exponent − 63), where the leading bit of the significand is bit 63 and `exponent` is
// unbiased.
inline ulong float64_pack(ulong sign, int exponent, ulong significand) {
    int biased = exponent + FLOAT64_BIAS;
    if (biased < 1) {
        return sign;
    }
    ulong rounded = round_significand(significand, 53);  // a carry increments the exponent, as it should
    ulong bits = (ulong(biased - 1) << 52) + rounded;
    return sign | min(bits, FLOAT64_INFINITY);
}

inline ulong float64_of(ulong whole) {
    if (whole == 0) {
        return 0;
    }
    int zeros = int(clz(whole));
    return float64_pack(0, 63 - zeros, whole << zeros);
}

inline ulong float64_multiply(ulong a, ulong b) {
    ulong sign = (a ^ b) & FLOAT64_SIGN;
    if (float64_exponent(a) == 0 || float64_exponent(b) == 0) {
        return sign;
    }
    ulong product = high_product_sticky(float64_significand(a) << 11, float64_significand(b) << 11);
    int exponent = float64_exponent(a) + float64_exponent(b) - 2 * FLOAT64_BIAS;
    bool is_long = (product & FLOAT64_SIGN) != 0;
    return float64_pack(sign, exponent + (is_long ? 1 : 0), is_long ? product : product << 1);
}

inline ulong float64_add(ulong a, ulong b) {
    bool is_swapped = (a & ~FLOAT64_SIGN) < (b & ~FLOAT64_SIGN);
    ulong larger = is_swapped ? b : a;
    ulong smaller = is_swapped ? a : b;
    if (float64_exponent(smaller) == 0) {
        return larger;
    }
    ulong sign = larger & FLOAT64_SIGN;
    uint shift = uint(float64_exponent(larger) - float64_exponent(smaller));
    ulong first = float64_significand(larger) << 10;  // leading bit 62, so that the sum does not overflow
    ulong second = float64_significand(smaller) << 10;
    ulong shifted = shift > 63 ? 0 : second >> shift;
    bool is_cut = shift > 63 || (shift > 0 && second << (64 - shift) != 0);
    shifted |= is_cut ? 1 : 0;
    ulong sum = ((larger ^ smaller) & FLOAT64_SIGN) != 0 ? first - shifted : first + shifted;
    if (sum == 0) {
        return 0;
    }
    int zeros = int(clz(sum));
    return float64_pack(sign, float64_exponent(larger) - FLOAT64_BIAS + 1 - zeros, sum << zeros);
}

// Rounds to a narrower format with subnormal numbers. Returns its bits.
inline uint float64_narrow(ulong x, uint exponent_bits, uint fraction_bits) {
    uint sign = uint(x >> 63) << (exponent_bits + fraction_bits);
    if (float64_exponent(x) == 0) {
        return sign;
    }
    int bias = (1 << (exponent_bits - 1)) - 1;
    int biased = float64_exponent(x) - FLOAT64_BIAS + bias;
    int missing = max(1 - biased, 0);  // bits that a subnormal number has fewer
    if (missing > int(fraction_bits) + 1) {
        return sign;
    }
    ulong significand = float64_significand(x) << 11;
    uint digits = fraction_bits + 1 - uint(missing);
    ulong rounded = digits == 0 ? (significand > FLOAT64_SIGN ? 1 : 0) : round_significand(significand, digits);
    uint infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    uint bits =
        missing > 0
            ? uint(rounded)
            : uint(biased - 1 >= (1 << exponent_bits) ? infinity : (uint(biased - 1) << fraction_bits) + uint(rounded));
    return sign | min(bits, infinity);
}

#endif
