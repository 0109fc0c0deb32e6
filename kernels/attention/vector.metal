// out and L of attention (problem.h) for few queries, as in decoding. Few rows use the keys of a head, so tiles would
// not pay off, and memory bandwidth determines the time.
//
// attention_vector: a threadgroup processes a team of rows and a part of their keys, so that keys and values are read
// once for the team. A team consists of queries of the G heads that share a head of keys, query by query. The
// SIMDGROUPS SIMD-groups take turns, KEYS keys at a time; the lanes of a SIMD-group divide the elements along D and E.
// The lanes' partial sums of KEYS · ROWS products are added in such a way that each lane ends up with the product of
// one pair; it computes that pair's score, softmax and dropout. Each SIMD-group has a separate online softmax
// (forward.metal gives its source). The first SIMD-group merges them; its own part is in its registers:
//
//     top = max tops,  total = Σ totals exp(tops - top),  row = Σ rows exp(tops - top)
//
// Long sequences of keys are split into parts, whose tops, totals and rows are written to memory. `vector_combine`
// merges them in order, so that the result is the same in every run. Grid: threadgroups (teams · parts, heads of keys,
// sequences); for vector_combine (queries, heads, sequences), with as many threads as a row has elements.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"

#define VECTOR_WIDTH 256
// Number of parts of a row that are loaded before the first one is added, so that the loads overlap.
#define READ_AHEAD 8

// The elements of each row in a lane, and the keys that a SIMD-group processes at a time, depending on the rows of a
// team. The registers of a lane limit its queries, sums and products (src/ops/attention/tiles.metal.ts, `vectorTeam`).
constexpr int lane_elements(int rows) { return rows == 8 ? 4 : VECTOR_WIDTH / 32; }
constexpr int keys_at_a_time(int rows) { return rows == 8 ? 4 : 8; }

// Returns the number of adjacent elements that a lane loads at once from a row of `dim` elements.
inline uint run_of(uint dim) { return !has(ATTENTION_OPTION_QUADS) ? 1 : dim % 128 == 0 ? 4 : dim % 64 == 0 ? 2 : 1; }

// Returns the index of a lane's i-th element.
inline uint element_of(int i, uint lane, uint dim) {
    const uint run = run_of(dim);
    return uint(i) / run * run * 32 + lane * run + uint(i) % run;
}

// Loads a lane's elements of one row of keys or values.
template <typename T, int ELEMENTS>
inline void load_elements(thread float *elements, device const T *row, long column, uint dim, uint lane) {
    const uint run = run_of(dim);
    UNROLLED
    for (int i = 0; i < ELEMENTS; i += 1) {
        const uint e = element_of(i, lane, dim);
        if (run == 4 && i % 4 == 0 && e < dim) {
            const float4 four = float4(*reinterpret_cast<device const vec<T, 4> *>(row + e));
            elements[i] = four.x;
            elements[i + 1] = four.y;
            elements[i + 2] = four.z;
            elements[i + 3] = four.w;
        } else if (run == 2 && i % 2 == 0 && e < dim) {
            const float2 two = float2(*reinterpret_cast<device const vec<T, 2> *>(row + e));
            elements[i] = two.x;
            elements[i + 1] = two.y;
        } else if (run == 1) {
            elements[i] = e < dim ? float(row[e * column]) : 0.0f;
        }
    }
}

// Computes the sum over the lanes of each of COUNT numbers; a lane gets the sum of number lane · COUNT / 32. In each
// step, each half of the lanes passes half of its numbers to the other half. The order of additions is the same in
// every run. (Each step is a template instance, since the compiler does not know the indices of a loop whose bound an
// outer loop sets.)
template <int COUNT> inline float scattered_sum(thread float *numbers, uint lane, ushort step = 16) {
    const bool is_upper = lane & step;
    UNROLLED
    for (int i = 0; i < COUNT / 2; i += 1) {
        const float given = is_upper ? numbers[i] : numbers[i + COUNT / 2];
        numbers[i] = (is_upper ? numbers[i + COUNT / 2] : numbers[i]) + simd_shuffle_xor(given, step);
    }
    return scattered_sum<COUNT / 2>(numbers, lane, step / 2);
}

template <> inline float scattered_sum<1>(thread float *numbers, uint, ushort step) {
    float sum = numbers[0];
    for (; step > 0; step /= 2) {
        sum += simd_shuffle_xor(sum, step);
    }
    return sum;
}

