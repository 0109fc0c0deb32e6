// The precise math functions of one float on an NVIDIA GPU, from libclc, which is within the limits of OpenCL C, and so
// within those of MSL's Table 8.1, except where a comment says otherwise. The names are OpenCL's, as Itanium's ABI
// mangles them.
#ifndef MRT_GPU_MATH_H
#define MRT_GPU_MATH_H

#define MRT_CLC1(NAME, SYMBOL)                                                                                         \
  float clc_##NAME(float) __asm__(SYMBOL);                                                                             \
  MRT_FUNC float NAME(float x) { return clc_##NAME(x); }
#define MRT_CLC2(NAME, SYMBOL)                                                                                         \
  float clc_##NAME(float, float) __asm__(SYMBOL);                                                                      \
  MRT_FUNC float NAME(float x, float y) { return clc_##NAME(x, y); }

MRT_CLC1(sin, "_Z3sinf")
MRT_CLC1(cos, "_Z3cosf")
MRT_CLC1(tan, "_Z3tanf")
MRT_CLC1(asin, "_Z4asinf")
MRT_CLC1(acos, "_Z4acosf")
MRT_CLC1(atan, "_Z4atanf")
MRT_CLC1(sinh, "_Z4sinhf")
MRT_CLC1(cosh, "_Z4coshf")
MRT_CLC1(tanh, "_Z4tanhf")
MRT_CLC1(asinh, "_Z5asinhf")
MRT_CLC1(acosh, "_Z5acoshf")
MRT_CLC1(atanh, "_Z5atanhf")
MRT_CLC1(exp, "_Z3expf")
MRT_CLC1(exp2, "_Z4exp2f")
MRT_CLC1(exp10, "_Z5exp10f")
MRT_CLC1(log, "_Z3logf")
MRT_CLC1(log2, "_Z4log2f")
MRT_CLC1(log10, "_Z5log10f")
MRT_CLC1(sinpi, "_Z5sinpif")
MRT_CLC1(cospi, "_Z5cospif")
MRT_CLC1(tanpi, "_Z5tanpif")
MRT_CLC2(atan2, "_Z5atan2ff")
MRT_CLC2(pow, "_Z3powff")
MRT_CLC2(powr, "_Z4powrff")
MRT_CLC2(fmod, "_Z4fmodff")

#undef MRT_CLC1
#undef MRT_CLC2

#endif
