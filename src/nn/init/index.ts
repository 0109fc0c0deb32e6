/** Initializes tensors in place, without recording, with PyTorch's formulas: `nn.init.kaimingUniform_(weight)`. */

export { constant_, normal_, ones_, type TruncNormalOptions, truncNormal_, uniform_, zeros_ } from "./fills.ts";
export { calculateGain, type GainNonlinearity } from "./gain.ts";
export { dirac_, eye_, orthogonal_, sparse_ } from "./matrices.ts";
export { type KaimingOptions, kaimingNormal_, kaimingUniform_, xavierNormal_, xavierUniform_ } from "./scaled.ts";
