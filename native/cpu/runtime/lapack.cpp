#include "../lapack.h"

#include "../status.h"

#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace orchard {
namespace {

// Looks up the routines of one precision by name.
template <class T> class RoutineFinder {
public:
  explicit RoutineFinder(const Blas &library) : library_(library) {}

  LapackRoutines<T> find() {
    LapackRoutines<T> routines;
    find(routines.potrf, "potrf"), find(routines.potrs, "potrs"), find(routines.potri, "potri");
    find(routines.trsm, "trsm"), find(routines.trtrs, "trtrs"), find(routines.trtri, "trtri");
    find(routines.getrf, "getrf"), find(routines.getrs, "getrs"), find(routines.getri, "getri");
    find(routines.sytrf, "sytrf"), find(routines.sytrs, "sytrs");
    find(routines.geqrf, "geqrf"), find(routines.geqp3, "geqp3"), find(routines.orgqr, "orgqr"),
        find(routines.ormqr, "ormqr");
    find(routines.gelqf, "gelqf"), find(routines.orglq, "orglq"), find(routines.ormlq, "ormlq");
    find(routines.syevd, "syevd"), find(routines.sytrd, "sytrd"), find(routines.stedc, "stedc");
    find(routines.gesdd, "gesdd"), find(routines.gesvd, "gesvd");
    find(routines.gelsd, "gelsd"), find(routines.gelsy, "gelsy");
    return routines;
  }

  // The name of the first missing routine, or "".
  std::string missing;

private:
  template <class Function> void find(Function &routine, const char *name) {
    const std::string whole = (sizeof(T) == 8 ? "d" : "s") + std::string(name);
    routine = reinterpret_cast<Function>(library_.fortran(whole));
    if (!routine && missing.empty()) missing = whole;
  }

  const Blas &library_;
};

// The routines found in a BLAS. Like the BLAS, it is never freed.
struct Found {
  const Blas *library;
  std::unique_ptr<Lapack<double>> float64;
  std::unique_ptr<Lapack<float>> float32;
  LapackReport report;
};

// Returns a version such as "3.9.0"; "" if the library has 64-bit integers or reports no version.
std::string version_of(const Blas &library) {
  auto ilaver = reinterpret_cast<void (*)(int *, int *, int *)>(library.fortran("ilaver"));
  if (!ilaver) return "";
  int numbers[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  ilaver(numbers[0], numbers[1], numbers[2]);
  if (numbers[0][1] != -1) return ""; // the routine wrote 64-bit integers
  return std::to_string(numbers[0][0]) + "." + std::to_string(numbers[1][0]) + "." + std::to_string(numbers[2][0]);
}

Found search(const Blas *library) {
  Found found{library, nullptr, nullptr, {}};
  if (!library) return found;
  RoutineFinder<double> doubles(*library);
  RoutineFinder<float> floats(*library);
  const LapackRoutines<double> float64 = doubles.find();
  const LapackRoutines<float> float32 = floats.find();
  const std::string missing = doubles.missing.empty() ? floats.missing : doubles.missing;
  const std::string version = missing.empty() ? version_of(*library) : "";
  if (!missing.empty()) found.report.problem = library->path + " has no " + missing;
  else if (version.empty()) found.report.problem = library->path + " has no LAPACK with integers of 32 bits";
  if (!found.report.problem.empty()) return found;
  found.float64 = std::make_unique<Lapack<double>>(*library, float64);
  found.float32 = std::make_unique<Lapack<float>>(*library, float32);
  found.report.name = library->name + ", LAPACK " + version;
  return found;
}

// Returns the routines found in the current BLAS.
const Found &found_now() {
  static std::mutex &mutex = *new std::mutex;
  static auto &all = *new std::vector<std::unique_ptr<Found>>;
  const Blas *library = blas();
  std::lock_guard lock(mutex);
  for (const auto &known : all)
    if (known->library == library) return *known;
  all.push_back(std::make_unique<Found>(search(library)));
  return *all.back();
}

} // namespace

template <> const Lapack<double> *lapack<double>() { return found_now().float64.get(); }
template <> const Lapack<float> *lapack<float>() { return found_now().float32.get(); }

LapackReport lapack_report() { return found_now().report; }

int lapack_int(int64_t size) {
  if (size > INT_MAX)
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         "expected a problem of fewer than 2^31 elements along each side and to work in, got " + std::to_string(size));
  return static_cast<int>(size);
}

} // namespace orchard
