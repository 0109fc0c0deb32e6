// Matrix products by NVIDIA's cuBLASLt, in place of the kernels of kernels/matmul/library.metal. The library is
// optional: the first product loads it, and without it the kernels run.
#pragma once

#include "gpu/cublas.h"
#include "gpu/driver.h"

#include <array>
#include <map>
#include <string>

namespace mrt {

struct ProductLibrary {
  cublas::Functions call = {};
  std::string name;    // such as "cuBLASLt 13.4.1"; empty without one
  std::string problem; // why there is none
};

// Loads the library that ORCHARD_CUBLAS names, or the first that is found. "none" disables it.
const ProductLibrary &product_library();

// The parameters of the kernels: LibraryProduct in kernels/matmul/library.metal.
struct ProductParameters {
  int64_t m, n, k;
  int64_t batch[2];            // sizes of the batch's two axes
  int64_t leading[4];          // of a, b, input, out: between rows, or between columns of a transposed factor
  int64_t batch_strides[4][2]; // of a, b, input, out
  uint32_t transposed[2];      // of a, b: whether elements of a column are adjacent, not those of a row
  uint32_t addend;             // `Addend`
  float alpha, beta;
};
enum Addend : uint32_t { no_addend, matrix_addend, row_addend };
static_assert(sizeof(ProductParameters) == 160, "the layout of library.metal");

// Returns whether the function is one of these kernels, and the type of its elements.
bool is_library_product(const char *function, cublas::DataType &type);

// The products of one stream. Caches the algorithm that the library chose for each kind of product.
class GpuProducts {
public:
  explicit GpuProducts(Gpu &gpu) : gpu_(gpu) {}
  ~GpuProducts();
  GpuProducts(const GpuProducts &) = delete;

  // Issues out = alpha a b + beta input to the stream. `operands` has the addresses of a, b, input and out. Returns
  // false if the library can't; then `problem` is empty if the kernel can, and otherwise describes an error.
  bool run(cuda::Stream stream, cublas::DataType type, const ProductParameters &product,
           const std::array<uintptr_t, 4> &operands, std::string &problem);

private:
  // Everything that the choice of an algorithm depends on.
  typedef std::array<int64_t, 20> Key;
  struct Plan {
    cublas::Operation operation = nullptr;
    cublas::Layout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
    cublas::Choice choice = {};
    bool is_usable = false;
  };

  bool open(std::string &problem);
  const Plan &plan(cublas::DataType type, const ProductParameters &product, const Key &key);
  bool describe(Plan &plan, cublas::DataType type, const ProductParameters &product, const Key &key);
  void forget(Plan &plan);

  Gpu &gpu_;
  cublas::Handle handle_ = nullptr;
  cuda::Address workspace_ = 0;
  std::map<Key, Plan> plans_;
};

} // namespace mrt
