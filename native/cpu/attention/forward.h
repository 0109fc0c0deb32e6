// Attention forward, in tiles of keys and panels of queries, with the running maximum and sum of "online softmax".
// Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023, algorithm 1.
//
//   for each head of keys and chunk of queries, in parallel:
//     for each tile of keys: pack its keys and values
//       for each head of queries that shares them, each panel of its queries:
//         s = k qᵀ;  p = exp(s − m);  l = sum;  o = o · exp(m' − m) + p v
//     write o / l, m + ln l and the rounding error of m + ln l
//
// Chunks do not depend on the number of threads, and each query's tiles are added in the order of their keys.
#pragma once

#include "../indexing/scratch_slots.h"
#include "dropout.h"
#include "exponential_vector.h"
#include "finish.h"
#include "panels.h"
#include "rows_ahead.h"
#include "scores.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// `vectors` is the width of a panel of queries, in vectors.
template <class S, int vectors> class AttentionForward {
  using T = Compute<S>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr int64_t width = vectors * lanes<T>;
  static constexpr int64_t tile_keys = tuning::attention::tile_keys;
  static constexpr int step = std::gcd(int(width), panel_rows); // queries whose sums a tile computes at once

public:
  explicit AttentionForward(const AttentionProblem &problem)
      : p_(problem), scores_(problem), dim_row_(rounded_up(problem.dim, lanes<T>)),
        value_row_(rounded_up(problem.value_dim, lanes<T>)), panel_size_(width * (dim_row_ + value_row_ + 2)) {}

  void run() {
    plan();
    if (tasks_.empty()) return;
    int64_t most_panels = 0;
    for (const Task &task : tasks_) most_panels = std::max(most_panels, p_.group * divided_up(task.queries, width));
    int64_t tile = tile_keys * (dim_row_ + value_row_ + (p_.dropout.threshold ? 2 : 1) * width);
    ScratchSlots<T> slots(int64_t(tasks_.size()), tile + scratch_product({most_panels, panel_size_}));
    parallel_for(int64_t(tasks_.size()), grain(), [&](int64_t begin, int64_t end) {
      slots.with([&](T *scratch) {
        int64_t scores = 0;
        for (int64_t at = begin; at < end; at++)
          scores += run_task(tasks_[size_t(at)], rows_after(at, begin, end), scratch);
        count_scores(AttentionPass::forward, scores);
      });
    });
  }

private:
  // A chunk of the queries of all heads that share one head of keys.
  struct Task {
    const AttentionSequence *sequence;
    int64_t kv_head, first, queries;
  };

  // A task's scratch arrays.
  struct Space {
    T *s, *factors, *keys, *values, *panels;
  };

  // A panel of queries of one head. Shapes: q [columns, width], sums [width, columns], maxima and sums of exponentials
  // [width].
  struct Panel {
    int64_t head, first, queries;
    T *q, *out, *largest, *sum;

    // The last panel of a sequence has queries in few of its vectors.
    int64_t vectors_used() const { return divided_up(rounded_up(queries, step), lanes<T>); }
  };

  struct Tile {
    int64_t first, count;
    bool has_nonfinite;
    bool nonfinite[tile_keys];
  };

  // Divides queries into chunks of equal size, made of whole panels. The longest tasks start first, so that short ones
  // balance the load of the threads at the end.
  void plan() {
    int64_t units = std::max<int64_t>(1, p_.kv_heads * int64_t(p_.sequences.size()));
    for (const AttentionSequence &sequence : p_.sequences) {
      int64_t most = std::clamp(divided_up(sequence.queries * units, tuning::attention::forward_tasks),
                                tuning::attention::least_queries, tuning::attention::most_queries),
              parts = std::max<int64_t>(1, divided_up(sequence.queries, rounded_up(most, width))),
              chunk = rounded_up(divided_up(sequence.queries, parts), width);
      for (int64_t head = 0; head < p_.kv_heads; head++)
        for (int64_t first = 0; first < sequence.queries; first += chunk)
          tasks_.push_back({&sequence, head, first, std::min(chunk, sequence.queries - first)});
    }
    std::stable_sort(tasks_.begin(), tasks_.end(),
                     [&](const Task &one, const Task &other) { return pairs_of(one) > pairs_of(other); });
  }

  // Estimates a task's cost: its queries times the keys that at least one of them attends to.
  int64_t pairs_of(const Task &task) const {
    AttentionRange range = p_.keys_of(*task.sequence, task.first, task.first + task.queries - 1);
    return task.queries * (range.end - range.first);
  }

  // Estimates a task's time in products, with those of padding. For a head of 20 queries and keys, packing and writing
  // rows takes half of the time.
  double products_of(const Task &task) const {
    double queries = double(rounded_up(task.queries, lanes<T>)) * double(p_.group);
    double keys = double(rounded_up(divided_up(pairs_of(task), task.queries), panel_rows));
    return (queries * keys + (queries + keys) * tuning::attention::row_products) * double(p_.dim + p_.value_dim);
  }

  int64_t grain() const {
    double products = 0;
    for (const Task &task : tasks_) products += products_of(task);
    return attention_grain(int64_t(tasks_.size()), products);
  }

  // Returns the rows to prefetch while task `at` of a block [begin, end) computes: those of the block's next task, or
  // at its end those of the block that this thread probably takes next.
  RowsAhead rows_after(int64_t at, int64_t begin, int64_t end) const {
    int64_t next = at + 1 < end ? at + 1 : end + (end - begin) * (thread_count() - 1);
    if (next >= int64_t(tasks_.size())) return {0, 1};
    const Task &now = tasks_[size_t(at)], &task = tasks_[size_t(next)];
    const AttentionSequence &sequence = *task.sequence;
    AttentionRange range = p_.keys_of(sequence, task.first, task.first + task.queries - 1);
    int64_t keys = range.end - range.first, query = sequence.query_start + task.first,
            key = sequence.key_start + range.first;
    int64_t most = std::min(std::max(task.queries, keys), tuning::attention::most_rows_ahead);
    RowsAhead ahead(most, p_.group * pairs_of(now) / (width * panel_rows));
    auto add = [&](const AttentionOperand &x, int64_t head, int64_t row, int64_t rows, int64_t length) {
      if (x.column == 1)
        ahead.add(x.data + x.at(sequence.batch, head, row) * int64_t(sizeof(S)), x.row * int64_t(sizeof(S)), rows,
                  length * int64_t(sizeof(S)));
    };
    add(p_.q, task.kv_head * p_.group, query, task.queries, p_.dim);
    add(p_.k, task.kv_head, key, keys, p_.dim);
    add(p_.v, task.kv_head, key, keys, p_.value_dim);
    add(p_.out, task.kv_head * p_.group, query, task.queries, p_.value_dim);
    return ahead;
  }

  // Returns the number of computed scores, like all functions here that compute scores.
  int64_t run_task(const Task &task, RowsAhead ahead, T *scratch) const {
    Space space = divide(scratch);
    int64_t count = p_.group * divided_up(task.queries, width), scores = 0;
    for (int64_t at = 0; at < count; at++) start_panel(task, space, panel_at(task, space, at));
    AttentionRange range = p_.keys_of(*task.sequence, task.first, task.first + task.queries - 1);
    Tile tile;
    for (int64_t first = rounded_down(range.first, panel_rows); first < range.end; first += tile_keys) {
      tile.first = first;
      tile.count = std::min(tile_keys, range.end - first);
      pack_tile(task, tile, space);
      for (int64_t at = 0; at < count; at++) scores += add_tile(task, tile, space, panel_at(task, space, at), ahead);
    }
    for (int64_t at = 0; at < count; at++) finish_panel(task, panel_at(task, space, at));
    return scores;
  }

  Space divide(T *scratch) const {
    Space space;
    space.s = scratch;
    space.factors = space.s + tile_keys * width;
    space.keys = space.factors + (p_.dropout.threshold ? tile_keys * width : 0);
    space.values = space.keys + tile_keys * dim_row_;
    space.panels = space.values + tile_keys * value_row_;
    return space;
  }

  Panel panel_at(const Task &task, const Space &space, int64_t at) const {
    int64_t per_head = divided_up(task.queries, width), first = at % per_head * width;
    T *q = space.panels + at * panel_size_, *out = q + width * dim_row_, *largest = out + width * value_row_;
    return {task.kv_head * p_.group + at / per_head,
            task.first + first,
            std::min(width, task.queries - first),
            q,
            out,
            largest,
            largest + width};
  }

  void start_panel(const Task &task, const Space &space, const Panel &panel) const {
    const AttentionSequence &sequence = *task.sequence;
    Rows<S> rows = rows_of<S>(p_.q, sequence.batch, panel.head, sequence.query_start + panel.first, p_.dim);
    int64_t end = panel.vectors_used() * lanes<T>;
    pack_matrix(rows, panel.queries, end, dim_row_, space.keys); // scratch: in use only later
    turn_rows<width>(space.keys, dim_row_, panel.q, end);
    std::fill_n(panel.out, width * value_row_, T(0));
    std::fill_n(panel.largest, width, -std::numeric_limits<T>::infinity());
    std::fill_n(panel.sum, width, T(0));
  }

  Rows<S> values_of(const Task &task, const Tile &tile) const {
    return rows_of<S>(p_.v, task.sequence->batch, task.kv_head, task.sequence->key_start + tile.first, p_.value_dim);
  }

  void pack_tile(const Task &task, Tile &tile, const Space &space) const {
    Rows<S> keys = rows_of<S>(p_.k, task.sequence->batch, task.kv_head, task.sequence->key_start + tile.first, p_.dim);
    pack_matrix(keys, tile.count, rounded_up(tile.count, panel_rows), dim_row_, space.keys);
    pack_matrix(values_of(task, tile), tile.count, tile.count, value_row_, space.values);
    tile.has_nonfinite = clear_nonfinite_rows(space.values, tile.count, value_row_, tile.nonfinite);
  }

  // Adds the attention of a panel's queries to a tile's keys.
  int64_t add_tile(const Task &task, const Tile &tile, const Space &space, const Panel &panel, RowsAhead &ahead) const {
    AttentionRange range = p_.keys_of(*task.sequence, panel.first, panel.first + panel.queries - 1);
    int64_t first = rounded_down(std::max<int64_t>(range.first - tile.first, 0), panel_rows);
    int64_t count = std::min(range.end - tile.first, tile.count) - first;
    if (count <= 0) return 0;
    TilePairs pairs{*task.sequence, panel.head, panel.first, panel.queries, tile.first + first, count};
    alignas(64) T decay[width];
    int64_t scores = 0;
    with_used_vectors<vectors>(panel.vectors_used(), [&](auto used) {
      for (int64_t key = 0; key < count; key += panel_rows) {
        ahead.step();
        multiply_panel<used, int(width)>(p_.dim, space.keys + (first + key) * dim_row_, dim_row_, panel.q, T(p_.scale),
                                         space.s + key * width);
      }
      scores_.apply(pairs, space.s, nullptr);
      exponentiate<used>(space.s, count, panel, decay);
      scores = rounded_up(count, panel_rows) * used * lanes<T>;
    });
    if (p_.dropout.threshold) drop(pairs, space);
    add_rows<OfKeys<width>, step>(rounded_up(panel.queries, step), space.s, space.values + first * value_row_, decay,
                                  panel.out, value_row_,
                                  [&](int64_t query) { return keys_of(p_, pairs, query, step); });
    if (tile.has_nonfinite) add_nonfinite(task, tile, first, count, space.s, panel);
    return scores;
  }

  // Replaces s by exp(s − m), with m the largest score so far. `decay` is set to the factors that rescale sums computed
  // with an earlier m. Only the first `used` vectors change.
  template <int used> static void exponentiate(T *s, int64_t count, const Panel &panel, T *decay) {
    Vector<T> largest[used], shift[used], sum[used];
    for (int v = 0; v < used; v++) largest[v] = load_vector(panel.largest + v * lanes<T>);
    for (int64_t key = 0; key < count; key++)
      for (int v = 0; v < used; v++) {
        Vector<T> score = load_vector(s + key * width + v * lanes<T>);
        largest[v] = score > largest[v] ? score : largest[v];
      }
    const Vector<T> none = {};
    for (int v = 0; v < used; v++) {
      shift[v] = largest[v] == none - std::numeric_limits<T>::infinity() ? none : largest[v];
      Vector<T> factor = exponential(load_vector(panel.largest + v * lanes<T>) - shift[v]);
      sum[v] = load_vector(panel.sum + v * lanes<T>) * factor;
      store_vector(factor, decay + v * lanes<T>);
      store_vector(largest[v], panel.largest + v * lanes<T>);
    }
    for (int64_t key = 0; key < count; key++)
      for (int v = 0; v < used; v++) {
        T *score = s + key * width + v * lanes<T>;
        Vector<T> powers = exponential(load_vector(score) - shift[v]);
        sum[v] += powers;
        store_vector(powers, score);
      }
    for (int v = 0; v < used; v++) store_vector(sum[v], panel.sum + v * lanes<T>);
  }

  void drop(const TilePairs &pairs, const Space &space) const {
    dropout_factors<width>(p_.dropout, pairs.sequence.index, pairs.head, pairs.i, pairs.j, pairs.keys, space.factors);
    for (int64_t at = 0; at < pairs.keys * width; at++)
      space.s[at] = space.factors[at] == T(0) ? T(0) : space.s[at] * space.factors[at];
  }

  void add_nonfinite(const Task &task, const Tile &tile, int64_t first, int64_t count, const T *probabilities,
                     const Panel &panel) const {
    Rows<S> values = values_of(task, tile);
    for (int64_t key = 0; key < count; key++)
      for (int64_t lane = 0; tile.nonfinite[first + key] && lane < panel.queries; lane++) {
        T probability = probabilities[key * width + lane];
        for (int64_t column = 0; probability != T(0) && column < p_.value_dim; column++)
          panel.out[lane * value_row_ + column] += probability * values.at(first + key, column);
      }
  }

  void write_statistics(const Task &task, const Panel &panel, T sink) const {
    if (!p_.log_sum_exp.data && !p_.log_sum_exp_low.data) return;
    T log_sum_exps[width], lows[width];
    for (int64_t lane = 0; lane < width; lane++) {
      FinishedSum<T> finished = finish_sum(panel.largest[lane], panel.sum[lane], sink);
      log_sum_exps[lane] = finished.log_sum_exp, lows[lane] = finished.low;
    }
    int64_t first = task.sequence->query_start + panel.first;
    for (auto [operand, numbers] : {std::pair{&p_.log_sum_exp, log_sum_exps}, {&p_.log_sum_exp_low, lows}}) {
      if (!operand->data) continue;
      Statistic *row =
          reinterpret_cast<Statistic *>(operand->data) + operand->at(task.sequence->batch, panel.head, first);
      for (int64_t lane = 0; lane < panel.queries; lane++) row[lane * operand->row] = Statistic(numbers[lane]);
    }
  }

  // Adds the sinks to the sums, normalizes the output and writes the logarithms of the sums.
  void finish_panel(const Task &task, const Panel &panel) const {
    int64_t batch = task.sequence->batch, first = task.sequence->query_start + panel.first;
    T factors[width];
    const T sink = sink_of<S>(p_, panel.head);
    for (int64_t lane = 0; lane < width; lane++)
      factors[lane] = finish_sum(panel.largest[lane], panel.sum[lane], sink).factor;
    write_statistics(task, panel, sink);
    write_matrix(
        panel.out, panel.queries, value_row_, [&](int64_t lane) { return factors[lane]; },
        rows_of<S>(p_.out, batch, panel.head, first, p_.value_dim));
  }

  const AttentionProblem &p_;
  const Scores<S, int(width)> scores_;
  const int64_t dim_row_, value_row_, panel_size_;
  std::vector<Task> tasks_;
};

} // namespace orchard::ORCHARD_ISA
