// Discrete Fourier transforms of lines that fit into threadgroup memory, by Stockham's algorithm with decimation in
// frequency (C. Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, 1.7):
//
//   for each pass, n = radix m s, p < m, q < s:
//     y[q + s (radix p + k)] = e^(-2 pi i p k / (m radix)) sum over j of x[q + s (p + j m)] e^(-2 pi i j k / radix)
//
// Each threadgroup transforms `group` lines. A pass reads them into registers, and writes them back after a barrier, so
// a line takes 8 bytes per element of threadgroup memory. Inverse transforms exchange real and imaginary parts before
// and after.
//
// Operands are [outer][row][inner] complex numbers. Line (outer, mid, inner) has the elements mid * in_mid + j *
// in_step of the row. So one kernel computes rows, columns, and both steps of a longer transform, whose first step
// multiplies by e^(-2 pi i mid k / twiddle).

#include <metal_stdlib>
using namespace metal;

#include "fft/roots.h"

// - in_row: elements of a row in x
// - in_length: x is 0 from this element of a row on
// - out_length: later elements are not written
// - twiddle: 0: none
#include "generated/fft.h"

#define PER_THREAD 8     // most elements per thread, rounded up to whole groups of RADIX
#define REAL_INPUT 1     // x is real
#define HALF_INPUT 2     // x has the first half of a spectrum, of row_length / 2 + 1 elements
#define REAL_OUTPUT 4    // only real parts are written
#define CHIRP_INPUT 8    // multiply element j of the row by table[j]
#define CHIRP_OUTPUT 16  // multiply element k of the result's row by table[table_start + k]
#define SWAP_INPUT 32    // exchange real and imaginary parts
#define SWAP_OUTPUT 64   // exchange them in the output
#define LINES_FIRST 128  // adjacent threads load elements of adjacent lines
#define LINES_LAST 256   // adjacent threads store elements of adjacent lines
#define SWAP_RESULT 512  // exchange them in the transform, before it is multiplied by the table

inline bool has(constant Fft &given, uint flag) { return (given.flags & flag) != 0; }
inline float2 exchanged(float2 x) { return float2(x.y, x.x); }

struct Line {
    ulong outer;
    ulong mid;
    ulong inner;
};

inline Line line_of(constant Fft &given, ulong index) {
    const ulong inner = ulong(given.inner);
    const ulong mid = ulong(given.mid);
    return {index / inner / mid, index / inner % mid, index % inner};
}

inline float2 loaded(constant Fft &given, device const float *x, device const float *table, Line line, ulong j) {
    const ulong at = line.mid * ulong(given.in_mid) + j * ulong(given.in_step);
    if (at >= ulong(given.in_length)) return float2(0.0f);
    const ulong n = ulong(given.row_length);
    const bool is_mirrored = has(given, HALF_INPUT) && 2 * at > n;
    const ulong row = is_mirrored ? n - at : at;
    const ulong place = (line.outer * ulong(given.in_row) + row) * ulong(given.inner) + line.inner;
    float2 value;
    if (has(given, REAL_INPUT)) {
        value = float2(x[place], 0.0f);
    } else {
        value = float2(x[2 * place], x[2 * place + 1]);
    }
    if (has(given, HALF_INPUT)) {
        value.y = row == 0 || 2 * row == n ? 0.0f : is_mirrored ? -value.y : value.y;
    }
    if (has(given, SWAP_INPUT)) value = exchanged(value);
    if (has(given, CHIRP_INPUT)) {
        value = complex_product(value, float2(table[2 * at], table[2 * at + 1]));
    }
    return value;
}

inline void stored(
    constant Fft &given, device float *out, device const float *table, Line line, ulong k, float2 value) {
    const ulong at = line.mid * ulong(given.out_mid) + k * ulong(given.out_step);
    if (at >= ulong(given.out_length)) return;
    if (given.twiddle != 0) value = complex_product(value, root_of_unity(uint(line.mid * k), uint(given.twiddle)));
    if (has(given, SWAP_RESULT)) value = exchanged(value);
    if (has(given, CHIRP_OUTPUT)) {
        const ulong entry = 2 * (ulong(given.table_start) + at);
        value = complex_product(value, float2(table[entry], table[entry + 1]));
    }
    if (has(given, SWAP_OUTPUT)) value = exchanged(value);
    value = value * given.scale;
    const ulong place = (line.outer * ulong(given.out_row) + at) * ulong(given.inner) + line.inner;
    if (has(given, REAL_OUTPUT)) {
        out[place] = value.x;
    } else {
        out[2 * place] = value.x;
        out[2 * place + 1] = value.y;
    }
}

