// The functions "unary", "binary" and "ternary".
#include "../../.build/generated/binary_block.h"
#include "../../.build/generated/ternary_block.h"
#include "../../.build/generated/unary_block.h"
#include "../functions.h"
#include "calls.h"
#include "operations.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

using namespace orchard;

namespace {

using tuning::elementwise::slow_grain;
using tuning::elementwise::very_slow_grain;

int64_t size_of(DType dtype) { return dtype_sizes[static_cast<int>(dtype)]; }

std::string names_of(const ElementwiseOperations &operations) {
  std::string list;
  for (int64_t i = 0; i < operations.count; i++) list += (i == 0 ? "" : ", ") + std::string(operations.first[i].name);
  return list;
}
const ExportedNames unary_names{"Unary", [] { return names_of(unary_operations()); }};
const ExportedNames binary_names{"Binary", [] { return names_of(binary_operations()); }};
const ExportedNames ternary_names{"Ternary", [] { return names_of(ternary_operations()); }};

struct Found {
  const ElementwiseOperation &operation;
  ElementwiseRow row;
};

Found find(const ElementwiseOperations &operations, int64_t ordinal, DType dtype) {
  if (ordinal < 0 || ordinal >= operations.count)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no operation with the ordinal " + std::to_string(ordinal));
  const ElementwiseOperation &operation = operations.first[ordinal];
  ElementwiseRow row = operation.rows[static_cast<int>(dtype)];
  if (!row)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string(operation.name) + " is not defined for " + dtype_names[static_cast<int>(dtype)]);
  return {operation, row};
}

// `slow` operations take more than about a nanosecond per element, `very_slow` ones more than about four; those
// `in_float64` do so only in float64. For these, several threads pay off with fewer elements. Operations that are slow
// in all dtypes are very slow in float64.
constexpr std::string_view slow[] = {"lgamma",
                                     "digamma",
                                     "polygamma",
                                     "pow",
                                     "hypot",
                                     "i0",
                                     "i1",
                                     "i0e",
                                     "i1e",
                                     "besselJ0",
                                     "besselJ1",
                                     "besselY0",
                                     "besselY1",
                                     "modifiedBesselK0",
                                     "modifiedBesselK1",
                                     "scaledModifiedBesselK0",
                                     "scaledModifiedBesselK1",
                                     "logNdtr",
                                     "ndtri",
                                     "erfinv",
                                     "atan2",
                                     "mish",
                                     "logit",
                                     "sinc",
                                     "erfcx",
                                     "logaddexp",
                                     "logaddexp2",
                                     "softplus",
                                     "elu"};
constexpr std::string_view slow_in_float64[] = {"exp",          "exp2",
                                                "expm1",        "log",
                                                "log2",         "log10",
                                                "log1p",        "sin",
                                                "cos",          "tan",
                                                "asin",         "acos",
                                                "atan",         "sinh",
                                                "cosh",         "tanh",
                                                "asinh",        "acosh",
                                                "atanh",        "erf",
                                                "erfc",         "erfcx",
                                                "sinc",         "ndtr",
                                                "entr",         "sigmoid",
                                                "gelu",         "geluTanh",
                                                "silu",         "logSigmoid",
                                                "tanhshrink",   "logaddexp",
                                                "logaddexp2",   "xlogy",
                                                "xlog1py",      "swiglu",
                                                "geluGradient", "geluTanhGradient",
                                                "siluGradient", "softplus",
                                                "elu",          "fmod",
                                                "remainder",    "floorDivide"};
constexpr std::string_view very_slow[] = {"asinh", "acosh", "entr"};
constexpr std::string_view very_slow_in_float64[] = {"erf", "erfc", "ndtr", "gelu", "logSigmoid", "tanhshrink"};

struct Grains {
  int64_t of_float32, of_float64;
};

