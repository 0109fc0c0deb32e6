// Matrices that a threadgroup holds in its memory.
#pragma once

#define MAX_SIZE 64
// Rows in threadgroup memory are one element longer, so that the threads of a column touch different banks.
#define ROW (MAX_SIZE + 1)
