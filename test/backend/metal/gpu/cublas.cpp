// A stand-in for cuBLASLt, in one library with the stand-in for the driver: it checks handles, descriptors, attributes,
// layouts, promises of alignment, workspaces and lifetimes, and multiplies on the host when the stream's work runs.
// Names and values are those of cublasLt.h of cuBLAS 13.4.
#include "driver.cpp"

#include <algorithm>
#include <cmath>

namespace {

enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14, CUBLAS_COMPUTE_32F = 68 };
constexpr int invalid_value = 7; // CUBLAS_STATUS_INVALID_VALUE

struct Operation {
  int compute = 0, scale = 0;
  int transposes[2] = {};
  unsigned epilogue = 1;
  uintptr_t bias = 0;
};

struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int count = 1;
  bool operator==(const Layout &other) const {
    return type == other.type && rows == other.rows && columns == other.columns && leading == other.leading &&
           stride == other.stride && count == other.count;
  }
};

struct Preference {
  uint64_t workspace = 0;
  unsigned schemes = 7, alignments[4] = {256, 256, 256, 256};
};

// The problem that an algorithm was chosen for.
struct Chosen {
  Layout a, b, c, d;
  unsigned alignments[4], bias_alignment;
  size_t workspace;
};

std::set<void *> &handles = *new std::set<void *>;
std::set<Operation *> &operations = *new std::set<Operation *>;
std::set<Layout *> &layouts = *new std::set<Layout *>;
std::set<Preference *> &preferences = *new std::set<Preference *>;
std::map<uint64_t, Chosen> &algorithms = *new std::map<uint64_t, Chosen>; // by the first word of cublasLtMatmulAlgo_t

int refuse(const std::string &what) {
  violation(what);
  return invalid_value;
}

template <typename Value> int take(const char *what, Value &target, const void *value, size_t bytes) {
  if (bytes != sizeof target) return refuse(std::string("an attribute of the wrong size: ") + what);
  memcpy(&target, value, bytes);
  return 0;
}

size_t size_of(int type) { return type == CUDA_R_32F ? 4 : 2; }

double read(int type, uintptr_t address, int64_t at) {
  const auto *from = reinterpret_cast<const char *>(address) + at * int64_t(size_of(type));
  if (type == CUDA_R_32F) {
    float value;
    memcpy(&value, from, 4);
    return value;
  }
  if (type == CUDA_R_16F) {
    _Float16 value;
    memcpy(&value, from, 2);
    return double(value);
  }
  uint32_t bits = 0;
  memcpy(reinterpret_cast<char *>(&bits) + 2, from, 2);
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

void write(int type, uintptr_t address, int64_t at, double number) {
  auto *to = reinterpret_cast<char *>(address) + at * int64_t(size_of(type));
  const auto single = float(number);
  if (type == CUDA_R_32F) memcpy(to, &single, 4);
  if (type == CUDA_R_16F) {
    const auto value = _Float16(single);
    memcpy(to, &value, 2);
  }
  if (type != CUDA_R_16BF) return;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  bits += 0x7fff + (bits >> 16 & 1); // to nearest, ties to even
  const auto high = uint16_t(std::isnan(single) ? 0x7fc0 : bits >> 16);
  memcpy(to, &high, 2);
}

// The elements from the first to the last that a layout reaches.
size_t reach(const Layout &layout) {
  return size_t(layout.stride) * size_t(layout.count - 1) + size_t(layout.leading) * (layout.columns - 1) + layout.rows;
}

const char *why_wrong(const Operation &operation, const Layout &a, const Layout &b, const Layout &c, const Layout &d) {
  if (operation.compute != CUBLAS_COMPUTE_32F || operation.scale != CUDA_R_32F) return "sums that are not in float32";
  for (const Layout *each : {&a, &b, &c, &d})
    if (each->type != d.type || each->count != d.count) return "layouts of different types or batches";
  const uint64_t k = operation.transposes[0] ? a.rows : a.columns;
  if ((operation.transposes[0] ? a.columns : a.rows) != d.rows) return "rows that differ";
  if ((operation.transposes[1] ? b.rows : b.columns) != d.columns) return "columns that differ";
  if ((operation.transposes[1] ? b.columns : b.rows) != k) return "sums of different lengths";
  if (c.rows != d.rows || c.columns != d.columns) return "C and D of different sizes";
  if (operation.epilogue != 1 && (operation.epilogue != 4 || !operation.bias)) return "an epilogue without its bias";
  return nullptr;
}

bool is_aligned(uintptr_t address, const Layout &layout, unsigned alignment) {
  const size_t element = size_of(layout.type);
  return address % alignment == 0 && size_t(layout.leading) * element % std::min(alignment, 16u) == 0 &&
         (layout.count == 1 || size_t(layout.stride) * element % std::min(alignment, 16u) == 0);
}

} // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130401; }
const char *cublasLtGetStatusName(int status) {
  return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
}