// Divides a row of sums by its total, which includes the sink, and writes the row. Each thread writes its elements.
template <typename T>
inline void finish_row(
    constant Attention &a,
    Sequence s,
    uint head,
    int query,
    device const T *sinks,
    device T *out,
    device float *log_sum_exp,
    device float *log_sum_exp_low,
    float sum,
    float top,
    float total,
    uint e) {
    float factor = 1.0f;
    if (has(ATTENTION_OPTION_SINKS)) {
        const float sink = float(sinks[row_offset(a.sinks, 0, head, 0)]);
        const float most = max(top, sink);
        factor = top == -INFINITY ? 0.0f : exponential(top - most);
        total = (total == 0.0f ? 0.0f : total * factor) + (sink == -INFINITY ? 0.0f : exponential(sink - most));
        top = most;
    }
    if (e < VALUE_DIM) {
        const long offset = row_offset(a.out, s.batch, head, s.query_start + query) + e * a.out.column;
        out[offset] = T(total == 0.0f ? 0.0f : sum * factor / total);
    }
    if (has(ATTENTION_OPTION_LOG_SUM_EXP) && e == 0) {
        store_log_sum_exp(a, s, head, query, log_sum_exp_of(top, total), log_sum_exp, log_sum_exp_low);
    }
}

inline float shrunk(float top, float to) { return top == -INFINITY ? 0.0f : exponential(top - to); }

// A row of a team: a query of one head.
struct TeamRow {
    int query;
    uint head;
};

inline TeamRow team_row(constant Attention &a, uint key_head, int row) {
    return {row / int(a.group), key_head * uint(a.group) + uint(row % int(a.group))};
}

// Returns the offset in `parts` of a part of a row. The parts of a row are adjacent.
inline ulong part_offset(constant Attention &a, Sequence s, TeamRow row, long part) {
    const long index = (s.batch * a.heads + row.head) * a.queries + s.query_start + row.query;
    return ulong(index * a.parts + part) * (VALUE_DIM + 2);
}

