/**
 * The functions that are also in-place methods: `x.exp_()` computes `exp(x)` and copies the result into x. Each row
 * defines a method; editors show its comment.
 *
 * `add_`, `copy_`, `div_`, `fill_`, `maskedFill_`, `mul_`, `sub_` and `zero_` are functions as well: see
 * `../copy/inplace.ts`.
 */

import { DTypeError } from "../../core/errors.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import * as operations from "../index.ts";

/** The functions, each with its method's name. */
export const inPlaceRows = {
  /** Computes |x| for each element in place. @see {@link operations.abs} */
  abs_: operations.abs,
  /** Computes the inverse cosine in place. @see {@link operations.acos} */
  acos_: operations.acos,
  /** Computes the inverse hyperbolic cosine in place. @see {@link operations.acosh} */
  acosh_: operations.acosh,
  /**
   * Adds the sum of the products of two batches of matrices in place: beta · x + alpha · Σ a[i] b[i]. @see {@link
   * operations.addbmm}
   */
  addbmm_: operations.addbmm,
  /** Computes x + value · a / b in place. @see {@link operations.addcdiv} */
  addcdiv_: operations.addcdiv,
  /** Computes x + value · a · b in place. @see {@link operations.addcmul} */
  addcmul_: operations.addcmul,
  /** Computes beta · x + alpha · (a b) in place, for matrices. @see {@link operations.addmm} */
  addmm_: operations.addmm,
  /** Computes beta · x + alpha · (a b) in place, for a matrix a and a vector b. @see {@link operations.addmv} */
  addmv_: operations.addmv,
  /** Computes beta · x + alpha · (a bᵀ) in place, for vectors. @see {@link operations.addr} */
  addr_: operations.addr,
  /** Applies {@link operations.alphaDropout} in place. */
  alphaDropout_: operations.alphaDropout,
  /** Computes the inverse sine in place. @see {@link operations.asin} */
  asin_: operations.asin,
  /** Computes the inverse hyperbolic sine in place. @see {@link operations.asinh} */
  asinh_: operations.asinh,
  /** Computes the inverse tangent in place. @see {@link operations.atan} */
  atan_: operations.atan,
  /** Computes the angle of the point (other, x) in place. @see {@link operations.atan2} */
  atan2_: operations.atan2,
  /** Computes the inverse hyperbolic tangent in place. @see {@link operations.atanh} */
  atanh_: operations.atanh,
  /** Computes beta · x + alpha · (a b) in place, for batches of matrices. @see {@link operations.baddbmm} */
  baddbmm_: operations.baddbmm,
  /** Computes x & other in place. @see {@link operations.bitwiseAnd} */
  bitwiseAnd_: operations.bitwiseAnd,
  /** Computes x << other in place. @see {@link operations.bitwiseLeftShift} */
  bitwiseLeftShift_: operations.bitwiseLeftShift,
  /** Computes ~x in place. @see {@link operations.bitwiseNot} */
  bitwiseNot_: operations.bitwiseNot,
  /** Computes x OR other, bit by bit, in place. @see {@link operations.bitwiseOr} */
  bitwiseOr_: operations.bitwiseOr,
  /** Computes x >> other in place. @see {@link operations.bitwiseRightShift} */
  bitwiseRightShift_: operations.bitwiseRightShift,
  /** Computes x ^ other in place. @see {@link operations.bitwiseXor} */
  bitwiseXor_: operations.bitwiseXor,
  /** Rounds each element up in place. @see {@link operations.ceil} */
  ceil_: operations.ceil,
  /** Applies {@link operations.celu} in place. */
  celu_: operations.celu,
  /** Clamps each element to the bounds in place. @see {@link operations.clamp} */
  clamp_: operations.clamp,
  /** Gives each element the sign of the element of `other`, in place. @see {@link operations.copysign} */
  copysign_: operations.copysign,
  /** Computes the cosine in place. @see {@link operations.cos} */
  cos_: operations.cos,
  /** Computes the hyperbolic cosine in place. @see {@link operations.cosh} */
  cosh_: operations.cosh,
  /** Computes the cumulative product along an axis in place. @see {@link operations.cumprod} */
  cumprod_: operations.cumprod,
  /** Computes the cumulative sum along an axis in place. @see {@link operations.cumsum} */
  cumsum_: operations.cumsum,
  /** Converts degrees to radians in place. @see {@link operations.deg2rad} */
  deg2rad_: operations.deg2rad,
  /** Computes the derivative of ln Γ(x) in place. @see {@link operations.digamma} */
  digamma_: operations.digamma,
  /** Applies {@link operations.dropout} in place. */
  dropout_: operations.dropout,
  /** Applies {@link operations.elu} in place. */
  elu_: operations.elu,
  /** Computes −x ln x in place. @see {@link operations.entr} */
  entr_: operations.entr,
  /** Writes 1 where x equals other and 0 elsewhere, in place. @see {@link operations.eq} */
  eq_: operations.eq,
  /** Computes the error function in place. @see {@link operations.erf} */
  erf_: operations.erf,
  /** Computes 1 − erf(x) in place. @see {@link operations.erfc} */
  erfc_: operations.erfc,
  /** Computes the inverse of the error function in place. @see {@link operations.erfinv} */
  erfinv_: operations.erfinv,
  /** Computes eˣ in place. @see {@link operations.exp} */
  exp_: operations.exp,
  /** Computes 2ˣ in place. @see {@link operations.exp2} */
  exp2_: operations.exp2,
  /** Computes eˣ − 1 in place. @see {@link operations.expm1} */
  expm1_: operations.expm1,
  /** Rounds each element down in place. @see {@link operations.floor} */
  floor_: operations.floor,
  /** Divides by other and rounds down in place. @see {@link operations.floorDivide} */
  floorDivide_: operations.floorDivide,
  /** Computes the larger of x and other in place, ignoring NaN. @see {@link operations.fmax} */
  fmax_: operations.fmax,
  /** Computes the smaller of x and other in place, ignoring NaN. @see {@link operations.fmin} */
  fmin_: operations.fmin,
  /** Computes the remainder of x / other with the sign of x, in place. @see {@link operations.fmod} */
  fmod_: operations.fmod,
  /** Computes x − trunc(x) in place. @see {@link operations.frac} */
  frac_: operations.frac,
  /** Computes the lower incomplete gamma function P(x, other) in place. @see {@link operations.gammainc} */
  gammainc_: operations.gammainc,
  /** Computes the upper incomplete gamma function Q(x, other) in place. @see {@link operations.gammaincc} */
  gammaincc_: operations.gammaincc,
  /** Computes the greatest common divisor in place. @see {@link operations.gcd} */
  gcd_: operations.gcd,
  /** Writes 1 where x ≥ other and 0 elsewhere, in place. @see {@link operations.ge} */
  ge_: operations.ge,
  /** Applies {@link operations.gelu} in place. */
  gelu_: operations.gelu,
  /** Writes 1 where x > other and 0 elsewhere, in place. @see {@link operations.gt} */
  gt_: operations.gt,
  /** Applies {@link operations.hardsigmoid} in place. */
  hardsigmoid_: operations.hardsigmoid,
  /** Applies {@link operations.hardswish} in place. */
  hardswish_: operations.hardswish,
  /** Applies {@link operations.hardtanh} in place. */
  hardtanh_: operations.hardtanh,
  /** Computes the step function in place, with these values at 0. @see {@link operations.heaviside} */
  heaviside_: operations.heaviside,
  /** Computes √(x² + other²) in place. @see {@link operations.hypot} */
  hypot_: operations.hypot,
  /** Computes the modified Bessel function of order 0 in place. @see {@link operations.i0} */
  i0_: operations.i0,
  /** Adds the source's slices to the slices at an index in place. @see {@link operations.indexAdd} */
  indexAdd_: operations.indexAdd,
  /** Copies the source's slices to the slices at an index in place. @see {@link operations.indexCopy} */
  indexCopy_: operations.indexCopy,
  /** Fills the slices at an index with a value in place. @see {@link operations.indexFill} */
  indexFill_: operations.indexFill,
  /** Writes values at the positions of index tensors in place. @see {@link operations.indexPut} */
  indexPut_: operations.indexPut,
  /** Combines the source's slices with the slices at an index in place. @see {@link operations.indexReduce} */
  indexReduce_: operations.indexReduce,
  /** Computes the least common multiple in place. @see {@link operations.lcm} */
  lcm_: operations.lcm,
  /** Writes 1 where x ≤ other and 0 elsewhere, in place. @see {@link operations.le} */
  le_: operations.le,
  /** Applies {@link operations.leakyRelu} in place. */
  leakyRelu_: operations.leakyRelu,
  /** Computes x + weight · (end − x) in place. @see {@link operations.lerp} */
  lerp_: operations.lerp,
  /** Computes ln |Γ(x)| in place. @see {@link operations.lgamma} */
  lgamma_: operations.lgamma,
  /** Computes x · 2ᵏ in place. @see {@link operations.ldexp} */
  ldexp_: operations.ldexp,
  /** Computes the natural logarithm in place. @see {@link operations.log} */
  log_: operations.log,
  /** Computes the logarithm to base 10 in place. @see {@link operations.log10} */
  log10_: operations.log10,
  /** Computes ln(1 + x) in place. @see {@link operations.log1p} */
  log1p_: operations.log1p,
  /** Computes the logarithm to base 2 in place. @see {@link operations.log2} */
  log2_: operations.log2,
  /** Writes 1 where x and other are not 0, and 0 elsewhere, in place. @see {@link operations.logicalAnd} */
  logicalAnd_: operations.logicalAnd,
  /** Writes 1 where x is 0, and 0 elsewhere, in place. @see {@link operations.logicalNot} */
  logicalNot_: operations.logicalNot,
  /** Writes 1 where x or other is not 0, and 0 elsewhere, in place. @see {@link operations.logicalOr} */
  logicalOr_: operations.logicalOr,
  /** Writes 1 where one of x and other is 0, and 0 elsewhere, in place. @see {@link operations.logicalXor} */
  logicalXor_: operations.logicalXor,
  /** Computes ln(x / (1 − x)) in place. @see {@link operations.logit} */
  logit_: operations.logit,
  /** Writes 1 where x < other and 0 elsewhere, in place. @see {@link operations.lt} */
  lt_: operations.lt,
  /**
   * Copies the source's elements to the places of true mask elements, in order, in place. @see {@link
   * operations.maskedScatter}
   */
  maskedScatter_: operations.maskedScatter,
  /** Computes the larger of x and other in place. @see {@link operations.maximum} */
  maximum_: operations.maximum,
  /** Computes the smaller of x and other in place. @see {@link operations.minimum} */
  minimum_: operations.minimum,
  /** Applies {@link operations.mish} in place. */
  mish_: operations.mish,
  /** Computes the multivariate ln Γ of dimension p in place. @see {@link operations.mvlgamma} */
  mvlgamma_: operations.mvlgamma,
  /** Replaces NaN and infinities in place. @see {@link operations.nanToNum} */
  nanToNum_: operations.nanToNum,
  /** Writes 1 where x differs from other and 0 elsewhere, in place. @see {@link operations.ne} */
  ne_: operations.ne,
  /** Computes −x in place. @see {@link operations.neg} */
  neg_: operations.neg,
  /** Computes the next number after x toward other in place. @see {@link operations.nextafter} */
  nextafter_: operations.nextafter,
  /** Raises each element to a power in place. @see {@link operations.pow} */
  pow_: operations.pow,
  /** Writes the source's elements at indices into the flattened tensor, in place. @see {@link operations.put} */
  put_: operations.put,
  /** Converts radians to degrees in place. @see {@link operations.rad2deg} */
  rad2deg_: operations.rad2deg,
  /** Computes 1 / x in place. @see {@link operations.reciprocal} */
  reciprocal_: operations.reciprocal,
  /** Computes max(x, 0) in place. @see {@link operations.relu} */
  relu_: operations.relu,
  /** Computes min(max(x, 0), 6) in place. @see {@link operations.relu6} */
  relu6_: operations.relu6,
  /** Computes the remainder of x / other with the sign of other, in place. @see {@link operations.remainder} */
  remainder_: operations.remainder,
  /** Scales down slices whose norm exceeds `maxnorm`, in place. @see {@link operations.renorm} */
  renorm_: operations.renorm,
  /** Rounds to the nearest whole number in place, ties to even. @see {@link operations.round} */
  round_: operations.round,
  /** Applies {@link operations.rrelu} in place. */
  rrelu_: operations.rrelu,
  /** Computes 1 / √x in place. @see {@link operations.rsqrt} */
  rsqrt_: operations.rsqrt,
  /** Writes the source's elements, or a number, at an index along an axis in place. @see {@link operations.scatter} */
  scatter_: operations.scatter,
  /** Adds the source's elements at an index along an axis in place. @see {@link operations.scatterAdd} */
  scatterAdd_: operations.scatterAdd,
  /**
   * Combines the source's elements with those at an index along an axis in place. @see {@link
   * operations.scatterReduce}
   */
  scatterReduce_: operations.scatterReduce,
  /** Applies {@link operations.selu} in place. */
  selu_: operations.selu,
  /** Computes 1 / (1 + e⁻ˣ) in place. @see {@link operations.sigmoid} */
  sigmoid_: operations.sigmoid,
  /** Computes the sign of each element in place. @see {@link operations.sign} */
  sign_: operations.sign,
  /** Computes x · sigmoid(x) in place. @see {@link operations.silu} */
  silu_: operations.silu,
  /** Computes the sine in place. @see {@link operations.sin} */
  sin_: operations.sin,
  /** Computes sin(πx) / (πx) in place. @see {@link operations.sinc} */
  sinc_: operations.sinc,
  /** Computes the hyperbolic sine in place. @see {@link operations.sinh} */
  sinh_: operations.sinh,
  /** Applies {@link operations.softplus} in place. */
  softplus_: operations.softplus,
  /** Computes the square root in place. @see {@link operations.sqrt} */
  sqrt_: operations.sqrt,
  /** Computes x² in place. @see {@link operations.square} */
  square_: operations.square,
  /** Computes the tangent in place. @see {@link operations.tan} */
  tan_: operations.tan,
  /** Computes the hyperbolic tangent in place. @see {@link operations.tanh} */
  tanh_: operations.tanh,
  /** Replaces elements that do not exceed a threshold in place. @see {@link operations.threshold} */
  threshold_: operations.threshold,
  /** Sets the elements above a diagonal to 0 in place. @see {@link operations.tril} */
  tril_: operations.tril,
  /** Sets the elements below a diagonal to 0 in place. @see {@link operations.triu} */
  triu_: operations.triu,
  /** Rounds each element toward 0 in place. @see {@link operations.trunc} */
  trunc_: operations.trunc,
  /** Computes x · ln(1 + other) in place, and 0 where x is 0. @see {@link operations.xlog1py} */
  xlog1py_: operations.xlog1py,
  /** Computes x · ln(other) in place, and 0 where x is 0. @see {@link operations.xlogy} */
  xlogy_: operations.xlogy,
  /** Raises each element to a power in place, in float64; x must be float64. @see {@link operations.floatPower} */
  floatPower_: floatPowerOf,
  /** Computes the n-th derivative of digamma in place. @see {@link operations.polygamma} */
  polygamma_: polygammaOf,
} as const;

/** Restricts x to float64, the dtype of the result. */
function floatPowerOf(x: Tensor, exponent: operations.Operand): Tensor;
function floatPowerOf(x: Tensor, ...rest: [operations.Operand]): Tensor {
  if (x.dtype === "float64") return operations.floatPower(x, ...rest);
  const problem = `the result is float64, which ${x.describe()} can't hold; convert x with to("float64")`;
  throw new DTypeError("floatPower", "kindDiffers", problem);
}

/** The order of the derivative is the first argument of the function, and follows the tensor in the method. */
function polygammaOf(x: Tensor, n: number): Tensor;
function polygammaOf(x: Tensor, n: number, ...surplus: []): Tensor {
  return operations.polygamma(n, x, ...surplus);
}
