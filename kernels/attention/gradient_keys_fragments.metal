// Computes the same as gradient_keys.metal, but keeps scores and their gradients in registers instead of threadgroup
// memory (fragments.h). The factors of gradOut and q are rounded to their type, as in FlashAttention-2 (Dao, 2023). The
// host uses this kernel on NVIDIA GPUs.
//
// There are two tasks for 16 keys, with two products each:
//
//     values: scores = k q^T,       gradV += z gradOut
//     keys:   grads = v gradOut^T,  gradK += du q
//
// One SIMD-group does both. With TEAM = 2, two SIMD-groups do one each, and the second receives the scores of the
// first. A threadgroup computes 16 · DOWN keys of one head, and loads QUERIES queries and their gradOut at a time.
// Grid: threadgroups (keys / rows, heads of keys, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/factor_tiles.h"

// A task of a SIMD-group.
template <typename F, int PARTS, int COUNT> struct KeysTask {
    bool is_keys;  // otherwise values
    bool has_nonfinite_row;
    Factors<F, PARTS, COUNT> rows;  // of v, otherwise of k
    SumBlocks<COUNT, 2> sums;       // gradK, otherwise gradV
};

// Gives the scores to the SIMD-group that receives them. All threads of the threadgroup take part. `shared` has a pair
// for each lane in each of QUERIES / 4 rows.
template <int QUERIES>
inline void share_scores(thread Sums (&scores)[2][QUERIES / 8], threadgroup float2 *shared, bool receives, uint lane) {
    if (!receives) {
        UNROLLED
        for (int matrix = 0; matrix < QUERIES / 4; matrix += 1) {
            shared[matrix * 32 + int(lane)] = fragment_elements(scores[matrix % 2][matrix / 2]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (receives) {
        UNROLLED
        for (int matrix = 0; matrix < QUERIES / 4; matrix += 1) {
            scores[matrix % 2][matrix / 2] = fragment_of(shared[matrix * 32 + int(lane)]);
        }
    }
}

// Sets each task's weights of its second product, for the queries from `query` on and the keys from `key` on. For
// `all_count`, see set_gradients in gradient_queries_fragments.metal.
template <typename T, typename F, int PARTS, int COUNT, int QUERIES, int TASKS>
inline void set_weights(
    constant Attention &a,
    thread const Pairs<T> &pairs,
    bool all_count,
    int query,
    int key,
    fragment_place place,
    threadgroup const RowSums *rows,
    thread const Sums (&scores)[2][QUERIES / 8],
    thread const Sums (&grads)[2][QUERIES / 8],
    thread const KeysTask<F, PARTS, COUNT> (&tasks)[TASKS],
    thread Factors<F, PARTS, QUERIES / 8> (&weights)[TASKS]) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = key + high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < QUERIES / 8; block += 1) {
            const int column = block * 8 + place.column;
            const float2 score = fragment_elements(scores[high][block]);
            const float2 grad = fragment_elements(grads[high][block]);
            const float2 kept = kept_along_queries(a, pairs.sequence, pairs.head, query + column, row);
            float2 dropped;
            float2 gradients;
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const Score of_pair = score_of(a, pairs, all_count, query + column + i, row, score[i]);
                const PairGradient gradient = gradient_for<T>(a, of_pair, grad[i], kept[i], rows[column + i]);
                dropped[i] = gradient.dropped;
                gradients[i] = gradient.product;
            }
            UNROLLED
            for (int task = 0; task < TASKS; task += 1) {
                weights[task].set(high, block, tasks[task].is_keys ? gradients : dropped);
            }
        }
    }
}

