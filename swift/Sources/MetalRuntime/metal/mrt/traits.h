// Type traits, as in C++'s <type_traits> (MSL 6.4).
#ifndef MRT_TRAITS_H
#define MRT_TRAITS_H

#include "types.h"

namespace metal {

template <typename T, T v> struct integral_constant {
  static constexpr MRT_CONSTANT T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool B, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> {
  typedef T type;
};
template <bool B, typename T = void> using enable_if_t = typename enable_if<B, T>::type;

template <bool B, typename T, typename F> struct conditional {
  typedef T type;
};
template <typename T, typename F> struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, typename T, typename F> using conditional_t = typename conditional<B, T, F>::type;

template <typename T, int N> struct vec;
template <typename T, int N> struct packed_vec;
template <typename T, int Columns, int Rows> struct matrix;

// Defines a predicate NAME<T> and its value NAME_v<T>.
#define MRT_PREDICATE(NAME, ...)                                                                                       \
  template <typename T> struct NAME : bool_constant<(__VA_ARGS__)> {};                                                 \
  template <typename T> constexpr MRT_CONSTANT bool NAME##_v = (__VA_ARGS__);
#define MRT_PREDICATE2(NAME, ...)                                                                                      \
  template <typename T, typename U> struct NAME : bool_constant<(__VA_ARGS__)> {};                                     \
  template <typename T, typename U> constexpr MRT_CONSTANT bool NAME##_v = (__VA_ARGS__);

#define MRT_IS_BFLOAT(T) __is_same(__remove_cv(T), bfloat)

MRT_PREDICATE(is_void, __is_void(T))
// A vector has the kind of its elements, and is not a scalar.
template <typename T> struct mrt_element {
  typedef T type;
};
template <typename T, int N> struct mrt_element<vec<T, N>> {
  typedef T type;
};
template <typename T, int N> struct mrt_element<packed_vec<T, N>> {
  typedef T type;
};
template <typename T> using mrt_element_t = typename mrt_element<__remove_cv(T)>::type;
MRT_PREDICATE(is_integral, __is_integral(mrt_element_t<T>))
MRT_PREDICATE(is_floating_point, __is_floating_point(mrt_element_t<T>) || MRT_IS_BFLOAT(mrt_element_t<T>))
MRT_PREDICATE(is_arithmetic, __is_arithmetic(mrt_element_t<T>) || MRT_IS_BFLOAT(mrt_element_t<T>))
MRT_PREDICATE(is_fundamental, __is_fundamental(T) || MRT_IS_BFLOAT(T))
MRT_PREDICATE(is_scalar, __is_scalar(T) || MRT_IS_BFLOAT(T))
MRT_PREDICATE(is_object, __is_object(T))
MRT_PREDICATE(is_compound, __is_compound(T) && !MRT_IS_BFLOAT(T))
MRT_PREDICATE(is_array, __is_array(T))
MRT_PREDICATE(is_enum, __is_enum(T))
MRT_PREDICATE(is_union, __is_union(T))
MRT_PREDICATE(is_class, __is_class(T) && !MRT_IS_BFLOAT(T))
MRT_PREDICATE(is_function, __is_function(T))
MRT_PREDICATE(is_pointer, __is_pointer(T))
MRT_PREDICATE(is_lvalue_reference, __is_lvalue_reference(T))
MRT_PREDICATE(is_rvalue_reference, __is_rvalue_reference(T))
MRT_PREDICATE(is_reference, __is_reference(T))
MRT_PREDICATE(is_const, __is_const(T))
MRT_PREDICATE(is_volatile, __is_volatile(T))
MRT_PREDICATE(is_trivial, __is_trivial(T))
MRT_PREDICATE(is_trivially_copyable, __is_trivially_copyable(T))
MRT_PREDICATE(is_standard_layout, __is_standard_layout(T))
MRT_PREDICATE(is_pod, __is_pod(T))
MRT_PREDICATE(is_abstract, __is_abstract(T))
MRT_PREDICATE(is_polymorphic, __is_polymorphic(T))
MRT_PREDICATE(is_final, __is_final(T))
MRT_PREDICATE(is_signed, __is_signed(T) || MRT_IS_BFLOAT(T))
MRT_PREDICATE(is_unsigned, __is_unsigned(T))
MRT_PREDICATE(is_default_constructible, __is_constructible(T))
MRT_PREDICATE(is_copy_constructible, __is_constructible(T, const T &))
MRT_PREDICATE(is_move_constructible, __is_constructible(T, T &&))
MRT_PREDICATE(is_copy_assignable, __is_assignable(T &, const T &))
MRT_PREDICATE(is_trivially_default_constructible, __is_trivially_constructible(T))
MRT_PREDICATE2(is_same, __is_same(T, U))
MRT_PREDICATE2(is_base_of, __is_base_of(T, U))
MRT_PREDICATE2(is_convertible, __is_convertible_to(T, U))
MRT_PREDICATE2(is_assignable, __is_assignable(T, U))
template <typename T, typename... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <typename T, typename... A> constexpr MRT_CONSTANT bool is_constructible_v = __is_constructible(T, A...);

// Internal names of Apple's headers that programs nevertheless use.
template <typename... T> struct _disjunction : bool_constant<(bool(T::value) || ...)> {};
template <typename... T> struct _conjunction : bool_constant<(bool(T::value) && ...)> {};
template <typename T> struct _negation : bool_constant<!bool(T::value)> {};
template <typename T> struct vec_elements : integral_constant<int, 1> {};
template <typename T, int N> struct vec_elements<vec<T, N>> : integral_constant<int, N> {};
template <typename T, int N> struct vec_elements<packed_vec<T, N>> : integral_constant<int, N> {};

template <typename T> struct is_vector : false_type {};
template <typename T, int N> struct is_vector<vec<T, N>> : true_type {};
template <typename T, int N> struct is_vector<packed_vec<T, N>> : true_type {};
template <typename T> constexpr MRT_CONSTANT bool is_vector_v = is_vector<T>::value;

#define MRT_TRANSFORM(NAME, ...)                                                                                       \
  template <typename T> struct NAME {                                                                                  \
    typedef __VA_ARGS__ type;                                                                                          \
  };                                                                                                                   \
  template <typename T> using NAME##_t = typename NAME<T>::type;
MRT_TRANSFORM(remove_const, __remove_const(T))
MRT_TRANSFORM(remove_volatile, __remove_volatile(T))
MRT_TRANSFORM(remove_cv, __remove_cv(T))
MRT_TRANSFORM(remove_reference, __remove_reference_t(T))
MRT_TRANSFORM(remove_pointer, __remove_pointer(T))
MRT_TRANSFORM(remove_extent, __remove_extent(T))
MRT_TRANSFORM(remove_all_extents, __remove_all_extents(T))
MRT_TRANSFORM(add_const, const T)
MRT_TRANSFORM(add_volatile, volatile T)
MRT_TRANSFORM(add_cv, const volatile T)
MRT_TRANSFORM(make_signed, __make_signed(T))
MRT_TRANSFORM(make_unsigned, __make_unsigned(T))
MRT_TRANSFORM(underlying_type, __underlying_type(T))
template <typename T, int N> struct make_signed<vec<T, N>> {
  typedef vec<typename make_signed<T>::type, N> type;
};
// The element type of a vector, and the vector type for an element type.
template <typename T> struct make_scalar {
  typedef mrt_element_t<T> type;
};
template <typename T> using make_scalar_t = typename make_scalar<T>::type;
template <typename T, int N> struct make_vector {
  typedef vec<T, N> type;
};
template <typename T, int N> using make_vector_t = typename make_vector<T, N>::type;
template <typename T, int N> struct make_unsigned<vec<T, N>> {
  typedef vec<typename make_unsigned<T>::type, N> type;
};

// The type without its address space. In strict mode, even a reference without an address space has one (__generic).
template <typename T> struct remove_addrspace {
  typedef T type;
};
#ifdef MRT_STRICT
// A type without the address space of the thread's memory: that of `decltype(variable)` in MSL.
template <typename T> struct mrt_without_thread {
  typedef T type;
};
template <typename T> struct mrt_without_thread<__private T> {
  typedef T type;
};
template <typename T> using mrt_unplaced = typename mrt_without_thread<T>::type;

template <typename T> struct remove_addrspace<__global T> {
  typedef T type;
};
template <typename T> struct remove_addrspace<__local T> {
  typedef T type;
};
template <typename T> struct remove_addrspace<__constant T> {
  typedef T type;
};
template <typename T> struct remove_addrspace<__private T> {
  typedef T type;
};
template <typename T> struct remove_addrspace<__generic T> {
  typedef T type;
};
#elif defined(MRT_SPACED)
template <typename T> struct remove_addrspace<T MRT_DEVICE> {
  typedef T type;
};
template <typename T> struct remove_addrspace<T MRT_THREADGROUP> {
  typedef T type;
};
template <typename T> struct remove_addrspace<T __attribute__((opencl_global_host))> {
  typedef T type;
};
#endif
template <typename T> using remove_addrspace_t = typename remove_addrspace<T>::type;
MRT_TRANSFORM(decay, __decay(remove_addrspace_t<__remove_reference_t(T)>))

template <typename... T> struct common_type {};
template <typename T> struct common_type<T> {
  typedef T type;
};
template <typename T, typename U, typename... Rest> struct common_type<T, U, Rest...> {
  typedef typename common_type<decltype(false ? T() : U()), Rest...>::type type;
};
template <typename... T> using common_type_t = typename common_type<T...>::type;

template <typename T> struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <typename T> struct rank : integral_constant<size_t, 0> {};
template <typename T, size_t N> struct rank<T[N]> : integral_constant<size_t, rank<T>::value + 1> {};
template <typename T, unsigned I = 0> struct extent : integral_constant<size_t, 0> {};
template <typename T, size_t N> struct extent<T[N], 0> : integral_constant<size_t, N> {};
template <typename T, size_t N, unsigned I> struct extent<T[N], I> : extent<T, I - 1> {};

} // namespace metal
#endif
