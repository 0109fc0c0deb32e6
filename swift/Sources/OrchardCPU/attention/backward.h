// Attention backward: one pass over the tiles, with five products each.
// Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, algorithm 2.
//
//   for each head of keys and chunk of them, in parallel:
//     for each head of queries that shares them: pack its q and dO, Δ = rowsum(dO ∘ out) − dL
//       for each tile of the chunk's keys, each panel of queries:  add to dq, dk, dv, dbias           gradient_tile.h
//       dq is written, or kept apart where there are several chunks
//     dk and dv are written
//   dq is summed over the chunks, in order
//
// Heads whose biases are the same elements come one after the other in the same task. What the tasks are depends on sizes only, so the sums
// are the same for any number of threads.
#pragma once

#include "../indexing/scratch_slots.h"
#include "gradient_tile.h"

#include <map>

namespace orchard::ORCHARD_ISA {

template <class S> class AttentionBackward {
  using Tile = GradientTile<S>;
  using T = typename Tile::T;
  using Space = GradientSpace<T>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int64_t width = Tile::width, tile_keys = attention_tile_keys;
  static constexpr int64_t wanted_tasks = 16, most_partial_heads = 64, least_chunk = 2 * tile_keys;
  static constexpr int64_t cached_bytes = 640 << 10; // of keys in the second-level cache

public:
  explicit AttentionBackward(const AttentionProblem &problem)
      : p_(problem), dim_row_(rounded_up(problem.dim, lanes<T>)), value_row_(rounded_up(problem.value_dim, lanes<T>)),
        dim_columns_(rounded_up(problem.dim, panel_rows)), block_keys_(keys_in_cache()) {
    plan();
  }

  void run() {
    Scratch<T> partial(size_t(p_.grad_q.data && chunks_ > 1 ? chunks_ * query_numbers() : 0));
    Scratch<T> bias(size_t(keeps_bias_apart() ? bias_copies() * bias_size() : 0));
    Scratch<double> sinks(size_t(p_.grad_sinks.data ? int64_t(p_.sequences.size()) * p_.heads : 0));
    partial_ = partial.data();
    sinks_ = sinks.data();
    bias_ = keeps_bias_apart() ? bias.data() : reinterpret_cast<T *>(p_.grad_bias.data);
    if (bias_) std::fill_n(bias_, bias_copies() * bias_size(), T(0));
    run_tasks();
    if (partial_) sum_queries();
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

  // Units that add to the same elements of the bias's gradient are one group.
  void plan() {
    std::map<std::pair<int64_t, int64_t>, size_t> places;
    int64_t most_keys = 0, units = 0;
    for (const AttentionSequence &sequence : p_.sequences) {
      most_keys = std::max(most_keys, sequence.keys);
      most_queries_ = std::max(most_queries_, sequence.queries);
      for (int64_t head = 0; head < p_.kv_heads; head++, units++) {
        std::pair<int64_t, int64_t> own{p_.grad_bias.batch ? sequence.batch : 0, p_.grad_bias.head ? head : 0};
        auto [place, is_new] = places.try_emplace(p_.grad_bias.data ? own : std::pair{units, int64_t(0)}, groups_.size());
        if (is_new) groups_.emplace_back();
        groups_[place->second].push_back({&sequence, head});
      }
    }
    if (units == 0) return;
    int64_t wanted = std::min(divided_up(wanted_tasks, int64_t(groups_.size())), most_partial_heads / units);
    chunks_ = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, divided_up(most_keys, least_chunk)));
    most_chunk_ = chunk_of(most_keys);
  }

  // What products read and write of a key: three times of k, twice of v.
  int64_t keys_in_cache() const {
    int64_t bytes = int64_t(sizeof(T)) * (3 * p_.dim + 2 * p_.value_dim);
    return std::max(tile_keys, rounded_down(cached_bytes / bytes, tile_keys));
  }

  // Keys of a chunk, of a sequence with so many.
  int64_t chunk_of(int64_t keys) const { return rounded_up(divided_up(keys, chunks_), tile_keys); }

  void run_tasks() {
    int64_t tasks = int64_t(groups_.size()) * chunks_;
    if (tasks == 0) return;
    Space measured;
    ScratchSlots<T> slots(tasks, divide(nullptr, measured));
    parallel_for(tasks, 1, [&](int64_t task, int64_t) {
      slots.with([&](T *scratch) {
        Space space;
        divide(scratch, space);
        for (const Unit &unit : groups_[size_t(task / chunks_)]) run_unit(unit, task % chunks_, space);
      });
    });
  }

