// The part of NVIDIA's cuBLASLt that the engine calls, declared here so that no header of CUDA is needed. Names and
// values are from cublasLt.h and cublas_api.h of cuBLAS 13.4, and are the same in cuBLAS 12.
#pragma once

#include "gpu/cuda.h"

namespace mrt::cublas {

typedef int Status;
constexpr Status success = 0, not_supported = 15;

typedef struct LibraryObject *Handle;
typedef struct OperationObject *Operation;
typedef struct LayoutObject *Layout;
typedef struct PreferenceObject *Preference;

// cudaDataType, cublasComputeType_t and cublasOperation_t. `sums_in_float32` excludes TF32.
enum DataType : int32_t { float32 = 0, float16 = 2, bfloat16 = 14 };
constexpr int32_t sums_in_float32 = 68, plain = 0, transpose = 1;

enum OperationAttribute { transpose_a = 3, transpose_b = 4, epilogue = 7, bias_pointer = 8 };
constexpr uint32_t add_bias = 4; // cublasLtEpilogue_t: a vector of D's rows is added to each column
enum LayoutAttribute { batch_count = 5, batch_stride = 6 };
enum PreferenceAttribute {
  most_workspace = 1,
  reduction_schemes = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8
};
// cublasLtReductionScheme_t: parts of a sum are added outside of the result, in the type of the sums.
constexpr uint32_t reduce_in_workspace = 2;

struct Algorithm {
  uint64_t data[8];
};
struct Choice {
  Algorithm algorithm;
  size_t workspace; // bytes
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Choice) == 96, "cublasLtMatmulHeuristicResult_t");

// Every function of the table: its result, its name in the library, and its parameters.
#define MRT_CUBLAS_FUNCTIONS(F)                                                                                        \
  F(size_t, version, cublasLtGetVersion, ())                                                                           \
  F(const char *, status_name, cublasLtGetStatusName, (Status status))                                                 \
  F(Status, create, cublasLtCreate, (Handle * handle))                                                                 \
  F(Status, operation_create, cublasLtMatmulDescCreate, (Operation * operation, int32_t compute, int32_t scale))       \
  F(Status, operation_set, cublasLtMatmulDescSetAttribute,                                                             \
    (Operation operation, OperationAttribute attribute, const void *value, size_t bytes))                              \
  F(Status, operation_destroy, cublasLtMatmulDescDestroy, (Operation operation))                                       \
  F(Status, layout_create, cublasLtMatrixLayoutCreate,                                                                 \
    (Layout * layout, int32_t type, uint64_t rows, uint64_t columns, int64_t leading))                                 \
  F(Status, layout_set, cublasLtMatrixLayoutSetAttribute,                                                              \
    (Layout layout, LayoutAttribute attribute, const void *value, size_t bytes))                                       \
  F(Status, layout_destroy, cublasLtMatrixLayoutDestroy, (Layout layout))                                              \
  F(Status, preference_create, cublasLtMatmulPreferenceCreate, (Preference * preference))                              \
  F(Status, preference_set, cublasLtMatmulPreferenceSetAttribute,                                                      \
    (Preference preference, PreferenceAttribute attribute, const void *value, size_t bytes))                           \
  F(Status, preference_destroy, cublasLtMatmulPreferenceDestroy, (Preference preference))                              \
  F(Status, choose, cublasLtMatmulAlgoGetHeuristic,                                                                    \
    (Handle handle, Operation operation, Layout a, Layout b, Layout c, Layout d, Preference preference, int most,      \
     Choice *choices, int *count))                                                                                     \
  F(Status, multiply, cublasLtMatmul,                                                                                  \
    (Handle handle, Operation operation, const void *alpha, const void *a, Layout a_layout, const void *b,             \
     Layout b_layout, const void *beta, const void *c, Layout c_layout, void *d, Layout d_layout,                      \
     const Algorithm *algorithm, void *workspace, size_t workspace_bytes, cuda::Stream stream))

struct Functions {
#define MRT_CUBLAS_MEMBER(result, member, name, parameters) result(*member) parameters;
  MRT_CUBLAS_FUNCTIONS(MRT_CUBLAS_MEMBER)
#undef MRT_CUBLAS_MEMBER
};

} // namespace mrt::cublas
