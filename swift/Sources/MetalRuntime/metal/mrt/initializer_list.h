// std::initializer_list, which the language itself requires for a list in braces. MSL's vectors accept one with fewer
// elements than components; the other components are zero.
#ifndef MRT_INITIALIZER_LIST_H
#define MRT_INITIALIZER_LIST_H

#include "types.h"

namespace std {

template <typename E> class initializer_list {
  const E *first;
  size_t count;

public:
  constexpr MRT_METHOD const E *begin() const { return first; }
  constexpr MRT_METHOD const E *end() const { return first + count; }
  constexpr MRT_METHOD size_t size() const { return count; }
  constexpr MRT_METHOD E at(size_t i) const { return i < count ? first[i] : E(); }
};

} // namespace std

namespace metal {
using std::initializer_list;
}
#endif