// FORWARD_ARGUMENTS (problem.h), and
// parts           [[buffer(11)]]       if keys are split: for each row its parts, each E sums, a top and a total
// rows            [[threadgroup(0)]]   (SIMDGROUPS - 1) · ROWS · E floats: sums of all SIMD-groups but the first
template <typename T, int SIMDGROUPS, int ROWS>
kernel void attention_vector(
    FORWARD_ARGUMENTS(T),
    device float *parts [[buffer(11)]],
    constant Attention &a [[buffer(12)]],
    threadgroup float *rows [[threadgroup(0)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr int ELEMENTS = lane_elements(ROWS);
    constexpr int KEYS = keys_at_a_time(ROWS);
    constexpr int SHARERS = 32 / (KEYS * ROWS);  // lanes that share a pair
    threadgroup float tops[SIMDGROUPS * ROWS];
    threadgroup float totals[SIMDGROUPS * ROWS];

    const Sequence s = sequence_of(a, sequences, group.z);
    const int first_row = int(group.x) / int(a.parts) * ROWS;
    const int rows_left = min(ROWS, s.queries * int(a.group) - first_row);
    if (rows_left <= 0) {
        return;
    }
    float q_rows[ROWS][ELEMENTS];
    float sums[ROWS][ELEMENTS];
    UNROLLED
    for (int r = 0; r < ROWS; r += 1) {
        const TeamRow row = team_row(a, group.y, first_row + min(r, rows_left - 1));
        device const T *q_row = q + row_offset(a.q, s.batch, row.head, s.query_start + row.query);
        UNROLLED
        for (int i = 0; i < ELEMENTS; i += 1) {
            const uint d = element_of(i, lane, DIM);
            q_rows[r][i] = d < DIM ? float(q_row[d * a.q.column]) : 0.0f;
            sums[r][i] = 0.0f;
        }
    }
    // This lane's row, and its key among each KEYS keys.
    const int key_of_lane = int(lane) / SHARERS / ROWS;
    const int row_of_lane = int(lane) / SHARERS % ROWS;
    const TeamRow lane_row = team_row(a, group.y, first_row + min(row_of_lane, rows_left - 1));
    const Pairs<T> pairs = pairs_of(a, s, lane_row.head, mask, bias, slopes);

    const int last_query = team_row(a, group.y, first_row + rows_left - 1).query;
    const Interval range = keys_of(a, s, first_row / int(a.group), last_query);
    const long part = long(group.x) % a.parts;
    const long first = range.first + part * a.part_keys;
    const int end = int(min(long(range.end), first + a.part_keys));
    float top = -INFINITY;
    float total = 0.0f;
    for (long block = first + simdgroup * KEYS; block < end; block += SIMDGROUPS * KEYS) {
        const int key = int(block) + key_of_lane;
        const bool counts = row_of_lane < rows_left && key < end && attends(a, pairs, lane_row.query, key);
        if (!simd_any(counts)) {
            continue;
        }
        const int keys_left = end - int(block);
        float products[KEYS * ROWS];
        device const T *key_row = k + row_offset(a.k, s.batch, group.y, s.key_start + block);
        UNROLLED
        for (int step = 0; step < KEYS; step += 1) {
            float elements[ELEMENTS];
            load_elements<T, ELEMENTS>(elements, key_row, a.k.column, DIM, lane);
            key_row += step + 1 < keys_left ? a.k.row : 0;  // beyond the end, load the last key again
            UNROLLED
            for (int r = 0; r < ROWS; r += 1) {
                float product = 0.0f;
                UNROLLED
                for (int i = 0; i < ELEMENTS; i += 1) {
                    if (element_of(i, 0, DIM) < DIM) {
                        product = fma(q_rows[r][i], elements[i], product);
                    }
                }
                products[step * ROWS + r] = product;
            }
        }
        const float product = scattered_sum<KEYS * ROWS>(products, lane);
        const float score = counts ? score_of(a, pairs, true, lane_row.query, key, product).value : -INFINITY;
        float most = score;
        UNROLLED
        for (ushort step = SHARERS * ROWS; step < 32; step *= 2) {
            most = max(most, simd_shuffle_xor(most, step));
        }
        if (simd_any(most > top)) {
            const float larger = max(top, most);
            const float factor = shrunk(top, larger);
            total *= factor;
            top = larger;
            UNROLLED
            for (int r = 0; r < ROWS; r += 1) {
                const float of_row = simd_shuffle(factor, ushort(r * SHARERS));
                UNROLLED
                for (int i = 0; i < ELEMENTS; i += 1) {
                    sums[r][i] *= of_row;
                }
            }
        }
        const float p = score == -INFINITY ? 0.0f : exponential(score - top);
        const float dropped = p == 0.0f ? 0.0f : p * kept(a, s, lane_row.head, lane_row.query, key);
        total += p;
        device const T *value_row = v + row_offset(a.v, s.batch, group.y, s.key_start + block);
        UNROLLED
        for (int step = 0; step < KEYS; step += 1) {
            float elements[ELEMENTS];
            load_elements<T, ELEMENTS>(elements, value_row, a.v.column, VALUE_DIM, lane);
            value_row += step + 1 < keys_left ? a.v.row : 0;
            UNROLLED
            for (int r = 0; r < ROWS; r += 1) {
                const float weight = simd_shuffle(dropped, ushort((step * ROWS + r) * SHARERS));
                if (weight == 0.0f) {
                    continue;  // the value may be NaN or infinite
                }
                UNROLLED
                for (int i = 0; i < ELEMENTS; i += 1) {
                    if (element_of(i, 0, VALUE_DIM) < VALUE_DIM) {
                        sums[r][i] = fma(weight, elements[i], sums[r][i]);
                    }
                }
            }
        }
    }
    UNROLLED
    for (ushort step = SHARERS * ROWS; step < 32; step *= 2) {
        total += simd_shuffle_xor(total, step);
    }
    UNROLLED
    for (int r = 0; r < ROWS; r += 1) {
        UNROLLED
        for (int i = 0; i < ELEMENTS; i += 1) {
            const uint e = element_of(i, lane, VALUE_DIM);
            if (simdgroup > 0 && r < rows_left && e < VALUE_DIM) {
                rows[((simdgroup - 1) * ROWS + r) * VALUE_DIM + e] = sums[r][i];
            }
        }
    }
    if (key_of_lane == 0 && lane % SHARERS == 0) {
        tops[simdgroup * ROWS + row_of_lane] = top;
        totals[simdgroup * ROWS + row_of_lane] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (simdgroup > 0) {
        return;
    }
    UNROLLED
    for (int r = 0; r < ROWS; r += 1) {
        if (r >= rows_left) {
            break;
        }
        const float lane_top = lane < SIMDGROUPS ? tops[lane * ROWS + r] : -INFINITY;
        const float row_top = simd_max(lane_top);
        const float lane_factor = shrunk(lane_top, row_top);
        const float lane_total = lane < SIMDGROUPS ? totals[lane * ROWS + r] : 0.0f;
        float row_total = 0.0f;
        for (ushort other = 0; other < SIMDGROUPS; other += 1) {
            const float factor = simd_shuffle(lane_factor, other);
            row_total = fma(simd_shuffle(lane_total, other), factor, row_total);
            UNROLLED
            for (int i = 0; i < ELEMENTS; i += 1) {
                const uint e = element_of(i, lane, VALUE_DIM);
                if (other == 0) {
                    sums[r][i] *= factor;
                } else if (e < VALUE_DIM) {
                    sums[r][i] = fma(rows[((other - 1) * ROWS + r) * VALUE_DIM + e], factor, sums[r][i]);
                }
            }
        }
        const TeamRow row = team_row(a, group.y, first_row + r);
        device float *row_part = parts + (a.parts == 1 ? 0 : part_offset(a, s, row, part));
        UNROLLED
        for (int i = 0; i < ELEMENTS; i += 1) {
            const uint e = element_of(i, lane, VALUE_DIM);
            const float sum = sums[r][i];
            if (a.parts == 1) {
                finish_row(
                    a, s, row.head, row.query, sinks, out, log_sum_exp, log_sum_exp_low, sum, row_top, row_total, e);
            } else if (e < VALUE_DIM) {
                row_part[e] = sum;
            }
        }
        if (a.parts > 1 && lane == 0) {
            row_part[VALUE_DIM] = row_top;
            row_part[VALUE_DIM + 1] = row_total;
        }
    }
}

// parts        [[buffer(0)]]  as attention_vector writes them
// sinks        [[buffer(1)]]  [H]
// sequences    [[buffer(2)]]  [count, 4]
// out          [[buffer(3)]]  [B, H, M, E]
// log_sum_exp  [[buffer(4)]]  [B, H, M]; its low part [[buffer(5)]]; written with LOG_SUM_EXP
template <typename T>
kernel void vector_combine(
    device const float *parts [[buffer(0)]],
    device const T *sinks [[buffer(1)]],
    device const int *sequences [[buffer(2)]],
    device T *out [[buffer(3)]],
    device float *log_sum_exp [[buffer(4)]],
    device float *log_sum_exp_low [[buffer(5)]],
    constant Attention &a [[buffer(6)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    const Sequence s = sequence_of(a, sequences, group.z);
    if (int(group.x) >= s.queries) {
        return;
    }
    device const float *first_part = parts + part_offset(a, s, {int(group.x), group.y}, 0);
    // Each lane reads the tops of every 32nd part.
    float top = -INFINITY;
    for (long part = lane; part < a.parts; part += 32) {
        top = max(top, first_part[part * (VALUE_DIM + 2) + VALUE_DIM]);
    }
    top = simd_max(top);
    float sum = 0.0f;
    float total = 0.0f;
    for (long first = 0; first < a.parts; first += 32) {
        device const float *row = first_part + first * (VALUE_DIM + 2);
        const ushort count = ushort(min(a.parts - first, long(32)));
        device const float *row_of_lane = row + min(lane, uint(count) - 1) * (VALUE_DIM + 2);
        const float part_factor = shrunk(row_of_lane[VALUE_DIM], top);
        const float part_total = row_of_lane[VALUE_DIM + 1];
        for (ushort part = 0; part < count; part += READ_AHEAD) {
            float sums[READ_AHEAD];
            UNROLLED
            for (ushort i = 0; i < READ_AHEAD; i += 1) {
                const bool is_inside = part + i < count && thread_index < VALUE_DIM;
                sums[i] = is_inside ? row[(part + i) * (VALUE_DIM + 2) + thread_index] : 0.0f;
            }
            UNROLLED
            for (ushort i = 0; i < READ_AHEAD; i += 1) {
                if (part + i < count) {
                    const float factor = simd_shuffle(part_factor, part + i);
                    total = fma(simd_shuffle(part_total, part + i), factor, total);
                    sum = fma(sums[i], factor, sum);
                }
            }
        }
    }
    finish_row(a, s, group.y, int(group.x), sinks, out, log_sum_exp, log_sum_exp_low, sum, top, total, thread_index);
}

#define VECTOR(T, SIMDGROUPS, ROWS)                                                                                    \
    template [[host_name("vector_" #T "_" #SIMDGROUPS "x" #ROWS)]] kernel void attention_vector<T, SIMDGROUPS, ROWS>(  \
        device const T *, device const T *, device const T *, device const bool *, device const T *, device const T *, \
        device const float *, device const int *, device T *, device float *, device float *, device float *,          \
        constant Attention &, threadgroup float *, uint3, uint, uint);
#define COMBINE(T)                                                                                              \
    template [[host_name("vector_combine_" #T)]] kernel void vector_combine<T>(                                 \
        device const float *, device const T *, device const int *, device T *, device float *, device float *, \
        constant Attention &, uint3, uint, uint);

// `vectorCut` chooses among these numbers of SIMD-groups, and `vectorTeam` among these numbers of rows
// (src/ops/attention/tiles.metal.ts).
#define TEAMS(T, SIMDGROUPS) \
    VECTOR(T, SIMDGROUPS, 1) \
    VECTOR(T, SIMDGROUPS, 2) \
    VECTOR(T, SIMDGROUPS, 4) \
    VECTOR(T, SIMDGROUPS, 8)
#define VECTORS(T) \
    TEAMS(T, 2)    \
    TEAMS(T, 8)    \
    COMBINE(T)

VECTORS(float)
VECTORS(half)
VECTORS(bfloat)