// The grain of each operation, in the order of the table.
std::vector<Grains> grains_of(const ElementwiseOperations &operations) {
  const auto has = [](const auto &names, const char *name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  std::vector<Grains> grains;
  for (int64_t i = 0; i < operations.count; i++) {
    const char *name = operations.first[i].name;
    const bool is_slow = has(slow, name), is_very_slow = has(very_slow, name);
    const bool is_very_slow_in_float64 = is_slow || is_very_slow || has(very_slow_in_float64, name);
    grains.push_back({is_very_slow ? very_slow_grain
                      : is_slow    ? slow_grain
                                   : usual_grain,
                      is_very_slow_in_float64      ? very_slow_grain
                      : has(slow_in_float64, name) ? slow_grain
                                                   : usual_grain});
  }
  return grains;
}

template <class T> bool has_zero(const void *elements, int64_t count) {
  const T *values = static_cast<const T *>(elements);
  bool found = false;
  for (int64_t i = 0; i < count; i++) found |= values[i] == 0;
  return found;
}

Loop::Test zero_test(int64_t size) {
  return size == 1 ? has_zero<uint8_t> : size == 4 ? has_zero<uint32_t> : has_zero<uint64_t>;
}

// The sizes of an operation's operands and its result.
template <int operands>
void find_sizes(const ElementwiseOperation &operation, DType dtype, int64_t (&sizes)[operands]) {
  for (int64_t &size : sizes) size = size_of(dtype);
  if (operation.has_condition) sizes[0] = 1;
  if (operation.is_predicate) sizes[operands - 1] = 1;
}

bool checks_divisors(const ElementwiseOperation &operation, DType dtype) {
  return operation.divides && dtype >= DType::int64;
}

// out[i] = operation(inputs[i] …). The result has the dtype of the inputs, or bool if the operation is a predicate.
template <int operands, class Block>
void compute(const ElementwiseOperations &operations, const Block &block, Operands buffers) {
  static const std::vector<Grains> grains = grains_of(operations);
  const DType dtype = block.dtype;
  const auto [operation, row] = find(operations, Whole{block.operation.value}, dtype);
  int64_t sizes[operands];
  find_sizes(operation, dtype, sizes);
  Loop loop(block.loop, sizes, buffers);
  if (checks_divisors(operation, dtype) && loop.any(1, zero_test(sizes[1])))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "an integer is divided by zero");
  const Grains &grain = grains[std::size_t(int64_t(Whole{block.operation.value}))];
  loop.run(row, dtype == DType::float64 ? grain.of_float64 : dtype < DType::int64 ? grain.of_float32 : usual_grain);
}

template <int operands, class Block>
bool describe(const ElementwiseOperations &operations, const double *numbers, ElementwiseCall &call) {
  static_assert(operands <= max_operands);
  const Block &block = *reinterpret_cast<const Block *>(numbers);
  const DType dtype = block.dtype;
  const int64_t ordinal = Whole{block.operation.value};
  const auto [operation, row] = find(operations, ordinal, dtype);
  call.operands = operands, call.operation = ordinal, call.dtype = dtype, call.row = row;
  int64_t sizes[operands];
  find_sizes(operation, dtype, sizes);
  std::copy(sizes, sizes + operands, call.sizes);
  return !checks_divisors(operation, dtype);
}

void unary(const UnaryBlock &block, Operands operands) { compute<2>(unary_operations(), block, operands); }
void binary(const BinaryBlock &block, Operands operands) { compute<3>(binary_operations(), block, operands); }
void ternary(const TernaryBlock &block, Operands operands) { compute<4>(ternary_operations(), block, operands); }

ORCHARD_FUNCTION("unary", unary, UnaryBlock, 2)
ORCHARD_FUNCTION("binary", binary, BinaryBlock, 3)
ORCHARD_FUNCTION("ternary", ternary, TernaryBlock, 4)

} // namespace

namespace orchard {

bool describe_call(const char *function, const double *block, ElementwiseCall &call) {
  if (std::strcmp(function, "unary") == 0) return describe<2, UnaryBlock>(unary_operations(), block, call);
  if (std::strcmp(function, "binary") == 0) return describe<3, BinaryBlock>(binary_operations(), block, call);
  if (std::strcmp(function, "ternary") == 0) return describe<4, TernaryBlock>(ternary_operations(), block, call);
  return false;
}

} // namespace orchard
