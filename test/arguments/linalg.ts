/** Linear algebra: each function with arguments that it takes, in alphabetical order. */
import { eye, linalg, ones, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

export const linalgCalls: Calls = {
  cholesky: [linalg.cholesky as Call, () => [eye(2), { upper: true }]],
  choleskyEx: [linalg.choleskyEx as Call, () => [eye(2), { upper: true }]],
  "linalg.cross": [linalg.cross as Call, () => [ones([2, 3]), ones([2, 3]), { dim: 1 }]],
  det: [linalg.det as Call, () => [eye(2)]],
  "linalg.diagonal": [linalg.diagonal as Call, () => [eye(2), { offset: 0, dim1: 0, dim2: 1 }]],
  eigh: [linalg.eigh as Call, () => [eye(2), { UPLO: "U" }]],
  eigvalsh: [linalg.eigvalsh as Call, () => [eye(2), { UPLO: "U" }]],
  geqrf: [linalg.geqrf as Call, () => [eye(2)]],
  householderProduct: [linalg.householderProduct as Call, () => [eye(2), zeros([2])]],
  inv: [linalg.inv as Call, () => [eye(2)]],
  invEx: [linalg.invEx as Call, () => [eye(2)]],
  logdet: [linalg.logdet as Call, () => [eye(2)]],
  lu: [linalg.lu as Call, () => [eye(2), { pivot: true }]],
  luFactor: [linalg.luFactor as Call, () => [eye(2), { pivot: true }]],
  luFactorEx: [linalg.luFactorEx as Call, () => [eye(2), { pivot: true }]],
  luSolve: [
    linalg.luSolve as Call,
    () => [eye(2), ones([2], { dtype: "int32" }), zeros([2, 1]), { left: true, adjoint: false }],
  ],
  matrixExp: [linalg.matrixExp as Call, () => [eye(2)]],
  matrixPower: [linalg.matrixPower as Call, () => [eye(2), 3]],
  multiDot: [linalg.multiDot as Call, () => [[ones([2]), eye(2)]]],
  ormqr: [linalg.ormqr as Call, () => [eye(2), zeros([2]), eye(2), { left: false, transpose: true }]],
  qr: [linalg.qr as Call, () => [eye(2), { mode: "complete" }]],
  slogdet: [linalg.slogdet as Call, () => [eye(2)]],
  solve: [linalg.solve as Call, () => [eye(2), zeros([2, 1]), { left: true }]],
  solveEx: [linalg.solveEx as Call, () => [eye(2), zeros([2, 1]), { left: true }]],
  solveTriangular: [
    linalg.solveTriangular as Call,
    () => [eye(2), zeros([2, 1]), { upper: true, left: true, unitriangular: false }],
  ],
  svd: [linalg.svd as Call, () => [eye(2), { fullMatrices: false }]],
  svdvals: [linalg.svdvals as Call, () => [eye(2)]],
  tensorInv: [linalg.tensorInv as Call, () => [ones([1, 1]), { ind: 1 }]],
  tensorSolve: [linalg.tensorSolve as Call, () => [eye(2), zeros([2]), { dims: [0, 1] }]],
  vander: [linalg.vander as Call, () => [ones([2]), { n: 3 }]],
  vecdot: [linalg.vecdot as Call, () => [ones([2]), ones([2]), { dim: 0 }]],
  vectorNorm: [linalg.vectorNorm as Call, () => [ones([2, 2]), { ord: 3, dim: 0, keepdim: true, dtype: "float64" }]],
};
