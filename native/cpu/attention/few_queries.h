// Attention forward for few queries (decoding). Packing keys would not pay off: the time is spent reading keys and
// values, each of which is read once.
//
//   for each head of keys and chunk of its keys, in parallel:
//     for each tile of keys, each query that shares them:
//       s = k qᵀ;  p = exp(s − m);  l = sum;  o = o · exp(m' − m) + Σ p v
//     store m, l and o
//   for each query, in parallel: merge its chunks in order; write o / l, m + ln l and the rounding error of m + ln l
//
// Chunks depend on sizes only, so results do not depend on the number of threads.
#pragma once

#include "../indexing/scratch_slots.h"
#include "dropout.h"
#include "exponential_vector.h"
#include "finish.h"
#include "packed_rows.h"
#include "panels.h"
#include "scores.h"

namespace orchard::ORCHARD_ISA {

template <class S> class FewQueries {
  using T = Compute<S>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int64_t tile_keys = tuning::attention::tile_keys;
  static constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

public:
  explicit FewQueries(const AttentionProblem &problem)
      : p_(problem), scores_(problem), dim_row_(rounded_up(problem.dim, lanes<T>)),
        value_row_(rounded_up(problem.value_dim, lanes<T>)) {
    for (const AttentionSequence &sequence : p_.sequences) {
      queries_ = std::max(queries_, sequence.queries);
      most_keys_ = std::max(most_keys_, sequence.keys);
    }
    int64_t units = std::max<int64_t>(1, int64_t(p_.sequences.size()) * p_.kv_heads);
    chunks_ = std::clamp<int64_t>(divided_up(tuning::attention::few_queries_tasks, units), 1,
                                  std::max<int64_t>(1, divided_up(most_keys_, tuning::attention::least_keys)));
  }

  void run() {
    int64_t sequences = int64_t(p_.sequences.size()), tasks = sequences * p_.kv_heads * chunks_;
    Scratch<T> rows(scratch_product({sequences, p_.heads, queries_, chunks_, row_size()}));
    rows_ = rows.data();
    ScratchSlots<T> slots(tasks, scratch_product({p_.group, queries_, dim_row_ + tile_keys}) +
                                     tile_keys * (dim_row_ + value_row_));
    parallel_for(tasks, grain(tasks), [&](int64_t begin, int64_t end) {
      slots.with([&](T *scratch) {
        for (int64_t task = begin; task < end; task++) {
          const AttentionSequence &sequence = p_.sequences[size_t(task / chunks_ / p_.kv_heads)];
          run_chunk({sequence, task / chunks_ % p_.kv_heads, task % chunks_}, scratch);
        }
      });
    });
    parallel_for(sequences * p_.heads * queries_, 64, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at++)
        finish_row(p_.sequences[size_t(at / queries_ / p_.heads)], at / queries_ % p_.heads, at % queries_);
    });
  }

