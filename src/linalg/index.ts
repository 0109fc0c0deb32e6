/** Linear algebra, by PyTorch's names. Exported as `linalg`. */
export { type CholeskyOptions, type CholeskyResult, cholesky, choleskyEx } from "./cholesky/cholesky.ts";
export { type EighOptions, type EighResult, eigh, eigvalsh } from "./eigh/eigh.ts";
export { type SolveTriangularOptions, solveTriangular } from "./triangular/triangular.ts";
