#include "../parallel.h"
#include "dropout.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Computes a query's row of the mask. Random words are drawn for blocks of two queries by two keys.
void keep_row(const AttentionDropout &dropout, const AttentionSequence &sequence, int64_t head, int64_t i,
              uint8_t *out) {
  PhiloxStart start{{dropout.key[0], dropout.key[1]}, {0, uint32_t(i / 2), uint32_t(head), uint32_t(sequence.index)}};
  Words words;
  int64_t blocks = divided_up(sequence.keys, 2);
  for (int64_t first = 0; first < blocks; first += tile_blocks) {
    int64_t count = std::min(tile_blocks, blocks - first);
    philox_tile(start, 0, first, count, words);
    const uint32_t *even = words.lane[2 * (i % 2)], *odd = words.lane[2 * (i % 2) + 1];
    uint8_t *to = out + 2 * first;
    int64_t whole = std::min(count, sequence.keys / 2 - first);
    for (int64_t block = 0; block < whole; block++) {
      to[2 * block] = even[block] >= dropout.threshold;
      to[2 * block + 1] = odd[block] >= dropout.threshold;
    }
    if (whole < count) to[2 * whole] = even[whole] >= dropout.threshold;
  }
}

void run(const AttentionProblem &p, uint8_t *out) {
  std::fill_n(out, p.batch * p.heads * p.queries * p.keys, uint8_t(0)); // pairs from different sequences stay 0
  for (const AttentionSequence &sequence : p.sequences) {
    int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, sequence.keys));
    parallel_for(p.heads * sequence.queries, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        int64_t head = row / sequence.queries, i = row % sequence.queries;
        int64_t row_index = (sequence.batch * p.heads + head) * p.queries + sequence.query_start + i;
        keep_row(p.dropout, sequence, head, i, out + row_index * p.keys + sequence.key_start);
      }
    });
  }
}

} // namespace

extern const AttentionDropoutMask attention_dropout_mask = {run};

} // namespace orchard::ORCHARD_ISA
