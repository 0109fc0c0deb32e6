// Least squares: one threadgroup per system. The matrix is in threadgroup memory, with rows of `stride` elements:
//
//   A P = Q [R1 R2; 0 0]      Householder reflections of columns with column pivoting; R1 has the size of the rank
//   [R1 R2] = [T 0] Zᵀ        reflections of rows, from the last row to the first
//   X = P Z [T⁻¹ (Qᵀ B)1; 0]  one SIMD-group for each column of B
//
// Source: G. Golub and C. Van Loan, "Matrix Computations", 2013, section 5.5.4. The rank is the size of the largest
// leading triangle whose smallest singular value is at least `rcond` times the largest. Both are estimated column by
// column: C. Bischof, "Incremental condition estimation", 1990.

#include <metal_stdlib>
using namespace metal;

#include "linalg/place.h"
#include "linalg/reflections.h"

// - rows: of a matrix in threadgroup memory
// - width: columns of B
// - a_rows: in device memory; if more than `rows`, only the upper triangle of the first `rows` is read
// - b_rows: rows of B in device memory
// - stride: between rows in threadgroup memory
// - team: lanes that share a column
#include "generated/lstsq.h"

#define LANES 32u

// A system in threadgroup memory.
struct System {
    threadgroup float *a;
    threadgroup float *v;      // scratch for a row or a column
    threadgroup float *tau;    // tau of the reflections of columns
    threadgroup float *turns;  // tau of the reflections of rows
    threadgroup float *norms;
    threadgroup uint *order;  // the order of the columns
    uint rows;
    uint columns;
    uint stride;
    uint count;
};

