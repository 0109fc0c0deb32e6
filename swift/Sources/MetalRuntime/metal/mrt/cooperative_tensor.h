// Cooperative tensors of Metal 4 (MSL 2.22): a matrix in the registers of one SIMD-group or several.
//
// The layout is unspecified: programs ask get_multidimensional_index(). This is the layout of M5, on which MLX depends
// (kernels/steel/gemm/nax.h). A matrix consists of fragments of 16 x 16. Lane l has eight elements of each fragment.
// With q = l / 4, element i < 8 is at
//   row = (q & 4) + (l / 2) % 4 + (i / 4) * 8        column = ((q & 2) + l % 2) * 4 + i % 4
// The fragments of a left operand and of a destination are in the order of m, those of a right operand in that of n.
// Several SIMD-groups have equal numbers of consecutive fragments.
#ifndef MRT_COOPERATIVE_TENSOR_H
#define MRT_COOPERATIVE_TENSOR_H

#include "tensor.h"

#if __METAL_VERSION__ >= 400

namespace mrt {

enum class Role { left, right, destination };

struct TensorPlace {
  int row, column;
  bool exists;
};

// A matrix of Rows x Columns in memory order: dimension 0 counts columns. With `across`, consecutive fragments are next
// to each other in a row of fragments.
template <Role role_, int Rows, int Columns, bool across, int Groups, typename Left, typename Right> struct Fragments {
  static constexpr MRT_CONSTANT Role role = role_;
  static constexpr MRT_CONSTANT int rows = Rows, columns = Columns, groups = Groups;
  typedef Left left;
  typedef Right right;
  static constexpr MRT_CONSTANT int fragment_rows = (Rows + 15) / 16, fragment_columns = (Columns + 15) / 16;
  static constexpr MRT_CONSTANT int fragments = fragment_rows * fragment_columns;
  static constexpr MRT_CONSTANT int own = (fragments + Groups - 1) / Groups;
  static constexpr MRT_CONSTANT int capacity = own * 8;

#ifndef MRT_STRICT
  static TensorPlace place(int slot, int lane, int group) {
    const int quad = lane / 4, fragment = group * own + slot / 8, i = slot % 8;
    const int down = across ? fragment / fragment_columns : fragment % fragment_rows;
    const int right_of = across ? fragment % fragment_columns : fragment / fragment_rows;
    const int row = down * 16 + (quad & 4) + lane / 2 % 4 + i / 4 * 8;
    const int column = right_of * 16 + ((quad & 2) + lane % 2) * 4 + i % 4;
    return {row, column, slot >= 0 && slot < capacity && fragment < fragments && row < Rows && column < Columns};
  }
  static TensorPlace place(int slot) {
    return place(slot, int(lane_index()), Groups == 1 ? 0 : int(simdgroup_index()));
  }
#endif
};

// The value of an operand that the program has not written: NaN, or a conspicuous integer.
template <typename T> MRT_FUNC T unwritten() {
  if constexpr (metal::is_integral_v<T>) return T(0x55555555);
  else return T(__builtin_nanf(""));
}

#if defined(MRT_CHECKED) && !defined(MRT_STRICT)
#define MRT_ALL_LANES_OF(operation)                                                                                    \
  mrt::meet({MRT_COLLECTIVE_MATRIX, operation, site}, mrt::resolve_nothing, nullptr, nullptr, 0);
#else
#define MRT_ALL_LANES_OF(operation)
#endif

namespace tensors {

template <typename T, typename Extents, typename Layout> struct cooperative_tensor {
  typedef T element_type;
  typedef Layout layout;
  typedef Extents extents_type;
  typedef typename Extents::index_type index_type;

  MRT_METHOD cooperative_tensor() MRT_BODY(for (int i = 0; i < Layout::capacity; i++) {
    // Apple leaves the contents open; llama.cpp's kernels add to a destination that they have not written.
    elements[i] = Layout::role == Role::destination ? T(0) : unwritten<T>();
  })

      static constexpr MRT_METHOD size_t get_rank() {
    return Extents::rank();
  }
  static constexpr MRT_METHOD ushort get_capacity() { return ushort(Layout::capacity); }

#ifdef MRT_STRICT
  MRT_THREAD T &operator[](int slot);
  const MRT_THREAD T &operator[](int slot) const;
  bool is_valid_element(int slot) const;
  T get(int slot) const;
  void set(int slot, T value);
  metal::array<index_type, 2> get_multidimensional_index(int slot) const;
#else
  MRT_METHOD T &operator[](int slot) {
    note_written(slot);
    return elements[slot];
  }
  MRT_METHOD const T &operator[](int slot) const { return elements[slot]; }
  MRT_METHOD bool is_valid_element(int slot) const { return Layout::place(slot).exists; }
  MRT_METHOD T get(int slot) const { return elements[slot]; }
  MRT_METHOD void set(int slot, T value) { (*this)[slot] = value; }
  MRT_METHOD metal::array<index_type, 2> get_multidimensional_index(int slot) const {
    const TensorPlace place = Layout::place(slot);
    return {{index_type(place.column), index_type(place.row)}};
  }
#endif

  // Copies between the elements and a tensor in memory. Elements outside the tensor are zero, and are not stored.
  template <typename U, typename E, typename D, typename... Tags>
  MRT_COOPERATIVE void load(tensor<U, E, D, Tags...> tensor MRT_SITE)
      MRT_BODY(const auto &source = view_of(tensor);
               MRT_ALL_LANES_OF("cooperative_tensor::load") for (int i = 0; i < Layout::capacity; i++) {
                 const TensorPlace place = Layout::place(i);
                 if (!place.exists) continue;
                 note_written(i);
                 elements[i] = source.contains(place.column, place.row) ? T(source.at(place.column, place.row)) : T(0);
               }) template <typename U, typename E, typename D, typename... Tags>
      MRT_COOPERATIVE void store(tensor<U, E, D, Tags...> tensor MRT_SITE) const
      MRT_BODY(const auto &destination = view_of(tensor);
               MRT_ALL_LANES_OF("cooperative_tensor::store") for (int i = 0; i < Layout::capacity; i++) {
                 const TensorPlace place = Layout::place(i);
                 if (!place.exists || !destination.contains(place.column, place.row)) continue;
                 destination.at(place.column, place.row) = typename TensorTypes<U, E>::value_type(elements[i]);
               })

#if defined(MRT_CHECKED) && !defined(MRT_STRICT)
          MRT_METHOD void note_written(int slot) {
    written[slot] = 1;
  }
  uchar written[Layout::capacity] = {};
#else
  MRT_METHOD void note_written(int) {
  }
#endif
  T elements[Layout::capacity];
};

} // namespace tensors
} // namespace mrt

#endif
#endif
