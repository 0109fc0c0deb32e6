// Tensors of Metal 4 that a program makes of a pointer (MSL 2.22): `tensor<device half, dextents<int, 2>,
// tensor_inline>`. Dimension 0 is contiguous unless strides say otherwise.
//
// They are in namespace mrt::tensors, which <metal_tensor> makes a part of namespace metal: a program that does not
// include it may use these names.
#ifndef MRT_TENSOR_H
#define MRT_TENSOR_H

#include "current.h"
#include "traits.h"
#include "utility.h"

#if __METAL_VERSION__ >= 400

namespace mrt {

// Mistakes with tensors that the checker reports, each with two numbers.
enum TensorProblem {
  slice_starts_outside, // position, extent
  slice_ends_outside,   // end, extent
  shape_differs,        // elements that the operation reads or writes, extent
  operand_not_written,  // index of an element of a cooperative tensor, its capacity
  sum_not_written,      // the same, of the destination that a product is added to
  wrong_scope,          // SIMD-groups of the operation, SIMD-groups of the threadgroup
};

#if defined(MRT_CHECKED) && !defined(MRT_STRICT)
[[maybe_unused]] MRT_UNINSTRUMENTED static void report_tensor(TensorProblem problem, long one, long other, Site site) {
  runtime->tensor_problem(mrt_u32(problem), one, other, site.file, mrt_u32(site.line));
}
#define MRT_CHECK_TENSOR(condition, problem, one, other)                                                               \
  if (!(condition)) mrt::report_tensor(mrt::problem, long(one), long(other), site);
#else
#define MRT_CHECK_TENSOR(condition, problem, one, other)
#endif

namespace tensors {

constexpr MRT_CONSTANT size_t dynamic_extent = size_t(-1);

// The sizes of a tensor; those that are dynamic_extent are known when the kernel runs.
template <typename Index, size_t... E> struct extents {
  static_assert(sizeof...(E) > 0 && metal::is_integral_v<Index>, "extents<integer, sizes…> are at least one size");
  typedef Index index_type;
  typedef size_t rank_type;

  static constexpr MRT_METHOD size_t rank() { return sizeof...(E); }
  static constexpr MRT_METHOD size_t rank_dynamic() { return ((E == dynamic_extent ? 1 : 0) + ...); }
  static constexpr MRT_METHOD size_t static_extent(size_t dimension) {
    const size_t all[] = {E...};
    return all[dimension];
  }
  constexpr MRT_METHOD Index extent(size_t dimension) const { return values[dimension]; }

  constexpr MRT_METHOD extents() : values{Index(E == dynamic_extent ? 0 : E)...} {}
  // All sizes, or only the dynamic ones.
  template <typename... A, typename = metal::enable_if_t<sizeof...(A) != 0 && (sizeof...(A) == sizeof...(E) ||
                                                                               sizeof...(A) == rank_dynamic())>>
  constexpr MRT_METHOD extents(A... sizes) : values{Index(E == dynamic_extent ? 0 : E)...} {
    const Index given[] = {Index(sizes)...};
    size_t next = 0;
    for (size_t i = 0; i < sizeof...(E); i++) {
      if (sizeof...(A) == sizeof...(E)) values[i] = given[i];
      else if (static_extent(i) == dynamic_extent) values[i] = given[next++];
    }
  }

  Index values[sizeof...(E)];
};

template <typename Index, size_t Rank, size_t... E> struct DynamicExtents {
  typedef typename DynamicExtents<Index, Rank - 1, dynamic_extent, E...>::type type;
};
template <typename Index, size_t... E> struct DynamicExtents<Index, 0, E...> {
  typedef extents<Index, E...> type;
};
template <typename Index, size_t Rank> using dextents = typename DynamicExtents<Index, Rank>::type;

struct tensor_inline {};
struct tensor_handle {};
struct tensor_offset {};

template <typename T, typename Extents, typename Descriptor = tensor_handle, typename... Tags> struct tensor {
  static_assert(__is_same(Descriptor, tensor_inline) && sizeof...(Tags) == 0,
                "tensors that the host makes (tensor_handle) and tensors with several planes are not supported: make "
                "one of a pointer with tensor_inline");
};

template <typename T, typename Extents> struct tensor<T, Extents, tensor_inline> {
  typedef T element_type;
  typedef metal::remove_cv_t<metal::remove_addrspace_t<T>> value_type;
  typedef Extents extents_type;
  typedef typename Extents::index_type index_type;
  typedef T *data_handle_type;

  MRT_METHOD tensor(T *pointer, Extents sizes) : data(pointer), shape(sizes) {
    steps[0] = 1;
    for (size_t i = 1; i < Extents::rank(); i++) steps[i] = steps[i - 1] * long(shape.values[i - 1]);
  }
  template <typename S>
  MRT_METHOD tensor(T *pointer, Extents sizes, metal::array<S, Extents::rank()> strides) : data(pointer), shape(sizes) {
    for (size_t i = 0; i < Extents::rank(); i++) steps[i] = long(strides.elements[i]);
  }

  constexpr MRT_METHOD Extents extents() const { return shape; }

  // The tensor from this position on: what is left of each size, or the sizes in angle brackets.
  template <typename A, typename B>
  MRT_CALL tensor<T, dextents<index_type, 2>, tensor_inline> slice(A first, B second MRT_SITE) const
      MRT_BODY(return sliced<dextents<index_type, 2>>(long(first), long(second),
                                                      site);) template <size_t E0, size_t E1, typename A, typename B>
      MRT_CALL tensor<T, tensors::extents<index_type, E0, E1>, tensor_inline> slice(A first, B second MRT_SITE) const
      MRT_BODY(return sliced<tensors::extents<index_type, E0, E1>>(long(first), long(second), site);)

#ifndef MRT_STRICT
          template <typename S>
          MRT_CALL tensor<T, S, tensor_inline> sliced(long first, long second, Site site) const {
    static_assert(Extents::rank() == 2, "slice: this device slices tensors of rank 2");
    const long start[] = {first, second};
    index_type sizes[2];
    for (int i = 0; i < 2; i++) {
      const long whole = long(shape.values[i]), fixed = long(S::static_extent(i));
      MRT_CHECK_TENSOR(start[i] >= 0 && start[i] <= whole, slice_starts_outside, start[i], whole)
      MRT_CHECK_TENSOR(fixed < 0 || start[i] + fixed <= whole, slice_ends_outside, start[i] + fixed, whole)
      sizes[i] = index_type(fixed < 0 ? whole - start[i] : fixed);
    }
    return {data + first * steps[0] + second * steps[1], S(sizes[0], sizes[1]), metal::array<long, 2> {
              { steps[0],
                steps[1] }
            }};
  }
  // Returns whether a position is inside, and the element there.
  MRT_METHOD bool contains(long first, long second) const {
    return first >= 0 && second >= 0 && first < long(shape.values[0]) && second < long(shape.values[1]);
  }
  MRT_METHOD T &at(long first, long second) const { return data[first * steps[0] + second * steps[1]]; }
#endif

  T *data;
  Extents shape;
  long steps[Extents::rank()];
};

template <typename T, typename E> tensor(T *, E) -> tensor<T, E, tensor_inline>;
template <typename T, typename E, typename S> tensor(T *, E, S) -> tensor<T, E, tensor_inline>;

// The threads that execute an operation together.
template <size_t Count> struct execution_simdgroups {
  static_assert(Count != 0, "execution_simdgroups: at least one SIMD-group");
};
typedef execution_simdgroups<1> execution_simdgroup;

} // namespace tensors
} // namespace mrt

#endif
#endif
