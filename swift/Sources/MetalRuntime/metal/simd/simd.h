// <simd/simd.h>, which headers shared with host code include. mrt/simd_names.h has its names for Metal's types.
#include "../metal_stdlib"
