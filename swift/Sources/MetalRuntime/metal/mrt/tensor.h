// Tensors of Metal 4 (MSL 2.20): those that a program makes of a pointer, `tensor<device half, dextents<int, 2>,
// tensor_inline>`, and those of the host, `tensor<device half, dextents<int, 2>>`. Dimension 0 is contiguous unless
// strides say otherwise.
//
// They are in namespace mrt::tensors, which <metal_tensor> makes a part of namespace metal: a program that does not
// include it may use these names.
#ifndef MRT_TENSOR_H
#define MRT_TENSOR_H

#include "../tensor_abi.h"
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
  position_outside,     // position of an element, extent
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

struct tensor_inline {}; // made of a pointer
struct tensor_handle {}; // made by the host: 8 bytes in an argument or an argument buffer
struct tensor_offset {}; // a tag: a slice of a tensor of the host

template <typename T, typename Extents, typename Descriptor = tensor_handle, typename... Tags> struct tensor {
  static_assert(__is_same(Descriptor, tensor_handle) || __is_same(Descriptor, tensor_inline),
                "tensor: the third template argument must be tensor_handle or tensor_inline");
  static_assert(!(__is_same(Descriptor, tensor_handle) || __is_same(Descriptor, tensor_inline)),
                "tensor: the only tag is tensor_offset, of a tensor_handle; tensors with several planes are not "
                "supported");
};

// Elements in device or constant memory: in flat mode there is one address space.
#ifdef MRT_STRICT
template <typename T> constexpr MRT_CONSTANT bool is_of_host = false;
template <typename T> constexpr MRT_CONSTANT bool is_of_host<T MRT_DEVICE> = true;
template <typename T> constexpr MRT_CONSTANT bool is_of_host<T MRT_CONSTANT> = true;
#else
template <typename T> constexpr MRT_CONSTANT bool is_of_host = true;
#endif

} // namespace tensors

// The sizes of a slice: all dynamic, or those in angle brackets.
template <typename I, size_t Rank, size_t... E> struct SizesOf {
  static_assert(sizeof...(E) == Rank, "slice: as many sizes as the tensor has dimensions");
  typedef tensors::extents<I, E...> type;
};
template <typename I, size_t Rank> struct SizesOf<I, Rank> {
  typedef tensors::dextents<I, Rank> type;
};
template <typename Tensor, typename Sizes> struct SliceOf;
template <typename T, typename E, typename D, typename... Tags, typename Sizes>
struct SliceOf<tensors::tensor<T, E, D, Tags...>, Sizes> {
  typedef tensors::tensor<T, Sizes, D, tensors::tensor_offset> type;
};
template <typename T, typename E, typename Sizes> struct SliceOf<tensors::tensor<T, E, tensors::tensor_inline>, Sizes> {
  typedef tensors::tensor<T, Sizes, tensors::tensor_inline> type;
};

#ifndef MRT_STRICT
template <typename Operand> Operand &view_of(Operand &operand);
template <typename T, typename E> auto view_of(tensors::tensor<T, E, tensors::tensor_handle> operand);
#endif

// Makes `long` of each number of a list.
template <size_t> using Index = long;

// A position in a tensor of this rank, with the place of the subscript: from an index if the rank is 1, and from an
// array. The rewriter makes `t[Subscripts()(i, j)]` of `t[i, j]`; it is `j` to other operators.
template <size_t Rank> struct Position {
  long at[Rank];
#ifndef MRT_STRICT
  Site site;
  template <typename I> Position(metal::array<I, Rank> indices MRT_SITE) : site(site) {
    for (size_t i = 0; i < Rank; i++) at[i] = long(indices.elements[i]);
  }
  template <typename I, typename = metal::enable_if_t<Rank == 1 && metal::is_integral_v<I>>>
  Position(I index MRT_SITE) : at{long(index)}, site(site) {}
  template <typename... I> Position(Site place, I... indices) : at{long(indices)...}, site(place) {}
  operator long() const { return at[Rank - 1]; }
#else
  template <typename I> Position(metal::array<I, Rank> indices);
  template <typename I, typename = metal::enable_if_t<Rank == 1 && metal::is_integral_v<I>>> Position(I index);
  Position() = default;
  operator long() const;
#endif
};
struct Subscripts {
#ifndef MRT_STRICT
  Site site;
  Subscripts(MRT_SITE_ONLY) : site(site) {}
  template <typename... I> Position<sizeof...(I)> operator()(I... indices) const { return {site, indices...}; }
#else
  template <typename... I> Position<sizeof...(I)> operator()(I...) const;
#endif
};

