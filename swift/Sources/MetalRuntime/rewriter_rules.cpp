// What Metal refuses and clang's C++ would take.
#include "rewriter_internal.h"

namespace mrt {

void check_language(Rewriter &) {}

} // namespace mrt
