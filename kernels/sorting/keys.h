// Numbers as unsigned keys: a < b if and only if key(a) < key(b). Every NaN, whatever its sign and payload, has the
// same key, greater than infinity's; both zeros have the same key. native/cpu/sorting/keys.h defines the same keys for
// the CPU.

#ifndef ORCHARD_SORTING_KEYS_H
#define ORCHARD_SORTING_KEYS_H

// Keys follow the order of IEEE 754 bits, which is reversed for negative numbers. Comparisons are on bits, because a
// device may treat subnormal numbers as 0.
inline uint float_key(uint bits) {
    uint magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return 0xffffffff;
    }
    if (magnitude == 0) {
        return 0x80000000;
    }
    return bits == magnitude ? bits | 0x80000000 : ~bits;
}

// The key of a float16, in 16 bits.
inline uint half_key(ushort bits) {
    ushort magnitude = bits & 0x7fff;
    if (magnitude > 0x7c00) {
        return 0xffff;
    }
    if (magnitude == 0) {
        return 0x8000;
    }
    return bits == magnitude ? uint(bits) | 0x8000 : uint(ushort(~bits));
}

template <typename T> struct Key {
    using type = uint;
    static uint of(T value) { return uint(int(value)) ^ 0x80000000; }  // signed types of at most 32 bits
};
template <> struct Key<float> {
    using type = uint;
    static uint of(float value) { return float_key(as_type<uint>(value)); }
};
template <> struct Key<bfloat> {
    using type = uint;
    static uint of(bfloat value) { return float_key(uint(as_type<ushort>(value)) << 16); }
};
template <> struct Key<half> {
    using type = uint;
    static uint of(half value) { return half_key(as_type<ushort>(value)); }
};
template <> struct Key<uint> {
    using type = uint;
    static uint of(uint value) { return value; }
};
template <> struct Key<uchar> {
    using type = uint;
    static uint of(uchar value) { return value; }
};
template <> struct Key<bool> {
    using type = uint;
    static uint of(bool value) { return value ? 1 : 0; }
};
template <> struct Key<long> {
    using type = ulong;
    static ulong of(long value) { return ulong(value) ^ 0x8000000000000000; }
};

#endif
