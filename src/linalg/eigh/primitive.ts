import { cpuCall } from "../../backend/cpu/call.ts";
import { dtype, flag, whole, word } from "../../backend/fields.ts";
import { struct } from "../../backend/metal/struct.ts";

/**
 * The eigenvalues of symmetric matrices in ascending order, and their eigenvectors as the columns of an orthogonal
 * matrix. The element of largest absolute value in each eigenvector, the first on ties, is positive.
 *
 * Outputs: eigenvalues […, n]; info […]; eigenvectors […, n, n] if vectors are computed. Info is 0 on success. It is
 * the first row of the symmetric matrix, counted from 1, with an element that is not finite, or n + 1 if the iteration
 * did not converge; the results are NaN then.
 */
export interface EighAttributes {
  /** Whether the upper triangle is read instead of the lower one. */
  readonly upper: boolean;
  /** Whether eigenvectors are computed. */
  readonly vectors: boolean;
}

const eighFields = { batch: whole, size: whole, upper: flag, vectors: flag };
export const eighCall = cpuCall("eigh", { dtype, ...eighFields }, ["a", "eigenvalues", "info", "eigenvectors"]);
export const eighParameters = struct("Eigh", { batch: whole, size: whole, upper: flag });
export const eighBlockedParameters = struct("EighBlocked", {
  batch: whole,
  size: whole,
  blocks: word,
  rounds: word,
  round: word,
  upper: flag,
  vectors: flag,
});
