// Sizes of products of quantized weights. No result depends on them, except that rows of x are multiplied by another
// method from `many_rows` on.
//
// A task takes about 10 µs on an EPYC with AVX-512 (family 25, model 17), where its work was measured; that is enough
// to outweigh waking a thread (runtime/parallel.cpp) on any processor.
#pragma once

#include <cstdint>

namespace orchard::tuning::quant {

// The number of multiplications that makes a task worth its overhead.
constexpr int64_t task_products = 1 << 17;

// With at least this many rows of x, weights are unpacked to memory, some rows at a time, for a float32 matrix product.
constexpr int64_t many_rows = 16;
constexpr int64_t unpacked_floats = 1 << 21;

// If fewer rows than this remain, one vector of sums for each is faster than another group.
constexpr int64_t least_lanes = 6;

// The number of columns that are unpacked at once: a multiple of every block size.
constexpr int64_t unpacked_columns = 1024;
// The number of columns of a result that a task of `multiply_transposed` computes: a multiple of every block size.
constexpr int64_t transposed_columns = 256;
// The number of rows of x that are multiplied by floats at once.
constexpr int64_t few_rows = 4;
// Parts of weights that are unpacked to bytes at once for many rows of x, and 16 x 16 sums that are computed at once.
constexpr int64_t chunk_parts = 16, pieces_at_once = 4;
// Elements of a gated product that are on the stack at a time.
constexpr int64_t gate_chunk = 256;

} // namespace orchard::tuning::quant
