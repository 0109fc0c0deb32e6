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

// 2^k for |k| < 127.
MRT_FUNC float power_of_two_float(int k) { return __builtin_bit_cast(float, (127 + k) << 23); }

// 2^k e^r for |r| <= ln(2) / 2, where e^r is a minimax polynomial. The power of two is applied in two steps, and only
// the second can round: libclc's functions return 0 for subnormal results.
MRT_FUNC float scaled_exp(float r, float k) {
  float power = __builtin_fmaf(1.37805939e-3f, r, 8.37312452e-3f);
  power = __builtin_fmaf(power, r, 4.16695364e-2f);
  power = __builtin_fmaf(power, r, 1.66664720e-1f);
  power = __builtin_fmaf(power, r, 4.99999851e-1f);
  power = __builtin_fmaf(power, r, 1.0f);
  power = __builtin_fmaf(power, r, 1.0f);
  const int whole = int(k) < -200 ? -200 : int(k) > 200 ? 200 : int(k), half = whole / 2;
  return power * power_of_two_float(half) * power_of_two_float(whole - half);
}

// ln(2) is subtracted in two parts.
MRT_FUNC float exp(float x) {
  const float k = __builtin_rintf(x * 1.44269504088896340736f);
  const float power = scaled_exp(__builtin_fmaf(k, -1.42860677e-6f, __builtin_fmaf(k, -6.93145752e-1f, x)), k);
  return x > 89.0f ? __builtin_inff() : x < -104.0f ? 0.0f : power;
}

MRT_FUNC float exp2(float x) {
  const float k = __builtin_rintf(x), power = scaled_exp((x - k) * 6.93147182e-1f, k);
  return x >= 128.0f ? __builtin_inff() : x < -150.0f ? 0.0f : power;
}

#endif
