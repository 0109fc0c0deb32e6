// The machine's BLAS, loaded at first use: for the LAPACK that comes with it, and on macOS for matrix products.
#pragma once

#include "parallel.h"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orchard {

// cblas.h's codes.
enum : int { cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112 };

template <class T>
using CblasGemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *a, int lda,
                           const T *b, int ldb, T beta, T *c, int ldc);

struct Blas {
  std::string name, path;
  CblasGemm<float> sgemm;
  CblasGemm<double> dgemm;
  void (*set_threads)(int count); // null if the library manages its threads
  void *library;                  // dlopen's handle

  // A Fortran routine ("sgetrf"), or null.
  void *fortran(const std::string &routine) const;
};

enum class BlasThreads { all, one };

// Reserves the BLAS for a piece of work. With `all`, it uses all its threads while ours sleep. With `one`, it computes
// on the calling thread, as outside any scope, so that many of our threads can call it at once. A BLAS's thread count
// is global to the process, so only one scope exists at a time: other threads wait for it. Scopes must not be nested.
class BlasScope {
public:
  BlasScope(const Blas &blas, BlasThreads threads);
  BlasScope(const BlasScope &) = delete;
  ~BlasScope();

private:
  std::unique_lock<std::mutex> lock_;
  std::optional<OthersCompute> asleep_;
  void (*set_threads_)(int count); // null if there is no count to restore
};

// Returns null if there is no BLAS or "none" was set. Loads it at the first call.
const Blas *blas();
// Returns why candidates were rejected, one sentence each.
std::vector<std::string> blas_problems();

// What computes matrix products of float64 and float32: the choice in the system's table, the dylib's kernels (`own`),
// or the BLAS.
enum class ProductsBy : int { table, own, blas };
ProductsBy products_by();
void set_products_by(ProductsBy chosen);

// Names or paths, one a line, or "none".
void set_blas_candidates(std::string_view candidates);

} // namespace orchard
