// Singular values of matrices that do not fit in threadgroup memory, by one-sided Jacobi rotations of the rows of W, as
// in svd.metal. Rows are divided into blocks, which are paired as in a round-robin tournament. For all matrices at once
//
//     svd_round, a threadgroup for each pair:    makes each row of one block orthogonal to each row of the other; in
//                                                the first round of a sweep also the rows of each block to one another
//     svd_settle, a threadgroup for each matrix: after a sweep, checks whether it rotated anything
//
// run between svd_prepare and svd_finish. All sweeps are encoded at once; sweeps after one that rotated nothing return
// immediately. Source: Z. Drmač and K. Veselić, "New fast and accurate Jacobi SVD algorithm", 2008.

#include <metal_stdlib>
using namespace metal;

#include "linalg/svd.h"

// - full: 1 or 0: whether U and V are square
// - block: rows per block
// - blocks: number of blocks, which is even
// - round: within a sweep
#include "generated/svd_blocks.h"

#define MOST_GROUPS 16

// The state of a matrix.
#define UNSETTLED 0
#define SETTLED 1
#define REFUSED 2

typedef device float *DeviceNumbers;
typedef Row<threadgroup float *> SharedRow;

inline uint small_of(constant SvdBlocks &problem) { return uint(min(problem.rows, problem.columns)); }
inline uint large_of(constant SvdBlocks &problem) { return uint(max(problem.rows, problem.columns)); }

// A row of W, followed by the row of G if vectors are computed.
inline uint pitch_of(constant SvdBlocks &problem) {
    return large_of(problem) + (problem.vectors != 0 ? small_of(problem) : 0);
}

// a          [[buffer(0)]]  batch × rows × columns
// work       [[buffer(1)]]  batch × min(rows, columns) × pitch: W divided by a power of two, and G
// exponents  [[buffer(2)]]  batch: the exponent of that power
// states     [[buffer(3)]]  batch: UNSETTLED, or REFUSED if an element is not finite
[[kernel, max_total_threads_per_threadgroup(MOST_GROUPS *LANES)]] void svd_prepare(
    device const float *a [[buffer(0)]],
    device float *work [[buffer(1)]],
    device int *exponents [[buffer(2)]],
    device int *states [[buffer(3)]],
    constant SvdBlocks &problem [[buffer(4)]],
    PLACE_ARGUMENTS) {
    threadgroup uint largest_of_group[MOST_GROUPS];
    uint small = small_of(problem);
    uint large = large_of(problem);
    uint pitch = pitch_of(problem);
    bool is_tall = problem.rows >= problem.columns;
    device const float *from = a + ulong(matrix) * small * large;
    device float *w = work + ulong(matrix) * small * pitch;
    uint largest = 0;
    for (uint at = index; at < small * large; at += threads) {
        largest = max(largest, as_type<uint>(from[at]) & 0x7fffffffu);
    }
    largest = simd_max(largest);
    if (lane == 0) {
        largest_of_group[group] = largest;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint other = 0; other < groups; other++) {
        largest = max(largest, largest_of_group[other]);
    }
    bool is_refused = largest >= 0x7f800000u;
    int exponent = is_refused ? 0 : int(largest >> 23) - 127;
    for (uint at = index; at < small * large; at += threads) {
        uint row = is_tall ? at % small : at / large;
        uint e = is_tall ? at / small : at % large;
        w[row * pitch + e] = scaled(from[at], -exponent);
    }
    for (uint at = index; at < small * (pitch - large); at += threads) {
        w[at / small * pitch + large + at % small] = at / small == at % small ? 1.0f : 0.0f;
    }
    if (index == 0) {
        exponents[matrix] = exponent;
        states[matrix] = is_refused ? REFUSED : UNSETTLED;
    }
}

// The rows of two blocks, in threadgroup memory.
struct Blocks {
    threadgroup float *rows;
    uint pitch;
    uint large;
    uint block;
    uint2 first;  // first row of each block in the matrix
    uint small;   // rows of the matrix

    uint row_of(uint at) const thread { return at < block ? first.x + at : first.y + at - block; }
    // The last block may have fewer rows, or none.
    bool has(uint at) const thread { return row_of(at) < small; }
    SharedRow row(uint at, uint lane) const thread { return SharedRow{rows + at * pitch, large, lane}; }
    SharedRow rotations(uint at, uint lane) const thread {
        return SharedRow{rows + at * pitch + large, pitch - large, lane};
    }
};

// Returns the pair of rows that are made orthogonal in a step: any two rows if `is_all`, else one of each block.
inline uint2 meeting_of(uint at, uint step, uint block, bool is_all) {
    return is_all ? pair_of(at, step, 2 * block - 1) : uint2(at, block + (at + step) % block);
}

