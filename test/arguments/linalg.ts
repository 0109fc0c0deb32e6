/** Linear algebra: each function with arguments that it takes, in alphabetical order. */
import { eye, linalg, zeros } from "../../src/index.ts";
import type { Call, Calls } from "./upper.ts";

export const linalgCalls: Calls = {
  cholesky: [linalg.cholesky as Call, () => [eye(2), { upper: true }]],
  choleskyEx: [linalg.choleskyEx as Call, () => [eye(2), { upper: true }]],
  eigh: [linalg.eigh as Call, () => [eye(2), { UPLO: "U" }]],
  eigvalsh: [linalg.eigvalsh as Call, () => [eye(2), { UPLO: "U" }]],
  solveTriangular: [
    linalg.solveTriangular as Call,
    () => [eye(2), zeros([2, 1]), { upper: true, left: true, unitriangular: false }],
  ],
};