template <typename T, typename Extents> struct TensorTypes {
  typedef T element_type;
  typedef metal::remove_cv_t<metal::remove_addrspace_t<T>> value_type;
  typedef Extents extents_type;
  typedef typename Extents::index_type index_type;
  typedef metal::make_unsigned_t<index_type> size_type;
  typedef size_t rank_type;
  typedef T *data_handle_type;

  static constexpr MRT_METHOD size_t get_rank() { return Extents::rank(); }
  static constexpr MRT_METHOD size_t get_static_extent(size_t dimension) { return Extents::static_extent(dimension); }
};

// The members whose parameters depend on the rank (MSL 2.20.2). I counts the dimensions.
template <typename Self, typename T, typename Extents, typename Indices> struct TensorMembers;
template <typename Self, typename T, typename Extents, size_t... I>
struct TensorMembers<Self, T, Extents, metal::index_sequence<I...>> : TensorTypes<T, Extents> {
  typedef typename Extents::index_type index_type;
  typedef typename TensorTypes<T, Extents>::value_type value_type;
  typedef metal::array<long, sizeof...(I)> Place;
  template <size_t... E>
  using Slice = typename SliceOf<Self, typename SizesOf<index_type, sizeof...(I), E...>::type>::type;

#ifndef MRT_STRICT
  MRT_METHOD decltype(auto) view() const { return view_of(*static_cast<const Self *>(this)); }
#endif
  // clang-format off: it would join the members
#define MRT_TENSOR_MEMBERS(SPACE)                                                                                      \
  MRT_CALL Extents extents() const SPACE MRT_BODY(return view().shape;)                                                \
  MRT_CALL index_type get_extent(size_t dimension) const SPACE                                                         \
      MRT_BODY(return index_type(view().shape.values[dimension]);)                                                     \
  MRT_CALL index_type get_stride(size_t dimension) const SPACE                                                         \
      MRT_BODY(return index_type(view().steps[dimension]);)                                                            \
  MRT_CALL T &operator[](Position<sizeof...(I)> position) const SPACE                                                  \
      MRT_BODY(return view().element(position.at, position.site);)                                                     \
  /* Outside of the tensor, a load gives 0 and a store does nothing. */                                                \
  MRT_CALL value_type load(Index<I>... at) const SPACE MRT_BODY(return load(Place{{at...}});)                          \
  template <typename S> MRT_CALL value_type load(metal::array<S, sizeof...(I)> at) const SPACE                         \
      MRT_BODY(return view().has(at.elements) ? value_type(*view().address(at.elements)) : value_type(0);)             \
  MRT_CALL void store(value_type value, Index<I>... at) const SPACE MRT_BODY(store(value, Place{{at...}});)            \
  template <typename S> MRT_CALL void store(value_type value, metal::array<S, sizeof...(I)> at) const SPACE            \
      MRT_BODY(if (view().has(at.elements)) *view().address(at.elements) = value;)                                     \
  /* The tensor from this position on: what is left of each size, or the sizes in angle brackets. */                   \
  template <size_t... E> MRT_CALL Slice<E...> slice(Index<I>... at MRT_SITE) const SPACE                               \
      MRT_BODY(const long start[] = {at...}; return view().template sliced<Slice<E...>>(start, site);)
  // clang-format on
  MRT_IN_EACH_SPACE(MRT_TENSOR_MEMBERS)
#undef MRT_TENSOR_MEMBERS
};

// A tensor that contains its sizes and strides: a program makes it of a pointer, or as a slice of one of the host's
// tensors.
template <typename Self, typename T, typename Extents>
struct TensorView : TensorMembers<Self, T, Extents, metal::make_index_sequence<Extents::rank()>> {
  typedef typename Extents::index_type index_type;
  static constexpr MRT_CONSTANT size_t rank = Extents::rank();

  T *data;
  Extents shape;
  long steps[rank];

#ifndef MRT_STRICT
  TensorView(T *pointer, Extents sizes) : data(pointer), shape(sizes) {}

