#include "../blas.h"

#include "../isa.h"
#include "../parallel.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

#if defined(__APPLE__)
extern "C" {
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
}
#endif

namespace orchard {
namespace {

template <class Function> Function symbol(void *library, const char *name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// OpenBLAS chooses kernels by processor model. For a model newer than the library, it uses the kernels of an old model:
// SSE for an unknown Intel model, at a quarter of the speed, and AVX2 for AMD models with AVX-512. While OpenBLAS
// loads, this class sets OPENBLAS_CORETYPE to a model with the processor's instruction set, unless the user has set it.
class CoreTypeScope {
public:
  CoreTypeScope() : sets_(core_type() && !std::getenv(name)) {
    if (sets_) setenv(name, core_type(), 1);
  }
  ~CoreTypeScope() {
    if (sets_) unsetenv(name);
  }

private:
  static constexpr const char *name = "OPENBLAS_CORETYPE";
  static const char *core_type() {
#if defined(__x86_64__)
    if (supports(Isa::avx512)) return "SkylakeX";
    if (supports(Isa::avx2)) return "Haswell";
#endif
    return nullptr;
  }
  bool sets_;
};

// Debian's OpenBLAS needs a Fortran library, which setup puts in the same folder. Loading it first means that the
// system need not search for it.
void load_neighbors(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  for (const char *name : {"libquadmath.so.0", "libgfortran.so.5"})
    dlopen((path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string path_of(void *function, const std::string &otherwise) {
  Dl_info info;
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : otherwise;
}

class BlasLoader {
public:
  const Blas *get() {
    std::lock_guard lock(mutex_);
    if (!is_searched_) search();
    return found_;
  }

  std::vector<std::string> problems() {
    std::lock_guard lock(mutex_);
    return problems_;
  }

  void set_candidates(std::string_view text) {
    std::lock_guard lock(mutex_);
    candidates_ = text == "none" ? "" : text;
    is_searched_ = false;
  }

private:
  void search() {
    found_ = nullptr; // not deleted: another thread may still be calling it
    problems_.clear();
    is_searched_ = true;
    for (std::string_view rest = candidates_; !rest.empty() && !found_;) {
      size_t end = rest.find('\n');
      std::string candidate(rest.substr(0, end));
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
      if (!candidate.empty()) try_candidate(candidate);
    }
    if (found_ && found_->set_threads) found_->set_threads(1); // until a BlasScope gives it all threads
  }

  void try_candidate(const std::string &candidate) {
#if defined(__APPLE__)
    if (candidate == "Accelerate") {
      void *library = dlopen("/System/Library/Frameworks/Accelerate.framework/Accelerate", RTLD_NOW | RTLD_LOCAL);
      found_ = new Blas{"Accelerate", "Accelerate.framework", cblas_sgemm, cblas_dgemm, nullptr, library};
      return;
    }
#endif
    CoreTypeScope core_type;
    load_neighbors(candidate);
    void *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char *reason = dlerror();
      problems_.push_back(candidate + " can't be loaded: " + (reason ? reason : "no reason was given"));
      return;
    }
    auto sgemm = symbol<CblasGemm<float>>(library, "cblas_sgemm");
    auto dgemm = symbol<CblasGemm<double>>(library, "cblas_dgemm");
    if (!sgemm || !dgemm) {
      problems_.push_back(candidate + " has no cblas_sgemm and cblas_dgemm");
      return;
    }
    auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
    found_ = new Blas{set_threads ? "OpenBLAS" : "BLAS",
                      path_of(reinterpret_cast<void *>(sgemm), candidate),
                      sgemm,
                      dgemm,
                      set_threads,
                      library};
  }

  std::mutex mutex_;
#if defined(__APPLE__)
  std::string candidates_ = "Accelerate";
#else
  std::string candidates_;
#endif
  bool is_searched_ = false;
  const Blas *found_ = nullptr;
  std::vector<std::string> problems_;
};

BlasLoader &loader() {
  static BlasLoader &instance = *new BlasLoader;
  return instance;
}

} // namespace

namespace {
std::atomic<ProductsBy> chosen_for_products{ProductsBy::table};
} // namespace

ProductsBy products_by() { return chosen_for_products.load(std::memory_order_relaxed); }
void set_products_by(ProductsBy chosen) { chosen_for_products.store(chosen, std::memory_order_relaxed); }

const Blas *blas() { return loader().get(); }
std::vector<std::string> blas_problems() { return loader().problems(); }
void set_blas_candidates(std::string_view candidates) { loader().set_candidates(candidates); }

// Accelerate's current LAPACK has names with a suffix, "sgetrf$NEWLAPACK"; plain "sgetrf_" is version 3.2 of 2008, with
// f2c's calling convention.
void *Blas::fortran(const std::string &routine) const {
  if (!library) return nullptr;
  return dlsym(library, (routine + (name == "Accelerate" ? "$NEWLAPACK" : "_")).c_str());
}

namespace {
std::mutex &one_scope_at_a_time() {
  static std::mutex &instance = *new std::mutex;
  return instance;
}
} // namespace

BlasScope::BlasScope(const Blas &blas, BlasThreads threads)
    : lock_(one_scope_at_a_time()), set_threads_(threads == BlasThreads::all ? blas.set_threads : nullptr) {
  if (threads == BlasThreads::all) asleep_.emplace();
  if (set_threads_) set_threads_(thread_count());
}
BlasScope::~BlasScope() {
  if (set_threads_) set_threads_(1);
}

} // namespace orchard
