/** Linear algebra, with PyTorch's names. Exported as `linalg`. */
export { type CrossOptions, cross } from "../ops/matmul/cross.ts";
export { type CholeskyOptions, type CholeskyResult, cholesky, choleskyEx } from "./cholesky/cholesky.ts";
export { choleskyInverse, choleskySolve } from "./cholesky/solve.ts";
export { type EigResult, eig, eigvals } from "./eig/eig.ts";
export { type EighOptions, type EighResult, eigh, eigvalsh } from "./eigh/eigh.ts";
export { matrixExp } from "./exponential/matrix_exp.ts";
export {
  type LdlFactors,
  type LdlFactorsInfo,
  ldlFactor,
  ldlFactorEx,
  ldlSolve,
} from "./ldl/ldl.ts";
export { det, logdet, type SignedLog, slogdet } from "./lu/determinant.ts";
export { type Lu, type LuFactors, type LuFactorsInfo, type LuOptions, lu, luFactor, luFactorEx } from "./lu/factor.ts";
export { type InverseResult, inv, invEx } from "./lu/inverse.ts";
export {
  type LuSolveOptions,
  luSolve,
  type SolveOptions,
  type SolveResult,
  solve,
  solveEx,
} from "./lu/solve.ts";
export { type TensorInvOptions, type TensorSolveOptions, tensorInv, tensorSolve } from "./lu/tensor.ts";
export { type VectorNormOptions, vectorNorm } from "./norms/vector_norm.ts";
export { diagonal } from "./products/diagonal.ts";
export { matrixPower } from "./products/matrix_power.ts";
export { multiDot } from "./products/multi_dot.ts";
export { type VanderOptions, vander } from "./products/vander.ts";
export { type VecdotOptions, vecdot } from "./products/vecdot.ts";
export { type GeqrfResult, geqrf } from "./qr/geqrf.ts";
export { householderProduct } from "./qr/householder_product.ts";
export { type LstsqDriver, type LstsqOptions, type LstsqResult, lstsq } from "./qr/lstsq.ts";
export { type OrmqrOptions, ormqr } from "./qr/ormqr.ts";
export { type QrMode, type QrOptions, type QrResult, qr } from "./qr/qr.ts";
export { type CondOptions, cond } from "./svd/cond.ts";
export { type MatrixNormOptions, type MatrixNormOrder, matrixNorm } from "./svd/matrix_norm.ts";
export { matrixRank } from "./svd/matrix_rank.ts";
export { pinv } from "./svd/pinv.ts";
export type { RankOptions } from "./svd/rank_tolerance.ts";
export { type SvdOptions, type SvdResult, svd, svdvals } from "./svd/svd.ts";
export { type SolveTriangularOptions, solveTriangular } from "./triangular/triangular.ts";

import "../ops/methods.ts";
import "./complex/lowerings.ts";