  // Gives every array its place, each at a vector's alignment, and returns how many numbers they take.
  int64_t divide(T *scratch, Space &space) const {
    int64_t used = 0, queries = rounded_up(most_queries_, width);
    auto take = [&](int64_t count) {
      T *place = scratch + used;
      used += rounded_up(count, lanes<T>);
      return place;
    };
    space.keys = take(most_chunk_ * p_.dim), space.key_columns = take(most_chunk_ * dim_columns_), space.values = take(most_chunk_ * p_.value_dim);
    space.queries = take(queries * p_.dim), space.query_rows = take(queries * dim_row_);
    space.grad_out = take(queries * p_.value_dim), space.grad_out_rows = take(queries * value_row_);
    space.log_sum_exp = take(queries), space.delta = take(queries);
    space.grad_keys = take(most_chunk_ * dim_row_), space.grad_values = take(most_chunk_ * value_row_);
    space.grad_queries = take(queries * dim_columns_);
    space.s = take(tile_keys * width), space.dp = take(tile_keys * width);
    space.factors = take(p_.dropout.threshold ? tile_keys * width : 0), space.slopes = take(p_.softcap != 0 ? tile_keys * width : 0);
    for (auto [flags, count] : {std::pair{&space.loud_keys, most_chunk_}, {&space.loud_queries, queries}, {&space.loud_grad_out, queries}})
      *flags = reinterpret_cast<bool *>(take(divided_up(count, sizeof(T))));
    return used;
  }

  // ---------------------------------------------------------------- one head of keys

  void run_unit(const Unit &unit, int64_t chunk, Space &space) const {
    const AttentionSequence &sequence = *unit.sequence;
    int64_t size = chunk_of(sequence.keys), first = std::min(chunk * size, sequence.keys), keys = std::min(size, sequence.keys - first);
    pack_keys(unit, first, keys, space);
    std::fill_n(space.grad_keys, rounded_up(keys, panel_rows) * dim_row_, T(0));
    std::fill_n(space.grad_values, rounded_up(keys, panel_rows) * value_row_, T(0));
    for (int64_t head = unit.kv_head * p_.group; head < (unit.kv_head + 1) * p_.group; head++) {
      pack_queries(sequence, head, space);
      if (sinks_ && chunk == 0) sinks_[sequence.index * p_.heads + head] = sink_gradient(sequence, head, space);
      std::fill_n(space.grad_queries, rounded_up(sequence.queries, width) * dim_columns_, T(0));
      Tile tile(p_, space, bias_ ? bias_ + chunk % bias_copies() * bias_size() : nullptr);
      for (int64_t at = 0; at < keys; at += block_keys_)
        add_block(tile, {sequence, head, unit.kv_head, first, at, std::min(block_keys_, keys - at)});
      if (p_.grad_q.data) write_queries(sequence, head, chunk, space);
    }
    if (p_.grad_k.data) write_keys(unit, first, keys, space);
  }

  // Tiles that stay in the second-level cache while the panels of queries go by.
  void add_block(const Tile &tile, const KeyTile &block) const {
    int64_t first = block.chunk + block.first, end = block.first + block.count;
    AttentionRange range = p_.queries_of(block.sequence, first, first + block.count - 1);
    for (int64_t query = rounded_down(range.first, width); query < range.end; query += width)
      for (KeyTile keys = block; keys.first < end; keys.first += tile_keys) {
        keys.count = std::min(tile_keys, end - keys.first);
        tile.add(keys, query);
      }
  }

  void pack_keys(const Unit &unit, int64_t first, int64_t keys, Space &space) const {
    const AttentionSequence &sequence = *unit.sequence;
    Rows<S> own = rows_of<S>(p_.k, sequence.batch, unit.kv_head, sequence.key_start + first, p_.dim);
    pack_rows<panel_rows>(own, keys, space.keys);
    pack_rows<panel_rows>(rows_of<S>(p_.v, sequence.batch, unit.kv_head, sequence.key_start + first, p_.value_dim), keys, space.values);
    space.has_loud_keys = false;
    std::fill_n(space.loud_keys, keys, false);
    for (int64_t at = 0; at < keys; at += tile_keys) {
      int64_t count = std::min(tile_keys, keys - at);
      T *columns = space.key_columns + at * dim_columns_;
      pack_columns(own.from(at), count, columns);
      space.has_loud_keys |= take_out_loud(columns, count, dim_columns_ / panel_rows, panel_rows * count, panel_rows, space.loud_keys + at);
    }
  }

