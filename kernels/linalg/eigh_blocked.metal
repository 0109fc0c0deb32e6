// Eigenvalues and eigenvectors of symmetric matrices that do not fit in threadgroup memory, by Jacobi's method in
// blocks of 32 rows and columns. In each round, the blocks are paired as in a round-robin tournament, and for all
// matrices at once
//
//     eigh_solve, a threadgroup for each pair:       a sweep over the 64 rows of the pair gives Q, and the pair's tile
//     eigh_apply, a threadgroup for each tile of A:  A = Qᵀ A Q for the rows of one pair and the columns of another
//                 and for each tile of Vᵀ:           Vᵀ = Qᵀ Vᵀ
//
// run between eigh_prepare and eigh_finish. All rounds are encoded at once. Once all rounds of a tournament have made
// no rotation, the remaining ones return immediately. Source: G. Golub and C. Van Loan, "Matrix Computations", 2013,
// section 8.5.6.

#include <metal_stdlib>
using namespace metal;

#include "linalg/eigh.h"

// - blocks: number of blocks of 32 rows, which is even; the matrix is padded with zeros
// - rounds: in all sweeps together
// - vectors: 1 or 0: whether eigenvectors are computed
#include "generated/eigh_blocked.h"

#define BLOCK 32
#define TILE 64
#define TILE_PITCH 65
#define THREADS 256
// The number of rows of the largest matrix.
#define MAX_ROWS 512
// In a matrix whose largest element is about 1, smaller elements than this are negligible in float32.
#define NEGLIGIBLE 3.7252903e-09f  // 2^-28

inline uint rows_of(constant EighBlocked &problem) { return problem.blocks * BLOCK; }

// Returns the row of A that is row i of a pair of blocks.
inline uint row_of(uint2 pair, uint i) { return (i < BLOCK ? pair.x : pair.y) * BLOCK + i % BLOCK; }

// Returns the index of the first flag of a round and a matrix. There is one flag per pair: whether the pair was
// rotated.
inline long flags_at(constant EighBlocked &problem, uint matrix, uint round) {
    return (long(matrix) * problem.rounds + round) * (problem.blocks / 2);
}

// Returns whether no rotation was made in the last tournament of rounds before `round`.
inline bool is_settled(device const int *flags, constant EighBlocked &problem, uint matrix, uint round) {
    uint others = problem.blocks - 1;
    if (round < others) {
        return false;
    }
    device const int *last = flags + flags_at(problem, matrix, round - others);
    int any = 0;
    for (uint i = 0; i < others * (problem.blocks / 2); i++) {
        any |= last[i];
    }
    return any == 0;
}

