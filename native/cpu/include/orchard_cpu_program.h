// orchard_cpu_program.h: programs of the cpu dylib, lists of calls that run as one. The conventions are those of
// orchard_cpu.h.
#ifndef ORCHARD_CPU_PROGRAM_H
#define ORCHARD_CPU_PROGRAM_H

#include "orchard_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs a list of calls in order, as if each were made alone. `program` has `words` integers, one instruction after
// another; `blocks` has `doubles` numbers, and `addresses` has `slots` addresses of storages as integers.
//   0 call   function, rows (0: a function that is not called by rows), index of its first block in `blocks`, then a
//            slot for each operand of each row; -1 for an omitted operand
//   1 check  two slots and a number of bytes: stops the program if their bytes differ
//   2 fused  calls, units, units of a piece, the most elements of a unit, local buffers; then each call: function,
//            index of its block, index within the block of the number of units, and for each operand its kind (0:
//            memory, 1: a local buffer), its slot or the number of the buffer, the index within the block of its
//            offset, and the elements from one unit to the next. A unit is an element or a row. A piece passes through
//            all calls before the next piece, so a local buffer only holds a piece.
//   3 product  "matmul", index of its block, a slot for each operand; then the words of a fused instruction without its
//            code. Its units are the rows of the product's result, which has as many columns as a unit has elements.
//            The calls run on each part of the result as soon as a thread has computed it, if the product's method
//            supports it; otherwise after the product.
// `stopped` gets the number of complete instructions. If a call fails, its status is returned; if a check stops the
// program, ORCHARD_CPU_OK.
ORCHARD_CPU_API int32_t orchard_cpu_run_program(const int32_t *program, int32_t words, const double *blocks,
                                                int32_t doubles, const double *addresses, int32_t slots,
                                                double *stopped);

#ifdef __cplusplus
}
#endif

#endif
