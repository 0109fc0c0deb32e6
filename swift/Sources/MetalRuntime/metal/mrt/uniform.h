// uniform<T> (MSL 2.18): a value that the program guarantees to be the same in all threads.
#ifndef MRT_UNIFORM_H
#define MRT_UNIFORM_H

#include "vec.h"

namespace metal {

template <typename T> struct uniform {
  T value;
  constexpr MRT_METHOD operator T() const { return value; }
};
template <typename T> constexpr MRT_FUNC uniform<T> make_uniform(T value) { return {value}; }

#define MRT_UNIFORM_OPERATOR(OP)                                                                                       \
  template <typename T> constexpr MRT_FUNC auto operator OP(uniform<T> a, uniform<T> b) {                              \
    return make_uniform(a.value OP b.value);                                                                           \
  }
MRT_UNIFORM_OPERATOR(+)
MRT_UNIFORM_OPERATOR(-)
MRT_UNIFORM_OPERATOR(*)
MRT_UNIFORM_OPERATOR(/)
MRT_UNIFORM_OPERATOR(%)
MRT_UNIFORM_OPERATOR(<)
MRT_UNIFORM_OPERATOR(>)
MRT_UNIFORM_OPERATOR(<=)
MRT_UNIFORM_OPERATOR(>=)
MRT_UNIFORM_OPERATOR(==)
MRT_UNIFORM_OPERATOR(!=)

} // namespace metal

namespace mrt {
template <typename U, typename T>
constexpr MRT_CONSTANT bool is_scalar_beside<metal::uniform<U>, T> = is_scalar_beside<U, T>;
} // namespace mrt
#endif
