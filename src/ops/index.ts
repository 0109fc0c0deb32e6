/** The public operations: one line per file, sorted. */
export * from "./activation/celu.ts";
export * from "./activation/channel_dropout.ts";
export { type DropoutOptions, dropout } from "./activation/dropout.ts";
export { type EluOptions, elu } from "./activation/elu.ts";
export { type GeluOptions, gelu } from "./activation/gelu.ts";
export * from "./activation/gumbel_softmax.ts";
export * from "./activation/hardsigmoid.ts";
export * from "./activation/hardswish.ts";
export { type HardtanhOptions, hardtanh } from "./activation/hardtanh.ts";
export { type LeakyReluOptions, leakyRelu } from "./activation/leaky_relu.ts";
export * from "./activation/log_sigmoid.ts";
export * from "./activation/mish.ts";
export * from "./activation/prelu.ts";
export * from "./activation/relu.ts";
export * from "./activation/relu6.ts";
export * from "./activation/rrelu.ts";
export * from "./activation/selu.ts";
export * from "./activation/sigmoid.ts";
export { silu } from "./activation/silu.ts";
export * from "./activation/softplus.ts";
export * from "./activation/softsign.ts";
export * from "./activation/swiglu.ts";
export * from "./activation/tanhshrink.ts";
export * from "./activation/thresholds.ts";
export { type FlashAttentionResult, flashAttention } from "./attention/flash_attention.ts";
export type {
  AttentionPath,
  AttentionWindow,
  FlashAttentionOptions,
  SequenceBounds,
} from "./attention/options.ts";
export type { Alignment } from "./attention/problem.ts";
export * from "./attention/scaled_dot_product_attention.ts";
export {
  angle,
  type ComplexFrom,
  complex,
  conj,
  imag,
  polar,
  real,
  viewAsComplex,
  viewAsReal,
} from "./complex/parts.ts";
export {
  type ConvolutionArguments,
  type ConvolutionOptions,
  conv1d,
  conv2d,
  conv3d,
} from "./convolution/convolution.ts";
export type { PerAxis } from "./convolution/geometry.ts";
export * from "./convolution/transposed.ts";
export { fold, type UnfoldOptions, unfold } from "./convolution/unfold.ts";
export * from "./copy/cast.ts";
export { clone, contiguous } from "./copy/copy.ts";
export { add_, copy_, div_, fill_, mul_, sub_, zero_ } from "./copy/inplace.ts";
export * from "./creation/arange.ts";
export * from "./creation/eye.ts";
export * from "./creation/full.ts";
export * from "./creation/linspace.ts";
export * from "./creation/logspace.ts";
export {
  type DTypeOfArray,
  type DTypeOfValue,
  fromArray,
  type TensorArray,
  type TensorOptions,
  tensor,
} from "./creation/tensor.ts";
export * from "./distance/cosine_similarity.ts";
export * from "./distance/dist.ts";
export * from "./distance/normalize.ts";
export { type PairwiseDistanceOptions, pairwiseDistance } from "./distance/pairwise_distance.ts";
export * from "./distance/renorm.ts";
export * from "./elementwise/addcmul.ts";
export {
  type AlphaOptions,
  abs,
  add,
  mul,
  neg,
  reciprocal,
  sign,
  sign as sgn,
  square,
  sub,
} from "./elementwise/arithmetic.ts";
export * from "./elementwise/bessel.ts";
export * from "./elementwise/bessel_oscillating.ts";
export * from "./elementwise/bessel_scaled.ts";
export * from "./elementwise/bitwise.ts";
export { type ClampArguments, type ClampOptions, clamp } from "./elementwise/clamp.ts";
export * from "./elementwise/comparison.ts";
export * from "./elementwise/copysign.ts";
export * from "./elementwise/degrees.ts";
export { type DivOptions, div, floorDivide, fmod, remainder } from "./elementwise/division.ts";
export * from "./elementwise/divisors.ts";
export * from "./elementwise/erf.ts";
export * from "./elementwise/erfcx.ts";
export * from "./elementwise/exponential.ts";
export * from "./elementwise/exponents.ts";
export * from "./elementwise/extrema.ts";
export * from "./elementwise/float_power.ts";
export * from "./elementwise/fmax.ts";
export * from "./elementwise/gamma.ts";
export * from "./elementwise/heaviside.ts";
export * from "./elementwise/hyperbolic.ts";
export * from "./elementwise/hypot.ts";
export * from "./elementwise/incomplete_gamma.ts";
export * from "./elementwise/infinities.ts";
export * from "./elementwise/inverse_hyperbolic.ts";
export * from "./elementwise/inverse_trigonometric.ts";
export * from "./elementwise/lerp.ts";
export * from "./elementwise/logaddexp.ts";
export * from "./elementwise/logarithm.ts";
export * from "./elementwise/logic.ts";
export * from "./elementwise/logit.ts";
export * from "./elementwise/mvlgamma.ts";
export * from "./elementwise/nan_to_num.ts";
export * from "./elementwise/nextafter.ts";
export * from "./elementwise/power.ts";
export * from "./elementwise/predicates.ts";
export * from "./elementwise/rounding.ts";
export * from "./elementwise/sinc.ts";
export * from "./elementwise/trigonometric.ts";
export type { FloatOf, Operand, ResultOf } from "./elementwise/types.ts";
export * from "./elementwise/where.ts";
export * from "./elementwise/xlogy.ts";
export * from "./elementwise/zeta.ts";
export * from "./embedding/embedding.ts";
export * from "./embedding/embedding_bag.ts";
export type { BagMode } from "./embedding/primitive.ts";
export { at } from "./indexing/at.ts";
export { gather, type IndexOptions, indexSelect, type TakeAlongDimOptions, takeAlongDim } from "./indexing/gather.ts";
export * from "./indexing/masked_fill.ts";
export { maskedSelect, nonzero } from "./indexing/nonzero.ts";
export * from "./indexing/one_hot.ts";
export * from "./indexing/put.ts";
export { scatter } from "./indexing/scatter.ts";
export { type IndexAddOptions, indexAdd, scatterAdd } from "./indexing/scatter_add.ts";
export * from "./indexing/scatter_reduce.ts";
export * from "./indexing/scatter_views.ts";
export * from "./indexing/set_at.ts";
export type { Index, SliceBounds } from "./indexing/steps.ts";
export * from "./indexing/take.ts";
export * from "./indexing/triangle.ts";
export * from "./indexing/triangle_indices.ts";
export * from "./indexing/unravel_index.ts";
export * from "./join/block_diag.ts";
export * from "./join/cat.ts";
export * from "./join/combinations.ts";
export * from "./join/diag.ts";
export * from "./join/diag_embed.ts";
export * from "./join/flip.ts";
export * from "./join/pad.ts";
export * from "./join/repeat.ts";
export * from "./join/repeat_interleave.ts";
export * from "./join/roll.ts";
export * from "./join/rot90.ts";
export * from "./join/stacks.ts";
export { type BinaryCrossEntropyOptions, binaryCrossEntropyWithLogits } from "./loss/binary_cross_entropy.ts";
export { type CrossEntropyOptions, crossEntropy } from "./loss/cross_entropy.ts";
export { type CtcLossOptions, ctcLoss, type Lengths } from "./loss/ctc_loss.ts";
export * from "./loss/embedding_losses.ts";
export * from "./loss/huber_loss.ts";
export { l1Loss } from "./loss/l1_loss.ts";
export * from "./loss/likelihood_losses.ts";
export * from "./loss/margin_losses.ts";
export { mseLoss } from "./loss/mse_loss.ts";
export * from "./loss/nll_loss.ts";
export type { LossOptions, LossReduction } from "./loss/options.ts";
export * from "./loss/probability_losses.ts";
export * from "./matmul/added_products.ts";
export { type AddmmOptions, addmm } from "./matmul/addmm.ts";
export * from "./matmul/bilinear.ts";
export { type CdistOptions, cdist } from "./matmul/cdist.ts";
export { type CovarianceOptions, corrcoef, cov } from "./matmul/covariance.ts";
export { type CrossOptions, cross } from "./matmul/cross.ts";
export * from "./matmul/dot.ts";
export * from "./matmul/einsum.ts";
export { kron } from "./matmul/kron.ts";
export * from "./matmul/linear.ts";
export * from "./matmul/matmul.ts";
export * from "./matmul/outer.ts";
export * from "./matmul/tensordot.ts";
export * from "./normalization/batch_norm.ts";
export * from "./normalization/instance_norm.ts";
export * from "./normalization/layer_norm.ts";
export * from "./normalization/local_response_norm.ts";
export type { SumAndNorm } from "./normalization/normalize.ts";
export type { LayerNormOptions, RmsNormOptions } from "./normalization/options.ts";
export * from "./normalization/rms_norm.ts";
export * from "./picture/grid_sample.ts";
export * from "./picture/interpolate.ts";
export * from "./picture/pixel_shuffle.ts";
export * from "./pooling/adaptive_max_pool.ts";
export * from "./pooling/average_pool.ts";
export * from "./pooling/fractional_max_pool.ts";
export * from "./pooling/lp_pool.ts";
export * from "./pooling/max_pool.ts";
export * from "./position/rope.ts";
export * from "./random/bernoulli.ts";
export { type MultinomialOptions, multinomial } from "./random/multinomial.ts";
export * from "./random/rand.ts";
export * from "./random/randint.ts";
export * from "./random/randn.ts";
export { randperm } from "./random/randperm.ts";
export { allClose, type CloseOptions, equal, isClose } from "./reduction/close.ts";
export {
  type AlongAxis,
  amax,
  amin,
  argmax,
  argmin,
  type IndexedArguments,
  type IndexedOptions,
  max,
  min,
  type ValuesAndIndices,
} from "./reduction/extrema.ts";
export * from "./reduction/logic.ts";
export * from "./reduction/logsumexp.ts";
export * from "./reduction/mean.ts";
export * from "./reduction/mode.ts";
export * from "./reduction/norm.ts";
export * from "./reduction/order.ts";
export * from "./reduction/prod.ts";
export * from "./reduction/quantile.ts";
export type { ReductionArguments, ReductionOptions } from "./reduction/reduce.ts";
export { type SumOf, type SumOptions, sum } from "./reduction/sum.ts";
export { trace } from "./reduction/trace.ts";
export * from "./reduction/variance.ts";
export * from "./reduction/without_nan.ts";
export * from "./scan/cumsum.ts";
export * from "./scan/diff.ts";
export * from "./scan/finite_differences.ts";
export * from "./scan/running_extrema.ts";
export * from "./softmax/softmax.ts";
export * from "./sorting/histogram.ts";
export * from "./sorting/isin.ts";
export * from "./sorting/searchsorted.ts";
export * from "./sorting/sort.ts";
export * from "./sorting/unique.ts";
export * from "./view/as_strided.ts";
export * from "./view/axis_splits.ts";
export * from "./view/broadcast_tensors.ts";
export { type DiagonalOptions, diagonal } from "./view/diagonal.ts";
export { expand } from "./view/expand.ts";
export * from "./view/flatten.ts";
export * from "./view/permute.ts";
export { reshape } from "./view/reshape.ts";
export { narrow, type SliceOptions, select, slice } from "./view/slice.ts";
export * from "./view/split.ts";
export * from "./view/squeeze.ts";
export { tensorSplit } from "./view/tensor_split.ts";
export * from "./view/windows.ts";
