/** Linear algebra: each function with arguments that it takes, in alphabetical order. */
import { eye, linalg, ones, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

export const linalgCalls: Calls = {
  cholesky: [linalg.cholesky as Call, () => [eye(2), { upper: true }]],
  choleskyEx: [linalg.choleskyEx as Call, () => [eye(2), { upper: true }]],
  eigh: [linalg.eigh as Call, () => [eye(2), { UPLO: "U" }]],
  eigvalsh: [linalg.eigvalsh as Call, () => [eye(2), { UPLO: "U" }]],
  "linalg.cross": [linalg.cross as Call, () => [ones([2, 3]), ones([2, 3]), { dim: 1 }]],
  "linalg.diagonal": [linalg.diagonal as Call, () => [eye(2), { offset: 0, dim1: 0, dim2: 1 }]],
  matrixExp: [linalg.matrixExp as Call, () => [eye(2)]],
  matrixPower: [linalg.matrixPower as Call, () => [eye(2), 3]],
  multiDot: [linalg.multiDot as Call, () => [[ones([2]), eye(2)]]],
  solveTriangular: [
    linalg.solveTriangular as Call,
    () => [eye(2), zeros([2, 1]), { upper: true, left: true, unitriangular: false }],
  ],
  vander: [linalg.vander as Call, () => [ones([2]), { n: 3 }]],
  vecdot: [linalg.vecdot as Call, () => [ones([2]), ones([2]), { dim: 0 }]],
  vectorNorm: [linalg.vectorNorm as Call, () => [ones([2, 2]), { ord: 3, dim: 0, keepdim: true, dtype: "float64" }]],
};