  template <typename S> MRT_METHOD bool has(const S *at) const {
    bool inside = true;
    for (size_t i = 0; i < rank; i++) inside = inside && long(at[i]) >= 0 && long(at[i]) < long(shape.values[i]);
    return inside;
  }
  template <typename S> MRT_METHOD T *address(const S *at) const {
    T *element = data;
    for (size_t i = 0; i < rank; i++) element += long(at[i]) * steps[i];
    return element;
  }
  MRT_METHOD T &element(const long *at, [[maybe_unused]] Site site) const {
    for (size_t i = 0; i < rank; i++)
      MRT_CHECK_TENSOR(at[i] >= 0 && at[i] < long(shape.values[i]), position_outside, at[i], shape.values[i])
    return *address(at);
  }
  template <typename Result> MRT_METHOD Result sliced(const long *start, [[maybe_unused]] Site site) const {
    typedef typename Result::extents_type Sizes;
    Result result(address(start), Sizes());
    for (size_t i = 0; i < rank; i++) {
      const long whole = long(shape.values[i]), fixed = long(Sizes::static_extent(i));
      MRT_CHECK_TENSOR(start[i] >= 0 && start[i] <= whole, slice_starts_outside, start[i], whole)
      MRT_CHECK_TENSOR(fixed < 0 || start[i] + fixed <= whole, slice_ends_outside, start[i] + fixed, whole)
      result.shape.values[i] = index_type(fixed < 0 ? whole - start[i] : fixed);
      result.steps[i] = steps[i];
    }
    return result;
  }
  // Of a matrix: whether a position is inside, and the element there.
  MRT_METHOD bool contains(long first, long second) const {
    return first >= 0 && second >= 0 && first < long(shape.values[0]) && second < long(shape.values[1]);
  }
  MRT_METHOD T &at(long first, long second) const { return data[first * steps[0] + second * steps[1]]; }
#endif
};

namespace tensors {

template <typename T, typename Extents>
struct tensor<T, Extents, tensor_inline> : TensorView<tensor<T, Extents, tensor_inline>, T, Extents> {
#ifdef MRT_STRICT
  tensor(T *pointer, Extents sizes);
  template <typename S> tensor(T *pointer, Extents sizes, metal::array<S, Extents::rank()> strides);
#else
  MRT_METHOD tensor(T *pointer, Extents sizes) : TensorView<tensor, T, Extents>(pointer, sizes) {
    this->steps[0] = 1;
    for (size_t i = 1; i < Extents::rank(); i++) this->steps[i] = this->steps[i - 1] * long(this->shape.values[i - 1]);
  }
  template <typename S>
  MRT_METHOD tensor(T *pointer, Extents sizes, metal::array<S, Extents::rank()> strides)
      : TensorView<tensor, T, Extents>(pointer, sizes) {
    for (size_t i = 0; i < Extents::rank(); i++) this->steps[i] = long(strides.elements[i]);
  }
#endif
};

template <typename T, typename E> tensor(T *, E) -> tensor<T, E, tensor_inline>;
template <typename T, typename E, typename S> tensor(T *, E, S) -> tensor<T, E, tensor_inline>;

template <typename T, typename Extents>
struct tensor<T, Extents, tensor_handle, tensor_offset>
    : TensorView<tensor<T, Extents, tensor_handle, tensor_offset>, T, Extents> {
  static_assert(is_of_host<T>, "tensor: the elements of a tensor_handle are in device or constant memory");
#ifndef MRT_STRICT
  MRT_METHOD tensor(T *pointer, Extents sizes) : TensorView<tensor, T, Extents>(pointer, sizes) {}
#endif
};

template <typename T, typename Extents>
struct tensor<T, Extents, tensor_handle>
    : TensorMembers<tensor<T, Extents, tensor_handle>, T, Extents, metal::make_index_sequence<Extents::rank()>> {
  static_assert(is_of_host<T>, "tensor: the elements of a tensor_handle are in device or constant memory");
#ifdef MRT_STRICT
  ulong handle;
#else
  const MrtTensor *handle = nullptr;
#endif
};

} // namespace tensors

#ifndef MRT_STRICT
// Returns a tensor that contains its sizes. The handle of one of the host's tensors is converted, by the table that it
// points to.
template <typename Operand> MRT_FUNC Operand &view_of(Operand &operand) { return operand; }
template <typename T, typename E>
MRT_UNINSTRUMENTED auto view_of(tensors::tensor<T, E, tensors::tensor_handle> operand) {
  const MrtTensor *of = operand.handle;
  tensors::tensor<T, E, tensors::tensor_handle, tensors::tensor_offset> view(of ? (T *)of->address : nullptr, E());
  for (size_t i = 0; i < E::rank(); i++) {
    view.shape.values[i] = typename E::index_type(of && i < of->rank ? of->extents[i] : 0);
    view.steps[i] = of && i < of->rank ? of->strides[i] : 0;
  }
  return view;
}
#endif

namespace tensors {

// The threads that execute an operation together.
template <size_t Count> struct execution_simdgroups {
  static_assert(Count != 0, "execution_simdgroups: at least one SIMD-group");
};
typedef execution_simdgroups<1> execution_simdgroup;

} // namespace tensors
} // namespace mrt

#endif
#endif