  void pack_queries(const AttentionSequence &sequence, int64_t head, Space &space) const {
    int64_t batch = sequence.batch, first = sequence.query_start, count = sequence.queries;
    Rows<S> q = rows_of<S>(p_.q, batch, head, first, p_.dim), grad_out = rows_of<S>(p_.grad_out, batch, head, first, p_.value_dim);
    pack_rows<int(width)>(q, count, space.queries);
    pack_matrix(q, count, dim_row_, space.query_rows);
    pack_rows<int(width)>(grad_out, count, space.grad_out);
    pack_matrix(grad_out, count, value_row_, space.grad_out_rows);
    pack_statistics(sequence, head, space);
    space.has_loud_queries = take_out_loud(space.query_rows, count, 1, count * dim_row_, dim_row_, space.loud_queries);
    space.has_loud_grad_out = take_out_loud(space.grad_out_rows, count, 1, count * value_row_, value_row_, space.loud_grad_out);
  }

  static Statistic statistic(const AttentionOperand &operand, const AttentionSequence &sequence, int64_t head, int64_t i) {
    return reinterpret_cast<const Statistic *>(operand.data)[operand.at(sequence.batch, head, sequence.query_start + i)];
  }

  // L and Δ of each query, 0 for those that fill up the last panel.
  void pack_statistics(const AttentionSequence &sequence, int64_t head, Space &space) const {
    Rows<S> out = rows_of<S>(p_.out, sequence.batch, head, sequence.query_start, p_.value_dim);
    alignas(64) T row[most_value_dim] = {};
    for (int64_t i = 0; i < sequence.queries; i++) {
      T sum = 0;
      for (int64_t start = 0; start < p_.value_dim; start += most_value_dim) {
        int64_t count = std::min(most_value_dim, p_.value_dim - start);
        load_row(out.from(i).data + start * out.column, out.column, row, count);
        sum += dot(row, space.grad_out_rows + i * value_row_ + start, count);
      }
      space.delta[i] = sum - (p_.grad_log_sum_exp.data ? T(statistic(p_.grad_log_sum_exp, sequence, head, i)) : T(0));
      T log_sum_exp = T(statistic(p_.log_sum_exp, sequence, head, i));
      space.log_sum_exp[i] = log_sum_exp == -std::numeric_limits<T>::infinity() ? T(0) : log_sum_exp;
    }
    std::fill(space.delta + sequence.queries, space.delta + rounded_up(sequence.queries, width), T(0));
    std::fill(space.log_sum_exp + sequence.queries, space.log_sum_exp + rounded_up(sequence.queries, width), T(0));
  }

