// output[i] = a random number that depends only on the key, the counter and i: random words, uniform and normal floats,
// and integers in a range.
//
// Tiling: one thread per block of Philox, which is four elements. The grid is two-dimensional, because a coordinate has
// only 32 bits. float16 and bfloat16 are computed in float32 and rounded once.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "common/philox.h"
#include "random/normal.h"

// - count: number of elements
// - low: of uniform numbers
// - scale: high − low
// - mean: of normal numbers
// - least: the smallest integer
// - choices: the number of integers
#include "generated/draw.h"

// Truncates a float32 to the precision of T, so that it is never rounded up to 1.
template <typename T> inline float cut(float u) { return u; }
template <> inline float cut<half>(float u) { return as_type<float>(as_type<uint>(u) & 0xffffe000); }
template <> inline float cut<bfloat>(float u) { return as_type<float>(as_type<uint>(u) & 0xffff0000); }

// The upper 64 bits of (word · 2^32 + low) · choices.
inline ulong scaled(uint word, uint low, ulong choices) {
    ulong lower = choices & 0xffffffff, upper = choices >> 32;
    ulong middle = ulong(word) * lower + (ulong(low) * lower >> 32);
    ulong cross = ulong(low) * upper + (middle & 0xffffffff);
    return ulong(word) * upper + (middle >> 32) + (cross >> 32);
}

struct Bits {
    template <typename T> static void draw(constant Draw &, uint4 words, uint4, thread T (&out)[4]) {
        for (uint lane = 0; lane < 4; lane += 1) {
            out[lane] = T(words[lane]);
        }
    }
};

// low + u · (high − low); if this rounds to high, the result is low.
struct Uniform {
    template <typename T> static void draw(constant Draw &given, uint4 words, uint4, thread T (&out)[4]) {
        for (uint lane = 0; lane < 4; lane += 1) {
            T number = T(fma(cut<T>(uniform_number(words[lane])), given.scale, given.low));
            out[lane] = float(number) < given.high ? number : T(given.low);
        }
    }
};

struct Normal {
    template <typename T> static void draw(constant Draw &given, uint4 words, uint4, thread T (&out)[4]) {
        float4 numbers = float4(normal_pair(words.x, words.y), normal_pair(words.z, words.w));
        for (uint lane = 0; lane < 4; lane += 1) {
            out[lane] = T(fma(numbers[lane], given.deviation, given.mean));
        }
    }
};

struct Integers {
    template <typename T> static void draw(constant Draw &given, uint4 words, uint4 low, thread T (&out)[4]) {
        for (uint lane = 0; lane < 4; lane += 1) {
            out[lane] = T(long(given.least + scaled(words[lane], low[lane], given.choices)));
        }
    }
};

// output  [[buffer(0)]]  count elements, dense
// given   [[buffer(1)]]
template <typename Kind, typename T>
kernel void distribution(
    device T *output [[buffer(0)]],
    constant Draw &given [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong block = loop_element(position, grid);
    ulong count = ulong(given.count);
    if (4 * block >= count) {
        return;
    }
    uint2 key = uint2(given.key[0], given.key[1]);
    uint4 start = uint4(given.counter[0], given.counter[1], given.counter[2], given.counter[3]);
    uint4 counter = philox_block(start, block);
    T numbers[4];
    Kind::draw(given, philox(counter, key), philox(counter + uint4(0, 0, 1, 0), key), numbers);
    for (uint lane = 0; lane < 4 && 4 * block + lane < count; lane += 1) {
        output[4 * block + lane] = numbers[lane];
    }
}

#define DISTRIBUTION(name, Kind, T) \
    template [[host_name(name #T)]] kernel void distribution<Kind, T>(device T *, constant Draw &, uint2, uint2);

DISTRIBUTION("bits_", Bits, uint)
DISTRIBUTION("uniform_", Uniform, float)
DISTRIBUTION("uniform_", Uniform, half)
DISTRIBUTION("uniform_", Uniform, bfloat)
DISTRIBUTION("normal_", Normal, float)
DISTRIBUTION("normal_", Normal, half)
DISTRIBUTION("normal_", Normal, bfloat)
DISTRIBUTION("integers_", Integers, float)
DISTRIBUTION("integers_", Integers, half)
DISTRIBUTION("integers_", Integers, bfloat)
DISTRIBUTION("integers_", Integers, long)
DISTRIBUTION("integers_", Integers, int)
DISTRIBUTION("integers_", Integers, uint)
DISTRIBUTION("integers_", Integers, char)
DISTRIBUTION("integers_", Integers, uchar)
DISTRIBUTION("integers_", Integers, bool)
