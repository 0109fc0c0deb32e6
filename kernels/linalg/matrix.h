// Matrices in threadgroup memory.
#pragma once

#define MAX_SIZE 64
// Rows are padded by one element, so that the threads that access a column touch different banks.
#define ROW (MAX_SIZE + 1)
