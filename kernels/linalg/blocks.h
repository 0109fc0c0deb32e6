// Products of blocks, for factorizations of matrices that do not fit in threadgroup memory. For a block of TILE_ROWS x
// BLOCK, a threadgroup of 128 threads uses simdgroup_matrix to compute the product of the blocks to its left, which is
// subtracted from the block.
#pragma once

// The number of columns that are factored together.
#define BLOCK 32
// The number of rows of a product: 16 for each SIMD-group.
#define TILE_ROWS 64
#define TILE_THREADS 128
// The distance between rows in threadgroup memory; they are padded by 16 bytes.
#define TILE_PITCH (BLOCK + 4)

// A matrix in device memory: element (i, j) is data[i * row + j * column] for i < rows and j < columns, else 0.
struct Elements {
    device const float *data;
    long row;
    long column;
    long rows;
    long columns;

    bool has(long i, long j) const { return i < rows && j < columns; }
    Elements from(long i, long j) const {
        return Elements{data + i * row + j * column, row, column, rows - i, columns - j};
    }
    Elements transposed() const { return Elements{data, column, row, columns, rows}; }
};

// tile[i][j] = element (i, j). Adjacent threads read adjacent elements, whether the matrix is row-major or
// column-major.
template <int ROWS> inline void load_elements(threadgroup float *tile, Elements from, uint thread_index, uint threads) {
    bool is_turned = from.row == 1 || from.row == -1;
    for (int at = int(thread_index); at < ROWS * BLOCK; at += int(threads)) {
        int i = is_turned ? at % ROWS : at / BLOCK;
        int j = is_turned ? at / ROWS : at % BLOCK;
        tile[i * TILE_PITCH + j] = from.has(i, j) ? from.data[i * from.row + j * from.column] : 0.0f;
    }
}

// Computes left (TILE_ROWS x depth) times right (depth x BLOCK) into `left_tile`. `depth` is a multiple of BLOCK. When
// it returns, all threads may read the result.
inline void multiply_blocks(
    threadgroup float *left_tile,
    threadgroup float *right_tile,
    Elements left,
    Elements right,
    long depth,
    uint thread_index,
    uint simdgroup_index) {
    simdgroup_matrix<float, 8, 8> sums[2][BLOCK / 8];
    for (int i = 0; i < 2; i += 1) {
        for (int j = 0; j < BLOCK / 8; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }
    const int first_row = int(simdgroup_index) * 16;
    for (long first = 0; first < depth; first += BLOCK) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        load_elements<TILE_ROWS>(left_tile, left.from(0, first), thread_index, TILE_THREADS);
        load_elements<BLOCK>(right_tile, right.from(first, 0), thread_index, TILE_THREADS);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < BLOCK; k += 8) {
            simdgroup_matrix<float, 8, 8> rows[2];
            for (int i = 0; i < 2; i += 1) {
                simdgroup_load(rows[i], left_tile + (first_row + i * 8) * TILE_PITCH + k, TILE_PITCH);
            }
            for (int j = 0; j < BLOCK / 8; j += 1) {
                simdgroup_matrix<float, 8, 8> columns;
                simdgroup_load(columns, right_tile + k * TILE_PITCH + j * 8, TILE_PITCH);
                for (int i = 0; i < 2; i += 1) {
                    simdgroup_multiply_accumulate(sums[i][j], rows[i], columns, sums[i][j]);
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the last tiles were read
    for (int i = 0; i < 2; i += 1) {
        for (int j = 0; j < BLOCK / 8; j += 1) {
            simdgroup_store(sums[i][j], left_tile + (first_row + i * 8) * TILE_PITCH + j * 8, TILE_PITCH);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}