// a       [[buffer(0)]]  batch × size × size; one triangle is read
// work    [[buffer(1)]]  batch × rows × rows: A, both triangles, divided by a power of two
// vt      [[buffer(2)]]  batch × rows × rows: the transpose of V; one element if eigenvectors are not computed
// scales  [[buffer(3)]]  batch
// codes   [[buffer(4)]]  batch: the first row with an element that is not finite, counted from 1, or 0
[[kernel, max_total_threads_per_threadgroup(THREADS)]] void eigh_prepare(
    device const float *a [[buffer(0)]],
    device float *work [[buffer(1)]],
    device float *vt [[buffer(2)]],
    device float *scales [[buffer(3)]],
    device int *codes [[buffer(4)]],
    constant EighBlocked &problem [[buffer(5)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float largest_of[THREADS / 32];
    threadgroup uint refused_of[THREADS / 32];
    uint size = uint(problem.size);
    uint rows = rows_of(problem);
    bool upper = problem.upper != 0;
    device const float *from = a + long(matrix) * size * size;
    device float *to = work + long(matrix) * rows * rows;
    float largest = 0.0f;
    uint refused = size;
    for (uint at = thread_index; at < rows * rows; at += THREADS) {
        uint i = at / rows;
        uint j = at % rows;
        if (i >= size || j >= size) {
            to[at] = 0.0f;
        } else if (upper ? j >= i : j <= i) {
            float value = from[i * size + j];
            bool is_finite = (as_type<uint>(value) & 0x7f800000u) != 0x7f800000u;
            refused = is_finite ? refused : min(refused, min(i, j));
            value = is_finite ? value : 0.0f;
            largest = max(largest, fabs(value));
            to[at] = value;
        }
        if (problem.vectors != 0) {
            vt[long(matrix) * rows * rows + at] = i == j ? 1.0f : 0.0f;
        }
    }
    largest = simd_max(largest);
    refused = simd_min(refused);
    if (lane == 0) {
        largest_of[simdgroup] = largest;
        refused_of[simdgroup] = refused;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint group = 0; group < THREADS / 32; group++) {
        largest = max(largest, largest_of[group]);
        refused = min(refused, refused_of[group]);
    }
    int exponent = clamp(int(as_type<uint>(largest) >> 23) - 127, -126, 126);
    float factor = power_of_two(-exponent);
    for (uint at = thread_index; at < rows * rows; at += THREADS) {
        uint i = at / rows;
        uint j = at % rows;
        if (i < size && j < size && (upper ? j >= i : j <= i)) {
            float value = to[at] * factor;
            to[at] = value;
            to[j * rows + i] = value;
        }
    }
    if (thread_index == 0) {
        scales[matrix] = power_of_two(exponent);
        codes[matrix] = refused < size ? int(refused) + 1 : 0;
    }
}

// work    [[buffer(0)]]  as above; the tiles of pairs change
// turns   [[buffer(1)]]  batch × pairs × 64 × 64: the transpose of each pair's Q, if its flag is set
// flags   [[buffer(2)]]  batch × rounds × pairs
[[kernel, max_total_threads_per_threadgroup(THREADS)]] void eigh_solve(
    device float *work [[buffer(0)]],
    device float *turns [[buffer(1)]],
    device int *flags [[buffer(2)]],
    constant EighBlocked &problem [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float elements[TILE * (TILE + 1) / 2];
    threadgroup float vectors[TILE * TILE_PITCH];
    threadgroup Rotation rotations[TILE / 2];
    threadgroup uint2 pairs[TILE / 2];
    threadgroup float largest[1];
    threadgroup uint refused[MAX_SIMDGROUPS + 1];
    threadgroup uint order[1];
    uint matrix = group.y;
    uint count = problem.blocks / 2;
    device int *flag = flags + flags_at(problem, matrix, problem.round) + group.x;
    if (is_settled(flags, problem, matrix, problem.round)) {
        if (thread_index == 0) {
            *flag = 0;
        }
        return;
    }
    uint rows = rows_of(problem);
    uint2 pair = pair_of(group.x, problem.round % (problem.blocks - 1), problem.blocks);
    device float *whole = work + long(matrix) * rows * rows;
    for (uint at = thread_index; at < TILE * TILE; at += THREADS) {
        uint i = at / TILE;
        uint j = at % TILE;
        if (j <= i) {
            elements[packed(i, j)] = whole[row_of(pair, i) * rows + row_of(pair, j)];
        }
        vectors[i * TILE_PITCH + j] = i == j ? 1.0f : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bool is_changed = is_changed_by_sweep<TILE, true>(
        TILE, NEGLIGIBLE, Place{thread_index, THREADS, simdgroup, lane},
        Held{elements, vectors, rotations, pairs, largest, refused, order});
    if (thread_index == 0) {
        *flag = is_changed ? 1 : 0;
    }
    if (!is_changed) {
        return;
    }
    device float *turn = turns + (long(matrix) * count + group.x) * TILE * TILE;
    for (uint at = thread_index; at < TILE * TILE; at += THREADS) {
        uint i = at / TILE;
        uint j = at % TILE;
        whole[row_of(pair, i) * rows + row_of(pair, j)] = elements[packed(i, j)];
        turn[at] = vectors[i * TILE_PITCH + j];
    }
}

// A tile times Q, from the left or from the right. Each thread computes the elements (row + 16 a, column + 16 b).
struct Product {
    float sums[16];
};

inline Product from_left(device const float *turn, threadgroup const float *tile, uint row, uint column) {
    Product product = {};
    for (uint k = 0; k < TILE; k++) {
        for (uint a = 0; a < 4; a++) {
            float factor = turn[(row + 16 * a) * TILE + k];
            for (uint b = 0; b < 4; b++) {
                product.sums[4 * a + b] += factor * tile[k * TILE_PITCH + column + 16 * b];
            }
        }
    }
    return product;
}

inline Product from_right(device const float *turn, threadgroup const float *tile, uint row, uint column) {
    Product product = {};
    for (uint k = 0; k < TILE; k++) {
        for (uint b = 0; b < 4; b++) {
            float factor = turn[(column + 16 * b) * TILE + k];
            for (uint a = 0; a < 4; a++) {
                product.sums[4 * a + b] += factor * tile[(row + 16 * a) * TILE_PITCH + k];
            }
        }
    }
    return product;
}

// Replaces the tile by the product. Every thread has computed a part of it.
inline void replace(threadgroup float *tile, Product product, uint row, uint column) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint a = 0; a < 4; a++) {
        for (uint b = 0; b < 4; b++) {
            tile[(row + 16 * a) * TILE_PITCH + column + 16 * b] = product.sums[4 * a + b];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// work, turns, flags  [[buffer(0, 1, 2)]]  as above
// vt                  [[buffer(3)]]        as above
// grid: threadgroups (tiles, batch). The tiles are those of two pairs p < q and, if eigenvectors are computed,
// pairs × pairs tiles of Vᵀ
[[kernel, max_total_threads_per_threadgroup(THREADS)]] void eigh_apply(
    device float *work [[buffer(0)]],
    device const float *turns [[buffer(1)]],
    device const int *flags [[buffer(2)]],
    device float *vt [[buffer(3)]],
    constant EighBlocked &problem [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float tile[TILE * TILE_PITCH];
    uint matrix = group.y;
    uint count = problem.blocks / 2;
    uint tiles = count * (count - 1) / 2;
    bool is_vectors = group.x >= tiles;
    uint p = is_vectors ? (group.x - tiles) / count : 0;
    uint q = is_vectors ? (group.x - tiles) % count : group.x + 1;
    while (!is_vectors && q >= count) {
        p++;
        q = q - count + p + 1;
    }
    device const int *flag = flags + flags_at(problem, matrix, problem.round);
    bool is_left = flag[p] != 0;
    bool is_right = !is_vectors && flag[q] != 0;
    if (!is_left && !is_right) {
        return;
    }
    uint rows = rows_of(problem);
    uint step = problem.round % (problem.blocks - 1);
    uint2 down = pair_of(p, step, problem.blocks);
    uint2 across = is_vectors ? uint2(2 * q, 2 * q + 1) : pair_of(q, step, problem.blocks);
    device float *whole = (is_vectors ? vt : work) + long(matrix) * rows * rows;
    device const float *left = turns + (long(matrix) * count + p) * TILE * TILE;
    device const float *right = turns + (long(matrix) * count + q) * TILE * TILE;
    for (uint at = thread_index; at < TILE * TILE; at += THREADS) {
        tile[at / TILE * TILE_PITCH + at % TILE] = whole[row_of(down, at / TILE) * rows + row_of(across, at % TILE)];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint row = thread_index / 16;
    uint column = thread_index % 16;
    if (is_left) {
        replace(tile, from_left(left, tile, row, column), row, column);
    }
    if (is_right) {
        replace(tile, from_right(right, tile, row, column), row, column);
    }
    for (uint at = thread_index; at < TILE * TILE; at += THREADS) {
        uint i = at / TILE;
        uint j = at % TILE;
        whole[row_of(down, i) * rows + row_of(across, j)] = tile[i * TILE_PITCH + j];
        if (!is_vectors) {
            whole[row_of(across, i) * rows + row_of(down, j)] = tile[j * TILE_PITCH + i];
        }
    }
}

// work, vt, scales, codes, flags  [[buffer(0 … 4)]]  as above
// eigenvalues                     [[buffer(5)]]      batch × size, ascending
// info                            [[buffer(6)]]      batch: 0, the code, or size + 1
// eigenvectors                    [[buffer(7)]]      batch × size × size, in columns, if vectors are computed
[[kernel, max_total_threads_per_threadgroup(THREADS)]] void eigh_finish(
    device const float *work [[buffer(0)]],
    device const float *vt [[buffer(1)]],
    device const float *scales [[buffer(2)]],
    device const int *codes [[buffer(3)]],
    device const int *flags [[buffer(4)]],
    device float *eigenvalues [[buffer(5)]],
    device int *info [[buffer(6)]],
    device float *eigenvectors [[buffer(7)]],
    constant EighBlocked &problem [[buffer(8)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float values[MAX_ROWS];
    threadgroup float signs[MAX_ROWS];
    threadgroup uint order[MAX_ROWS];
    uint size = uint(problem.size);
    uint rows = rows_of(problem);
    bool has_vectors = problem.vectors != 0;
    device const float *rotated = work + long(matrix) * rows * rows;
    device const float *vectors = vt + (has_vectors ? long(matrix) * rows * rows : 0);
    int code = codes[matrix];
    if (code == 0 && !is_settled(flags, problem, matrix, problem.rounds)) {
        code = int(size) + 1;
    }
    float nan = as_type<float>(0x7fc00000u);
    for (uint i = thread_index; i < size; i += THREADS) {
        values[i] = rotated[i * rows + i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < size; i += THREADS) {
        uint rank = 0;
        for (uint j = 0; j < size; j++) {
            rank += values[j] < values[i] || (values[j] == values[i] && j < i) ? 1 : 0;
        }
        eigenvalues[long(matrix) * size + rank] = code == 0 ? values[i] * scales[matrix] : nan;
        order[rank] = i;
        if (has_vectors) {
            float largest = 0.0f;
            for (uint j = 0; j < size; j++) {
                float value = vectors[i * rows + j];
                largest = fabs(value) > fabs(largest) ? value : largest;
            }
            signs[i] = largest < 0.0f ? -1.0f : 1.0f;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (has_vectors) {
        for (uint at = thread_index; at < size * size; at += THREADS) {
            uint from = order[at % size];
            eigenvectors[long(matrix) * size * size + at] =
                code == 0 ? vectors[from * rows + at / size] * signs[from] : nan;
        }
    }
    if (thread_index == 0) {
        info[matrix] = code;
    }
}
