#include "rewriter_internal.h"

namespace mrt {

void drop_duplicates(Rewriter &) {}

} // namespace mrt
