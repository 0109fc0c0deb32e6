#include "bytes.h"
#include "folds.h"
#include "powers.h"
#include "two_pass.h"
#include "tuning.h"

#include "../matmul/transpose.h"

namespace orchard::ORCHARD_ISA {
namespace {

using namespace tuning::reduction;

constexpr int64_t line_bytes = 64;
template <class C> constexpr int64_t ahead = bytes_ahead / int64_t(sizeof(C));

// to[lane][line] = from[line][lane] for the lines that fill vectors, whose number it returns.
template <class State, int width, int64_t most>
[[gnu::noinline]] int64_t transpose_lines(const State (&from)[most][width], int64_t lines, State (&to)[width][most]) {
  constexpr int wide = lanes<State>;
  int64_t line = 0;
  for (; line + wide <= lines; line += wide)
    for (int lane = 0; lane < width; lane += wide)
      transpose_rows<State>([&](int row) { return from[line + row] + lane; }, to[lane] + line, most, wide);
  return line;
}

// Applies an operation whose state is one number to adjacent elements, or to columns.
template <class F> struct Fold : F {
  using F::F;
  using State = typename F::State;
  static constexpr int width = int(line_bytes) / int(sizeof(State)); // states of a cache line
  static constexpr int64_t lines_at_once = 64;

  template <class C> void add(State &state, const C *x, int64_t count, int64_t) const {
    if constexpr (F::adds_bytes) return void(state = F::merge(state, sum_of_bytes(x, count)));
    State partials[width];
    add_lanes(partials, x, count);
    merge_halves([&](auto merge) { merge(partials); });
    state = F::merge(state, partials[0]);
  }

  // Reduces several lines, whose states have been `identity`: the lanes of all lines are merged together, since the
  // merges of one line depend on each other.
  template <class Line> void add_lines(State *states, int64_t lines, Line line_of, int64_t count) const {
    if constexpr (F::adds_bytes) {
      for (int64_t line = 0; line < lines; line++) add(states[line], line_of(line), count, 0);
      return;
    }
    alignas(64) State partials[lines_at_once][width];
    for (int64_t line = 0; line < lines; line++) add_lanes(partials[line], line_of(line), count);
    const int64_t merged = merge_across(partials, lines, states);
    merge_halves([&](auto merge) {
      for (int64_t line = merged; line < lines; line++) merge(partials[line]);
    });
    for (int64_t line = merged; line < lines; line++) states[line] = F::merge(states[line], partials[line][0]);
  }

  template <class Rows> void add_columns(const Rows &rows, State *states, int64_t step, int64_t) const {
    if constexpr (F::adds_bytes) return add_byte_columns(rows, states, step);
    State column_states[reduction_columns];
    for (int64_t j = 0; j < rows.width; j++) column_states[j] = F::identity();
    rows.each([&](const typename Rows::C *x, int64_t) {
      for (int64_t j = 0; j < rows.width; j++) column_states[j] = F::step(column_states[j], x[j]);
    });
    for (int64_t j = 0; j < rows.width; j++) states[j * step] = column_states[j];
  }

  void merge(State &a, const State &b) const { a = F::merge(State(a), b); }

private:
  // At most as many states as an instruction handles.
  template <int size> struct Lanes {
    static constexpr int count = std::min(size, int(vector_bytes / sizeof(State)));
    typedef State Vector __attribute__((vector_size(count * sizeof(State))));
    static Vector load(const State *from) {
      Vector vector;
      std::memcpy(&vector, from, sizeof vector);
      return vector;
    }
    static void store(const Vector &vector, State *to) { std::memcpy(to, &vector, sizeof vector); }
  };

  template <int size, class C> void step_lanes(State *partials, const C *x) const {
    using Part = Lanes<size>;
    if constexpr (F::has_vectors && size > 1)
      for (int at = 0; at < size; at += Part::count)
        Part::store(F::step_vectors(Part::load(partials + at), Part::load(x + at)), partials + at);
    else
      for (int lane = 0; lane < size; lane++) partials[lane] = F::step(partials[lane], x[lane]);
  }
  template <int size> void merge_lanes(State *a, const State *b) const {
    using Part = Lanes<size>;
    if constexpr (F::has_vectors && size > 1)
      for (int at = 0; at < size; at += Part::count)
        Part::store(F::merge_vectors(Part::load(a + at), Part::load(b + at)), a + at);
    else
      for (int lane = 0; lane < size; lane++) a[lane] = F::merge(a[lane], b[lane]);
  }
  // Merges the second half of the lanes into the first, then a quarter into another, until one lane is left.
  template <class Use, int half = width / 2> void merge_halves(Use &&use) const {
    if constexpr (F::has_vectors && half > 0) {
      use([&](State *lanes) { merge_lanes<half>(lanes, lanes + half); });
      merge_halves<Use &, half / 2>(use);
    } else if constexpr (!F::has_vectors) // a loop whose length is not known is vectorized, and not unrolled
      for (int count = half; count > 0; count /= 2)
        use([&](State *lanes) {
          for (int lane = 0; lane < count; lane++) lanes[lane] = F::merge(lanes[lane], lanes[lane + count]);
        });
  }

  // Merges the lanes of as many lines as fill vectors, in the order of `merge_halves`, each vector with a lane of
  // several lines. Returns their number.
  int64_t merge_across(const State (&partials)[lines_at_once][width], int64_t lines, State *states) const {
    if constexpr (std::is_same_v<State, bool>) return 0;
    else {
      alignas(64) State columns[width][lines_at_once];
      const int64_t count = transpose_lines(partials, lines, columns);
      for (int half = width / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++) merge_rows(columns[lane], columns[lane + half], count);
      merge_rows(states, columns[0], count);
      return count;
    }
  }
  void merge_rows(State *__restrict a, const State *__restrict b, int64_t count) const {
    if constexpr (F::has_vectors)
      for (int64_t i = 0; i < count; i += orchard::ORCHARD_ISA::lanes<State>)
        merge_lanes<orchard::ORCHARD_ISA::lanes<State>>(a + i, b + i);
    else
      for (int64_t i = 0; i < count; i++) a[i] = F::merge(a[i], b[i]);
  }

  // Reduces elements to `width` partial states. Not inlined: two functions of every operation and dtype call it.
  template <class C> [[gnu::noinline]] void add_lanes(State (&merged)[width], const C *x, int64_t count) const {
    constexpr int vectors = 4, lanes = vectors * width;
    State partials[vectors][width];
    for (auto &vector : partials)
      for (State &lane : vector) lane = F::identity();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      for (int line = 0; line < lanes; line += line_bytes / sizeof(C))
        __builtin_prefetch(x + i + line + ahead<C>, 0, 2);
      for (int vector = 0; vector < vectors; vector++) step_lanes<width>(partials[vector], x + i + vector * width);
    }
    // The remaining elements are processed by vectors too, since they may be many: a third of 100 elements.
    for (int vector = 0; vector < vectors - 1 && i + width <= count; vector++, i += width)
      step_lanes<width>(partials[vector], x + i);
    add_rest<width / 2>(partials[vectors - 1], x + i, count - i);
    merge_lanes<width>(partials[0], partials[2]);
    merge_lanes<width>(partials[1], partials[3]);
    merge_lanes<width>(partials[0], partials[1]);
    std::copy_n(partials[0], width, merged);
  }