// work    [[buffer(0)]]  as above
// flags   [[buffer(1)]]  batch × (blocks - 1) × blocks / 2: whether a pair was rotated in the last sweep
// states  [[buffer(2)]]  as above
// shared  [[threadgroup(0)]]  2 block × pitch
// grid: threadgroups (blocks / 2, batch)
[[kernel, max_total_threads_per_threadgroup(MOST_GROUPS *LANES)]] void svd_round(
    device float *work [[buffer(0)]],
    device int *flags [[buffer(1)]],
    device const int *states [[buffer(2)]],
    constant SvdBlocks &problem [[buffer(3)]],
    threadgroup float *shared [[threadgroup(0)]],
    uint2 position [[threadgroup_position_in_grid]],
    uint2 index [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint groups [[simdgroups_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint changes[MOST_GROUPS];
    uint matrix = position.y;
    if (states[matrix] != UNSETTLED) {
        return;
    }
    uint others = problem.blocks - 1;
    uint block = problem.block;
    Blocks blocks;
    blocks.rows = shared;
    blocks.pitch = pitch_of(problem);
    blocks.large = large_of(problem);
    blocks.block = block;
    blocks.first = pair_of(position.x, problem.round, others) * block;
    blocks.small = small_of(problem);
    device float *from = work + ulong(matrix) * blocks.small * blocks.pitch;
    for (uint at = group; at < 2 * block; at += groups) {
        for (uint e = lane; e < blocks.pitch && blocks.has(at); e += LANES) {
            shared[at * blocks.pitch + e] = from[blocks.row_of(at) * blocks.pitch + e];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bool is_all = problem.round == 0;
    bool is_rotated = false;
    for (uint step = 0; step < (is_all ? 2 * block - 1 : block); step++) {
        for (uint at = group; at < block; at += groups) {
            uint2 pair = meeting_of(at, step, block, is_all);
            if (blocks.has(pair.x) && blocks.has(pair.y)) {
                SharedRow x = blocks.row(pair.x, lane);
                SharedRow y = blocks.row(pair.y, lane);
                Rotation rotation = rotation_of(x, y);
                rotate(x, y, rotation);
                rotate(blocks.rotations(pair.x, lane), blocks.rotations(pair.y, lane), rotation);
                is_rotated = is_rotated || rotation.is_needed;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (lane == 0) {
        changes[group] = is_rotated ? 1 : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint changed = 0;
    for (uint other = 0; other < groups; other++) {
        changed |= changes[other];
    }
    if (index.x == 0) {
        flags[(ulong(matrix) * others + problem.round) * (problem.blocks / 2) + position.x] = int(changed);
    }
    for (uint at = group; at < 2 * block && changed != 0; at += groups) {
        for (uint e = lane; e < blocks.pitch && blocks.has(at); e += LANES) {
            from[blocks.row_of(at) * blocks.pitch + e] = shared[at * blocks.pitch + e];
        }
    }
}

// flags   [[buffer(0)]]  as above
// states  [[buffer(1)]]  as above; set to SETTLED if no pair was rotated
[[kernel, max_total_threads_per_threadgroup(MOST_GROUPS *LANES)]] void svd_settle(
    device const int *flags [[buffer(0)]],
    device int *states [[buffer(1)]],
    constant SvdBlocks &problem [[buffer(2)]],
    PLACE_ARGUMENTS) {
    threadgroup uint is_any_of_group[MOST_GROUPS];
    if (states[matrix] != UNSETTLED) {
        return;
    }
    uint count = (problem.blocks - 1) * (problem.blocks / 2);
    bool is_any = false;
    for (uint at = index; at < count; at += threads) {
        is_any = is_any || flags[ulong(matrix) * count + at] != 0;
    }
    bool is_any_here = simd_any(is_any);
    if (lane == 0) {
        is_any_of_group[group] = is_any_here ? 1 : 0;
    }
    threadgroup_barrier(ROWS);
    uint found = 0;
    for (uint other = 0; other < groups; other++) {
        found |= is_any_of_group[other];
    }
    if (index == 0 && found == 0) {
        states[matrix] = SETTLED;
    }
}

// work, exponents, states  [[buffer(0, 1, 2)]]  as above
// u, s, vh, info           [[buffer(3 … 6)]]    as in svd.metal
[[kernel, max_total_threads_per_threadgroup(MOST_GROUPS *LANES)]] void svd_finish(
    device float *work [[buffer(0)]],
    device const int *exponents [[buffer(1)]],
    device const int *states [[buffer(2)]],
    device float *u [[buffer(3)]],
    device float *s [[buffer(4)]],
    device float *vh [[buffer(5)]],
    device int *info [[buffer(6)]],
    constant SvdBlocks &problem [[buffer(7)]],
    PLACE_ARGUMENTS) {
    Matrix<DeviceNumbers, DeviceNumbers> factors;
    factors.small = small_of(problem);
    factors.large = large_of(problem);
    factors.count = problem.full != 0 ? factors.large : factors.small;
    factors.is_tall = problem.rows >= problem.columns;
    factors.has_vectors = problem.vectors != 0;
    uint wide = problem.full != 0 ? factors.large : factors.small;
    factors.u = u + ulong(matrix) * uint(problem.rows) * (factors.is_tall ? wide : factors.small);
    factors.s = s + ulong(matrix) * factors.small;
    factors.vh = vh + ulong(matrix) * uint(problem.columns) * (factors.is_tall ? factors.small : wide);
    factors.w_pitch = pitch_of(problem);
    factors.w = work + ulong(matrix) * factors.small * factors.w_pitch;
    factors.g = factors.w + factors.large;
    factors.g_pitch = factors.w_pitch;
    factors.norms = factors.s;
    factors.message = (device float *)(info + matrix);
    Place place = Place{matrix, index, threads, group, groups, lane};
    int state = states[matrix];
    if (state == SETTLED) {
        finish(factors, exponents[matrix], place);
    } else {
        fill_with_nan(factors, place);
    }
    threadgroup_barrier(ROWS);
    if (index == 0) {
        info[matrix] = state == SETTLED ? 0 : (state == REFUSED ? NOT_FINITE : NOT_CONVERGED);
    }
}