// Computes the norms of the columns from row k on.
inline void measure(System system, uint k, Place place) {
    for (uint j = k + place.group; j < system.columns; j += place.groups) {
        Reflection column = reflection_of(system.a + j, k, system.rows, system.stride, place.lane);
        if (place.lane == 0) {
            system.norms[j] = fabs(column.beta);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Returns the column with the largest norm from column k on, the first of equal ones. Every SIMD-group computes it.
inline uint longest_of(System system, uint k, uint lane) {
    float largest = -1.0f;
    uint first = system.columns;
    for (uint j = k + lane; j < system.columns; j += LANES) {
        float norm = system.norms[j];
        if (norm > largest) {
            largest = norm;
            first = j;
        }
    }
    float overall = simd_max(largest);
    uint chosen = simd_min(largest == overall ? first : system.columns);
    return chosen < system.columns ? chosen : k;  // if all norms are NaN
}

// Swaps columns k and `other`.
inline void swap_columns(System system, uint k, uint other, Place place) {
    for (uint i = place.index; i < system.rows && other != k; i += place.threads) {
        threadgroup float *row = system.a + i * system.stride;
        float first = row[k];
        row[k] = row[other];
        row[other] = first;
    }
    if (place.index == 0 && other != k) {
        uint first = system.order[k];
        system.order[k] = system.order[other];
        system.order[other] = first;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// An update of the right singular vector of [s 0; a g] for an extreme singular value: the factor of the previous
// vector, and the new element.
struct Extension {
    float along;
    float across;
};

// Computes half of the angle whose tangent is 2 a g / (s² + a² - g²), which maximizes the length of [s 0; a g] times a
// unit vector.
inline Extension extension_of(float s, float a, float g) {
    float difference = s * s + (a - g) * (a + g);
    float product = 2.0f * a * g;
    float length = precise::sqrt(difference * difference + product * product);
    if (length == 0.0f) {
        return {1.0f, 0.0f};
    }
    float cosine = precise::divide(fabs(difference), length);
    float large = precise::sqrt(0.5f * (1.0f + cosine));
    float small = precise::divide(fabs(product), 2.0f * length * large);
    float sign = product < 0.0f ? -1.0f : 1.0f;
    return difference < 0.0f ? Extension{small, sign * large} : Extension{large, sign * small};
}

// `value` is the estimated extreme singular value of the leading triangle of k columns, and `vector` its left vector.
// Returns the estimate for the triangle of k + 1 columns, and updates `vector`.
inline float extended(System system, uint k, float value, threadgroup float *vector, bool is_largest, uint lane) {
    float sum = 0.0f;
    for (uint i = lane; i < k; i += LANES) {
        sum += vector[i] * system.a[i * system.stride + k];
    }
    float alpha = team_sum(sum, LANES);
    float gamma = system.a[k * system.stride + k];
    float scale = max(value, max(fabs(alpha), fabs(gamma)));
    bool is_zero = !(scale > 0.0f);
    float s = is_zero ? 0.0f : precise::divide(value, scale);
    float a = is_zero ? 0.0f : precise::divide(alpha, scale);
    float g = is_zero ? 0.0f : precise::divide(gamma, scale);
    Extension found = extension_of(s, a, g);
    float x = s * found.along;
    float y = a * found.along + g * found.across;
    float most = precise::sqrt(x * x + y * y);
    float factor = is_zero ? 0.0f : (is_largest ? found.along : -found.across);
    for (uint i = lane; i < k; i += LANES) {
        vector[i] *= factor;
    }
    if (lane == k % LANES) {
        vector[k] = is_zero ? 1.0f : (is_largest ? found.across : found.along);
    }
    float least = is_zero ? 0.0f : precise::divide(s * fabs(g), most);
    return is_zero ? 0.0f : scale * (is_largest ? most : least);
}

// Determines the rank. Must be called by one SIMD-group. `vectors` has room for two vectors of `count` elements.
inline uint rank_of(System system, threadgroup float *vectors, float rcond, uint lane) {
    float largest = system.count > 0 ? fabs(system.a[0]) : 0.0f;
    if (largest == 0.0f) {
        return 0;
    }
    threadgroup float *least = vectors + system.count;
    if (lane == 0) {
        vectors[0] = 1.0f;
        least[0] = 1.0f;
    }
    float smallest = largest;
    for (uint k = 1; k < system.count; k++) {
        largest = extended(system, k, largest, vectors, true, lane);
        smallest = extended(system, k, smallest, least, false, lane);
        if (!(largest * rcond <= smallest)) {
            return k;
        }
    }
    return system.count;
}

// [R1 R2] = [T 0] Zᵀ: replaces R1 by T, and R2 by the vectors of the reflections of rows.
inline void turn_rows(System system, uint rank, Place place) {
    uint others = system.columns - rank;
    for (uint i = rank; i-- > 0;) {
        threadgroup float *row = system.a + i * system.stride;
        Reflection found = reflection_of(row[i], row + rank, others, 1, place.lane);
        for (uint j = place.index; j < others; j += place.threads) {
            system.v[j] = found.tau == 0.0f ? 0.0f : precise::divide(row[rank + j], found.scale) * found.factor;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = place.index; j < others; j += place.threads) {
            row[rank + j] = system.v[j];
        }
        if (place.index == 0) {
            row[i] = found.beta;
            system.turns[i] = found.tau;
        }
        for (uint above = place.group; above < i; above += place.groups) {
            threadgroup float *other = system.a + above * system.stride;
            float first = other[i];
            float sum = 0.0f;
            for (uint j = place.lane; j < others; j += LANES) {
                sum += system.v[j] * other[rank + j];
            }
            float change = found.tau * (first + team_sum(sum, LANES));
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (uint j = place.lane; j < others && found.tau != 0.0f; j += LANES) {
                other[rank + j] -= system.v[j] * change;
            }
            if (place.lane == 0 && found.tau != 0.0f) {
                other[i] = first - change;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// Returns element k of a vector whose elements are interleaved among the lanes.
inline float element_of(threadgroup const float *y, uint k, uint lane) {
    return simd_shuffle(lane == k % LANES ? y[k] : 0.0f, ushort(k % LANES));
}

// Replaces a column of B, in `y`, by a column of X whose rows are not reordered yet. One SIMD-group computes it; each
// lane accesses only every 32nd element of y.
inline void solve_column(System system, uint rank, threadgroup float *y, uint lane) {
    for (uint k = 0; k < system.count; k++) {
        threadgroup const float *v = system.a + k;
        float sum = 0.0f;
        for (uint i = lane; i < system.rows; i += LANES) {
            sum += i > k ? v[i * system.stride] * y[i] : 0.0f;
        }
        float first = element_of(y, k, lane);
        float change = system.tau[k] * (first + team_sum(sum, LANES));
        for (uint i = lane; i < system.rows && system.tau[k] != 0.0f; i += LANES) {
            y[i] = i < k ? y[i] : (i == k ? first - change : y[i] - v[i * system.stride] * change);
        }
    }
    for (uint k = rank; k-- > 0;) {
        float x = precise::divide(element_of(y, k, lane), system.a[k * system.stride + k]);
        for (uint i = lane; i <= k; i += LANES) {
            y[i] = i == k ? x : y[i] - system.a[i * system.stride + k] * x;
        }
    }
    for (uint i = lane; i < system.columns; i += LANES) {
        y[i] = i < rank ? y[i] : 0.0f;
    }
    for (uint k = 0; k < rank && rank < system.columns; k++) {
        threadgroup const float *v = system.a + k * system.stride;
        float sum = 0.0f;
        for (uint j = lane; j < system.columns; j += LANES) {
            sum += j < rank ? 0.0f : v[j] * y[j];
        }
        float first = element_of(y, k, lane);
        float change = system.turns[k] * (first + team_sum(sum, LANES));
        for (uint j = lane; j < system.columns && system.turns[k] != 0.0f; j += LANES) {
            y[j] = j == k ? first - change : (j < rank ? y[j] : y[j] - v[j] * change);
        }
    }
}

inline void load(System system, device const float *a, bool is_triangle, Place place) {
    for (uint at = place.index; at < system.rows * system.columns; at += place.threads) {
        uint i = at / system.columns;
        uint j = at % system.columns;
        system.a[i * system.stride + j] = is_triangle && j < i ? 0.0f : a[at];
    }
    for (uint j = place.index; j < system.columns; j += place.threads) {
        system.order[j] = j;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// a      [[buffer(0)]]  batch × a_rows × columns
// b      [[buffer(1)]]  batch × b_rows × width
// x      [[buffer(2)]]  batch × columns × width
// rank   [[buffer(3)]]  batch
// info   [[buffer(4)]]  batch: 0; without pivoting, the first 0 on the diagonal of T, counted from 1
// memory [[threadgroup(0)]]  rows × stride, then 4 min(rows, columns) + columns, then max(rows, columns) for each
//                            SIMD-group, and once more
// order  [[threadgroup(1)]]  columns + 1
kernel void lstsq(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    device int *rank [[buffer(3)]],
    device int *info [[buffer(4)]],
    constant Lstsq &problem [[buffer(5)]],
    threadgroup float *memory [[threadgroup(0)]],
    threadgroup uint *order [[threadgroup(1)]],
    PLACE_ARGUMENTS) {
    Place place = {matrix, index, threads, group, groups, lane};
    Teams teams = {index, threads, uint(problem.team)};
    System system;
    system.rows = uint(problem.rows);
    system.columns = uint(problem.columns);
    system.stride = uint(problem.stride);
    system.count = min(system.rows, system.columns);
    system.a = memory;
    system.tau = memory + system.rows * system.stride;
    system.turns = system.tau + system.count;
    threadgroup float *vectors = system.turns + system.count;
    system.norms = vectors + 2 * system.count;
    system.v = system.norms + system.columns;
    system.order = order;
    uint longest = max(system.rows, system.columns);
    threadgroup float *y = system.v + (1 + group) * longest;
    load(system, a + ulong(matrix) * problem.a_rows * system.columns, problem.is_triangle != 0, place);
    bool is_pivoted = problem.is_pivoted != 0;
    for (uint k = 0; k < system.count; k++) {
        if (is_pivoted) {
            measure(system, k, place);
            swap_columns(system, k, longest_of(system, k, lane), place);
        }
        reflect_by_column(system.a, system.stride, system.rows, system.columns, k, system.v, system.tau, teams);
    }
    if (is_pivoted && group == 0) {
        uint found = rank_of(system, vectors, problem.rcond, lane);
        if (lane == 0) {
            order[system.columns] = found;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint size = is_pivoted ? order[system.columns] : system.count;
    if (size < system.columns) {
        turn_rows(system, size, place);
    }
    if (index == 0) {
        int zero = 0;
        for (uint i = size; i-- > 0 && !is_pivoted;) {
            zero = system.a[i * system.stride + i] == 0.0f ? int(i) + 1 : zero;
        }
        rank[matrix] = int(size);
        info[matrix] = zero;
    }
    device const float *sides = b + ulong(matrix) * problem.b_rows * problem.width;
    device float *solution = x + ulong(matrix) * system.columns * problem.width;
    for (uint column = group; column < problem.width; column += groups) {
        for (uint i = lane; i < system.rows; i += LANES) {
            y[i] = sides[i * problem.width + column];
        }
        solve_column(system, size, y, lane);
        for (uint j = lane; j < system.columns; j += LANES) {
            solution[system.order[j] * problem.width + column] = y[j];
        }
    }
}

// Copies R and the first rows of the right-hand side to which the reflections were applied, and finds a 0 on R's
// diagonal.
//
// a      [[buffer(0)]]  batch × a_rows × columns: R in the upper triangle
// b      [[buffer(1)]]  batch × b_rows × width
// c      [[buffer(2)]]  batch × columns × width
// r      [[buffer(3)]]  batch × columns × columns
// rank   [[buffer(4)]]  batch
// info   [[buffer(5)]]  batch
kernel void take_triangle(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *c [[buffer(2)]],
    device float *r [[buffer(3)]],
    device int *rank [[buffer(4)]],
    device int *info [[buffer(5)]],
    constant Lstsq &problem [[buffer(6)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint index [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    uint columns = uint(problem.columns);
    ulong sides = ulong(columns) * ulong(problem.width);
    device const float *factors = a + ulong(matrix) * problem.a_rows * columns;
    device const float *from = b + ulong(matrix) * problem.b_rows * problem.width;
    for (ulong at = index; at < sides; at += threads) {
        c[matrix * sides + at] = from[at];
    }
    for (uint at = index; at < columns * columns; at += threads) {
        uint i = at / columns;
        uint j = at % columns;
        r[ulong(matrix) * columns * columns + at] = j < i ? 0.0f : factors[at];
    }
    uint first = columns;
    for (uint i = lane; i < columns; i += LANES) {
        first = factors[i * columns + i] == 0.0f ? min(first, i) : first;
    }
    first = simd_min(first);
    if (index == 0) {
        rank[matrix] = int(columns);
        info[matrix] = first < columns ? int(first) + 1 : 0;
    }
}