int cublasLtCreate(void **handle) {
  ENTER_IN_CONTEXT(cublasLtCreate)
  handles.insert(*handle = new char);
  log("cublasLtCreate");
  return 0;
}

int cublasLtMatmulDescCreate(Operation **operation, int compute, int scale) {
  ENTER(cublasLtMatmulDescCreate)
  *operation = new Operation;
  (*operation)->compute = compute, (*operation)->scale = scale;
  operations.insert(*operation);
  return 0;
}
int cublasLtMatmulDescSetAttribute(Operation *operation, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatmulDescSetAttribute)
  if (!operations.count(operation)) return refuse("an attribute of an unknown operation");
  if (attribute == 3 || attribute == 4) return take("transpose", operation->transposes[attribute - 3], value, bytes);
  if (attribute == 7) return take("epilogue", operation->epilogue, value, bytes);
  if (attribute == 8) return take("bias", operation->bias, value, bytes);
  return refuse("an attribute that the stand-in does not know");
}
int cublasLtMatmulDescDestroy(Operation *operation) {
  ENTER(cublasLtMatmulDescDestroy)
  return operations.erase(operation) ? 0 : refuse("an unknown operation is destroyed");
}

int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  ENTER(cublasLtMatrixLayoutCreate)
  if (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF) return refuse("a layout of an unknown type");
  if (!rows || !columns || leading < int64_t(rows)) return refuse("a layout whose columns overlap");
  layouts.insert(*layout = new Layout{type, rows, columns, leading});
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatrixLayoutSetAttribute)
  if (!layouts.count(layout)) return refuse("an attribute of an unknown layout");
  if (attribute == 5) return take("batch count", layout->count, value, bytes);
  if (attribute == 6) return take("batch stride", layout->stride, value, bytes);
  return refuse("an attribute that the stand-in does not know");
}
int cublasLtMatrixLayoutDestroy(Layout *layout) {
  ENTER(cublasLtMatrixLayoutDestroy)
  return layouts.erase(layout) ? 0 : refuse("an unknown layout is destroyed");
}

int cublasLtMatmulPreferenceCreate(Preference **preference) {
  ENTER(cublasLtMatmulPreferenceCreate)
  preferences.insert(*preference = new Preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatmulPreferenceSetAttribute)
  if (!preferences.count(preference)) return refuse("an attribute of an unknown preference");
  if (attribute == 1) return take("workspace", preference->workspace, value, bytes);
  if (attribute == 3) return take("reduction", preference->schemes, value, bytes);
  if (attribute >= 5 && attribute <= 8) return take("alignment", preference->alignments[attribute - 5], value, bytes);
  return refuse("an attribute that the stand-in does not know");
}
int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  ENTER(cublasLtMatmulPreferenceDestroy)
  return preferences.erase(preference) ? 0 : refuse("an unknown preference is destroyed");
}

