// Compares products of many rows of x in 8 bits by AMX's tiles, emulated in plain C++, with products by AVX512_VNNI:
// for every format, 32 to 100 rows of x, and odd numbers of rows of weights, whole and in pieces. Prints how many
// products were compared, and which had different bits. The program is compiled for x86-64-v4, and runs if the
// processor has AVX512_VNNI.
#include "plain_tiles.h"

#include "../../native/cpu/quant/few_rows.h"
#include "../../native/cpu/quant/many_rows.h"

#include <string>
#include <vector>

using namespace orchard;
using namespace orchard::ORCHARD_ISA;

namespace {

struct Format {
  const char *name;
  Packing packing;
  int64_t values, bytes;
  std::vector<int> halves; // where a block has numbers in float16
};

const Format blocks[] = {
    {"q4_0", Packing::q4_0, 32, 18, {0}},      {"q4_1", Packing::q4_1, 32, 20, {0, 2}},
    {"q5_0", Packing::q5_0, 32, 22, {0}},      {"q5_1", Packing::q5_1, 32, 24, {0, 2}},
    {"q8_0", Packing::q8_0, 32, 34, {0}},      {"q2_K", Packing::q2_K, 256, 84, {80, 82}},
    {"q3_K", Packing::q3_K, 256, 110, {108}},  {"q4_K", Packing::q4_K, 256, 144, {0, 2}},
    {"q5_K", Packing::q5_K, 256, 176, {0, 2}}, {"q6_K", Packing::q6_K, 256, 210, {208}},
    {"iq4_nl", Packing::iq4_nl, 32, 18, {0}},  {"mxfp4", Packing::mxfp4, 32, 17, {}},
};

uint32_t random_bits() {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return uint32_t(state >> 32);
}
float random_number() { return float(int32_t(random_bits())) * 0x1p-31f; }
// A number of any sign with a magnitude from 2^-5 to 2^3.
uint16_t random_half() { return uint16_t((random_bits() & 0x83ff) | (10 + random_bits() % 8) << 10); }

std::vector<uint8_t> random_bytes(int64_t count) {
  std::vector<uint8_t> bytes(count);
  for (auto &byte : bytes) byte = uint8_t(random_bits());
  return bytes;
}

std::vector<uint8_t> random_blocks(const Format &format, int64_t count) {
  std::vector<uint8_t> all = random_bytes(count * format.bytes);
  for (int64_t at = 0; at < count; at++) {
    uint8_t *block = all.data() + at * format.bytes;
    for (const int half : format.halves) {
      const uint16_t number = random_half();
      std::memcpy(block + half, &number, sizeof number);
    }
    if (format.packing == Packing::mxfp4) block[0] = uint8_t(120 + block[0] % 16);
  }
  return all;
}

int compared = 0;

// A value in the middle of x is NaN, so that its row is.
std::vector<float> random_x(int64_t count, int64_t columns) {
  std::vector<float> x(count * columns);
  for (auto &value : x) value = random_number();
  x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

template <class Unit>
void multiply(const Weights &weights, const ByteBlocks &x, int64_t count, int64_t begin, int64_t end, float *out) {
  with_level_rows(weights, [&](auto type) {
    multiply_many_rows<Unit, typename decltype(type)::type>(weights, x, count, begin, end, out);
  });
}

void compare(const std::string &name, const Weights &weights, int64_t count) {
  const int64_t parts = weights.columns / 32, all = (count + rows_of_block - 1) / rows_of_block;
  const std::vector<float> x = random_x(count, weights.columns);
  std::vector<int8_t> levels(all * rows_of_block * parts * 32);
  std::vector<float> scales(all * rows_of_block * parts), scaled_sums(scales.size() * 2);
  std::vector<int32_t> sums(scales.size() * 2);
  const ByteBlocks packed = {parts, levels.data(), scales.data(), sums.data(), scaled_sums.data()};
  for (int64_t at = 0; at < all; at++)
    pack_block(x.data() + at * rows_of_block * weights.columns, std::min(rows_of_block, count - at * rows_of_block),
               weights.columns, packed.block(at));
  const auto product = [&](ManyRowsProduct own, int64_t grain) {
    std::vector<float> out(count * weights.rows, -1);
    for (int64_t n = 0; n < weights.rows; n += grain)
      own(weights, packed, count, n, std::min(n + grain, weights.rows), out.data());
    return out;
  };
  const auto by_vectors = product(multiply<VectorUnit>, weights.rows);
  for (const int64_t grain : {weights.rows, int64_t(32)}) {
    const auto by_tiles = product(multiply<TileUnit<PlainTiles>>, grain);
    compared++;
    const bool is_same = std::memcmp(by_vectors.data(), by_tiles.data(), by_tiles.size() * sizeof(float)) == 0;
    if (!is_same || !PlainTiles::are_released())
      std::printf("%s: %d rows of x, %d x %d\n", name.c_str(), int(count), int(weights.rows), int(weights.columns));
  }
}

void compare_blocks(const Format &format, int64_t count, int64_t rows, int64_t columns) {
  columns = std::max<int64_t>(1, columns / format.values) * format.values;
  const int64_t own = columns / format.values;
  const std::vector<uint8_t> packed = random_blocks(format, rows * own);
  Weights weights = {};
  weights.packing = format.packing;
  weights.rows = rows, weights.columns = columns;
  weights.packed = packed.data(), weights.row_bytes = own * format.bytes;
  compare(format.name, weights, count);
}

void compare_groups(int64_t bits, int64_t group, DType dtype, bool is_symmetric, int64_t count, int64_t rows,
                    int64_t columns) {
  columns = std::max<int64_t>(1, columns / group) * group;
  const int64_t groups = rows * columns / group;
  const std::vector<uint8_t> packed = random_bytes(rows * columns * bits / 8);
  std::vector<uint16_t> halves(4 * groups);
  for (auto &half : halves) half = random_half();
  std::vector<float> floats(2 * groups);
  for (auto &number : floats) number = random_number();
  const auto numbers = [&](int64_t at) {
    return dtype == DType::float32 ? static_cast<const void *>(&floats[at]) : static_cast<const void *>(&halves[at]);
  };
  Weights weights = {};
  weights.packing = is_symmetric ? Packing::symmetric : Packing::affine;
  weights.rows = rows, weights.columns = columns;
  weights.packed = packed.data(), weights.row_bytes = columns * bits / 8;
  weights.bits = bits, weights.group = group, weights.scale_dtype = dtype;
  weights.scales = numbers(0), weights.biases = is_symmetric ? nullptr : numbers(groups);
  compare(std::to_string(bits) + (is_symmetric ? " bits, symmetric" : " bits"), weights, count);
}

} // namespace

int main() {
  constexpr int64_t counts[] = {32, 33, 47, 100}, rows[] = {1, 17, 31, 45}, columns[] = {32, 544, 96, 1280};
  for (int at = 0; at < 4; at++) {
    for (const Format &format : blocks) compare_blocks(format, counts[at], rows[at], columns[at]);
    for (const int64_t bits : {2, 3, 4, 5, 6, 8})
      for (const bool is_symmetric : {true, false})
        for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
          compare_groups(bits, 32 << (at + bits) % 3, dtype, is_symmetric, counts[at], rows[at], columns[at]);
  }
  std::printf("%d compared\n", compared);
}