private:
  // One chunk of a sequence's keys, for one head of keys.
  struct Task {
    const AttentionSequence &sequence;
    int64_t kv_head, chunk;
  };

  // A query's running softmax state after some of its keys.
  struct Row {
    T *out, *largest, *sum;
  };

  // A row-major matrix whose rows are `stride` numbers apart.
  struct Matrix {
    const T *data;
    int64_t stride;
  };

  struct Tile {
    int64_t first, count;
    Matrix keys, values;
  };

  // A task's scratch arrays. Queries and scores are row-major.
  struct Space {
    T *queries, *keys, *values, *s;
  };

  int64_t grain(int64_t tasks) const {
    double pairs = 0;
    for (const AttentionSequence &sequence : p_.sequences) pairs += double(sequence.queries) * double(sequence.keys);
    return attention_grain(tasks, pairs * double(p_.heads) * double(p_.dim + p_.value_dim),
                           tuning::attention::few_queries_products);
  }

  int64_t row_size() const { return value_row_ + 2; }

  Row row_of(const AttentionSequence &sequence, int64_t head, int64_t i, int64_t chunk) const {
    T *out = rows_ + (((sequence.index * p_.heads + head) * queries_ + i) * chunks_ + chunk) * row_size();
    return {out, out + value_row_, out + value_row_ + 1};
  }

  // ---------------------------------------------------------------- one chunk of keys

  void run_chunk(const Task &task, T *scratch) const {
    const AttentionSequence &sequence = task.sequence;
    Space space = divide(scratch);
    for_each_query(
        task, [&](int64_t head, int64_t i, int64_t at) { start_row(task, head, i, space.queries + at * dim_row_); });
    int64_t size = rounded_up(divided_up(sequence.keys, chunks_), tile_keys), start = task.chunk * size;
    AttentionRange range = p_.keys_of(sequence, 0, sequence.queries - 1);
    int64_t end = std::min(start + size, range.end), scores = 0;
    for (int64_t first = std::max(start, range.first); first < end; first += tile_keys) {
      Tile tile = tile_of(task, first, std::min(tile_keys, end - first), space);
      multiply(tile, p_.group * sequence.queries, space);
      for_each_query(
          task, [&](int64_t head, int64_t i, int64_t at) { add_tile(task, tile, head, i, space.s + at * tile_keys); });
      scores += tile.count * sequence.queries * p_.group;
    }
    count_scores(AttentionPass::forward, scores);
  }

  Space divide(T *scratch) const {
    Space space;
    space.queries = scratch;
    space.keys = space.queries + p_.group * queries_ * dim_row_;
    space.values = space.keys + tile_keys * dim_row_;
    space.s = space.values + tile_keys * value_row_;
    return space;
  }

  // Calls use(head, index in the sequence, number) for each query that shares the task's head of keys.
  template <class Use> void for_each_query(const Task &task, Use use) const {
    int64_t at = 0;
    for (int64_t head = task.kv_head * p_.group; head < (task.kv_head + 1) * p_.group; head++)
      for (int64_t i = 0; i < task.sequence.queries; i++, at++) use(head, i, at);
  }

  void start_row(const Task &task, int64_t head, int64_t i, T *query) const {
    const AttentionSequence &sequence = task.sequence;
    pack_matrix(rows_of<S>(p_.q, sequence.batch, head, sequence.query_start + i, p_.dim), 1, 1, dim_row_, query);
    Row row = row_of(sequence, head, i, task.chunk);
    std::fill_n(row.out, value_row_, T(0));
    *row.largest = minus_infinity;
    *row.sum = 0;
  }

  Tile tile_of(const Task &task, int64_t first, int64_t count, const Space &space) const {
    const AttentionSequence &sequence = task.sequence;
    const AttentionOperand &k = sequence.own_keys ? *sequence.own_keys : p_.k,
                           &v = sequence.own_values ? *sequence.own_values : p_.v;
    int64_t row = sequence.key_start + first;
    auto matrix = [&](const AttentionOperand &x, int64_t length, int64_t stride, T *to) {
      if (x.is_packed) return unpacked(x, sequence.batch, task.kv_head, row, count, length, to);
      return matrix_of(rows_of<S>(x, sequence.batch, task.kv_head, row, length), count, stride, to);
    };
    return {first, count, matrix(k, p_.dim, dim_row_, space.keys), matrix(v, p_.value_dim, value_row_, space.values)};
  }

  // Unpacks q8_0 rows. A row consists of whole blocks, and therefore of whole vectors.
  static Matrix unpacked(const AttentionOperand &x, int64_t batch, int64_t head, int64_t row, int64_t count,
                         int64_t length, T *space) {
    for (int64_t at = 0; at < count; at++)
      unpack_q8_row<S>(x.data + x.at(batch, head, row + at), length, space + at * length);
    return {space, length};
  }

  // Returns the operand's rows if they have the required layout, else a copy.
  static Matrix matrix_of(Rows<S> rows, int64_t count, int64_t stride, T *space) {
    if (std::is_same_v<S, T> && rows.column == 1 && rows.length == stride)
      return {reinterpret_cast<const T *>(rows.data), rows.row};
    pack_matrix(rows, count, count, stride, space);
    return {space, stride};
  }

  // ---------------------------------------------------------------- a tile of keys

  // Computes scaled products, and 0 beyond the tile's keys. Columns are summed sequentially, as in the backward pass:
  // then s and L have the same rounding errors in exp(s − L).
  void multiply(const Tile &tile, int64_t queries, const Space &space) const {
    for (int64_t key = 0; key < tile.count; key += lanes<T>)
      for (int64_t c = 0; c < dim_row_; c += lanes<T>) {
        Vector<T> square[lanes<T>] = {};
        for (int64_t lane = 0; lane < std::min<int64_t>(lanes<T>, tile.count - key); lane++)
          square[lane] = load_vector(tile.keys.data + (key + lane) * tile.keys.stride + c);
        transpose<T>(square);
        for (int64_t at = 0; at < queries; at++)
          add_columns(square, c, space.queries + at * dim_row_, space.s + at * tile_keys + key);
      }
  }

  // Adds the products for one vector of keys, from column c on.
  void add_columns(const Vector<T> (&columns)[lanes<T>], int64_t c, const T *query, T *s) const {
    Vector<T> sum = {};
    if (c > 0) sum = load_vector(s);
    for (int i = 0; i < lanes<T>; i++) sum = multiply_add<T>(columns[i], query[c + i], sum);
    if (c + lanes<T> == dim_row_) sum *= T(p_.scale);
    store_vector<T>(sum, s);
  }

  void add_tile(const Task &task, const Tile &tile, int64_t head, int64_t i, T *s) const {
    int64_t end = rounded_up(tile.count, lanes<T>);
    TilePairs pairs{task.sequence, head, i, 1, tile.first, tile.count};
    scores_.apply(pairs, s, nullptr);
    std::fill(s + tile.count, s + end, minus_infinity);
    Row row = row_of(task.sequence, head, i, task.chunk);
    T decay = exponentiate(s, end, row);
    if (p_.dropout.threshold) drop(pairs, s);
    int64_t column = 0;
    for (; column + 4 * lanes<T> <= value_row_; column += 4 * lanes<T>) add_values<4>(tile, column, s, decay, row);
    for (; column < value_row_; column += lanes<T>) add_values<1>(tile, column, s, decay, row);
  }

  // Replaces s by exp(s − m), with m the largest score so far. Returns the factor that rescales sums computed with an
  // earlier m.
  static T exponentiate(T *s, int64_t count, const Row &row) {
    const Vector<T> none = {};
    Vector<T> largest = none + *row.largest, sum = {};
    for (int64_t key = 0; key < count; key += lanes<T>) {
      Vector<T> score = load_vector(s + key);
      largest = score > largest ? score : largest;
    }
    T whole = *row.largest;
    for (int lane = 0; lane < lanes<T>; lane++) whole = largest[lane] > whole ? largest[lane] : whole;
    T shift = whole == minus_infinity ? T(0) : whole, decay = exponential(none + (*row.largest - shift))[0];
    for (int64_t key = 0; key < count; key += lanes<T>) {
      Vector<T> powers = exponential(load_vector(s + key) - shift);
      sum += powers;
      store_vector(powers, s + key);
    }
    *row.largest = whole;
    *row.sum *= decay;
    for (int lane = 0; lane < lanes<T>; lane++) *row.sum += sum[lane];
    return decay;
  }

  // Multiplies by dropout's factors, which are drawn for two queries at once.
  void drop(const TilePairs &pairs, T *s) const {
    int64_t before = pairs.j % 2; // with a window, a tile may begin at an odd key
    for (int64_t key = -before; key < pairs.keys; key += 2) {
      T factors[4];
      dropout_factors<2>(p_.dropout, pairs.sequence.index, pairs.head, rounded_down(pairs.i, 2), pairs.j + key, 2,
                         factors);
      for (int64_t at = std::max<int64_t>(key, 0); at < std::min(key + 2, pairs.keys); at++) {
        T factor = factors[(at - key) * 2 + pairs.i % 2];
        s[at] = factor == T(0) ? T(0) : s[at] * factor;
      }
    }
  }

  // Adds p v to the output. A nonfinite value affects only the queries that attend to it.
  template <int vectors>
  static void add_values(const Tile &tile, int64_t column, const T *probabilities, T decay, const Row &row) {
    Vector<T> sums[vectors];
    for (int v = 0; v < vectors; v++) sums[v] = load_vector(row.out + column + v * lanes<T>) * decay;
    const T *values = tile.values.data + column;
    for (int64_t key = 0; key < tile.count; key++, values += tile.values.stride) {
      if (probabilities[key] == T(0)) continue;
      for (int v = 0; v < vectors; v++)
        sums[v] = multiply_add<T>(load_vector(values + v * lanes<T>), probabilities[key], sums[v]);
    }
    for (int v = 0; v < vectors; v++) store_vector(sums[v], row.out + column + v * lanes<T>);
  }

  // ---------------------------------------------------------------- results

  void finish_row(const AttentionSequence &sequence, int64_t head, int64_t i) const {
    if (i >= sequence.queries) return;
    Row first = row_of(sequence, head, i, 0);
    for (int64_t chunk = 1; chunk < chunks_; chunk++) add_row(row_of(sequence, head, i, chunk), first);
    int64_t row = sequence.query_start + i;
    auto finished = finish_sum(*first.largest, *first.sum, sink_of<S>(p_, head));
    for (auto [operand, number] :
         {std::pair{&p_.log_sum_exp, finished.log_sum_exp}, {&p_.log_sum_exp_low, finished.low}})
      if (operand->data)
        reinterpret_cast<Statistic *>(operand->data)[operand->at(sequence.batch, head, row)] = Statistic(number);
    write_matrix(
        first.out, 1, value_row_, [factor = finished.factor](int64_t) { return factor; },
        rows_of<S>(p_.out, sequence.batch, head, row, p_.value_dim));
  }

  // Merges a query's states over two disjoint sets of keys.
  void add_row(const Row &other, const Row &row) const {
    T largest = *other.largest > *row.largest ? *other.largest : *row.largest,
      shift = largest == minus_infinity ? T(0) : largest;
    T row_factor = std::exp(*row.largest - shift), other_factor = std::exp(*other.largest - shift);
    for (int64_t c = 0; c < value_row_; c++) row.out[c] = row.out[c] * row_factor + other.out[c] * other_factor;
    *row.sum = *row.sum * row_factor + *other.sum * other_factor;
    *row.largest = largest;
  }

  const AttentionProblem &p_;
  const Scores<S, 1> scores_;
  const int64_t dim_row_, value_row_;
  int64_t queries_ = 0, most_keys_ = 0, chunks_ = 1;
  T *rows_ = nullptr;
};

} // namespace orchard::ORCHARD_ISA
