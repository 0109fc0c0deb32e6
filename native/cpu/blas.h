// The BLAS of the machine, found when it is first needed: for the LAPACK that it brings, and on macOS for products.
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
  void (*set_threads)(int count); // null where the library sees to it
  void *library;                  // dlopen's handle

  // A Fortran routine ("sgetrf"), or null.
  void *fortran(const std::string &routine) const;
};

enum class BlasThreads { all, one };

// The BLAS for the time of some work: with all its threads, while ours sleep; or with none of its own, as at all other
// times, for calls from many threads of ours at once. How many threads a BLAS has is one number for the whole process,
// so that one scope exists at a time: another thread's waits. It is not to be nested.
class BlasScope {
public:
  BlasScope(const Blas &blas, BlasThreads threads);
  BlasScope(const BlasScope &) = delete;
  ~BlasScope();

private:
  std::unique_lock<std::mutex> lock_;
  std::optional<OthersCompute> asleep_;
  void (*set_threads_)(int count); // null where there are none to be put back
};

// Null where there is none, or "none" was set. Loads it at the first call.
const Blas *blas();
// Why candidates were passed over, one sentence each.
std::vector<std::string> blas_problems();

// What computes matrix products of float64 and float32: what the system's table says, the dylib's own code, or the
// BLAS.
enum class ProductsBy : int { table, own, blas };
ProductsBy products_by();
void set_products_by(ProductsBy chosen);

// Names or paths, one a line, or "none".
void set_blas_candidates(std::string_view candidates);

} // namespace orchard
