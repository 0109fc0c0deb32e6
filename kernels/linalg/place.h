// The position of a thread, for kernels with one threadgroup per matrix.
#pragma once

struct Place {
    uint matrix;
    uint index;
    uint threads;
    uint group;
    uint groups;
    uint lane;
};

// The kernel arguments from which a Place is made.
#define PLACE_ARGUMENTS                                                                          \
    uint matrix [[threadgroup_position_in_grid]], uint index [[thread_position_in_threadgroup]], \
        uint threads [[threads_per_threadgroup]], uint group [[simdgroup_index_in_threadgroup]], \
        uint groups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]
