// The table to which the handle of a tensor of the host points. Included by kernels (mrt/tensor.h) and by the runtime's
// interface (include/metal_runtime.h), so it uses no system header.
#ifndef MRT_TENSOR_ABI_H
#define MRT_TENSOR_ABI_H

enum { MRT_MAX_TENSOR_RANK = 16 };

// Dimension 0 is the innermost. Strides are in elements.
typedef struct MrtTensor {
  void *address;
  __UINT64_TYPE__ rank;
  __INT64_TYPE__ extents[MRT_MAX_TENSOR_RANK], strides[MRT_MAX_TENSOR_RANK];
} MrtTensor;

#endif
