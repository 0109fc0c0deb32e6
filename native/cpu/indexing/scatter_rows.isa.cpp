#include "scatter_rows.h"

#include "../streamed.h"
#include "../wide_vector.h"
#include "scatter_state.h"
#include "tuning.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::indexing;

// Combines two elements. The sum or product of two floats is rounded once, so it equals the one that is computed in
// float64 and then rounded: float64 has more than twice the digits.
template <class T, Scattering way> T combined(T a, T b) {
  return store<T>(way == Scattering::sum ? load(a) + load(b) : load(a) * load(b));
}

template <class T, Scattering way> class Rows {
  static constexpr bool is_wide = std::is_same_v<T, Compute<T>>;

public:
  explicit Rows(const ScatterRowsPart &part)
      : part_(part), x_(static_cast<const T *>(part.x)), source_(static_cast<const T *>(part.source)),
        out_(static_cast<T *>(part.out)) {}

  void run() const {
    const int64_t *starts = part_.groups.starts;
    const bool are_whole = part_.x_stride == part_.columns && part_.out_stride == part_.columns;
    for (int64_t place = part_.begin, next; place < part_.end; place = next) {
      next = place + 1;
      if (starts[place] < starts[next]) {
        write(place, starts[place], starts[next]);
        continue;
      }
      while (are_whole && next < part_.end && starts[next + 1] == starts[place]) next++; // one copy of many rows
      copy(x_ + place * part_.x_stride, row_of(place), (next - place) * part_.columns);
    }
    if (part_.is_streamed) orchard::streams().finish();
  }

private:
  T *row_of(int64_t place) const { return out_ + place * part_.out_stride; }
  const T *source_at(int64_t at) const { return source_ + part_.groups.order[at] * part_.source_stride; }

  void copy(const T *from, T *to, int64_t count) const {
    const int64_t bytes = count * int64_t(sizeof(T));
    if (part_.is_streamed && bytes >= least_streamed_row) stream_row(from, to, bytes);
    else std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  // Combines the contributions [begin, end) of a place.
  void write(int64_t place, int64_t begin, int64_t end) const {
    T *to = row_of(place);
    if constexpr (way == Scattering::last) std::fill_n(to, part_.columns, *source_at(end - 1));
    else {
      const T *first = part_.includes_self ? x_ + place * part_.x_stride : source_at(begin++);
      if (begin == end) return copy(first, to, part_.columns);
      if (begin + 1 == end) return write_two(first, source_at(begin), to);
      write_many(first, begin, end, to);
    }
  }

  void write_two(const T *__restrict a, const T *__restrict b, T *__restrict to) const {
    for (int64_t column = 0; column < part_.columns; column++) to[column] = combined<T, way>(a[column], b[column]);
  }

  // Combines any number of contributions, some columns at a time.
  void write_many(const T *first, int64_t begin, int64_t end, T *to) const {
    for (int64_t column = 0; column < part_.columns; column += combined_columns) {
      if constexpr (is_wide) write_groups(first + column, begin, end, column, to + column);
      else write_columns(first + column, begin, end, column, to + column);
    }
  }

  // Combines the columns from `column` on, a few rows at a time: with more rows, the hardware can't prefetch them.
  void write_groups(const T *first, int64_t begin, int64_t end, int64_t column, T *to) const {
    alignas(64) double states[combined_columns];
    const int64_t count = std::min(combined_columns, part_.columns - column);
    const bool is_one = end - begin <= group_rows;
    for (int64_t at = begin; at < end; at += group_rows) {
      Group group{};
      for (; group.count < std::min(group_rows, end - at); group.count++)
        group.rows[group.count] = source_at(at + group.count) + column;
      for (int64_t next = at + group_rows; group.known < group.count && next < part_.groups.length; next++)
        group.next[group.known++] = source_at(next) + column;
      if (is_one) combine(first, group, count, to);
      else if (at == begin) combine(first, group, count, states);
      else if (at + group_rows < end) combine(states, group, count, states);
      else combine(states, group, count, to);
    }
  }

  struct Group {
    int64_t count, known;
    const T *rows[group_rows], *next[group_rows]; // rows of the next group, which are prefetched
  };

  // to = the combination of `from` with the rows of a group; each is of T or of float64
  template <class From, class To> static void combine(const From *from, const Group &group, int64_t count, To *to) {
    const auto add = [](auto &state, auto value) {
      if constexpr (way == Scattering::sum) state += value;
      else state *= value;
    };
    int64_t c = 0;
    for (; c + lanes<double> <= count; c += lanes<double>) {
      if (c * int64_t(sizeof(T)) % stream_line == 0)
        for (int64_t row = 0; row < group.known; row++) __builtin_prefetch(group.next[row] + c);
      Vector<double> state = load_wide(from + c);
      for (int64_t row = 0; row < group.count; row++) add(state, load_wide(group.rows[row] + c));
      store_narrow(state, to + c);
    }
    for (; c < count; c++) {
      double state = double(from[c]);
      for (int64_t row = 0; row < group.count; row++) add(state, double(group.rows[row][c]));
      to[c] = To(state);
    }
  }

  // Combines the columns from `column` on, at most `combined_columns`.
  void write_columns(const T *__restrict first, int64_t begin, int64_t end, int64_t column, T *__restrict to) const {
    alignas(64) double states[combined_columns];
    const int64_t count = std::min(combined_columns, part_.columns - column);
    for (int64_t i = 0; i < count; i++) states[i] = state_of<double>(first[i]);
    for (int64_t at = begin; at < end; at++) {
      const T *__restrict row = source_at(at) + column;
      for (int64_t i = 0; i < count; i++) put<T, way>(states[i], row[i]);
    }
    for (int64_t i = 0; i < count; i++) to[i] = store<T>(static_cast<Compute<T>>(states[i]));
  }

  const ScatterRowsPart &part_;
  const T *x_, *source_;
  T *out_;
};

template <class T, Scattering way> void rows(const ScatterRowsPart &part) { Rows<T, way>(part).run(); }

template <DType dtype> constexpr void set(ScatterRows &table) {
  using T = Storage<dtype>;
  const auto put = [&](Scattering way, ScatterRowsKernel kernel) {
    table.kernels[static_cast<int>(way)][static_cast<int>(dtype)] = kernel;
  };
  put(Scattering::last, rows<T, Scattering::last>);
  if constexpr (std::is_same_v<Compute<T>, float>) {
    put(Scattering::sum, rows<T, Scattering::sum>);
    put(Scattering::prod, rows<T, Scattering::prod>);
  }
}

template <int... dtype> constexpr ScatterRows all(std::integer_sequence<int, dtype...>) {
  ScatterRows table{};
  (set<DType(dtype)>(table), ...);
  return table;
}

} // namespace

extern const ScatterRows scatter_row_kernels = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
