#include "scatter.h"
#include "scatter_state.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

// Slices whose results, or the sums that become the results, are adjacent in memory.
template <class T, class Index, Scattering way> class Slices {
  using S = State<T, way>;
  static constexpr bool is_wide = !std::is_same_v<S, T>;

public:
  Slices(const Scatter &scatter, const ScatterPart &part) : scatter_(scatter), part_(part) {
    for (int operand = 0; operand < 4; operand++) across_[operand] = scatter.slices.run_stride(operand);
    if constexpr (is_wide) {
      states_ = part.sums;
      step_ = part.count;
    } else {
      states_ = static_cast<T *>(part.out);
      step_ = scatter.strides[scatter_out];
    }
  }

  void run() {
    if (!scatter_.is_copied) begin();
    else if (!begin_selected()) return;
    const bool is_done = part_.is_named ? run_by<true>() : run_by<false>();
    if constexpr (is_wide)
      if (is_done) scatter_.is_copied ? finish_selected() : finish();
  }

private:
  template <bool marks> bool run_by() {
    if (part_.count == 1) return run_one<marks>();
    return across_[scatter_source] == 1 ? run_rows<marks>(std::integral_constant<int64_t, 1>())
                                        : run_rows<marks>(across_[scatter_source]);
  }

  template <bool marks> void put_at(int64_t place, int64_t slice, T value) {
    S &to = states_[place * step_ + slice];
    if constexpr (marks) {
      bool &is_named = part_.is_named[place * part_.count + slice];
      if (!is_named) {
        is_named = true;
        to = state_of<S>(value);
        return;
      }
    }
    put<T, way>(to, value);
  }

  template <bool marks> bool run_one() {
    const Index *index = static_cast<const Index *>(part_.index);
    const T *source = static_cast<const T *>(part_.source);
    const int64_t index_step = scatter_.strides[scatter_index], source_step = scatter_.strides[scatter_source],
                  size = scatter_.size;
    for (int64_t at = 0; at < scatter_.length; at++) {
      const int64_t given = index[at * index_step], place = scatter_.place_of(given);
      if (uint64_t(place) >= uint64_t(size)) return refuse(given);
      put_at<marks>(place, 0, source[at * source_step]);
    }
    return true;
  }

  template <bool marks, class Stride> bool run_rows(Stride source_across) {
    const Index *index = static_cast<const Index *>(part_.index);
    const T *row = static_cast<const T *>(part_.source);
    const int64_t index_across = across_[scatter_index], size = scatter_.size;
    for (int64_t at = 0; at < scatter_.length; at++) {
      if (index_across == 0) {
        const int64_t place = scatter_.place_of(*index);
        if (uint64_t(place) >= uint64_t(size)) return refuse(*index);
        put_row<marks>(place, row, source_across);
      } else {
        for (int64_t slice = 0; slice < part_.count; slice++) {
          const int64_t given = index[slice * index_across], place = scatter_.place_of(given);
          if (uint64_t(place) >= uint64_t(size)) return refuse(given);
          put_at<marks>(place, slice, row[slice * source_across]);
        }
      }
      index += scatter_.strides[scatter_index];
      row += scatter_.strides[scatter_source];
    }
    return true;
  }

  // Combines a row of the source with the elements of one place.
  template <bool marks, class Stride> void put_row(int64_t place, const T *row, Stride source_across) {
    if constexpr (marks) {
      for (int64_t slice = 0; slice < part_.count; slice++) put_at<marks>(place, slice, row[slice * source_across]);
    } else {
      S *__restrict to = states_ + place * step_;
      const int64_t count = part_.count;
      for (int64_t slice = 0; slice < count; slice++) put<T, way>(to[slice], row[slice * source_across]);
    }
  }

  // Calls use(place, slice) for each place that an index selects; returns false for an index out of range.
  template <class Use> bool for_each_selected(Use &&use) const {
    const Index *index = static_cast<const Index *>(part_.index);
    const int64_t index_across = across_[scatter_index], size = scatter_.size;
    if (part_.count == 1) {
      for (int64_t at = 0; at < scatter_.length; at++, index += scatter_.strides[scatter_index]) {
        const int64_t place = scatter_.place_of(*index);
        if (uint64_t(place) >= uint64_t(size)) return refuse(place);
        use(place, 0);
      }
      return true;
    }
    for (int64_t at = 0; at < scatter_.length; at++, index += scatter_.strides[scatter_index]) {
      int64_t place = 0;
      for (int64_t slice = 0; slice < part_.count; slice++) {
        if (slice == 0 || index_across != 0) place = scatter_.place_of(index[slice * index_across]);
        if (uint64_t(place) >= uint64_t(size)) return refuse(place);
        use(place, slice);
      }
    }
    return true;
  }

  // Initializes the elements that indices select. An element that several indices select is initialized several times,
  // with the same value.
  bool begin_selected() {
    if (!is_wide && !part_.is_named) return true;
    const T *out = static_cast<const T *>(part_.out);
    return for_each_selected([&](int64_t place, int64_t slice) {
      if constexpr (is_wide)
        states_[place * step_ + slice] = state_of<S>(out[place * scatter_.strides[scatter_out] + slice]);
      if (part_.is_named) part_.is_named[place * part_.count + slice] = false;
    });
  }

  void finish_selected() {
    T *out = static_cast<T *>(part_.out);
    for_each_selected([&](int64_t place, int64_t slice) {
      out[place * scatter_.strides[scatter_out] + slice] =
          store<T>(static_cast<Compute<T>>(states_[place * part_.count + slice]));
    });
  }

  // Slices whose elements are all adjacent are converted by one loop over vectors.
  bool is_line(ScatterOperand operand) const {
    return (part_.count == 1 || across_[operand] == 1) && scatter_.strides[operand] == part_.count;
  }

  void begin() {
    const T *x = static_cast<const T *>(part_.x);
    const int64_t count = part_.count;
    if (part_.is_named) std::fill_n(part_.is_named, scatter_.size * count, false);
    if (is_line(scatter_x) && step_ == count) {
      for (int64_t at = 0; at < scatter_.size * count; at++) states_[at] = state_of<S>(x[at]);
      return;
    }
    for (int64_t at = 0; at < scatter_.size; at++, x += scatter_.strides[scatter_x])
      for (int64_t slice = 0; slice < count; slice++)
        states_[at * step_ + slice] = state_of<S>(x[slice * across_[scatter_x]]);
  }

  void finish() {
    T *out = static_cast<T *>(part_.out);
    const int64_t count = part_.count;
    if (is_line(scatter_out)) {
      for (int64_t at = 0; at < scatter_.size * count; at++) out[at] = store<T>(static_cast<Compute<T>>(states_[at]));
      return;
    }
    for (int64_t at = 0; at < scatter_.size; at++, out += scatter_.strides[scatter_out])
      for (int64_t slice = 0; slice < count; slice++)
        out[slice * across_[scatter_out]] = store<T>(static_cast<Compute<T>>(states_[at * count + slice]));
  }

  bool refuse(int64_t index) const {
    part_.refuse(part_.bad, index);
    return false;
  }

  const Scatter &scatter_;
  const ScatterPart part_;
  int64_t across_[4], step_;
  S *states_;
};

template <class T, class Index, Scattering way> void scatter_slices(const Scatter &scatter, const ScatterPart &part) {
  Slices<T, Index, way>(scatter, part).run();
}

template <DType dtype, Scattering way> constexpr void set(Scatterings &table) {
  if (dtype == DType::boolean && way != Scattering::sum && way != Scattering::last) return;
  auto &kernels = table.slices[static_cast<int>(way)][static_cast<int>(dtype)];
  constexpr Scattering used = dtype == DType::boolean && way != Scattering::last ? Scattering::sum : way;
  kernels[0] = scatter_slices<Storage<dtype>, int64_t, used>;
  kernels[1] = scatter_slices<Storage<dtype>, int32_t, used>;
}

template <DType dtype, int... way> constexpr void set_all(Scatterings &table, std::integer_sequence<int, way...>) {
  (set<dtype, Scattering(way)>(table), ...);
}

template <int... dtype> constexpr Scatterings all(std::integer_sequence<int, dtype...>) {
  Scatterings table{};
  (set_all<DType(dtype)>(table, std::make_integer_sequence<int, int(Scattering::count)>{}), ...);
  return table;
}

} // namespace

extern const Scatterings scatterings = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