  static T dot(const T *a, const T *b, int64_t count) {
    Vector<T> sums = {};
    int64_t i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>) sums = multiply_add<T>(load_vector(a + i), load_vector(b + i), sums);
    T sum = 0;
    for (; i < count; i++) sum += a[i] * b[i];
    for (int lane = 0; lane < lanes<T>; lane++) sum += sums[lane];
    return sum;
  }

  // A sink takes its share of each row like a key whose value is 0.
  double sink_gradient(const AttentionSequence &sequence, int64_t head, const Space &space) const {
    double sink = load(reinterpret_cast<const S *>(p_.sinks.data)[p_.sinks.at(0, head, 0)]), sum = 0;
    for (int64_t i = 0; i < sequence.queries; i++) {
      double log_sum_exp = statistic(p_.log_sum_exp, sequence, head, i);
      if (log_sum_exp != -std::numeric_limits<double>::infinity()) sum -= std::exp(sink - log_sum_exp) * double(space.delta[i]);
    }
    return sum;
  }

  // ---------------------------------------------------------------- results

  static S *row_of(const AttentionOperand &operand, int64_t batch, int64_t head, int64_t row) {
    return reinterpret_cast<S *>(operand.data) + operand.at(batch, head, row);
  }

  void write_keys(const Unit &unit, int64_t first, int64_t keys, const Space &space) const {
    scale_all(space.grad_keys, keys * dim_row_, T(p_.scale));
    for (int64_t key = 0; key < keys; key++) {
      int64_t batch = unit.sequence->batch, row = unit.sequence->key_start + first + key;
      write_row<S>(space.grad_keys + key * dim_row_, row_of(p_.grad_k, batch, unit.kv_head, row), p_.grad_k.column, p_.dim);
      write_row<S>(space.grad_values + key * value_row_, row_of(p_.grad_v, batch, unit.kv_head, row), p_.grad_v.column, p_.value_dim);
    }
  }

  // Numbers of q, and where a row of it begins where it is row-major.
  int64_t query_numbers() const { return p_.batch * p_.heads * p_.queries * p_.dim; }
  int64_t query_place(int64_t batch, int64_t head, int64_t row) const { return ((batch * p_.heads + head) * p_.queries + row) * p_.dim; }

  void write_queries(const AttentionSequence &sequence, int64_t head, int64_t chunk, const Space &space) const {
    T factors[width];
    std::fill_n(factors, width, T(p_.scale));
    for (int64_t first = 0; first < sequence.queries; first += width) {
      const T *panel = space.grad_queries + first * dim_columns_;
      int64_t rows = std::min(width, sequence.queries - first), row = sequence.query_start + first;
      if (partial_) {
        T *to = partial_ + chunk * query_numbers() + query_place(sequence.batch, head, row);
        unpack_rows<int(width), T>(panel, rows, p_.dim, factors, 1, [&](int64_t at) { return to + at * p_.dim; });
      } else {
        unpack_rows<int(width), S>(panel, rows, p_.dim, factors, p_.grad_q.column,
                                   [&](int64_t at) { return row_of(p_.grad_q, sequence.batch, head, row + at); });
      }
    }
  }

  void sum_queries() const {
    parallel_for(p_.batch * p_.heads * p_.queries, 256, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++) {
        int64_t row = at % p_.queries, head = at / p_.queries % p_.heads, batch = at / p_.queries / p_.heads;
        T *first = partial_ + query_place(batch, head, row);
        for (int64_t chunk = 1; chunk < chunks_; chunk++)
          for (int64_t c = 0; c < p_.dim; c++) first[c] += first[chunk * query_numbers() + c];
        write_row<S>(first, row_of(p_.grad_q, batch, head, row), p_.grad_q.column, p_.dim);
      }
    });
  }

  // ---------------------------------------------------------------- bias and sinks

  // Chunks add to elements of their own, but where the bias is the same for all keys.
  int64_t bias_copies() const { return p_.grad_bias.column == 0 ? chunks_ : 1; }
  bool keeps_bias_apart() const { return p_.grad_bias.data && (!std::is_same_v<S, T> || bias_copies() > 1); }

  // Its own elements, which are row-major.
  int64_t bias_size() const {
    const AttentionOperand &bias = p_.grad_bias;
    if (p_.batch * p_.heads * p_.queries * p_.keys == 0) return empty_bias_size();
    return 1 + bias.at(p_.batch - 1, p_.heads - 1, p_.queries - 1, p_.keys - 1);
  }

  // Of a bias with axes of length 0, or of none of them.
  int64_t empty_bias_size() const {
    const AttentionOperand &bias = p_.grad_bias;
    int64_t size = 1;
    for (auto [stride, length] : {std::pair{bias.batch, p_.batch}, {bias.head, p_.heads}, {bias.row, p_.queries}, {bias.column, p_.keys}})
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
      for (size_t sequence = 0; sequence < p_.sequences.size(); sequence++) sum += sinks_[int64_t(sequence) * p_.heads + head];
      reinterpret_cast<S *>(p_.grad_sinks.data)[p_.grad_sinks.at(0, head, 0)] = store<S>(T(sum));
    }
  }

  static constexpr int64_t most_value_dim = 256; // that is loaded at once

  const AttentionProblem &p_;
  const int64_t dim_row_, value_row_, dim_columns_, block_keys_;
  std::vector<std::vector<Unit>> groups_;
  int64_t chunks_ = 1, most_chunk_ = 0, most_queries_ = 0;
  T *partial_ = nullptr, *bias_ = nullptr;
  double *sinks_ = nullptr;
};

} // namespace orchard::ORCHARD_ISA