// GRADIENT_ARGUMENTS (problem.h), and
// grad_k, grad_v      [[buffer(11, 12)]]   the shapes of k and v
template <typename T, typename F, int WIDTH, int DOWN, int QUERIES, int TEAM>
[[kernel, max_total_threads_per_threadgroup(DOWN * TEAM * 32)]] void gradient_keys_fragments(
    GRADIENT_ARGUMENTS(T),
    device T *grad_k [[buffer(11)]],
    device T *grad_v [[buffer(12)]],
    constant Attention &a [[buffer(13)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * TEAM;
    constexpr int threads = simdgroups * 32;
    constexpr int parts = part_count<T>();
    constexpr int pitch = tile_pitch<F>(WIDTH);
    constexpr int blocks = WIDTH / 8;
    constexpr int task_count = 2 / TEAM;                   // of a SIMD-group
    constexpr bool reads_ahead = parts == 1 && TEAM == 2;  // otherwise there are too few registers

    threadgroup float4 memory[2 * parts * QUERIES * pitch * int(sizeof(F)) / 16];
    constexpr int strip_elements = parts * TALL_ROWS * QUERIES;  // of a SIMD-group
    constexpr int shared_bytes = TEAM == 2 ? TALL_ROWS * QUERIES * 4 / TEAM : 0;
    threadgroup float4 strips[simdgroups * tile_larger(strip_elements * int(sizeof(F)), shared_bytes) / 16];
    threadgroup RowSums rows[QUERIES];
    threadgroup uint nonfinite_queries[simdgroups];
    threadgroup uint nonfinite_grads[simdgroups];
    threadgroup F *q_tile = reinterpret_cast<threadgroup F *>(memory);
    threadgroup F *grad_tile = q_tile + parts * QUERIES * pitch;
    threadgroup F *strip = reinterpret_cast<threadgroup F *>(strips) + int(simdgroup) * strip_elements;
    const int team = int(simdgroup) / TEAM;
    threadgroup float2 *shared = reinterpret_cast<threadgroup float2 *>(strips) + team * (TALL_ROWS * QUERIES / 2);

    const Sequence s = sequence_of(a, sequences, group.z);
    // The first keys come first: in causal attention they have the most queries.
    const TileOfHead place_in_grid =
        tile_of_head(group, groups, s.queries * a.group * long(DIM + VALUE_DIM) * long(sizeof(T)));
    const int first_key = place_in_grid.tile * DOWN * TALL_ROWS;
    const uint key_head = uint(place_in_grid.head);
    if (first_key >= s.keys) {
        return;
    }
    // A task that is only known in a run uses the whole width, so that loops over matrices have constant bounds.
    const int dim_blocks = TEAM == 2 ? blocks : blocks_of(DIM, 1, 0).count;
    const int value_blocks = TEAM == 2 ? blocks : blocks_of(VALUE_DIM, 1, 0).count;
    const int simd_key = first_key + team * TALL_ROWS;
    const int rows_left = s.keys - simd_key;
    const fragment_place place = place_of_lane(ushort(lane));

    device const T *simd_keys = k + row_offset(a.k, s.batch, key_head, s.key_start + simd_key);
    device const T *simd_values = v + row_offset(a.v, s.batch, key_head, s.key_start + simd_key);
    KeysTask<F, parts, blocks> tasks[task_count];
    UNROLLED
    for (int task = 0; task < task_count; task += 1) {
        const bool is_keys = TEAM == 2 ? int(simdgroup) % TEAM == 1 : task == 1;
        tasks[task].is_keys = is_keys;
        tasks[task].has_nonfinite_row = simd_any(
            tasks[task].rows.load(
                is_keys ? simd_values : simd_keys, is_keys ? a.v : a.k, rows_left, int(is_keys ? VALUE_DIM : DIM),
                place));
        tasks[task].sums.clear();
    }

    const Interval range = queries_of(a, s, first_key, min(first_key + DOWN * TALL_ROWS, s.keys) - 1);
    const int first_query = range.first / 2 * 2;
    for (uint head = key_head * uint(a.group); head < (key_head + 1) * uint(a.group); head += 1) {
        const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
        device const T *queries = q + row_offset(a.q, s.batch, head, s.query_start);
        device const T *grads = grad_out + row_offset(a.grad_out, s.batch, head, s.query_start);
        TwoTiles<T, F, QUERIES, WIDTH, threads, reads_ahead> tiles;
        tiles.read_ahead(
            queries + first_query * a.q.row, a.q, grads + first_query * a.grad_out.row, a.grad_out,
            range.end - first_query, thread_index);
        for (int query = first_query; query < range.end; query += QUERIES) {
            device const T *tile_queries = queries + query * a.q.row;
            device const T *tile_grads = grads + query * a.grad_out.row;
            const int queries_left = range.end - query;
            threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
            const NonfiniteTiles nonfinite = tiles.write(
                q_tile, tile_queries, a.q, grad_tile, tile_grads, a.grad_out, queries_left, TEAM == 2, thread_index);
            report_nonfinite(nonfinite_queries, nonfinite.first, simdgroup, lane);
            report_nonfinite(nonfinite_grads, nonfinite.second, simdgroup, lane);
            for (int row = int(thread_index); row < QUERIES; row += threads) {
                rows[row] = row_sums(a, s, head, query + row, log_sum_exp, log_sum_exp_low, delta);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            tiles.read_ahead(
                tile_queries + QUERIES * a.q.row, a.q, tile_grads + QUERIES * a.grad_out.row, a.grad_out,
                queries_left - QUERIES, thread_index);

            Sums products[task_count][2][QUERIES / 8];
            UNROLLED
            for (int task = 0; task < task_count; task += 1) {
                const bool is_keys = tasks[task].is_keys;
                multiply_by_rows<F, parts, blocks, QUERIES, pitch>(
                    products[task], tasks[task].rows, is_keys ? grad_tile : q_tile,
                    is_keys ? value_blocks : dim_blocks);
                const bool has_nonfinite_column =
                    any_nonfinite<simdgroups>(is_keys ? nonfinite_grads : nonfinite_queries, lane);
                if (parts > 1 && (tasks[task].has_nonfinite_row || has_nonfinite_column)) {
                    replace_products<T, QUERIES>(
                        products[task], is_keys ? simd_values : simd_keys, is_keys ? a.v : a.k, rows_left,
                        is_keys ? tile_grads : tile_queries, is_keys ? a.grad_out : a.q, queries_left,
                        is_keys ? VALUE_DIM : DIM, place);
                }
            }
            Sums scores[2][QUERIES / 8];
            UNROLLED
            for (int matrix = 0; matrix < QUERIES / 4; matrix += 1) {
                scores[matrix % 2][matrix / 2] = products[0][matrix % 2][matrix / 2];
            }
            if (TEAM == 2) {
                share_scores<QUERIES>(scores, shared, tasks[0].is_keys, lane);
            }
            Factors<F, parts, QUERIES / 8> weights[task_count];
            if (simd_all(all_attend(a, s, {query, query + QUERIES}, {simd_key, simd_key + TALL_ROWS}))) {
                set_weights<T, F, parts, blocks, QUERIES, task_count>(
                    a, pairs, true, query, simd_key, place, rows, scores, products[task_count - 1], tasks, weights);
            } else {
                set_weights<T, F, parts, blocks, QUERIES, task_count>(
                    a, pairs, false, query, simd_key, place, rows, scores, products[task_count - 1], tasks, weights);
            }
            UNROLLED
            for (int task = 0; task < task_count; task += 1) {
                const bool is_keys = tasks[task].is_keys;
                threadgroup F *tile = is_keys ? q_tile : grad_tile;
                // With two SIMD-groups, each half of the threads makes one tile finite.
                if (any_nonfinite<simdgroups>(TEAM == 2 || is_keys ? nonfinite_queries : nonfinite_grads, lane) ||
                    (TEAM == 2 && any_nonfinite<simdgroups>(nonfinite_grads, lane))) {
                    without_nonfinite_values<T, F, parts, blocks, QUERIES, pitch, threads / TEAM>(
                        tasks[task].sums, weights[task], tile, is_keys ? DIM : VALUE_DIM,
                        is_keys ? tile_queries : tile_grads, is_keys ? a.q : a.grad_out, queries_left, strip,
                        int(is_keys ? DIM : VALUE_DIM), is_keys ? dim_blocks : value_blocks, place,
                        uint(team) * 32 + lane);
                }
                add_weighted_rows<F, parts, blocks, QUERIES, pitch>(
                    tasks[task].sums, weights[task], tile, is_keys ? dim_blocks : value_blocks);
            }
        }
    }
    const float factors[2] = {1.0f, 1.0f};
    UNROLLED
    for (int task = 0; task < task_count; task += 1) {
        const bool is_keys = tasks[task].is_keys;
        device T *result = is_keys ? grad_k + row_offset(a.grad_k, s.batch, key_head, s.key_start + simd_key)
                                   : grad_v + row_offset(a.grad_v, s.batch, key_head, s.key_start + simd_key);
        store_fragments(
            tasks[task].sums, result, is_keys ? a.grad_k : a.grad_v, rows_left, int(is_keys ? DIM : VALUE_DIM), factors,
            place);
    }
}

#define GRADIENT_KEYS_FRAGMENTS(T, F, WIDTH, DOWN, QUERIES, TEAM)                                               \
    template [[host_name("gradient_keys_fragments_" #T "_" #WIDTH "_" #DOWN "x" #QUERIES)]] kernel void         \
    gradient_keys_fragments<T, F, WIDTH, DOWN, QUERIES, TEAM>(                                                  \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, device T *, constant Attention &, uint3, uint3, uint, uint, uint);

GRADIENT_KEYS_FRAGMENTS(float, bfloat, 64, 4, 16, 1)
GRADIENT_KEYS_FRAGMENTS(float, bfloat, 128, 2, 16, 2)
GRADIENT_KEYS_FRAGMENTS(half, half, 64, 4, 32, 1)
GRADIENT_KEYS_FRAGMENTS(half, half, 128, 4, 32, 2)
GRADIENT_KEYS_FRAGMENTS(bfloat, bfloat, 64, 4, 32, 1)
GRADIENT_KEYS_FRAGMENTS(bfloat, bfloat, 128, 4, 32, 2)
