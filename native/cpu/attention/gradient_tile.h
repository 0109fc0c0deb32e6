// Computes the gradients from a panel of queries and a tile of keys: five products, with the probabilities computed
// between them.
//
//   s = k qᵀ, p = exp(s − L)      dp = v dOᵀ, ds = p (dp − Δ)      dv += (kept p) dO      dk += du q      dq += du k
#pragma once

#include "dropout.h"
#include "exponential_vector.h"
#include "panels.h"
#include "scores.h"

namespace orchard::ORCHARD_ISA {

// A thread's arrays: for a block of keys, for a panel of queries, and L, Δ and dq of all queries of a head.
template <class T> struct GradientSpace {
  T *keys, *values;                 // row-major; so are the other arrays that are not panels
  T *grad_keys, *grad_values;       // without the factor `scale`
  T *queries, *query_rows;          // a panel [columns, width], and the same numbers row-major
  T *grad_out, *grad_out_rows;      // dO in the same two layouts
  T *log_sum_exp, *log_sum_exp_low; // L, or 0 if it is −∞, and its rounding error
  T *delta;
  T *grad_queries;                       // without the factor `scale`
  T *s, *dp, *factors, *cap_derivatives; // for one tile
  bool *nonfinite_keys, *nonfinite_queries, *nonfinite_grad_out;
  bool has_nonfinite_keys, has_nonfinite_queries, has_nonfinite_grad_out;
};

// Keys from `first` on; `first` is relative to a block that begins at key `block` of the sequence.
struct KeyTile {
  const AttentionSequence &sequence;
  int64_t head, kv_head, block, first, count;
};

// `vectors` is the width of a panel of queries, in vectors.
template <class S, int vectors> class GradientTile {
public:
  using T = Compute<S>;
  static constexpr int64_t width = vectors * lanes<T>;

  // The gradient of the bias is summed in `grad_bias`, which may be null.
  GradientTile(const AttentionProblem &problem, const GradientSpace<T> &space, T *grad_bias)
      : p_(problem), space_(space), grad_bias_(grad_bias), scores_(problem),
        dim_row_(rounded_up(problem.dim, lanes<T>)), value_row_(rounded_up(problem.value_dim, lanes<T>)) {}

  // Adds the gradients from the panel of queries that begins at `query` and the tile's keys. Returns the number of
  // computed scores.
  int64_t add(const KeyTile &tile, int64_t query) const {
    int64_t queries = std::min(width, tile.sequence.queries - query), start = tile.block + tile.first;
    AttentionRange range = p_.keys_of(tile.sequence, query, query + queries - 1);
    int64_t skipped = rounded_down(std::max<int64_t>(range.first - start, 0), panel_rows);
    int64_t count = std::min(range.end - start, tile.count) - skipped;
    if (count <= 0) return 0;
    TilePairs pairs{tile.sequence, tile.head, query, queries, start + skipped, count};
    multiply(tile, pairs, skipped);
    differentiate(pairs);
    if (grad_bias_) add_to_bias(pairs);
    if (p_.softcap != 0) apply_cap_derivatives(count);
    add_to_keys(tile, pairs, skipped);
    add_to_queries(tile, pairs, skipped);
    if (space_.has_nonfinite_keys || space_.has_nonfinite_queries || space_.has_nonfinite_grad_out)
      add_nonfinite(tile, pairs, skipped);
    return rounded_up(count, panel_rows) * width;
  }

private:
  void multiply(const KeyTile &tile, const TilePairs &pairs, int64_t skipped) const {
    const T *keys = space_.keys + (tile.first + skipped) * dim_row_,
            *values = space_.values + (tile.first + skipped) * value_row_;
    for (int64_t key = 0; key < pairs.keys; key += panel_rows) {
      multiply_panel<vectors, int(width)>(p_.dim, keys + key * dim_row_, dim_row_, space_.queries, T(p_.scale),
                                          space_.s + key * width);
      multiply_panel<vectors, int(width)>(p_.value_dim, values + key * value_row_, value_row_, space_.grad_out, T(1),
                                          space_.dp + key * width);
    }
    for (int64_t key = 0; space_.has_nonfinite_keys && key < pairs.keys; key++)
      if (space_.nonfinite_keys[tile.first + skipped + key])
        multiply_nonfinite(tile, pairs.j + key, space_.s + key * width);
  }

  // Computes the scores of a key whose packed row was cleared because it has nonfinite elements.
  void multiply_nonfinite(const KeyTile &tile, int64_t key, T *s) const {
    Rows<S> row = rows_of<S>(p_.k, tile.sequence.batch, tile.kv_head, tile.sequence.key_start + key, p_.dim);
    for (int64_t lane = 0; lane < width; lane++) {
      T sum = 0;
      for (int64_t c = 0; c < p_.dim; c++) sum += row.at(0, c) * space_.queries[c * width + lane];
      s[lane] = sum * T(p_.scale);
    }
  }

  // Replaces s by the probabilities after dropout, and dp by ds. Padding rows up to a whole panel become 0.
  void differentiate(const TilePairs &pairs) const {
    scores_.apply(pairs, space_.s, p_.softcap != 0 ? space_.cap_derivatives : nullptr);
    if (p_.dropout.threshold) {
      dropout_factors<int(width)>(p_.dropout, pairs.sequence.index, pairs.head, pairs.i, pairs.j, pairs.keys,
                                  space_.factors);
      differentiate_pairs<true>(pairs);
    } else differentiate_pairs<false>(pairs);
    int64_t end = pairs.keys * width, remainder = rounded_up(pairs.keys, panel_rows) * width - end;
    std::fill_n(space_.s + end, remainder, T(0));
    std::fill_n(space_.dp + end, remainder, T(0));
  }

  // A probability of 0 contributes nothing, even if dp is NaN or infinite.
  template <bool has_dropout> void differentiate_pairs(const TilePairs &pairs) const {
    const Vector<T> none = {}, nobody = none - std::numeric_limits<T>::infinity();
    Vector<T> log_sum_exp[vectors], low[vectors], delta[vectors];
    for (int v = 0; v < vectors; v++) {
      log_sum_exp[v] = load_vector(space_.log_sum_exp + pairs.i + v * lanes<T>);
      low[v] = load_vector(space_.log_sum_exp_low + pairs.i + v * lanes<T>);
      delta[v] = load_vector(space_.delta + pairs.i + v * lanes<T>);
    }
    for (int64_t key = 0; key < pairs.keys; key++)
      for (int v = 0; v < vectors; v++) {
        int64_t at = key * width + v * lanes<T>;
        Vector<T> s = load_vector(space_.s + at), dp = load_vector(space_.dp + at);
        Vector<T> p = s == nobody ? none : exponential((s - log_sum_exp[v]) - low[v]), kept = p; // L may be NaN
        if constexpr (has_dropout) {
          Vector<T> factor = load_vector(space_.factors + at);
          kept = factor == none ? none : p * factor;
          dp = factor == none ? none : dp * factor;
        }
        store_vector(kept, space_.s + at);
        store_vector(p == none ? none : p * (dp - delta[v]), space_.dp + at);
      }
  }

  void add_to_bias(const TilePairs &pairs) const {
    const AttentionOperand &bias = p_.grad_bias;
    T *sums = grad_bias_ + bias.at(pairs.sequence.batch, pairs.head, pairs.sequence.query_start + pairs.i,
                                   pairs.sequence.key_start + pairs.j);
    if (bias.row != 0 && bias.column == 1) return add_rows_to_bias(pairs, sums);
    for (int64_t key = 0; key < pairs.keys; key++)
      for (int64_t lane = 0; lane < pairs.queries; lane++)
        sums[lane * bias.row + key * bias.column] += space_.dp[key * width + lane];
  }

  // Transposes the tile, square by square, and adds it to the rows of the bias's gradient.
  void add_rows_to_bias(const TilePairs &pairs, T *sums) const {
    for (int64_t r = 0; r < pairs.queries; r += lanes<T>)
      for (int64_t c = 0; c < pairs.keys; c += lanes<T>) {
        Vector<T> square[lanes<T>];
        for (int64_t i = 0; i < lanes<T>; i++) square[i] = load_vector(space_.dp + (c + i) * width + r);
        transpose<T>(square);
        int64_t length = std::min<int64_t>(lanes<T>, pairs.keys - c);
        for (int64_t i = 0; i < std::min<int64_t>(lanes<T>, pairs.queries - r); i++)
          add_all(reinterpret_cast<const T *>(&square[i]), sums + (r + i) * p_.grad_bias.row + c, length);
      }
  }

  void apply_cap_derivatives(int64_t keys) const {
    for (int64_t at = 0; at < keys * width; at++)
      space_.dp[at] = space_.dp[at] == T(0) ? T(0) : space_.dp[at] * space_.cap_derivatives[at];
  }

  void add_to_keys(const KeyTile &tile, const TilePairs &pairs, int64_t skipped) const {
    if (!p_.grad_k.data) return;
    int64_t first = tile.first + skipped, keys = rounded_up(pairs.keys, panel_rows);
    auto range_of = [&](int64_t key) { return queries_of(p_, pairs, key, panel_rows); };
    add_rows<OfQueries<width>, panel_rows>(keys, space_.s, space_.grad_out_rows, none,
                                           space_.grad_values + first * value_row_, value_row_, range_of);
    add_rows<OfQueries<width>, panel_rows>(keys, space_.dp, space_.query_rows, none,
                                           space_.grad_keys + first * dim_row_, dim_row_, range_of);
  }

  void add_to_queries(const KeyTile &tile, const TilePairs &pairs, int64_t skipped) const {
    if (!p_.grad_q.data) return;
    constexpr int step = std::gcd(int(width), panel_rows);
    add_rows<OfKeys<width>, step>(rounded_up(pairs.queries, step), space_.dp,
                                  space_.keys + (tile.first + skipped) * dim_row_, none,
                                  space_.grad_queries + pairs.i * dim_row_, dim_row_,
                                  [&](int64_t query) { return keys_of(p_, pairs, query, step); });
  }

  // ---------------------------------------------------------------- rows with NaN or infinity

  void add_nonfinite(const KeyTile &tile, const TilePairs &pairs, int64_t skipped) const {
    const AttentionSequence &sequence = tile.sequence;
    Rows<S> keys = rows_of<S>(p_.k, sequence.batch, tile.kv_head, sequence.key_start + pairs.j, p_.dim);
    Rows<S> queries = rows_of<S>(p_.q, sequence.batch, tile.head, sequence.query_start + pairs.i, p_.dim);
    Rows<S> grad_out = rows_of<S>(p_.grad_out, sequence.batch, tile.head, sequence.query_start + pairs.i, p_.value_dim);
    for (int64_t key = 0; key < pairs.keys; key++)
      for (int64_t lane = 0; lane < pairs.queries; lane++) {
        int64_t row = tile.first + skipped + key;
        T p = space_.s[key * width + lane], du = space_.dp[key * width + lane];
        if (space_.has_nonfinite_grad_out && space_.nonfinite_grad_out[lane])
          add_row(grad_out, lane, p, space_.grad_values + row * value_row_);
        if (space_.has_nonfinite_queries && space_.nonfinite_queries[lane])
          add_row(queries, lane, du, space_.grad_keys + row * dim_row_);
        if (p_.grad_q.data && space_.has_nonfinite_keys && space_.nonfinite_keys[row])
          add_row(keys, key, du, space_.grad_queries + (pairs.i + lane) * dim_row_);
      }
  }

  static void add_row(Rows<S> rows, int64_t row, T factor, T *sums) {
    for (int64_t column = 0; factor != T(0) && column < rows.length; column++)
      sums[column] += factor * rows.at(row, column);
  }

  static constexpr const T *none = nullptr; // no decay of the sums

  const AttentionProblem &p_;
  const GradientSpace<T> &space_;
  T *grad_bias_;
  const Scores<S, int(width)> scores_;
  const int64_t dim_row_, value_row_;
};

} // namespace orchard::ORCHARD_ISA
