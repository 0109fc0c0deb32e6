// output[k] = the reduction of input[k, r] over every index r of the reduced axes, for every index k of the kept axes.
// The function constant `operation` (a `Reduction`) selects the reduction.
//
// There are four kernels: from elements or from the states of an earlier pass, to results or to states. Each element
// and each state is read once. States are stored in planes: field f of chunk c of result k is at [f][k][c].

#include <metal_stdlib>
using namespace metal;

#include "reduction/fold.h"

// input   [[buffer(0)]]  the elements that its strides reach; or states [fields, results, count]
// output  [[buffer(1)]]  results, row-major; or states [fields, results, chunks]
// p       [[buffer(2)]]
// scratch [[threadgroup(0)]]  one state per thread
// grid: threadgroups [results / COLUMNS, chunks] of COLUMNS · LANES threads

#define FOLD_ARGUMENTS(In, Number, Out)                                                                           \
    device const In *input [[buffer(0)]], device Out *output [[buffer(1)]],                                       \
        constant ReductionParameters &p [[buffer(2)]], threadgroup FoldState<Number> *scratch [[threadgroup(0)]], \
        uint thread_index [[thread_index_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]

#define FOLD(In, Number, Out)                                                                  \
    kernel void fold_##In##_##Out(FOLD_ARGUMENTS(In, Number, Out)) {                           \
        Share share = share_of(p, thread_index, group);                                        \
        store_result(fold_elements(input, p, share, scratch, thread_index), output, p, share); \
    }

#define FOLD_PARTIAL(In, Number)                                                                       \
    kernel void fold_partial_##In(FOLD_ARGUMENTS(In, Number, Number)) {                                \
        Share share = share_of(p, thread_index, group);                                                \
        store_state(fold_elements(input, p, share, scratch, thread_index), output, p, share, group.y); \
    }

#define MERGE(Number, Out)                                                                   \
    kernel void merge_##Number##_##Out(FOLD_ARGUMENTS(Number, Number, Out)) {                \
        Share share = share_of(p, thread_index, group);                                      \
        store_result(fold_states(input, p, share, scratch, thread_index), output, p, share); \
    }

#define MERGE_PARTIAL(Number)                                                                        \
    kernel void merge_partial_##Number(FOLD_ARGUMENTS(Number, Number, Number)) {                     \
        Share share = share_of(p, thread_index, group);                                              \
        store_state(fold_states(input, p, share, scratch, thread_index), output, p, share, group.y); \
    }

#define FOLD_FLOAT(In) FOLD(In, float, In) FOLD(In, float, bool) FOLD_PARTIAL(In, float)
FOLD_FLOAT(float)
FOLD_FLOAT(half)
FOLD_FLOAT(bfloat)
FOLD(half, float, float)
FOLD(bfloat, float, float)

#define FOLD_INTEGER(In) FOLD(In, long, In) FOLD(In, long, bool) FOLD_PARTIAL(In, long)
FOLD_INTEGER(long)
FOLD_INTEGER(int)
FOLD_INTEGER(uint)
FOLD_INTEGER(char)
FOLD_INTEGER(uchar)
FOLD(bool, long, bool)
FOLD_PARTIAL(bool, long)
FOLD(int, long, long)
FOLD(uint, long, long)
FOLD(char, long, long)
FOLD(uchar, long, long)
FOLD(bool, long, long)

MERGE(float, float)
MERGE(float, half)
MERGE(float, bfloat)
MERGE(float, bool)
MERGE(long, long)
MERGE(long, int)
MERGE(long, uint)
MERGE(long, char)
MERGE(long, uchar)
MERGE(long, bool)
MERGE_PARTIAL(float)
MERGE_PARTIAL(long)