// The result has the layout of cublasLtMatmulHeuristicResult_t.
int cublasLtMatmulAlgoGetHeuristic(void *handle, Operation *operation, Layout *a, Layout *b, Layout *c, Layout *d,
                                   Preference *preference, int most, uint64_t *result, int *count) {
  ENTER_IN_CONTEXT(cublasLtMatmulAlgoGetHeuristic)
  if (!handles.count(handle) || !operations.count(operation) || !preferences.count(preference))
    return refuse("a choice without handle, operation or preference");
  for (Layout *layout : {a, b, c, d})
    if (!layouts.count(layout)) return refuse("a choice with an unknown layout");
  if (const char *why = why_wrong(*operation, *a, *b, *c, *d)) return refuse(why);
  if (preference->schemes & ~2u) return refuse("sums that depend on the order of threadgroups");
  if (most < 1) return refuse("a choice without room");
  Chosen chosen = {*a, *b, *c, *d, {}, unsigned(operation->bias & -operation->bias), 0};
  memcpy(chosen.alignments, preference->alignments, sizeof chosen.alignments);
  chosen.workspace = std::min<uint64_t>(preference->workspace, 1 << 20);
  const uint64_t number = algorithms.size() + 1;
  algorithms[number] = chosen;
  memset(result, 0, 96);
  result[0] = number;
  result[8] = chosen.workspace; // after the algorithm's eight words; the state that follows is 0, success
  *count = 1;
  log("cublasLtMatmulAlgoGetHeuristic");
  return 0;
}

int cublasLtMatmul(void *handle, Operation *operation, const float *alpha, uintptr_t a, Layout *a_layout, uintptr_t b,
                   Layout *b_layout, const float *beta, uintptr_t c, Layout *c_layout, uintptr_t d, Layout *d_layout,
                   const uint64_t *algorithm, uintptr_t workspace, size_t workspace_bytes, Stream *stream) {
  ENTER_IN_CONTEXT(cublasLtMatmul)
  if (!handles.count(handle) || !operations.count(operation)) return refuse("a product without handle or operation");
  if (!algorithms.count(*algorithm)) return refuse("an algorithm that was not chosen");
  const Chosen chosen = algorithms[*algorithm];
  if (!(chosen.a == *a_layout && chosen.b == *b_layout && chosen.c == *c_layout && chosen.d == *d_layout))
    return refuse("an algorithm that was chosen for other layouts");
  Work work;
  const Layout *all[] = {a_layout, b_layout, c_layout, d_layout};
  const uintptr_t addresses[] = {a, b, c, d};
  for (int i = 0; i < 4; i++) {
    work.used[i] = allocation_of(addresses[i], reach(*all[i]) * size_of(all[i]->type));
    if (!work.used[i]) return refuse("an operand of a product is not in the GPU's memory");
    if (!is_aligned(addresses[i], *all[i], chosen.alignments[i]))
      return refuse("an operand is not aligned as promised");
  }
  const uintptr_t bias = operation->epilogue == 4 ? operation->bias : 0;
  if (bias && (!allocation_of(bias, d_layout->rows * size_of(d_layout->type)) || bias % chosen.bias_alignment))
    return refuse("a bias that is not in the GPU's memory, or not aligned");
  if (workspace_bytes < chosen.workspace || !(work.used[4] = allocation_of(workspace, workspace_bytes)))
    return refuse("a workspace that is too small");
  const Operation used = *operation;
  const Layout A = *a_layout, B = *b_layout, C = *c_layout, D = *d_layout;
  const double factor = *alpha, addend = *beta;
  const uint64_t length = used.transposes[0] ? A.rows : A.columns;
  log("cublasLtMatmul " + std::to_string(D.rows) + "x" + std::to_string(D.columns) + "x" + std::to_string(length) +
      (bias ? " bias" : ""));
  work.run = [=] {
    for (int64_t batch = 0; batch < D.count; batch++)
      for (int64_t column = 0; column < int64_t(D.columns); column++)
        for (int64_t row = 0; row < int64_t(D.rows); row++) {
          double sum = 0;
          for (int64_t k = 0; k < int64_t(length); k++) {
            const int64_t left = used.transposes[0] ? row * A.leading + k : k * A.leading + row,
                          right = used.transposes[1] ? k * B.leading + column : column * B.leading + k;
            sum += read(A.type, a, batch * A.stride + left) * read(B.type, b, batch * B.stride + right);
          }
          sum *= factor;
          if (addend != 0) sum += addend * read(C.type, c, batch * C.stride + column * C.leading + row);
          if (bias) sum += read(D.type, bias, row);
          write(D.type, d, batch * D.stride + column * D.leading + row, sum);
        }
  };
  return issue(stream, std::move(work));
}

} // extern "C"
