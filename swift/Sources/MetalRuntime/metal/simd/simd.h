// <simd/simd.h>, which headers shared with host code include: its names for Metal's types are in mrt/simd_names.h.
#include "../metal_stdlib"
