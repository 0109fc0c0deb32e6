// Metal Performance Primitives: mrt/matmul2d.h.
#include "../metal_tensor"
