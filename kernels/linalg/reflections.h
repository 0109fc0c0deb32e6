// Reflections H = I - tau v vᵀ of matrices in threadgroup memory. Every function must be called by all threads of a
// threadgroup.
#pragma once

// Divides the threads of a threadgroup into teams: some lanes of one SIMD-group. Each team processes one column.
struct Teams {
    uint index;  // of the calling thread
    uint threads;
    uint lanes;  // lanes per team: a power of two, at most 32

    uint lane() const thread { return index % lanes; }
    uint first() const thread { return index / lanes; }
    uint count() const thread { return threads / lanes; }
};

// Returns the sum over the lanes of a team, in a fixed order, so that every lane gets the same bits.
inline float team_sum(float value, uint lanes) {
    for (uint offset = lanes / 2; offset > 0; offset /= 2) {
        value += simd_shuffle_xor(value, ushort(offset));
    }
    return value;
}

// The reflection of a column, whose first element becomes beta and whose others become 0. v is the column's elements
// divided by `scale`, times `factor`.
struct Reflection {
    float beta;
    float tau;
    float scale;
    float factor;
};

// Computes the reflection for alpha and `count` other elements, `stride` apart, that it maps to 0. Every SIMD-group
// computes it and gets the same bits.
inline Reflection reflection_of(float alpha, threadgroup const float *others, uint count, uint stride, uint lane) {
    float largest = 0.0f;
    bool is_zero = true;
    for (uint i = lane; i < count; i += 32) {
        float element = others[i * stride];
        largest = max(largest, fabs(element));
        is_zero = is_zero && element == 0.0f;
    }
    largest = simd_max(largest);
    if (simd_all(is_zero)) {
        return {alpha, 0.0f, 1.0f, 0.0f};
    }
    float scale = max(largest, fabs(alpha));
    float square = 0.0f;
    for (uint i = lane; i < count; i += 32) {
        float ratio = precise::divide(others[i * stride], scale);
        square += ratio * ratio;
    }
    square = team_sum(square, 32);
    float unit = precise::divide(alpha, scale);
    float length = precise::sqrt(unit * unit + square);
    float beta = unit < 0.0f ? length : -length;
    return {beta * scale, 1.0f - precise::divide(unit, beta), scale, precise::divide(1.0f, unit - beta)};
}

// Computes the reflection for the rows from `first` on of a column whose elements are `stride` apart.
inline Reflection reflection_of(threadgroup const float *column, uint first, uint rows, uint stride, uint lane) {
    threadgroup const float *elements = column + first * stride;
    return reflection_of(elements[0], elements + stride, rows - first - 1, stride, lane);
}

// C = H C for columns `first` to `end` - 1 of a matrix. v is 1 in row `row`; `v` contains its elements below that row.
inline void reflect_columns(
    threadgroup float *c,
    uint stride,
    uint row,
    uint rows,
    uint first,
    uint end,
    threadgroup const float *v,
    float tau,
    Teams teams) {
    for (uint begin = first; begin < end; begin += teams.count()) {
        uint column = begin + teams.first();
        bool is_inside = column < end;
        float top = 0.0f;
        float sum = 0.0f;
        if (is_inside) {
            top = c[row * stride + column];
            for (uint i = row + 1 + teams.lane(); i < rows; i += teams.lanes) {
                sum += v[i] * c[i * stride + column];
            }
        }
        float change = tau * (top + team_sum(sum, teams.lanes));
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (is_inside) {
            for (uint i = row + 1 + teams.lane(); i < rows; i += teams.lanes) {
                c[i * stride + column] -= v[i] * change;
            }
            if (teams.lane() == 0) {
                c[row * stride + column] = top - change;
            }
        }
    }
}

// Replaces column j by an element of R and the vector of a reflection, and applies the reflection to the columns after
// j. Ends with a barrier.
inline void reflect_by_column(
    threadgroup float *a,
    uint stride,
    uint rows,
    uint columns,
    uint j,
    threadgroup float *v,
    threadgroup float *tau,
    Teams teams) {
    Reflection reflection = reflection_of(a + j, j, rows, stride, teams.index % 32);
    for (uint i = j + 1 + teams.index; i < rows; i += teams.threads) {
        v[i] = reflection.tau == 0.0f ? 0.0f : precise::divide(a[i * stride + j], reflection.scale) * reflection.factor;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = j + 1 + teams.index; i < rows; i += teams.threads) {
        a[i * stride + j] = v[i];
    }
    if (teams.index == 0) {
        a[j * stride + j] = reflection.beta;
        tau[j] = reflection.tau;
    }
    if (reflection.tau != 0.0f) {
        reflect_columns(a, stride, j, rows, j + 1, columns, v, reflection.tau, teams);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Replaces a matrix by R and the vectors of `count` reflections. `v` has room for one column.
inline void factorize(
    threadgroup float *a,
    uint stride,
    uint rows,
    uint columns,
    uint count,
    threadgroup float *v,
    threadgroup float *tau,
    Teams teams) {
    for (uint j = 0; j < count; j++) {
        reflect_by_column(a, stride, rows, columns, j, v, tau, teams);
    }
}

// Replaces the vectors of `count` reflections by the first `width` columns of their product.
inline void form_product(
    threadgroup float *a,
    uint stride,
    uint rows,
    uint count,
    uint width,
    threadgroup float *v,
    threadgroup const float *tau,
    Teams teams) {
    uint added = width > count ? width - count : 0;
    for (uint at = teams.index; at < rows * added; at += teams.threads) {
        uint i = at / added;
        uint column = count + at % added;
        a[i * stride + column] = i == column ? 1.0f : 0.0f;
    }
    for (uint j = count; j-- > 0;) {
        for (uint i = j + 1 + teams.index; i < rows; i += teams.threads) {
            v[i] = a[i * stride + j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float factor = tau[j];
        for (uint i = teams.index; i < rows; i += teams.threads) {
            a[i * stride + j] = i < j ? 0.0f : (i == j ? 1.0f - factor : -factor * v[i]);
        }
        reflect_columns(a, stride, j, rows, j + 1, width, v, factor, teams);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