template <uint RADIX> inline void transform_few(thread float2 *x) {
    switch (RADIX) {
    case 2: transform_2(x); break;
    case 3: transform_3(x); break;
    case 4: transform_4(x); break;
    case 5: transform_5(x); break;
    case 7: transform_7(x); break;
    default: transform_8(x); break;
    }
}

// One pass of all lines of a threadgroup, whose elements are adjacent. Ends with a barrier.
template <uint RADIX>
inline void run_pass(threadgroup float2 *x, uint elements, uint m, uint s, uint thread_index, uint threads) {
    const uint turns = (PER_THREAD + RADIX - 1) / RADIX;
    const uint length = RADIX * m * s;
    float2 held[turns * RADIX];
    for (uint turn = 0; turn < turns; turn += 1) {
        const uint each = thread_index + turn * threads;
        if (each < elements / RADIX) {
            const uint first = each / (m * s) * length + each % (m * s);
            for (uint j = 0; j < RADIX; j += 1) held[turn * RADIX + j] = x[first + s * j * m];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint turn = 0; turn < turns; turn += 1) {
        const uint each = thread_index + turn * threads;
        if (each < elements / RADIX) {
            const uint within = each % (m * s);
            const uint p = within / s;
            const uint first = each / (m * s) * length + within % s + s * RADIX * p;
            transform_few<RADIX>(held + turn * RADIX);
            for (uint k = 0; k < RADIX; k += 1) {
                const float2 value = held[turn * RADIX + k];
                x[first + s * k] = p * k == 0 ? value : complex_product(value, root_of_unity(p * k, m * RADIX));
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// x      [[buffer(0)]]  complex numbers as pairs, or real numbers
// table  [[buffer(1)]]  pairs; any buffer without CHIRP_INPUT and CHIRP_OUTPUT
// out    [[buffer(2)]]
// lines_of_team [[threadgroup(0)]]  group × length float2
// One threadgroup per `group` lines, with at least a thread per PER_THREAD elements.
kernel void fft(
    device const float *x [[buffer(0)]],
    device const float *table [[buffer(1)]],
    device float *out [[buffer(2)]],
    constant Fft &given [[buffer(3)]],
    threadgroup float2 *lines_of_team [[threadgroup(0)]],
    uint team [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
    const uint length = uint(given.length);
    const uint group = uint(given.group);
    const ulong first = ulong(team) * group;
    const uint lines = uint(min(ulong(group), ulong(given.lines) - first));
    const uint elements = lines * length;
    for (uint each = thread_index; each < elements; each += threads) {
        const bool across = has(given, LINES_FIRST);
        const uint line = across ? each % lines : each / length;
        const uint j = across ? each / lines : each % length;
        lines_of_team[line * length + j] = loaded(given, x, table, line_of(given, first + line), j);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint s = 1;
    for (uint pass = 0; pass < uint(given.passes); pass += 1) {
        const uint radix = uint(given.radices[pass]);
        const uint m = length / (s * radix);
        switch (radix) {
        case 2: run_pass<2>(lines_of_team, elements, m, s, thread_index, threads); break;
        case 3: run_pass<3>(lines_of_team, elements, m, s, thread_index, threads); break;
        case 4: run_pass<4>(lines_of_team, elements, m, s, thread_index, threads); break;
        case 5: run_pass<5>(lines_of_team, elements, m, s, thread_index, threads); break;
        case 7: run_pass<7>(lines_of_team, elements, m, s, thread_index, threads); break;
        default: run_pass<8>(lines_of_team, elements, m, s, thread_index, threads); break;
        }
        s *= radix;
    }
    for (uint each = thread_index; each < elements; each += threads) {
        const bool across = has(given, LINES_LAST);
        const uint line = across ? each % lines : each / length;
        const uint k = across ? each / lines : each % length;
        stored(given, out, table, line_of(given, first + line), k, lines_of_team[line * length + k]);
    }
}
