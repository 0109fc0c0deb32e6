// Sizes at which linear algebra changes its method or shares work among threads. They affect the speed, and the order
// of a method's operations, but never with the number of threads.
//
// "EPYC" is a processor with AVX-512 of which one or two threads were used, against OpenBLAS 0.3.21 (`bun run bench
// linalg`). Sizes with times next to them were chosen by these times, so measure them again on other processors. The
// others hold on any machine: they bound a task's work from below, or fit a block into registers or a cache.
#pragma once

#include <cstdint>

namespace orchard::tuning {

// Tasks of one pass over memory.
namespace passes {
// The number of elements that one task copies or checks: with fewer, waking a thread would take longer than the task.
constexpr int64_t elements_of_pass = 1 << 17;
// The gap, in elements, between a matrix and LAPACK's workspace. If two arrays are a multiple of the page size apart,
// loads from one wait for stores to the other. EPYC: eigh of 256 rows takes 2.75 ms with the gap, 3.03 ms without.
constexpr int64_t between_arrays = 272;
} // namespace passes

namespace cholesky {
// The smallest matrix for which LAPACK is used, if the BLAS computes products.
constexpr int64_t lapack_size = 32;
// Up to this size one thread of OpenBLAS is as fast as two. EPYC: one and two threads took 19 and 23 µs for 128 rows,
// and 91 and 81 µs for 256 rows.
constexpr int64_t one_thread_size = 192;
// Matrices up to this size are computed one per vector lane, if the batch fills at least 1 / least_part_of_lanes of the
// lanes.
constexpr int64_t lanes_size = 32;
constexpr int64_t least_part_of_lanes = 2;
// The number of rows of a panel. Matrices up to `shallow_size` use half as many. EPYC: with these, 256 and 512 rows
// take 45 and 208 µs on a thread, and 88 and 575 µs with OpenBLAS.
constexpr int64_t most_depth = 128, shallow_size = 768;
// From this size on, all threads share each matrix if the batch has fewer matrices than threads.
constexpr int64_t shared_size = 256;
// The minimum work of a task of a panel: about 2 to 4 µs.
constexpr int64_t operations_of_task = 1 << 18;
constexpr int64_t strip_columns = 32; // of a panel
} // namespace cholesky

namespace lu {
// Up to this size, a matrix is eliminated as a whole, together with the right-hand sides of its system.
constexpr int64_t small_size = 64;
// Matrices up to this size are computed one per vector lane, if there are at least `lanes_batch`.
constexpr int64_t lanes_size = 32, lanes_batch = 3;
// From this size on, all threads share each matrix if the batch has fewer matrices than threads.
constexpr int64_t shared_size = 256;
} // namespace lu

// Panels of a large LU factorization.
namespace lu_panels {
// The number of columns that are eliminated as one panel. EPYC: 64 matrices of 64 rows, a panel each, take 0.35 ms on
// one thread.
constexpr int64_t lu_panel_columns = 64;
// The minimum work of a task that solves columns, which are whole cache lines: about 2 to 4 µs.
constexpr int64_t operations_of_solve = 1 << 18, columns_of_line = 64;
// Rows of a panel that one task copies.
constexpr int64_t copied_rows = 512;
} // namespace lu_panels

namespace triangular {
// The columns of a system that one task solves: several whole vectors.
constexpr int64_t columns_of_task = 64;
// For fewer operations, a call of a BLAS takes longer than solving here (EPYC).
constexpr int64_t lapack_operations = 1 << 10;
// Up to these sizes, systems are solved one per vector lane, if the batch fills half a vector. EPYC: 100 systems of 32
// rows take half of LAPACK's time or less.
constexpr int64_t lanes_size = 32, lanes_columns = 64;
} // namespace triangular

namespace qr {
// If there are fewer matrices than threads, they are shared from this number of operations on.
constexpr int64_t divided_operations = 1 << 22;
// Matrices of up to this many elements are computed one per vector lane, if the batch fills at least 1 /
// least_part_of_lanes of the lanes. EPYC, one thread, in lanes and by blocks. float32: 0.12 and 2.6 ms for 500 x 16 x
// 16, 0.57 and 2.3 ms for 100 x 48 x 48, 3.0 and 2.4 ms for 64 x 64 x 64. float64: 0.25 and 1.6 ms for 500 x 16 x 16,
// 1.7 and 1.2 ms for 100 x 32 x 64.
template <class T> constexpr int64_t most_lane_elements = sizeof(T) == 8 ? 32 * 32 : 48 * 48;
constexpr int64_t least_part_of_lanes = 2;
// Matrices of up to this many columns, and at least two blocks of rows, are factored in blocks of rows by all threads.
constexpr int64_t tall_columns = 256, least_block_rows = 512;
// The number of columns in a block. It is small if the matrix has few columns, since the factorization within a block
// is not blocked.
constexpr int64_t narrow_block = 8, wide_block = 32;
// The number of columns that are multiplied by a block at once.
constexpr int64_t tile_columns = 64;
} // namespace qr

namespace eigh {
// The number of sweeps, and of rotations in multiples of n, that are buffered before they are applied to the
// eigenvectors. Rows and rotations stay in a cache while they are applied.
constexpr int64_t kept_sweeps = 512, kept_rotations = 64;
// The number of matrix elements that one task of a reduction step processes.
constexpr int64_t task_elements = 1 << 15;
// The size from which LAPACK's syevd is faster, if a LAPACK was found: with eigenvectors, and without (EPYC, two
// threads).
template <class T> constexpr int64_t lapack_size = sizeof(T) == 8 ? 256 : 192;
template <class T> constexpr int64_t lapack_size_of_values = 256;
// Computing at least this many matrices in the lanes of vectors takes no longer than one by one. EPYC: 100 matrices of
// 32 rows take 0.57 ms in lanes, 2.5 ms one by one, and 5.2 ms with syevd.
constexpr int64_t least_lanes(int64_t n) { return n <= 32 ? 4 : 8; }
// The largest matrix that is computed in lanes, and the smallest whose computation several threads share.
constexpr int64_t lanes_size = 96, smallest_shared = 96;
} // namespace eigh

namespace eigh_lapack {
// Up to this size one thread of OpenBLAS is faster than two, which wait for each other. EPYC: 2.8 against 4.1 ms for
// 256 rows.
constexpr int64_t one_thread_size = 320;
// Rows that one task transposes.
constexpr int64_t rows_of_task = 64;
} // namespace eigh_lapack

namespace svd {
// Matrices up to this size are computed one per vector lane, if the batch fills at least 1 / least_part_of_lanes of the
// lanes.
constexpr int64_t lanes_size = 32;
constexpr int64_t least_part_of_lanes = 2;
// The smallest matrix for which LAPACK is used. It is faster from about 16 rows on, but its bidiagonal reduction loses
// digits of small singular values. Rotations keep these digits, so they are used for smaller matrices.
constexpr int64_t lapack_size = 33;
// Elements whose signs one task changes, in whole cache lines.
constexpr int64_t oriented_elements = 1 << 16, whole_lines = 64;
// If one side of a matrix is at least this many times as long as the other, a QR factorization first is faster (EPYC:
// several times, with many rows).
constexpr int64_t tall_ratio = 2;
// Up to this size one thread of OpenBLAS is faster than two, which wait for each other. EPYC: 5.5 against 7.8 ms for
// 256 rows.
constexpr int64_t one_thread_size = 256;
} // namespace svd

// The matrix exponential, and Vandermonde matrices.
namespace exponential {
// The largest matrix that is computed in a thread's caches.
constexpr int64_t most_exponential_rows = 64;
// Elements of a task of `vander`.
constexpr int64_t vander_elements = 1 << 14;
} // namespace exponential

} // namespace orchard::tuning
