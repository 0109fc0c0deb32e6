// Determines which probabilities dropout keeps: formula (8) of src/ops/attention/problem.ts.
#pragma once

#include "../random/philox.h"
#include "attention.h"

namespace orchard::ORCHARD_ISA {

// Sets factors[row · width + lane] to keep_scale or 0, for keys j + row, row < keys, and queries i + lane; i, j and
// width are even.
template <int width, class T>
inline void dropout_factors(const AttentionDropout &dropout, int64_t index, int64_t head, int64_t i, int64_t j,
                            int64_t keys, T *factors) {
  uint32_t words[4][width / 2];
  const T keep_scale = T(dropout.keep_scale);
  for (int64_t row = 0; row < keys; row += 2) {
    for (int block = 0; block < width / 2; block++) {
      PhiloxBlock drawn = philox(uint32_t((j + row) / 2), uint32_t(i / 2 + block), uint32_t(head), uint32_t(index),
                                 dropout.key[0], dropout.key[1]);
      for (int word = 0; word < 4; word++) words[word][block] = drawn.word[word];
    }
    for (int column = 0; column < 2 && row + column < keys; column++)
      for (int lane = 0; lane < width; lane++)
        factors[(row + column) * width + lane] =
            words[2 * (lane % 2) + column][lane / 2] >= dropout.threshold ? keep_scale : T(0);
  }
}

} // namespace orchard::ORCHARD_ISA
