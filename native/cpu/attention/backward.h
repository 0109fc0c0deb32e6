// Attention backward: one pass over the tiles, with five products each.
// Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, algorithm 2.
//
//   for each head of keys and chunk of its keys, in parallel:
//     for each head of queries that shares them: Δ = rowsum(dO ∘ out) − dL
//       for each block of the chunk's keys: pack it
//         for each panel of queries: pack its q and dO
//           for each tile of the block's keys:  add to dq, dk, dv, dbias                              gradient_tile.h
//         after the last head of queries: write dk and dv
//       write dq; with several chunks, sum it in order after the last chunk                           query_sums.h
//
// Heads whose biases share elements are computed one after the other in the same task. Tasks depend on sizes only, so
// sums do not depend on the number of threads. Each thread has memory for a block of keys with its gradients, and for
// dq of one head. With several chunks of keys, it has memory for dq of a group's heads, for each chunk.
#pragma once

#include "../indexing/scratch_slots.h"
#include "gradient_tile.h"
#include "query_sums.h"

#include <map>

namespace orchard::ORCHARD_ISA {

// `vectors` is the width of a panel of queries, in vectors.
template <class S, int vectors> class AttentionBackward {
  using Tile = GradientTile<S, vectors>;
  using T = typename Tile::T;
  using Space = GradientSpace<T>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int64_t width = Tile::width, tile_keys = tuning::attention::tile_keys;

public:
  explicit AttentionBackward(const AttentionProblem &problem)
      : p_(problem), dim_row_(rounded_up(problem.dim, lanes<T>)), value_row_(rounded_up(problem.value_dim, lanes<T>)),
        block_keys_(keys_in_cache()) {
    plan();
  }

  void run() {
    Scratch<T> bias(keeps_bias_apart() ? scratch_product({bias_copies(), bias_size()}) : 0);
    Scratch<double> sinks(p_.grad_sinks.data ? int64_t(p_.sequences.size()) * p_.heads : 0);
    sinks_ = sinks.data();
    bias_ = keeps_bias_apart() ? bias.data() : reinterpret_cast<T *>(p_.grad_bias.data);
    if (bias_) std::fill_n(bias_, bias_copies() * bias_size(), T(0));
    run_tasks();
    if (keeps_bias_apart()) sum_bias();
    if (sinks_) sum_sinks();
  }

private:
  // One head of keys of a sequence, and the heads of queries that share it.
  struct Unit {
    const AttentionSequence *sequence;
    int64_t kv_head;
  };

  // ---------------------------------------------------------------- tasks

  // Units that add to the same elements of the bias's gradient form a group, which one task computes.
  void plan() {
    std::map<std::pair<int64_t, int64_t>, size_t> group_of;
    int64_t most_keys = 0, units = 0;
    for (const AttentionSequence &sequence : p_.sequences) {
      most_keys = std::max(most_keys, sequence.keys);
      most_queries_ = std::max(most_queries_, sequence.queries);
      for (int64_t head = 0; head < p_.kv_heads; head++, units++) {
        std::pair<int64_t, int64_t> bias_index{p_.grad_bias.batch ? sequence.batch : 0, p_.grad_bias.head ? head : 0};
        auto [entry, is_new] =
            group_of.try_emplace(p_.grad_bias.data ? bias_index : std::pair{units, int64_t(0)}, groups_.size());
        if (is_new) groups_.emplace_back();
        groups_[entry->second].push_back({&sequence, head});
      }
    }
    if (units == 0) return;
    size_t most_units = 0;
    for (const std::vector<Unit> &group : groups_) most_units = std::max(most_units, group.size());
    int64_t heads = int64_t(most_units) * p_.group,
            least_chunks = divided_up(tuning::attention::backward_tasks, int64_t(groups_.size()));
    chunks_ = std::clamp<int64_t>(std::min(least_chunks, tuning::attention::most_partial_heads / heads), 1,
                                  std::max<int64_t>(1, divided_up(most_keys, tuning::attention::least_backward_keys)));
    most_chunk_ = chunk_of(most_keys);
    sums_size_ = scratch_product({rounded_up(most_queries_, width), dim_row_});
    summed_heads_ = chunks_ == 1 ? 1 : heads;
  }

  // Returns the keys per block, so that the rows that the products read and write stay in the L2 cache.
  int64_t keys_in_cache() const {
    int64_t bytes = int64_t(sizeof(T)) * 2 * (p_.dim + p_.value_dim);
    return std::clamp(rounded_down(tuning::attention::cached_bytes / bytes, tile_keys), tile_keys,
                      tuning::attention::most_block);
  }

  // Returns the keys per chunk for a sequence of `keys` keys.
  int64_t chunk_of(int64_t keys) const { return rounded_up(divided_up(keys, chunks_), tile_keys); }

  void run_tasks() {
    int64_t groups = int64_t(groups_.size()), tasks = groups * chunks_;
    if (tasks == 0) return;
    Space measured;
    ScratchSlots<T> slots(tasks, divide(nullptr, measured));
    QuerySums<T> sums(groups, chunks_, p_.grad_q.data ? scratch_product({chunks_, summed_heads_, sums_size_}) : 0);
    auto run = [&](int64_t task, T *scratch) {
      int64_t scores = 0;
      const std::vector<Unit> &group = groups_[size_t(task / chunks_)];
      auto add_up = [&](T *all) {
        if (p_.grad_q.data && chunks_ > 1) sum_chunks(group, all);
      };
      sums.with(task / chunks_, [&](T *all) { scores = run_task(group, task % chunks_, scratch, all); }, add_up);
      return scores;
    };
    parallel_for(tasks, grain(tasks), [&](int64_t begin, int64_t end) {
      slots.with([&](T *scratch) {
        int64_t scores = 0;
        for (int64_t task = begin; task < end; task++) scores += run(task, scratch);
        count_scores(AttentionPass::backward, scores);
      });
    });
  }

  // With several chunks the grain is 1, so that all chunks of a group start before the next group's.
  int64_t grain(int64_t tasks) const {
    double products = 0;
    for (const AttentionSequence &sequence : p_.sequences)
      products +=
          double(p_.heads) * double(sequence.queries) * double(sequence.keys) * double(3 * p_.dim + 2 * p_.value_dim);
    return chunks_ > 1 ? 1 : attention_grain(tasks, products);
  }

  // Divides scratch memory among the arrays, each aligned to a vector. Returns how many numbers they need.
  int64_t divide(T *scratch, Space &space) const {
    int64_t used = 0, queries = rounded_up(most_queries_, width);
    auto take = [&](int64_t count) {
      T *array = scratch + used;
      used += rounded_up(count, lanes<T>);
      return array;
    };
    int64_t block = std::min(block_keys_, most_chunk_), summed = p_.group == 1 ? block : most_chunk_;
    space.keys = take(block * dim_row_), space.values = take(block * value_row_);
    space.grad_keys = take(summed * dim_row_), space.grad_values = take(summed * value_row_);
    space.queries = take(width * dim_row_), space.query_rows = take(width * dim_row_);
    space.grad_out = take(width * value_row_), space.grad_out_rows = take(width * value_row_);
    space.log_sum_exp = take(queries), space.log_sum_exp_low = take(queries), space.delta = take(queries);
    space.s = take(tile_keys * width), space.dp = take(tile_keys * width);
    space.factors = take(p_.dropout.threshold ? tile_keys * width : 0),
    space.cap_derivatives = take(p_.softcap != 0 ? tile_keys * width : 0);
    for (auto [flags, count] : {std::pair{&space.nonfinite_keys, block},
                                {&space.nonfinite_queries, width},
                                {&space.nonfinite_grad_out, width}})
      *flags = reinterpret_cast<bool *>(take(divided_up(count, sizeof(T))));
    return used;
  }

  // ---------------------------------------------------------------- one head of keys

  // Returns the number of computed scores, like all functions here that compute scores.
  int64_t run_task(const std::vector<Unit> &group, int64_t chunk, T *scratch, T *sums) const {
    Space space;
    divide(scratch, space);
    int64_t scores = 0, at = 0; // index of a head in its chunk
    for (const Unit &unit : group)
      for (int64_t head = unit.kv_head * p_.group; head < (unit.kv_head + 1) * p_.group; head++, at++) {
        space.grad_queries = chunks_ == 1 ? sums : sums_of(sums, chunk, at);
        scores += run_head({unit, head, chunk}, space);
      }
    return scores;
  }

  // A head of queries with one chunk of the keys that it attends to.
  struct Part {
    const Unit &unit;
    int64_t head, chunk;
  };

  int64_t run_head(const Part &part, const Space &space) const {
    const AttentionSequence &sequence = *part.unit.sequence;
    pack_statistics(sequence, part.head, space);
    if (sinks_ && part.chunk == 0)
      sinks_[sequence.index * p_.heads + part.head] = sink_gradient(sequence, part.head, space);
    if (p_.grad_q.data) std::fill_n(space.grad_queries, sums_size_, T(0));
    int64_t size = chunk_of(sequence.keys), chunk = std::min(part.chunk * size, sequence.keys),
            end = std::min(chunk + size, sequence.keys), scores = 0;
    for (int64_t first = chunk; first < end; first += block_keys_) {
      Space block = space;
      int64_t offset = p_.group == 1 ? 0 : first - chunk;
      block.grad_keys += offset * dim_row_, block.grad_values += offset * value_row_;
      scores += run_block(part, first, std::min(block_keys_, end - first), block);
    }
    if (p_.grad_q.data && chunks_ == 1) write_queries(sequence, part.head, space.grad_queries);
    return scores;
  }

  // Keeps one block of keys in the L2 cache while the panels of queries stream past it.
  int64_t run_block(const Part &part, int64_t first, int64_t keys, Space &space) const {
    const Unit &unit = part.unit;
    pack_keys(unit, first, keys, space);
    if (part.head == unit.kv_head * p_.group) {
      std::fill_n(space.grad_keys, rounded_up(keys, panel_rows) * dim_row_, T(0));
      std::fill_n(space.grad_values, rounded_up(keys, panel_rows) * value_row_, T(0));
    }
    int64_t scores = add_queries(part, first, keys, space);
    if (p_.grad_k.data && part.head == (unit.kv_head + 1) * p_.group - 1) write_keys(unit, first, keys, space);
    return scores;
  }

  int64_t add_queries(const Part &part, int64_t first, int64_t keys, Space &space) const {
    const AttentionSequence &sequence = *part.unit.sequence;
    AttentionRange range = p_.queries_of(sequence, first, first + keys - 1);
    Tile tile(p_, space, bias_ ? bias_ + part.chunk % bias_copies() * bias_size() : nullptr);
    int64_t scores = 0;
    for (int64_t query = rounded_down(range.first, width); query < range.end; query += width) {
      pack_queries(sequence, part.head, query, space);
      for (int64_t at = 0; at < keys; at += tile_keys)
        scores += tile.add({sequence, part.head, part.unit.kv_head, first, at, std::min(tile_keys, keys - at)}, query);
    }
    return scores;
  }

  void pack_keys(const Unit &unit, int64_t first, int64_t keys, Space &space) const {
    int64_t batch = unit.sequence->batch, row = unit.sequence->key_start + first;
    int64_t end = rounded_up(keys, panel_rows);
    pack_matrix(rows_of<S>(p_.k, batch, unit.kv_head, row, p_.dim), keys, end, dim_row_, space.keys);
    pack_matrix(rows_of<S>(p_.v, batch, unit.kv_head, row, p_.value_dim), keys, end, value_row_, space.values);
    space.has_nonfinite_keys = clear_nonfinite_rows(space.keys, keys, dim_row_, space.nonfinite_keys);
  }

  void pack_queries(const AttentionSequence &sequence, int64_t head, int64_t query, Space &space) const {
    int64_t batch = sequence.batch, first = sequence.query_start + query,
            count = std::min(width, sequence.queries - query);
    pack_matrix(rows_of<S>(p_.q, batch, head, first, p_.dim), count, width, dim_row_, space.query_rows);
    pack_matrix(rows_of<S>(p_.grad_out, batch, head, first, p_.value_dim), count, width, value_row_,
                space.grad_out_rows);
    turn_rows<int(width)>(space.query_rows, dim_row_, space.queries);
    turn_rows<int(width)>(space.grad_out_rows, value_row_, space.grad_out);
    space.has_nonfinite_queries = clear_nonfinite_rows(space.query_rows, count, dim_row_, space.nonfinite_queries);
    space.has_nonfinite_grad_out =
        clear_nonfinite_rows(space.grad_out_rows, count, value_row_, space.nonfinite_grad_out);
  }

  static Statistic statistic(const AttentionOperand &operand, const AttentionSequence &sequence, int64_t head,
                             int64_t i) {
    return reinterpret_cast<const Statistic *>(
        operand.data)[operand.at(sequence.batch, head, sequence.query_start + i)];
  }

  // Stores L and Δ of each query, and 0 for the padding lanes of the last panel.
  void pack_statistics(const AttentionSequence &sequence, int64_t head, const Space &space) const {
    for (int64_t i = 0; i < sequence.queries; i += width) pack_delta(sequence, head, i, space);
    for (int64_t i = 0; i < sequence.queries; i++) {
      if (p_.grad_log_sum_exp.data) space.delta[i] -= T(statistic(p_.grad_log_sum_exp, sequence, head, i));
      T log_sum_exp = T(statistic(p_.log_sum_exp, sequence, head, i));
      space.log_sum_exp[i] = log_sum_exp == -std::numeric_limits<T>::infinity() ? T(0) : log_sum_exp;
      space.log_sum_exp_low[i] = T(statistic(p_.log_sum_exp_low, sequence, head, i));
    }
    for (T *numbers : {space.log_sum_exp, space.log_sum_exp_low})
      std::fill(numbers + sequence.queries, numbers + rounded_up(sequence.queries, width), T(0));
  }

  // Stores rowsum(dO ∘ out) for a panel of queries.
  void pack_delta(const AttentionSequence &sequence, int64_t head, int64_t query, const Space &space) const {
    int64_t batch = sequence.batch, first = sequence.query_start + query,
            count = std::min(width, sequence.queries - query);
    T *out = space.grad_out, *grad_out = space.grad_out_rows; // scratch: in use only later
    pack_matrix(rows_of<S>(p_.out, batch, head, first, p_.value_dim), count, width, value_row_, out);
    pack_matrix(rows_of<S>(p_.grad_out, batch, head, first, p_.value_dim), count, width, value_row_, grad_out);
    for (int64_t i = 0; i < width; i += lanes<T>)
      store_vector<T>(row_sums(out + i * value_row_, grad_out + i * value_row_, value_row_), space.delta + query + i);
  }

  // Computes the gradient of a sink, which takes part in each row's softmax like a key with value 0.
  double sink_gradient(const AttentionSequence &sequence, int64_t head, const Space &space) const {
    double sink = load(reinterpret_cast<const S *>(p_.sinks.data)[p_.sinks.at(0, head, 0)]), sum = 0;
    for (int64_t i = 0; i < sequence.queries; i++) {
      double log_sum_exp = statistic(p_.log_sum_exp, sequence, head, i);
      if (log_sum_exp != -std::numeric_limits<double>::infinity())
        sum -= std::exp(sink - log_sum_exp - double(space.log_sum_exp_low[i])) * double(space.delta[i]);
    }
    return sum;
  }

  // ---------------------------------------------------------------- results

  // Returns a function that gives the same factor for every row.
  static auto constant(T factor) {
    return [factor](int64_t) { return factor; };
  }

  void write_keys(const Unit &unit, int64_t first, int64_t keys, const Space &space) const {
    int64_t batch = unit.sequence->batch, row = unit.sequence->key_start + first;
    write_matrix(space.grad_keys, keys, dim_row_, constant(T(p_.scale)),
                 rows_of<S>(p_.grad_k, batch, unit.kv_head, row, p_.dim));
    write_matrix(space.grad_values, keys, value_row_, constant(T(1)),
                 rows_of<S>(p_.grad_v, batch, unit.kv_head, row, p_.value_dim));
  }

  // Returns the sums of dq for head number `at` of a group.
  T *sums_of(T *sums, int64_t chunk, int64_t at) const { return sums + (chunk * summed_heads_ + at) * sums_size_; }

  void sum_chunks(const std::vector<Unit> &group, T *sums) const {
    int64_t at = 0;
    for (const Unit &unit : group)
      for (int64_t head = unit.kv_head * p_.group; head < (unit.kv_head + 1) * p_.group; head++, at++) {
        T *first = sums_of(sums, 0, at);
        for (int64_t chunk = 1; chunk < chunks_; chunk++) add_all(sums_of(sums, chunk, at), first, sums_size_);
        write_queries(*unit.sequence, head, first);
      }
  }

  void write_queries(const AttentionSequence &sequence, int64_t head, T *sums) const {
    write_matrix(sums, sequence.queries, dim_row_, constant(T(p_.scale)),
                 rows_of<S>(p_.grad_q, sequence.batch, head, sequence.query_start, p_.dim));
  }

  // ---------------------------------------------------------------- bias and sinks

  // Each chunk adds to different elements of the bias's gradient, unless the bias is broadcast along the keys.
  int64_t bias_copies() const { return p_.grad_bias.column == 0 ? chunks_ : 1; }
  bool keeps_bias_apart() const { return p_.grad_bias.data && (!std::is_same_v<S, T> || bias_copies() > 1); }

  // Returns the number of distinct elements of the bias's gradient, which are row-major.
  int64_t bias_size() const {
    const AttentionOperand &bias = p_.grad_bias;
    if (p_.batch * p_.heads * p_.queries * p_.keys == 0) return empty_bias_size();
    return 1 + bias.at(p_.batch - 1, p_.heads - 1, p_.queries - 1, p_.keys - 1);
  }

  // Handles a bias that has no axes, or an axis of length 0.
  int64_t empty_bias_size() const {
    const AttentionOperand &bias = p_.grad_bias;
    int64_t size = 1;
    for (auto [stride, length] :
         {std::pair{bias.batch, p_.batch}, {bias.head, p_.heads}, {bias.row, p_.queries}, {bias.column, p_.keys}})
      if (stride != 0) size *= length;
    return size;
  }

  void sum_bias() const {
    S *out = reinterpret_cast<S *>(p_.grad_bias.data);
    parallel_for(bias_size(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) {
        T sum = bias_[at];
        for (int64_t copy = 1; copy < bias_copies(); copy++) sum += bias_[copy * bias_size() + at];
        out[at] = store<S>(sum);
      }
    });
  }

  void sum_sinks() const {
    for (int64_t head = 0; head < p_.heads; head++) {
      double sum = 0;
      for (size_t sequence = 0; sequence < p_.sequences.size(); sequence++)
        sum += sinks_[int64_t(sequence) * p_.heads + head];
      reinterpret_cast<S *>(p_.grad_sinks.data)[p_.grad_sinks.at(0, head, 0)] = store<S>(T(sum));
    }
  }

  const AttentionProblem &p_;
  const int64_t dim_row_, value_row_, block_keys_;
  std::vector<std::vector<Unit>> groups_;
  int64_t chunks_ = 1, most_chunk_ = 0, most_queries_ = 0;
  int64_t sums_size_ = 0, summed_heads_ = 1; // of dq: numbers per head, and the number of heads in a group
  T *bias_ = nullptr;
  double *sinks_ = nullptr;
};

} // namespace orchard::ORCHARD_ISA
