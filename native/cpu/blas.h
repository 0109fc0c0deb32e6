// The system's BLAS, loaded at first use: for the LAPACK that comes with it, and on macOS for matrix products.
#pragma once

#include "parallel.h"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orchard {

// Constants of cblas.h.
enum : int { cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112 };

template <class T>
using CblasGemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *a, int lda,
                           const T *b, int ldb, T beta, T *c, int ldc);

struct Blas {
  std::string name, path;
  CblasGemm<float> sgemm;
  CblasGemm<double> dgemm;
  void (*set_threads)(int count); // null if the library manages its threads
  void *library;                  // the handle that dlopen returned

  // Returns the address of a Fortran routine such as "sgetrf", or null.
  void *fortran(const std::string &routine) const;
};

enum class BlasThreads { all, one };

// Reserves the BLAS for a computation. With `all`, the BLAS uses all its threads while the dylib's pool sleeps. With
// `one`, it computes on the calling thread, as it does outside any scope, so that many threads of the pool can call it
// at once. A BLAS has one thread count per process, so only one scope exists at a time, and other threads wait for it.
// Scopes must not be nested.
class BlasScope {
public:
  BlasScope(const Blas &blas, BlasThreads threads);
  BlasScope(const BlasScope &) = delete;
  ~BlasScope();

private:
  std::unique_lock<std::mutex> lock_;
  std::optional<OthersCompute> asleep_;
  void (*set_threads_)(int count); // null if there is no thread count to restore
};

// Returns null if no BLAS was found, or if the candidates are "none". The first call loads the library.
const Blas *blas();
// Returns why each candidate was rejected, one sentence each.
std::vector<std::string> blas_problems();

// Selects the implementation of float64 and float32 matrix products: the default for the system, the dylib's kernels
// (`own`), or the BLAS.
enum class ProductsBy : int { table, own, blas };
ProductsBy products_by();
void set_products_by(ProductsBy chosen);

// Sets the libraries to try: names or paths, one per line, or "none".
void set_blas_candidates(std::string_view candidates);

} // namespace orchard
