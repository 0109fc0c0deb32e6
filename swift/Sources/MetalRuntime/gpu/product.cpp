#include "gpu/product.h"

#include "support/settings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <utility>

namespace mrt {
namespace {

// NVIDIA's documentation of cuBLAS recommends 32 MB for GPUs of compute capability 9.0.
constexpr size_t workspace_bytes = size_t(32) << 20;
constexpr size_t most_plans = 1024;
enum Operand { operand_a, operand_b, operand_input, operand_out };

bool load(void *library, ProductLibrary &found) {
#define MRT_CUBLAS_LOAD(result, member, name, parameters)                                                              \
  found.call.member = reinterpret_cast<decltype(found.call.member)>(dlsym(library, #name));                            \
  if (!found.call.member) return found.problem = "the library has no function " #name, false;
  MRT_CUBLAS_FUNCTIONS(MRT_CUBLAS_LOAD)
#undef MRT_CUBLAS_LOAD
  return true;
}

// 130401 is 13.4.1; before cuBLAS 13, 120903 is 12.9.3.
std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

void find_library(ProductLibrary &found) {
  const char *named = getenv("ORCHARD_CUBLAS");
  if (named && !strcmp(named, "none")) {
    found.problem = "ORCHARD_CUBLAS is none";
    return;
  }
  void *library = nullptr;
  if (named && *named) library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
  else
    for (const char *name : {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
                             "/usr/local/cuda/lib64/libcublasLt.so.12"})
      if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
  if (!library) {
    found.problem = named && *named ? std::string(dlerror()) : "no libcublasLt.so.13 or .12 was found";
    return;
  }
  if (load(library, found)) found.name = "cuBLASLt " + version_text(found.call.version());
}

// Returns the largest power of two, at most 256, that divides the address and the distances between matrices and rows.
uint32_t alignment_of(uintptr_t address, std::initializer_list<int64_t> distances, size_t element) {
  uintptr_t bits = address | 256;
  for (int64_t distance : distances) bits |= uintptr_t(distance) * element;
  return uint32_t(bits & -bits);
}

size_t bytes_of(cublas::DataType type) { return type == cublas::float32 ? 4 : 2; }

} // namespace

const ProductLibrary &product_library() {
  static const ProductLibrary &instance = *[] {
    auto *library = new ProductLibrary; // never destroyed: a queue's thread may use it while the process exits
    find_library(*library);
    return library;
  }();
  return instance;
}

bool is_library_product(const char *function, cublas::DataType &type) {
  constexpr const char *prefix = "orchard_library_product_";
  if (strncmp(function, prefix, strlen(prefix)) != 0) return false;
  const std::string element = function + strlen(prefix);
  type = element == "half" ? cublas::float16 : element == "bfloat" ? cublas::bfloat16 : cublas::float32;
  return true;
}

GpuProducts::~GpuProducts() {
  for (auto &[key, plan] : plans_) forget(plan);
  if (workspace_) driver().call.memory_free(workspace_);
}

// Handles are kept until the process ends: destroying one waits for the whole GPU.
bool GpuProducts::open(std::string &problem) {
  if (handle_) return true;
  const cublas::Status status = product_library().call.create(&handle_);
  if (status != cublas::success) {
    handle_ = nullptr;
    problem = "cublasLtCreate: " + std::string(product_library().call.status_name(status));
    return false;
  }
  const cuda::Result result = driver().call.memory_allocate(&workspace_, workspace_bytes);
  if (result != cuda::success) workspace_ = 0; // then only algorithms without one are used
  return true;
}

void GpuProducts::forget(Plan &plan) {
  const cublas::Functions &call = product_library().call;
  for (cublas::Layout layout : {plan.a, plan.b, plan.c, plan.d})
    if (layout) call.layout_destroy(layout);
  if (plan.operation) call.operation_destroy(plan.operation);
  plan = {};
}

// cuBLASLt's matrices are column-major, so it sees a row-major matrix as its transpose. It therefore computes outᵀ = bᵀ
// aᵀ: its A is b, its B is a, and its m and n are n and m.
bool GpuProducts::describe(Plan &plan, cublas::DataType type, const ProductParameters &product, const Key &key) {
  const cublas::Functions &call = product_library().call;
  bool works = call.operation_create(&plan.operation, cublas::sums_in_float32, cublas::float32) == cublas::success;
  const auto set = [&](cublas::OperationAttribute attribute, auto value) {
    works = works && call.operation_set(plan.operation, attribute, &value, sizeof value) == cublas::success;
  };
  set(cublas::transpose_a, product.transposed[operand_b] ? cublas::transpose : cublas::plain);
  set(cublas::transpose_b, product.transposed[operand_a] ? cublas::transpose : cublas::plain);
  if (product.addend == row_addend) {
    set(cublas::epilogue, cublas::add_bias);
    set(cublas::bias_pointer, uintptr_t(key[operand_input])); // only its alignment matters for the choice
  }

  const auto layout = [&](cublas::Layout &made, Operand operand, int64_t rows, int64_t columns, bool transposed) {
    if (transposed) std::swap(rows, columns);
    const int32_t count = int32_t(product.batch[1]);
    const int64_t stride = product.batch_strides[operand][1];
    works = works && call.layout_create(&made, type, columns, rows, product.leading[operand]) == cublas::success &&
            call.layout_set(made, cublas::batch_count, &count, sizeof count) == cublas::success &&
            (count == 1 || call.layout_set(made, cublas::batch_stride, &stride, sizeof stride) == cublas::success);
  };
  layout(plan.a, operand_b, product.k, product.n, product.transposed[operand_b]);
  layout(plan.b, operand_a, product.m, product.k, product.transposed[operand_a]);
  layout(plan.c, product.addend == matrix_addend ? operand_input : operand_out, product.m, product.n, false);
  layout(plan.d, operand_out, product.m, product.n, false);

  cublas::Preference preference = nullptr;
  works = works && call.preference_create(&preference) == cublas::success;
  const auto prefer = [&](cublas::PreferenceAttribute attribute, auto value) {
    works = works && call.preference_set(preference, attribute, &value, sizeof value) == cublas::success;
  };
  prefer(cublas::most_workspace, uint64_t(workspace_ ? workspace_bytes : 0));
  prefer(cublas::reduction_schemes, cublas::reduce_in_workspace); // the others depend on the order of threadgroups
  const cublas::PreferenceAttribute alignments[] = {cublas::alignment_b, cublas::alignment_a, cublas::alignment_c,
                                                    cublas::alignment_d};
  for (int operand = 0; operand < 4; operand++) prefer(alignments[operand], uint32_t(key[size_t(operand)]));
  int count = 0;
  works = works &&
          call.choose(handle_, plan.operation, plan.a, plan.b, plan.c, plan.d, preference, 1, &plan.choice, &count) ==
              cublas::success &&
          count > 0 && plan.choice.state == cublas::success;
  if (preference) call.preference_destroy(preference);
  return works;
}

const GpuProducts::Plan &GpuProducts::plan(cublas::DataType type, const ProductParameters &product, const Key &key) {
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  if (plans_.size() >= most_plans) {
    for (auto &[old, plan] : plans_) forget(plan);
    plans_.clear();
  }
  Plan &made = plans_[key];
  made.is_usable = describe(made, type, product, key);
  return made;
}

bool GpuProducts::run(cuda::Stream stream, cublas::DataType type, const ProductParameters &product,
                      const std::array<uintptr_t, 4> &operands, std::string &problem) {
  if (!open(problem)) return false;
  const size_t element = bytes_of(type);
  const cublas::Functions &call = product_library().call;
  Key key = {};
  size_t at = 0;
  for (int operand = 0; operand < 4; operand++) {
    const int64_t *strides = product.batch_strides[operand];
    key[at++] = alignment_of(operands[size_t(operand)], {product.leading[operand], strides[0], strides[1]}, element);
  }
  // A bias counts as part of D, as in PyTorch's gemm_and_bias. D also serves as C unless a matrix is added.
  if (product.addend == row_addend)
    key[operand_out] = std::min(key[operand_out], int64_t(alignment_of(operands[operand_input], {}, element)));
  if (product.addend != matrix_addend) key[operand_input] = key[operand_out];
  for (int64_t value : {product.m, product.n, product.k, product.batch[1], int64_t(type), int64_t(product.addend),
                        int64_t(product.transposed[0]), int64_t(product.transposed[1])})
    key[at++] = value;
  for (int operand = 0; operand < 4; operand++) key[at++] = product.leading[operand];
  for (int operand = 0; operand < 4; operand++) key[at++] = product.batch_strides[operand][1];

  const Plan &plan = this->plan(type, product, key);
  if (!plan.is_usable) return false;
  const float beta = product.addend == matrix_addend ? product.beta : 0;
  for (int64_t outer = 0; outer < product.batch[0]; outer++) {
    const auto matrix = [&](Operand operand) {
      return operands[operand] + uintptr_t(outer * product.batch_strides[operand][0]) * element;
    };
    cublas::Status status = cublas::success;
    if (product.addend == row_addend) {
      const uintptr_t bias = matrix(operand_input);
      status = call.operation_set(plan.operation, cublas::bias_pointer, &bias, sizeof bias);
    }
    const auto pointer = [&](Operand operand) { return reinterpret_cast<void *>(matrix(operand)); };
    if (status == cublas::success)
      status = call.multiply(handle_, plan.operation, &product.alpha, pointer(operand_b), plan.a, pointer(operand_a),
                             plan.b, &beta, pointer(product.addend == matrix_addend ? operand_input : operand_out),
                             plan.c, pointer(operand_out), plan.d, &plan.choice.algorithm,
                             reinterpret_cast<void *>(workspace_), plan.choice.workspace, stream);
    if (status == cublas::success) continue;
    if (status == cublas::not_supported && outer == 0) return false;
    problem = "cublasLtMatmul on " + gpu_.name + ": " + call.status_name(status);
    return false;
  }
  return true;
}

} // namespace mrt

bool mrt_gpu_product_library(char **text) {
  const mrt::ProductLibrary &library = mrt::product_library();
  if (text) *text = mrt::copy_string(library.name.empty() ? library.problem : library.name);
  return !library.name.empty();
}