  // Adds fewer than 2 · size elements, by vectors of half the length each time.
  template <int size, class C> void add_rest(State *partials, const C *x, int64_t count) const {
    if constexpr (size > 0) {
      const bool has_vector = count >= size;
      if (has_vector) step_lanes<size>(partials, x);
      add_rest<size / 2>(partials, x + (has_vector ? size : 0), count - (has_vector ? size : 0));
    }
  }
};

// Calls use(offset, stride, number of elements) for the runs along the innermost axis that make up elements [begin,
// end) of a nest, in order. Runs may be short here: this function divides only once at the start, whereas
// `for_each_run` of nest.h divides for each run and axis.
template <class Use>
inline __attribute__((always_inline)) void for_each_input_run(const Nest<1> &nest, int64_t begin, int64_t end,
                                                              Use &&use) {
  int64_t length = nest.run_length(), stride = nest.rank == 0 ? 1 : nest.run_stride(0);
  int64_t within = begin < end ? begin % length : 0;
  for (int64_t first = begin; first < end;) {
    int64_t count = std::min(length - within, end - first);
    use(nest.offset(0, first), stride, count);
    first += count;
    within = 0;
  }
}

// Calls `use` for tiles of elements [begin, end) of a nest, with adjacent values in the compute type.
template <class T, class Use>
void for_each_tile(const T *in, const Nest<1> &nest, int64_t begin, int64_t end, Use &&use) {
  using C = Compute<T>;
  C buffer[tile];
  int64_t held = 0, index = begin;
  auto flush = [&] {
    if (held > 0) use(buffer, held, index);
    index += held;
    held = 0;
  };
  for_each_input_run(nest, begin, end, [&](int64_t offset, int64_t stride, int64_t length) {
    const T *run = in + offset;
    if constexpr (std::is_same_v<T, C>) {
      if (stride == 1 && length >= direct_length) {
        flush();
        for (int64_t start = 0; start < length; start += tile)
          use(run + start, std::min(tile, length - start), index + start);
        index += length;
        return;
      }
    }
    for (int64_t start = 0; start < length;) {
      int64_t count = std::min(tile - held, length - start);
      if (stride == 1) widen_row(run + start, buffer + held, count);
      else
        for (int64_t i = 0; i < count; i++) buffer[held + i] = load(run[(start + i) * stride]);
      held += count;
      start += count;
      if (held == tile) flush();
    }
  });
  flush();
}

template <class Op, class T>
void row(const void *in, const Nest<1> &reduced, int64_t begin, int64_t end, const ReductionFacts &facts, void *state) {
  Op op(facts);
  typename Op::State folded = Op::identity();
  for_each_tile(static_cast<const T *>(in), reduced, begin, end,
                [&](const Compute<T> *x, int64_t count, int64_t index) { op.add(folded, x, count, index); });
  *static_cast<typename Op::State *>(state) = folded;
}

// Whether an operation reduces several lines together.
template <class Op, class = void> constexpr bool has_lines = false;
template <class Op> constexpr bool has_lines<Op, std::void_t<decltype(Op::lines_at_once)>> = true;

template <class Op, class T>
void lines(const void *in, int64_t step, int64_t count, const ReductionFacts &facts, void *states) {
  using C = Compute<T>;
  constexpr bool is_wide = std::is_same_v<T, C>;
  Op op(facts);
  C buffer[is_wide ? 1 : tile];
  const T *from = static_cast<const T *>(in);
  auto *folded = static_cast<typename Op::State *>(states);
  const auto widened = [&](const T *x, int64_t size) -> const C * {
    if constexpr (is_wide) return x;
    else return widen_row(x, buffer, size), buffer;
  };
  for (int64_t line = 0; line < count; line++) folded[line] = Op::identity();
  if constexpr (has_lines<Op>)
    if (facts.count <= tile)
      return op.add_lines(
          folded, count, [&](int64_t line) { return widened(from + line * step, facts.count); }, facts.count);
  for (int64_t line = 0; line < count; line++)
    for (int64_t start = 0; start < facts.count; start += tile) {
      const int64_t size = std::min(tile, facts.count - start);
      op.add(folded[line], widened(from + line * step + start, size), size, start);
    }
}

// Elements [begin, begin + count) of a nest, for `width` adjacent columns.
template <class T> struct ColumnRows {
  using C = Compute<T>;
  const T *in;
  const Nest<1> &reduced;
  int64_t begin, count, width;

  const T *address(int64_t row) const { return in + reduced.offset(0, begin + row); }

  // Calls use(x, row) for each row in the compute type.
  template <class Use> void each(Use &&use) const {
    C wide[std::is_same_v<T, C> ? 1 : reduction_columns];
    for (int64_t row = 0; row < count; row++) {
      if constexpr (std::is_same_v<T, C>) use(address(row), row);
      else {
        widen_row(address(row), wide, width);
        use(wide, row);
      }
    }
  }

  // Calls use(number of rows, block) for each block of rows.
  template <class Use> void each_block(Use &&use) const {
    for_each_row_block<T, reduction_columns>(
        count, width, [&](int64_t row) { return address(row); },
        [&](auto size, const RowBlock<C> &block, int64_t) { use(size, block); });
  }
};

template <class Op, class T>
void columns(const void *in, int64_t width, const Nest<1> &reduced, int64_t begin, int64_t end,
             const ReductionFacts &facts, void *states, int64_t step) {
  Op op(facts);
  auto *typed_states = static_cast<typename Op::State *>(states);
  for (int64_t j = 0; j < width; j++) typed_states[j * step] = Op::identity();
  op.add_columns(ColumnRows<T>{static_cast<const T *>(in), reduced, begin, end - begin, width}, typed_states, step,
                 begin);
}

// Reduces short rows as columns of a transposed copy, so that vectors hold elements of several rows: a loop over a few
// elements would cost more than the elements.
template <class Op, class T>
void rows(const void *in, const int64_t *starts, int64_t width, const Nest<1> &reduced, const ReductionFacts &facts,
          void *states) {
  using C = Compute<T>;
  C transposed[short_row_elements];
  int64_t offsets[short_row];
  for (int64_t i = 0; i < facts.count; i++) offsets[i] = reduced.offset(0, i);
  constexpr int at_once = 8; // reads of several rows are in flight together
  const T *from = static_cast<const T *>(in);
  int64_t j = 0;
  for (; j + at_once <= width; j += at_once)
    for (int64_t i = 0; i < facts.count; i++)
      for (int row = 0; row < at_once; row++)
        transposed[i * width + j + row] = load(from[starts[j + row] + offsets[i]]);
  for (; j < width; j++)
    for (int64_t i = 0; i < facts.count; i++) transposed[i * width + j] = load(from[starts[j] + offsets[i]]);
  Nest<1> nest;
  nest.rank = 1;
  nest.shape[0] = facts.count;
  nest.strides[0][0] = width;
  columns<Op, C>(transposed, width, nest, 0, facts.count, facts, states, 1);
}

template <class Op> void merge(void *states, int64_t count, const ReductionFacts &facts) {
  Op op(facts);
  auto *typed_states = static_cast<typename Op::State *>(states);
  for (int64_t step = 1; step < count; step *= 2)
    for (int64_t at = 0; at + step < count; at += 2 * step) op.merge(typed_states[at], typed_states[at + step]);
}

// Results that are converted to their dtype together.
constexpr int64_t results_at_once = 64;

template <class To, class From> void write(char *out, const From *values, int64_t count, int64_t stride) {
  To *to = reinterpret_cast<To *>(out);
  const auto stored = [&](int64_t i) { return store<To>(converted<Compute<To>>(values[i])); };
  if (stride == 1)
    for (int64_t i = 0; i < count; i++) to[i] = stored(i);
  else
    for (int64_t i = 0; i < count; i++) to[i * stride] = stored(i);
}

[[gnu::noinline]] void write_results(char *out, DType dtype, const double *values, int64_t count, int64_t stride) {
  switch (dtype) {
  case DType::float64: return write<double>(out, values, count, stride);
  case DType::float16: return write<Float16>(out, values, count, stride);
  case DType::bfloat16: return write<BFloat16>(out, values, count, stride);
  default: return write<float>(out, values, count, stride);
  }
}

[[gnu::noinline]] void write_results(char *out, DType dtype, const int64_t *values, int64_t count, int64_t stride) {
  switch (dtype) {
  case DType::int64: return write<int64_t>(out, values, count, stride);
  case DType::int32: return write<int32_t>(out, values, count, stride);
  case DType::uint32: return write<uint32_t>(out, values, count, stride);
  case DType::int8: return write<int8_t>(out, values, count, stride);
  case DType::uint8: return write<uint8_t>(out, values, count, stride);
  default: return write<Bool>(out, values, count, stride);
  }
}

template <class Op, bool is_indexed>
void finish(const void *states, int64_t step, int64_t count, const ReductionFacts &facts, char *out, int64_t *indices,
            int64_t out_stride) {
  using State = typename Op::State;
  Op op(facts);
  auto *typed_states = static_cast<const State *>(states);
  const int64_t size = dtype_sizes[static_cast<int>(facts.out)];
  decltype(op.result(State())) values[results_at_once];
  for (int64_t first = 0; first < count; first += results_at_once) {
    const int64_t part = std::min(results_at_once, count - first);
    const State *from = typed_states + first * step;
    if (step == 1)
      for (int64_t i = 0; i < part; i++) values[i] = op.result(from[i]);
    else
      for (int64_t i = 0; i < part; i++) values[i] = op.result(from[i * step]);
    write_results(out + first * out_stride * size, facts.out, values, part, out_stride);
    if constexpr (is_indexed)
      for (int64_t i = 0; i < part; i++) indices[(first + i) * out_stride] = from[i * step].index;
  }
}

template <class Op, class T, bool is_indexed = false> constexpr ReductionKernel kernel() {
  return {sizeof(typename Op::State), has_lines<Op>, row<Op, T>, lines<Op, T>, columns<Op, T>, rows<Op, T>, merge<Op>,
          finish<Op, is_indexed>};
}

// Whether the state of an operation is one number, to which `step` adds an element.
template <class Op, class = void> constexpr bool is_fold = false;
template <class Op> constexpr bool is_fold<Op, std::void_t<decltype(&Op::step)>> = true;
// Whether the state has the index of an element.
template <class Op, class = void> constexpr bool is_indexed = false;
template <class Op> constexpr bool is_indexed<Op, std::void_t<decltype(Op::State::index)>> = true;

// Returns the kernel of a reduction for elements of type T; empty if it does not support integers.
template <Reduction name, class T> constexpr ReductionKernel kernel_of() {
  using C = Compute<T>;
  using Row = ReductionOf<name>;
  if constexpr (Row::takes_integers || std::is_floating_point_v<C>) {
    using Op = typename Row::template Op<C>;
    return kernel<std::conditional_t<is_fold<Op>, Fold<Op>, Op>, T, is_indexed<Op>>();
  } else return {};
}

template <class T, int... name>
constexpr void fill(ReductionKernel (&kernels)[reduction_count][dtype_count], int dtype,
                    std::integer_sequence<int, name...>) {
  ((kernels[name][dtype] = kernel_of<Reduction(name), T>()), ...);
}

template <int... dtype> constexpr Reductions all_kernels(std::integer_sequence<int, dtype...>) {
  Reductions table{};
  (fill<Storage<DType(dtype)>>(table.kernels, dtype, std::make_integer_sequence<int, reduction_count>{}), ...);
  return table;
}

} // namespace

extern const Reductions reductions = all_kernels(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
